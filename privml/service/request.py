# SPDX-License-Identifier: Apache-2.0
"""What client and server say to each other before a query: the inputs' shapes, and yes or no.

Wire layout: 4 bytes little-endian length (at most 4096), then JSON. Shapes are public.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from privml import _core
from privml.errors import InvalidInput, ProtocolError
from privml.program import TensorSpec

LENGTH_LIMIT = 4096
# Bounds what a client can make the server allocate.
LARGEST_INPUT = 1 << 26

Shape = tuple[int, ...]


def ask(channel: _core.Channel, shapes: Sequence[Shape]) -> None:
    """Client: announces the shapes; InvalidInput with the server's reason when it refuses."""
    _send(channel, {"inputs": [list(shape) for shape in shapes]})
    answer = _receive(channel)
    if answer.get("accepted") is not True:
        raise InvalidInput(f"the server refuses the query: {str(answer.get('reason'))[:300]!r}")


def grant(channel: _core.Channel, specs: Sequence[TensorSpec]) -> list[Shape]:
    """Server: the announced shapes, answered with yes; InvalidInput, after telling the client, when they do not fit."""
    request = _receive(channel)
    try:
        shapes = _checked(request.get("inputs"), specs)
    except InvalidInput as error:
        _send(channel, {"accepted": False, "reason": str(error)})
        raise
    _send(channel, {"accepted": True})
    return shapes


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


def _send(channel: _core.Channel, message: dict[str, Any]) -> None:
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > LENGTH_LIMIT:
        raise InvalidInput("the inputs have too many dimensions")
    channel.write(len(body).to_bytes(4, "little") + body)
    channel.flush()


def _receive(channel: _core.Channel) -> dict[str, Any]:
    length = int.from_bytes(channel.read(4), "little")
    if length > LENGTH_LIMIT:
        raise ProtocolError(f"the peer announces {length} bytes, at most {LENGTH_LIMIT} are allowed")
    try:
        message = json.loads(channel.read(length).decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError("the peer's message is not JSON") from error
    if not isinstance(message, dict):
        raise ProtocolError("the peer's message is not an object")
    return message
