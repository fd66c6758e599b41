# SPDX-License-Identifier: Apache-2.0
"""What the user may say about numbers, and what was chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from privml.engines.interface import BUILT_IN, DEFAULT, backend
from privml.errors import ConfigError
from privml.formats import Numerics, check_exponential, float_format
from privml.graph.passes.float_layers import INTEGER_BITS
from privml.tables import Table

# The ring that the search starts with, and the widest one that it goes on to, unless a setting says how wide it may be.
FIRST_BITS, WIDEST_BITS = 32, 64
# The engines whose rounding the plain engine can follow.
ROUNDINGS = tuple(name for name in BUILT_IN if name != "plain")


@dataclass(frozen=True, slots=True)
class Precision:
    """What the user may say about numbers; None leaves it to measurement.

    ``bits``: the widest ring, in [8, 64]; None: 32, and up to 64 where 32 do not keep ``tolerance``. ``scale``:
    fractional bits of activations. ``weight_bits``: width of the weights, which one party knows. ``margin``: factor of
    head room over the largest calibrated values, at least 1. ``narrow``: let every layer use a ring just as wide as it
    needs, and weights as few bits; false keeps the widest ones. ``tolerance``: largest error of an output on held-out
    rows of the calibration data, as a part of the largest output (of labels: the part that differs). ``accept``: the
    larger error that is put up with, with a warning, where ``tolerance`` cannot be kept; without it conversion ends in
    PrecisionLost. ``rescue``: the floating-point format of the layers that lose most, if no ring keeps ``tolerance``;
    None: no floats, for engines that have none. ``bounds``: "proved" leaves results the rings they have; "calibrated"
    also reduces them to what ``margin`` times what calibration saw needs, if that makes a shift cheaper: a value beyond
    it wraps around even if its ring has room. ``exp``: see Numerics.
    ``floating``: the floating-point format (``privml.formats.FLOATS``) of all real numbers instead of fixed point;
    ``layers``: that of some layers, by patterns of their names or their operators', among fixed-point ones; ``dot``:
    how products of matrices of floats are computed (see ``Numerics``). ``engine``: the engine whose rounding decides
    whether formats keep ``tolerance``; a program runs on every engine, but the error differs where functions do.
    """

    bits: int | None = None
    scale: int | None = None
    weight_bits: int | None = None
    margin: float = 2.0
    narrow: bool = True
    tolerance: float = 1 / 128
    accept: float | None = None
    rescue: str | None = "float32"
    bounds: str = "proved"
    exp: str = "auto"
    floating: str | None = None
    layers: dict[str, str] | None = None
    dot: str = "fused"
    engine: str = DEFAULT

    def __post_init__(self) -> None:
        for name in ("bits", "scale", "weight_bits"):
            value = getattr(self, name)
            if type(value) is not int and value is not None:
                raise ConfigError(f"numerics: {name} must be a whole number, got {value!r}")
        for name in ("margin", "tolerance", "accept"):
            if type(getattr(self, name)) not in (int, float) and (name != "accept" or self.accept is not None):
                raise ConfigError(f"numerics: {name} must be a number, got {getattr(self, name)!r}")
        float_format(self.floating)
        float_format(self.rescue)
        if self.layers is not None and not isinstance(self.layers, Mapping):
            raise ConfigError(f"numerics: layers must map names to formats, got {self.layers!r}")
        if self.floating is not None and self.layers:
            raise ConfigError("numerics: with floating=... every layer has floats; leave layers out")
        if self.engine not in ROUNDINGS:
            raise ConfigError(f"numerics: engine must be one of {', '.join(ROUNDINGS)}, got {self.engine!r}")
        if (self.floating is not None or self.layers) and not backend(self.engine).floats:
            setting = "floating" if self.floating is not None else "layers"
            raise ConfigError(f"numerics: engine={self.engine} does not compute with floats; leave {setting} out")
        if self.dot not in ("exact", "fused"):
            raise ConfigError(f"numerics: dot must be exact or fused, got {self.dot!r}")
        if self.bounds not in ("proved", "calibrated"):
            raise ConfigError(f"numerics: bounds must be proved or calibrated, got {self.bounds!r}")
        check_exponential(self.exp)
        if not isinstance(self.narrow, bool):
            raise ConfigError(f"numerics: narrow must be true or false, got {self.narrow!r}")
        bits = self.bits or FIRST_BITS
        if self.bits is not None and not 8 <= self.bits <= 64:
            raise ConfigError(f"numerics: bits must be in [8, 64], got {self.bits}")
        if self.scale is not None and not 0 < self.scale < bits - 2:
            raise ConfigError(f"numerics: scale must be in [1, {bits - 3}] with {bits} bits, got {self.scale}")
        if self.weight_bits is not None and not 2 <= self.weight_bits <= bits:
            raise ConfigError(f"numerics: weight_bits must be in [2, {bits}] with {bits} bits, got {self.weight_bits}")
        if self.accept is not None and not self.accept > 0:
            raise ConfigError(f"numerics: accept must be above 0, got {self.accept}")
        if self.margin < 1 or not math.isfinite(self.margin) or not 0 < self.tolerance < 1:
            raise ConfigError("numerics: margin must be at least 1, tolerance in (0, 1)")

    @property
    def numerics(self) -> Numerics:
        """Those of a session for a program of this precision."""
        if self.floating is not None:
            return Numerics(INTEGER_BITS, floating=float_format(self.floating), dot=self.dot)
        return Numerics(self.bits or FIRST_BITS, self.scale, exp=self.exp, dot=self.dot)

    @staticmethod
    def of(settings: Precision | Mapping[str, Any] | None) -> Precision:
        """From a mapping (a configuration group), rejecting unknown names."""
        if settings is None or isinstance(settings, Precision):
            return settings or Precision()
        known = {field.name for field in fields(Precision)}
        unknown = sorted(set(settings) - known)
        if unknown:
            raise ConfigError(f"numerics: unknown setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
        given = dict(settings)
        if isinstance(given.get("layers"), Mapping):
            given["layers"] = dict(given["layers"]) or None
        return Precision(**given)


@dataclass(frozen=True, slots=True)
class Headroom:
    """One line of the overflow report: the largest value that calibration saw in a ring, its place, the first value
    that would not fit, and the bits between the two."""

    layer: str
    bits: int
    scale: int
    seen: float
    limit: float
    headroom_bits: float


@dataclass(frozen=True, slots=True)
class Choice:
    """``error``: the largest error of an output, as a part of the largest output, on ``held_out`` rows of the
    calibration data that no range was taken from, and on others too where these are few. ``report``: see Headroom.
    ``unseen``: by what factor held-out rows go beyond ``margin`` times what the others reach, for the layers in which
    they do; rings have room for them, and rows to come may go further. ``floats``: the layers that got floats because
    no ring keeps the tolerance. ``judged``: the rows that the error was measured on, all of which chose the formats;
    ``supposed``: those beside them with other bits in masks that all rows of the data have alike, or shorter states.
    ``by_step``: of a model with state the errors of calls of one session, one after another. ``elsewhere``: (engine,
    error) of engines that round otherwise than ``precision.engine``, for which the formats are chosen."""

    precision: Precision
    error: float
    report: tuple[Headroom, ...]
    held_out: int = 0
    unseen: tuple[tuple[str, float], ...] = ()
    floats: tuple[str, ...] = ()
    judged: int = 0
    supposed: int = 0
    by_step: tuple[float, ...] = ()
    elsewhere: tuple[tuple[str, float], ...] = ()

    @property
    def accepted(self) -> tuple[str, ...]:
        """That the error is larger than the tolerance, if it is."""
        if self.error <= self.precision.tolerance:
            return ()
        loss = f"its formats change an output by {self.error:.2%} on the rows that they were chosen by"
        return (f"{loss}, more than the tolerance of {self.precision.tolerance:.2%}: numerics.accept allows it",)

    @property
    def worse_elsewhere(self) -> tuple[str, ...]:
        """A note for each engine on which the error is larger than the tolerance and than what is accepted."""
        allowed = max(self.precision.tolerance, self.precision.accept or 0.0)
        return tuple(
            f"on engine {engine} the formats change an output by {error:.2%}, more than the tolerance of "
            f"{allowed:.2%}: convert with numerics.engine={engine} to choose formats for it"
            for engine, error in self.elsewhere
            if error > allowed
        )

    @property
    def measured(self) -> str:
        """The error, and the rows that it was measured on."""
        rows = f"the {self.judged} rows that the formats were chosen by" if self.judged else "the calibration data"
        apart = f"; {self.held_out} of them were not used for ranges" if self.held_out else ""
        rows += f" and {self.supposed} with other masks or states" if self.supposed else ""
        rows += f" and in {len(self.by_step)} calls of a session" if self.by_step else ""
        others = "".join(f"; on {engine} {error:.2%}" for engine, error in self.elsewhere)
        return f"largest error on {rows}: {self.error:.2%} of the largest output{apart}{others}"

    def summary(self) -> Table:
        """The layers of narrow rings, narrowest margin first, and the formats' measured error."""
        rows = tuple(
            (each.layer, str(each.bits), str(each.scale), f"{each.seen:.4g}", f"{each.limit:.4g}")
            for each in sorted(self.report, key=lambda each: each.headroom_bits)
        )
        columns = ("layer", "bits", "fractional bits", "largest value in calibration", "first value that does not fit")
        return Table("Number formats", columns, rows, (self.measured,))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
