# SPDX-License-Identifier: Apache-2.0
"""How a session is run: one value from the command line to the handshake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.engines.interface import DEFAULT, Backend, backend
from privml.errors import ConfigError
from privml.formats import FixedPoint, Numerics

if TYPE_CHECKING:
    from privml.session.identity import Tls

WaitCallback = Callable[[float], None]

# Bandwidth of a link without a limit, in Mbit/s: bytes pass through memory and sockets.
LOOPBACK_MBPS = 20_000.0


@dataclass(frozen=True, slots=True)
class LinkProfile:
    """``delay_ms``: of a message in one direction, in milliseconds; ``bandwidth_mbps``: of each direction, in Mbit/s
    (0: unlimited). Raises ConfigError for negative numbers."""

    delay_ms: float = 0.0
    bandwidth_mbps: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.delay_ms < float("inf") and 0 <= self.bandwidth_mbps < float("inf")):
            raise ConfigError(f"a link needs a delay and a bandwidth of at least 0, got {self}")

    @property
    def seconds_per_byte(self) -> float:
        """Of each direction."""
        return 8e-6 / (self.bandwidth_mbps or LOOPBACK_MBPS)

    def seconds(self, cost: Any) -> float:
        """How long messages of this depth and these bytes (a ``PhaseCount``) take."""
        return cost.depth * self.delay_ms / 1000 + max(cost.sent, cost.received) * self.seconds_per_byte

    def __str__(self) -> str:
        speed = f"{self.bandwidth_mbps:g} Mbit/s" if self.bandwidth_mbps else "unlimited bandwidth"
        return f"{speed}, {self.delay_ms:g} ms one way"


@dataclass(frozen=True, slots=True)
class Identity:
    """``tls``: this party's certificate and the names of the others; needed for every address beyond this machine
    unless ``insecure`` allows to do without."""

    tls: Tls | None = None
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """``engine``: an engine's name, for its default settings, or its own settings as ``privml.engine(name, ...)`` makes
    them. ``ot``: what its correlations are made by, an ``OtChoice`` or a provider's name; the engine's own default if
    None. ``numerics``: formats; the engine's own default if None. ``threads``: the session's lanes. ``deadline``: the
    longest that a party waits for another, in seconds. ``link``: between the parties, which ``ot=auto`` reckons with;
    ``simulated``: the link that this process's connections are slowed down to, with all parties on one machine.
    ``identity``: see ``Identity``. ``on_wait`` is called with the seconds waited so far while the other party is not
    there. ``test_seed`` makes all randomness deterministic, which gives no security: for tests on one machine.
    ``prepared``: the places of products that were prepared for a query, from a store; ``stored``: whether what a dealer
    deals comes from a store, so that no dealer takes part.

    All parties have engine, ot, numerics and threads alike (see ``terms``); the rest is each party's own. Raises
    ConfigError for settings that contradict each other.
    """

    engine: Any = DEFAULT
    ot: Any = None
    numerics: Numerics | None = None
    threads: int = 1
    deadline: float = 60.0
    link: LinkProfile = LinkProfile()
    simulated: LinkProfile | None = None
    identity: Identity = Identity()
    on_wait: WaitCallback | None = field(default=None, compare=False, repr=False)
    test_seed: int | None = None
    prepared: frozenset[str] = frozenset()
    stored: bool = False

    @staticmethod
    def of(engine: str = DEFAULT, **settings: Any) -> SessionSpec:
        """A specification from plain values: ``SessionSpec.of(threads=2, deadline=10.0)``.

        ``settings``: ``numerics``, ``threads``, ``deadline``, ``link``, ``on_wait`` and ``test_seed``; ``ot`` (the
        provider's name), ``k``, ``security`` and ``refill`` of an ``OtChoice``; ``tls`` and ``insecure`` of an
        ``Identity``; ``delay_ms`` and ``bandwidth_mbps`` of the simulated link; and the engine's own, such as
        ``truncation``. Raises
        ConfigError for unknown ones.
        """
        chosen = backend(engine)

        def taken(*names: str, **renamed: str) -> dict[str, Any]:
            fields = {name: name for name in names} | renamed
            return {field: settings.pop(name) for name, field in fields.items() if name in settings}

        given = taken("numerics", "test_seed")
        if chosen.remote:
            given |= taken("threads", "deadline", "link", "on_wait")
            given["identity"] = Identity(**taken("tls", "insecure"))
            if simulated := taken("delay_ms", "bandwidth_mbps"):
                given["simulated"] = LinkProfile(**simulated)
        if chosen.transfers and (transfers := taken("k", "security", "refill", ot="provider")):
            given["ot"] = OtChoice(**{"security": chosen.security or DEFAULT_OT.security, **transfers})
        return SessionSpec(chosen.config(**settings), **given)

    def __post_init__(self) -> None:
        if isinstance(self.engine, str):
            object.__setattr__(self, "engine", engine(self.engine))
        chosen = self.backend
        if self.ot is None or isinstance(self.ot, str):
            ot = OtChoice(self.ot or DEFAULT_OT.provider, security=chosen.security or DEFAULT_OT.security)
            object.__setattr__(self, "ot", ot)
        if self.numerics is None:
            object.__setattr__(self, "numerics", chosen.numerics(self.engine))
        kinds = {"ot": OtChoice, "numerics": Numerics, "identity": Identity}
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise ConfigError(f"{name}={getattr(self, name)!r} must be of the class {kind.__name__}")
        if not self.deadline > 0:
            raise ConfigError(f"deadline={self.deadline} must be a positive number of seconds")
        for name, link in (("link", self.link), ("simulated", self.simulated)):
            if not isinstance(link, LinkProfile) and (link is not None or name == "link"):
                raise ConfigError(f"{name}={link!r} must be a LinkProfile, such as LinkProfile(delay_ms=40)")
        chosen.check(self)

    @property
    def backend(self) -> Backend:
        return backend(self.engine.engine)

    @property
    def dealt(self) -> bool:
        """Whether a dealer takes part."""
        return self.backend.dealt and not self.stored

    @property
    def expected_link(self) -> LinkProfile:
        """The link that predictions are for: the one that was named, or else the simulated one."""
        return self.simulated if self.simulated is not None and self.link == LinkProfile() else self.link

    @property
    def shape(self) -> dict[str, float]:
        """What a connection's messages are slowed down by, as the compiled core takes it."""
        link = self.simulated or LinkProfile()
        return {"delay_ms": link.delay_ms, "bandwidth_mbps": link.bandwidth_mbps}


def checked_spec(spec: Any) -> SessionSpec:
    """``spec``; ConfigError if it is something else, such as the name of an engine."""
    if not isinstance(spec, SessionSpec):
        raise ConfigError(f"a session needs a privml.SessionSpec, not {spec!r}: privml.SessionSpec.of(...)")
    return spec


def engine(name: str, **settings: Any) -> Any:
    """The settings of an engine: ``privml.engine(name, truncation="exact")``. Raises ConfigError for unknown ones."""
    return backend(name).config(**settings)


def terms(spec: SessionSpec) -> dict[str, Any]:
    """The part of ``spec`` that is sent to the other parties, who compare it with theirs; never paths or keys."""
    assert spec.numerics is not None
    return {"engine": spec.engine.engine, "numerics": describe(spec.numerics), **spec.backend.terms(spec)}


def describe(numerics: Numerics) -> str:
    """Formats as parties compare them."""
    if numerics.floating is not None:
        return f"float {numerics.floating.exponent}.{numerics.floating.mantissa} {numerics.dot}"
    working, weight = numerics.working, numerics.weight
    assert isinstance(weight, FixedPoint)
    return f"{working.bits}.{working.scale}/{weight.bits}.{weight.scale}, exp={numerics.exp}"
