# SPDX-License-Identifier: Apache-2.0
"""Several queries in one session: the same bits as the plain engine, each at exactly the cost foretold, and no set-up
after the first."""

import socket
import threading
import time
from dataclasses import replace

import pytest
import services
import torch
from patience import ENDLESS
from serving import ENGINES, plain, serving
from small_network import converted

import privml
import privml.service.session_worker
from privml.errors import ConfigError, InvalidInput, PeerDisconnected, ProtocolError
from privml.service.negotiation import Allowance, _allowance_of
from privml.service.options import Limits
from privml.session.ledger import PHASES, Ledger, Snapshot

SHAPES = [(2, 4), (1, 4), (2, 4), (3, 4)]


@pytest.fixture(scope="module")
def program():
    return converted()


def inputs(shapes=SHAPES):
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def counts(snapshot: Snapshot):
    """All that is counted but seconds."""
    phases = [getattr(snapshot, phase) for phase in PHASES]
    return [(p.sent, p.received, p.depth) for p in phases] + [snapshot.cots_as_sender, snapshot.cots_as_receiver]


def foretold(program, engine, shapes, **settings):
    own = {key: value for key, value in ENGINES[engine].items() if key in ("threads", "ring", "truncation")}
    spec = privml.SessionSpec.of("twopc" if engine == "lanes" else engine, **own)
    spec = replace(spec, ot=ENGINES[engine].get("ot", spec.ot))
    return program.session_cost([[shape] for shape in shapes], spec, **settings)


@pytest.mark.parametrize("engine", ENGINES)
def test_queries_of_mixed_shapes(program, engine):
    with serving(program, engine) as (server, settings), services.client(program, server.address, **settings) as client:
        answers = [client.query(x) for x in inputs()]
        for x, answer in zip(inputs(), answers, strict=True):
            assert torch.equal(answer.outputs[0], plain(program, engine, x))
        told = server.answers(len(answers))
        assert [answer.turn for answer in answers] == [answer.turn for answer in told] == [1, 2, 3, 4]
        for rank, each in ((0, told), (1, answers)):
            predicted = [counts(ledger.snapshot()) for ledger, _ in foretold(program, engine, SHAPES, rank=rank)]
            assert [counts(answer.ledger.snapshot()) for answer in each] == predicted
    first, *others = [answer.ledger.snapshot() for answer in answers]
    assert first.setup.bytes > 0 and all(other.setup.bytes == other.setup.depth == 0 for other in others)
    names = [list(answer.ledger.records) for answer in answers]
    assert names[0] == names[1] == list(dict.fromkeys(program.layers))


@pytest.mark.parametrize("engine", ["twopc", "lanes", "active"])
def test_what_is_made_ahead_leaves_the_next_query_online_only(program, engine):
    shapes = [(2, 4), (2, 4), (1, 4), (3, 4)]
    with (
        serving(program, engine) as (server, settings),
        services.client(program, server.address, ahead=True, **settings) as client,
    ):
        answers = [client.query(x) for x in inputs(shapes)]
        for x, answer in zip(inputs(shapes), answers, strict=True):
            assert torch.equal(answer.outputs[0], plain(program, engine, x))
        predicted = foretold(program, engine, shapes, ahead=True)
        assert [counts(answer.ledger.snapshot()) for answer in answers] == [
            counts(each.snapshot()) for each, _ in predicted
        ]
        assert [counts(answer.ahead) for answer in answers] == [counts(ahead) for _, ahead in predicted]
    for answer in answers[1:3]:
        assert answer.ledger.snapshot().preprocess.bytes == 0 < answer.ledger.snapshot().online.bytes
    assert answers[1].ahead.preprocess.bytes > 0 == answers[0].ahead.preprocess.bytes
    assert answers[3].turn == 4


def test_nothing_is_made_ahead_where_a_party_does_not_want_it(program):
    x = inputs()[0]
    for limits, ahead in ((Limits(ahead=False), True), (Limits(), False)):
        with (
            serving(program, limits=limits) as (server, settings),
            services.client(program, server.address, ahead=ahead, **settings) as client,
        ):
            second = [client.query(x) for _ in range(2)][1]
            assert second.ahead == Snapshot() and second.turn == 2
            assert second.ledger.snapshot().preprocess.bytes > 0


def test_an_input_that_is_refused_here_leaves_the_session(program):
    x = inputs()[0]
    with serving(program) as (server, settings), services.client(program, server.address, **settings) as client:
        client.query(x)
        for bad in (torch.zeros(2, 5), torch.full((1, 4), float("nan")), [x, x]):
            with pytest.raises(InvalidInput):
                client.query(bad)
        assert client.query(x).turn == 2 and client.queries == 2


def test_a_session_has_only_so_many_queries(program):
    x = inputs()[0]
    with (
        serving(program, limits=Limits(session_queries=2)) as (server, settings),
        services.client(program, server.address, **settings) as client,
    ):
        assert [client.query(x).turn for _ in range(5)] == [1, 2, 1, 2, 1]


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_an_idle_session_ends_and_the_next_query_gets_another(program, engine):
    x = inputs()[0]
    with (
        serving(program, engine, limits=Limits(idle=0.2)) as (server, settings),
        services.client(program, server.address, **settings) as client,
    ):
        client.query(x)
        client._session._allowance = Allowance(5, 1e9)  # as if the deadline passed at the server alone
        server.said("no query came within 0.2 seconds")
        assert client.query(x).turn == 1
        time.sleep(0.3)  # the client knows it by itself, too
        assert not client._session.may_continue
        assert client.query(x).turn == 1


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_a_server_may_end_a_session_that_waits(program, monkeypatch, engine):
    """To make room: closing its connections ends it well, and the client's next query begins another."""
    waiting, answering = [], privml.service.session_worker

    def next_requested(channel, seconds):
        waiting.append(channel)
        channel.close()
        return plainly(channel, seconds)

    plainly = answering._next_requested
    monkeypatch.setattr(answering, "_next_requested", next_requested)
    x = inputs()[0]
    with (
        serving(program, engine) as (server, settings),
        services.client(program, server.address, **settings) as client,
    ):
        for count in (1, 2):
            answer = client.query(x)
            assert torch.equal(answer.outputs[0], plain(program, engine, x)) and answer.turn == 1
            server.said("a session ended: the client left", count)
            assert len(waiting) == count


def test_an_error_in_a_query_ends_the_session(program):
    def fail(done, total, label):
        raise RuntimeError("for this test")

    x = inputs()[0]
    with serving(program) as (server, settings), services.client(program, server.address, **settings) as client:
        client.query(x)
        with pytest.raises(RuntimeError, match="for this test"):
            client.query(x, progress=fail)
        server.said("PeerDisconnected")
        assert client.query(x).turn == 1


def test_a_message_out_of_order_after_an_answer_ends_the_session(program):
    x = inputs()[0]
    with serving(program) as (server, settings), services.client(program, server.address, **settings) as client:
        client.query(x)
        client._session._link.channels[0].set_tag(0)  # as between two queries
        client._session._link.channels[0].write(b"\x07")
        client._session._link.channels[0].flush()
        server.said("ProtocolError")
        assert client.query(x).turn == 1


@pytest.mark.parametrize("words", [
    {}, {"queries": -1, "idle": 1, "ahead": False}, {"queries": True, "idle": 1, "ahead": False},
    {"queries": 1, "idle": float("inf"), "ahead": False}, {"queries": 1, "idle": -1, "ahead": False},
    {"queries": 1, "idle": "1", "ahead": False}, {"queries": 1, "idle": 1, "ahead": 1},
    {"queries": 1, "idle": 1, "ahead": True},
], ids=str)  # fmt: skip
def test_a_server_must_say_what_it_allows(words):
    with pytest.raises(ProtocolError, match="further queries"):
        _allowance_of(words, False)


@pytest.mark.parametrize("limits", [
    {"session_queries": 0}, {"session_queries": 1.5}, {"queries": -1}, {"idle": 0}, {"idle": float("nan")},
], ids=str)  # fmt: skip
def test_limits_that_are_none(limits):
    with pytest.raises(ConfigError):
        Limits(**limits)


def test_a_closed_client_asks_nothing(program):
    with serving(program) as (server, settings):
        client = services.client(program, server.address, **settings)
        client.query(inputs()[0])
        client.close()
        client.close()
        with pytest.raises(ConfigError, match="closed"):
            client.query(inputs()[0])


def test_closing_ends_a_query_that_waits(program):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = services.client(program, f"127.0.0.1:{silent.getsockname()[1]}", deadline=50.0, retries=5)
        errors = []
        waiting = threading.Thread(target=lambda: errors.append(error_of(client)))
        waiting.start()
        peer, _ = silent.accept()  # kept: a client that is left tries again
        peer.recv(8)
        client.close()
        waiting.join(20)
        peer.close()
        assert not waiting.is_alive() and isinstance(errors[0], PeerDisconnected)


def test_a_client_waits_for_an_answer_up_to_its_limit(program):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with (
            services.client(program, address, deadline=ENDLESS, answer_seconds=0.2) as client,
            pytest.raises(PeerDisconnected, match="no answer came within answer_seconds=0.2"),
        ):
            client.query(inputs()[0])
    with pytest.raises(ConfigError, match="answer_seconds"):
        services.client(program, address, answer_seconds=-1.0)


def error_of(client):
    try:
        client.query(inputs()[0])
    except Exception as error:
        return error


def test_an_answers_ledger_stays_as_it_is(program):
    x = inputs()[0]
    with serving(program) as (server, settings), services.client(program, server.address, **settings) as client:
        first = client.query(x).ledger
        before, layers = first.as_dict(), list(first.records)
        client.query(x)
        assert isinstance(first, Ledger) and first.as_dict() == before and list(first.records) == layers
