# SPDX-License-Identifier: Apache-2.0
"""Predictions of time: which calls a query makes, and what its messages take on a link."""

from __future__ import annotations

import pytest
import torch

from privml.conversion import convert
from privml.engines import demands
from privml.engines.active import backend as active
from privml.engines.base import Operand
from privml.engines.correlations import OtChoice
from privml.engines.demands import Item
from privml.engines.interface import backends
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.links import Message, Meter
from privml.engines.twopc import backend as twopc
from privml.engines.twopc.linear import PREPARED, WORD_PRODUCT, ByTransfers, Linear, Product, form_of
from privml.measure import calls
from privml.measure.calibration import Calibration, correlation, named, of_kind, setup
from privml.measure.calls import Watch, Watched, describe
from privml.measure.estimate import seconds_of
from privml.measure.predict import calls_of, cost_of, times_of
from privml.program import Program
from privml.spec import LinkProfile, SessionSpec

ENGINES = [each.name for each in backends() if each.remote]
BITS = torch.ones(6, 10, dtype=torch.uint8)
WORDS = torch.ones(6, 10, dtype=torch.int64)


@pytest.fixture(scope="module")
def program() -> Program:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).eval()
    return convert(module, calibration=torch.rand(8, 6), numerics={"bits": 32})


class Instant(dict):
    """Every call takes no time, and so do set-up and correlations."""

    def __missing__(self, name: str) -> float:
        return 0.0


def instant(tmp_path) -> Calibration:
    return Calibration(tmp_path / "none.json", Instant())


# ---- samples
def test_elements_alike_are_measured_on_a_flat_array() -> None:
    call = describe("select", [(BITS,), (WORDS,), 32], {}, 1, 600)
    assert call.times == 1 and call.sample.args == (calls.ShareOf((60,), True), calls.ShareOf((60,), False), 32)
    again = describe("select", [(BITS.view(-1),), (WORDS.view(-1),), 32], {}, 1, 600)
    assert again.sample.key == call.sample.key
    for other in (
        describe("select", [(BITS,), (WORDS,), 33], {}, 1, 600),
        describe("select", [(BITS,), (WORDS,), 32], {}, 2, 600),
        describe("select", [(BITS[:5],), (WORDS[:5],), 32], {}, 1, 500),
    ):
        assert other.sample.key != call.sample.key


def test_shares_of_bits_have_fewer_components() -> None:
    call = describe("bits_to_ring", [(WORDS, WORDS), 64], {}, 1, 600, components=4)
    assert call.sample.args[0] == calls.ShareOf((60,), True)
    number = describe("relu", [(WORDS,) * 4, 64], {}, 1, 600, components=4)
    assert number.sample.args[0] == calls.ShareOf((60,), False)
    meter = active.meter(0, OtChoice("ideal"), 64)
    args, kwargs = calls.arguments(call.sample, meter, 0)
    assert len(args[0]) == 2 and len(meter.bits_to_ring(*args, **kwargs)) == meter.components


def test_a_large_call_is_measured_in_part() -> None:
    whole = 10 * calls.LARGEST
    call = describe("relu", [(WORDS,), 32], {}, 1, whole)
    assert call.times == 10 and call.sample.args[0].shape == (6,) and call.sample.size == whole // 10
    rows = describe("max_last", [(WORDS,), 32, True], {}, 1, 3 * calls.LARGEST)
    assert rows.times == 3 and rows.sample.args[0].shape == (2, 10)


def test_a_product_is_measured_as_it_is() -> None:
    operands = [Operand((WORDS,), 16, owner=0), Operand((WORDS.t(),), 32)]
    call = describe("matmul", [*operands, 32], {}, 1, 10 * calls.LARGEST)
    assert call.times == 1
    assert [each.share.shape for each in call.sample.args[:2]] == [(6, 10), (10, 6)]
    assert call.sample.args[0].owner == 0 and call.sample.args[1].owner is None


def test_a_sample_calls_the_engine_as_the_program_did() -> None:
    engine = twopc.meter(0)
    a, b = Operand((WORDS,), 16, owner=0), Operand((WORDS,), 32)
    before = engine.counters()["online"]["sent"]
    engine.multiply(a, b, 32)
    sent = engine.counters()["online"]["sent"] - before
    call = describe("multiply", [a, b, 32], {}, 1, 1000)
    args, kwargs = calls.arguments(call.sample, engine, 0)
    before = engine.counters()["online"]["sent"]
    getattr(engine, call.sample.method)(*args, **kwargs)
    assert engine.counters()["online"]["sent"] - before == sent > 0


# ---- a query's calls
@pytest.mark.parametrize("name", ENGINES)
def test_the_calls_of_a_query_send_all_its_bytes(program: Program, name: str) -> None:
    spec = SessionSpec(name)
    found = calls_of(program, program.shapes(4), spec)
    total = cost_of(program, program.shapes(4), spec, 0).snapshot()
    online = total.online.bytes + (total.preprocess.bytes if name == "threepc" else 0)
    assert sum(call.sample.size * call.times for call in found) == online
    rounded = {"rectified_quotient"} if name == "twopc" else {"relu", "truncate"}
    assert rounded | {"reveal"} <= {call.sample.method for call in found}


def test_every_engine_is_metered_with_what_it_makes_ahead(program: Program) -> None:
    shapes, malicious = program.shapes(2), OtChoice(security="malicious")
    for rank in (0, 1):
        expected = {
            "twopc": program.cost(shapes, rank=rank),
            "threepc": program.cost(shapes, SessionSpec("threepc"), rank=rank),
            "active": program.cost(shapes, SessionSpec("active", malicious), rank=rank),
        }
        assert set(expected) == set(ENGINES)
        for name, ledger in expected.items():
            found = cost_of(program, shapes, SessionSpec(name), rank)
            assert found.snapshot() == ledger.snapshot(), (name, rank)


def test_what_is_watched_gives_the_same_results() -> None:
    engine, watch = twopc.meter(0), Watch()
    watched = Watched(engine, watch)
    value, positive = watched.relu((WORDS,), 32)
    assert value[0].shape == positive[0].shape == WORDS.shape
    assert torch.equal(watched.add((WORDS,), (WORDS,), 32)[0], 2 * WORDS)
    assert [call.sample.method for call in watch.calls] == ["relu"]  # an addition sends nothing
    assert watched.parties == 2 and watched.lane(0).lanes == 1


def test_ciphertexts_count_with_what_they_compute() -> None:
    """Their messages are few, so that bytes tell nothing of their time."""
    x, w = torch.zeros((1, 400), dtype=torch.int64), torch.zeros((400, 120), dtype=torch.int64)
    found = {}
    for mode in ("ot", "lattice"):
        engine, watch = twopc.meter(0, linear=Linear(mode)), Watch()
        watched = Watched(engine, watch)
        watched.matmul(Operand((x,), 32), Operand((w,), 8, owner=0), 32)
        watched.relu((WORDS,), 32)
        product, relu = (call.sample for call in watch.calls)
        assert relu.computing == 0 and product.computing == engine.computing
        found[mode] = product
    assert found["ot"].computing == 0 < found["lattice"].computing
    assert found["ot"].key == found["lattice"].key
    own = {"calls": {"matmul": [1e-9, 1.0], "other": [0.0, 0.0]}}
    lattice = found["lattice"]
    assert seconds_of(own, lattice) == pytest.approx(1e-9 * lattice.size + lattice.computing)
    assert seconds_of(own, found["ot"]) == pytest.approx(1e-9 * found["ot"].size + found["ot"].products)


def test_prepared_products_count_with_what_their_owner_computes() -> None:
    product = Product(4, 300, 20, 32, 0, 8, True)
    call = ByTransfers("matmul", ((4, 300), (-1, 32, True)), ((300, 20), (0, 8, True)), (4, 300, 20, 32))
    form = form_of(product, ["a 0"], ("ideal", 0, "semi_honest"), Linear("auto", prepared=frozenset(["a 0"])), call)
    assert form.name == PREPARED and form.computing == pytest.approx(4 * 300 * 20 * WORD_PRODUCT)


# ---- time on a link
@pytest.mark.parametrize("name", ENGINES)
def test_a_long_delay_is_met_once_per_message_of_the_path(program: Program, name: str, tmp_path) -> None:
    """The delay is so long that the computing between messages does not count beside it."""
    delay = 1e6
    spec = SessionSpec(name, link=LinkProfile(1000 * delay))
    times = times_of(program, program.shapes(2), spec, instant(tmp_path))
    depths = [cost_of(program, program.shapes(2), spec, rank).snapshot().online.depth for rank in (0, 1)]
    online = max(depths)
    dealing = 1 if name == "threepc" else 0  # party 0 waits for the first of it, too
    assert online - 0.01 <= times.online / delay <= online + dealing + 0.01
    assert 0 < sum(times.nodes.values()) <= times.online + 0.01  # inputs are shared before the first layer


def test_a_thin_link_is_as_slow_as_its_bytes(program: Program, tmp_path) -> None:
    spec = SessionSpec("twopc", link=LinkProfile(0.0, 1.0 / 1e6))
    times = times_of(program, program.shapes(2), spec, instant(tmp_path))
    online = program.cost(program.shapes(2), SessionSpec()).snapshot().online
    assert 8 * max(online.sent, online.received) <= times.online <= 8 * online.bytes + 60


def test_calls_and_correlations_take_their_time(program: Program, tmp_path) -> None:
    spec, shapes = SessionSpec("twopc"), program.shapes(2)
    made = calls_of(program, shapes, spec)
    seconds = {named(spec, call.sample): 1e6 for call in made}
    calibration = Calibration(tmp_path / "some.json", Instant({**seconds, correlation(spec): 1.0, setup(spec): 3.0}))
    times = times_of(program, shapes, spec, calibration)
    assert times.online / 1e6 == pytest.approx(len(made), abs=0.01)
    drawn = program.correlations(shapes)
    assert times.preprocess >= drawn.total and times.setup == 3.0


def test_items_of_each_kind_take_their_time(program: Program, tmp_path) -> None:
    spec, shapes = SessionSpec("active"), program.shapes(2)
    demand = program.demand(shapes, spec)
    wanted = demands.items_of(demand)
    assert wanted[Item("masks", 0)] == demand["masks"][0] and wanted[Item("triples")] == demand["triples"] > 0
    assert {part for kind, part in wanted if kind == "edabits"} == set(demand["edabits"])
    seconds = {of_kind(spec, item): 1e3 * place for place, item in enumerate(wanted, 1)}
    times = times_of(program, shapes, spec, Calibration(tmp_path / "some.json", Instant(seconds)))
    expected = sum(1e3 * place * count for place, count in enumerate(wanted.values(), 1))
    assert times.preprocess == pytest.approx(expected) and times.online < 60


def test_demands_are_distinguished_and_multiplied(program: Program) -> None:
    demand = program.demand(program.shapes(2), SessionSpec.of("active", ring=64))
    assert demands.difference(demands.times(demand, 3), demands.times(demand, 2)) == demand
    for item, count in demands.items_of(demand).items():
        assert demands.items_of(demands.demand_for(item, count, demand)) == {item: count}


def test_a_meter_of_three_knows_when_messages_are_there() -> None:
    meter = Meter(0)
    meter.set_link(1.0, 0.5)
    meter.round([Message(0, 1, 4), Message(1, 0, 2)], {})
    assert meter.times == [2.0, 3.0, 0.0]
    meter.round([Message(1, 2, 2)], {})
    assert meter.times[2] == 3.0 + 1.0 + 1.0
    meter.deal(None, 8)  # the dealer did not wait for the others
    assert meter.times[0] == 5.0
    meter.compute(10.0)
    meter.deal(None, 2)  # its program goes on as they do
    assert meter.times[0] == 15.0


def test_a_meter_of_two_knows_when_messages_are_there() -> None:
    engine = twopc.meter(0, OtChoice("ideal"))
    engine.set_link(1.0, 0.5)
    engine.reveal((torch.ones(4, dtype=torch.int64),), 8, None)  # four bytes each way at once
    assert engine.elapsed() == 3.0
    engine.compute(2.0)
    assert engine.elapsed() == 5.0
    with pytest.raises(ValueError, match="no time"):
        engine.set_link(-1.0, 0.0)


def test_a_calibration_keeps_what_it_knows(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PRIVML_CACHE", str(tmp_path))
    calibration = Calibration.load()
    assert calibration.seconds == {}
    calibration.seconds["a"] = 0.25
    calibration.save()
    assert Calibration.load().seconds == {"a": 0.25} and Calibration.load(fresh=True).seconds == {}
    calibration.path.write_text("{")
    assert Calibration.load().seconds == {}


def test_settings_that_measure_alike_share_their_calls() -> None:
    sample = describe("relu", [(WORDS,), 32], {}, 1, 10).sample
    one, other = SessionSpec("twopc", OtChoice(k=2)), SessionSpec("twopc", OtChoice(k=8))
    assert named(one, sample) == named(other, sample)
    assert setup(one) != setup(other) and correlation(one) != correlation(other)
    assert named(SessionSpec("threepc"), sample) != named(one, sample)
    assert threepc.meter(0).elapsed() == 0.0
