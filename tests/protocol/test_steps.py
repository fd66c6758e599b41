# SPDX-License-Identifier: Apache-2.0
"""Sessions that keep state between their queries: the plain engine's bits step by step, at exactly the cost foretold,
and one clear error whenever the state is gone."""

import threading
import time
from dataclasses import replace

import pytest
import recurrent_network as network
import services
import torch
from serving import ENGINES, serving

import privml
import privml.service.session_worker
from privml.errors import ConfigError, HandshakeMismatch, InvalidInput, PeerDisconnected, ServiceBusy, StateLost
from privml.graph.state import State
from privml.service.negotiation import checked_shapes
from privml.service.options import LARGEST_QUERY, Capacity, Limits


@pytest.fixture(scope="module")
def program():
    return network.converted()


def foretold(program, engine, count, rank):
    own = {key: value for key, value in ENGINES[engine].items() if key in ("threads", "ring", "truncation")}
    spec = privml.SessionSpec.of("twopc" if engine == "lanes" else engine, **own)
    spec = replace(spec, ot=ENGINES[engine].get("ot", spec.ot))
    return [ledger.snapshot().total for ledger, _ in program.session_cost([[(2, 4)]] * count, spec, rank=rank)]


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_of_a_session(program, engine):
    inputs = network.steps(4)
    with (
        serving(program, engine) as (server, settings),
        services.client(program, server.address, **settings) as client,
        client.session() as session,
    ):
        answers = [session.step(x) for x in inputs]
        assert session.steps == client.queries == 4
        for answer, expected in zip(answers, network.plain(program, inputs, engine), strict=True):
            assert torch.equal(answer.outputs[0], expected)
        for rank, told in ((0, server.answers(4)), (1, answers)):
            predicted = [(each.bytes, each.depth) for each in foretold(program, engine, 4, rank)]
            spent = [each.ledger.snapshot().total for each in told]
            assert [(each.bytes, each.depth) for each in spent] == predicted
        assert [each.shapes for each in server.answers(4)] == [((2, 4),)] * 4


def test_steps_with_correlations_made_ahead(program):
    inputs = network.steps(3)
    with (
        serving(program) as (server, settings),
        services.client(program, server.address, ahead=True, **settings) as client,
        client.session() as session,
    ):
        answers = [session(x) for x in inputs]
    assert all(torch.equal(a, b) for a, b in zip(answers, network.plain(program, inputs), strict=True))


def test_clients_have_states_of_their_own(program):
    """Two clients and two sessions of one client, in turns: each finds what it left itself."""
    inputs = network.steps(3)
    expected = network.plain(program, inputs)
    with (
        serving(program) as (server, settings),
        services.client(program, server.address, **settings) as one,
        services.client(program, server.address, **settings) as other,
        one.session() as first, one.session() as second, other.session() as third,
    ):  # fmt: skip
        for x, answer in zip(inputs, expected, strict=True):
            for session in (first, second, third):
                assert torch.equal(session(x), answer)


def test_a_session_that_is_closed_while_it_begins_is_ended(program, monkeypatch):
    x = network.steps(1)[0]
    with serving(program) as (server, settings), services.client(program, server.address, **settings) as client:
        session, begin = client.session(), client.begin

        def closing(*arguments):
            begun = begin(*arguments)
            session.close()
            return begun

        monkeypatch.setattr(client, "begin", closing)
        with pytest.raises(StateLost, match="the session was closed"):
            session(x)
        assert not client._open and session.steps == 0


def test_a_query_needs_a_session(program):
    x = network.steps(1)[0]
    with serving(program) as (server, settings), services.client(program, server.address, **settings) as client:
        with pytest.raises(ConfigError, match=r"client\.session\(\)"):
            client.query(x)
        one = services.query(program, server.address, x, **settings)
        assert torch.equal(one.outputs[0], network.plain(program, [x])[0])
        with pytest.raises(ConfigError, match=r"session\(\)"):
            services.remote_model(program, server.address, **settings)


# ---- when the state is gone
def test_a_server_that_goes_between_two_steps(program):
    inputs = network.steps(2)
    with (
        serving(program) as (server, settings),
        services.client(program, server.address, retries=5, **settings) as client,
    ):
        session = client.session()
        session(inputs[0])
        session._session._link.channels[0].close()
        for _ in range(2):
            with pytest.raises(StateLost, match=r"gone after 1 step\(s\)"):
                session(inputs[1])
        with client.session() as again:
            assert torch.equal(again(inputs[1]), network.plain(program, [inputs[1]])[0])


def test_a_server_that_goes_within_a_step(program, monkeypatch):
    inputs, running = network.steps(2), privml.service.session_worker._run

    def run(session, service, terms, progress):
        if service.program.held(session).steps == 1:
            raise PeerDisconnected("for this test")
        running(session, service, terms, progress)

    monkeypatch.setattr(privml.service.session_worker, "_run", run)
    with (
        serving(program) as (server, settings),
        services.client(program, server.address, retries=5, **settings) as client,
        client.session() as session,
    ):
        session(inputs[0])
        with pytest.raises(StateLost, match=r"gone after 1 step\(s\)"):
            session(inputs[1])
        assert len(server.answers(1)) == 1 and session.steps == 1


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_an_idle_session_says_that_its_state_is_gone(program, engine):
    x = network.steps(1)[0]
    with (
        serving(program, engine, limits=Limits(idle=0.2)) as (server, settings),
        services.client(program, server.address, retries=5, **settings) as client,
        client.session() as session,
    ):
        session(x)
        server.said("no query came within 0.2 seconds")
        time.sleep(0.3)
        with pytest.raises(StateLost, match=r"gone after 1 step\(s\): the server waits 0.2 seconds"):
            session(x)
        assert len(server.answers(1)) == 1


def test_a_session_has_only_so_many_steps(program):
    x = network.steps(1)[0]
    with (
        serving(program, limits=Limits(session_queries=2)) as (server, settings),
        services.client(program, server.address, **settings) as client,
        client.session() as session,
    ):
        session(x), session(x)
        with pytest.raises(StateLost, match="allows no further query"):
            session(x)


def test_an_idle_session_does_not_give_way(program):
    """Another client waits until the session ends."""
    inputs = network.steps(3)
    expected = network.plain(program, inputs)
    limits = Limits(capacity=Capacity(workers=1, queue=1))
    with (
        serving(program, limits=limits) as (server, settings),
        services.client(program, server.address, **settings) as client,
        services.client(program, server.address, **settings) as other,
    ):
        answers = []
        with client.session() as session:
            assert torch.equal(session(inputs[0]), expected[0])
            waiting = threading.Thread(target=lambda: answers.append(other.session()(inputs[0])))
            waiting.start()
            time.sleep(0.5)
            assert torch.equal(session(inputs[1]), expected[1]) and not answers
            with pytest.raises(ServiceBusy), services.client(program, server.address, **settings) as third:
                third.session()(inputs[0])
            assert torch.equal(session(inputs[2]), expected[2])
        waiting.join(20)
        assert torch.equal(answers[0], expected[0])


def test_weights_that_are_replaced_end_the_session(program, tmp_path):
    x, own = network.steps(1)[0], network.converted()
    own.save(tmp_path)
    with (
        serving(own) as (server, settings),
        services.client(program, server.address, **settings) as client,
        client.session() as session,
    ):
        session(x)
        own.load_weights(tmp_path / "weights.safetensors")
        with pytest.raises(StateLost, match=r"gone after 1 step\(s\)"):
            session(x)


def test_a_closed_session_and_a_closed_client(program):
    x = network.steps(1)[0]
    with serving(program) as (server, settings):
        client = services.client(program, server.address, **settings)
        one, two = client.session(), client.session()
        one(x), two(x)
        one.close()
        with pytest.raises(StateLost, match="was closed"):
            one(x)
        client.close()
        with pytest.raises(StateLost, match="was closed"):
            two(x)


def test_a_step_while_another_is_under_way(program):
    inputs, errors = network.steps(2), []
    with (
        serving(program) as (server, settings),
        services.client(program, server.address, **settings) as client,
        client.session() as session,
    ):

        def meanwhile(done, total, label):
            if not errors:
                try:
                    session(inputs[1])
                except ConfigError as error:
                    errors.append(str(error))

        first = session.step(inputs[0], progress=meanwhile)
        assert "one after another" in errors[0]
        expected = network.plain(program, inputs)
        assert torch.equal(first.outputs[0], expected[0]) and torch.equal(session(inputs[1]), expected[1])


def test_an_input_that_is_refused_leaves_the_state(program):
    inputs = network.steps(2)
    with (
        serving(program) as (server, settings),
        services.client(program, server.address, **settings) as client,
        client.session() as session,
    ):
        session(inputs[0])
        for bad in (torch.zeros(3, 4), torch.zeros(2, 5), torch.full((2, 4), float("nan")), [inputs[0]] * 2):
            with pytest.raises(InvalidInput):
                session(bad)
        assert torch.equal(session(inputs[1]), network.plain(program, inputs)[1])


# ---- a client that does not keep to it
def asked(steps=0, rows=2, width=5):
    return {"inputs": [[rows, 4]], "step": steps, "state": [[rows, width]]}


def test_a_step_out_of_order_is_refused(program):
    state = State(program.state, None)
    assert checked_shapes(asked(), program, LARGEST_QUERY, state) == ((2, 4), (2, 5))
    state.passed(2)
    assert checked_shapes(asked(1), program, LARGEST_QUERY, state) == ((2, 4), (2, 5))
    for wrong in (
        asked(0),
        asked(2),
        asked(True + 1),
        asked(1, width=6),
        {"inputs": [[2, 4]]},
        asked(None),
        asked(1, 3),
    ):
        with pytest.raises(InvalidInput):
            checked_shapes(wrong, program, LARGEST_QUERY, state)


def test_a_client_that_asks_for_another_step_gets_no_answer(program):
    inputs, own = network.steps(2), network.converted()
    with (
        serving(program) as (server, settings),
        services.client(own, server.address, **settings) as client,
        client.session() as session,
    ):
        session(inputs[0])
        client.program.held = lambda of: State(client.program.state, None)  # as if nothing had been asked
        try:
            with pytest.raises(InvalidInput, match="the session is at step 2") as caught:
                session(inputs[1])
        finally:
            del client.program.held
        assert any("state is gone" in note for note in caught.value.__notes__)
        with pytest.raises(StateLost):
            session(inputs[1])
        assert len(server.answers(1)) == 1


def test_another_program_with_the_same_shapes_is_refused(program):
    body = {**program.body, "state": [{"name": "g", "grows": None, "most": None}]}
    other = privml.Program(body)
    with (
        serving(program) as (server, settings),
        services.client(other, server.address, **settings) as client,
        pytest.raises(HandshakeMismatch),
    ):
        client.session()(network.steps(1)[0])


# ---- how much is kept
def test_a_server_keeps_no_more_than_its_limit(program):
    limits = Limits(capacity=Capacity(state_bytes=400))
    with (
        serving(program, limits=limits) as (server, settings),
        services.client(program, server.address, **settings) as client,
    ):
        with client.session() as session:
            assert session(network.steps(1)[0]).shape == (2, 2)  # 2 rows of 5 numbers of 32 bytes
        with client.session() as session, pytest.raises(InvalidInput, match=r"state h: 480 bytes.*state_bytes"):
            session(network.steps(1, rows=3)[0])
    with pytest.raises(ConfigError, match="state_bytes"):
        Capacity(state_bytes=-1)


def test_a_dealer_keeps_no_more_than_its_limit(program, monkeypatch):
    import privml.service.dealer as dealer

    monkeypatch.setattr(dealer, "DEALER_CAPACITY", Capacity(state_bytes=300))
    monkeypatch.setitem(dealer.deal.__kwdefaults__, "capacity", Capacity(state_bytes=300))
    with (
        serving(program, "threepc") as (server, settings),
        services.client(program, server.address, **settings) as client,
        client.session() as session,
        pytest.raises(InvalidInput, match="the dealer keeps at most 300"),
    ):
        session(network.steps(1)[0])


def test_what_sessions_with_one_name_keep_counts_together(program):
    from types import SimpleNamespace

    from privml.service.server import Server

    server = SimpleNamespace(_holding={}, _lock=threading.Lock(), _limits=Limits(capacity=Capacity(state_bytes=100)))
    server._service = SimpleNamespace(program=program)
    one, two, other, nameless = (_Request(name) for name in ("ann", "ann", "bob", ""))
    Server.hold(server, one, 60)
    Server.hold(server, one, 70)  # it has grown
    Server.hold(server, other, 100)
    Server.hold(server, nameless, 100)
    Server.hold(server, _Request(""), 100)
    with pytest.raises(InvalidInput, match=r"110 bytes in 2 session\(s\)"):
        Server.hold(server, two, 40)
    del server._holding[one]
    Server.hold(server, two, 40)


class _Request:
    def __init__(self, peer):
        self.peer = peer
