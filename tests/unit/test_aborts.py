# SPDX-License-Identifier: Apache-2.0
"""Clients whose actively secure sessions fail too often are refused, by the names of their certificates."""

import json
from types import SimpleNamespace

import pytest

from privml.errors import IdentityError, InvalidInput, PeerDisconnected, ProtocolError, SecurityAbort
from privml.service.aborts import LIMITS, Aborts
from privml.service.negotiation import grant_query
from privml.service.options import LARGEST_QUERY
from privml.service.session_worker import answer_queries

# A peer that has seen its attempt fail may leave, or send what is no message.
FAILURES = [SecurityAbort("a check"), PeerDisconnected("gone"), ProtocolError("an empty frame"), RuntimeError("other")]


class Client:
    """A channel from a client that asks for a query and accepts everything."""

    def __init__(self, name):
        self.peer_name, self.told = name, b""
        messages = (json.dumps(words).encode() for words in ({"inputs": [[2]]}, {"accepted": True}))
        self.coming = b"".join(len(body).to_bytes(4, "little") + body for body in messages)

    def write(self, data):
        self.told += bytes(data)

    def flush(self):
        pass

    def read(self, count):
        taken, self.coming = self.coming[:count], self.coming[count:]
        return taken


def service(ring):
    spec = SimpleNamespace(name="x", shape=(2,))
    program = SimpleNamespace(
        inputs=[spec],
        weights={},
        state=(),
        demand=lambda *shapes, **settings: {},
        complete=lambda shapes, length=0: shapes,
        state_bytes=lambda shapes: 0,
    )
    ot = SimpleNamespace(decided=True)
    backend = SimpleNamespace(actively_secure=ring is not None, dealt=False, uses_link=lambda spec: False)
    settings = SimpleNamespace(backend=backend, spec=SimpleNamespace(engine=SimpleNamespace(ring=ring), ot=ot))
    return SimpleNamespace(program=program, settings=settings, preprocessing=None, aborts=Aborts(), limit=LARGEST_QUERY)


def fail(served, client, error):
    """A session with the client that ends with ``error``."""

    def opener(agree):
        raise error

    link = SimpleNamespace(channels=[client])
    with pytest.raises(type(error)):
        answer_queries(opener, link, served)


def test_a_client_is_refused_after_its_last_failure():
    served = service(32)
    for turn in range(LIMITS[32]):
        grant_query(Client("mallory"), served)
        fail(served, Client("mallory"), FAILURES[turn % len(FAILURES)])
    refused = Client("mallory")
    with pytest.raises(IdentityError, match="'mallory' is refused: 64 of its sessions"):
        grant_query(refused, served)
    assert b"is refused" in refused.told
    grant_query(Client("alice"), served)
    served.aborts.require_trust("mallory", 64)  # with 57 bits an attempt is worth less


def test_other_failures_and_clients_without_a_name_do_not_count():
    served = service(32)
    for _ in range(LIMITS[32]):
        fail(served, Client("alice"), InvalidInput("a shape"))
        fail(served, Client(""), SecurityAbort("a check"))
    grant_query(Client("alice"), served)
    grant_query(Client(""), served)


def test_sessions_that_are_not_actively_secure_do_not_count():
    served = service(None)
    for _ in range(LIMITS[32]):
        fail(served, Client("alice"), SecurityAbort("a check"))
    served.aborts.require_trust("alice", 32)
