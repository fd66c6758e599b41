# SPDX-License-Identifier: Apache-2.0
"""Connections that are no party's, such as a port scanner's, do not end a party that listens."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time

import pytest
import torch
from certified import CLIENT, SERVER, ends, make_certificates, tls
from ports import reserved
from services import order, preprocess
from small_network import Net

import privml
from privml import _core
from privml.errors import HandshakeMismatch, PeerDisconnected, ProtocolError
from privml.session.connect import accept_peer
from privml.session.handshake import MAGIC
from privml.session.session import Settings

SECONDS = 20.0
pytestmark = pytest.mark.filterwarnings("ignore:a connection to port")


def framed(data):
    """One frame of a channel."""
    return struct.pack("<IIQ", len(data), 0, 0) + data


def client_hello():
    """The first message of a TLS handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="any").do_handshake()
    return outgoing.read()


STRAYS = {
    "closes": b"",
    "http": b"GET / HTTP/1.1\r\n\r\n" * 4,
    "zeros": bytes(200),
    "nonsense": framed(b"nonsense"),
    "half a hello": framed(MAGIC + struct.pack("<I", 400) + b"{"),
    "half a TLS handshake": client_hello()[:50],
    "a TLS handshake without an end": client_hello(),
}
SILENT = ("http", "half a hello", "half a TLS handshake", "a TLS handshake without an end")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@contextlib.contextmanager
def strays(address):
    """All of them at ``address``, and some that stay and say no more; returns once all have connected."""
    host, port = address.split(":")
    with contextlib.ExitStack() as stack:
        for name, sent in STRAYS.items():
            stray = stack.enter_context(socket.create_connection((host, int(port)), SECONDS))
            stray.sendall(sent)
            if name not in SILENT:
                stray.close()
        stack.enter_context(socket.create_connection((host, int(port)), SECONDS))  # says nothing at all
        yield


def listening_at(address):
    """Waits until somebody listens there."""
    host, port = address.split(":")
    for _ in range(1000):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection((host, int(port)), 1.0):
            return
        threading.Event().wait(0.02)
    raise AssertionError(f"nobody listens on {address}")


def party(rank, place, **settings):
    def run():
        with privml.connect(rank, privml.SessionSpec.of(deadline=SECONDS, **settings), **place) as session:
            x = session.engine.input(torch.tensor([5]) if rank == 0 else None, (1,), 0, 32)
            return session.engine.reveal(x, 32).tolist()

    return run


@pytest.mark.parametrize("secured", [False, True], ids=["plain", "TLS"])
@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_a_party_that_listens_waits_for_its_peer(files, engine, secured):
    identities = [{"tls": tls(files, name)} if secured else {} for name in (SERVER, CLIENT, "helper-c")]
    with reserved(2) as (address, dealer):
        further = {"dealer": dealer} if engine == "threepc" else {}

        def late():
            listening_at(address)
            if engine == "threepc":
                listening_at(dealer)
            with strays(address), strays(dealer) if engine == "threepc" else contextlib.nullcontext():
                return party(1, {"connect": address, **further}, engine=engine, **identities[1])()

        bodies = [party(0, {"listen": address, **further}, engine=engine, **identities[0]), late]
        if engine == "threepc":
            bodies.append(party(2, {"listen": dealer}, engine=engine, **identities[2]))
        assert ends(*bodies) == [[5]] * len(bodies)


def test_preprocessing_waits_for_its_peer(tmp_path):
    program = privml.convert(Net().eval(), calibration=torch.randn(16, 4))

    def half(rank):
        return order(program, str(tmp_path / f"store{rank}"), 1, key_file=f"{tmp_path}/{rank}.key")

    with reserved(1) as (address,):

        def late():
            listening_at(address)
            with strays(address):
                return preprocess(half(1), server=address, deadline=SECONDS)

        made = ends(lambda: preprocess(half(0), listen=address, deadline=SECONDS), late)
    assert [each.header.queries for each in made] == [1, 1]
    assert made[0].header.store == made[1].header.store


def test_a_party_of_other_settings_is_told_at_once():
    with reserved(1) as (address,):
        outcomes = ends(party(0, {"listen": address}), party(1, {"connect": address}, threads=2))
    assert all(isinstance(error, HandshakeMismatch) and "threads" in str(error) for error in outcomes), outcomes


def test_at_the_end_the_last_refusal_is_told():
    with reserved(1) as (address,):

        def stray():
            listening_at(address)
            host, port = address.split(":")
            with socket.create_connection((host, int(port)), SECONDS) as caller:
                caller.sendall(framed(b"nonsense" * 3))

        outcome, _ = ends(lambda: privml.connect(0, privml.SessionSpec(deadline=2.0), listen=address), stray)
    assert isinstance(outcome, (ProtocolError, PeerDisconnected)), outcome
    assert "nobody else connected" in str(outcome)


class Crowded:
    """A listener at whose port somebody is always there who says nothing."""

    port = 1

    def __init__(self):
        self.accepted, self.strays = 0, []

    def accept(self, seconds, **link):
        assert self.accepted < 60, "it accepts without end"
        self.accepted += 1
        stray, channel = _core.memory_pair()
        self.strays.append(stray)
        time.sleep(0.01)
        return channel


def test_a_crowd_of_strays():
    """Strays that come one after another do not keep a listening party waiting beyond its deadline."""
    with pytest.raises(PeerDisconnected, match="nobody else connected"):
        accept_peer(Crowded(), lambda: Settings().hello(0, "party"), 1.0)
