# SPDX-License-Identifier: Apache-2.0
"""The proof that a hidden tree looks at one feature in each node: asked for where parties may cheat, and only there."""

import numpy as np
import pytest
import torch

import privml
from privml.context import Session
from privml.engines.correlations import OtChoice
from privml.engines.plain.engine import PlainEngine
from privml.errors import ConfigError, SecurityAbort
from privml.spec import SessionSpec

sklearn = pytest.importorskip("sklearn")
pytest.importorskip("skl2onnx")


class Suspicious(PlainEngine):
    """An engine that checks what it is asked to, and remembers in which order."""

    actively_secure = True

    def __init__(self):
        super().__init__()
        self.events = []

    def assert_zero(self, a, bits):
        self.events.append("check")
        if bool((a[0] & ((1 << bits) - 1)).any()):
            raise SecurityAbort("a value that must be zero is not")

    def reveal(self, a, bits, to=None):
        self.events.append("reveal")
        return super().reveal(a, bits, to)


@pytest.fixture(scope="module")
def tree():
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(4)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    label = (x[:, 1] * x[:, 4] > 0.1) * 2 + (x[:, 2] > 0)
    machine = DecisionTreeClassifier(max_depth=4, random_state=0).fit(x, label)
    program = privml.convert(machine, calibration=torch.from_numpy(x), tree_structure="hidden")
    return machine, program, torch.from_numpy(x[:20])


def session_of(engine, program):
    return Session(engine, program.numerics)


def selection_of(program):
    return next(name for name in program.weights if "selection" in name)


def test_an_honest_tree_is_checked_once_and_before_anything_is_revealed(tree):
    machine, program, x = tree
    engine = Suspicious()
    with session_of(engine, program) as session:
        first, second = program.run(session, x), program.run(session, x)
        assert engine.events == ["check"]
        label = privml.reveal(first)
        privml.reveal(second)
    assert engine.events == ["check", "reveal", "reveal"]
    assert label.tolist() == machine.predict(x.numpy()).tolist()


def forged(program, row):
    """The program of an owner who shares other numbers than a choice."""
    name = selection_of(program)
    choices = program.weights[name].clone()
    choices[3] = torch.tensor(row, dtype=choices.dtype)
    body = {**program.body, "nodes": [dict(node) for node in program.body["nodes"]]}
    for node in body["nodes"]:
        if node.get("target") == name:  # a cheating owner shares any ring elements
            node["format"] = {**node["format"], "bits": 8, "nonnegative": False}
    return type(program)(body, {**program.weights, name: choices})


# A sum of features, none, and combinations whose sum is one, or not.
FORGED = [[1, 1, 0, 0, 0, 0], [0] * 6, [2, -1, 0, 0, 0, 0], [3, 0, 0, 0, 0, 0]]


@pytest.mark.parametrize("row", FORGED)
def test_rows_that_choose_no_feature_end_the_session_before_any_output(tree, row):
    _, program, x = tree
    engine = Suspicious()
    with session_of(engine, program) as session, pytest.raises(SecurityAbort):
        forged(program, row).run(session, x)
    assert "reveal" not in engine.events


@pytest.mark.parametrize("ring", [32, 64])
def test_the_actively_secure_engine_answers_an_honest_owner_and_ends_with_another(tree, ring):
    machine, program, x = tree
    numerics = program.numerics
    settings = {"bits": numerics.bits, "scale": numerics.scale, "ring": ring, "ot": "ideal"}
    with privml.local("active", **settings) as session:
        label = privml.reveal(program.run(session, x), to=1)
    assert label.tolist() == machine.predict(x.numpy()).tolist()
    for row in FORGED:
        with privml.local("active", **settings) as session:
            with pytest.raises(SecurityAbort, match="had to prove"):
                forged(program, row).run(session, x)
            with pytest.raises(SecurityAbort):  # the session is over
                program.run(session, x)


def test_semi_honest_engines_are_not_asked(tree, monkeypatch):
    _, program, x = tree

    def refuse(*_):
        raise AssertionError("asked")

    monkeypatch.setattr(PlainEngine, "assert_zero", refuse)
    with session_of(PlainEngine(), program) as session:
        program.run(session, x)


def test_the_choices_are_whole_numbers_of_one_bit(tree):
    _, program, _ = tree
    (spec,) = [spec for spec in program.weight_specs if spec.name == selection_of(program)]
    assert (spec.format.bits, spec.format.scale, spec.format.nonnegative) == (2, 0, True)  # a bit, and a sign not sent


def test_fractions_cannot_be_checked(tree):
    with Session(Suspicious(), privml.Numerics()) as session, pytest.raises(ConfigError, match=r"privml\.convert"):
        torch.ops.privml.one_hot_rows(privml.share(torch.eye(3), session=session))


@pytest.mark.parametrize("structure", ["public", "hidden"])
@pytest.mark.parametrize("ot", ["ideal", "softspoken"])
def test_prediction_equals_the_run(tree, structure, ot):
    machine, program, x = tree
    if structure == "public":
        program = privml.convert(machine, calibration=x)
    numerics = program.numerics
    with privml.local("twopc", ot=ot, bits=numerics.bits, scale=numerics.scale) as session:
        session.engine.reserve(program.correlations([tuple(x.shape)], SessionSpec(ot=OtChoice(ot))))
        label = privml.reveal(program.run(session, x), to=1)
        real = session.ledger.snapshot()
    assert label.tolist() == machine.predict(x.numpy()).tolist()
    predicted = program.cost([tuple(x.shape)], SessionSpec(ot=OtChoice(ot)), rank=0).snapshot()
    for phase in ("preprocess", "online"):
        mine, other = getattr(predicted, phase), getattr(real, phase)
        assert (mine.sent, mine.received, mine.depth) == (other.sent, other.received, other.depth), phase


def test_one_comparison_and_log_depth_products(tree):
    """The whole forest's comparisons take the messages of one; each level of products is one more."""
    from sklearn.ensemble import RandomForestClassifier

    _, program, x = tree
    label = (x[:, 0] > 0).numpy()
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(x.numpy(), label)
    several = privml.convert(forest, calibration=x, tree_structure="hidden")
    for each in (program, several):
        operators = [node["target"] for node in each.body["nodes"] if node["kind"] == "call"]
        assert sum("aten.le" in name for name in operators) == 1
        assert sum("aten.logical_and" in name for name in operators) == 2
        assert sum("select_rows" in name for name in operators) == 1
