# SPDX-License-Identifier: Apache-2.0
"""What client and server say to each other before a query: the inputs' shapes, which are public, and where its
correlations come from."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from privml import _core
from privml.engines.base import Engine
from privml.engines.correlations import Correlations, OtChoice
from privml.engines.twopc import TwoPartyEngine
from privml.errors import InvalidInput
from privml.program import Program
from privml.service.choose_ot import LinkProfile, forecasts, named_choice, naming, reason
from privml.session.agreement import agree
from privml.session.preprocessing import Allotment, Preprocessing
from privml.session.session import Settings, active_engine, dealt_engine, make_engine

# Bounds what a client can make the server allocate.
LARGEST_INPUT = 1 << 26

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """What a party of a query brings along; ``link`` is what ot=auto reckons with at the server."""

    program: Program
    settings: Settings
    preprocessing: Preprocessing | None = None
    link: LinkProfile = LinkProfile()


@dataclass(frozen=True, slots=True)
class Terms:
    """What was settled: the inputs' ``shapes``, the ``correlations`` that the run draws, and their source: the store's
    ``allotment``, or (None) the session itself with ``ot``."""

    shapes: tuple[Shape, ...]
    ot: OtChoice
    correlations: Correlations
    allotment: Allotment | None = None
    preprocessing: Preprocessing | None = None
    why: str = ""

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> TwoPartyEngine:
        """See ``open_session``."""
        threads = len(self.correlations.lanes)
        if self.allotment is None or self.preprocessing is None:
            return make_engine(self.ot, threads, channels, rank, test_seed)
        return self.preprocessing.open(channels[:threads], rank, self.allotment, self.correlations)

    @property
    def stock(self) -> Correlations:
        """What the session has to make ahead of the run."""
        return self.correlations.stock if self.allotment is None else Correlations()

    @property
    def source(self) -> str:
        """Where the correlations came from, for people."""
        if self.allotment is not None:
            return f"from {self.preprocessing}"
        made = f"made by {self.ot}" + (f" (ot=auto: {self.why})" if self.why else "")
        return made if self.preprocessing is None else f"{made}, since too few are left in {self.preprocessing}"


@dataclass(frozen=True, slots=True)
class DealtTerms:
    """``Terms`` of a session with a dealer, who learns the inputs' ``shapes`` too."""

    shapes: tuple[Shape, ...]
    settings: Settings
    stock: Correlations = Correlations()
    source: str = "dealt by party 2"

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> Engine:
        """See ``open_session``."""
        return dealt_engine(self.settings, inputs_of(self.shapes), channels, rank, test_seed)


@dataclass(frozen=True, slots=True)
class ActiveTerms:
    """``Terms`` of a session that is secure against a peer who deviates; ``stock`` is what the run draws."""

    shapes: tuple[Shape, ...]
    settings: Settings
    stock: dict[str, Any]

    @property
    def source(self) -> str:
        return f"made by {self.settings.ot}"

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> Engine:
        """See ``open_session``."""
        return active_engine(self.settings, channels, rank, test_seed)


AnyTerms = Terms | DealtTerms | ActiveTerms


def _active_terms(service: Service, shapes: Sequence[Shape]) -> ActiveTerms:
    settings = service.settings
    stock = service.program.demand(*shapes, ring=settings.ring, truncation=settings.truncation)
    return ActiveTerms(tuple(shapes), settings, stock)


def inputs_of(shapes: Sequence[Shape]) -> dict[str, Any]:
    """What is said about the inputs in clear."""
    return {"inputs": [list(shape) for shape in shapes]}


def ask(channel: _core.Channel, service: Service, shapes: Sequence[Shape]) -> AnyTerms:
    """Client: announces the shapes. InvalidInput with the server's reason when it refuses."""
    if service.settings.dealt:
        agree(channel, inputs_of(shapes), lambda theirs: (None, {}), "the server refuses the query")
        return DealtTerms(tuple(shapes), service.settings)
    if service.settings.active:
        agree(channel, inputs_of(shapes), lambda theirs: (None, {}), "the server refuses the query")
        return _active_terms(service, shapes)
    store, ot, why = service.preprocessing, service.settings.ot, ""
    with contextlib.nullcontext() if store is None else store.turn:
        words = {**inputs_of(shapes), **({} if store is None else store.words())}
        _, verdict = agree(channel, words, lambda theirs: (None, {}), "the server refuses the query")
        allotment = None if store is None else store.claim(verdict.get("start"), _stored(service, shapes))
    _refuse_shortage(service, shapes, allotment)
    if allotment is None and not ot.decided:
        choice, why = named_choice(verdict, ot.security)
        ot = replace(choice, refill=ot.refill)
    return _terms(service, tuple(shapes), allotment, ot, why)


def grant(channel: _core.Channel, service: Service) -> AnyTerms:
    """Server: the client's shapes, answered with yes; InvalidInput, after telling the client, when they do not fit."""
    store, ot = service.preprocessing, service.settings.ot

    def check(theirs: dict[str, Any]) -> tuple[AnyTerms, dict[str, Any]]:
        shapes = checked_shapes(theirs, service.program)
        if service.settings.dealt:
            return DealtTerms(shapes, service.settings), {}
        if service.settings.active:
            return _active_terms(service, shapes), {}
        allotment = None if store is None else store.allot(theirs, _stored(service, shapes))
        further = {} if store is None else {"start": None if allotment is None else list(allotment.start)}
        if store is not None and allotment is None and store.when_empty == "refuse":
            return _terms(service, shapes, None, store.ot, ""), further
        if allotment is not None or ot.decided:
            return _terms(service, shapes, allotment, ot, ""), further
        ranked = forecasts(service.program, shapes, ot.security, service.link, service.settings.threads)
        choice, why = ranked[0].ot, reason(ranked, service.link)
        terms = _terms(service, shapes, None, replace(choice, refill=ot.refill), why)
        return terms, {**further, **naming(choice, why)}

    terms = agree(channel, {}, check, "the client gives up")[0]
    if isinstance(terms, Terms):
        _refuse_shortage(service, terms.shapes, terms.allotment)
    return terms


def _stored(service: Service, shapes: Sequence[Shape]) -> Correlations:
    """What a query on inputs of these shapes takes from the store."""
    assert service.preprocessing is not None
    return service.program.correlations(*shapes, ot=service.preprocessing.ot, threads=service.settings.threads)


def _refuse_shortage(service: Service, shapes: Sequence[Shape], allotment: Allotment | None) -> None:
    """Both parties come to the same end: the server has said whether its store suffices."""
    if service.preprocessing is not None and allotment is None:
        service.preprocessing.refuse_shortage(_stored(service, shapes))


def _terms(service: Service, shapes: tuple[Shape, ...], allotment: Allotment | None, ot: OtChoice, why: str) -> Terms:
    store = service.preprocessing
    used = ot if allotment is None or store is None else store.ot
    drawn = service.program.correlations(*shapes, ot=used, threads=service.settings.threads)
    return Terms(shapes, used, drawn, allotment, store, why)


def checked_shapes(words: dict[str, Any], program: Program) -> tuple[Shape, ...]:
    """The inputs' shapes that the other side announces; InvalidInput for those that the program does not take."""
    announced, specs = words.get("inputs"), program.inputs
    if not isinstance(announced, list) or len(announced) != len(specs):
        raise InvalidInput(f"the program takes {len(specs)} input(s)")
    for spec, shape in zip(specs, announced, strict=True):
        sizes = isinstance(shape, list) and all(type(n) is int and 0 < n <= LARGEST_INPUT for n in shape)
        if not sizes or math.prod(shape) > LARGEST_INPUT:
            raise InvalidInput(f"input {spec.name!r}: no shape that this party accepts")
        if len(shape) != len(spec.shape) or any(w not in (None, n) for w, n in zip(spec.shape, shape, strict=True)):
            raise InvalidInput(f"input {spec.name!r}: shape {shape}, but the program expects {list(spec.shape)}")
    return tuple(tuple(shape) for shape in announced)
