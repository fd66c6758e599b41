# SPDX-License-Identifier: Apache-2.0
"""What client and server say to each other before a query: the inputs' shapes, which are public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from privml import _core
from privml.errors import InvalidInput
from privml.program import TensorSpec
from privml.session.agreement import agree

# Bounds what a client can make the server allocate.
LARGEST_INPUT = 1 << 26

Shape = tuple[int, ...]


def ask(channel: _core.Channel, shapes: Sequence[Shape]) -> None:
    """Client: announces the shapes; InvalidInput with the server's reason when it refuses."""
    wanted = {"inputs": [list(shape) for shape in shapes]}
    agree(channel, wanted, lambda theirs: None, "the server refuses the query")


def grant(channel: _core.Channel, specs: Sequence[TensorSpec]) -> list[Shape]:
    """Server: the announced shapes, answered with yes; InvalidInput, after telling the client, when they do not fit."""
    return agree(channel, {}, lambda theirs: _checked(theirs.get("inputs"), specs), "the client gives up")


def _checked(announced: Any, specs: Sequence[TensorSpec]) -> list[Shape]:
    if not isinstance(announced, list) or len(announced) != len(specs):
        raise InvalidInput(f"the program takes {len(specs)} input(s)")
    for spec, shape in zip(specs, announced, strict=True):
        sizes = isinstance(shape, list) and all(type(n) is int and 0 < n <= LARGEST_INPUT for n in shape)
        if not sizes or math.prod(shape) > LARGEST_INPUT:
            raise InvalidInput(f"input {spec.name!r}: no shape that this server accepts")
        if len(shape) != len(spec.shape) or any(w not in (None, n) for w, n in zip(spec.shape, shape, strict=True)):
            raise InvalidInput(f"input {spec.name!r}: shape {shape}, but the program expects {list(spec.shape)}")
    return [tuple(shape) for shape in announced]
