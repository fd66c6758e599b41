# SPDX-License-Identifier: Apache-2.0
"""What rules promise of the library's functions holds for the functions' own arithmetic."""

import pytest
import torch
import torch.nn.functional as F

import privml
from privml.engines.catalogue import FORMS, FUNCTIONS, exp_negative_function, has_reciprocal1p
from privml.engines.plain.engine import PlainEngine
from privml.formats import FixedPoint
from privml.ops.fixed import evaluate, target_of

SOURCES = [(16, 12), (16, 8), (13, 4), (20, 12), (24, 16), (32, 16), (32, 20), (32, 10), (8, 4)]
TARGETS = [(10, 8), (14, 12), (18, 16), (22, 20), (26, 24), (32, 30), (32, 16)]


def inputs(bits, domain):
    """All values of up to 16 bits; of wider formats random ones of all magnitudes, and those around zero."""
    if bits <= 16:
        values = torch.arange(-(2 ** (bits - 1)), 2 ** (bits - 1))
    else:
        generator = torch.Generator().manual_seed(bits)
        draw = torch.randint(0, 2 ** (bits - 1), (20_000,), generator=generator)
        draw = draw >> torch.randint(0, bits - 1, draw.shape, generator=generator)
        values = torch.cat([draw, -draw - 1, torch.arange(-2000, 2000)])
    keep = {"all": values == values, "x > 0": values > 0, "x >= 0": values >= 0, "x <= 0": values <= 0}[domain]
    return values[keep]


def serves(name, source, target):
    """Forms of exponentials and of reciprocals are not there for all formats."""
    if name == "reciprocal1p":
        return has_reciprocal1p(source, target)
    if not name.startswith("exp_negative_"):
        return True
    return exp_negative_function(name.removeprefix("exp_negative_"), source, target) == name


@pytest.mark.parametrize("name", FUNCTIONS | FORMS)
def test_signs_and_bounds(name):
    """A claim that fails on one value would make the next protocol compute something else."""
    engine = PlainEngine()
    with privml.local("plain", check_overflow=name != "exp"):  # exponentials saturate, which is reported else
        for bits, scale in SOURCES:
            x = inputs(bits, (FUNCTIONS | FORMS)[name])
            for target in TARGETS:
                if not serves(name, FixedPoint(bits, scale), FixedPoint(*target)):
                    continue
                fitting = x
                if name == "softplus":  # grows beyond the format and wraps there, as every sum does
                    fitting = x[x < (2.0 ** (target[0] - 1 - target[1]) - 1) * 2**scale]
                like = privml.share(torch.zeros(fitting.shape))
                secret = privml.SecretTensor((fitting,), FixedPoint(bits, scale), like.placement, like.session)
                result = evaluate(secret, name, FixedPoint(*target))
                fmt, value = result.format, result.share[0]
                assert (fmt.bits, fmt.scale) == target
                what = f"{name} from {bits, scale} to {target}"
                assert not fmt.nonnegative or int(value.min()) >= 0, what
                assert fmt.bound is None or int(value.abs().max()) < fmt.bound, what
    assert engine.components == 1


@pytest.mark.parametrize("wanted", [(64, 16), (64, 24), (64, 32), (32, 12), (18, 16), (12, 10), (9, 3), (40, 5)])
@pytest.mark.parametrize("size", [None, 0, 1, 5, 12, 30])
def test_targets_are_formats_of_the_library(size, wanted):
    target = target_of(size, FixedPoint(*wanted))
    assert 8 <= target.bits <= 32 and 0 <= target.scale <= target.bits - 2 and target.scale <= max(wanted[1], 6)
    if size is not None and size <= 12 and wanted[1] <= 16:
        assert target.scale == wanted[1] and target.bits - 1 - target.scale >= size


# Every operator with a promise about its format, on arguments that calibration saw to be small.
SMALL = {
    "silu": F.silu, "gelu": F.gelu, "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"), "sigmoid": torch.sigmoid,
    "tanh": torch.tanh, "erf": torch.erf, "erfc": torch.erfc, "softplus": F.softplus, "mish": F.mish, "elu": F.elu,
    "log_sigmoid": F.logsigmoid, "exp": torch.exp, "exp2": torch.exp2, "expm1": torch.expm1, "log1p": torch.log1p,
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "sinh": torch.sinh, "cosh": torch.cosh,
    "sqrt": lambda x: torch.sqrt(x.abs()), "rsqrt": lambda x: torch.rsqrt(x.abs() + 0.25),
    "reciprocal": lambda x: 1 / (x + 1.5), "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1), "logsumexp": lambda x: torch.logsumexp(x, -1),
    "layer_norm": lambda x: F.layer_norm(x, (8,)), "rms_norm": lambda x: F.rms_norm(x, (8,), eps=1e-5),
    "group_norm": lambda x: F.group_norm(x, 1), "std": lambda x: x.std(-1),
    "normalize": lambda x: F.normalize(x, dim=-1),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
}  # fmt: skip


@pytest.mark.parametrize("bits, scale", [(13, 12), (17, 16), (9, 12), (28, 27)])
@pytest.mark.parametrize("engine", ["plain", "twopc", "threepc"])
def test_functions_of_values_known_to_be_small(engine, bits, scale):
    """Calibration gives such values formats without a bit for ones, which the functions do not take."""
    x = torch.linspace(-0.9, 0.9, 8).reshape(1, 8) * 2.0 ** (bits - 1 - scale)
    options = {"plain": {}, "twopc": {"ot": "ideal"}, "threepc": {"truncation": "exact"}}[engine]
    names = SMALL if engine == "plain" or scale == 16 else ("silu", "exp", "rsqrt", "softmax", "layer_norm")
    with privml.local(engine, **options):
        small = privml.share(x, 0, FixedPoint(bits, scale), wide=True)  # as programs do
        for name in names:
            error = (privml.reveal(SMALL[name](small)) - SMALL[name](x)).abs().max()
            assert error < (0.2 if "norm" in name else 2.0**-9), f"{name}: {error}"
