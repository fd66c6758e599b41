# SPDX-License-Identifier: Apache-2.0
"""The table of operations against the interface of engines, and what is made from it."""

import inspect

import pytest
import torch

from privml.engines.base import Engine
from privml.engines.batching import BatchingEngine
from privml.engines.interface import backend
from privml.engines.joint import JointEngine
from privml.engines.operations import OPERATIONS, AtZero, Joining, Kind, signature
from privml.engines.owned import OwnedEngine
from privml.formats import FixedPoint
from privml.spec import SessionSpec

# What is no operation on shares, or the same for every engine.
APART = {
    "advance", "claim", "clock", "composed", "computes_whole", "finish", "follow", "function_ring", "keep", "knows",
    "lane", "no_floats", "owned", "reduce", "refresh", "reserve", "set_tags", "shifted", "together", "twin",
    "with_half",
}  # fmt: skip


def methods(engine):
    return {name for name, _ in inspect.getmembers(engine, inspect.isfunction) if not name.startswith("_")}


def test_every_operation_of_an_engine_is_in_the_table():
    assert methods(Engine) - APART == set(OPERATIONS)


@pytest.mark.parametrize("engine", [JointEngine, BatchingEngine, OwnedEngine])
def test_operations_have_the_signatures_of_engines(engine):
    for name in OPERATIONS:
        if hasattr(engine, name):
            assert inspect.signature(getattr(engine, name)) == signature(name), name


def test_all_parties_as_one_forward_every_operation():
    assert not inspect.isabstract(JointEngine) and not inspect.isabstract(OwnedEngine)
    assert set(OPERATIONS) <= set(vars(JointEngine))


def test_calls_that_wait_are_interactive():
    joined = {name for name, operation in OPERATIONS.items() if operation.joining is not None}
    assert joined == set(OPERATIONS) & set(vars(BatchingEngine))
    assert all(OPERATIONS[name].kind is Kind.INTERACTIVE for name in joined)
    assert {name for name in joined if OPERATIONS[name].joining is not Joining.ELEMENTS} == {
        "matmul", "conv2d", "shifted_product",
    }  # fmt: skip


def test_only_interactive_operations_give_what_is_not_zero_at_zero():
    of_owners = {name: operation for name, operation in OPERATIONS.items() if operation.at_zero is not AtZero.ZERO}
    assert all(o.kind is Kind.INTERACTIVE for o in of_owners.values() if o.at_zero is not None)
    assert OPERATIONS["equal_zero"].at_zero is AtZero.BIT


@pytest.mark.parametrize("engine", ["twopc", "active"])
def test_operations_take_their_arguments_by_name(engine):
    """``name`` is a parameter of ``function``, of which forwarding must not take hold."""
    made = backend(engine).local(SessionSpec(engine, ot=None))
    fmt, value = FixedPoint(16, 8), torch.tensor([0, 256])
    try:
        share = made.input(value=value, shape=(2,), owner=0, bits=16)
        assert torch.equal(made.reveal(a=share, bits=16, to=None), value)
        clear = made.owned(0)
        exact = clear.function(name="sigmoid", a=(value,) * made.components, source=fmt, target=fmt)
        assert [int(exact[0][0]), len(exact)] == [128, made.components]
        assert made.function(name="sigmoid", a=share, source=fmt, target=fmt)[0].shape == (2,)
    finally:
        made.close()
