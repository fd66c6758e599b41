# SPDX-License-Identifier: Apache-2.0
"""A peer that deviates in correlations made in the background: a thread of its own catches it, and the session ends
there and then, although what is in stock would do for all that is to come."""

import contextlib
import gc
import socket
import struct
import sys
import threading

import pytest
import torch
from patience import PATIENCE
from ports import reserved

import privml
from privml.errors import PeerDisconnected, SecurityAbort

HEADER = struct.Struct("<IIQ")  # of a frame: payload length, depth, clock
PROTOCOLS, REFILL = 0, 1  # a session's connections, in the order in which they are opened
STOCK = 1 << 18  # far more than the protocols here take
X = torch.arange(-500, 500)


class Proxy:
    """Between party 1 and party 0: once ``armed``, it flips a bit of what party 1 says where correlations are made."""

    def __init__(self, target):
        host, port = target.split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.armed, self.flipped = threading.Event(), threading.Event()
        self.left = [threading.Event(), threading.Event()]  # by party 0, by connection
        self._sockets, self._threads = [], [threading.Thread(target=self._accept, daemon=True)]

    def _accept(self):
        for connection in (PROTOCOLS, REFILL):
            client, _ = self._listener.accept()
            server = self._reach()
            self._sockets += [client, server]
            for body in (self._forth, self._back):
                self._threads.append(threading.Thread(target=body, args=(connection, client, server), daemon=True))
                self._threads[-1].start()

    def _reach(self):
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection(self._target)

    def _forth(self, connection, client, server):
        with contextlib.suppress(OSError, EOFError):
            while True:
                header = _exactly(client, HEADER.size)
                payload = _exactly(client, HEADER.unpack(header)[0])
                if connection == REFILL and self.armed.is_set() and not self.flipped.is_set():
                    payload[len(payload) // 2] ^= 1
                    self.flipped.set()
                server.sendall(header + payload)
        _shut(server)

    def _back(self, connection, client, server):
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        self.left[connection].set()
        _shut(client)

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *exception):
        for each in (self._listener, *self._sockets):
            _shut(each)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        for each in self._sockets:
            each.close()


def _exactly(source, count):
    data = bytearray()
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _shut(each):
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)


def protocol(session):
    """A comparison of numbers of party 1, revealed to both."""
    engine = session.engine
    share = X if engine.rank == 1 else torch.zeros_like(X)
    return engine.reveal(engine.relu((share,), 32)[0], 32)


def opened(rank, **side):
    spec = privml.SessionSpec.of(security="malicious", refill="background", deadline=PATIENCE)
    session = privml.connect(rank, spec, **side)
    session.engine.session.reserve(STOCK, STOCK)
    assert torch.equal(protocol(session), X.clamp(min=0))
    return session


@contextlib.contextmanager
def caught():
    """A list with the session of party 0, which has caught party 1 while no protocol ran; much is in stock."""
    turn, ends = threading.Barrier(2), []

    def dishonest(address):
        session = opened(1, connect=address)
        turn.wait(PATIENCE)
        try:
            session.engine.session.reserve(STOCK + STOCK, STOCK + STOCK)
            ends.append(protocol(session))
        except Exception as error:
            ends.append(error)
        session.close()

    with reserved(1) as (address,), Proxy(address) as proxy:
        peer = threading.Thread(target=dishonest, args=(proxy.address,), daemon=True)
        peer.start()
        session = opened(0, listen=address)
        proxy.armed.set()
        turn.wait(PATIENCE)
        session.engine.session.reserve(STOCK + STOCK, STOCK + STOCK)
        assert proxy.flipped.wait(PATIENCE)
        for connection in (REFILL, PROTOCOLS):
            assert proxy.left[connection].wait(PATIENCE), "the session goes on"
        peer.join(PATIENCE)
        assert isinstance(ends[0], PeerDisconnected)  # it can do nothing more, either
        kept = [session]
        del session
        yield kept


def test_every_further_protocol_says_so():
    with caught() as (session,):
        for _ in range(3):
            with pytest.raises(SecurityAbort, match="consistency check"):
                protocol(session)
        with pytest.raises(SecurityAbort, match="consistency check"):
            session.engine.session.reserve(1, 1)
        session.close()  # has nothing new to say


def test_closing_says_so():
    with caught() as (session,), pytest.raises(SecurityAbort, match="consistency check"):
        session.close()


def test_so_does_the_end_of_a_block():
    with caught() as (session,), pytest.raises(SecurityAbort, match="consistency check"), session:
        pass


def test_a_session_that_is_dropped_says_so(monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: said.append(str(what.exc_value)))
    with caught() as kept:
        kept.clear()
        gc.collect()
        assert len(said) == 1 and "consistency check" in said[0]
