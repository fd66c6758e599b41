# SPDX-License-Identifier: Apache-2.0
"""State of a program: outputs of one call that are inputs of the next call in the same session.

The last inputs of a graph and its last outputs belong together, one of each for every state. What is kept is shared
between the parties, in the format of the input; the first call finds zeros. A state that ``grows`` begins empty: what
its output holds is appended along one dimension. Lengths are public.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.errors import CorruptFile, InvalidInput, StateLost
from privml.formats import Boolean, FixedPoint, Float, Format, Integer, Owned
from privml.graph.ir import dtype_of, placeholders, shape_of
from privml.ops.rescaling import convert
from privml.ops.ring_formats import ring_format
from privml.ops.values import constant, engine_of, ring_value
from privml.tensor import SHARED, SecretTensor
from privml.transcript import as_one_step

Shape = tuple[int, ...]
# Bytes of an element at one party, at most: a share and its MAC of 128 bits.
ELEMENT_BYTES = 32


@dataclass(frozen=True, slots=True)
class StateSpec:
    """A state: ``shape``, ``dtype`` and ``format`` of its input, where None is the batch, or the length along ``grows``
    (None: it is replaced as a whole), which is at most ``most``; ``by``: how much one call adds to the length, None if
    it is the size that the inputs leave open."""

    name: str
    shape: tuple[int | None, ...]
    dtype: torch.dtype
    format: Format
    grows: int | None = None
    most: int | None = None
    by: int | None = None

    def shape_at(self, open_size: int, length: int) -> Shape:
        """The shape if the batch is ``open_size``, and the state ``length`` long."""
        pairs = enumerate(self.shape)
        return tuple(length if dim == self.grows else open_size if n is None else n for dim, n in pairs)

    def added(self, open_size: int) -> int:
        """How much longer a call makes it on inputs whose open size is this."""
        return 0 if self.grows is None else open_size if self.by is None else self.by


def states_of(graph: fx.Graph, entries: Sequence[Mapping[str, Any]]) -> tuple[StateSpec, ...]:
    """The states of a program's graph, in order, of what its body says about them; CorruptFile for what no program
    says."""
    inputs, (outputs,) = placeholders(graph), graph.output_node().args
    if len(entries) > min(len(inputs), len(outputs)) or len({entry["name"] for entry in entries}) < len(entries):
        raise CorruptFile("a program has more states than inputs or outputs, or two states of one name")
    pairs = zip(inputs[len(inputs) - len(entries) :], outputs[len(outputs) - len(entries) :], strict=True)
    return tuple(_state_of(entry, node, output) for entry, (node, output) in zip(entries, pairs, strict=True))


def _state_of(entry: Mapping[str, Any], node: fx.Node, output: fx.Node) -> StateSpec:
    name, grows, most = entry["name"], entry["grows"], entry["most"]
    shape, dtype, made = shape_of(node), dtype_of(node), shape_of(output)
    if not isinstance(name, str) or not 0 < len(name) <= 128:
        raise CorruptFile("a state without a name")
    if grows is None:
        if most is not None or shape != made:
            raise CorruptFile(f"state {name!r}: its output has another shape than its input")
        by = None
    else:
        if type(grows) is not int or not 0 <= grows < len(shape) or type(most) is not int or not 0 < most < 2**31:
            raise CorruptFile(f"state {name!r} grows without a dimension or a greatest length")
        others = [(a, b) for dim, (a, b) in enumerate(zip(shape, made, strict=True)) if dim != grows]
        if shape[grows] is not None or any(a != b for a, b in others):
            raise CorruptFile(f"state {name!r}: its output cannot be appended to it")
        by = made[grows]
    if not node.meta["secret"] or dtype != dtype_of(output):
        raise CorruptFile(f"state {name!r} is public, or changes its dtype")
    return StateSpec(name, tuple(shape), dtype, node.meta["format"], grows, most, by)


# ---- shares
def begun(spec: StateSpec, shape: Shape, session: Session) -> SecretTensor:
    """The state before the first call: zeros, or nothing."""
    fmt = held_format(spec.format, session)
    session.step("begin state", spec.name, shape, repr(fmt))
    with as_one_step():
        share = constant(0, shape, fmt, session.engine)
    return _named(tuple(c.clone() for c in share), fmt, spec, session)


def kept(spec: StateSpec, result: SecretTensor, session: Session) -> SecretTensor:
    """A call's output in the state's format, in memory of its own."""
    fmt = held_format(spec.format, session)
    session.step("keep state", spec.name, result)
    with as_one_step(), torch.no_grad():
        share = result.share
        if not isinstance(fmt, Boolean):
            source: Format = result.format
            if not isinstance(source, Float) and not isinstance(fmt, Float):
                share, source = ring_value(result, spec.dtype)
            share = convert(engine_of(result), share, source, fmt)
            if isinstance(result.placement, Owned) and not isinstance(fmt, Float):  # its owner holds the number itself
                share = session.engine.reduce(share, 64, fmt.bits)
    return _named(tuple(c.clone() for c in share), fmt, spec, session)


def appended(spec: StateSpec, state: SecretTensor, new: SecretTensor, session: Session) -> SecretTensor:
    """``state`` with ``new``, of the same format, at its end."""
    session.step("extend state", spec.name, state, new)
    share = tuple(torch.cat(pair, spec.grows) for pair in zip(state.share, new.share, strict=True))
    return _named(share, state.format, spec, session)


def held_format(fmt: Format, session: Session) -> Any:
    """In which a state is kept: as an input, without what an input's owner proves by sharing it."""
    if isinstance(fmt, FixedPoint):
        wide = session.engine.stays_wide and fmt.bits < session.working.bits
        return ring_format(session.working.bits if wide else fmt.bits, fmt.scale, True)
    return ring_format(fmt.bits, 0, False) if isinstance(fmt, Integer) else fmt


def _named(share: tuple[torch.Tensor, ...], fmt: Format, spec: StateSpec, session: Session) -> SecretTensor:
    value = SecretTensor(share, fmt, SHARED, session, spec.dtype)
    session.name(value)
    return value


class State:
    """What a session keeps of one program between two calls. ``steps``: calls so far; ``length``: of what grows."""

    def __init__(self, specs: Sequence[StateSpec], weights: object) -> None:
        """``weights``: stands for those that the program has."""
        self._specs, self.weights = tuple(specs), weights
        self._values: list[SecretTensor] = []
        self._open_size: int | None = None  # of the batch
        self.steps = self.length = 0
        self._lost: BaseException | None = None

    def begin(self, open_size: int, session: Session) -> list[SecretTensor]:
        """The values that a call on inputs of this open size begins with; errors of ``check``."""
        self.check(open_size)
        if not self.steps:
            return [begun(spec, spec.shape_at(open_size, 0), session) for spec in self._specs]
        # What is revealed of whole numbers and bits may lie in the memory of their share, which is overwritten.
        return [value if value.dtype.is_floating_point else value.clone() for value in self._values]

    def check(self, open_size: int) -> None:
        """StateLost after a call that failed; InvalidInput if a call's batch is not that of the state, or if it would
        grow too long."""
        if self._lost is not None:
            raise StateLost(f"the state is gone: step {self.steps + 1} failed ({type(self._lost).__name__})")
        for spec in self._specs:
            batch = any(n is None and dim != spec.grows for dim, n in enumerate(spec.shape))
            if batch and self.steps and open_size != self._open_size:
                raise InvalidInput(f"state {spec.name!r} has {self._open_size} row(s), but the input has {open_size}")
            if spec.most is not None and self.length + spec.added(open_size) > spec.most:
                raise InvalidInput(
                    f"state {spec.name!r} holds {self.length} of at most {spec.most}: {spec.added(open_size)} more do "
                    "not fit"
                )

    def keep(
        self, before: Sequence[SecretTensor], results: Sequence[SecretTensor], open_size: int, session: Session
    ) -> None:
        """Takes over the outputs of a call that began with the values ``before``."""
        pairs = zip(self._specs, before, results, strict=True)
        self._values = [next_state(spec, old, result, session) for spec, old, result in pairs]
        self.passed(open_size)

    def passed(self, open_size: int) -> None:
        """Counts a call."""
        self._open_size = open_size
        self.length += max((spec.added(open_size) for spec in self._specs), default=0)
        self.steps += 1

    def lose(self, error: BaseException) -> None:
        """A call failed in the middle: parties may hold different states."""
        self.wipe()
        self._lost = error

    @property
    def bytes(self) -> int:
        """Of the shares in this process."""
        return sum(c.numel() * c.element_size() for value in self._values for c in value.share)

    def wipe(self) -> None:
        """Overwrites the shares."""
        for value in self._values:
            for component in value.share:
                component.zero_()
        self._values = []


def next_state(spec: StateSpec, old: SecretTensor, result: SecretTensor, session: Session) -> SecretTensor:
    """The state after a call with this ``result``, in its format; its cost is an entry of the session's ledger."""
    booked = contextlib.nullcontext() if session.ledger is None else session.ledger.node(f"state {spec.name}", "state")
    with booked:
        new = kept(spec, result, session)
        return new if spec.grows is None else appended(spec, old, new, session)
