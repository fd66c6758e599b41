# SPDX-License-Identifier: Apache-2.0
"""A client enters a legal input that overflows, again and again: results that depend on the shares would tell it
secret activations. They are functions of the values: those of ``plain`` without overflow checks."""

import ast
import importlib
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from overflowing_networks import NETWORKS, ROWS, TIMES, answers, overflowing
from parties import run_both, succeed

import privml
from privml.engines import ring
from privml.engines.composed.steps import COEFFICIENT_SCALE, spline
from privml.engines.threepc import pieces
from privml.errors import ConfigError, InvalidInput, OverflowDetected
from privml.formats import FixedPoint
from privml.ops import ring_formats
from privml.ops.fixed import evaluate, result_format

_core = pytest.importorskip("privml._core", reason="the C++ core is not built; run `make build`")

ROOT = Path(privml.__file__).parent


def check(name, engine, like, settings, **numerics):
    program, x = overflowing(name, **numerics)
    expected = answers(program, x, "plain", check_overflow=False, **like)
    result = answers(program, x, engine, **settings)
    rows = result.reshape(ROWS, TIMES, -1)
    assert torch.equal(rows, rows[:, :1].expand_as(rows)), "the same query has different answers"
    assert torch.equal(result, expected)
    return program, x


@pytest.mark.parametrize("bounds", ["proved", "calibrated"])
@pytest.mark.parametrize("name", NETWORKS)
def test_overflowing_queries_have_one_answer(name, bounds):
    program, x = check(name, "twopc", {}, {"ot": "ideal"}, bounds=bounds)
    with pytest.raises(OverflowDetected):
        answers(program, x, "plain")


@pytest.mark.parametrize("name", ["average pool", "padded maximum pool", "division", "softmax", "attention"])
def test_overflowing_queries_have_one_answer_with_a_dealer(name):
    check(name, "threepc", {"like": "threepc"}, {"truncation": "exact"})


@pytest.mark.parametrize("name", ["average pool", "division", "square"])
def test_overflowing_queries_of_a_full_ring_have_one_answer_with_a_dealer(name):
    check(name, "threepc", {"like": "threepc"}, {"truncation": "exact"}, bits=64)


def test_mean_squares_beyond_an_argument_have_one_answer_with_a_dealer():
    """The inverse root of such a one is larger than its format was made for."""
    check("norm of a sum", "threepc", {"like": "threepc"}, {"truncation": "exact"}, scale=12)


@pytest.mark.parametrize("engine", ["threepc", "active"])
@pytest.mark.parametrize("name", ["softmax", "log softmax"])
def test_answers_to_an_overflowing_query_differ_by_what_truncations_round(name, engine):
    """Differences of the numbers in a softmax's row do not wrap, so that no exponential grows."""
    program, x = overflowing(name)
    settings = {"ot": "ideal"} if engine == "active" else {}
    rows = answers(program, x, engine, **settings).reshape(ROWS, TIMES, -1)
    assert (rows.amax(1) - rows.amin(1)).max() <= 16 * 2.0**-8


def near_the_ends_of_a_full_ring():
    steps = torch.cat([torch.arange(20), 1 << torch.arange(5, 40)])
    return torch.cat([(1 << 63) - 1 - steps, steps - (1 << 63), (1 << 62) + steps, -steps - (1 << 62)])


@pytest.mark.parametrize(
    "name", ["sigmoid", "tanh", "erf", "gelu", "gelu_tanh", "silu", "softplus", "exp", "sin", "cos"]
)
@pytest.mark.parametrize("formats", [(64, 16, 32, 16), (64, 24, 32, 12), (64, 0, 32, 16)])
def test_functions_of_any_number_of_a_full_ring_do_not_depend_on_the_shares(name, formats):
    source, target = FixedPoint(*formats[:2]), FixedPoint(*formats[2:])
    numbers = near_the_ends_of_a_full_ring()
    x = numbers.repeat(20)
    results = {}
    for engine, settings in (
        ("threepc", {"truncation": "exact"}),
        ("plain", {"like": "threepc", "check_overflow": False}),
    ):
        with privml.local(engine, **settings) as session:
            share = session.engine.input(x, x.shape, 0, source.bits)
            results[engine] = session.engine.reveal(session.engine.function(name, share, source, target), 64)
    assert torch.equal(*results.values())
    low, high = ring_formats.interval(result_format(name, source, target, wide=True))
    assert low <= int(results["plain"].min()) and int(results["plain"].max()) <= high
    if name in ("sigmoid", "tanh", "erf", "exp"):
        least = -1 if name in ("tanh", "erf") else 0
        most = (1 << (target.bits - 1)) - 1 if name == "exp" else 1 << target.scale
        expected = torch.where(x < 0, least << target.scale, most)
        assert torch.equal(results["plain"], expected)


@pytest.mark.parametrize("name", ["average pool", "division"])
def test_overflowing_queries_have_one_answer_against_an_active_party(name):
    check(name, "active", {"like": "active"}, {"ot": "ideal", "truncation": "exact"})


def test_sixty_queries_leave_an_activation_as_secret_as_one():
    """The attack: each query's own share of a hidden sum tells which sums fit the answer, if the answer depends on it.
    The sum of four activations wraps to a negative number of its ring, which a promise of its sign would truncate
    wrongly in about half of all sharings."""
    fmt, hidden, queries = FixedPoint(17, 8), 0.9 * 2**8, 60
    with privml.local("twopc", bits=17, scale=8, ot="ideal"):
        x = privml.share(torch.full((queries, 4), hidden), 0, fmt) + privml.share(torch.zeros(queries, 4), 1, fmt)
        pooled = privml.reveal(torch.nn.functional.avg_pool1d(torch.relu(x).unsqueeze(1), 4) / 2)
    with privml.local("plain", bits=17, scale=8, check_overflow=False):
        x = privml.share(torch.full((1, 4), hidden), 0, fmt)
        expected = privml.reveal(torch.nn.functional.avg_pool1d(torch.relu(x).unsqueeze(1), 4) / 2)
    assert torch.equal(pooled, expected.expand_as(pooled))


def test_the_largest_numbers_of_a_ring_are_rounded_without_a_wrap():
    """Half a unit added before a shift does not fit beside them."""
    top = torch.tensor([(2**15 - 1) / 16, (2**15 - 8) / 16, 0.0]).repeat(50)
    results = []
    for engine, settings in (("twopc", {"ot": "ideal"}), ("plain", {"check_overflow": False})):
        with privml.local(engine, bits=16, scale=4, **settings):
            x = torch.relu(privml.share(top, 0) + privml.share(torch.zeros(150), 1))
            results.append(privml.reveal(x / 16))
    assert torch.equal(*results) and results[0][0] == 128


def test_inputs_keep_the_bound_of_their_format():
    with privml.local("plain"), pytest.raises(InvalidInput, match=r"index \(1,\) is not"):
        privml.share(torch.tensor([3.9, 4.1]), 0, FixedPoint(32, 8, bound=4 << 8))


# Who may write what is known of a value into a format.
MAKERS = {
    ("ops/ring_formats.py", "proved"): "the proof",
    ("graph/passes/scales.py", "weight_format"): "weights, which their owner checks as it shares them",
    ("graph/passes/write_formats.py", "_annotate"): "inputs, which their owner checks as it shares them",
    ("graph/passes/write_formats.py", "_bounded"): "what calibration saw: the ring that a result is reduced to",
    ("sharing.py", "share"): "an input's range, which was checked",
    ("graph/body.py", "_decode_format"): "formats of a program file: of inputs and weights, which owners check",
    ("checkpoint.py", "_tensors"): "formats of one's own checkpoint",
}
# Rules that prove what they say of a result, or of something public, in other ways than from its operands' ranges.
CLAIMS = {
    ("ops/compare.py", "_either"): "one of two values",
    ("ops/compare.py", "abs_"): "a magnitude",
    ("ops/division.py", "magnitude"): "a magnitude",
    ("ops/exponential.py", "decay"): "a number that is not positive, cut off below",
    ("ops/fixed.py", "evaluate"): "the range of a function for any argument of its format, below",
    ("ops/fixed.py", "known"): "a softmax, a vector divided by its deviation: where no step can have wrapped",
    (
        "ops/fixed.py",
        "times",
    ): "a product as large as its caller proves, where the result's ring holds that and a spare bit",
    ("ops/maximum.py", "_limited"): "the larger or smaller of a value and a number, where their difference fits",
    ("ops/maximum.py", "amin"): "one of the values",
    ("ops/maximum.py", "maximum"): "the larger of two, where their difference fits",
    ("ops/maximum.py", "position"): "one of some public numbers",
    ("ops/maximum.py", "rectified_in"): "a quotient of a value where it is not negative, else zero",
    ("ops/maximum.py", "rectify"): "a value where it is not negative, else zero",
    ("ops/moments.py", "centered"): "a mean between the values, where their sum cannot wrap",
    ("ops/moments.py", "divided_by_deviation"): "a mean square, where the sum of squares cannot wrap",
    ("ops/secret_places.py", "_rows"): "one of the rows, where the place is proved to lie among them",
    ("ops/secret_places.py", "gather"): "one of the elements, where the place is proved to lie among them",
    ("ops/smooth.py", "mish"): "the smaller of a value and a number",
    ("ops/softmax.py", "_inverse"): "a sum of exponentials, one of which is 1, less 1: where no step can have wrapped",
    (
        "ops/sorting.py",
        "_sorted",
    ): "one of the values, or of their places: an exchange adds and subtracts the same number",
    ("ops/sorting.py", "_sorted_floats"): "one of the places: an exchange takes one of two",
    ("ops/structural.py", "_toward_zero"): "a number without its fraction",
    (
        "ops/whole_division.py",
        "_whole",
    ): "a quotient or rest by a public number, exact in the whole ring",
}


def functions_that(find):
    """(file, function) of every function of the package in which ``find`` says yes to a node."""
    found = set()
    for path in ROOT.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and any(find(node) for node in ast.walk(function)):
                found.add((path.relative_to(ROOT).as_posix(), function.name))
    return found


def called(node):
    """The name of the function that a node calls."""
    function = node.func if isinstance(node, ast.Call) else None
    function = function.value if isinstance(function, ast.Subscript) else function
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", None)


def makes_knowledge(node):
    name = called(node)
    if name not in ("FixedPoint", "Integer", "FORMATS", "kind", "replace"):
        return False
    given = {keyword.arg for keyword in node.keywords}
    plain = {"FixedPoint": 2, "Integer": 1}.get(name, len(node.args))
    fields = name in ("FORMATS", "kind") and None in given  # of a file
    return len(node.args) > plain or bool(given & {"nonnegative", "bound"}) and "share" not in given or fields


def test_formats_get_their_knowledge_from_one_function():
    found = functions_that(makes_knowledge)
    assert ("ops/ring_formats.py", "proved") in found
    others = {place for place in found if place[0].startswith(("ops/", "graph/", "sharing", "program", "checkpoint"))}
    assert others == set(MAKERS), others ^ set(MAKERS)


def test_rules_that_claim_more_than_their_operands_ranges_tell_are_listed():
    def claims(node):
        written = isinstance(node, ast.Assign) and "cell.format" in ast.unparse(node.targets[0])
        return called(node) in ("claimed", "claim") or written

    others = {("ops/values.py", "claimed"), ("ops/in_place.py", "write"), ("ops/in_place.py", "_open_to_all")}
    found = {place for place in functions_that(claims) if place[0].startswith("ops/")} - others
    assert found == set(CLAIMS), found ^ set(CLAIMS)


@pytest.mark.parametrize("name", ["exp_negative", "exp", "sigmoid", "tanh", "reciprocal", "rsqrt", "sqrt", "log", "erf",
                                  "gelu", "gelu_tanh", "silu", "softplus", "sin", "cos"])  # fmt: skip
@pytest.mark.parametrize("formats", [(10, 4, 12, 7), (12, 8, 16, 12), (13, 2, 13, 2)])
def test_functions_keep_the_ranges_that_are_claimed_for_any_argument(name, formats):
    source, target = FixedPoint(*formats[:2]), FixedPoint(*formats[2:])
    x = torch.arange(-(1 << (source.bits - 1)), 1 << (source.bits - 1))
    fmt = result_format(name, source, target)
    mask = torch.randint(0, 1 << source.bits, x.shape, generator=torch.Generator().manual_seed(1))
    shares = [mask.numpy(), ((x - mask) & ((1 << source.bits) - 1)).numpy()]

    def party(rank, channel):
        session = _core.TwoPartySession(channel, rank, "ideal", test_seed=3)
        return torch.from_numpy(getattr(_core.fixmath, name)(session, shares[rank], *formats))

    value = ring.wrap(sum(succeed(run_both(party))), target.bits)
    clear = getattr(_core.fixmath, f"clear_{name}")(x.numpy(), *formats)
    assert torch.equal(value, ring.wrap(torch.from_numpy(clear), target.bits)), "it depends on the shares"
    low, high = ring_formats.interval(fmt)
    assert low <= int(value.min()) and int(value.max()) <= high


def wide_arguments(size):
    """Of all orders, also around the ends of the numbers that are compared, with -size <= x < size."""
    generator = torch.Generator().manual_seed(1)
    sizes = torch.cat([torch.randint(0, 1 << 62, (200,), generator=generator) >> shift for shift in range(62)])
    ends = [(1 << bits) + torch.arange(-100, 100) for bits in (32, 33, 34)]
    x = torch.cat([torch.arange(100), sizes, *ends])
    x = torch.cat([x, -x, torch.tensor([size - 1, -size])])
    return x[(x >= -size) & (x < size)]


def inverses(name, x, source, target, truncation):
    with privml.local("threepc", truncation=truncation) as session:
        engine = session.engine
        return engine.reveal(engine.function(name, engine.input(x, x.shape, 0, source.bits), source, target), 64)


@pytest.mark.parametrize("truncation", ["exact", "auto"])
@pytest.mark.parametrize("formats", [(64, 16, 32, 16), (64, 24, 32, 21), (64, 31, 32, 21)])
@pytest.mark.parametrize("name", ["rsqrt", "reciprocal"])
def test_inverses_in_wide_rings_keep_the_range_that_is_claimed_for_any_argument(name, formats, truncation):
    """A mean of squares that has left the 32 bits of an argument counts as a number that is not positive; a reciprocal
    there can be that of any positive number."""
    source, target = FixedPoint(*formats[:2]), FixedPoint(*formats[2:])
    value = inverses(name, wide_arguments(1 << 62), source, target, truncation)
    low, high = ring_formats.interval(result_format(name, source, target, wide=True))
    assert low <= int(value.min()) and int(value.max()) <= high


@pytest.mark.parametrize("truncation", ["exact", "auto"])
@pytest.mark.parametrize("formats", [(64, 16, 32, 16), (64, 30, 32, 28), (64, 9, 30, 28)])
def test_reciprocals_of_numbers_that_are_compared_saturate_in_wide_rings(formats, truncation):
    source, target = FixedPoint(*formats[:2]), FixedPoint(*formats[2:])
    value = inverses("reciprocal", wide_arguments(1 << 32), source, target, truncation)
    low, high = ring_formats.interval(result_format("reciprocal", replace(source, bound=1 << 32), target, wide=True))
    assert high == (1 << (target.bits - 1)) - 1
    assert low <= int(value.min()) and int(value.max()) == high


@pytest.mark.parametrize(("name", "largest"), [("rsqrt", math.sqrt(2.0)), ("reciprocal", 2.0)])
def test_no_piece_of_an_inverse_passes_what_is_claimed_for_any_argument(name, largest):
    """Of both kinds: a place lies within a piece, or as far beyond its left end."""
    place = torch.linspace(0.0, 1.0, 1001, dtype=torch.float64).unsqueeze(1)
    table = spline(name)
    rows = table.coefficients.double() * 2.0**-COEFFICIENT_SCALE
    values = [sum(row * place**i for i, row in enumerate(rows))]
    for scale in (0, pieces.FINEST_OF_MANTISSAS):
        table = pieces.pieces(f"{name}_mantissa", scale)
        rows = torch.tensor(table.coefficients).double() * 2.0**-pieces.COEFFICIENT_SCALE
        values.append(table.middle + sum(row * (2 * place - 1) ** i for i, row in enumerate(rows)))
    most = max(float(value.max()) for value in values)
    assert largest < most < 1.124 * largest
    high = ring_formats.interval(result_format(name, FixedPoint(64, 0), FixedPoint(28, 28), wide=True))[1]
    assert high >= most / largest * 2.0**28


@pytest.mark.parametrize("most", [1 << 32, 1 << 34])
def test_reciprocals_have_the_range_that_follows_from_their_operand(most):
    """A claim that is false stops ``plain``."""
    source, target = FixedPoint(64, 20, bound=most), FixedPoint(32, 21)
    with privml.local("plain", like="threepc", bits=64, check_overflow=False):
        x = privml.share(torch.tensor([1, most - 1, (most >> 1) + 49, -most]).double() * 2.0**-20, 0, source)
        result = evaluate(x, "reciprocal", target)
    high = ring_formats.interval(result.format)[1]
    assert high < 1 << 31 if most == 1 << 32 else high > 1 << 40


@pytest.mark.parametrize("function", [torch.softmax, torch.log_softmax, torch.logsumexp])
def test_rows_whose_exponentials_have_no_bounded_sum_are_refused(function):
    """The sum would leave the 32 bits of an argument, and be taken for one of at least 1."""
    with privml.local("plain"):
        row = privml.share(torch.zeros(1), 0).expand((1 << 24) + 1)
        with pytest.raises(InvalidInput, match="16777217 numbers: at most 16777216"):
            function(row, 0)


FALSE = {
    "added": lambda fmt, count: fmt,
    "rescaled": lambda fmt, to, floors=True: ring_formats.rectified(to),
}


@pytest.mark.parametrize(
    ("function", "floats"), [("added", None), ("added", "0"), ("added", "4"), ("rescaled", None), ("rescaled", "0")]
)
def test_a_program_whose_promises_do_not_follow_is_refused(monkeypatch, function, floats):
    """Also one of which a layer computes with floats, after the promise or before it."""
    for module in ("averaging", "linear", "values"):
        place = importlib.import_module(f"privml.ops.{module}")
        if hasattr(place, function):
            monkeypatch.setattr(place, function, FALSE[function])
    torch.manual_seed(1)  # some weights lead to formats with which nothing relies on the false promise
    parts = torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(), torch.nn.AvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    model = torch.nn.Sequential(*parts).eval()
    with pytest.raises(ConfigError, match="layer '.*a protocol requires that a value"):
        # wrong results of the search's candidates must not lead to floats, which need no promises
        layers = None if floats is None else {floats: "float32"}
        numerics = {"bits": 32, "accept": 9.0, "rescue": None, "layers": layers}
        privml.convert(model, calibration=torch.rand(8, 1, 6, 6), numerics=numerics)
