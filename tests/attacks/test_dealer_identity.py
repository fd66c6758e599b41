# SPDX-License-Identifier: Apache-2.0
"""Somebody else takes the connection on which the dealer sends party 0's part: nobody gets a byte of it, and no party
sends an input."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from certified import CLIENT, DEALER, NAMES, SERVER, ends, make_certificates, tls
from ports import reserved

import privml
from privml import _core
from privml.engines.threepc import backend as threepc
from privml.errors import IdentityError, PeerDisconnected, ProtocolError, SecurityAbort
from privml.session.connections import Link, accept, listening, reach
from privml.session.dealer import DEALER_MAGIC, dealer_opener
from privml.session.identity import accept_options, connect_options
from privml.session.session import Settings, open_session
from privml.spec import SessionSpec

SECONDS = 10.0
# Of sessions in which somebody waits until the end for what nobody sends.
UNTIL_IT_ENDS = 3.0
PROOF_BYTES = 32
TAG_BYTES = _core.SealedMessages.tag_bytes


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificates(tmp_path_factory.mktemp("certificates"))


class Sessions:
    """Server, dealer and a client that opens the server's dealing connection before the server does; ``taken`` is what
    the dealer sends there."""

    def __init__(self, identities, squatting=True, deadline=SECONDS):
        self.identities, self.squatting, self.deadline = identities, squatting, deadline
        self.taken, self.inputs, self.squatted = b"", 0, threading.Event()

    def settings(self, rank):
        return Settings(
            SessionSpec.of("threepc", truncation="exact", deadline=self.deadline, tls=self.identities[rank])
        )

    def run(self):
        with reserved(2) as self.addresses:
            return ends(self.server, self.client, self.dealer)

    def server(self):
        address, dealer = self.addresses
        settings = self.settings(0)
        away = connect_options(settings.spec, 2)

        def join(token, count):
            assert self.squatted.wait(self.deadline)
            return dealer_opener(dealer, 0, self.deadline, away)(token, count)

        with listening(address) as listener:
            channel = accept(listener, self.deadline, None, accept_options(settings.spec, 1))
            with open_session(Link(channel, join), 0, settings) as session:
                return self.work(session, 0)

    def client(self):
        address, dealer = self.addresses
        settings = self.settings(1)
        away = connect_options(settings.spec, 2)

        def join(token, count):
            if self.squatting:
                stolen = reach(dealer, self.deadline, None, away)
                stolen.write(DEALER_MAGIC + token + bytes([0, 1]))
                stolen.flush()
                self.thief = threading.Thread(target=self.take, args=(stolen,))
                self.thief.start()
                # The dealer has put it in its place, or refused it, before it takes the next one.
            own = dealer_opener(dealer, 1, self.deadline, away)(token, count)
            self.squatted.set()
            return own

        channel = reach(address, self.deadline, None, connect_options(settings.spec, 0))
        try:
            with open_session(Link(channel, join), 1, settings) as session:
                return self.work(session, 1)
        finally:
            if self.squatting:
                self.thief.join(3 * self.deadline)

    def take(self, stolen):
        stolen.set_deadline(self.deadline)
        try:
            while True:
                self.taken += stolen.read(1)
        except (PeerDisconnected, IdentityError):
            stolen.close()

    def dealer(self):
        with privml.connect(2, self.settings(2).spec, listen=self.addresses[1]) as session:
            return self.work(session, 2)

    def work(self, session, rank):
        self.inputs += 1
        engine = session.engine
        x = engine.input(torch.tensor([7, -3]) if rank == 0 else None, (2,), 0, 64)
        return engine.reveal(engine.relu(x, 64)[0], 64).tolist()


def identities(files, demanded):
    return [tls(files, name, demanded) for name in (SERVER, CLIENT, DEALER)]


def test_without_an_attacker_all_is_well(files):
    assert Sessions(identities(files, NAMES), squatting=False).run() == [[7, 0]] * 3


def test_with_a_name_for_the_server_the_thief_is_refused_and_the_session_goes_on(files):
    sessions = Sessions(identities(files, NAMES))
    assert sessions.run() == [[7, 0]] * 3
    assert sessions.taken == b""


def test_with_tls_two_parties_do_not_have_one_name(files):
    """The dealer demands no names, so the client's connection is as good to it as the server's."""
    known = identities(files, NAMES)
    sessions = Sessions([*known[:2], tls(files, DEALER, {})], deadline=UNTIL_IT_ENDS)
    outcomes = sessions.run()
    assert all(isinstance(error, (PeerDisconnected, IdentityError)) for error in outcomes), outcomes
    assert "refused" in str(outcomes[2])
    assert sessions.taken == b"" and sessions.inputs == 0


def test_without_tls_the_thief_learns_nothing_and_no_input_is_sent():
    sessions = Sessions([None] * 3, deadline=UNTIL_IT_ENDS)
    server, client, dealer = outcomes = sessions.run()
    assert all(isinstance(error, (PeerDisconnected, IdentityError, ProtocolError)) for error in outcomes), outcomes
    for error in (server, client):
        assert "another machine may have opened one of them" in str(error)
    assert "session" in str(dealer)
    assert len(sessions.taken) <= PROOF_BYTES and sessions.inputs == 0


def three(ends_of, deadline=SECONDS):
    """How three engines on the channels ``ends_of(rank)`` begin."""

    def party(rank):
        def run():
            channels, dealing = ends_of(rank)
            for channel in (*channels.values(), dealing):
                if channel is not None:
                    channel.set_deadline(deadline)
            return threepc.established(channels, dealing, rank)

        return run

    return ends(*(party(rank) for rank in range(3)))


def wires():
    return {pair: _core.memory_pair() for pair in threepc.PAIRS}, _core.memory_pair()


def place(rank, wires):
    pairs, dealing = wires
    mine = {pair[1 - pair.index(rank)]: ends[pair.index(rank)] for pair, ends in pairs.items() if rank in pair}
    return mine, {0: dealing[0], 2: dealing[1]}.get(rank)


def test_the_dealing_connection_of_another_session_is_refused():
    """Two sessions whose dealing connections were exchanged on their way to the dealer."""
    first, second = wires(), wires()
    crossed = (first[0], (first[1][0], second[1][1])), (second[0], (second[1][0], first[1][1]))

    def party(session, rank):
        def run():
            channels, dealing = place(rank, crossed[session])
            for channel in (*channels.values(), dealing):
                if channel is not None:
                    channel.set_deadline(SECONDS)
            return threepc.established(channels, dealing, rank)

        return run

    outcomes = ends(*(party(session, rank) for session in range(2) for rank in range(3)))
    assert all(isinstance(error, (IdentityError, PeerDisconnected)) for error in outcomes), outcomes
    told = [str(outcomes[each]) for each in (0, 2, 3, 5) if isinstance(outcomes[each], IdentityError)]
    assert told and all("dealing connection" in text for text in told)


def test_somebody_between_two_parties_is_noticed():
    """Who agrees with both of two parties on a key of its own fails at the third, where both prove what they saw."""
    pairs, dealing = wires()
    towards_0, towards_1 = _core.memory_pair(), _core.memory_pair()

    def between():
        for channel in (towards_0[1], towards_1[1]):
            channel.set_deadline(UNTIL_IT_ENDS)
            channel.write(_core.key_pair()[1])
            channel.flush()
            channel.read(PROOF_BYTES)
        towards_0[1].read(1)

    changed = dict(pairs)
    changed[0, 1] = (towards_0[0], towards_1[0])
    thread = threading.Thread(target=lambda: ends(between))
    thread.start()
    outcomes = three(lambda rank: place(rank, (changed, dealing)), UNTIL_IT_ENDS)
    thread.join(3 * SECONDS)
    assert all(isinstance(error, (IdentityError, PeerDisconnected)) for error in outcomes), outcomes
    assert any(isinstance(error, IdentityError) for error in outcomes)


def crossing(payloads):
    """The bytes of ``payloads`` and of their tags."""
    piece = _core.SealedMessages.piece_bytes
    return sum(size + -(-size // piece) * TAG_BYTES for size in map(len, payloads))


def dealt(payloads, changed=None, key_of_receiver=bytes(32)):
    """What party 0 receives of ``payloads`` (or its error), and what crosses the connection, where somebody flips a bit
    of the byte ``changed``."""
    near, far = _core.memory_pair(), _core.memory_pair()
    for channel in (*near, *far):
        channel.set_deadline(SECONDS)

    def send():
        line = _core.SealedMessages(near[0], bytes(32))
        for payload in payloads:
            line.send(payload)

    def between():
        crossed = bytearray(near[1].read(crossing(payloads)))
        if changed is not None:
            crossed[changed] ^= 1
        far[0].write(bytes(crossed))
        far[0].flush()
        return bytes(crossed)

    def receive():
        line = _core.SealedMessages(far[1], key_of_receiver)
        return [line.receive(payload.size) for payload in payloads]

    _, crossed, received = ends(send, between, receive)
    return received, crossed


PAYLOADS = [np.arange(size, dtype=np.uint8) for size in (1, 32, 255)] + [np.zeros(600_000, np.uint8)]


def test_what_is_dealt_crosses_encrypted():
    received, crossed = dealt(PAYLOADS)
    for payload, got in zip(PAYLOADS, received, strict=True):
        np.testing.assert_array_equal(payload, got)
    assert bytes(range(16)) not in crossed and bytes(16) not in crossed
    assert dealt(PAYLOADS[:1])[1] == crossed[:17], "tests fix the key"


@pytest.mark.parametrize("changed", [0, 16, 17, 400, 70_000, -1])
def test_a_changed_byte_of_it_ends_the_session(changed):
    received, _ = dealt(PAYLOADS, changed)
    assert isinstance(received, SecurityAbort)


def test_another_key_opens_nothing():
    received, _ = dealt(PAYLOADS, key_of_receiver=bytes([1] * 32))
    assert isinstance(received, SecurityAbort)


def test_the_engine_deals_encrypted():
    """What the dealer writes for party 0 is nowhere on the connection."""
    payload = np.zeros(100_000, np.uint8)
    pairs, dealing = wires()
    traced = _core.TracedChannel(dealing[1], True)

    def party(rank):
        def run():
            channels, end = place(rank, (pairs, (dealing[0], traced)))
            engine = threepc.established(channels, end, rank)
            engine.party.links.deal(payload if rank == 2 else None, payload.size)

        return run

    assert ends(*(party(rank) for rank in range(3))) == [None] * 3
    sent = traced.sent()
    assert len(sent) == PROOF_BYTES + crossing([payload]) and bytes(16) not in sent
