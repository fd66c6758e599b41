# SPDX-License-Identifier: Apache-2.0
"""Changes that damage, or a liar, would make: of bytes, of JSON, of protobuf messages, of safetensors files.

Everything is a function of a ``random.Random``, so that a seed reproduces an input.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable
from typing import Any

INTEGERS = (0, 1, -1, 2, 7, 127, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**48, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e-45, 1e308, math.inf, -math.inf, math.nan)
TEXTS = ("", "x", "\x00", "\x1b[31m", "../../etc/passwd", "é" * 40, "a" * 5000, "__class__", "float", "inf", "null")
Mutator = Callable[[random.Random, bytes], bytes]


# ---- bytes
def mutate_bytes(source: random.Random, data: bytes) -> bytes:
    """One to four changes."""
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4))):
        source.choice(_BYTE_CHANGES)(source, changed)
    return bytes(changed)


def _flip(source: random.Random, data: bytearray) -> None:
    if data:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def _overwrite(source: random.Random, data: bytearray) -> None:
    if data:
        data[source.randrange(len(data))] = source.choice((0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)))


def _truncate(source: random.Random, data: bytearray) -> None:
    del data[source.randrange(len(data) + 1) :]


def _remove(source: random.Random, data: bytearray) -> None:
    start = source.randrange(len(data) + 1)
    del data[start : start + source.randrange(1, 17)]


def _double(source: random.Random, data: bytearray) -> None:
    start = source.randrange(len(data) + 1)
    data[start:start] = data[start : start + source.randrange(1, 65)]


def _insert(source: random.Random, data: bytearray) -> None:
    start = source.randrange(len(data) + 1)
    data[start:start] = source.randbytes(source.randrange(1, 17))


def _number(source: random.Random, data: bytearray) -> None:
    """A number in place of others, as a length field would hold it."""
    start, width = source.randrange(len(data) + 1), source.choice((1, 2, 4, 8))
    data[start : start + width] = (source.choice(INTEGERS) % 256**width).to_bytes(width, "little")


def _swap(source: random.Random, data: bytearray) -> None:
    """Two parts in the other order."""
    first, second, third = sorted(source.randrange(len(data) + 1) for _ in range(3))
    data[first:third] = data[second:third] + data[first:second]


_BYTE_CHANGES = (_flip, _flip, _overwrite, _truncate, _remove, _double, _insert, _number, _swap)


# ---- JSON
def mutate_json(source: random.Random, value: Any) -> Any:
    """A copy of a tree of objects, lists and plain values with one to three changes. ValueError for too deep a tree."""
    try:
        holder = [copy.deepcopy(value)]
    except RecursionError:
        raise ValueError("too deep") from None
    for _ in range(source.choice((1, 1, 2, 3))):
        places = _places(holder)
        container, key = source.choice(places)
        if key is None:
            continue
        what = source.randrange(6)
        if what == 0 and (isinstance(container, dict) or len(container) > 1 or container is not holder):
            del container[key]
        elif what == 1:
            container[key] = _nested(source, container[key])
        elif what == 2:
            other, at = source.choice(places)
            container[key] = copy.deepcopy(other[at])
        elif what == 3 and isinstance(container, dict):
            container[source.choice(TEXTS)] = container[key]
        elif what == 4 and isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        else:
            container[key] = _plain(source, container[key])
        if not holder:
            holder = [None]
    return holder[0]


def _places(holder: list[Any]) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    found: list[tuple[Any, Any]] = []
    waiting: list[Any] = [holder]
    while waiting:
        container = waiting.pop()
        keys = list(container) if isinstance(container, dict) else range(len(container))
        for key in keys:
            found.append((container, key))
            if isinstance(container[key], (dict, list)) and len(found) < 20_000:
                waiting.append(container[key])
    return found


def _plain(source: random.Random, old: Any) -> Any:
    if type(old) is int and source.random() < 0.5:
        return old + source.choice((-1, 1, 2**31, -(2**31)))
    if isinstance(old, str) and old and source.random() < 0.4:
        place = source.randrange(len(old))
        return old[:place] + source.choice(("", "\x00", "0", "é", "_")) + old[place + 1 :]
    choices = (INTEGERS, FLOATS, TEXTS, (None, True, False), ([], {}, [[]], {"": None}))
    return source.choice(source.choice(choices))


def _nested(source: random.Random, old: Any) -> Any:
    value = old
    for _ in range(source.choice((1, 2, 50, 120))):  # deeper ones are written by dump
        value = [value] if source.random() < 0.8 else {"node": value}
    return value


def dump(value: Any) -> bytes:
    """JSON; lists deeper than decoders go where the tree is deep."""
    text = json.dumps(value).encode()
    return text.replace(b"[" * 100, b"[" * 100_000).replace(b"]" * 100, b"]" * 100_000)


# ---- protobuf
def mutate_message(source: random.Random, message: Any) -> Any:
    """A copy of a protobuf message with one to three fields changed."""
    result = copy.deepcopy(message)
    for _ in range(source.choice((1, 1, 2, 3))):
        messages = _messages(result)
        chosen = source.choice(messages)
        present = [field for field, _ in chosen.ListFields()]
        field = source.choice(present if present and source.random() < 0.85 else chosen.DESCRIPTOR.fields)
        try:
            _change(source, chosen, field)
        except (ValueError, TypeError, UnicodeEncodeError):
            continue  # no value of this field
    return result


def _messages(message: Any) -> list[Any]:
    found, waiting = [], [message]
    while waiting and len(found) < 5000:
        current = waiting.pop()
        found.append(current)
        for field, value in current.ListFields():
            if field.message_type is not None:
                waiting.extend(value if _repeated(field) else [value])
    return found


def _repeated(field: Any) -> bool:
    return bool(getattr(field, "is_repeated", False)) or getattr(field, "label", 0) == 3


def _change(source: random.Random, message: Any, field: Any) -> None:
    value = getattr(message, field.name)
    if not _repeated(field):
        if source.random() < 0.25:
            message.ClearField(field.name)
        elif field.message_type is None:
            setattr(message, field.name, _scalar(source, value))
        return
    what = source.randrange(5)
    if what == 0 and len(value):
        del value[source.randrange(len(value))]
    elif what == 1 and len(value):
        value.append(copy.deepcopy(source.choice(list(value))))
    elif what == 2 and len(value) > 1:
        first, second = source.sample(range(len(value)), 2)
        other = copy.deepcopy(value[first])
        if field.message_type is None:
            value[first], value[second] = value[second], other
        else:
            value[first].CopyFrom(value[second])
            value[second].CopyFrom(other)
    elif field.message_type is None:
        old = source.choice(list(value)) if len(value) else 0
        if len(value) and source.random() < 0.7:
            value[source.randrange(len(value))] = _scalar(source, old)
        else:
            value.append(_scalar(source, old))


def _scalar(source: random.Random, old: Any) -> Any:
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        return source.choice((*INTEGERS, old + 1, old - 1, old ^ 1))
    if isinstance(old, float):
        return source.choice(FLOATS)
    if isinstance(old, bytes):
        return mutate_bytes(source, old)
    return source.choice((*TEXTS, old + "x", old[:-1]))


# ---- safetensors: 8 bytes of length, JSON, elements
def mutate_safetensors(source: random.Random, data: bytes, nested: str | None = None) -> bytes:
    """``nested``: an entry of the metadata that is JSON itself and changed half of the time."""
    if source.random() < 0.2:
        return mutate_bytes(source, data)
    try:
        length = int.from_bytes(data[:8], "little")
        header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
        metadata = header["__metadata__"]
        if nested is not None and source.random() < 0.6:
            metadata[nested] = dump(mutate_json(source, json.loads(metadata[nested]))).decode()
        else:
            header = mutate_json(source, header)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return mutate_bytes(source, data)
    text = dump(header)
    if source.random() < 0.2:
        body = mutate_bytes(source, body)
    return len(text).to_bytes(8, "little") + text + body
