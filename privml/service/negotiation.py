# SPDX-License-Identifier: Apache-2.0
"""What client and server agree on before each query: the inputs' shapes, which are public, and where its correlations
come from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import privml._core as _core
from privml.context import Session
from privml.engines.base import Engine
from privml.engines.correlations import Correlations
from privml.engines.stores import Need
from privml.errors import ConfigError, InvalidInput, ProtocolError
from privml.graph.ir import misfit
from privml.graph.state import State
from privml.program import Program
from privml.service.aborts import Aborts
from privml.service.choose_ot import choice_fields, choice_in, forecasts, reason
from privml.service.options import DEFAULT_SPEC, LARGEST_QUERY, QueryLimit
from privml.session.agreement import agree, confirm, expect_confirmation
from privml.session.ledger import Snapshot
from privml.session.preprocessing import Allotment, StoreHalf
from privml.session.session import Settings, ask_dealer, engine_opener
from privml.session.supply import MOST_QUERIES, Supply
from privml.spec import LinkProfile, SessionSpec, checked_spec

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
        preprocessing.check(spec)
        _expect_weights(program, preprocessing)
    stored = preprocessing is not None and chosen.dealt
    return Settings.of(replace(spec, numerics=program.numerics, stored=stored), program, preprocessing)


def _expect_weights(program: Program, store: StoreHalf) -> None:
    """StoreError at the server if its half was made for other weights than the program has now."""
    if program.weights is not None and store.store.header.weights:
        store.expect_weights(program.weights_digest())


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a session may do after the query that is being negotiated: ``queries`` more, the next one within ``idle``
    seconds of the answer, and whether the correlations of one of the same shapes are made ``ahead`` meanwhile; of how
    many the products with weights are prepared together then (``prepare``), once none is left."""

    queries: int = 0
    idle: float = 0.0
    ahead: bool = False
    prepare: int = 0

    def fields(self) -> dict[str, Any]:
        return {"queries": self.queries, "idle": self.idle, "ahead": self.ahead, "prepare": self.prepare}


class NeedsNewSession(Exception):
    """The store of the session does not suffice for its next query, which needs a session that makes its own."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What was agreed on: the inputs' ``shapes``; how the session runs (``spec``, with the transfers that were chosen,
    ``why``, and the link that both reckon with); the source of its correlations: the store's ``allotment``, or (None)
    the session itself, which has to make ``stock`` ahead of the run. ``asked``: what the client has announced, which a
    dealer gets too. ``supply``: of the session; the run uses its next products if ``spec`` says so."""

    service: Service
    shapes: tuple[Shape, ...]
    spec: SessionSpec
    stock: Any
    allowance: Allowance = Allowance()
    allotment: Allotment | None = None
    why: str = ""
    asked: dict[str, Any] = field(default_factory=dict)
    supply: Supply = field(default_factory=Supply)

    def open(self, channels: Sequence[_core.Channel], rank: int, test_seed: int | None) -> Engine:
        """See ``open_session``."""
        store = self.service.preprocessing
        if self.allotment is not None and store is not None:
            return store.open(channels, rank, self.spec, self.allotment, self._need)
        settings = replace(self.service.settings, spec=self.spec)
        return engine_opener(settings, self.asked)(channels, rank, test_seed)

    def go_on(self, session: Session, channels: Sequence[_core.Channel]) -> None:
        """For a further query of ``session``, on its ``channels``: what ``open`` does for the first one."""
        engine, store, stores = session.engines.whole, self.service.preprocessing, self.spec.backend.stores
        if self.spec.dealt:
            ask_dealer(channels[1], self.asked)
        elif self.allotment is not None and store is not None:
            store.draw(engine, self.spec, self.allotment, self._need)
        elif stores is not None:
            stores.hold(engine, self.supply.take() if self.spec.prepared else {}, self.spec)

    def settle(self, session: Session) -> None:
        """Once all outputs of the query are computed, and before one is opened: that both parties have used what was
        allotted to it, and alike, and that the weights are those that it was made for. ProtocolError, StoreError, or
        ProgramsDiffer where outputs are opened."""
        store = self.service.preprocessing
        if self.allotment is not None and store is not None:
            _expect_weights(self._program, store)  # they may have been replaced since the query began
            session.step("what it has drawn from the store", *store.stores.settled(session.engines.whole))

    def prepare(self, session: Session) -> Snapshot:
        """Prepares products of further queries of the same shapes; returns what that cost this party."""
        if self.allowance.prepare == 0:
            return Snapshot()
        direct = replace(self.spec, prepared=frozenset())
        return self.supply.fill(session, self._program, self._following, direct, self.allowance.prepare)

    @property
    def next_stock(self) -> Any:
        """``stock`` of another query of the same shapes, once ``prepare`` has done what it does."""
        places = self.supply.places if self.supply.shapes == self._following else frozenset()
        return demanded(self._program, self._following, replace(self.spec, prepared=places), True, self.allotment)

    @property
    def _program(self) -> Program:
        return self.service.program

    @property
    def _following(self) -> tuple[Shape, ...]:
        return self._program.following(self.shapes)

    @property
    def _need(self) -> Need:
        return needed(self._program, self.shapes, self.spec)

    @property
    def source(self) -> str:
        """Where the correlations came from, for people."""
        store = self.service.preprocessing
        if self.spec.dealt:
            return "dealt by party 2"
        if self.allotment is not None:
            return f"from {store}"
        made = f"made by {self.spec.ot}" + (f" (ot=auto: {self.why})" if self.why else "")
        return made if store is None else f"{made}, since too little is left in {store}"


def demanded(
    program: Program, shapes: Sequence[Shape], spec: SessionSpec, further: bool, allotment: Allotment | None
) -> Any:
    """What a session makes ahead of its first query, which may draw more, for it shares the weights, or of a
    ``further`` one: nothing beside an ``allotment``."""
    demand = None if allotment is not None else program.demand(shapes, spec, further)
    return Correlations() if demand is None else demand


def needed(program: Program, shapes: Sequence[Shape], spec: SessionSpec) -> Need:
    """What a query takes from a store."""
    stores = spec.backend.stores
    assert stores is not None
    return stores.need(program, shapes, spec)


def announced(program: Program, shapes: Sequence[Shape], state: State | None) -> dict[str, Any]:
    """What is sent about a query on inputs of these ``shapes`` (see ``Program.complete``) in clear: theirs, and with
    state which step of its session it is and the shapes of what it finds."""
    count = len(program.inputs)
    fields: dict[str, Any] = {"inputs": [list(shape) for shape in shapes[:count]]}
    if program.state:
        fields |= {"step": state.steps if state else 0, "state": [list(shape) for shape in shapes[count:]]}
    return fields


def request_query(
    channel: _core.Channel,
    service: Service,
    shapes: Sequence[Shape],
    ahead: bool = False,
    held: Terms | None = None,
    state: State | None = None,
) -> Terms:
    """Client: announces the shapes, and whether correlations are to be made ``ahead`` of a next query. ``held``: the
    terms that the session was opened with, None if it is to be opened; ``state``: what it keeps, if it does.

    InvalidInput with the server's reason if it refuses; NeedsNewSession, at both parties, if the store does not suffice
    for a further query.
    """
    store, settings = _store_for(service, held), service.settings
    shapes = service.program.complete(shapes, 0 if state is None else state.length)
    asked = announced(service.program, shapes, state)
    with contextlib.nullcontext() if store is None else store.turn:
        fields = {**asked, "ahead": ahead, **({} if store is None else store.request())}
        _, verdict = agree(channel, fields, lambda theirs: (None, {}), "the server refuses the query")
        agreed = _agreed(service, held, verdict)
        allotment, start = None, verdict.get("start")
        if store is not None and start is not None:
            allotment = confirm(channel, lambda: store.claim(start, _need(service, agreed, shapes)))
    allowance, shapes = _allowance_of(verdict, ahead), tuple(shapes)
    _refuse_shortage(service, agreed, shapes, allotment, store)
    choice = None
    if held is None and allotment is None and not settings.backend.dealt and not settings.spec.ot.decided:
        choice = choice_in(verdict, settings.spec)
    agreed = _supplied(agreed, held, shapes)
    return _terms(service, agreed, asked, (shapes, allowance, allotment, choice), held)


def grant_query(
    channel: _core.Channel,
    service: Service,
    allowance: Allowance = Allowance(),
    held: Terms | None = None,
    state: State | None = None,
    hold: Callable[[int], None] = lambda bytes: None,
) -> Terms:
    """Server: checks the client's shapes and answers with the ``allowance``. InvalidInput, which the client gets too,
    if they do not fit; IdentityError for a client whose sessions have failed too often. ``held``, ``state``: see
    ``request_query``; ``hold`` gets the bytes that the session keeps after the query, and raises InvalidInput if these
    are too many."""
    store, settings = _store_for(service, held), service.settings
    agreed = _agreed(service, held)

    def check(theirs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if service.settings.backend.actively_secure:
            service.aborts.require_trust(channel.peer_name, service.settings.spec.engine.ring)
        shapes = checked_shapes(theirs, service.program, service.limit, state)
        hold(service.program.state_bytes(shapes))
        if store is not None:
            _expect_weights(service.program, store)  # they may have been replaced since the server began
        allotment = None if store is None else store.allot(theirs, _need(service, agreed, shapes))
        ahead = allowance.ahead and allowance.queries > 0 and theirs.get("ahead") is True
        # A small ring tolerates few failed sessions, and a client may leave while something is made ahead.
        small = settings.backend.actively_secure and settings.spec.engine.ring == 32
        waits = not settings.backend.dealt and not small
        ahead = ahead and allotment is None and waits
        given = replace(allowance, ahead=ahead, prepare=allowance.prepare if ahead else 0)
        if store is not None and store.stores.whole and allotment is not None:
            given = replace(given, queries=0)
        fields = given.fields() | ({} if store is None else {"start": allotment and list(allotment.start)})
        if held is None and settings.backend.uses_link(settings.spec):
            fields |= link_fields(agreed.link)
        short = store is not None and allotment is None and store.when_empty == "refuse"
        if settings.backend.dealt or held is not None or allotment is not None or settings.spec.ot.decided or short:
            return (shapes, given, allotment), fields
        ranked = forecasts(service.program, shapes, agreed)
        choice = ranked[0].ot, reason(ranked, agreed.expected_link)
        return (shapes, given, None, choice), {**fields, **choice_fields(*choice)}

    (shapes, given, *further), _ = agree(channel, {}, check, "the client gives up")
    agreed = _supplied(agreed, held, shapes)
    _refuse_shortage(service, agreed, shapes, further[0], store)
    if further[0] is not None:
        expect_confirmation(channel, "the client gives up")  # its half may be on a full disk
    asked = announced(service.program, shapes, state)
    return _terms(service, agreed, asked, (shapes, given, *further), held)


def _allowance_of(verdict: dict[str, Any], requested: bool) -> Allowance:
    """What the server allows; ProtocolError for what no server sends."""
    queries, idle, ahead = (verdict.get(name) for name in ("queries", "idle", "ahead"))
    fits = type(queries) is int and queries >= 0 and type(idle) in (int, float) and 0 <= idle < LONGEST_IDLE
    if not fits or type(ahead) is not bool or (ahead and not requested):
        raise ProtocolError("the server does not say how many further queries it allows")
    prepare = verdict.get("prepare", 0)
    if type(prepare) is not int or not 0 <= prepare <= (MOST_QUERIES if ahead else 0):
        raise ProtocolError("the server prepares an impossible number of queries")
    return Allowance(queries, float(idle), ahead, prepare)


def _supplied(agreed: SessionSpec, held: Terms | None, shapes: Sequence[Shape]) -> SessionSpec:
    """How a further query of a session runs that may have prepared products for inputs of these shapes: both parties
    agree on them."""
    if held is None:
        return agreed
    fits = held.supply.shapes == tuple(shapes)
    return replace(agreed, prepared=held.supply.places if fits else frozenset())


def _agreed(service: Service, held: Terms | None, verdict: dict[str, Any] | None = None) -> SessionSpec:
    """How the session runs, but for transfers that are not chosen yet: with the server's link where that counts, which
    a client finds in its ``verdict``."""
    if held is not None:
        return held.spec
    spec = service.settings.spec
    if not service.settings.backend.uses_link(spec):
        return spec
    return replace(spec, link=spec.expected_link if verdict is None else link_in(verdict), simulated=None)


def link_fields(link: LinkProfile) -> dict[str, Any]:
    """The link that party 0 names, as fields for the peer."""
    return {"link": [link.delay_ms, link.bandwidth_mbps]}


def link_in(fields: dict[str, Any]) -> LinkProfile:
    """The link that the peer names; ProtocolError for anything else."""
    named = fields.get("link")
    if isinstance(named, list) and len(named) == 2 and all(type(number) in (int, float) for number in named):
        with contextlib.suppress(ConfigError, OverflowError):
            return LinkProfile(float(named[0]), float(named[1]))
    raise ProtocolError("the peer does not say which link it assumes")


def _need(service: Service, agreed: SessionSpec, shapes: Sequence[Shape]) -> Need:
    """What a query on inputs of these shapes takes from the store."""
    return needed(service.program, shapes, _drawing(service, agreed, shapes))


def _drawing(service: Service, agreed: SessionSpec, shapes: Sequence[Shape]) -> SessionSpec:
    """How a query runs that draws from the store: with what that was made by and for; products were prepared for inputs
    of its own shapes alone."""
    store = service.preprocessing
    assert store is not None
    whole = tuple(shapes) == service.program.complete(service.program.shapes(store.store.header.batch))
    prepared = store.prepared if whole else frozenset()
    return replace(agreed, ot=store.ot, link=store.link or agreed.link, prepared=prepared)


def _store_for(service: Service, held: Terms | None) -> StoreHalf | None:
    """The store that a query may draw from: none in a session that makes its correlations, under other secrets."""
    return None if held is not None and held.allotment is None else service.preprocessing


def _refuse_shortage(
    service: Service,
    agreed: SessionSpec,
    shapes: Sequence[Shape],
    allotment: Allotment | None,
    store: StoreHalf | None,
) -> None:
    """Both parties come to the same end: the server has said whether its store suffices."""
    if store is not None and allotment is None:
        store.refuse_shortage(_need(service, agreed, shapes))


def _terms(
    service: Service,
    agreed: SessionSpec,
    asked: dict[str, Any],
    settled: tuple[Any, ...],
    held: Terms | None,
) -> Terms:
    """``asked``: what was announced; ``settled``: the shapes, the allowance, the allotment, and the transfers that
    ot=auto has chosen, if they were to be chosen."""
    shapes, allowance, allotment, choice = (*settled, None)[:4]
    store, spec, why = service.preprocessing, agreed, "" if held is None else held.why
    whole = store is not None and store.stores.whole
    if held is not None and held.allotment is not None and (allotment is None or whole):
        raise NeedsNewSession
    if choice is not None:
        spec, why = replace(spec, ot=replace(choice[0], refill=spec.ot.refill)), choice[1]
    if allotment is not None:
        spec = _drawing(service, spec, shapes)
        if whole:
            allowance = replace(allowance, queries=0, ahead=False)
    stock = demanded(service.program, shapes, spec, held is not None, allotment)
    supply = Supply() if held is None else held.supply
    return Terms(service, shapes, spec, stock, allowance, allotment, why, asked, supply)


def checked_shapes(
    fields: dict[str, Any], program: Program, limit: QueryLimit, state: State | None = None
) -> tuple[Shape, ...]:
    """The shapes that the other party announces, complete; InvalidInput for those that the program does not take, for
    more than ``limit`` allows, and for another step than that which finds the ``state``."""
    shapes, specs = fields.get("inputs"), program.inputs
    if not isinstance(shapes, list) or len(shapes) != len(specs):
        raise InvalidInput(f"the program takes {len(specs)} input(s)")
    for spec, shape in zip(specs, shapes, strict=True):
        if not isinstance(shape, list) or not all(type(n) is int and n > 0 for n in shape):
            raise InvalidInput(f"input {spec.name!r}: its shape is not a list of whole numbers above 0")
        wrong = misfit(shape, spec.shape)
        if wrong is not None:
            raise InvalidInput(f"input {spec.name!r}: {wrong}")
    limit.check(specs, shapes)
    complete = program.complete(shapes, state.length if state else 0)
    if program.state:
        steps = state.steps if state else 0
        if fields.get("step") != steps or fields.get("state") != [list(shape) for shape in complete[len(specs) :]]:
            raise InvalidInput(f"the session is at step {steps + 1}, and another step was asked for")
        (state or State(program.state, None)).check(program.open_size(complete))
    return complete
