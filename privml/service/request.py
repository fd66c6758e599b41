# SPDX-License-Identifier: Apache-2.0
"""What client and server say to each other before a query: the inputs' shapes, which are public, and where its
correlations come from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privml import _core
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.twopc import TwoPartyEngine
from privml.errors import InvalidInput
from privml.program import Program, TensorSpec
from privml.session.agreement import agree
from privml.session.preprocessing import Preprocessing
from privml.session.session import Settings, make_engine
from privml.store.files import Position

# Bounds what a client can make the server allocate.
LARGEST_INPUT = 1 << 26

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """What a party of a query brings along."""

    program: Program
    settings: Settings
    preprocessing: Preprocessing | None = None

    def words(self) -> dict[str, Any]:
        return {} if self.preprocessing is None else self.preprocessing.words()


@dataclass(frozen=True, slots=True)
class Terms:
    """What was settled: the inputs' ``shapes``, the ``correlations`` that the run draws, and their source: the store
    from ``start`` on, or (``start`` None) the session itself with ``ot``."""

    shapes: tuple[Shape, ...]
    ot: OtChoice
    correlations: Correlations
    start: Position | None = None
    preprocessing: Preprocessing | None = None

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> TwoPartyEngine:
        """See ``open_session``."""
        threads = len(self.correlations.lanes)
        if self.start is None or self.preprocessing is None:
            return make_engine(self.ot, threads, channels, rank, test_seed)
        return self.preprocessing.open(channels[:threads], rank, self.start, self.correlations)

    @property
    def stock(self) -> Correlations:
        """What the session has to make ahead of the run."""
        return self.correlations.stock if self.start is None else Correlations()

    @property
    def source(self) -> str:
        """Where the correlations came from, for people."""
        if self.start is not None:
            return f"from {self.preprocessing}"
        made = f"made by {self.ot}"
        return made if self.preprocessing is None else f"{made}, since too few are left in {self.preprocessing}"


def ask(channel: _core.Channel, service: Service, shapes: Sequence[Shape]) -> Terms:
    """Client: announces the shapes. InvalidInput with the server's reason when it refuses."""
    wanted = {"inputs": [list(shape) for shape in shapes], **service.words()}
    terms, _ = agree(
        channel, wanted, lambda theirs: (_settle(service, shapes, theirs), {}), "the server refuses the query"
    )
    return terms


def grant(channel: _core.Channel, service: Service) -> Terms:
    """Server: the client's shapes, answered with yes; InvalidInput, after telling the client, when they do not fit."""

    def check(theirs: dict[str, Any]) -> tuple[Terms, dict[str, Any]]:
        return _settle(service, _checked(theirs.get("inputs"), service.program.inputs), theirs), {}

    return agree(channel, service.words(), check, "the client gives up")[0]


def _settle(service: Service, shapes: Sequence[Shape], theirs: dict[str, Any]) -> Terms:
    """What both parties conclude alike from the shapes and from where both halves of the store stand."""
    shapes, threads, store = tuple(shapes), service.settings.threads, service.preprocessing
    if store is not None:
        drawn = service.program.correlations(*shapes, ot=store.ot, threads=threads)
        start = store.settle(theirs, drawn)
        if start is not None:
            return Terms(shapes, store.ot, drawn, start, store)
    ot = service.settings.ot
    return Terms(shapes, ot, service.program.correlations(*shapes, ot=ot, threads=threads), None, store)


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
