# SPDX-License-Identifier: Apache-2.0
"""What client and server agree on before each query: the inputs' shapes, which are public, and where its correlations
come from."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.engines.base import Engine
from privml.engines.correlations import Correlations, OtChoice
from privml.errors import ConfigError, InvalidInput, ProtocolError
from privml.program import Program
from privml.service.aborts import Aborts
from privml.service.choose_ot import choice_fields, choice_in, forecasts, link_of, reason
from privml.service.options import DEFAULT_SPEC, LARGEST_QUERY, QueryLimit
from privml.session.active_preprocessing import ActivePreprocessing
from privml.session.agreement import agree, confirm, expect_confirmation
from privml.session.preprocessing import Allotment, Preprocessing, StoreHalf
from privml.session.session import Settings, ask_dealer, engine_opener
from privml.spec import SessionSpec, checked_spec

# Seconds; more than any server waits for a next query.
LONGEST_IDLE = 1e9

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Service:
    """What a party of a query needs; ``aborts``: how often a server's sessions with each client have failed; ``limit``:
    the largest query that it accepts; ``dealer``: the address of party 2, if there is one."""

    program: Program
    settings: Settings
    preprocessing: StoreHalf | None = None
    aborts: Aborts = field(default_factory=Aborts)
    limit: QueryLimit = LARGEST_QUERY
    dealer: str | None = None


def settings_of(program: Program, spec: SessionSpec = DEFAULT_SPEC, preprocessing: StoreHalf | None = None) -> Settings:
    """What all parties of a query must agree on. ConfigError if ``spec`` contradicts the program or the store."""
    chosen = checked_spec(spec).backend
    if spec.numerics not in (program.numerics, chosen.numerics(spec.engine)):
        raise ConfigError("the program has formats of its own, other than those of spec.numerics: leave out numerics")
    if preprocessing is not None and chosen.stores:
        preprocessing.expect_engine(chosen.name, getattr(spec.engine, "ring", None))
        if spec.ot.security != preprocessing.ot.security:
            raise ConfigError(
                f"ot.security={spec.ot.security}, but the correlations of {preprocessing.store} are "
                f"{preprocessing.ot.security}"
            )
    return Settings.of(replace(spec, numerics=program.numerics), program, preprocessing)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a session may do after the query that is being negotiated: ``queries`` more, the next one within ``idle``
    seconds of the answer, and whether the correlations of one of the same shapes are made ``ahead`` meanwhile."""

    queries: int = 0
    idle: float = 0.0
    ahead: bool = False

    def fields(self) -> dict[str, Any]:
        return {"queries": self.queries, "idle": self.idle, "ahead": self.ahead}


class NeedsNewSession(Exception):
    """The store of the session does not suffice for its next query, which needs a session that makes its own."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed on: the inputs' ``shapes``, the ``correlations`` that the run draws, and their source: the
    store's ``allotment``, or (None) the session itself, of these ``settings``, with ``ot``. ``allowance``: see
    ``Allowance``."""

    shapes: tuple[Shape, ...]
    ot: OtChoice
    correlations: Correlations
    settings: Settings
    allotment: Allotment | None = None
    preprocessing: Preprocessing | None = None
    why: str = ""
    allowance: Allowance = Allowance()

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> Engine:
        """See ``open_session``."""
        threads = len(self.correlations.lanes)
        if self.allotment is None or self.preprocessing is None:
            return engine_opener(_choosing(self.settings, self.ot, threads))(channels, rank, test_seed)
        return self.preprocessing.open(channels[:threads], rank, self.allotment, self.correlations)

    def go_on(self, session: Session, channels: Sequence[_core.Channel]) -> None:
        """For a further query of ``session``, on its ``channels``: what ``open`` does for the first one."""
        if self.allotment is not None and self.preprocessing is not None:
            self.preprocessing.draw(session.engines.whole, self.allotment, self.correlations)

    @property
    def stock(self) -> Correlations:
        """What the session has to make ahead of the run."""
        return self.correlations.stock if self.allotment is None else Correlations()

    @property
    def next_stock(self) -> Correlations:
        """``stock`` of another query of the same shapes."""
        return self.stock

    @property
    def source(self) -> str:
        """Where the correlations came from, for people."""
        if self.allotment is not None:
            return f"from {self.preprocessing}"
        made = f"made by {self.ot}" + (f" (ot=auto: {self.why})" if self.why else "")
        return made if self.preprocessing is None else f"{made}, since too few are left in {self.preprocessing}"


@dataclass(frozen=True, slots=True)
class DealtTerms:
    """``Terms`` of a session with a dealer, which learns the inputs' ``shapes`` too."""

    shapes: tuple[Shape, ...]
    settings: Settings
    allowance: Allowance = Allowance()
    stock: Correlations = Correlations()
    next_stock: Correlations = Correlations()
    source: str = "dealt by party 2"

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> Engine:
        """See ``open_session``."""
        return engine_opener(self.settings, inputs_of(self.shapes))(channels, rank, test_seed)

    def go_on(self, session: Session, channels: Sequence[_core.Channel]) -> None:
        """See ``Terms``."""
        ask_dealer(channels[1], inputs_of(self.shapes))


@dataclass(frozen=True, slots=True)
class ActiveTerms:
    """``Terms`` of a session that is secure against a peer that deviates; ``stock`` is what the run draws, which for
    the ``first`` query is more: it shares the weights. A session on a store has one query, because the key is the
    query's.
    """

    shapes: tuple[Shape, ...]
    service: Service
    ot: OtChoice
    first: bool = True
    allowance: Allowance = Allowance()
    allotment: Allotment | None = None
    why: str = ""

    @property
    def stock(self) -> dict[str, Any]:
        return demand_of(self.service, self.shapes, not self.first)

    @property
    def next_stock(self) -> dict[str, Any]:
        return demand_of(self.service, self.shapes, further=True)

    @property
    def source(self) -> str:
        store = self.service.preprocessing
        if self.allotment is not None:
            return f"from {store}"
        made = f"made by {self.ot}" + (f" (ot=auto: {self.why})" if self.why else "")
        return made if store is None else f"{made}, since {store} does not suffice"

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> Engine:
        """See ``open_session``."""
        settings, store = self.service.settings, self.service.preprocessing
        if self.allotment is None or not isinstance(store, ActivePreprocessing):
            return engine_opener(_choosing(settings, self.ot))(channels, rank, test_seed)
        return store.open(channels[0], rank, self.allotment, settings.spec.engine.truncation)

    def go_on(self, session: Session, channels: Sequence[_core.Channel]) -> None:
        """See ``Terms``."""


AnyTerms = Terms | DealtTerms | ActiveTerms


def _choosing(settings: Settings, ot: OtChoice, threads: int | None = None) -> Settings:
    """``settings`` with the transfers that were agreed on, and as many lanes as they were counted for."""
    spec = replace(settings.spec, ot=ot)
    return replace(settings, spec=spec if threads is None else replace(spec, threads=threads))


def inputs_of(shapes: Sequence[Shape]) -> dict[str, Any]:
    """What is sent about the inputs in clear."""
    return {"inputs": [list(shape) for shape in shapes]}


def request_query(
    channel: _core.Channel,
    service: Service,
    shapes: Sequence[Shape],
    ahead: bool = False,
    held: AnyTerms | None = None,
) -> AnyTerms:
    """Client: announces the shapes, and whether correlations are to be made ``ahead`` of a next query. ``held``: the
    terms that the session was opened with, None if it is to be opened.

    InvalidInput with the server's reason if it refuses; NeedsNewSession, at both parties, if the store does not suffice
    for a further query.
    """
    store, settings = _store_for(service, held), service.settings
    with contextlib.nullcontext() if store is None else store.turn:
        fields = {**inputs_of(shapes), "ahead": ahead, **({} if store is None else store.request())}
        _, verdict = agree(channel, fields, lambda theirs: (None, {}), "the server refuses the query")
        allotment, start = None, verdict.get("start")
        if store is not None and start is not None:
            allotment = confirm(channel, lambda: store.claim(start, _stored(service, shapes)))
    allowance, shapes = _allowance_of(verdict, ahead), tuple(shapes)
    _refuse_shortage(service, shapes, allotment, store)
    choice = None
    if held is None and allotment is None and not settings.backend.dealt and not settings.spec.ot.decided:
        choice = choice_in(verdict, settings.spec)
    return _terms(service, shapes, allowance, held, allotment, choice)


def grant_query(
    channel: _core.Channel, service: Service, allowance: Allowance = Allowance(), held: AnyTerms | None = None
) -> AnyTerms:
    """Server: checks the client's shapes and answers with the ``allowance``. InvalidInput, which the client gets too,
    if they do not fit; IdentityError for a client whose sessions have failed too often. ``held``: see
    ``request_query``."""
    store, settings = _store_for(service, held), service.settings

    def check(theirs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if service.settings.backend.actively_secure:
            service.aborts.require_trust(channel.peer_name, service.settings.spec.engine.ring)
        shapes = checked_shapes(theirs, service.program, service.limit)
        allotment = None if store is None else store.allot(theirs, _stored(service, shapes))
        ahead = allowance.ahead and allowance.queries > 0 and theirs.get("ahead") is True
        # A small ring tolerates few failed sessions, and a client may leave while something is made ahead.
        small = settings.backend.actively_secure and settings.spec.engine.ring == 32
        waits = not settings.backend.dealt and not small
        given = replace(allowance, ahead=ahead and allotment is None and waits)
        if settings.backend.actively_secure and allotment is not None:
            given = replace(given, queries=0)
        fields = given.fields() | ({} if store is None else {"start": allotment and list(allotment.start)})
        short = store is not None and allotment is None and store.when_empty == "refuse"
        if settings.backend.dealt or held is not None or allotment is not None or settings.spec.ot.decided or short:
            return (shapes, given, allotment), fields
        ranked = forecasts(service.program, shapes, settings.spec)
        choice = ranked[0].ot, reason(ranked, link_of(settings.spec))
        return (shapes, given, None, choice), {**fields, **choice_fields(*choice)}

    (shapes, given, *further), _ = agree(channel, {}, check, "the client gives up")
    _refuse_shortage(service, shapes, further[0], store)
    if further[0] is not None:
        expect_confirmation(channel, "the client gives up")  # its half may be on a full disk
    return _terms(service, shapes, given, held, *further)


def demand_of(service: Service, shapes: Sequence[Shape], further: bool = False) -> dict[str, Any]:
    """What an actively secure query draws, the first one of a session or a further one."""
    spec = service.settings.spec
    return service.program.demand(shapes, spec, further)


def _allowance_of(verdict: dict[str, Any], requested: bool) -> Allowance:
    """What the server allows; ProtocolError for what no server sends."""
    queries, idle, ahead = (verdict.get(name) for name in ("queries", "idle", "ahead"))
    fits = type(queries) is int and queries >= 0 and type(idle) in (int, float) and 0 <= idle < LONGEST_IDLE
    if not fits or type(ahead) is not bool or (ahead and not requested):
        raise ProtocolError("the server does not say how many further queries it allows")
    return Allowance(queries, float(idle), ahead)


def _stored(service: Service, shapes: Sequence[Shape]) -> Any:
    """What a query on inputs of these shapes takes from the store: Correlations, or the demand of an actively secure
    one."""
    assert service.preprocessing is not None
    if service.settings.backend.actively_secure:
        return demand_of(service, shapes)
    return service.program.correlations(shapes, replace(service.settings.spec, ot=service.preprocessing.ot))


def _store_for(service: Service, held: AnyTerms | None) -> StoreHalf | None:
    """The store that a query may draw from: none in a session that makes its correlations, under other secrets."""
    return None if isinstance(held, (Terms, ActiveTerms)) and held.allotment is None else service.preprocessing


def _refuse_shortage(
    service: Service, shapes: Sequence[Shape], allotment: Allotment | None, store: StoreHalf | None
) -> None:
    """Both parties come to the same end: the server has said whether its store suffices."""
    if store is not None and allotment is None:
        store.refuse_shortage(_stored(service, shapes))


def _terms(
    service: Service,
    shapes: tuple[Shape, ...],
    allowance: Allowance,
    held: AnyTerms | None,
    allotment: Allotment | None = None,
    choice: tuple[OtChoice, str] | None = None,
) -> AnyTerms:
    """``choice``: the transfers that ot=auto has chosen, if they were to be chosen."""
    settings, store = service.settings, service.preprocessing
    if settings.backend.dealt:
        return DealtTerms(shapes, settings, allowance)
    ot, why = settings.spec.ot, ""
    if choice is not None:
        ot, why = replace(choice[0], refill=ot.refill), choice[1]
    if isinstance(held, (Terms, ActiveTerms)):
        if held.allotment is not None and (allotment is None or settings.backend.actively_secure):
            raise NeedsNewSession
        ot, why = held.ot, held.why
    if settings.backend.actively_secure:
        allowance = allowance if allotment is None else replace(allowance, queries=0, ahead=False)
        return ActiveTerms(shapes, service, ot, held is None, allowance, allotment, why)
    half = store if isinstance(store, Preprocessing) else None
    used = ot if allotment is None or half is None else half.ot
    drawn = service.program.correlations(shapes, replace(settings.spec, ot=used))
    return Terms(shapes, used, drawn, settings, allotment, half, why, allowance)


def checked_shapes(fields: dict[str, Any], program: Program, limit: QueryLimit) -> tuple[Shape, ...]:
    """The inputs' shapes that the other party announces; InvalidInput for those that the program does not take, and for
    more than ``limit`` allows."""
    announced, specs = fields.get("inputs"), program.inputs
    if not isinstance(announced, list) or len(announced) != len(specs):
        raise InvalidInput(f"the program takes {len(specs)} input(s)")
    for spec, shape in zip(specs, announced, strict=True):
        if not isinstance(shape, list) or not all(type(n) is int and n > 0 for n in shape):
            raise InvalidInput(f"input {spec.name!r}: no shape that this party accepts")
        if len(shape) != len(spec.shape) or any(w not in (None, n) for w, n in zip(spec.shape, shape, strict=True)):
            raise InvalidInput(f"input {spec.name!r}: shape {shape}, but the program expects {list(spec.shape)}")
    limit.check(specs, announced)
    return tuple(tuple(shape) for shape in announced)
