# SPDX-License-Identifier: Apache-2.0
"""The suite of real-number functions: every row computes what it is named after, and its bytes fall with the bound. The
suite of products by lattice ciphertexts: every row runs."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from omegaconf import OmegaConf
from parties import run_both, succeed

from privml import _core
from privml.cli.bench import params_of
from privml.cli.paths import config_directory
from privml.engines.twopc.convolutions import Convolution
from privml.engines.twopc.linear import Linear, byte_price
from privml.engines.twopc.wide import WideProduct
from privml.errors import ConfigError
from privml.measure.core_operators import bound_of, bounded, prepare


def operators(suite: str) -> dict:
    return OmegaConf.to_container(OmegaConf.load(config_directory() / "suite" / f"{suite}.yaml"))["operators"]


SUITE, PRODUCTS = operators("realfunc"), operators("linear")
# Sizes of products that take no time.
SMALL = {
    "rows": 4,
    "inner": 8,
    "columns": 6,
    "batch": 2,
    "queries": 2,
    "channels": 4,
    "outputs": 4,
    "groups": 4,
    "size": 6,
}


def run(row: dict, n: int) -> np.ndarray:
    """The sum of both parties' results."""

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        return prepare(row["operator"], _core, session, rank, n, row["params"])()

    first, second = succeed(run_both(party))
    return first + second


def signed(values: np.ndarray, bits: int) -> np.ndarray:
    return ((values + 2 ** (bits - 1)) & (2**bits - 1)) - 2 ** (bits - 1)


@pytest.mark.parametrize("name", [name for name, row in SUITE.items() if row["operator"] == "function"])
def test_functions_are_those_of_their_inputs(name):
    params = SUITE[name]["params"]
    bits, scale = params["bits"], params["scale"]
    shared = np.random.default_rng(0)
    x = shared.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) if params["sign"] >= 0 else 0, size=100, dtype=np.int64)
    exact = (np.sin if "sin" in params["function"] else np.exp)(x / 2.0**scale) * 2.0**scale
    values = signed(run(SUITE[name], 100), params.get("out_bits", bits))
    assert np.abs(values - exact).max() <= 1.5


@pytest.mark.parametrize("linear", ["ot", "lattice"])
def test_softmax_rows_sum_to_one(linear):
    row = SUITE["softmax_product"]
    params = {**row["params"], "length": 20, "linear": linear}
    x = sum(bounded({"bits": 37, "bound": 2.0**-21}, rank, 80) for rank in (0, 1))
    x = signed(x, 37).reshape(4, 20) / 4096
    expected = np.exp(x - x.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    values = signed(run({**row, "params": params}, 4), 37) / 4096
    assert np.abs(values - expected).max() <= 2 / 4096


def test_wraps_and_quotients():
    for bound in (0.5, 0.9999, 1.0):
        mw, divide = ({**SUITE[op]["params"], "bound": bound} for op in ("mw", "divide"))
        shares = [bounded(mw, rank, 500) for rank in (0, 1)]
        x = signed(sum(shares), 37)
        assert (np.abs(x) <= bound_of(mw)).all()
        wraps = run({"operator": "signed_wrap", "params": mw}, 500) & 3
        assert np.array_equal(wraps, (sum(shares) - x) >> 37)
        quotients = run({"operator": "divide", "params": divide}, 500)
        assert np.array_equal(signed(quotients, 37), x // divide["divisor"])


def test_the_bound_is_a_setting_of_operators_that_have_one():
    config = OmegaConf.create({"bound": 0.9999})
    assert params_of(config, "mw", SUITE["mw"])["bound"] == 0.9999
    with pytest.raises(ConfigError, match="exp has no bound"):
        params_of(config, "exp", SUITE["exp"])
    with pytest.raises(ConfigError, match="at most 1"):
        params_of(OmegaConf.create({"bound": 2}), "mw", SUITE["mw"])


# Of a link of 100 Mbit/s.
WAN = {"seconds_per_byte": 8e-8}


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_row_of_products_runs(name):
    row = PRODUCTS[name]
    params = {key: min(value, SMALL.get(key, value)) for key, value in row["params"].items()} | WAN

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        prepare(row["operator"], _core, session, rank, 2, params)()
        counters = session.counters()
        return sum(counters[phase]["sent"] for phase in ("preprocess", "online"))

    alone = row["operator"] in ("lattice_transform", "lattice_encrypt")
    assert (sum(succeed(run_both(party))) == 0) == alone


def sent_by(action: Callable[[object], object]) -> int:
    """Bytes that party 0 of a meter sends and receives."""
    meter = _core.TwoPartySession.meter(0, "ideal", 0, "semi_honest", 1, False, True)
    run = action(meter)
    before = meter.counters()["online"]
    run()
    after = meter.counters()["online"]
    return sum(after[way] - before[way] for way in ("sent", "received"))


def planned(name: str, seconds_per_byte: float) -> tuple[int, int]:
    """Bytes of a row of products, and of the engine's plan of the same product."""
    row, linear = PRODUCTS[name], Linear(mode="auto", seconds_per_byte=seconds_per_byte)
    params = {**row["params"], "seconds_per_byte": seconds_per_byte}
    bits, core = params["out_bits"], _core.twopc
    shared, owned = (-1, bits, True), (0, params.get("bits"), True)

    def wide(meter: object) -> Callable[[], object]:
        sizes = tuple(params[key] for key in ("batch", "rows", "inner", "columns"))
        x, y = (np.zeros((sizes[0], *sizes[i : i + 2]), np.int64) for i in (1, 2))
        product = WideProduct(*sizes, bits, shared, owned if "bits" in params else shared, byte_price(linear))
        formats = x, product.x_format, y, product.y_format
        keys = core.WideKeys()
        run = partial(core.wide_matmul, meter, keys, *formats, product.sizes, bits, False, product.byte_price)
        run()
        return run

    def convolved(meter: object) -> Callable[[], object]:
        inputs, outputs, size, groups = (params.get(key, 1) for key in ("channels", "outputs", "size", "groups"))
        window = (params.get("stride", 1),) * 2, (1, 1), (1, 1), groups
        kernel = outputs, inputs // groups, 3, 3
        task = Convolution(1, (inputs, size, size), kernel, window, bits, 0, params["bits"], True).core(1, linear)
        x, weights = np.zeros((1, inputs, size, size), np.int64), np.zeros(kernel, np.int64)
        keys = core.PackingKeys(0, 1)
        run = partial(core.lattice_convolve, meter, keys, task, x, shared, weights)
        run()
        return run

    ours = sent_by(lambda meter: prepare(row["operator"], _core, meter, 0, 1, params))
    return ours, sent_by(wide if row["operator"] == "wide_matmul" else convolved)


@pytest.mark.parametrize("name", ["matmul_wide", "attention", "conv3x3", "conv3x3_stride2"])
def test_products_are_planned_as_in_the_engine(name):
    sent = set()
    for seconds_per_byte in (0.0, 1e-6):
        ours, engines = planned(name, seconds_per_byte)
        assert ours == engines
        sent.add(ours)
    assert len(sent) == 2  # the link matters
