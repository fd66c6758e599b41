# SPDX-License-Identifier: Apache-2.0
"""A running hash of what a session computes, which must be equal at all parties.

Every step (an operator, a sharing, an opening, a node of a graph) enters it with its public arguments: numbers, shapes
and formats where secrets enter, the names of the secret tensors that it takes, and public tensors by value. Towards
each peer the hash is under a key that only this party and the peer know, so that a tag, of which the network sees 8
bytes, reveals to no other machine whether a guess of a public value is right. Each frame carries the tag in force
(csrc/net/tagged.h), and what is opened is masked by a pad from the whole hash.

Where steps run side by side, each branch goes on from the hash and its own number, so that no order among them counts.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, TracebackType
from typing import Any

import numpy as np
import torch
from torch._C import _disabled_torch_dispatch_impl
from torch._C._functorch import get_unwrapped, is_functorch_wrapped_tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack

STATE_BYTES = 32
# The operation that stands for the state of the global generators.
GENERATORS = "generators"
# In the lines that other parties get: the line of a program that is not known, and the longest parts, in characters.
NOWHERE = "-"
LONGEST_TEXT, LONGEST_PLACE = 120, 80
_NOT_THE_USERS = tuple(
    os.path.join(folder, "")
    for folder in (
        os.path.dirname(os.path.abspath(__file__)),
        os.path.dirname(os.path.abspath(torch.__file__)),
        sysconfig.get_path("stdlib"),
    )
)
# (peer, line): adds a step to the account that the peer gets if the two differ
Record = Callable[[int, str], None]
# (peer, tag) of each peer
Tags = list[tuple[int, int]]


class Chain:
    """The hash along one thread of the computation: of the whole session, or of a branch."""

    __slots__ = ("number", "pads", "place", "results", "states", "transcript")

    def __init__(self, transcript: Transcript, states: list[bytes], place: str = "") -> None:
        self.transcript, self.states, self.place = transcript, states, place
        self.number = self.results = 0
        self.pads = [0] * len(states)

    def step(self, text: str, description: bytes, where: str) -> Tags:
        """Takes a step; returns the tags in force from here on."""
        transcript = self.transcript
        self.number += 1
        self.results = 0
        self.pads = [0] * len(self.pads)
        place = f"{self.place}{self.number}"
        content = b"\0".join((place.encode(), text.encode(), description))
        tags: Tags = []
        for index, (peer, key) in enumerate(transcript.keys):
            state = hashlib.blake2b(self.states[index] + content, key=key, digest_size=STATE_BYTES).digest()
            self.states[index] = state
            # 0 stands for no tag
            tag = int.from_bytes(state[:8], "little") or 1
            tags.append((peer, tag))
            transcript.record(peer, line_of(place, tag, where, text))
        return tags

    def here(self) -> tuple[Any, ...]:
        """Where the chain stands, for ``back_to``."""
        return list(self.states), self.number, self.results, list(self.pads)

    def back_to(self, here: tuple[Any, ...]) -> None:
        """Undoes a step that was refused: a party that makes a mistake alone has computed nothing."""
        self.states, self.number, self.results, self.pads = here

    def branch(self, number: int) -> Chain:
        """What task ``number`` of the step taken last goes on from."""
        mark = b"branch %d" % number
        pairs = zip(self.transcript.keys, self.states, strict=True)
        states = [hashlib.blake2b(state + mark, key=key, digest_size=STATE_BYTES).digest() for (_, key), state in pairs]
        return Chain(self.transcript, states, f"{self.place}{self.number}.{number}.")

    def joined(self, branches: Iterable[Chain]) -> None:
        """Goes on with all that ``branches`` have done, in their order."""
        columns = zip(*(branch.states for branch in branches), strict=True)
        for index, ((_, key), column) in enumerate(zip(self.transcript.keys, columns, strict=True)):
            content = self.states[index] + b"".join(column)
            self.states[index] = hashlib.blake2b(content, key=key, digest_size=STATE_BYTES).digest()

    def name(self, value: Any) -> None:
        """Gives the secret tensors of a result a name, by which later steps distinguish them from others."""
        if isinstance(value, (list, tuple)):
            for part in value:
                self.name(part)
        elif isinstance(value, torch.Tensor) and hasattr(value, "cell"):
            self.results += 1
            value.mark = f"{self.place}{self.number}:{self.results}"  # type: ignore[attr-defined]

    def pad_key(self, peer: int) -> bytes:
        """A fresh key of the pads that mask what this party and ``peer`` send each other to open a value."""
        index = next(i for i, (other, _) in enumerate(self.transcript.keys) if other == peer)
        self.pads[index] += 1
        content = self.states[index] + b"%d" % self.pads[index]
        key = self.transcript.keys[index][1]
        return hashlib.blake2b(content, key=key, digest_size=STATE_BYTES, person=b"privml pad").digest()


class Transcript:
    """``keys``: peer -> the key that only it and this party know; ``record``: see Record. ``names_lines``: whether
    steps are recorded with the line of the user's program."""

    def __init__(self, keys: Mapping[int, bytes], record: Record, names_lines: bool = False) -> None:
        self.keys = tuple(sorted(keys.items()))
        self.record, self.names_lines = record, names_lines
        self.main = Chain(self, [hashlib.blake2b(b"privml transcript", key=key).digest()[:32] for _, key in self.keys])

    @property
    def chain(self) -> Chain:
        """That of the branch which this thread computes, or the session's."""
        chain = _chain.get()
        return chain if chain is not None and chain.transcript is self else self.main

    def step(self, text: str, description: bytes = b"", where: str | None = None) -> Tags:
        """Takes a step of the current chain, at the user's line unless ``where`` says it."""
        return self.chain.step(text, description, self.line() if where is None else where)

    def line(self) -> str:
        """The line of the user's program that is run, where steps are recorded with it."""
        return users_line() if self.names_lines else ""

    def pad_key(self, peer: int) -> bytes:
        """See ``Chain.pad_key``."""
        return self.chain.pad_key(peer)

    def describe(self, *values: Any) -> bytes:
        """Public arguments, and which secrets, in bytes that are the same at all parties."""
        parts: list[str] = []
        self._describe(values, parts)
        return " ".join(parts).encode(errors="replace")

    def _describe(self, value: Any, parts: list[str]) -> None:
        if isinstance(value, torch.Tensor):
            while is_functorch_wrapped_tensor(value):
                value = get_unwrapped(value)
            parts.append(self._secret(value) if hasattr(value, "cell") else _public(value))
        elif isinstance(value, (list, tuple)):
            parts.append("[")
            for part in value:
                self._describe(part, parts)
            parts.append("]")
        elif isinstance(value, dict):
            for key, part in value.items():
                parts.append(str(key))
                self._describe(part, parts)
        else:
            parts.append(_plain(value))

    def _secret(self, value: Any) -> str:
        # Its name says of which step it is a result, and that with the steps before says its shape and format.
        if value.mark is None:  # made by no step, and named where it is first used
            chain = self.chain
            chain.results += 1
            value.mark = f"{chain.place}{chain.number}?{chain.results}"
        return value.mark


def _plain(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.dtype, torch.memory_format)):
        return repr(value)
    return type(value).__name__  # a device, a generator: what stands behind it is each party's own


def _public(value: torch.Tensor) -> str:
    kind = f"{value.dtype}{tuple(value.shape)}"
    own_operators = type(value).__torch_dispatch__ is not _disabled_torch_dispatch_impl
    if own_operators or value.layout is not torch.strided or value.is_meta:
        return kind
    return kind + value_digest(value)


def value_digest(value: torch.Tensor) -> str:
    """A hash of the elements of a public tensor; without a key, so it must not leave this party."""
    with torch._C.DisableTorchFunctionSubclass(), temporarily_clear_interpreter_stack():
        data = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy() if value.numel() else b""
    return hashlib.blake2b(data, digest_size=STATE_BYTES).hexdigest()


_chain: ContextVar[Chain | None] = ContextVar("privml_chain", default=None)
# Whether a step is under way, whose parts are no steps of their own.
_within: ContextVar[bool] = ContextVar("privml_within_step", default=False)
within_step = _within.get


class along:
    """``with along(chain)``: what this thread computes belongs to a branch."""

    __slots__ = ("_chain", "_token")

    def __init__(self, chain: Chain | None) -> None:
        self._chain = chain

    def __enter__(self) -> None:
        self._token = _chain.set(self._chain)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _chain.reset(self._token)


class as_one_step:
    """``with as_one_step()``: what is computed inside are parts of the step taken last."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _within.set(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _within.reset(self._token)


@lru_cache(maxsize=4096)
def _is_the_users(code: CodeType) -> bool:
    name = code.co_filename
    if "site-packages" not in name and not name.startswith("<"):
        return not name.startswith(_NOT_THE_USERS)
    return not name.startswith((*_NOT_THE_USERS, "<frozen"))


def users_line() -> str:
    """File and line of the program that called privml, without its folder; "" where there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if _is_the_users(frame.f_code):
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def line_of(place: str, tag: int, where: str, text: str) -> str:
    """One line of an account, of printable ASCII."""
    where = printable(where, LONGEST_PLACE).replace(" ", "_") or NOWHERE
    return f"{place} {tag:016x} {where} {printable(text, LONGEST_TEXT)}"


@lru_cache(maxsize=4096)
def printable(text: str, longest: int) -> str:
    return "".join(c if " " <= c <= "~" else "?" for c in text[:longest])
