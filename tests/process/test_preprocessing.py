# SPDX-License-Identifier: Apache-2.0
"""Preprocessing into stores at both parties, and queries that draw from them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from running import Running
from services import preprocess, query, serve
from small_network import Net
from store_pairs import INPUT, LISTENS_NOT, altered, answer, assert_right, filled, killed_in_a_query, make, order

from privml import Client
from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.engines.twopc.stores import TwoPartyStores
from privml.errors import (
    ConfigError,
    HandshakeMismatch,
    InvalidInput,
    PeerDisconnected,
    PrivmlError,
    ProgramsDiffer,
    ProtocolError,
    StoreError,
)
from privml.service import server, session_worker
from privml.service.negotiation import needed
from privml.service.options import Capacity
from privml.session.preprocessing import StoreHalf
from privml.spec import LinkProfile, SessionSpec, engine
from privml.store.store import Store


def half(program, stores, rank, **options):
    return StoreHalf(stores / str(rank), rank, program.hash, f"{stores}/{rank}.key", **options)


def test_both_halves_are_made_and_fit(program, made):
    folder, outcomes = made
    drawn = program.correlations([(2, 4)])
    for rank, outcome in enumerate(outcomes):
        with half(program, folder, rank) as preprocessing:
            header = preprocessing.store.header
            assert header.per_query == drawn.directions and header.engine == "twopc"
            assert preprocessing.store.left() == (2 * drawn.from0, 2 * drawn.from1)
            assert preprocessing.store.queries_left == 2 and header.rank == rank
            assert preprocessing.ot == OtChoice()
        on_disk = sum(path.stat().st_size for path in (Path(folder) / str(rank) / "chunks").iterdir())
        assert outcome.bytes == on_disk == 16 * 2 * drawn.total + 40 * 4
        assert outcome.cost.preprocess.sent > 0
    assert outcomes[0].header.store == outcomes[1].header.store
    assert outcomes[0].header.salt != outcomes[1].header.salt


def test_queries_draw_from_the_store_and_make_nothing(program, stores):
    drawn = program.correlations([(2, 4)])
    online = program.cost([(2, 4)], rank=1).snapshot().online
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        for left in (1, 0):
            served, got = answer(program, ours, theirs)
            assert_right(got.outputs)
            for rank, each in ((0, served), (1, got)):
                cost = each.ledger.snapshot()
                assert cost.preprocess.bytes == cost.preprocess.depth == 0
                assert (cost.cots_as_sender, cost.cots_as_receiver) == drawn.roles(rank)
                assert cost.setup.sent == 64, "no base transfers"
                assert each.source.startswith("from store") and f"{left} queries left" in each.source
            assert (got.ledger.snapshot().online.sent, got.ledger.snapshot().online.received) == (
                online.sent,
                online.received,
            )
            assert ours.store.left() == theirs.store.left() == (left * drawn.from0, left * drawn.from1)
        served, got = answer(program, ours, theirs)
        assert "StoreError" in served and isinstance(got, StoreError) and "privml preprocess" in str(got)


def test_what_does_not_suffice_is_made_where_that_is_allowed(program, stores):
    with (
        half(program, stores, 0, when_empty="make") as ours,
        half(program, stores, 1, when_empty="make") as theirs,
    ):
        large = INPUT.repeat(10, 1)
        served, got = answer(program, ours, theirs, large)
        assert_right(got.outputs, large)
        assert got.source.startswith("made by softspoken k=4, since too little") and "2 queries left" in got.source
        assert got.ledger.snapshot().preprocess.bytes > 0
        served, got = answer(program, ours, theirs, INPUT[:1])
        assert_right(got.outputs, INPUT[:1])
        assert served.source.startswith("from store"), "what is left serves smaller queries"


def test_lanes_share_a_store(program, tmp_path):
    drawn = program.correlations([(2, 4)], SessionSpec(threads=2))
    assert len(drawn.lanes) == 2
    filled(program, tmp_path, threads=2)
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        _, got = answer(program, ours, theirs, threads=2)
        assert_right(got.outputs)
        assert got.ledger.snapshot().preprocess.bytes == 0
        assert ours.store.left() == drawn.directions


@pytest.mark.parametrize("ot", [OtChoice("silent"), OtChoice(k=3, security="malicious")], ids=str)
def test_other_transfers(program, tmp_path, ot):
    filled(program, tmp_path, ot=ot)
    drawn = program.correlations([(2, 4)], SessionSpec(ot=ot))
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        assert ours.ot == theirs.ot == ot
        for left in (1, 0):
            _, got = answer(program, ours, theirs, ot=ot)
            assert_right(got.outputs)
            cost = got.ledger.snapshot()
            assert (cost.cots_as_sender, cost.cots_as_receiver) == drawn.roles(1) and cost.preprocess.bytes == 0
            assert ours.store.left() == (left * drawn.from0, left * drawn.from1)


def test_a_store_is_as_secure_as_demanded(program, stores):
    malicious = OtChoice(security="malicious")
    with half(program, stores, 0) as ours, pytest.raises(ConfigError, match="semi_honest"):
        serve(program, "127.0.0.1:0", ot=malicious, preprocessing=ours)
    with half(program, stores, 1) as theirs, pytest.raises(ConfigError, match="semi_honest"):
        query(program, "127.0.0.1:1", INPUT, ot=malicious, preprocessing=theirs)


@pytest.mark.parametrize("spec,words", [
    (SessionSpec(test_seed=7), "test_seed=7"), (SessionSpec(ot=OtChoice("ideal")), "ot=ideal"),
])  # fmt: skip
def test_a_store_and_what_gives_no_security_contradict_each_other(program, stores, spec, words):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        with pytest.raises(ConfigError, match=words):
            server.serve(program, "127.0.0.1:0", spec, preprocessing=ours, hooks=LISTENS_NOT)
        with pytest.raises(ConfigError, match=words):
            Client(program, "127.0.0.1:1", spec, preprocessing=theirs)


def test_what_was_allotted_is_drawn_to_the_last_transfer(program, stores, monkeypatch):
    """Both parties have a build that reckons with one transfer more than it draws."""
    need, opened = TwoPartyStores.need, []

    def one_more(self, *args):
        right = need(self, *args)
        drawn = replace(right.drawn, from0=right.drawn.from0 + 1)
        return replace(right, counts={**right.counts, "from 0": drawn.from0}, drawn=drawn)

    monkeypatch.setattr(TwoPartyStores, "need", one_more)
    monkeypatch.setattr(session_worker, "reveal", lambda *args, **options: opened.append(args))
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        served, got = answer(program, ours, theirs)
    assert "not drawn all" in served and isinstance(got, (ProtocolError, PeerDisconnected)) and not opened


def test_parties_that_have_drawn_differently_open_nothing(program, stores, monkeypatch):
    settled = TwoPartyStores.settled
    monkeypatch.setattr(TwoPartyStores, "settled", lambda self, engine: (*settled(self, engine), engine.rank))
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        _, got = answer(program, ours, theirs)
    assert isinstance(got, ProgramsDiffer) and "what it has drawn from the store" in str(got)


def test_a_session_that_was_allotted_too_little_ends(program, stores, monkeypatch):
    open_ = TwoPartyStores.open

    def one_less(self, channels, rank, spec, stock, right):
        drawn = replace(right.drawn, from0=right.drawn.from0 - (rank == 0))
        return open_(self, channels, rank, spec, stock, replace(right, drawn=drawn))

    monkeypatch.setattr(TwoPartyStores, "open", one_less)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        served, got = answer(program, ours, theirs)
    assert "from the store are used up" in served and isinstance(got, PeerDisconnected)


def test_stores_of_two_pairs_do_not_fit(program, stores, tmp_path):
    filled(program, tmp_path / "other")
    with half(program, stores, 0) as ours, half(program, tmp_path / "other", 1) as theirs:
        served, got = answer(program, ours, theirs)
        assert "HandshakeMismatch" in served and isinstance(got, HandshakeMismatch) and "store is" in str(got)
        served, got = answer(program, ours, None)
        assert isinstance(got, HandshakeMismatch) and "store is None" in str(got)
        assert ours.store.queries_left == 2, "nothing was used"
    with half(program, stores, 0) as ours, half(program, stores, 1, when_empty="make") as theirs:
        _, got = answer(program, ours, theirs)
        assert isinstance(got, HandshakeMismatch) and "when_empty" in str(got)


def test_a_half_is_for_its_party_and_program(program, stores):
    with pytest.raises(ConfigError, match="half of party 0"):
        StoreHalf(stores / "0", 1, program.hash, f"{stores}/0.key")
    with pytest.raises(ConfigError, match="made for program"):
        StoreHalf(stores / "0", 0, "f" * 64, f"{stores}/0.key")
    with pytest.raises(ConfigError, match="when_empty"):
        half(program, stores, 0, when_empty="panic")
    half(program, stores, 0).close()  # what failed holds no lock


def test_parties_that_stand_at_different_places_go_on_from_the_later(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        for _ in ours.store.take(ours.store.header.per_query, ours.store.position):
            pass
        served, got = answer(program, ours, theirs)
        assert_right(got.outputs)
        assert ours.store.left() == theirs.store.left() == (0, 0)


def test_sessions_beside_each_other_share_a_store(program, tmp_path):
    """Eight threads of one client draw from both halves at once; each correlation serves one session."""
    queries = 8
    filled(program, tmp_path, count=queries)
    values = [INPUT * (number + 1) / queries for number in range(queries)]
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        drawn = [_recorded(each) for each in (ours, theirs)]
        serving = partial(serve, program, "127.0.0.1:0", preprocessing=ours)
        with Running(serving, capacity=Capacity(workers=4)) as running, ThreadPoolExecutor(queries) as executor:
            ask = partial(query, program, running.address, preprocessing=theirs)
            for value, answer in zip(values, executor.map(ask, values), strict=True):
                assert_right(answer.outputs, value)
                assert answer.ledger.snapshot().preprocess.bytes == 0
            with pytest.raises(StoreError, match="does not suffice"):
                ask(INPUT)
            assert "StoreError" in running.wait("failed").text
        assert ours.store.left() == theirs.store.left() == (0, 0)
    for chunks in drawn:
        assert len(chunks) == len(set(chunks)) == 2 * queries, "each chunk once"
    assert sorted(drawn[0]) == sorted(drawn[1])


def _recorded(half):
    """The chunks that a half hands out from here on."""
    chunks, hand_out = [], half.store._hand_out

    def record(wanted):
        chunks.extend(wanted)
        return hand_out(wanted)

    half.store._hand_out = record
    return chunks


@pytest.mark.parametrize("deadly", ["server", "client"])
def test_killed_in_a_query_nothing_is_used_twice(program, stores, start, program_folder, deadly):
    killed_in_a_query(start, program_folder, stores, deadly)
    for rank in (0, 1):
        with Store(stores / str(rank), f"{stores}/{rank}.key") as store:
            assert store.left() == (0, 0) and store.notes == []


def test_an_altered_chunk_ends_the_query_and_not_the_server(program, stores):
    altered(stores / "1", 0, 100)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        served, got = answer(program, ours, theirs)
        assert "PeerDisconnected" in served and "does not open" in str(got)
        _, got = answer(program, ours, theirs)
        assert_right(got.outputs)


def test_a_peer_that_names_no_position_is_refused(program, stores, start):
    with half(program, stores, 0) as ours:
        need = needed(program, [(2, 4)], SessionSpec())
        for position in (None, [0], [0, -1], [0, 99], ["0", "0"], [0, True]):
            with pytest.raises(PrivmlError, match="no position"):
                ours.allot({"position": position}, need)
        assert ours.store.queries_left == 2, "nothing was used"
        assert ours.allot({"position": [1, 0]}, need).start == (1, 0)


def test_a_client_cannot_use_up_its_servers_half_by_a_word(program, tmp_path):
    for outcome in make(program, tmp_path, count=4):
        assert not isinstance(outcome, Exception), outcome
    need = needed(program, [(2, 4)], SessionSpec())
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        for place in ([2, 0], [0, 2], [3, 3], [4, 4]):
            with pytest.raises(StoreError, match="further ahead than a session can explain"):
                ours.allot({"position": place}, need)
        assert ours.store.queries_left == 4, "nothing was used"
        for _ in theirs.store.take_query(2):  # and what is before it
            pass
        served, got = answer(program, ours, theirs)
        assert "StoreError" in served and isinstance(got, StoreError) and "further ahead" in str(got)
        assert str(tmp_path) not in str(got) and ours.store.queries_left == 4
        assert ours.allot({"position": [1, 1]}, need).start == (1, 1), "what one session takes may be lost"
        assert ours.store.queries_left == 2


def test_a_larger_query_may_be_lost_as_a_whole(program, tmp_path):
    for outcome in make(program, tmp_path, count=6):
        assert not isinstance(outcome, Exception), outcome
    with half(program, tmp_path, 0) as ours:
        large = needed(program, [(4, 4)], SessionSpec())
        assert ours.allot({"position": [2, 2]}, large).start == (2, 2)


def test_a_server_that_allots_what_cannot_be_is_refused(program, stores):
    with half(program, stores, 1) as theirs:
        need = needed(program, [(2, 4)], SessionSpec())
        assert theirs.claim([1, 0], need).start == (1, 0)
        for start in (7, [0, 0], [2, 0], [2, 1, 1], [2, 99], [2.0, 1], "21", [True, 1]):
            with pytest.raises(ProtocolError):
                theirs.claim(start, need)
        assert theirs.store.position == (2, 1)
        assert theirs.claim(None, need) is None


def test_both_must_order_the_same(program, tmp_path):
    def client(address):
        return preprocess(order(program, tmp_path / "1", count=3), server=address, deadline=20.0)

    server, client = make(program, tmp_path, client)
    assert isinstance(server, HandshakeMismatch) and "queries is 2 here and 3" in str(server)
    assert isinstance(client, HandshakeMismatch) and "queries is 3 here and 2" in str(client)
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()


def test_a_peer_that_leaves_leaves_no_half_store(program, tmp_path):
    class Gone(PrivmlError):
        pass

    def leave(done, total, label):
        if done == 1:
            raise Gone

    def client(address):
        return preprocess(order(program, tmp_path / "1"), server=address, deadline=20.0, progress=leave)

    server, client = make(program, tmp_path, client)
    assert isinstance(client, Gone) and isinstance(server, PeerDisconnected)
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()


@pytest.mark.parametrize(
    "fields, sides, message",
    [
        ({}, {}, "one of listen"),
        ({}, {"listen": "127.0.0.1:0", "server": "127.0.0.1:1"}, "one of listen"),
        ({"ot": OtChoice("ideal")}, {"listen": "127.0.0.1:0"}, "ideal"),
        ({"count": 1 << 40}, {"listen": "127.0.0.1:0"}, "needs"),
    ],
)
def test_refused_before_anything_is_sent(program, tmp_path, fields, sides, message):
    with pytest.raises(PrivmlError, match=message):
        preprocess(order(program, tmp_path / "0", **fields), **sides)
    assert not (tmp_path / "0").exists()


def test_a_refusing_server_tells_why(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        bad = torch.zeros(2, 5)
        with pytest.raises(InvalidInput, match="shape"):
            query(program, "127.0.0.1:1", bad, preprocessing=theirs)
        assert ours.store.queries_left == theirs.store.queries_left == 2


def test_queries_over_a_slow_link_take_as_few_messages_as_are_predicted(tmp_path):
    """Of many elements, on chunks whose length the link decides, which both halves name."""
    rows, link = 128, LinkProfile(40.0)
    program = convert(Net(hidden=600).eval(), calibration=torch.randn(16, 4))
    filled(program, tmp_path, count=1, batch=rows, linear="ot", link_profile=link)
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        served, _ = answer(program, ours, theirs, torch.randn(rows, 4), linear="ot", link_profile=link)
    spec = SessionSpec(engine("twopc", linear="ot"), link=link)
    predicted = program.cost([(rows, 4)], spec, rank=0).snapshot().online
    near = program.cost([(rows, 4)], replace(spec, link=LinkProfile()), rank=0).snapshot().online
    online = served.ledger.snapshot().online
    assert online.depth == predicted.depth < near.depth and online.bytes == predicted.bytes
