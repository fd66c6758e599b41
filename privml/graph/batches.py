# SPDX-License-Identifier: Apache-2.0
"""Example inputs and calibration data in the forms that users have them in, as one tensor per input of the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from privml.errors import InvalidInput

# Of a DataLoader no more rows are read.
LARGEST_CALIBRATION = 1024


@dataclass(frozen=True, slots=True)
class Batch:
    """``tensors``: one per input; ``names``: those of the inputs, where they are known."""

    tensors: tuple[torch.Tensor, ...] = ()
    names: tuple[str, ...] | None = None

    def ordered(self, names: Sequence[str]) -> Batch:
        """The tensors in the order of ``names``; InvalidInput naming what is missing, and what is not among them."""
        if self.names is None:
            return self
        if set(self.names) != set(names):
            raise InvalidInput(f"the model takes the inputs {', '.join(names)}, got {', '.join(self.names)}")
        return Batch(tuple(self.tensors[self.names.index(name)] for name in names))

    @property
    def rows(self) -> int | None:
        """Of each input; None if they have not equally many."""
        counts = {x.shape[0] if x.dim() else None for x in self.tensors}
        return counts.pop() if len(counts) == 1 else None

    def first_rows(self, count: int = 1) -> Batch:
        """So many rows of each input if all have equally many, else everything."""
        return self if self.rows is None else Batch(tuple(x[:count] for x in self.tensors), self.names)

    def in_batches(self, size: int) -> Batch:
        """In whole batches of ``size`` rows: the rows of the last one are repeated until it is full. Everything as it
        is if the inputs have not equally many rows."""
        if not self.rows or not self.rows % size:
            return self
        places = torch.arange(-(-self.rows // size) * size)
        last, count = self.rows - self.rows % size, self.rows % size
        places[last:] = last + (places[last:] - last) % count
        return Batch(tuple(x[places] for x in self.tensors), self.names)


def fixed_batch(shapes: Sequence[Any]) -> int | None:
    """The size that all inputs of these shapes (None: not known) begin with; None if it may vary or differs."""
    sizes = {shape[0] if shape else None for shape in shapes}
    return sizes.pop() if len(sizes) == 1 else None


def batch_of(value: Any, parameters: Sequence[str] | None = None) -> Batch:
    """``value``: a tensor or an array; a tuple or list with one per input; a mapping from the inputs' names; or a
    DataLoader (any iterable of these), of which the rows of the first batches are joined.

    ``parameters``: the names of what the model takes, where they are known: what else a mapping or a loader's batch
    holds (labels) is left out. Integers keep their dtype. Raises InvalidInput for everything else.
    """
    if value is None:
        return Batch()
    if isinstance(value, Mapping):
        known = {str(k): v for k, v in value.items() if parameters is None or k in parameters}
        if not known:
            raise InvalidInput(f"none of the inputs {sorted(map(str, value))} is one of the model's: {parameters}")
        return Batch(tuple(_tensor(v, k) for k, v in known.items()), tuple(known))
    if isinstance(value, (torch.Tensor, np.ndarray)) or hasattr(value, "__array__"):
        return Batch((_tensor(value),))
    if isinstance(value, (tuple, list)):
        return Batch(tuple(_tensor(v, f"number {i + 1}") for i, v in enumerate(value)))
    if isinstance(value, Iterable):
        return _joined(value, parameters)
    raise InvalidInput(
        f"example inputs and calibration data are tensors, arrays, a tuple or a mapping of them, or a DataLoader, not "
        f"a {type(value).__name__}"
    )


def _tensor(value: Any, name: str = "") -> torch.Tensor:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInput(f"input {name}: {type(value).__name__} is not a tensor ({error})") from None


def _joined(loader: Iterable[Any], parameters: Sequence[str] | None) -> Batch:
    batches: list[Batch] = []
    rows = 0
    for value in loader:
        batch = batch_of(value, parameters)
        if parameters is not None and batch.names is None:
            batch = Batch(batch.tensors[: len(parameters)])
        batches.append(batch)
        rows += batch.tensors[0].shape[0] if batch.tensors and batch.tensors[0].dim() else 1
        if rows >= LARGEST_CALIBRATION:
            break
    if not batches:
        raise InvalidInput("the calibration data has no batches")
    try:
        tensors = tuple(torch.cat(parts) for parts in zip(*(b.tensors for b in batches), strict=True))
    except (RuntimeError, ValueError) as error:
        raise InvalidInput(
            f"the batches of the calibration data cannot be joined along their first dimension: {error}; pad them to "
            "one shape"
        ) from None
    return Batch(tensors, batches[0].names)
