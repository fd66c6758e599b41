# SPDX-License-Identifier: Apache-2.0
"""privml/measure/reference_times.json from the measured queries of the zoo: python scripts/make_reference_times.py

The records (benchmarks/results/zoo.jsonl, those of one machine at rest) hold the seconds of each layer; the calls of
each layer come from the program, counted. What an engine says of its computing is left out. Non-negative least squares
of relative errors give seconds of a message, of a layer, and for each call of a byte and of a product. Prints estimated
beside measured seconds.
"""

from __future__ import annotations

import json
import statistics
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import privml._core as _core  # noqa: E402
from models import load  # noqa: E402
from privml.conversion import convert  # noqa: E402
from privml.engines.correlations import OtChoice  # noqa: E402
from privml.measure.calls import Call, Watch, Watched  # noqa: E402
from privml.measure.estimate import FILE  # noqa: E402
from privml.measure.predict import demand_of  # noqa: E402
from privml.measure.records import Record, read_all  # noqa: E402
from privml.program import INPUT_OWNER, Program  # noqa: E402
from privml.spec import SessionSpec  # noqa: E402

RECORDS = ROOT / "benchmarks" / "results" / "zoo.jsonl"
# The link of still messages, and that of a delay.
STILL, DELAYED = "loopback", "lan"
# Errors are relative to a layer's time and so many seconds, which clocks and schedulers add.
NOISE = 2e-4


@dataclass(frozen=True)
class Query:
    """A record on the link without delay, and that of the same query with it, if there is one; its calls by layer."""

    record: Record
    delayed: Record | None
    spec: SessionSpec
    layers: dict[str, list[Call]]
    depth: dict[str, int]
    nodes: int
    correlations: tuple[int, int]
    made_bytes: int


def main() -> None:
    warnings.simplefilter("ignore")
    records = [each for each in read_all(RECORDS) if each.measured is not None and each.engine != "plain"]
    machines = Counter(each.about["processor"] for each in records)
    ((machine, _),) = machines.most_common(1)
    records = [each for each in records if each.about["processor"] == machine]
    queries = [query for name in sorted({each.model for each in records}) for query in of_model(name, records)]
    engines = {}
    for name in sorted({query.record.engine for query in queries}):
        engines[name] = figures([query for query in queries if query.record.engine == name], name)
    content = {"machine": {"processor": machine, "cores": records[0].about["cores"]}, "engines": engines}
    FILE.write_text(json.dumps(content, indent=1) + "\n")


def of_model(name: str, records: Sequence[Record]) -> list[Query]:
    model = load(name)
    program = convert(model.module, calibration=model.preprocess(model.calibration), numerics=dict(model.numerics))
    still = [each for each in records if each.model == name and each.network["name"] == STILL]
    others = {(each.engine, each.ot, each.rows): each for each in records
              if each.model == name and each.network["name"] == DELAYED}  # fmt: skip
    return [counted(program, each, others.get((each.engine, each.ot, each.rows))) for each in still]


def counted(program: Program, record: Record, delayed: Record | None) -> Query:
    provider, *rest = (record.ot or "softspoken-k4").split("-")
    spec = SessionSpec.of(record.engine)
    security = "malicious" if rest[-1:] == ["malicious"] else "semi_honest"
    degree = next((int(each[1:]) for each in rest if each[0] == "k"), 4)
    spec = replace(spec, ot=OtChoice(provider, degree, security))
    shapes, watch = program.shapes(record.rows), Watch()
    layers: dict[str, list[Call]] = defaultdict(list)
    engine: Any = spec.backend.meter(spec, INPUT_OWNER)
    demand = demand_of(program, shapes, spec)
    if demand:
        engine.reserve(demand)

    def on_node(event: str, name: str) -> None:
        if event == "end":
            layers[name] += watch.calls
        watch.calls.clear()

    ledger = program.metered(Watched(engine, watch), *shapes, on_node=on_node)
    total, size = ledger.snapshot(), 1
    if spec.backend.transfers:
        size = _core.ot_granularity(spec.ot.provider, spec.ot.k, spec.ot.security)
    made = tuple(-(-each // size) * size for each in (total.cots_as_sender, total.cots_as_receiver))
    depth = {name: node.cost.online.depth for name, node in ledger.records.items()}
    nodes = len(program.graph.nodes)
    return Query(record, delayed, spec, dict(layers), depth, nodes, made, total.preprocess.bytes)


def figures(queries: Sequence[Query], name: str) -> dict[str, Any]:
    methods = sorted({call.sample.method for query in queries for calls in query.layers.values() for call in calls})
    rows, seconds, places = [], [], []
    for query in queries:
        measured = {layer.name: layer.seconds for layer in query.record.layers}
        for layer, calls in query.layers.items():
            if layer in measured:
                rows.append(features(calls, query.depth[layer], methods))
                computing = sum(call.times * call.sample.computing for call in calls)
                seconds.append(max(measured[layer] - computing, 0.0))
                places.append(query)
    weights = solved(rows, seconds)
    (hop, layer), rest = weights[:2].round(9).tolist(), weights[2:].reshape(-1, 2)
    found = {method: each for method, each in zip(methods, rest.round(15).tolist(), strict=True) if any(each)}
    found["other"] = [statistics.median([a for a, _ in rest if a > 0]), 0.0]
    counts = [[1, query.nodes] for query in queries]
    handshake, step = solved(counts, [unphased(query.record) for query in queries]).round(9).tolist()
    told(name, places, np.array(rows) @ weights, seconds)
    return {
        "hop": hop, "delayed": delayed(queries), "layer": layer, "handshake": handshake, "step": step,
        "setup": setup(queries), "making": making(queries), "calls": found,
    }  # fmt: skip


def features(calls: Sequence[Call], depth: int, methods: Sequence[str]) -> list[float]:
    row = [float(depth), 1.0] + [0.0] * (2 * len(methods))
    for call in calls:
        place = 2 + 2 * methods.index(call.sample.method)
        row[place] += call.times * call.sample.size
        row[place + 1] += 0.0 if call.sample.computing else call.times * call.sample.products
    return row


def solved(rows: Sequence[Sequence[float]], seconds: Sequence[float]) -> np.ndarray:
    """Weights, none negative, with the least squares of relative errors."""
    matrix, wanted = np.array(rows, float), np.array(seconds)
    relative = 1 / (wanted + NOISE)
    matrix = matrix * relative[:, None]
    size = np.maximum(np.abs(matrix).max(0), 1e-300)
    return nnls(matrix / size, wanted * relative)[0] / size


def setup(queries: Sequence[Query]) -> dict[str, float]:
    found: dict[str, list[float]] = defaultdict(list)
    for query in queries:
        provider = query.spec.ot.provider if query.spec.backend.transfers else "none"
        found[provider].append(query.record.measured.setup.seconds)
    known = {provider: statistics.median(values) for provider, values in found.items()}
    return {"silent": known["softspoken"], "ideal": 0.0, **known} if "softspoken" in known else known


def making(queries: Sequence[Query]) -> dict[str, float]:
    """Seconds of a transfer, or of a byte sent where correlations are of many kinds. Silent transfers are made in large
    batches, as many as are drawn or more; of an engine that was measured without they are told from the other ones."""
    found: dict[str, list[float]] = defaultdict(list)
    for query in queries:
        count = query.made_bytes if query.spec.backend.by_kind else sum(query.correlations)
        if count:
            found[query.spec.ot.provider].append(query.record.measured.preprocess.seconds / count)
    made = {provider: statistics.median(values) for provider, values in found.items()}
    return {"silent": made["softspoken"], "ideal": 0.0, **made} if made else {}


def delayed(queries: Sequence[Query]) -> float:
    """What a message takes more on a link with a delay, the delay and the bytes apart."""
    found = []
    for query in queries:
        if query.delayed is None or not query.delayed.measured.online.depth:
            continue
        link, online = query.delayed.network, query.delayed.measured.online
        carried = online.bytes / query.spec.backend.parties * 8e-6 / link["bandwidth_mbps"]
        more = online.seconds - query.record.measured.online.seconds - carried
        found.append(max(more / online.depth - link["delay_ms"] / 1000, 0.0))
    return statistics.median(found)


def unphased(record: Record) -> float:
    """Seconds of the query beside its phases."""
    cost = record.measured
    online = sum(layer.seconds for layer in record.layers)
    return max(cost.seconds - cost.setup.seconds - cost.preprocess.seconds - online, 0.0)


def told(name: str, queries: Sequence[Query], found: np.ndarray, seconds: Sequence[float]) -> None:
    """Prints estimated and measured seconds of the layers of each query."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for query, estimate, measured in zip(queries, found, seconds, strict=True):
        both = sums[query.record.model, query.record.ot]
        both[0] += estimate
        both[1] += measured
    for (model, ot), (estimate, measured) in sums.items():
        print(f"{name} {ot} {model}: {estimate:.3f} s estimated, {measured:.3f} s measured")


if __name__ == "__main__":
    main()
