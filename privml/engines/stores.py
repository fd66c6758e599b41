# SPDX-License-Identifier: Apache-2.0
"""How an engine's correlations come to a store, and from there to a session."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import privml._core as _core
from privml.engines.correlations import OtChoice
from privml.errors import CorruptFile

if TYPE_CHECKING:
    from privml.engines.base import Engine
    from privml.session.preprocessing import JointWriter
    from privml.spec import SessionSpec
    from privml.store.layout import Header
    from privml.store.store import Chunk

# What ``SessionSpec.prepared`` names if a store holds shares of the weights.
KEPT_WEIGHTS = "weights"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of correlation in a store: its ``name``; ``count``: how many of them one query draws; ``bytes``: of one of
    them."""

    name: str
    count: int
    bytes: int = 16


@dataclass(frozen=True, slots=True)
class Need:
    """What a query takes from a store: ``counts``, by the kinds' names, and what it draws in the engine's own terms."""

    counts: Mapping[str, int]
    drawn: Any = None


@dataclass(frozen=True, slots=True)
class Stock:
    """What a session has for itself of the ``store`` with that name: ``chunks``, in the order of ``kinds``, which
    ``seal`` opens. ``ot`` and ``ring``: what they were made by and in; ``offset``: the sealed offset, and its
    context."""

    store: str
    kinds: tuple[Kind, ...]
    ot: OtChoice
    ring: int
    seal: _core.Seal
    offset: tuple[bytes, bytes]
    chunks: Iterator[Chunk] = field(repr=False)

    def altered(self, chunk: Chunk) -> CorruptFile:
        """The error for a chunk that does not open."""
        return CorruptFile(f"the {self.store} was altered: {chunk.context.decode()} does not open")


class Stores(abc.ABC):
    """An engine's side of stores; it has no state.

    ``whole``: whether a query takes all that was made for one query, and its session has no other; ``exact``: whether
    that serves queries of the shapes alone that it was made for; ``fresh``: whether each query is made by an engine of
    its own; ``keeps_weights``: whether a store can hold the weights of party 0, as shares for all queries.

    A store can hold *products*, too: those with weights of party 0, which are prepared for each query. Each has a
    ``layer``, a ``place`` and a ``product`` of so many ``rows`` and ``columns``. Engines that prepare none leave the
    functions about them as they are.
    """

    whole: bool = False
    exact: bool = False
    fresh: bool = False
    keeps_weights: bool = False

    @abc.abstractmethod
    def kinds(
        self, program: Any, shapes: Any, spec: SessionSpec, rank: int = 0, products: Sequence[Any] = ()
    ) -> tuple[Kind, ...]:
        """What the half of party ``rank`` holds for queries of these shapes: last the prepared ``products``, in
        order."""

    @abc.abstractmethod
    def need(self, program: Any, shapes: Any, spec: SessionSpec) -> Need:
        """What a query on inputs of these shapes takes."""

    @abc.abstractmethod
    def marks(self, spec: SessionSpec, products: Sequence[Any] = (), kept: bool = False) -> dict[str, Any]:
        """Fields of a ``Header`` that say for which settings of the engine a store is made; ``kept``: whether it holds
        the weights."""

    @abc.abstractmethod
    def check(self, spec: SessionSpec, header: Header, store: str) -> None:
        """ConfigError if sessions of ``spec`` cannot use the ``store`` with that header."""

    @abc.abstractmethod
    def fill(self, engine: Engine, writer: JointWriter, demand: Any) -> None:
        """Makes one query's correlations, products apart, and puts them into the store. ``demand``: what a query
        reserves. Of ``fresh`` queries each gets an ``engine`` of its own, of which nothing is left then."""

    def begin(self, engine: Engine, share_weights: Callable[[], Any]) -> None:
        """Before the first query, if the store is to hold the weights: ``share_weights`` enters them."""
        raise NotImplementedError

    def dealing(self, engine: Engine, query: int, kept: bool) -> AbstractContextManager[None]:
        """At a dealer: what ``engine`` deals inside is what ``fill`` puts into the store for the query with this
        number; ``kept``: the store holds the weights."""
        raise NotImplementedError

    @abc.abstractmethod
    def sealed_offset(self, engine: Engine, writer: JointWriter) -> bytes:
        """What the transfers of the store have in common, sealed; of nothing if they have nothing."""

    @abc.abstractmethod
    def open(self, channels: Sequence[Any], rank: int, spec: SessionSpec, stock: Stock, need: Need) -> Engine:
        """As ``Backend.open``, on a session that has ``need`` out of ``stock``."""

    def draw(self, engine: Engine, spec: SessionSpec, stock: Stock, need: Need) -> None:
        """Gives the session of ``engine``, which ``open`` has made, what its next query needs."""
        raise NotImplementedError

    def settled(self, engine: Engine) -> tuple[int, ...]:
        """Once a query has computed all its outputs, and before one is opened: public numbers of what it has drawn,
        which both parties must have alike. ProtocolError if it was not all that it had from the store. Where checks
        tell on their own that the parties draw alike there is nothing to say."""
        return ()

    def products(self, program: Any, shapes: Any, spec: SessionSpec, queries: int) -> tuple[Any, ...]:
        """Those that are prepared for ``queries`` queries on inputs of these shapes; with the weights if the program
        has them."""
        return ()

    def product_costs(
        self, products: Sequence[Any], spec: SessionSpec, queries: int, rank: int
    ) -> tuple[tuple[str, Any], ...]:
        """Of each product its layer, and the counters of party ``rank`` of a session that prepares it for so many
        queries."""
        return ()

    def prepare(self, engine: Engine, product: Any, queries: int, label: bytes) -> Iterator[Any]:
        """What each query gets of a product, one after the other; each has ``seal(seal, context)``. ``label`` names the
        store or program."""
        raise NotImplementedError

    def hold(self, engine: Engine, products: Mapping[str, Any], spec: SessionSpec) -> None:  # noqa: B027 - see above
        """Gives the ``engine`` of a session that runs as ``spec`` the products that are prepared for its next query, by
        place."""

    def places(self, header: Header) -> frozenset[str]:
        """Of the prepared products in a store; what else it holds for ``SessionSpec.prepared``."""
        return frozenset()
