# SPDX-License-Identifier: Apache-2.0
"""The operator cases on floats: against float64 everywhere, and on every engine that has floats bit for bit alike."""

import pytest
import torch
from function_cases import CASES
from test_ops import exact_result

import privml
from privml.errors import ConfigError, InvalidInput
from privml.formats import Boolean, FixedPoint, Float


def run(case, **session):
    """Result, its value and its format; inputs are alternately of the two parties."""
    with privml.local(floating="float32", **session), torch.no_grad():
        result = case.function(*(privml.share(value, owner=i % 2) for i, value in enumerate(case.inputs)))
        return privml.reveal(result), result.format


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operator_on_floats(case):
    value, fmt = run(case)
    expected, exact = case.function(*case.inputs), exact_result(case)
    assert value.dtype is expected.dtype and value.shape == expected.shape
    if isinstance(fmt, FixedPoint) or case.name in FAR_ANGLES:  # the former of integers and bits
        bound = case.tolerance * 2.0**-16
    else:
        bound = 2.0**-21 * max(1.0, float(exact.abs().max()))
    assert (value.double() - exact).abs().max() <= bound + 1e-6 * float(exact.abs().max())


# Of rules made of functions.
FUNCTIONS = (
    "exp", "log1p", "pow_real", "div_signed", "sin", "gelu", "softplus", "softmax", "log_softmax", "cross_entropy",
    "cross_entropy_secret_classes", "layer_norm", "attention",
)  # fmt: skip
# The error of x / pi, times pi.
FAR_ANGLES = ("cos", "tan_of_large")
# One of every kind of rule: what they share, elementwise rows of the same operators would only repeat.
TOGETHER = (
    "cat_public", "pad_value", "scatter", "scatter_add", "add_broadcast", "add_mixed_dtype", "sub", "sum_dims",
    "cumsum", "mul_broadcast", "mul_bits_fixed", "mul_integer_fixed", "pow", "mm", "mm_public_left", "bmm", "linear_3d",
    "addmm_scaled", "conv2d_groups", "conv1d", "conv_transpose2d", "lt", "ge_scalar", "eq", "gt_public", "where",
    "where_public_value", "masked_fill_infinity", "maximum", "minimum", "amax_dims", "argmax_ties", "max_dim_index",
    "relu", "relu6", "leaky_relu", "abs", "sign", "threshold", "max_pool2d_overlap", "max_pool2d_indices",
    "writes_through_views", "secret_mask_write",
)  # fmt: skip


@pytest.fixture(scope="module")
def two_parties():
    session = privml.local("twopc", ot="ideal", floating="float32")
    yield session
    session.close()


def words_of(result):
    """What the revealed tensor consists of, whatever its format."""
    engine, fmt = result.session.engine, result.format
    if isinstance(fmt, Float):
        return engine.reveal_words(result.share, fmt)
    return engine.reveal_bits(result.share) if fmt == Boolean() else engine.reveal(result.share, fmt.bits)


@pytest.mark.parametrize("name", TOGETHER + FUNCTIONS)
def test_two_parties_compute_what_plain_does(name, two_parties):
    case = next(case for case in CASES if case.name == name)
    results = []
    for session in (two_parties, privml.local("plain", floating="float32")):
        with torch.no_grad():
            secrets = [privml.share(v, owner=i % 2, session=session) for i, v in enumerate(case.inputs)]
            results.append(case.function(*secrets))
    assert results[0].format == results[1].format
    assert torch.equal(words_of(results[0]), words_of(results[1]))


@pytest.mark.parametrize("fmt", [Float(8, 7), Float(5, 10), Float(8, 23)])
def test_shares_open_to_those_who_may_know(fmt):
    x = torch.tensor([1.5, -0.0, float("inf"), -3e-5])
    with privml.local("twopc", ot="ideal"):
        shared = privml.share(x, format=fmt) + privml.share(torch.zeros(4), owner=1, format=fmt)
        for to in (None, 0, 1):
            assert torch.equal(privml.reveal(shared, to), privml.reveal(privml.share(x, format=fmt)) + 0.0)


def test_narrow_floats_meet_wide_ones_and_fixed_point():
    with privml.local():
        a = privml.share(torch.tensor([1.0, 3.0]), format=Float(8, 7))
        b = privml.share(torch.tensor([2.0**-20, 1.0]), owner=1, format=Float(5, 10))
        c = privml.share(torch.tensor([0.5, -0.25]), format=FixedPoint(32, 8))
        assert (a + b).format == Float(8, 10) and privml.reveal(a + b).tolist() == [1.0, 4.0]
        assert (c * a).format == Float(8, 7) and privml.reveal(c * a).tolist() == [0.5, -0.75]
        assert privml.reveal(c < a).tolist() == [True, True]


def test_a_network_learns_in_floats_as_torch_does():
    torch.manual_seed(3)
    make = lambda: torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))  # noqa: E731
    clear, hidden = make(), make()
    hidden.load_state_dict(clear.state_dict())
    x, y = torch.randn(6, 5) * 1e-4, torch.randn(6, 2)

    def step(model, x, y):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.125, momentum=0.5)
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()

    step(clear, x, y)
    with privml.local(floating="float32"):
        step(privml.secret(hidden), privml.share(x, owner=1), privml.share(y, owner=1))
        for mine, theirs in zip(hidden.parameters(), clear.parameters(), strict=True):
            assert mine.format == Float(8, 23)
            assert torch.allclose(privml.reveal(mine.detach()), theirs, rtol=1e-5, atol=1e-7)


def test_writes_keep_the_float_format():
    with privml.local(floating="float32"):
        x = privml.share(torch.tensor([1e-30, 2.0, 3e30]))
        x[1:] *= 1e-20
        x[0] = privml.share(torch.tensor(0.1), owner=1, format=FixedPoint(32, 8))
        expected = torch.cat([torch.tensor([26 / 256]), torch.tensor([2.0, 3e30]) * 1e-20])
        assert x.format == Float() and torch.equal(privml.reveal(x), expected)


def test_infinities_compare_and_nan_is_refused():
    with privml.local(floating="float32"):
        x = privml.share(torch.tensor([float("inf"), -1.0, float("-inf")]))
        assert privml.reveal(torch.isinf(x)).tolist() == [True, False, True]
        assert privml.reveal(x > 3e38).tolist() == [True, False, False]
        with pytest.raises(InvalidInput, match="NaN"):
            privml.share(torch.tensor([float("nan")]))
        with pytest.raises(InvalidInput, match="NaN"):
            x + float("nan")


def test_public_reals_under_secret_bits_and_integers_become_floats(two_parties):
    small = torch.tensor([1e-9, 0.3, -2e-7])
    for session in (two_parties, privml.local("plain", floating="float32")):
        bits = privml.share(torch.tensor([True, False, True]), owner=1, session=session)
        whole = privml.share(torch.tensor([1, -3, 7]), session=session)
        for result, expected in (
            (torch.where(bits, small, -small), torch.tensor([1e-9, -0.3, -2e-7])),
            (bits * small, torch.tensor([1e-9, 0.0, -2e-7])),
            (whole / 3.0, torch.tensor([1, -3, 7]) / 3),
            (1e-3 - whole, 1e-3 - torch.tensor([1, -3, 7])),
        ):
            assert result.format == Float() and torch.equal(privml.reveal(result), expected)
        assert (whole + 1).format != Float()


def test_engines_without_floats_say_which_have_them():
    from additive_engine import AdditiveEngine

    from privml.context import Session

    with Session(AdditiveEngine()), pytest.raises(ConfigError, match="engines plain and twopc have"):
        x = privml.share(torch.ones(2), format=Float())
        x + privml.share(torch.ones(2), owner=1, format=Float())


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)], ids=str)
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_of_nothing_are_zero(shape, keepdim):
    x = torch.ones(shape)
    with privml.local("twopc", ot="ideal", floating="float32"):
        secret = privml.share(x, owner=1)
        for dims in ([0], [len(shape) - 1], list(range(len(shape)))):
            value = privml.reveal(secret.sum(dims, keepdim=keepdim))
            assert value.shape == x.sum(dims, keepdim=keepdim).shape and not value.any()


@pytest.mark.parametrize("sizes", [(2, 0, 3), (0, 2, 3), (2, 3, 0)], ids=str)
def test_products_of_empty_matrices(sizes):
    n, k, m = sizes
    with privml.local(floating="float32"):
        value = privml.reveal(privml.share(torch.ones(n, k)) @ privml.share(torch.ones(k, m)))
    assert value.shape == (n, m) and not value.any()


@pytest.mark.parametrize("fmt", [Float(5, 10), Float(4, 3), Float(8, 10)], ids=str)
def test_products_of_shared_matrices_in_formats_of_few_exponents(fmt):
    a, b = (torch.arange(start, start + 6.0) for start in (1, -2))
    values = []
    for engine in ({}, {"engine": "twopc", "ot": "ideal"}):
        with privml.local(floating=fmt, **engine):
            x, y = privml.share(a, owner=0), privml.share(b, owner=1)
            values.append(privml.reveal((x + y).view(2, 3) @ (x - y).view(3, 2)))
    assert torch.equal(*values)
    exact = (a + b).view(2, 3) @ (a - b).view(3, 2)
    assert torch.allclose(values[0], exact, rtol=2.0**-fmt.mantissa)


def test_shared_floats_become_integers_of_64_bits():
    values = torch.tensor([0.0, 3.7, -3.7, 2.0**39, 1e12, -(2.0**62), 2.0**63 - 2.0**39, -(2.0**63)])
    with privml.local("twopc", ot="ideal", floating="float32"):
        shared = privml.share(values, owner=0) + privml.share(torch.zeros(1), owner=1)
        assert torch.equal(privml.reveal(shared.long()), values.long())


def test_convolution_of_no_images():
    with privml.local(floating="float32"):
        x, weight = privml.share(torch.zeros(0, 2, 4, 4)), privml.share(torch.ones(3, 2, 3, 3))
        assert privml.reveal(torch.nn.functional.conv2d(x, weight, padding=1)).shape == (0, 3, 4, 4)
