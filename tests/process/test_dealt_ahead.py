# SPDX-License-Identifier: Apache-2.0
"""Queries on what a dealer has dealt ahead: each entry once, whole, and no dealer beside the query."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import services
import torch
from dealt_stores import COUNT, SPEC, THREE, ask, clear, counted, filled, half, make
from services import preprocess, serve
from small_network import converted
from store_pairs import INPUT, LISTENS_NOT, altered, assert_right, both, copied, killed_in_a_query, order

import privml
from privml.engines.threepc import stored
from privml.engines.threepc import stores as kinds
from privml.errors import (
    ConfigError,
    CorruptFile,
    InvalidInput,
    PeerDisconnected,
    PrivmlError,
    ProtocolError,
    StoreError,
)
from privml.program import Program
from privml.service import server, session_worker
from privml.service.negotiation import needed, settings_of
from privml.session.connections import reach
from privml.session.handshake import _read, _write, message_of
from privml.session.preprocessing import Allotment, StoreHalf
from privml.spec import SessionSpec
from privml.store.store import Store


@pytest.fixture(scope="module")
def made(program, tmp_path_factory):
    return filled(program, tmp_path_factory.mktemp("made"))


@pytest.fixture
def halves(made, tmp_path):
    return copied(made[0], tmp_path)


# ---- making
def test_the_dealer_deals_what_was_predicted(program, made):
    folder, outcomes, said = made
    dealt, online = program.dealt([(2, 4)], SPEC)
    assert dealt > 100 and online == 0
    assert any(f"{COUNT} queries ahead for input [2, 4]" in line for line in said)
    for rank, outcome in enumerate(outcomes):
        header = outcome.header
        assert (header.engine, header.rank, header.queries, outcome.short) == ("threepc", rank, COUNT, "")
        (kind,) = header.kinds
        assert (kind.name, kind.count, kind.bytes) == ("2x4", 1, 96 + (dealt + stored.ENDS_BYTES if rank == 0 else 0))
        on_disk = sum(path.stat().st_size for path in (Path(folder) / str(rank) / "chunks").iterdir())
        assert outcome.bytes == on_disk == COUNT * (kind.bytes + 40)
    assert outcomes[0].cost.preprocess.received == COUNT * (dealt + stored.ENDS_BYTES)
    assert outcomes[0].cost.preprocess.sent == outcomes[1].cost.preprocess.received > 0, "the masked weights, once"
    assert outcomes[1].cost.preprocess.sent == 0


def test_each_entry_has_keys_and_parts_of_its_own(program, made):
    seen = {0: [], 1: []}
    for rank in (0, 1):
        with half(program, made[0], rank) as ours:
            header = ours.store.header
            for chunk in range(COUNT):
                sealed = (Path(made[0]) / str(rank) / "chunks" / f"0-{chunk:08d}").read_bytes()
                seen[rank].append(ours.store.seal.open(sealed, header.chunk_context(0, chunk)))
    for first, second in zip(seen[0], seen[1], strict=True):
        mine, theirs = stored.unpacked_keys(first), stored.unpacked_keys(second)
        assert mine[1] == theirs[0] and mine[0] == theirs[1], "what all three know, and the key of both, crosswise"
        assert mine[2] != theirs[2]
    keys = [key for rank in (0, 1) for entry in seen[rank] for key in stored.unpacked_keys(entry).values()]
    assert len(set(keys)) == COUNT * 4
    assert len({entry[96:] for entry in seen[0]}) == COUNT


@pytest.mark.parametrize("weights", [True, False])
def test_weights_are_kept_or_sent_with_each_query(program, tmp_path, weights):
    folder, outcomes, _ = filled(program, tmp_path, weights=weights, count=2)
    with half(program, folder, 0) as ours, half(program, folder, 1) as theirs:
        assert ours.prepared == theirs.prepared == ({kinds.KEPT_WEIGHTS} if weights else set())
        assert bool(ours.store.header.weights) == weights
        for _ in range(2):
            served, got = ask(program, ours, theirs)
            assert torch.equal(got.outputs[0], clear(program))
            stored_spec = replace(SPEC, stored=True, prepared=ours.prepared)
            for rank, each in ((0, served), (1, got)):
                predicted = program.cost([(2, 4)], stored_spec, rank=rank).snapshot()
                assert counted(each.ledger.snapshot()) == counted(predicted)
                assert predicted.preprocess.bytes == 0 and predicted.setup.sent == 32
    beside = program.cost([(2, 4)], SPEC).snapshot().online.bytes
    sent = got.ledger.snapshot().online.bytes
    assert sent < beside if weights else sent == beside


def test_entries_that_were_kept_without_weights_do_not_mask_them_alike(program, tmp_path):
    """Other weights may come to a query then: one mask for both would show their difference."""
    streams = []
    folder, _, _ = filled(program, tmp_path, weights=False, count=2)
    with half(program, folder, 0) as ours:
        for query in range(2):
            (chunk,) = ours.store.take_query(query)
            streams.append(stored.unpacked_keys(ours.store.seal.open(chunk.sealed, chunk.context))[2])
    assert streams[0] != streams[1]


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_dealer_that_dies_leaves_whole_queries(program, tmp_path, monkeypatch, after):
    """Its connections end in the middle of a query; what was dealt to the end serves."""
    send = stored.Links.send_ahead
    calls = []

    def dying(self, payload):
        calls.append(payload.nbytes)
        if len(calls) > after:
            self.close()
        send(self, payload)

    monkeypatch.setattr(stored.Links, "send_ahead", dying)
    outcomes, said = make(program, tmp_path)
    assert any("a session ended before its answer" in line for line in said)
    if after == 0:
        assert all(isinstance(each, PeerDisconnected) for each in outcomes), outcomes
        assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()
        return
    for outcome in outcomes:
        assert outcome.header.queries == after and outcome.short
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        assert ours.store.queries_left == theirs.store.queries_left == after
        for _ in range(after):
            _, got = ask(program, ours, theirs)
            assert torch.equal(got.outputs[0], clear(program))
        served, got = ask(program, ours, theirs)
        assert "StoreError" in served and "used up" in str(got)


@pytest.mark.parametrize("dying", [0, 1])
def test_a_party_that_dies_leaves_nothing(program, tmp_path, monkeypatch, dying):
    fill = kinds.ThreePartyStores.fill

    def breaking(self, engine, writer, demand):
        if engine.rank == dying and writer.query == 1:
            engine.close()
            raise PeerDisconnected("died")
        fill(self, engine, writer, demand)

    monkeypatch.setattr(kinds.ThreePartyStores, "fill", breaking)
    outcomes, _ = make(program, tmp_path)
    assert all(isinstance(each, PeerDisconnected) for each in outcomes), outcomes
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()


def test_both_order_the_same_and_as_the_dealer_deals(program, tmp_path):
    for fields, why in (({"client": {"truncation": "auto"}}, "truncation"), ({"truncation": "auto"}, "truncation")):
        outcomes, _ = make(program, tmp_path, **fields)
        assert all(isinstance(each, PrivmlError) for each in outcomes) and why in str(outcomes[1]), outcomes
        assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()


def test_what_cannot_be_dealt_ahead_is_refused_before_anything_is_sent(program, tmp_path):
    wide = converted({"bits": 64, "narrow": False})
    with pytest.raises(ConfigError, match="few_rounds in wide rings"):
        kinds.ThreePartyStores().kinds(wide, [(2, 4)], SessionSpec.of("threepc", comparison="few_rounds"))


def test_addresses_that_contradict_the_engine(program, tmp_path):
    with pytest.raises(ConfigError, match="has a dealer"):
        preprocess(order(program, tmp_path / "0", **THREE), listen="127.0.0.1:0")
    with pytest.raises(ConfigError, match="no dealer"):
        preprocess(order(program, tmp_path / "0"), listen="127.0.0.1:0", dealer="127.0.0.1:1")


@pytest.mark.parametrize("ahead", [None, 3, {}, {"queries": 0, "weights": True}, {"queries": True, "weights": True},
                                   {"queries": 1 << 40, "weights": False}, {"queries": 1, "weights": 1}])  # fmt: skip
def test_a_dealer_refuses_impossible_requests(program, ahead):
    from privml.service.dealer import _check_ahead

    with pytest.raises(InvalidInput, match="queries ahead"):
        _check_ahead(program, SPEC, {"inputs": [[2, 4]], "ahead": ahead})


# ---- using
def test_queries_need_no_dealer_and_take_each_entry_once(program, halves):
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        for left in (2, 1, 0):
            served, got = ask(program, ours, theirs)
            assert torch.equal(got.outputs[0], clear(program))
            for each in (served, got):
                assert each.source.startswith("from store") and f"{left} queries left" in each.source
            assert ours.store.queries_left == theirs.store.queries_left == left
        served, got = ask(program, ours, theirs)
        assert "StoreError" in served and isinstance(got, StoreError) and "used up" in str(got)
    assert not list((halves / "0" / "chunks").iterdir())


def test_all_that_was_dealt_is_used(program, halves, monkeypatch):
    opened, make_links = [], stored.StoredLinks.__init__

    def remember(self, *args):
        make_links(self, *args)
        opened.append(self)

    monkeypatch.setattr(stored.StoredLinks, "__init__", remember)
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        ask(program, ours, theirs)
    assert [links.left for links in opened] == [0, 0]


def test_further_queries_of_a_client_get_sessions_of_their_own(program, halves):
    served = []

    def client(address):
        with services.client(program, address, preprocessing=theirs, deadline=20.0, **THREE) as asking:
            return [asking.query(INPUT) for _ in range(2)]

    def server(told):
        return serve(
            program, "127.0.0.1:0", preprocessing=ours, queries=2, on_listening=told, on_answer=served.append,
            log=lambda text: None, **THREE,
        )  # fmt: skip

    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        number, answers = both(server, client)
        assert number == 2 and ours.store.queries_left == theirs.store.queries_left == 1
    assert all(torch.equal(each.outputs[0], clear(program)) for each in answers)


def test_a_store_and_a_dealer_contradict_each_other(program, halves):
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        with pytest.raises(ConfigError, match="no dealer takes part"):
            serve(program, "127.0.0.1:0", preprocessing=ours, dealer="127.0.0.1:1", **THREE)
        with pytest.raises(ConfigError, match="no dealer takes part"):
            services.client(program, "127.0.0.1:1", preprocessing=theirs, dealer="127.0.0.1:2", **THREE)
    with (
        half(program, halves, 0, when_empty="make") as ours,
        pytest.raises(ConfigError, match="two parties cannot make"),
    ):
        serve(program, "127.0.0.1:0", preprocessing=ours, **THREE)


@pytest.mark.parametrize("deadly", ["server", "client"])
def test_killed_in_a_query_nothing_is_used_twice(program, halves, start, program_folder, deadly):
    killed_in_a_query(start, program_folder, halves, deadly, **THREE)
    for rank in (0, 1):
        with Store(halves / str(rank), f"{halves}/{rank}.key") as store:
            assert store.queries_left == COUNT - 2 and store.notes == []


def test_other_settings_are_named(program, halves):
    with half(program, halves, 0) as ours:
        for options, why in (
            ({"truncation": "auto"}, "engine.truncation is 'exact' there and 'auto' here"),
            ({"engine": "twopc"}, "engine=threepc"),
        ):
            options = {name: value for name, value in {**THREE, **options}.items() if name != "truncation"} | (
                {"truncation": "auto"} if options.get("engine") is None else {}
            )
            with pytest.raises(ConfigError, match=why):
                serve(program, "127.0.0.1:0", preprocessing=ours, **options)
        few = privml.engine("threepc", truncation="exact", comparison="few_rounds")
        with pytest.raises(ConfigError, match="engine.comparison is 'few_bytes' there and 'few_rounds' here"):
            ours.check(SessionSpec(few))
    with pytest.raises(ConfigError, match="half of party 0, this is party 1"):
        StoreHalf(halves / "0", 1, program.hash, f"{halves}/0.key")
    with pytest.raises(ConfigError, match="was made for program"):
        StoreHalf(halves / "0", 0, "f" * 64, f"{halves}/0.key")


def test_another_release_is_named(program, halves, monkeypatch):
    monkeypatch.setattr(kinds, "VERSION", "0.0.0")
    with half(program, halves, 0) as ours, pytest.raises(ConfigError, match="release of privml that dealt it"):
        ours.check(SPEC)


def test_other_shapes_are_named(program, halves):
    for value in (INPUT[:1], INPUT.repeat(2, 1)):
        with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
            _, got = ask(program, ours, theirs, value)
            assert isinstance(got, StoreError) and f"of 2x4 alone, not of {len(value)}x4" in str(got)
            assert ours.store.queries_left == theirs.store.queries_left == COUNT, "nothing was used"


class Many(torch.nn.Module):
    """Of so many inputs that their shapes are a long text."""

    inputs = 70

    def forward(self, *values):
        return torch.relu(sum(values))


def test_long_lists_of_shapes(tmp_path):
    values = tuple(torch.full((2, 4), float(i % 5)) for i in range(Many.inputs))
    program = privml.convert(Many().eval(), calibration=values)
    filled(program, tmp_path, count=1)
    other = (*values[:-1], torch.zeros(2, 4))
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        assert len(ours.store.header.kinds[0].name) > 256
        _, got = ask(program, ours, theirs, tuple(value[:1] for value in values))
        assert isinstance(got, StoreError) and "input 1 of 2x4 alone, not of 1x4" in str(got)
        _, got = ask(program, ours, theirs, other)
    assert (got.outputs[0] - sum(other).relu()).abs().max() < 0.05


def test_other_weights_are_refused(program, halves):
    other = Program(program.body, {name: value + 1 for name, value in program.weights.items()})
    with half(program, halves, 0) as ours, pytest.raises(StoreError, match="other weights"):
        serve(other, "127.0.0.1:0", preprocessing=ours, **THREE)


def test_weights_that_change_in_place_are_noticed(program, halves):
    changing = Program(program.body, {name: value.clone() for name, value in program.weights.items()})
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        _, got = ask(changing, ours, theirs)
        assert torch.equal(got.outputs[0], clear(program))
        next(iter(changing.weights.values())).mul_(2)
        with pytest.raises(StoreError, match="other weights"):
            server.serve(changing, "127.0.0.1:0", SPEC, preprocessing=ours, hooks=LISTENS_NOT)


def test_weights_that_are_replaced_within_a_query_open_nothing(program, halves, monkeypatch):
    """After the query was granted, before they enter."""
    changing, prepare = Program(program.body, program.weights), Program.prepare

    def late(self, session):
        if session.rank == 0:
            changing.weights = {name: value * 0.5 for name, value in program.weights.items()}
        return prepare(self, session)

    monkeypatch.setattr(Program, "prepare", late)
    opened = []
    monkeypatch.setattr(session_worker, "reveal", lambda *args, **options: opened.append(args))
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        served, got = ask(changing, ours, theirs)
    assert "other weights" in served and isinstance(got, PeerDisconnected) and not opened


def test_an_altered_entry_ends_the_query_before_anything_is_sent_with_it(program, halves):
    altered(halves / "1", 0, 30)
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        served, got = ask(program, ours, theirs)
        assert "PeerDisconnected" in served and isinstance(got, CorruptFile) and "does not open" in str(got)
        _, got = ask(program, ours, theirs)
        assert_right(got.outputs)


def test_halves_that_stand_at_different_queries_go_on_from_the_later(program, halves):
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        list(ours.store.take_query(0))
        _, got = ask(program, ours, theirs)
        assert torch.equal(got.outputs[0], clear(program))
        assert ours.store.queries_left == theirs.store.queries_left == 1


@pytest.mark.parametrize("proof", [b"", bytes(32)], ids=["none", "recorded"])
def test_a_hello_that_is_sent_again_uses_nothing_up(program, halves, proof):
    """Who has recorded a session without TLS repeats what its client has sent."""
    logged = []

    def log(text):
        logged.append(text)
        if "ended" in text:
            raise StopIteration

    def server(told):
        with contextlib.suppress(StopIteration):
            serve(program, "127.0.0.1:0", preprocessing=ours, on_listening=told, log=log, **THREE)

    def repeat(address):
        channel = reach(address, 20.0)
        _write(channel, recorded)
        _read(channel)
        request = json.dumps({"inputs": [[2, 4]], "ahead": False, "position": [0]}).encode()
        channel.write(proof + len(request).to_bytes(4, "little") + request)
        channel.flush()
        with contextlib.suppress(PeerDisconnected):
            while True:
                channel.read(1)

    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        recorded = message_of(settings_of(program, SPEC, theirs).hello(1, "client"))
        both(server, repeat)
        assert ours.store.queries_left == COUNT and "HandshakeMismatch" in logged[-1], logged


def test_a_half_that_was_restored_from_a_copy(program, halves, tmp_path):
    """The client's: the server goes on after all that it has used. The server's: it refuses."""
    old = copied(halves, tmp_path / "old")
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        for _ in range(2):
            ask(program, ours, theirs)
    again = copied(old, tmp_path / "again")
    for rank in (0, 1):
        (tmp_path / "again" / "stores" / f"{rank}.key").exists()
    with half(program, halves, 0) as ours, StoreHalf(again / "1", 1, program.hash, f"{halves}/1.key") as theirs:
        _, got = ask(program, ours, theirs)
        assert torch.equal(got.outputs[0], clear(program)) and theirs.store.queries_left == 0
    with StoreHalf(again / "0", 0, program.hash, f"{halves}/0.key") as ours, half(program, halves, 1) as theirs:
        served, got = ask(program, ours, theirs)
        assert "further ahead" in served or "used up" in str(got)
        assert ours.store.queries_left == COUNT, "nothing was used"


def test_a_peer_with_another_entry_is_refused_before_anything_is_sent(program, halves, monkeypatch):
    take, sent = StoreHalf.open, []

    def take_another(self, channels, rank, spec, allotment, need):
        if rank == 1:
            allotment = Allotment(allotment.start, self.store.take_query(1))
        try:
            return take(self, channels, rank, spec, allotment, need)
        finally:
            sent.append(None)

    monkeypatch.setattr(StoreHalf, "open", take_another)
    entered = []
    monkeypatch.setattr(stored.KeptWeights, "enter", lambda *args: entered.append(args))
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        served, got = ask(program, ours, theirs)
        assert isinstance(got, (ProtocolError, PeerDisconnected)) and ("ProtocolError" in served or "Peer" in served)
        assert "another entry" in served + str(got) and not entered


def test_a_peer_that_names_no_position_is_refused(program, halves):
    need = needed(program, [(2, 4)], SPEC)
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        for position in (None, [], [0, 0], [-1], [9], ["0"], [True]):
            with pytest.raises(ProtocolError, match="no position"):
                ours.allot({"position": position}, need)
        with pytest.raises(StoreError, match="further ahead than a session can explain"):
            ours.allot({"position": [2]}, need)
        assert ours.store.queries_left == COUNT, "nothing was used"
        allotment = ours.allot({"position": [1]}, need)
        assert allotment.start == (1,) and theirs.claim([1], need).start == (1,)
        with pytest.raises(ProtocolError, match="does not have"):
            theirs.claim([1], need)


def test_stores_of_two_pairs_do_not_fit(program, halves, tmp_path):
    filled(program, tmp_path / "other", count=1)
    with half(program, halves, 0) as ours, half(program, tmp_path / "other", 1) as theirs:
        served, got = ask(program, ours, theirs)
        assert "HandshakeMismatch" in served and "store is" in str(got)
        assert ours.store.queries_left == COUNT, "nothing was used"


def test_a_store_and_a_seed_contradict_each_other(program, halves):
    seeded = replace(SPEC, test_seed=7)
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        with pytest.raises(ConfigError, match="test_seed=7"):
            server.serve(program, "127.0.0.1:0", seeded, preprocessing=ours, hooks=LISTENS_NOT)
        with pytest.raises(ConfigError, match="test_seed=7"):
            privml.Client(program, "127.0.0.1:1", seeded, preprocessing=theirs)


def test_an_entry_that_is_too_short_ends_the_query(program):
    links = stored.StoredLinks(0, _Silent(), b"1234")
    assert links.deal(None, 4).tobytes() == b"1234"
    with pytest.raises(ProtocolError, match="more than was dealt"):
        links.deal(None, 1)


class _Silent:
    def set_depth(self, depth):
        pass

    def close(self):
        pass


def test_the_dealer_may_be_gone_for_long(program, halves):
    """No thread and no connection of a session on a store is of a dealer."""
    with half(program, halves, 0) as ours, half(program, halves, 1) as theirs:
        ask(program, ours, theirs)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("dealer")]
