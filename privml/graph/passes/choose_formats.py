# SPDX-License-Identifier: Apache-2.0
"""Number formats of a graph, chosen from example data and measured on rows of it that are held out."""

from __future__ import annotations

import contextlib
import glob
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from privml.context import Session
from privml.engines.interface import DEFAULT, backend, backends
from privml.engines.plain.engine import PlainEngine
from privml.errors import OverflowDetected, PrecisionLost, PrivmlError, UnsupportedOperator
from privml.formats import float_format
from privml.graph.ir import attributes_of, placeholders, shape_of, source_line, tensor_of
from privml.graph.passes.float_layers import all_floats, inner_floats, named_floats
from privml.graph.passes.input_masks import widen
from privml.graph.passes.losses import difference, losses
from privml.graph.passes.precision import FIRST_BITS, WIDEST_BITS, Choice, Headroom, Precision
from privml.graph.passes.ranges import Range, calibrate, chunks, infinite_output
from privml.graph.passes.rings import Rings
from privml.graph.passes.rows import Rows, split_rows
from privml.graph.passes.scales import Scales
from privml.graph.passes.steps import Steps
from privml.graph.passes.supposed import Supposed, answers, of_lengths, suppose
from privml.graph.passes.write_formats import headroom_report, write_formats
from privml.graph.run import run_graph, share_attributes, share_inputs
from privml.sharing import reveal
from privml.tensor import SecretTensor

__all__ = ["TRIED", "Choice", "Headroom", "Precision", "choose_formats", "only_labels"]

# Rows on which a candidate's error is measured: more of few numbers, and of labels, which carry less information.
_MEASURED = 64
_MEASURED_SMALL, _SMALL = 256, 256
_MEASURED_LABELS = 512
# What labels are computed finer with than the calibration data's labels need: others lie closer to a border.
_SPARE_BITS = 2
# Candidates in rings of up to 32 bits, and in wider ones.
_SCALES, _WEIGHT_BITS = range(5, 21), range(6, 21)
_WIDE_SCALES, _WIDE_WEIGHT_BITS = range(12, 27, 2), range(8, 31, 2)
_BETWEEN = (40, 48)
# The most candidates of a search that ends in rings of up to 32 bits.
TRIED = len(_SCALES) + len(_WEIGHT_BITS)
# Where the cause of an error is looked for, and how many layers may become floats for it.
_SEARCHED_ROWS = 8
_MOST_FLOATS = 16
_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Search:
    """What candidates are judged by. ``asked``: what the user said; ``supposed``: rows with other masks or states;
    ``steps``: calls of a session and their clear outputs, of a model with state; ``failures``: why some could not be
    tried; ``tell``: called with each candidate's words; ``shared``: the last candidate's weights."""

    module: fx.GraphModule
    asked: Precision
    rows: Rows
    expected: Sequence[torch.Tensor]
    ranges: dict[fx.Node, Range]
    supposed: Sequence[Supposed] = ()
    steps: tuple[Steps, list[list[torch.Tensor]]] | None = None
    failures: list[Exception] = field(default_factory=list)
    tell: Callable[[str], None] = lambda words: None
    shared: dict[str, SecretTensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Found:
    """``beside``: those of the rows with other masks or states whose error it is, if it is theirs; ``by_step``: the
    errors of the calls of a session, of which it is the largest if ``late``."""

    precision: Precision
    error: float
    beside: Supposed | None = None
    by_step: tuple[float, ...] = ()

    @property
    def late(self) -> bool:
        return self.error in self.by_step

    @property
    def good(self) -> bool:
        return self.error <= self.precision.tolerance

    @property
    def accepted(self) -> bool:
        return self.precision.accept is not None and self.error <= self.precision.accept


def choose_formats(
    module: fx.GraphModule,
    data: Sequence[torch.Tensor],
    precision: Precision,
    others: Sequence[Sequence[torch.Tensor]] = (),
    steps: Steps | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> tuple[fx.GraphModule, Choice]:
    """Writes ``format``, ``request`` and ``working`` into the metadata of every secret node of ``module``.

    ``data``: one batch of example values per input; ``others``: such batches with states of other lengths; ``steps``:
    calls of a session, all of which keep the tolerance; ``tell``: called with the words of each candidate before it is
    tried, ``TRIED`` of them at most where rings of up to 32 bits suffice. Rings hold ``margin`` times the largest value
    seen on these. A part of the rows is held out, and the plain engine's outputs on them decide, and on rows with other
    masks and states (``privml.graph.passes.supposed``): without a given scale the smallest one is taken that keeps them
    within ``tolerance``; then, without a given weight width, the smallest such width. Where none does the search goes
    on in wider rings (unless ``bits`` are given), and, unless ``accept`` allows the error, with floats (``rescue``) for
    the layers that lose most. Raises OverflowDetected if nothing fits the rings, PrecisionLost, which names layers, if
    the error stays larger than ``tolerance`` and ``accept``; an error that is accepted comes with a warning.
    """
    rows = split_rows(module.graph, data, _measured(module.graph, data))
    ranges, _ = calibrate(module, rows.seen)
    judged, expected = calibrate(module, rows.judges)
    unseen = _joined(ranges, judged, precision.margin)
    if precision.floating is not None:
        all_floats(module, float_format(precision.floating))
        search = _search(module, precision, (rows, expected), ranges, others, steps)
        found = _measure(search, precision)
        _require_tolerance(search, found)
        judged = _count(rows), _supposed_rows(search)
        return module, Choice(precision, found.error, (), rows.held_out, unseen, (), *judged, found.by_step)
    _require_finite_outputs(module.graph, ranges)
    ranges = widen(module, rows.seen, ranges)
    search = replace(_search(module, precision, (rows, expected), ranges, others, steps), tell=tell)
    best = _in_fixed_point(search, precision)
    floats: tuple[str, ...] = ()
    rescue = precision.rescue is not None and backend(precision.engine).floats
    if best is not None and not (best.good or best.accepted) and rescue:
        rescued = _with_floats(search, best)
        if rescued is not None:
            floats = tuple(set(rescued.precision.layers or {}) - set(precision.layers or {}))
            best = rescued
    if best is None:
        raise _cause(search)
    _require_tolerance(search, best)
    rings, plan = _write(search, best.precision)
    report = headroom_report(rings, plan, search.ranges, best.precision.margin)
    told = _count(rows), _supposed_rows(search), best.by_step, _elsewhere(search, best.precision)
    return module, Choice(best.precision, best.error, report, rows.held_out, unseen, tuple(sorted(floats)), *told)


def _search(
    module: fx.GraphModule,
    precision: Precision,
    data: tuple[Rows, Sequence[torch.Tensor]],
    ranges: dict[fx.Node, Range],
    others: Sequence[Sequence[torch.Tensor]],
    steps: Steps | None,
) -> _Search:
    """``data``: the rows, and the clear outputs of those that judge; widens ``ranges``."""
    walked = None
    if steps is not None:
        walked = steps, steps.clear(module.graph, attributes_of(module))
    return _Search(module, precision, *data, ranges, _beside(module, data[0], others, ranges), walked)


def _count(rows: Rows) -> int:
    """The rows that judge; 0 if inputs have no row each."""
    counts = {x.shape[0] if x.dim() else 0 for x in rows.judges}
    return counts.pop() if len(counts) == 1 else 0


def _supposed_rows(search: _Search) -> int:
    return sum(supposed.rows for supposed in search.supposed)


def _beside(
    module: fx.GraphModule, rows: Rows, others: Sequence[Sequence[torch.Tensor]], ranges: dict[fx.Node, Range]
) -> list[Supposed]:
    """What formats are judged on beside the rows of the data; widens ``ranges``."""
    found = of_lengths(module, others, ranges), suppose(module, rows.judges, ranges)
    return [supposed for supposed in found if supposed is not None]


def _measured(graph: fx.Graph, data: Sequence[torch.Tensor]) -> int:
    """The number of rows that judge."""
    if not any(tensor_of(node).dtype.is_floating_point for node in graph.output_node().args[0]):
        return _MEASURED_LABELS
    size = sum(x[:1].numel() if x.dim() else 1 for x in data)
    return _MEASURED_SMALL if size <= _SMALL else _MEASURED


def only_labels(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether no output is a real number."""
    return not any(x.dtype.is_floating_point for x in outputs)


def _joined(
    ranges: dict[fx.Node, Range], judged: Mapping[fx.Node, Range], margin: float
) -> tuple[tuple[str, float], ...]:
    """Widens ``ranges`` to what held-out rows reach; by what factor these go beyond the margin, per layer."""
    beyond: dict[str, float] = {}
    for node, found in judged.items():
        known = ranges.setdefault(node, Range(grain=found.grain))
        if node.meta.get("secret") and found.largest > known.largest * margin > 0:
            layer = str(node.meta.get("layer", node.name))
            beyond[layer] = max(beyond.get(layer, 0.0), found.largest / (known.largest * margin))
        known.largest = max(known.largest, found.largest)
        known.negative |= found.negative
        known.hides |= found.hides
        both = known.grain is not None and found.grain is not None
        known.grain = max(known.grain, found.grain) if both else None
    return tuple(sorted(beyond.items(), key=lambda pair: -pair[1]))


def _require_finite_outputs(graph: fx.Graph, ranges: Mapping[fx.Node, Range]) -> None:
    """UnsupportedOperator where the calibration data's answers hold infinity, of which a ring keeps some number."""
    for node in graph.output_node().args[0]:
        if node.meta.get("secret") and node in ranges and ranges[node].hides:
            raise infinite_output(source_line(node))


# ---- the search
def _in_fixed_point(search: _Search, precision: Precision) -> _Found | None:
    """The cheapest good candidate in rings as narrow as can be, else the best one; None if none could be tried."""
    first = _in_rings(search, replace(precision, bits=precision.bits or FIRST_BITS), _SCALES, _WEIGHT_BITS)
    if precision.bits is not None or first is not None and first.good:
        return first
    wide = _in_rings(search, replace(precision, bits=WIDEST_BITS), _WIDE_SCALES, _WIDE_WEIGHT_BITS)
    if wide is None or first is not None and first.error < wide.error and not wide.good:
        return first
    if not wide.good:
        return wide
    return _first_good(search, (replace(wide.precision, bits=bits) for bits in _BETWEEN), wide)


def _in_rings(search: _Search, precision: Precision, scales: range, widths: range) -> _Found | None:
    """The smallest scale that keeps the tolerance, with the narrowest weights that do; else the best there is."""
    bits, given = precision.bits, precision.scale is not None
    weight_bits = precision.weight_bits or min(max(widths), bits)
    tried = [precision.scale] if given else [s for s in scales if s < bits - 2]
    best = _first_good(search, (replace(precision, scale=s, weight_bits=weight_bits) for s in tried))
    if best is None:
        return None
    if precision.weight_bits is None and precision.narrow:
        tried = (replace(best.precision, weight_bits=width) for width in widths if width < weight_bits)
        best = _first_good(search, tried, best)
    if only_labels(search.expected):
        chosen = best.precision
        scale = chosen.scale if given else min(chosen.scale + _SPARE_BITS, bits - 3)
        finer = replace(chosen, scale=scale, weight_bits=min(chosen.weight_bits + _SPARE_BITS, weight_bits))
        best = _first_good(search, [finer], best)
    return best


def _first_good(search: _Search, candidates: Iterable[Precision], otherwise: _Found | None = None) -> _Found | None:
    """The first candidate within the tolerance, else ``otherwise``, else the best one there is."""
    best = otherwise
    for candidate in candidates:
        found = _try(search, candidate)
        if found.good:
            return found
        if otherwise is None and found.error < (math.inf if best is None else best.error):
            best = found
    return best


def _try(search: _Search, candidate: Precision) -> _Found:
    """A candidate with its error; infinite for one that cannot be computed, which is noted and ends no search."""
    search.tell(f"{candidate.bits} bits, {candidate.scale} fractional, weights of {candidate.weight_bits}")
    try:
        _write(search, candidate)
        return _measure(search, candidate)
    except (PrivmlError, ValueError) as failure:
        search.failures.append(failure)
        return _Found(candidate, math.inf)


def _write(search: _Search, precision: Precision) -> tuple[Rings, Scales]:
    ranges = search.ranges
    inner = inner_floats(named_floats(search.module, precision.layers or {})) & ranges.keys()
    if inner:
        ranges = {**ranges, **{node: replace(ranges[node], largest=0.0) for node in inner}}
    return write_formats(search.module, ranges, precision)


def _measure(search: _Search, precision: Precision) -> _Found:
    """How far the plain engine's outputs are from the expected ones, see ``difference``; on rows with other masks
    or states too, unless the error of the others is refused anyway."""
    module, expected = search.module, search.expected
    attributes, session = _ready(search, precision, precision.engine)
    found = _Found(precision, difference(_results(search, attributes, session), expected))
    if not (found.good or precision.accept):
        return found
    for supposed in search.supposed:
        error = difference(answers(module, supposed, attributes, session), supposed.expected, expected)
        found = _Found(precision, error, supposed) if error > found.error else found
    if search.steps is not None:
        steps, clear = search.steps
        by_step = steps.errors(module.graph, attributes, session, clear)
        beside = found.beside if max(by_step) <= found.error else None
        found = _Found(precision, max(found.error, *by_step), beside, by_step)
    return found


def _elsewhere(search: _Search, precision: Precision) -> tuple[tuple[str, float], ...]:
    """The error on the default engine and on engines with a dealer, as far as they can compute with these formats;
    without the engine that the formats were chosen for."""
    found: list[tuple[str, float]] = []
    search.shared.clear()  # other engines share the weights in other formats
    names = [each.name for each in backends() if each.name == DEFAULT or (each.dealt and not precision.layers)]
    for name in names:
        if name == precision.engine:
            continue
        with contextlib.suppress(PrivmlError, ValueError):
            results = _results(search, *_ready(search, precision, name))
            found.append((name, difference(results, search.expected)))
    return tuple(found)


def _ready(search: _Search, precision: Precision, like: str) -> tuple[dict[str, Any], Session]:
    """The graph's attributes in a session of the plain engine that rounds like another one, and the session."""
    session = Session(PlainEngine(like=like), precision.numerics)
    kept = search.shared if like == precision.engine else None
    return share_attributes(search.module.graph, session, attributes_of(search.module), kept=kept), session


def _results(search: _Search, attributes: Mapping[str, Any], session: Session) -> list[torch.Tensor]:
    """The outputs on the rows that judge."""
    graph = search.module.graph
    batches = chunks(placeholders(graph), search.rows.judges)
    parts = [run_graph(graph, share_inputs(graph, session, batch), attributes, session) for batch in batches]
    return [
        torch.cat([reveal(x) for x in each]) if each[0].dim() else reveal(each[0]) for each in zip(*parts, strict=True)
    ]


# ---- where no ring will do
def _with_floats(search: _Search, best: _Found) -> _Found | None:
    """The first good candidate with floats in the layers that lose most, as few as possible; None if there is none.

    What floats lose where a layer reads them in fixed point shows once they are floats: the search goes on from there.
    """
    chosen: dict[str, str] = {}
    found = best
    while True:
        lost = [pair for pair in _losses(search, found) if glob.escape(pair[0]) not in chosen]
        lost = lost[: _MOST_FLOATS - len(chosen)]
        if not lost:
            return None
        for count in _counts([loss for _, loss in lost], best.precision.tolerance / 2):
            names = {**chosen, **{glob.escape(layer): best.precision.rescue for layer, _ in lost[:count]}}
            found = _try(search, replace(best.precision, layers={**names, **(best.precision.layers or {})}))
            if found.good:
                return found
        chosen = names


def _counts(losses: Sequence[float], enough: float) -> Iterator[int]:
    """How many of the first layers to try: the fewest that leave at most ``enough``, then twice as many, up to all."""
    count = 1
    while count < len(losses) and sum(losses[count:]) > enough:
        count += 1  # the effects of layers add up, at most
    while count < len(losses):
        yield count
        count *= 2
    yield len(losses)


def _losses(search: _Search, found: _Found) -> list[tuple[str, float]]:
    """The layers that lose most with these formats; none if a run does not get to the end."""
    nodes, bits = placeholders(search.module.graph), {}
    batch = chunks(nodes, search.rows.judges)[0]
    if found.beside is not None:
        batch, bits = found.beside.parts[-1]
    elif all(shape_of(node)[:1] == (None,) for node in nodes):
        batch = [x[:_SEARCHED_ROWS] for x in batch]
    try:
        _write(search, found.precision)
        return losses(search.module, found.precision.numerics, batch, bits)
    except (PrivmlError, ValueError) as failure:
        search.failures.append(failure)
        return []


def _require_tolerance(search: _Search, best: _Found) -> None:
    """Raises PrecisionLost, or warns, where the error is larger than the tolerance."""
    precision, error = best.precision, best.error
    if best.good:
        return
    held_out, rows = search.rows.held_out, len(search.rows.judges[0]) if search.rows.judges[0].dim() else 1
    where = f"{rows} rows, {held_out} of them held out," if held_out else "the calibration data"
    if best.beside is not None:
        where = best.beside.where
    elif best.late:
        where = f"{len(best.by_step)} calls of a session"
    part = "part of the labels" if only_labels(search.expected) else "part of the largest output"
    text = (
        f"the chosen formats change an output on {where} by {error:.2%} as a {part}, more than tolerance "
        f"{precision.tolerance:.2%}"
    )
    if best.accepted:
        warnings.warn(f"{text}; numerics.accept={precision.accept:g} allows it", stacklevel=4)
        return
    lost = _losses(search, best) if precision.floating is None else []
    named = ", ".join(f"{layer!r} ({loss:.2%})" for layer, loss in lost[:_NAMED])
    raise PrecisionLost(
        text
        + (f"; most is lost in layers {named}" if named else "")
        + f"; {_remedies(search.asked)}, or accept the error with numerics.accept={_rounded_up(error)}"
    )


def _remedies(asked: Precision) -> str:
    """What the search was not free to try, else what would help."""
    if asked.floating is not None:
        return "choose a wider floating-point format"
    if asked.bits is not None and asked.bits < WIDEST_BITS:
        return f"leave bits to the search, which goes up to {WIDEST_BITS} (numerics.bits=null)"
    given = [name for name in ("scale", "weight_bits") if getattr(asked, name) is not None]
    if given:
        return f"leave {' and '.join(given)} to the search"
    return "scale the model so that its values are neither tiny nor huge, use floats (numerics=float32)"


def _rounded_up(error: float) -> str:
    if not math.isfinite(error):
        return "..."
    digits = 2 - math.ceil(math.log10(error))
    return f"{math.ceil(error * 10**digits) / 10**digits:g}"


def _cause(search: _Search) -> Exception:
    """Why no candidate could be tried: an operator that none has, the first overflow, else the first failure of any
    kind, with its layer."""
    failures = search.failures
    kinds = (UnsupportedOperator, OverflowDetected, Exception)
    cause = next((f for kind in kinds for f in failures if isinstance(f, kind)), None)
    if cause is None:
        return OverflowDetected("no scale fits the rings")
    notes = "; ".join(getattr(cause, "__notes__", ()))
    if not isinstance(cause, PrivmlError):
        return PrecisionLost(f"no format of the search can be computed: {cause}{f' ({notes})' if notes else ''}")
    return cause
