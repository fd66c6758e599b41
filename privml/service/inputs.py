# SPDX-License-Identifier: Apache-2.0
"""Checks of a query's inputs, before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from privml.encoding import encode_input
from privml.errors import InvalidInput
from privml.formats import Format, Integer
from privml.graph.ir import misfit
from privml.program import Program


def checked_inputs(program: Program, values: Sequence[Any]) -> list[torch.Tensor]:
    """The inputs as tensors that the program takes; InvalidInput naming the input and the index, or for another number
    of inputs."""
    if len(values) != len(program.inputs):
        raise InvalidInput(f"the program takes {len(program.inputs)} input(s), got {len(values)}")
    checked = [
        checked_input(value, spec.shape, spec.format, spec.name)
        for spec, value in zip(program.inputs, values, strict=True)
    ]
    program.check_ids(checked)
    return checked


def checked_input(value: object, shape: Sequence[int | None], number: Format, name: str = "input") -> torch.Tensor:
    """``value`` (array or tensor) as a tensor that fits ``shape`` (None: any size) and the format ``number``.

    Raises InvalidInput that names the input, and for a NaN, infinity or too large value its first index.
    """
    array = value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{name}: dtype {array.dtype} is not a real number type; pass float32 or integers")
    if isinstance(number, Integer) and array.dtype.kind == "f":
        raise InvalidInput(f"{name}: dtype {array.dtype}, but the program expects integers")
    wrong = misfit(array.shape, shape)
    if wrong is not None:
        raise InvalidInput(f"{name}: {wrong}")
    if array.dtype.kind == "u":
        array = np.minimum(array.astype(np.uint64), np.uint64(2**63 - 1))  # out of range then too
    # torch knows no uint16 arithmetic and no big-endian; the wide types hold every such value exactly.
    wide = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    tensor = torch.from_numpy(np.ascontiguousarray(wide))
    try:
        encode_input(tensor, number)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None
    return tensor.to(torch.float32) if array.dtype.kind == "f" else tensor
