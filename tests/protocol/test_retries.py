# SPDX-License-Identifier: Apache-2.0
"""What a client tries again and what never; every attempt has fresh correlations."""

import shutil
import threading

import pytest
import services
import torch
from services import order, preprocess
from serving import Serving, plain, serving
from small_network import converted

from privml.errors import (
    ConfigError,
    HandshakeMismatch,
    IdentityError,
    InvalidInput,
    PeerDisconnected,
    ProtocolError,
    SecurityAbort,
    ServiceBusy,
    StoreError,
)
from privml.service.client import LONGEST_PAUSE
from privml.session.preprocessing import StoreHalf
from privml.store.store import Store

INPUT = torch.tensor([[0.5, -1.0, 0.25, 2.0], [1.0, 1.0, -1.0, 0.0]])


@pytest.fixture(scope="module")
def program():
    return converted()


class Failing:
    """A conversation that raises what comes next, or answers."""

    may_continue = True
    failed = False

    def __init__(self, outcomes):
        self.outcomes = outcomes

    def query(self, inputs, progress):
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self):
        pass

    def raise_unreported(self):
        pass


def client_of(program, outcomes, monkeypatch, **settings):
    """A client whose every session meets the next of ``outcomes``; the pauses that it makes."""
    client, pauses = services.client(program, "127.0.0.1:1", **settings), []
    monkeypatch.setattr(client, "_connect", lambda server, away: Failing(outcomes))
    monkeypatch.setattr(client._closed, "wait", pauses.append)
    return client, pauses


def test_busy_and_lost_servers_are_asked_again(program, monkeypatch):
    outcomes = [ServiceBusy("come again", 7.0), PeerDisconnected("gone"), PeerDisconnected("silent"), "answer"]
    client, pauses = client_of(program, outcomes, monkeypatch, retries=3, backoff=0.5)
    assert client.query(INPUT) == "answer" and not outcomes
    assert pauses[0] == 7.0 and 0.5 <= pauses[1] <= 1.5 and 1.0 <= pauses[2] <= 3.0


def test_no_more_often_than_was_said(program, monkeypatch):
    client, pauses = client_of(program, [PeerDisconnected(str(i)) for i in range(3)], monkeypatch, retries=2)
    with pytest.raises(PeerDisconnected, match="2"):
        client.query(INPUT)
    assert len(pauses) == 2
    client, pauses = client_of(program, [ServiceBusy("busy", 1.0)], monkeypatch)
    with pytest.raises(ServiceBusy, match="busy"):
        client.query(INPUT)
    assert pauses == []


@pytest.mark.parametrize("kind", [
    SecurityAbort, HandshakeMismatch, InvalidInput, StoreError, ProtocolError, IdentityError,
])  # fmt: skip
def test_what_is_never_tried_again(program, monkeypatch, kind):
    client, pauses = client_of(program, [kind("no"), "answer"], monkeypatch, retries=5)
    with pytest.raises(kind):
        client.query(INPUT)
    assert pauses == []


def test_pauses_have_an_end(program, monkeypatch):
    client, pauses = client_of(program, [ServiceBusy("busy", 1e9)] * 40 + ["answer"], monkeypatch, retries=40)
    assert client.query(INPUT) == "answer"
    assert set(pauses) == {LONGEST_PAUSE}


@pytest.mark.parametrize("settings", [{"retries": -1}, {"retries": 0.5}, {"backoff": 0}, {"backoff": float("inf")}])
def test_settings_that_are_refused(program, settings):
    with pytest.raises(ConfigError):
        services.client(program, "127.0.0.1:1", **settings)


def test_a_check_that_failed_while_idle_is_raised_and_not_tried_again(program, monkeypatch):
    """What is made ahead may show that the peer deviates."""
    import privml.service.client as client_module

    made = threading.Event()

    def caught(session, stock):
        made.set()
        raise SecurityAbort("for this test")

    with (
        serving(program, "active") as (server, settings),
        services.client(program, server.address, ahead=True, retries=3, **settings) as client,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(client_module, "make_ahead", caught)
            client.query(INPUT)
            assert made.wait(20)
            with pytest.raises(SecurityAbort, match="for this test"):
                client.query(INPUT)
        assert client.query(INPUT).turn == 1


# ---- stores
@pytest.fixture(scope="module")
def made(program, tmp_path_factory):
    folder, server, outcomes = tmp_path_factory.mktemp("made"), Serving(), []

    def half(rank):
        return order(program, folder / str(rank), count=4, batch=2, key_file=f"{folder}/{rank}.key")

    def fill(listen, log, on_listening):
        outcomes.append(preprocess(half(0), listen=listen, on_listening=on_listening))
        server._put(server.lines, "made")

    preprocess(half(1), server=server.begin(fill), deadline=20.0)
    server.said("made")
    server.threads[0].join(20)
    return folder


@pytest.fixture
def stores(program, made, tmp_path, monkeypatch):
    """Fresh copies of both halves (what no user may do), and the chunks that each hands out."""
    shutil.copytree(made, tmp_path / "stores")
    taken, hand_out = {}, Store._hand_out

    def watched(store, chunks):
        taken.setdefault(store.header.rank, []).extend(chunks)
        return hand_out(store, chunks)

    monkeypatch.setattr(Store, "_hand_out", watched)
    halves = [
        StoreHalf(tmp_path / "stores" / str(rank), rank, program.hash, f"{tmp_path}/stores/{rank}.key", when_empty)
        for rank, when_empty in ((0, "make"), (1, "make"))
    ]
    yield halves, taken
    for half in halves:
        half.close()


def test_every_query_of_a_session_draws_its_own(program, stores):
    (ours, theirs), taken = stores
    with (
        serving(program, preprocessing=ours) as (server, settings),
        services.client(program, server.address, preprocessing=theirs, ahead=True, **settings) as client,
    ):
        for turn in (1, 2, 3):
            answer = client.query(INPUT)
            assert torch.equal(answer.outputs[0], plain(program, "twopc", INPUT))
            cost = answer.ledger.snapshot()
            assert answer.turn == turn and answer.source.startswith("from store") and cost.preprocess.bytes == 0
            assert cost.setup.sent == (64 if turn == 1 else 0)
            drawn = program.correlations([(2, 4)])
            assert (cost.cots_as_sender, cost.cots_as_receiver) == drawn.roles(1)
            assert ours.store.left() == theirs.store.left() == ((4 - turn) * drawn.from0, (4 - turn) * drawn.from1)
    assert len(set(taken[0])) == len(taken[0]) and sorted(taken[0]) == sorted(taken[1])


def test_a_query_that_the_store_does_not_suffice_for_gets_a_session_that_makes_its_own(program, stores):
    (ours, theirs), _ = stores
    with (
        serving(program, preprocessing=ours) as (server, settings),
        services.client(program, server.address, preprocessing=theirs, **settings) as client,
    ):
        assert client.query(INPUT).source.startswith("from store")
        large = client.query(INPUT.repeat(9, 1))
        assert large.turn == 1 and large.source.startswith("made by")
        assert torch.equal(large.outputs[0], plain(program, "twopc", INPUT.repeat(9, 1)))
        server.said("the store does not suffice")
        left = ours.store.left()
        small = client.query(INPUT)
        assert small.turn == 2 and small.source.startswith("made by"), "this session goes on making its own"
        assert torch.equal(small.outputs[0], plain(program, "twopc", INPUT))
        assert ours.store.left() == theirs.store.left() == left


@pytest.mark.parametrize("first_turn", [1, 2])
def test_a_failure_in_the_middle_spends_what_was_drawn(program, stores, first_turn):
    """The server fails within a query; the next attempt takes correlations that no session has had."""
    (ours, theirs), taken = stores
    turns = iter(range(1, 9))

    def fail_once(done, total, label):
        if done == 0:
            fail_once.turn = next(turns)
        if label == "relu" and fail_once.turn == first_turn:
            raise RuntimeError("for this test")

    with (
        serving(program, preprocessing=ours, progress=fail_once) as (server, settings),
        services.client(program, server.address, preprocessing=theirs, retries=1, backoff=0.01, **settings) as client,
    ):
        for _ in range(first_turn):
            answer = client.query(INPUT)
            assert torch.equal(answer.outputs[0], plain(program, "twopc", INPUT))
        server.said("for this test")
        assert answer.turn == 1, "the attempt that succeeded had a session of its own"
    drawn, used = program.correlations([(2, 4)]), first_turn + 1
    assert ours.store.left() == theirs.store.left() == ((4 - used) * drawn.from0, (4 - used) * drawn.from1)
    for chunks in taken.values():
        assert len(set(chunks)) == len(chunks) == 2 * used, "handed out once, those of the lost attempt included"
