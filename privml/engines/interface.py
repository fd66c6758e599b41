# SPDX-License-Identifier: Apache-2.0
"""What an engine is to the rest of the package: a ``Backend``, found by its name.

Each engine is a package with a module ``backend`` whose ``BACKEND`` is its backend. Those outside this package register
it as an entry point of the group "privml.engines".
"""

from __future__ import annotations

import abc
import dataclasses
import importlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from privml.errors import ConfigError
from privml.formats import Numerics

if TYPE_CHECKING:
    from privml.engines.base import Engine
    from privml.spec import SessionSpec

GROUP = "privml.engines"
# In the order in which users read of them.
BUILT_IN = ("plain", "twopc", "threepc", "active")
# Of sessions between processes.
DEFAULT = "twopc"
# Of training.
TRAINING = "threepc"
SEMI_HONEST, MALICIOUS = "semi_honest", "malicious"
THREATS = (SEMI_HONEST, MALICIOUS)


@dataclasses.dataclass(frozen=True, slots=True)
class Kind:
    """A kind of correlation in a store: its ``name``; ``count``: how many of them one query draws; ``bytes``: of one of
    them."""

    name: str
    count: int
    bytes: int = 16


class Backend(abc.ABC):
    """An engine as the rest of the package sees it; it has no state.

    ``Config``: the frozen dataclass of the engine's own settings, whose class variable ``engine`` is its name.
    ``parties``: how many, the third one a dealer; ``threat``: the strongest adversary that it withstands; ``assumes``:
    of the parties and of mathematics, in words. ``remote``: whether its parties can be processes of their own;
    ``floats``: whether it computes with floats; ``transfers``: whether it makes correlations by a provider that is
    chosen, ``security``: those of one security alone; ``lanes``: whether it has several; ``stores``: whether
    correlations can come from a store, ``by_kind``: of many kinds, each with a time of its own; ``greeting_hops``:
    one-way messages in sequence before a query's set-up.
    """

    name: str
    Config: type
    parties: int = 2
    threat: str = SEMI_HONEST
    assumes: str = ""
    remote: bool = True
    floats: bool = False
    transfers: bool = False
    security: str | None = None
    lanes: bool = False
    stores: bool = False
    by_kind: bool = False
    greeting_hops: int = 4  # hello, then what the query is about, asked and answered

    @property
    def dealt(self) -> bool:
        """Whether a dealer is the third party."""
        return self.parties == 3

    @property
    def actively_secure(self) -> bool:
        """Whether a party that deviates from the protocol is caught."""
        return self.threat == MALICIOUS

    def config(self, **settings: Any) -> Any:
        """The engine's ``Config``; ConfigError for settings that it does not have."""
        known = [field.name for field in dataclasses.fields(self.Config)]
        unknown = [name for name in settings if name not in known]
        if unknown:
            has = f"its own are {', '.join(known)}" if known else "it has none of its own"
            raise ConfigError(f"engine={self.name} has no setting {unknown[0]!r}: {has}")
        return self.Config(**settings)

    def numerics(self, config: Any) -> Numerics:
        """The formats of sessions in which none are named."""
        return Numerics()

    @abc.abstractmethod
    def check(self, spec: SessionSpec) -> None:
        """ConfigError for settings of ``spec`` that contradict each other."""

    @abc.abstractmethod
    def local(self, spec: SessionSpec) -> Engine:
        """All parties in this process."""

    def connections(self, spec: SessionSpec, rank: int) -> int:
        """How many channels party ``rank`` needs."""
        return 1

    def open(self, channels: Sequence[Any], rank: int, spec: SessionSpec) -> Engine:
        """Party ``rank`` on its connected channels: one to each other party, by rank, then further ones."""
        raise ConfigError(f"engine={self.name} cannot run between processes")

    def meter(self, spec: SessionSpec, rank: int = 0, counts_only: bool = True) -> Engine:
        """An engine that books what each protocol would cost party ``rank``, exactly; its shares have shapes alone
        (``counts_only``), or are zeros, with which it computes as a party does."""
        raise ConfigError(f"engine={self.name} has no metered communication")

    def demand(self, program: Any, shapes: Any, spec: SessionSpec, further: bool = False) -> Any:
        """What a query on inputs of these shapes reserves, the first one of a session or a ``further`` one; None:
        nothing."""
        return None

    def terms(self, spec: SessionSpec) -> dict[str, Any]:
        """What the parties must have alike, by the names of a ``Hello``'s fields."""
        raise ConfigError(f"engine={self.name} cannot run between processes")

    def reckons_with_link(self, spec: SessionSpec) -> bool:
        """Whether what the parties compute depends on ``spec.expected_link``, so that they must have it alike."""
        return False

    def prepared_products(self, program: Any, shapes: Any, spec: SessionSpec, queries: int) -> tuple[Any, ...]:
        """The products with weights of party 0 that are prepared for ``queries`` queries on inputs of these shapes, for
        ``store_kinds``; with the weights if the program has them."""
        return ()

    def preparation_costs(
        self, products: Sequence[Any], spec: SessionSpec, queries: int, rank: int
    ) -> tuple[tuple[str, Any], ...]:
        """Of each of the ``prepared_products`` its layer, and the counters of party ``rank`` of a session that prepares
        it for so many queries."""
        return ()

    def hold(self, engine: Engine, products: Any, spec: SessionSpec) -> None:  # noqa: B027 - see below
        """Gives the ``engine`` of a session that runs as ``spec`` the products that are prepared for its next query, by
        place; engines that prepare none get none."""

    def store_kinds(
        self, program: Any, shapes: Any, spec: SessionSpec, rank: int = 0, products: Sequence[Any] = ()
    ) -> tuple[Kind, ...]:
        """What the half of party ``rank`` of a store holds for queries of these shapes, with prepared ``products``."""
        raise ConfigError(f"engine={self.name} needs no correlations beforehand")


@cache
def backend(name: str) -> Backend:
    """The engine of that name. Raises ConfigError, which lists all, for an unknown one."""
    if name in BUILT_IN:
        return importlib.import_module(f"privml.engines.{name}.backend").BACKEND
    for point in entry_points(group=GROUP):
        if point.name == name:
            return point.load()
    raise ConfigError(f"engine={name!r} is not one of {', '.join(names())}")


def names() -> tuple[str, ...]:
    """Of all engines that are installed."""
    return (*BUILT_IN, *sorted({point.name for point in entry_points(group=GROUP)} - set(BUILT_IN)))


def backends() -> tuple[Backend, ...]:
    """All engines that are installed."""
    return tuple(backend(name) for name in names())
