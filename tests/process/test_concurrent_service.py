# SPDX-License-Identifier: Apache-2.0
"""Many clients at once: each gets its answer, none holds up another one, and who finds no room is told so."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import services
from running import IDEAL, LONG, Paused, Running, assert_right, connect, value
from services import deal, query, serve

from privml import Tls
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected, ServiceBusy
from privml.service.certificates import issue, make_authority
from privml.service.options import Capacity


# ---- answers
def test_many_clients_at_once_get_their_own_answers(server, ask):
    values = [value(seed) for seed in range(6)]
    with server(ot=OtChoice(), capacity=Capacity(workers=3)) as running:
        begin = threading.Barrier(len(values))

        def client(each):
            begin.wait(LONG)
            return ask(running, each, ot=OtChoice())

        with ThreadPoolExecutor(len(values)) as executor:
            answers = list(executor.map(client, values))
        for answer, each in zip(answers, values, strict=True):
            assert_right(answer, each)
        running.wait("ended", len(values))
        assert sorted(event.fields["number"] for event in running.kinds("answered")) == list(range(1, 7))
        names = [event.session for event in running.kinds("started")]
        assert len(set(names)) == len(values) and all(len(name) == 12 for name in names)


def test_a_client_in_the_midst_of_its_query_holds_up_nobody(server, ask, pause):
    with server(capacity=Capacity(workers=2)) as running:
        slow = pause(running, value(0)).there()
        for seed in (1, 2):
            assert_right(ask(running, value(seed)), value(seed))
        assert_right(slow.go(), value(0))
        assert running.lines[1].startswith("query 1: ")


@pytest.mark.parametrize("threads", [2, 3])
def test_further_connections_find_their_sessions(server, ask, pause, threads):
    with server(threads=threads, capacity=Capacity(workers=3)) as running:
        slow = [pause(running, value(seed), threads=threads) for seed in range(2)]
        for each in slow:
            each.there()
        assert_right(ask(running, value(2), threads=threads), value(2))
        for seed, each in enumerate(slow):
            assert_right(each.go(), value(seed))


def test_a_client_that_leaves_ends_its_session_alone(server, ask, pause):
    def leave(done, total, label):
        raise KeyError(label)

    making = {"ot": OtChoice()}
    with server(capacity=Capacity(workers=2), **making) as running:
        slow = pause(running, value(0), **making).there()
        with pytest.raises(KeyError):
            ask(running, value(1), progress=leave, **making)
        failed = running.wait("failed")
        assert failed.fields["error"] == "PeerDisconnected" and failed.fields["result"] == "failed"
        assert failed.fields["phases"]["setup"]["sent"] > 0
        assert_right(slow.go(), value(0))


# ---- no room
def test_a_full_server_says_when_to_come_again(server, ask, pause):
    with server(capacity=Capacity(workers=1, queue=1)) as running:
        first = pause(running, value(0)).there()
        second = pause(running, value(1))
        running.wait("queued", 2)
        with pytest.raises(ServiceBusy, match="retry in") as busy:
            ask(running, value(2))
        assert 1.0 <= busy.value.retry_after <= 300.0
        told = running.wait("refused", reason="busy")
        assert "ServiceBusy" in told.text and "a connection ended without an answer" in running.lines[-1]
        assert_right(first.go(), value(0))
        assert_right(second.there().go(), value(1))
        assert_right(ask(running, value(2)), value(2))


def test_without_a_queue_only_those_come_in_who_are_served_at_once(server, ask, pause):
    with server(capacity=Capacity(workers=1, queue=0)) as running:
        first = pause(running, value(0)).there()
        with pytest.raises(ServiceBusy):
            ask(running, value(1))
        assert_right(first.go(), value(0))
        running.wait("ended")


def test_a_full_server_refuses_further_clients(server, ask, pause):
    with server(capacity=Capacity(workers=1, queue=0)) as running:
        first = pause(running, value(0)).there()
        with pytest.raises(HandshakeMismatch, match="ot is 'softspoken' here"):
            ask(running, value(1), ot=OtChoice(), deadline=20.0)
        running.wait("refused", reason="mismatch")
        assert_right(first.go(), value(0))


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"queue": -1}, {"half_open": 0}, {"workers": 1.5}, {"drain_seconds": float("nan")}],
    ids=str,
)
def test_impossible_capacities(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Capacity(**wrong)


# ---- sessions of several queries
def test_an_idle_session_gives_way(server, program):
    """One thread, and three clients who keep their sessions: each is answered, twice."""
    with server(capacity=Capacity(workers=1, queue=1)) as running:
        clients = [services.client(program, running.address, ot=IDEAL) for _ in range(3)]
        with clients[0], clients[1], clients[2]:
            for _ in range(2):
                for seed, client in enumerate(clients):
                    assert_right(client.query(value(seed)), value(seed))
        assert [running.wait("ended", n).fields["why"] for n in range(1, 6)] == [
            "it was idle and another session needed its place"
        ] * 5


def test_draining_ends_idle_sessions(server, program):
    with server(capacity=Capacity(workers=2)) as running, services.client(program, running.address, ot=IDEAL) as client:
        assert_right(client.query(value(0)), value(0))
        running.stop.ask()
        assert running.result() == 1 and running.stop.cut == 0
        with pytest.raises(PeerDisconnected):
            services.client(program, running.address, ot=IDEAL, deadline=0.1).query(value(0))


# ---- the end
def test_draining_lets_what_is_under_way_finish(server, ask, pause):
    with server(capacity=Capacity(workers=1, queue=2)) as running:
        first = pause(running, value(0)).there()
        waiting = pause(running, value(1))
        running.wait("queued", 2)
        running.stop.ask()
        assert running.wait("draining").fields == {"running": 1, "waiting": 1}
        assert isinstance(waiting.outcome(), ServiceBusy)
        with pytest.raises(ServiceBusy):
            ask(running, value(2))
        assert_right(first.go(), value(0))
        assert running.result() == 1
    assert running.stop.cut == 0 and running.lines[0].startswith("listening")
    assert any(line.startswith("ending: 1 running session(s) have 30 seconds") for line in running.lines)


@pytest.mark.parametrize("asked", [1, 2])
def test_what_does_not_finish_in_time_is_cut_off(server, pause, asked):
    drain = {1: 0.05, 2: LONG}[asked]  # once: the time is over; twice: nobody waits
    with server(capacity=Capacity(workers=2, drain_seconds=drain)) as running:
        paused = [pause(running, value(seed)).there() for seed in range(2)]
        for _ in range(asked):
            running.stop.ask(15)
        assert running.result() == 0
        assert running.stop.cut == 2 and running.stop.exit_code == {1: 1, 2: 143}[asked]
        for each in paused:
            assert isinstance(each.go(), PeerDisconnected)


def test_an_idle_server_ends_at_once_with_half_open_callers(server):
    with server(capacity=Capacity(hello_seconds=LONG)) as running, connect(running) as silent:
        running.stop.ask()
        assert running.result() == 0 and running.stop.exit_code == 0
        with contextlib.suppress(ConnectionError):  # it may never have been let in
            assert silent.recv(1) == b""


def test_it_ends_after_so_many_answers(server, ask):
    with server(queries=2, capacity=Capacity(workers=2)) as running:
        for seed in range(2):
            assert_right(ask(running, value(seed)), value(seed))
        assert running.result() == 2


def test_what_a_callback_raises_ends_the_service(server, ask):
    def fail(answered):
        raise StopIteration(answered.number)

    with server(on_answer=fail) as running:
        assert_right(ask(running, value(0)), value(0))
        with pytest.raises(StopIteration):
            running.result()


def test_nothing_is_left_behind(server, ask):
    with server() as running:
        assert_right(ask(running, value(0)), value(0))
    before = threading.active_count()
    for _ in range(2):
        with server(threads=2, capacity=Capacity(workers=3)) as running:
            assert_right(ask(running, value(0), threads=2), value(0))
    assert threading.active_count() <= before


# ---- names
@pytest.fixture
def tls(tmp_path):
    """Certificates of hospital-a, which serves, and of lab-b and lab-c, which ask."""
    make_authority(tmp_path)

    def of(name):
        files = tmp_path / "authority.pem", tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        return Tls(*files, {1: ["lab-b", "lab-c"]} if name == "hospital-a" else {0: "hospital-a"})

    for each in ("hospital-a", "lab-b", "lab-c"):
        issue(tmp_path, each)
    return of


def test_clients_are_known_by_their_certificates(program, tls):
    options = {"tls": tls("hospital-a"), "threads": 2, "capacity": Capacity(workers=2)}
    with Running(partial(serve, program, "127.0.0.1:0"), **options) as running, connect(running):
        clients = [
            Paused(program, running.address, value(seed), threads=2, tls=tls(name)).there()
            for seed, name in enumerate(("lab-b", "lab-c"))
        ]
        assert {event.fields["peer"] for event in running.kinds("started")} == {"lab-b", "lab-c"}
        for seed, client in enumerate(clients):
            assert_right(client.go(), value(seed))


@pytest.fixture
def one_each(program, tls):
    """A server that has room for three sessions, and for one of each name."""
    options = {"tls": tls("hospital-a"), "ot": IDEAL, "capacity": Capacity(workers=3, sessions_per_name=1)}
    return Running(partial(serve, program, "127.0.0.1:0"), **options)


def test_a_client_with_all_its_sessions_is_refused_as_busy(one_each, program, tls):
    with one_each as running:
        settings = {"ot": IDEAL, "tls": tls("lab-b")}
        slow = Paused(program, running.address, value(0), **settings).there()
        with pytest.raises(ServiceBusy):
            query(program, running.address, value(1), **settings)
        assert_right(query(program, running.address, value(2), ot=IDEAL, tls=tls("lab-c")), value(2))
        assert_right(slow.go(), value(0))
        assert_right(query(program, running.address, value(1), **settings), value(1))


def test_an_idle_session_gives_way_to_the_next_one_of_its_name(one_each, program, tls):
    settings = {"ot": IDEAL, "tls": tls("lab-b")}
    with (
        one_each as running,
        services.client(program, running.address, **settings) as first,
        services.client(program, running.address, **settings) as second,
        services.client(program, running.address, ot=IDEAL, tls=tls("lab-c")) as other,
    ):
        for seed, client in enumerate((first, other, second, first, other)):
            assert_right(client.query(value(seed)), value(seed))
        assert [event.fields["peer"] for event in running.kinds("started")] == ["lab-b", "lab-c", "lab-b", "lab-b"]


# ---- three parties
@pytest.fixture
def dealer(program):
    return lambda **options: Running(partial(deal, program, "127.0.0.1:0"), **options)


@pytest.fixture
def three(dealer, server):
    """A dealer and a server that knows it."""

    @contextlib.contextmanager
    def begun(**capacity):
        with (
            dealer(capacity=Capacity(**capacity)) as dealing,
            server(dealer=dealing.address, capacity=Capacity(workers=2)) as running,
        ):
            yield dealing, running, {"dealer": dealing.address}

    return begun


def test_a_dealer_serves_sessions_beside_each_other(three, ask, pause):
    with (
        three(workers=2, half_open=8, hello_seconds=LONG) as (dealing, running, place),
        connect(dealing),
        connect(dealing),
    ):
        slow = pause(running, value(0), **place).there()
        assert_right(ask(running, value(1), **place), value(1))
        assert_right(slow.go(), value(0))


def test_a_dealer_without_room_says_so_to_both_parties(three, ask, pause):
    with three(workers=1, queue=0) as (dealing, running, place):
        slow = pause(running, value(0), **place).there()
        with pytest.raises(ServiceBusy):
            ask(running, value(1), **place)
        assert "ServiceBusy" in running.wait("failed").text
        dealing.wait("refused", reason="busy")
        assert_right(slow.go(), value(0))


def test_a_dealer_drains(three, ask, pause):
    with three(workers=2) as (dealing, running, place):
        slow = pause(running, value(0), **place).there()
        dealing.stop.ask()
        dealing.wait("draining")
        with pytest.raises(ServiceBusy):
            ask(running, value(1), **place)
        assert_right(slow.go(), value(0))
        assert dealing.result() == 1 and dealing.stop.cut == 0
