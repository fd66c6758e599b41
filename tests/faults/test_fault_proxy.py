# SPDX-License-Identifier: Apache-2.0
"""The relay that the tests of faults rely on: what it counts, and that each fault is what it says."""

from __future__ import annotations

import socket
import struct
import threading
import time

import pytest
from fault_proxy import Frames

HEADER = struct.Struct("<IIQ")


@pytest.fixture
def ends(proxy):
    """A client's socket and the server's, joined through the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = proxy.link(f"127.0.0.1:{listener.getsockname()[1]}").split(":")
        client = socket.create_connection((host, int(port)))
        server, _ = listener.accept()
    for each in (client, server):
        each.settimeout(60)
    yield client, server
    client.close()
    server.close()


def read(source, count):
    data = b""
    while len(data) < count and (piece := source.recv(count - len(data))):
        data += piece
    return data


def frame(size):
    return HEADER.pack(size, 3, 5) + bytes([size % 256]) * size


def test_bytes_cross_in_order_and_are_counted(proxy, ends):
    client, server = ends
    sent = bytes(range(256)) * 4000
    writer = threading.Thread(target=client.sendall, args=(sent,))
    writer.start()
    assert read(server, len(sent)) == sent
    writer.join()
    server.sendall(b"back")
    assert read(client, 4) == b"back"
    end = time.monotonic() + 60
    while proxy.bytes < len(sent) + 4 and time.monotonic() < end:  # they are counted when they have gone
        time.sleep(0.001)
    assert proxy.bytes == len(sent) + 4 and proxy.trace[-1][0] == proxy.bytes
    client.shutdown(socket.SHUT_WR)
    assert server.recv(1) == b""
    server.sendall(b"still open")
    assert read(client, 10) == b"still open"


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_frames_are_counted_however_they_are_cut(size):
    data, frames = b"".join(map(frame, (1, 300, 65536, 5))), Frames()
    for begin in range(0, len(data), size):
        frames.until(memoryview(data[begin : begin + size]), 10)
    assert frames.messages == 4 and frames.payload == 1 + 300 + 65536 + 5 and frames.known
    frames.until(memoryview(b"\x16\x03\x01" + bytes(40)), 10)
    assert not frames.known


@pytest.mark.parametrize("byte", [0, 1, 1000, 2999])
def test_the_fault_comes_at_its_byte(proxy, ends, byte):
    client, server = ends
    proxy.fail_at(byte, proxy.swallow)
    client.sendall(bytes(3000))
    assert proxy.fired.wait(20) and proxy.bytes == byte
    server.settimeout(0.2)
    got = read(server, byte)
    assert len(got) == byte
    with pytest.raises(TimeoutError):
        server.recv(1)


def test_the_fault_comes_at_its_message(proxy, ends):
    client, server = ends
    proxy.fail_at_message(2, proxy.half_close)
    client.sendall(frame(100) + frame(20) + frame(7))
    assert read(server, 1000) == frame(100) + frame(20), "two messages and the end"
    assert proxy.fired.wait(20)
    server.sendall(b"back")
    assert read(client, 4) == b"back"


def test_a_reset_is_one_at_both_ends(proxy, ends):
    client, server = ends
    proxy.fail_at(10, proxy.reset)
    client.sendall(bytes(20))
    assert proxy.fired.wait(20)
    for each in ends:
        with pytest.raises(ConnectionResetError):
            while each.recv(100):
                pass


def test_a_side_that_is_reset_resets_the_other(proxy, ends):
    client, server = ends
    client.sendall(b"x")
    assert read(server, 1) == b"x"
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    with pytest.raises(ConnectionResetError):
        server.recv(1)


def test_who_is_not_read_cannot_write_for_ever(proxy, ends):
    client, server = ends
    proxy.fail_at(10, proxy.stop_reading)
    client.settimeout(0.5)
    with pytest.raises(TimeoutError):
        while True:
            client.send(bytes(1 << 16))
    assert proxy.bytes == 10


def test_delays_and_outages_lose_nothing(proxy, ends):
    client, server = ends
    proxy.slow(0.01, 0.05)
    proxy.interrupt(0.1, 0.5)
    for number in range(20):
        client.sendall(frame(number + 1))
    assert read(server, 20 * 16 + 210) == b"".join(frame(number + 1) for number in range(20))


def test_a_link_that_leads_nowhere_refuses(proxy):
    host, port = proxy.link().split(":")
    with socket.create_connection((host, int(port))) as client:
        client.settimeout(20)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
