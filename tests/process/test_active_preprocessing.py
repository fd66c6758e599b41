# SPDX-License-Identifier: Apache-2.0
"""Actively secure queries on what was made ahead: each query of a store once, whole, under a key of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import services
import torch
from services import preprocess, serve
from small_network import converted
from store_pairs import (
    INPUT,
    LISTENS_NOT,
    altered,
    answer,
    assert_right,
    both,
    filled,
    killed_in_a_query,
    make,
    order,
)

from privml.engines.active.stores import numbers_of
from privml.engines.correlations import OtChoice
from privml.errors import (
    ConfigError,
    CorruptFile,
    HandshakeMismatch,
    PeerDisconnected,
    ProtocolError,
    SecurityAbort,
    StoreError,
)
from privml.service import server
from privml.service.negotiation import needed
from privml.session.preprocessing import Allotment, StoreHalf
from privml.spec import SessionSpec, engine
from privml.store.store import Store

MALICIOUS = OtChoice(security="malicious")
# Results of exact truncation are the same in every run.
ACTIVE = {"ring": 64, "truncation": "exact"}


@pytest.fixture(scope="module")
def program():
    return converted({"bits": 64, "narrow": False})


@pytest.fixture(scope="module")
def filling():
    return ACTIVE


def half(program, stores, rank, **options):
    return StoreHalf(stores / str(rank), rank, program.hash, f"{stores}/{rank}.key", **options)


def ask(program, ours, theirs, value=INPUT, **options):
    return answer(program, ours, theirs, value, **{**ACTIVE, **options})


def counted(snapshot):
    phases = (snapshot.setup, snapshot.preprocess, snapshot.online)
    return [(phase.sent, phase.received, phase.depth) for phase in phases]


def test_both_halves_are_made_at_the_predicted_cost(program, made):
    folder, outcomes = made
    demand = program.demand([(2, 4)], SessionSpec.of("active", **ACTIVE))
    for rank, outcome in enumerate(outcomes):
        with half(program, folder, rank) as ours:
            header = ours.store.header
            assert (header.engine, header.ring, header.security) == ("active", 64, "malicious")
            assert {kind.name: kind.count for kind in header.kinds} == {"key": 1, **numbers_of(demand)}
            assert ours.store.queries_left == 2
        on_disk = sum(path.stat().st_size for path in (Path(folder) / str(rank) / "chunks").iterdir())
        assert outcome.bytes == on_disk == sum(2 * (k.count * k.bytes + 40) for k in header.kinds)
        one = program.cost([(2, 4)], SessionSpec(engine("active", **ACTIVE), MALICIOUS), rank=rank).snapshot()
        (setup, made_ahead, _), (one_setup, one_ahead, _) = counted(outcome.cost), counted(one)
        assert setup == tuple(2 * count for count in one_setup)
        assert made_ahead == tuple(2 * count for count in one_ahead) and made_ahead[0] > 100_000


def test_queries_draw_from_the_store_and_make_nothing(program, stores):
    _, alone = ask(program, None, None, ot=OtChoice("ideal"))
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        for left in (1, 0):
            served, got = ask(program, ours, theirs)
            assert torch.equal(got.outputs[0], alone.outputs[0])
            for rank, each in ((0, served), (1, got)):
                predicted = program.cost([(2, 4)], SessionSpec.of("active", ot="ideal", **ACTIVE), rank=rank).snapshot()
                assert counted(each.ledger.snapshot()) == counted(predicted)
                assert predicted.preprocess.bytes == 0 and predicted.setup.sent == 32
                assert each.source.startswith("from store") and f"{left} queries left" in each.source
            assert ours.store.queries_left == theirs.store.queries_left == left
        served, got = ask(program, ours, theirs)
        assert "StoreError" in served and isinstance(got, StoreError) and "used up" in str(got)
    assert not list((stores / "0" / "chunks").iterdir()), "keys of used queries too"


def test_further_queries_of_a_client_get_sessions_of_their_own(program, stores):
    """The key is the query's."""
    served = []

    def client(address):
        with services.client(program, address, preprocessing=theirs, deadline=20.0, **ACTIVE) as asking:
            return [asking.query(INPUT) for _ in range(2)]

    def server(told):
        return serve(
            program, "127.0.0.1:0", preprocessing=ours, queries=2, on_listening=told, on_answer=served.append,
            log=lambda text: None, **ACTIVE,
        )  # fmt: skip

    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        number, answers = both(server, client)
        assert number == 2 and ours.store.queries_left == theirs.store.queries_left == 0
    predicted = program.cost([(2, 4)], SessionSpec.of("active", ot="ideal", **ACTIVE)).snapshot()
    for got in answers:
        assert_right(got.outputs)
        assert got.turn == 1 and counted(got.ledger.snapshot()) == counted(predicted)


def test_each_query_has_a_key_and_correlations_of_its_own(program, made):
    for rank in (0, 1):
        with half(program, made[0], rank) as ours:
            header, seen = ours.store.header, {}
            for kind, each in enumerate(header.kinds):
                for chunk in range(header.chunks(kind)):
                    sealed = (made[0] / str(rank) / "chunks" / f"{kind}-{chunk:08d}").read_bytes()
                    plain = ours.store.seal.open(sealed, header.chunk_context(kind, chunk))
                    seen.setdefault(each.name, []).append(plain)
            for name, contents in seen.items():
                assert len(contents) == len(set(contents)) >= 2, name


def test_a_store_and_a_seed_contradict_each_other(program, stores):
    seeded = replace(SessionSpec.of("active", **ACTIVE), test_seed=7)
    with half(program, stores, 0) as ours, pytest.raises(ConfigError, match="test_seed=7"):
        server.serve(program, "127.0.0.1:0", seeded, preprocessing=ours, hooks=LISTENS_NOT)


def test_what_does_not_suffice_is_made_where_that_is_allowed(program, stores):
    large = INPUT.repeat(3, 1)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        _, got = ask(program, ours, theirs, large)
        assert isinstance(got, StoreError) and "2 input(s)" in str(got)
        _, got = ask(program, ours, theirs, INPUT[:1])
        assert_right(got.outputs, INPUT[:1])
        assert got.source.startswith("from store") and "1 queries left" in got.source
    with (
        half(program, stores, 0, when_empty="make") as ours,
        half(program, stores, 1, when_empty="make") as theirs,
    ):
        served, got = ask(program, ours, theirs, large)
        assert_right(got.outputs, large)
        assert got.source.startswith("made by") and served.source.startswith("made by")
        assert got.ledger.snapshot().preprocess.bytes > 0 and ours.store.queries_left == 1


@pytest.mark.parametrize("deadly", ["server", "client"])
def test_killed_in_a_query_nothing_is_used_twice(program, stores, start, program_folder, deadly):
    killed_in_a_query(start, program_folder, stores, deadly, **ACTIVE)
    for rank in (0, 1):
        with Store(stores / str(rank), f"{stores}/{rank}.key") as store:
            assert store.queries_left == 0 and set(store.left()) == {0} and store.notes == []


@pytest.mark.parametrize("kind", [0, 3])
def test_an_altered_chunk_ends_the_query_before_anything_is_sent_with_it(program, stores, kind):
    altered(stores / "1", kind, 30)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        served, got = ask(program, ours, theirs)
        assert "PeerDisconnected" in served and isinstance(got, CorruptFile) and "does not open" in str(got)
        _, got = ask(program, ours, theirs)
        assert_right(got.outputs)
        assert ours.store.queries_left == theirs.store.queries_left == 0


def test_halves_that_stand_at_different_queries_go_on_from_the_later(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        list(ours.store.take_query(0))
        _, got = ask(program, ours, theirs)
        assert_right(got.outputs)
        assert ours.store.queries_left == theirs.store.queries_left == 0


def test_a_peer_that_names_no_position_is_refused(program, stores):
    need, kinds = needed(program, [(2, 4)], SessionSpec.of("active", **ACTIVE)), None
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        kinds = len(ours.store.header.kinds)
        for position in (None, [0], [0] * (kinds + 1), [-1] * kinds, [9] * kinds, ["0"] * kinds, [True] * kinds):
            with pytest.raises(ProtocolError, match="no position"):
                ours.allot({"position": position}, need)
            if position is not None:
                with pytest.raises(ProtocolError, match="no position"):
                    theirs.claim(position, need)
        begun = [1, *[0] * (kinds - 1)]
        with pytest.raises(ProtocolError, match="does not have"):
            theirs.claim(begun, need)
        with pytest.raises(ProtocolError, match="does not have"):
            theirs.claim(list(theirs.store.header.query_start(2)), need)
        with pytest.raises(StoreError, match="further ahead than a session can explain"):
            ours.allot({"position": list(ours.store.header.query_start(2))}, need)
        assert ours.store.queries_left == 2, "nothing was used"
        allotment = ours.allot({"position": begun}, need)
        assert allotment.start == ours.store.header.query_start(1), "a query that was begun is used"
        assert theirs.claim(list(allotment.start), need).start == allotment.start
        with pytest.raises(ProtocolError, match="does not have"):
            theirs.claim(list(allotment.start), need)


def test_a_peer_that_takes_another_query_than_was_allotted_is_caught(program, stores, monkeypatch):
    take = StoreHalf.open

    def take_another(self, channels, rank, spec, allotment, need):
        if rank == 1:
            allotment = Allotment(allotment.start, self.store.take_query(1))
        return take(self, channels, rank, spec, allotment, need)

    monkeypatch.setattr(StoreHalf, "open", take_another)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        served, got = ask(program, ours, theirs)
        assert isinstance(got, (SecurityAbort, PeerDisconnected))
        assert "SecurityAbort" in served or isinstance(got, SecurityAbort)


def test_stores_of_two_pairs_do_not_fit(program, stores, tmp_path):
    filled(program, tmp_path / "other", count=1, **ACTIVE)
    with half(program, stores, 0) as ours, half(program, tmp_path / "other", 1) as theirs:
        served, got = ask(program, ours, theirs)
        assert "HandshakeMismatch" in served and isinstance(got, HandshakeMismatch) and "store is" in str(got)
        _, got = ask(program, ours, None)
        assert isinstance(got, HandshakeMismatch) and "store is None" in str(got)
        assert ours.store.queries_left == 2, "nothing was used"


def test_a_half_is_for_its_engine_and_ring(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        for options, why in (({}, "engine=twopc"), ({"ring": 32}, "engine.ring=64, not for 32")):
            server, _ = answer(program, ours, theirs, **options)
            assert isinstance(server, ConfigError) and why in str(server)


def test_both_must_order_the_same(program, tmp_path):
    def client(address):
        return preprocess(order(program, tmp_path / "1", ring=64), server=address, deadline=20.0)

    server, client = make(program, tmp_path, client, **ACTIVE)
    assert isinstance(server, HandshakeMismatch) and "truncation is 'exact' here" in str(server)
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()


def test_the_small_ring_and_other_transfers(tmp_path):
    small = converted({"bits": 32, "scale": 10, "narrow": False})
    filled(small, tmp_path, count=1, ring=32, ot=OtChoice(k=3))
    with half(small, tmp_path, 0) as ours, half(small, tmp_path, 1) as theirs:
        assert ours.ot == OtChoice(k=3, security="malicious")
        _, got = answer(small, ours, theirs, ring=32)
        assert_right(got.outputs)
        assert got.ledger.snapshot().preprocess.bytes == 0
