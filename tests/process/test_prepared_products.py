# SPDX-License-Identifier: Apache-2.0
"""Stores with products that were prepared with the weights, and the queries that draw from them."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from running import Running
from services import client, query, serve
from store_pairs import INPUT, altered, answer, assert_right, filled, killed_in_a_query, make

import privml
from privml.engines.twopc import linear
from privml.engines.twopc.linear import PREPARED, WIDE
from privml.errors import ConfigError, PeerDisconnected, ProtocolError, StoreError
from privml.program import Program
from privml.service.negotiation import _allowance_of, link_in
from privml.service.options import Limits
from privml.session import preprocessing
from privml.session.preprocessing import StoreHalf
from privml.spec import SessionSpec, engine
from privml.store.store import Store

LATTICE = {"linear": "lattice"}
PLACES = {"linear 0", "linear_1 0"}


@pytest.fixture(scope="module")
def filling():
    return {"count": 3, **LATTICE}


def half(program, stores, rank, **options):
    return StoreHalf(stores / str(rank), rank, program.hash, f"{stores}/{rank}.key", **options)


def spec_of(half=None):
    spec = SessionSpec(engine("twopc", **LATTICE))
    return spec if half is None else replace(spec, prepared=half.prepared)


def test_each_query_has_its_products_beside_its_transfers(program, made):
    folder, outcomes = made
    for rank, outcome in enumerate(outcomes):
        with half(program, folder, rank) as held:
            header = held.store.header
            drawn = program.correlations([(2, 4)], spec_of(held))
            assert held.prepared == PLACES
            assert header.per_query == (*drawn.directions, 1, 1) and held.store.queries_left == 3
            assert bool(header.weights) == (rank == 0), "the client knows nothing of the weights"
            assert [layer.name for layer in outcome.layers] == ["first", "second"]
            assert all(layer.cost.total.bytes > 0 for layer in outcome.layers)
        on_disk = sum(path.stat().st_size for path in (folder / str(rank) / "chunks").iterdir())
        assert outcome.bytes == on_disk


def test_queries_send_what_is_predicted_and_prepare_nothing(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        spec = spec_of(ours)
        predicted = program.cost([(2, 4)], spec).snapshot()
        direct = program.cost([(2, 4)], spec_of()).snapshot()
        assert predicted.online.bytes < direct.online.bytes and predicted.products == {PREPARED: 2}
        for left in (2, 1, 0):
            served, got = answer(program, ours, theirs, **LATTICE)
            assert_right(got.outputs)
            for each in (served, got):
                cost = each.ledger.snapshot()
                assert cost.preprocess.bytes == 0 and cost.products == {PREPARED: 2}
            online = got.ledger.snapshot().online
            assert (online.sent, online.received) == (predicted.online.sent, predicted.online.received)
            assert ours.store.queries_left == theirs.store.queries_left == left
        served, got = answer(program, ours, theirs, **LATTICE)
        assert "StoreError" in served and isinstance(got, StoreError) and "does not suffice" in str(got)


def test_outputs_are_those_of_transfers_bit_for_bit(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        _, prepared = answer(program, ours, theirs, **LATTICE)
    _, plain = answer(program, None, None, linear="ot")
    assert torch.equal(prepared.outputs[0], plain.outputs[0])


def test_several_queries_of_one_session(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        serving = partial(serve, program, "127.0.0.1:0", preprocessing=ours, **LATTICE)
        with Running(serving) as running, client(program, running.address, preprocessing=theirs, **LATTICE) as asking:
            for turn in (1, 2, 3):
                got = asking.query(INPUT / turn)
                assert_right(got.outputs, INPUT / turn)
                assert got.turn == turn and got.ledger.snapshot().products == {PREPARED: 2}


def test_inputs_of_another_size_take_transfers_alone(program, stores):
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        _, got = answer(program, ours, theirs, INPUT[:1], **LATTICE)
        assert_right(got.outputs, INPUT[:1])
        assert got.ledger.snapshot().products == {WIDE: 2}
        _, got = answer(program, ours, theirs, **LATTICE)
        assert_right(got.outputs)
        assert got.ledger.snapshot().products == {PREPARED: 2}, "of which nothing was used by the smaller one"


def test_other_weights_are_refused_at_the_start_and_while_serving(program, program_folder, stores, tmp_path):
    other = Program(program.body, {name: value * 0.5 for name, value in program.weights.items()})
    with half(program, stores, 0) as ours, pytest.raises(StoreError, match="other weights"):
        serve(other, "127.0.0.1:0", preprocessing=ours, **LATTICE)
    serving = Program.load(f"{program_folder}/program", f"{program_folder}/weights.safetensors")
    folder = tmp_path / "other"
    other.save(folder)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        _, got = answer(serving, ours, theirs, **LATTICE)
        assert_right(got.outputs)

        with Running(partial(serve, serving, "127.0.0.1:0", preprocessing=ours, **LATTICE)) as running:
            serving.load_weights(folder / "weights.safetensors")
            with pytest.raises(StoreError, match="other weights"):
                query(program, running.address, INPUT, preprocessing=theirs, **LATTICE)
        assert ours.store.queries_left == theirs.store.queries_left == 2, "nothing was used"


def test_settings_that_contradict_the_store_are_refused(program, stores):
    with half(program, stores, 0) as ours, pytest.raises(ConfigError, match=r"linear=ot uses no prepared"):
        serve(program, "127.0.0.1:0", preprocessing=ours, linear="ot")


@pytest.mark.parametrize("made_with, wanted", [("tail", "proved"), ("proved", "tail")])
def test_products_with_another_bound_on_noise_are_refused(program, tmp_path, made_with, wanted):
    filled(program, tmp_path, count=1, noise=made_with, **LATTICE)
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        assert ours.store.header.noise == theirs.store.header.noise == made_with
        for refused in (
            lambda: serve(program, "127.0.0.1:0", preprocessing=ours, noise=wanted, **LATTICE),
            lambda: query(program, "127.0.0.1:1", INPUT, preprocessing=theirs, noise=wanted, **LATTICE),
        ):
            with pytest.raises(ConfigError, match=f"engine.noise={wanted}.*prepared with engine.noise={made_with}"):
                refused()
        _, got = answer(program, ours, theirs, noise=made_with, **LATTICE)
        assert_right(got.outputs)
        assert got.ledger.snapshot().products == {PREPARED: 2}


def test_an_altered_product_ends_the_query_and_not_the_server(program, stores):
    altered(stores / "1", 2, 30)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        served, got = answer(program, ours, theirs, **LATTICE)
        assert "PeerDisconnected" in served and "does not open" in str(got)
        _, got = answer(program, ours, theirs, **LATTICE)
        assert_right(got.outputs)


def test_halves_of_products_come_to_no_other_place(program, stores):
    """Not even to another layer or query of the same store."""
    for first, second in (("2-00000000", "3-00000000"), ("2-00000001", "2-00000002")):
        chunks = stores / "1" / "chunks"
        held = (chunks / first).read_bytes()
        (chunks / first).write_bytes((chunks / second).read_bytes())
        (chunks / second).write_bytes(held)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        for _ in range(3):
            _, got = answer(program, ours, theirs, **LATTICE)
            assert isinstance(got, Exception)


def test_a_copy_of_an_older_index_brings_nothing_back(program, stores, tmp_path):
    older = tmp_path / "index"
    shutil.copy(stores / "0" / "index", older)
    with half(program, stores, 0) as ours, half(program, stores, 1) as theirs:
        answer(program, ours, theirs, **LATTICE)
    shutil.copy(older, stores / "0" / "index")
    with half(program, stores, 0) as ours:
        assert ours.store.queries_left == 2 and "older than the chunks" in ours.store.notes[0]


def test_transfers_alone_without_weights_at_party_0(program, tmp_path):
    bare = Program(program.body)
    filled(bare, tmp_path, linear="auto")
    with half(bare, tmp_path, 0) as held:
        assert held.prepared == frozenset() and held.store.header.weights == ""
    first, second = make(bare, tmp_path / "asked", products=True, **LATTICE)
    assert isinstance(first, ConfigError) and "weights" in str(first) and second is None


def test_digests_tell_weights_apart(program):
    same = Program(program.body, dict(program.weights))
    assert same.weights_digest() == program.weights_digest()
    name = next(iter(program.weights))
    other = Program(program.body, {**program.weights, name: program.weights[name] + np.float32(1)})
    assert other.weights_digest() != program.weights_digest()


# ---- prepared by the session itself, while it is idle
IDLE = Limits(prepare=2)


@contextlib.contextmanager
def idle_session(program, limits=IDLE, **options):
    serving = partial(serve, program, "127.0.0.1:0", limits=limits, **options)
    with Running(serving) as running, client(program, running.address, ahead=True, **options) as asking:
        yield asking


def forms(answer):
    return answer.ledger.snapshot().products


def test_an_idle_session_prepares_products_of_several_queries_together(program):
    with idle_session(program, **LATTICE) as asking:
        answers = [asking.query(INPUT / turn) for turn in range(1, 6)]
    for turn, got in enumerate(answers, 1):
        assert_right(got.outputs, INPUT / turn)
    assert [forms(got) for got in answers] == [{WIDE: 2}, *[{PREPARED: 2}] * 4]
    spent = [got.ahead.preprocess.sent for got in answers]
    assert spent[1] > spent[2] and spent[3] > spent[4], "of two queries, before the first of them"
    online = program.cost([(2, 4)], replace(spec_of(), prepared=frozenset(PLACES))).snapshot().online
    for got in answers[1:]:
        cost = got.ledger.snapshot()
        assert cost.preprocess.bytes == 0
        assert (cost.online.sent, cost.online.received) == (online.sent, online.received)


def test_inputs_of_another_size_leave_what_was_prepared(program):
    with idle_session(program, **LATTICE) as asking:
        shapes = [INPUT, INPUT[:1], INPUT]
        answers = [asking.query(x) for x in shapes]
    for x, got in zip(shapes, answers, strict=True):
        assert_right(got.outputs, x)
    assert [forms(got) for got in answers] == [{WIDE: 2}, {WIDE: 2}, {PREPARED: 2}]


def test_new_weights_make_new_preparations(program, program_folder, tmp_path):
    """In a new session, which begins by itself: nothing of the old ones is used."""
    current = Program.load(f"{program_folder}/program", f"{program_folder}/weights.safetensors")
    other = Program(program.body, {name: value * 0.5 for name, value in program.weights.items()})
    other.save(tmp_path)
    serving = partial(serve, current, "127.0.0.1:0", limits=IDLE, **LATTICE)
    bare = Program(program.body)
    with Running(serving) as running, client(bare, running.address, ahead=True, **LATTICE) as asking:
        first = asking.query(INPUT)
        assert asking.ready(60)
        current.load_weights(tmp_path / "weights.safetensors")
        second, third = asking.query(INPUT), asking.query(INPUT)
    assert [got.turn for got in (first, second, third)] == [1, 1, 2]
    assert [forms(got) for got in (first, second, third)] == [{WIDE: 2}, {WIDE: 2}, {PREPARED: 2}]
    _, want = answer(other, None, None, linear="ot")
    assert torch.equal(second.outputs[0], want.outputs[0]) and torch.equal(third.outputs[0], want.outputs[0])
    assert not torch.equal(first.outputs[0], want.outputs[0])


def test_nothing_is_prepared_for_clients_that_do_not_ask(program):
    serving = partial(serve, program, "127.0.0.1:0", limits=IDLE, **LATTICE)
    with Running(serving) as running, client(program, running.address, **LATTICE) as asking:
        assert [forms(asking.query(INPUT)) for _ in range(2)] == [{WIDE: 2}] * 2


@pytest.mark.parametrize("settings, named", [
    ({"linear": "ot"}, "needs an engine"), ({"ring": 64}, "needs an engine"),
])  # fmt: skip
def test_what_would_never_be_prepared_is_refused(program, settings, named):
    with pytest.raises(ConfigError, match=named):
        serve(program, "127.0.0.1:0", limits=IDLE, **settings)


def test_a_session_on_a_store_prepares_nothing_itself(program, stores):
    with half(program, stores, 0) as ours, pytest.raises(ConfigError, match="store"):
        serve(program, "127.0.0.1:0", limits=IDLE, preprocessing=ours, **LATTICE)


@pytest.mark.parametrize(
    "wrong", [{"prepare": -1}, {"prepare": 1.5}, {"prepare": 1 << 20}, {"prepare": 2, "ahead": False}]
)
def test_numbers_of_queries_that_cannot_be(wrong):
    with pytest.raises(ConfigError):
        Limits(**wrong)


@pytest.mark.parametrize("told", [-1, True, 1.5, 5000, "2"])
def test_a_server_cannot_prepare_impossible_numbers(told):
    with pytest.raises(ProtocolError, match="impossible number"):
        _allowance_of({"queries": 1, "idle": 1.0, "ahead": True, "prepare": told}, True)
    with pytest.raises(ProtocolError, match="impossible number"):
        _allowance_of({"queries": 1, "idle": 1.0, "ahead": False, "prepare": 1}, True)


@pytest.mark.parametrize("named", [None, [], [1], [1, -2], ["1", 2], [float("nan"), 1], [True, 1], {"delay_ms": 1}])
def test_a_server_that_names_no_link_is_refused(named):
    with pytest.raises(ProtocolError, match="which link"):
        link_in({"link": named})


# ---- parties that die
@pytest.mark.parametrize("deadly", ["server", "client"])
@pytest.mark.parametrize("layer", ["first", "second", "relu"])
def test_killed_in_a_query_nothing_is_used_twice(program, stores, start, program_folder, deadly, layer):
    killed_in_a_query(start, program_folder, stores, deadly, layer, **LATTICE)
    for rank in (0, 1):
        with Store(stores / str(rank), f"{stores}/{rank}.key") as store:
            assert store.queries_left == 1 and store.notes == []


@pytest.mark.parametrize("dying", [0, 1])
@pytest.mark.parametrize("after", [0, 2, 4])
def test_a_party_that_ends_while_products_are_prepared_leaves_no_store(program, tmp_path, monkeypatch, dying, after):
    """At either party: also the queries that were whole are gone."""
    put = preprocessing.JointWriter.put

    def failing(self, kind, sealed):
        if self.header.rank == dying and kind >= 2 and self._next_product(kind) == after:
            raise PeerDisconnected("for this test")
        put(self, kind, sealed)

    counts = dict.fromkeys((0, 1), 0)

    def counted(self, kind):
        counts[self.header.rank] += 1
        return counts[self.header.rank] - 1

    monkeypatch.setattr(preprocessing.JointWriter, "_next_product", counted, raising=False)
    monkeypatch.setattr(preprocessing.JointWriter, "put", failing)
    outcomes = make(program, tmp_path, count=3, **LATTICE)
    assert all(isinstance(outcome, PeerDisconnected) for outcome in outcomes), outcomes
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()


# ---- several queries of one session
def test_later_queries_of_a_session_send_less_and_what_is_predicted(program):
    shapes = [(2, 4), (2, 4), (1, 4)]
    predicted = [program.session_cost([[shape] for shape in shapes], spec_of(), rank=rank) for rank in (0, 1)]
    with (
        Running(partial(serve, program, "127.0.0.1:0", **LATTICE)) as running,
        client(program, running.address, **LATTICE) as asking,
    ):
        answers = [asking.query(torch.zeros(shape)) for shape in shapes]
    for got, (want, _) in zip(answers, predicted[1], strict=True):
        online, expected = got.ledger.snapshot().online, want.snapshot().online
        assert (online.sent, online.received) == (expected.sent, expected.received)
    sizes = [got.ledger.snapshot().online.received for got in answers]
    assert sizes[0] > 10 * sizes[1] > 10 * sizes[2] > 0


def test_two_programs_of_one_session_keep_apart_what_serves_their_places(program):
    other = Program(program.body, {name: value * 0.5 for name, value in program.weights.items()})
    with privml.local("twopc", linear="lattice") as session:
        session.numerics = program.numerics
        results = [[privml.reveal(each.run(session, INPUT)) for each in (program, other)] for _ in range(2)]
    with privml.local("twopc", linear="ot") as session:
        session.numerics = program.numerics
        wanted = [privml.reveal(each.run(session, INPUT)) for each in (program, other)]
    for found in results:
        assert all(map(torch.equal, found, wanted))


@pytest.mark.usefixtures("narrow")
def test_what_does_not_fit_the_memory_for_halves_is_made_without(program, monkeypatch):
    """Alike at both parties and as predicted: the first layer's halves fit, those of the second are sent every time."""
    shapes = [(2, 4)] * 3
    freely = [cost.snapshot().online for cost, _ in program.session_cost([[shape] for shape in shapes], spec_of())]
    wanted = spec_of().backend.stores.products(program, [(2, 4)], spec_of(), 1)
    whole = sum(linear.kept_bytes(each.product, "tail") for each in wanted)
    monkeypatch.setattr(linear, "MOST_KEPT", whole - 1)
    predicted = [cost.snapshot().online for cost, _ in program.session_cost([[shape] for shape in shapes], spec_of())]
    with (
        Running(partial(serve, program, "127.0.0.1:0", **LATTICE)) as running,
        client(program, running.address, **LATTICE) as asking,
    ):
        for turn, want in enumerate(predicted, 1):
            got = asking.query(INPUT / turn)
            assert_right(got.outputs, INPUT / turn)
            online = got.ledger.snapshot().online
            assert (online.sent, online.received) == (want.sent, want.received)
    assert predicted[0].bytes == freely[0].bytes
    assert freely[1].bytes < predicted[1].bytes == predicted[2].bytes < predicted[0].bytes


class Branches(torch.nn.Module):
    """Two paths of different shapes, each of which has a lane."""

    def __init__(self):
        super().__init__()
        self.left, self.right = torch.nn.Linear(40, 150), torch.nn.Linear(30, 160)
        self.after_left, self.after_right = torch.nn.Linear(150, 3), torch.nn.Linear(160, 3)

    def forward(self, x):
        left, right = self.left(x[:, :40]).relu(), self.right(x[:, 40:]).relu()
        return self.after_left(left) + self.after_right(right)


def test_lanes_have_keys_of_their_own():
    torch.manual_seed(3)
    module, x = Branches().eval(), torch.randn(4, 70)
    program = privml.convert(module, calibration=x)
    with privml.local("twopc", linear="ot") as session:
        session.numerics = program.numerics
        want = privml.reveal(program.run(session, x[:1]))
    for threads in (1, 2):
        with privml.local("twopc", linear="lattice", threads=threads) as session:
            session.numerics = program.numerics
            assert all(torch.equal(privml.reveal(program.run(session, x[:1])), want) for _ in range(2))
            record = session.engine.engines[0].record
            assert record.counts(None) == {WIDE: 8} and len(record.of_lanes) == threads
            assert len({id(lane.wide) for lane in record.of_lanes.values()}) == threads


@pytest.mark.usefixtures("narrow")
def test_packed_products_of_several_lanes_have_keys_of_their_own():
    torch.manual_seed(3)
    module, x = Branches().eval(), torch.randn(4, 70)
    program = privml.convert(module, calibration=x)
    results, made = {}, {}
    for mode, threads in (("ot", 1), ("lattice", 1), ("lattice", 2)):
        with privml.local("twopc", linear=mode, threads=threads) as session:
            session.numerics = program.numerics
            results[mode, threads] = [privml.reveal(program.run(session, x[:1])) for _ in range(2)]
            record = session.engine.engines[0].record
            made[mode, threads] = {lane: len(held.keys) for lane, held in record.of_lanes.items()}
            assert sum(record.counts(None).values()) == 8 and set(record.counts(None)) <= {"ot", "lattice", "packed"}
    assert made["lattice", 1] == {0: 1} and made["lattice", 2] == {0: 1, 1: 1}
    want = results["ot", 1][0]
    assert all(torch.equal(got, want) for each in results.values() for got in each)
