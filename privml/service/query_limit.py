# SPDX-License-Identifier: Apache-2.0
"""How large a query a party takes on: whoever asks chooses the shapes, and with them how much others compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privml.errors import ConfigError, InvalidInput

if TYPE_CHECKING:
    from privml.program import TensorSpec

ROWS, ELEMENTS = 256, 1 << 22
# Beyond these no party goes, whatever its settings are.
MOST_ROWS = MOST_ELEMENTS = 1 << 24


@dataclass(frozen=True, slots=True)
class QueryLimit:
    """The most ``rows`` of a query, which is every size that the program leaves open, and the most ``elements`` of all
    its inputs together; the smallest query that a program takes always fits. Raises ConfigError."""

    rows: int = ROWS
    elements: int = ELEMENTS

    def __post_init__(self) -> None:
        for name, most in (("rows", MOST_ROWS), ("elements", MOST_ELEMENTS)):
            value = getattr(self, name)
            if type(value) is not int or not 1 <= value <= most:
                raise ConfigError(f"query_{name}={value} must be a whole number from 1 to {most}")

    def check(self, specs: Sequence[TensorSpec], shapes: Sequence[Sequence[int]]) -> None:
        """InvalidInput, which names the setting, for ``shapes`` of the inputs ``specs`` that are too large."""
        for spec, shape in zip(specs, shapes, strict=True):
            rows = max((size for size, fixed in zip(shape, spec.shape, strict=True) if fixed is None), default=1)
            if rows > self.rows:
                raise InvalidInput(
                    f"input {spec.name!r}: shape {list(shape)}, but this party takes at most {self.rows} rows a query "
                    "(its setting query_rows): ask for fewer at a time"
                )
        elements = sum(math.prod(shape) for shape in shapes)
        smallest = sum(math.prod(size or 1 for size in spec.shape) for spec in specs)
        if elements > max(self.elements, smallest):
            raise InvalidInput(
                f"inputs of {elements} elements, but this party takes at most {self.elements} a query "
                "(its setting query_elements): ask for fewer at a time"
            )


LARGEST_QUERY = QueryLimit(MOST_ROWS, MOST_ELEMENTS)
