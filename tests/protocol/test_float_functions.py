# SPDX-License-Identifier: Apache-2.0
"""Functions of float32 as the core's module offers them: against doubles in the clear, then shares against these."""

import math

import numpy as np
import pytest
from parties import run_both, succeed
from test_float_primitives import numbers, revealed, shares, words

from privml import _core

secfloat = _core.secfloat

EXACT = {
    "sin_pi": lambda x: math.sin(math.pi * x),
    "cos_pi": lambda x: math.cos(math.pi * x),
    "tan_pi": lambda x: math.tan(math.pi * x),
    "exp2": lambda x: 2.0**x,
    "exp": math.exp,
    "log2": lambda x: math.log2(abs(x)),
    "log": lambda x: math.log(abs(x)),
    "rsqrt": lambda x: 1 / math.sqrt(abs(x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "erf": math.erf,
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
}


@pytest.fixture
def inputs():
    rng = np.random.default_rng(11)
    return (rng.uniform(-0.49, 0.49, 1500) * 2.0 ** rng.integers(-20, 1, 1500)).astype(np.float32)


@pytest.mark.parametrize("name", EXACT)
def test_clear_functions_are_within_a_unit(name, inputs):
    got = numbers(getattr(secfloat, f"clear_{name}")(words(inputs), 8, 23)).astype(float)
    exact = np.array([EXACT[name](float(x)) for x in inputs])
    unit = 2.0 ** (np.floor(np.log2(np.abs(exact))) - 23)
    assert np.max(np.abs(got - exact) / unit) < 1


def test_protocols_equal_the_clear_functions(inputs):
    x = words(inputs)
    mine = shares(x, 8, 23, np.random.default_rng(3))

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        return {name: getattr(secfloat, name)(session, mine[rank], 8, 23) for name in EXACT}, session.counters()

    (one, counters), (other, _) = succeed(run_both(party))
    for name in EXACT:
        clear = getattr(secfloat, f"clear_{name}")(x, 8, 23)
        assert np.array_equal(revealed(one[name], other[name], 8, 23), clear), name

    meter = _core.TwoPartySession.meter(0, "softspoken", 4)
    for name in EXACT:
        getattr(secfloat, name)(meter, x, 8, 23)
    booked = meter.counters()
    for phase in ("preprocess", "online"):
        assert {k: v for k, v in booked[phase].items() if k != "seconds"} == {
            k: v for k, v in counters[phase].items() if k != "seconds"
        }


@pytest.mark.parametrize("exponent", [3, -2])
def test_powers(exponent, inputs):
    x = words(inputs)
    mine = shares(x, 8, 23, np.random.default_rng(4))
    clear = secfloat.clear_power(x, exponent, 8, 23)
    exact = inputs.astype(float) ** exponent
    assert np.allclose(numbers(clear).astype(float), exact, rtol=2**-23, atol=0)

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "softspoken", 4)
        return secfloat.power(session, mine[rank], exponent, 8, 23)

    one, other = succeed(run_both(party))
    assert np.array_equal(revealed(one, other, 8, 23), clear)


def test_exponents_beyond_64_are_refused(inputs):
    with pytest.raises(ValueError, match="64"):
        secfloat.clear_power(words(inputs), 65, 8, 23)


def test_other_formats_are_refused(inputs):
    with pytest.raises(ValueError, match=r"\(8, 23\)"):
        secfloat.clear_exp(words(inputs), 5, 10)
