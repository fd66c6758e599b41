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
    from privml.engines.stores import Stores
    from privml.spec import SessionSpec

GROUP = "privml.engines"
# In the order in which users read of them.
BUILT_IN = ("plain", "twopc", "threepc", "active")
# Of sessions between processes.
DEFAULT = "twopc"
# Of training.
TRAINING = "threepc"
SEMI_HONEST, MALICIOUS = "semi_honest", "malicious"


class Backend(abc.ABC):
    """An engine as the rest of the package sees it; it has no state.

    ``Config``: the frozen dataclass of the engine's own settings, whose class variable ``engine`` is its name.
    ``parties``: how many, the third one a dealer; ``threat``: the strongest adversary that it withstands; ``assumes``:
    of the parties and of mathematics, in words. ``remote``: whether its parties can be processes of their own;
    ``floats``: whether it computes with floats; ``transfers``: whether it makes correlations by a provider that is
    chosen, ``security``: those of one security alone; ``lanes``: whether it has several; ``by_kind``: whether
    correlations are of many kinds, each with a time of its own; ``stores``: how they come from a store, if they can;
    ``handshake_hops``: one-way messages in sequence before a query's set-up.
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
    stores: Stores | None = None
    by_kind: bool = False
    handshake_hops: int = 4  # hello, then what the query is about, asked and answered

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
            has = f"its own are {', '.join(known)}" if known else "it has no settings"
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
        """What the parties must agree on, by the names of a ``Hello``'s fields."""
        raise ConfigError(f"engine={self.name} cannot run between processes")

    def uses_link(self, spec: SessionSpec) -> bool:
        """Whether what the parties compute depends on ``spec.expected_link``, so that they must agree on it."""
        return False


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
