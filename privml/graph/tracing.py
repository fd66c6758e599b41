# SPDX-License-Identifier: Apache-2.0
"""Calls torch.export, with a variable batch if the model allows it, and turns its errors into one line each."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from privml.errors import InvalidInput, UnsupportedOperator
from privml.graph.blame import blame, place_of

LARGEST_BATCH = 4096
# By the number of an input that is a state: the dimension along which it grows, and how long it may become.
Lengths = Mapping[int, tuple[int, int]]


def trace(
    module: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    dynamic: bool,
    sizes: Any = None,
    lengths: Lengths | None = None,
) -> tuple[Any, tuple[str, ...]]:
    """The exported program, and notes for the user. ``sizes``: the dimensions that vary, instead of the batch;
    ``lengths``: the lengths of states, which vary in addition to it.

    Raises InvalidInput with the file and the line of the model's code, and with what to do.
    """
    inputs, notes, lengths = tuple(inputs), (), lengths or {}
    for places in _batch_dims(inputs, lengths) if dynamic and sizes is None else ():
        try:
            several, shapes = _varying(module, inputs, places, lengths)
            return torch.export.export(module, several, dynamic_shapes=shapes), ()
        except GuardOnDataDependentSymNode as error:
            raise _branches(error) from error
        except UnsupportedOperator:
            raise
        except Exception as error:
            reason = _reason(error)
        notes = (
            f"the batch is fixed at {inputs[0].shape[places[0]]}, as in the example inputs, because the model does not "
            f"allow another one: {reason}",
        )
    if sizes is None and lengths:
        sizes = _shapes(module, [None] * len(inputs), lengths)
    try:
        return torch.export.export(module, inputs, dynamic_shapes=sizes), notes
    except GuardOnDataDependentSymNode as error:
        raise _branches(error) from error
    except UnsupportedOperator:
        raise
    except Exception as error:
        raise InvalidInput(
            f"torch.export cannot trace the model on inputs of shapes {[tuple(x.shape) for x in inputs]}: "
            f"{_reason(error)}; check that the example inputs fit the model, and remove branches on values of tensors"
        ) from error


def _branches(error: Exception) -> InvalidInput:
    return InvalidInput(
        f"the model's control flow depends on a tensor's value at {place_of(error) or 'an unknown place'}; a program "
        "runs the same operators for every input: choose with torch.where(condition, a, b) instead of `if`, int(), "
        ".item() or a slice up to a value"
    )


def _reason(error: Exception) -> str:
    """One line of torch's message: the violated condition if there is one."""
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip()]
    found = next((line for line in lines if "guard" in line.lower() and "Not all values" in line), None)
    return found or blame(error)


def _batch_dims(inputs: Sequence[torch.Tensor], lengths: Lengths) -> Iterator[list[int | None]]:
    """For each input, the dimension that may be the batch. It is the first dimension if that has the same size in all
    inputs. Otherwise (states of recurrent layers) it is the first dimension that has the size of the first input's
    first dimension, or None if there is none. A dimension along which a state grows is never the batch."""
    if not inputs or not all(x.dim() for x in inputs):
        return
    size, along = inputs[0].shape[0], [lengths.get(i, (None, 0))[0] for i in range(len(inputs))]
    if all(x.shape[0] == size and grows != 0 for x, grows in zip(inputs, along, strict=True)):
        yield [0] * len(inputs)
    elif size > 0:
        pairs = zip(inputs, along, strict=True)
        yield [next((d for d, n in enumerate(x.shape) if n == size and d != grows), None) for x, grows in pairs]


def _varying(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], places: list[int | None], lengths: Lengths
) -> tuple[tuple[torch.Tensor, ...], Any]:
    """Inputs and dynamic shapes of torch.export for batches of any size."""
    single = inputs[0].shape[places[0]] == 1
    # A batch of one would be taken for a fixed size.
    several = tuple(
        torch.cat([x, x], place) if single and place is not None else x for x, place in zip(inputs, places, strict=True)
    )
    return several, _shapes(module, places, lengths)


def _shapes(module: torch.nn.Module, places: Sequence[int | None], lengths: Lengths) -> tuple:
    """The dynamic shapes of torch.export, with the batch at ``places``."""
    batch = torch.export.Dim("batch", min=1, max=LARGEST_BATCH)
    shapes: tuple = tuple({} if place is None else {place: batch} for place in places)
    if lengths:
        before = torch.export.Dim("before", min=0, max=min(most for _, most in lengths.values()))
        for index, (dim, _) in lengths.items():
            shapes[index][dim] = before
    parameters = inspect.signature(module.forward).parameters.values()
    return (shapes,) if any(p.kind is p.VAR_POSITIONAL for p in parameters) else shapes
