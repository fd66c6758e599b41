# SPDX-License-Identifier: Apache-2.0
"""A client enters a legal input that overflows, again and again: results that depend on the shares would tell it
secret activations. They are functions of the values: those of ``plain`` without overflow checks."""

import ast
from pathlib import Path

import pytest
import torch
from overflowing_networks import NETWORKS, ROWS, TIMES, answers, overflowing

import privml
from privml.errors import InvalidInput, OverflowDetected
from privml.formats import FixedPoint

pytest.importorskip("privml._core", reason="the C++ core is not built; run `make build`")

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
    with privml.local("plain"), pytest.raises(InvalidInput, match=r"index \(1,\) is outside"):
        privml.share(torch.tensor([3.9, 4.1]), 0, FixedPoint(32, 8, bound=4 << 8))


# Who may write what is known of a value: formats of inputs, which their owner checks, of files, and the one that proves.
MAKERS = {
    ("ops/ring_formats.py", "proved"): "the proof",
    ("passes/scales.py", "weight_format"): "weights, which their owner checks as it shares them",
    ("passes/choose_formats.py", "_annotate"): "inputs, which their owner checks as it shares them",
    ("passes/choose_formats.py", "_bounded"): "what calibration saw: the ring that a result is reduced to",
    ("sharing.py", "share"): "an input's range",
    ("program_body.py", "_decode_format"): "formats of a program file",
    ("checkpoint.py", "load_shares"): "formats of one's own checkpoint",
}
# Who may say what holds of a result for other reasons than its operands' ranges.
CLAIMS = {
    ("ops/maximum.py", "_limited"), ("ops/maximum.py", "maximum"), ("ops/maximum.py", "amin"),
    ("ops/compare.py", "_either"), ("ops/in_place.py", "write"), ("ops/fixed.py", "known"),
    ("ops/fixed.py", "evaluate"), ("ops/exponential.py", "decay"), ("ops/exponential.py", "_clipped"),
    ("ops/smooth.py", "mish"), ("ops/softmax.py", "_parts"),
}  # fmt: skip


def functions_that(find):
    """(file, function) of every function of the package in which ``find`` says yes to a node."""
    found = set()
    for path in ROOT.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and any(find(node) for node in ast.walk(function)):
                found.add((str(path.relative_to(ROOT)), function.name))
    return found


def makes_a_promise(node):
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    keywords = {k.arg for k in node.keywords}
    if name in ("FixedPoint", "Integer", "kind"):
        known = {"FixedPoint": 2, "Integer": 1, "kind": 0}[name]
        return len(node.args) > known or bool(keywords & {"nonnegative", "bound", None})
    return name == "replace" and "bound" in keywords and "share" not in keywords


def test_formats_get_their_knowledge_from_one_function():
    assert functions_that(makes_a_promise) - {("checkpoint.py", "_number")} <= set(MAKERS)


def test_what_is_claimed_without_the_operands_ranges_is_listed():
    def claims(node):
        names = {"of_interval", "proved"}
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
        written = isinstance(node, ast.Assign) and "cell.format" in ast.unparse(node.targets[0])
        return called or written

    print(functions_that(claims))
