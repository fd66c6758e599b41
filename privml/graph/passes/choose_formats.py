# SPDX-License-Identifier: Apache-2.0
"""Number formats of a graph, chosen from example data and measured on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.engines.plain.engine import PlainEngine
from privml.errors import ConfigError, OverflowDetected
from privml.formats import Boolean, FixedPoint, Integer, Numerics, check_exponential, float_format
from privml.graph.ir import attribute, placeholders, tensor_of
from privml.graph.passes.float_layers import INTEGER_BITS, all_floats, inner_floats, named_floats, write_floats
from privml.graph.passes.kinds import Kind, factors, is_secret
from privml.graph.passes.ranges import Range, calibrate, chunks
from privml.graph.passes.rings import Rings, assign_rings
from privml.graph.passes.scales import Scales, assign_scales, early_products, operand_scale, weight_of
from privml.graph.run import run_graph, share_attributes, share_inputs
from privml.sharing import reveal
from privml.tables import Table

# Samples on which a candidate's error is measured; a label carries less information.
_MEASURED = 32
_MEASURED_LABELS = 512
# What labels are computed finer with than the calibration data's labels need: others lie closer to a border.
_SPARE_BITS = 2
_SCALES = range(5, 21)
_WEIGHT_BITS = range(6, 21)


@dataclass(frozen=True, slots=True)
class Precision:
    """What the user may say about numbers; None leaves it to measurement.

    ``bits``: the widest ring, in [8, 64]. ``scale``: fractional bits of activations. ``weight_bits``: width of
    the weights, which one party knows. ``margin``: factor of head room over the largest calibrated values, at
    least 1. ``narrow``: let every layer use a ring just as wide as it needs. ``tolerance``: largest error of an
    output, as a part of the largest output, that the chosen scale may cause. ``bounds``: "proved" leaves results the
    rings they have; "calibrated" also reduces them to what ``margin`` times what calibration saw needs, if that
    makes a shift cheaper: a value beyond it wraps around even if its ring has room.
    ``exp``: see Numerics.
    ``floating``: the floating-point format (``privml.formats.FLOATS``) of all real numbers instead of fixed point;
    ``layers``: that of some layers, by patterns of their names or their operators', among fixed-point ones; ``dot``:
    how products of matrices of floats are computed (see ``Numerics``).
    """

    bits: int = 32
    scale: int | None = None
    weight_bits: int | None = None
    margin: float = 2.0
    narrow: bool = True
    tolerance: float = 1 / 128
    bounds: str = "proved"
    exp: str = "auto"
    floating: str | None = None
    layers: dict[str, str] | None = None
    dot: str = "fused"

    def __post_init__(self) -> None:
        for name in ("bits", "scale", "weight_bits"):
            value = getattr(self, name)
            if type(value) is not int and (value is not None or name == "bits"):
                raise ConfigError(f"numerics: {name} must be a whole number, got {value!r}")
        for name in ("margin", "tolerance"):
            if type(getattr(self, name)) not in (int, float):
                raise ConfigError(f"numerics: {name} must be a number, got {getattr(self, name)!r}")
        float_format(self.floating)
        if self.layers is not None and not isinstance(self.layers, Mapping):
            raise ConfigError(f"numerics: layers must map names to formats, got {self.layers!r}")
        if self.floating is not None and self.layers:
            raise ConfigError("numerics: with floating=... every layer has floats; leave layers out")
        if self.dot not in ("exact", "fused"):
            raise ConfigError(f"numerics: dot must be exact or fused, got {self.dot!r}")
        if self.bounds not in ("proved", "calibrated"):
            raise ConfigError(f"numerics: bounds must be proved or calibrated, got {self.bounds!r}")
        check_exponential(self.exp)
        if not isinstance(self.narrow, bool):
            raise ConfigError(f"numerics: narrow must be true or false, got {self.narrow!r}")
        if not 8 <= self.bits <= 64:
            raise ConfigError(f"numerics: bits must be in [8, 64], got {self.bits}")
        if self.scale is not None and not 0 < self.scale < self.bits - 2:
            raise ConfigError(f"numerics: scale must be in [1, bits - 3], got {self.scale}")
        if self.weight_bits is not None and not 2 <= self.weight_bits <= self.bits:
            raise ConfigError(f"numerics: weight_bits must be in [2, bits], got {self.weight_bits}")
        if self.margin < 1 or not math.isfinite(self.margin) or not 0 < self.tolerance < 1:
            raise ConfigError("numerics: margin must be at least 1, tolerance in (0, 1)")

    @property
    def numerics(self) -> Numerics:
        """Those of a session for a program of this precision."""
        if self.floating is not None:
            return Numerics(INTEGER_BITS, floating=float_format(self.floating), dot=self.dot)
        return Numerics(self.bits, self.scale, exp=self.exp, dot=self.dot)

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
    """``error``: the largest error of an output on the calibration data, as a part of the largest output."""

    precision: Precision
    error: float
    report: tuple[Headroom, ...]

    def summary(self) -> Table:
        """The layers of narrow rings, narrowest margin first, and the formats' measured error."""
        rows = tuple(
            (each.layer, str(each.bits), str(each.scale), f"{each.seen:.4g}", f"{each.limit:.4g}")
            for each in sorted(self.report, key=lambda each: each.headroom_bits)
        )
        columns = ("layer", "bits", "fractional bits", "largest value in calibration", "first value that does not fit")
        return Table(
            "Number formats", columns, rows, (f"largest error: {self.error:.2%} of the largest output in calibration",)
        )

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def choose_formats(
    module: fx.GraphModule, data: Sequence[torch.Tensor], precision: Precision
) -> tuple[fx.GraphModule, Choice]:
    """Writes ``format``, ``request`` and ``working`` into the metadata of every secret node of ``module``.

    ``data``: one batch of example values per input; rings hold ``margin`` times the largest value seen on it.
    Without a given scale the smallest one is taken whose outputs, computed by the plain engine, stay within
    ``tolerance``; then, without a given weight width, the smallest such width. Raises OverflowDetected when no
    scale fits the rings.
    """
    ranges, expected = calibrate(module, data)
    if precision.floating is not None:
        all_floats(module, float_format(precision.floating))
        return module, Choice(precision, _measure(module, data, expected, precision), ())
    for node in inner_floats(named_floats(module, precision.layers or {})):
        if node in ranges:
            ranges[node] = replace(ranges[node], largest=0.0)
    weight_bits = precision.weight_bits or min(max(_WEIGHT_BITS), precision.bits)
    scales = [precision.scale] if precision.scale is not None else [s for s in _SCALES if s < precision.bits - 2]
    tried = (replace(precision, scale=s, weight_bits=weight_bits) for s in scales)
    best, error = _first_good(module, data, ranges, expected, tried, precision.tolerance)
    if precision.weight_bits is None:
        tried = (replace(best, weight_bits=bits) for bits in _WEIGHT_BITS if bits < weight_bits)
        found, smaller_error = _first_good(module, data, ranges, expected, tried, precision.tolerance, best)
        best, error = found, smaller_error if found is not best else error
    if only_labels(expected):
        finer = replace(
            best,
            scale=min(best.scale + _SPARE_BITS, precision.bits - 3) if precision.scale is None else best.scale,
            weight_bits=min(best.weight_bits + _SPARE_BITS, weight_bits),
        )
        found, finer_error = _first_good(module, data, ranges, expected, [finer], precision.tolerance, best)
        best, error = (found, finer_error) if found is finer else (best, error)
    rings, plan = _write(module, ranges, best)
    return module, Choice(best, error, _report(rings, plan, ranges, best.margin))


def _first_good(
    module: fx.GraphModule,
    data: Sequence[torch.Tensor],
    ranges: dict[fx.Node, Range],
    expected: Sequence[torch.Tensor],
    candidates: Any,
    tolerance: float,
    otherwise: Precision | None = None,
) -> tuple[Precision, float]:
    """The first candidate within the tolerance, else ``otherwise``, else the best one there is."""
    best, least, failure = otherwise, math.inf, None
    for candidate in candidates:
        try:
            _write(module, ranges, candidate)
            error = _measure(module, data, expected, candidate)
        except OverflowDetected as problem:
            failure = failure or problem
            continue
        if error <= tolerance:
            return candidate, error
        if otherwise is None and error < least:
            best, least = candidate, error
    if best is None:
        raise failure or OverflowDetected("no scale fits the rings")
    return best, least


def only_labels(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether no output is a real number."""
    return not any(x.dtype.is_floating_point for x in outputs)


def _measure(
    module: fx.GraphModule, data: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], precision: Precision
) -> float:
    """The largest error of the plain engine's outputs, relative to the largest output; if no output is a real number
    the part of them that differs."""
    inputs = placeholders(module.graph)
    labels = only_labels(expected)
    most = _MEASURED_LABELS if labels else _MEASURED
    few = chunks(inputs, [x[:most] if x.dim() else x for x in data])
    session = Session(PlainEngine(), precision.numerics)
    values = {n.target: attribute(module, n.target) for n in module.graph.nodes if n.op == "get_attr"}
    attributes = share_attributes(module.graph, session, values)
    parts = [run_graph(module.graph, share_inputs(module.graph, session, part), attributes, session) for part in few]
    worst = 0.0
    for results, clear in zip(zip(*parts, strict=True), expected, strict=True):
        result = torch.cat([reveal(x) for x in results]) if results[0].dim() else reveal(results[0])
        clear = clear[: result.shape[0]] if result.dim() else clear
        if clear.dtype.is_floating_point:
            size = float(clear.abs().max()) or 1.0
            worst = max(worst, float((result - clear).abs().max()) / size)
        elif labels:
            worst = max(worst, float((result != clear).double().mean()))
    return worst


def _write(module: fx.GraphModule, ranges: dict[fx.Node, Range], precision: Precision) -> tuple[Rings, Scales]:
    limits: dict[fx.Node, int] = {}
    eager: set[fx.Node] = set()
    for _ in range(64):
        plan = assign_scales(module, ranges, precision.scale, precision.weight_bits, limits, eager)
        while not early_products(plan) <= eager:
            eager |= early_products(plan)
            plan = assign_scales(module, ranges, precision.scale, precision.weight_bits, limits, eager)
        rings = assign_rings(module, plan, ranges, precision.bits, precision.margin, precision.narrow)
        over = [root for root, bits in rings.bits.items() if bits > precision.bits]
        if not over:
            _annotate(module, plan, rings, ranges, precision)
            return rings, plan
        if not _truncate_earlier(plan, rings, over, eager) and not _lower_weights(plan, rings, over, limits):
            break
    need = max((rings.needs[root] for root in over if root in rings.needs), key=lambda n: n.bits)
    raise OverflowDetected(
        f"layer {need.layer!r}: values up to {need.seen:g} (with margin {precision.margin:g}) at scale {need.scale} "
        f"need {need.bits} bits, the ring has {precision.bits}; use numerics bits=64, a smaller scale, or scale the "
        "model's inputs"
    )


def _truncate_earlier(plan: Scales, rings: Rings, over: list[Any], eager: set[fx.Node]) -> bool:
    """Ends the wait of products that lead, untruncated, to values too large for the ring; False if there are none."""
    before = len(eager)
    for node, kind in plan.kinds.items():
        if kind is not Kind.PRODUCT and rings.find(("in", node)) in over:
            waiting = [node]
            while waiting:
                source = waiting.pop()
                if plan.kinds.get(source) is Kind.PRODUCT:
                    eager.add(source)
                elif source in plan.kinds and (source is node or not plan.truncates(source)):
                    waiting += [a for a in source.all_input_nodes if plan.scale.get(a, 0) > plan.working]
    return len(eager) > before


def _lower_weights(plan: Scales, rings: Rings, over: list[Any], limits: dict[fx.Node, int]) -> bool:
    """One fractional bit less for the weights whose products are too large; False when nothing is left to lower."""
    lowered = False
    for node, kind in plan.kinds.items():
        if kind is Kind.PRODUCT and rings.find(("in", node)) in over:
            for operand in factors(node):
                weight = weight_of(operand)
                if weight is not None and plan.weights[weight].scale > 3:
                    limits[weight] = plan.weights[weight].scale - 1
                    lowered = True
    return lowered


def _annotate(
    module: fx.GraphModule, plan: Scales, rings: Rings, ranges: dict[fx.Node, Range], precision: Precision
) -> None:
    for node in module.graph.nodes:
        for key in ("format", "request", "working", "fixed"):
            node.meta.pop(key, None)
        if not is_secret(node) or node.op == "output":
            continue
        tensor = tensor_of(node)
        if node.op == "get_attr":
            node.meta["format"] = plan.weights[node]
        elif not tensor.dtype.is_floating_point:
            node.meta["format"] = Boolean() if tensor.dtype is torch.bool else Integer(precision.bits)
        elif node.op == "placeholder":
            known = ranges[node]
            positive = known.grain is not None and not known.negative
            bits = rings.of(("out", node))
            node.meta["format"] = FixedPoint(min(bits, precision.bits), plan.scale[node], nonnegative=positive)
        else:
            node.meta["format"] = FixedPoint(rings.of(("out", node)), plan.scale[node])
            _request(node, plan, rings, precision)
            if precision.bounds == "calibrated" and "request" in node.meta and not ranges[node].hides:
                node.meta["request"] = _bounded(node.meta["request"], ranges[node].largest * precision.margin)

    write_floats(named_floats(module, precision.layers or {}))


def _request(node: fx.Node, plan: Scales, rings: Rings, precision: Precision) -> None:
    """What the rule is asked for: the ring to compute in (``working``) and the result's format (``request``)."""
    kind = plan.kinds[node]
    if kind is Kind.PRODUCT:
        scale = max(operand_scale(plan, operand) for operand in factors(node))
        node.meta["working"] = FixedPoint(rings.of(("in", node)), scale)
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.SCALED:
        node.meta["working"] = FixedPoint(rings.of(("in", node)), plan.working)
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.SELECTION:
        node.meta["working"] = node.meta["format"]
    elif kind is Kind.CARRIER and plan.truncates(node):
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.FUNCTION:
        # The ring may be wider than its values, for the sake of products that read them too.
        needed = max(rings.required(("in", node)), plan.working + 3)
        bits = min(rings.of(("in", node)), needed if precision.narrow else precision.bits, precision.bits)
        node.meta["working"] = FixedPoint(bits, plan.working)
        node.meta["request"] = node.meta["format"]
    elif kind is Kind.OTHER:
        node.meta["working"] = FixedPoint(precision.bits, plan.working)


def _bounded(fmt: FixedPoint, largest: float) -> FixedPoint:
    """The format with the bound of a value whose magnitude is at most ``largest``."""
    bound = math.ceil(largest * 2**fmt.scale) + 1
    return fmt if bound >> (fmt.bits - 1) else replace(fmt, bound=bound)


def _report(rings: Rings, plan: Scales, ranges: dict[fx.Node, Range], margin: float) -> tuple[Headroom, ...]:
    rows = []
    for node in plan.kinds:
        root = rings.find(("in", node))
        need = rings.needs.get(root)
        if need is None or need.layer != node.meta.get("layer", node.name):
            continue
        bits = rings.bits[root]
        limit = 2.0 ** (bits - 1 - need.reserve - need.scale)
        seen = need.seen / margin
        room = math.log2(limit / seen) if seen else math.inf
        rows.append(Headroom(need.layer, bits, need.scale, seen, limit, round(room, 2)))
    return tuple(rows)
