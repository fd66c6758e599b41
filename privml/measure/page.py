# SPDX-License-Identifier: Apache-2.0
"""The report: one HTML file that loads nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privml.measure import charts, views, words
from privml.measure.records import Record
from privml.measure.views import FAMILIES, Model, Zoo, per_row, short

TEMPLATE = "report.html.j2"


def document(records: Sequence[Record]) -> str:
    """The page of ``records``, of which there is at least one."""
    import jinja2  # torch needs it as well

    zoo = Zoo(records)
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals.update(
        zoo=zoo, words=words, views=views, per_row=per_row, short=short, kinds={**FAMILIES, **views.FURTHER}
    )
    classes = {record.way: f"way{place}" for place, record in enumerate(zoo.ways)}
    return environment.get_template(TEMPLATE).render(
        classes=classes,
        shown=shown_network(zoo),
        tiles=tiles(zoo),
        accuracies=accuracies(zoo),
        sides=sides(zoo, classes),
        bytes_scatter=bytes_scatter(zoo, classes),
        time_scatter=time_scatter(zoo, classes),
        histogram=charts.histogram,
        precise=[model for model in zoo.models if model.plain and model.plain.errors],
        engines=engines(zoo),
        all_predicted=all_predicted(zoo),
    )


def shown_network(zoo: Zoo) -> str:
    """The one shown first: a local network, as long as there is one."""
    return "lan" if "lan" in zoo.networks else (zoo.networks or [""])[0]


def tiles(zoo: Zoo) -> list[tuple[str, str]]:
    """(figure, what it says) for the top of the page."""
    plain = [model.plain.answers for model in zoo.models if model.plain and model.plain.answers]
    once = list({(r.model, r.way): r.answers for r in zoo.runs if r.answers}.values())
    random = sum(1 for model in zoo.models if not model.first.learned)
    text = "model" if len(zoo.models) == 1 else "models"
    if random:
        text += ", with random weights" if random == len(zoo.models) else f", {random} of them with random weights"
    found = [(str(len(zoo.models)), text)]
    if plain:
        rows = f"{sum(a.rows for a in plain):,}"
        text = f"of {rows} test rows get the clear model's label in the numbers of secure inference"
        found.append((f"{sum(a.same for a in plain):,}", text))
    if once:
        text = f"of {sum(a.rows for a in once):,} rows get it from parties that are processes of their own"
        found.append((f"{sum(a.same for a in once):,}", text))
    exact = [record.exact for record in zoo.runs if record.exact is not None]
    if exact:
        found.append(
            (
                f"{sum(exact)} of {len(exact)}",
                f"{'run' if len(exact) == 1 else 'runs'} sent exactly the predicted bytes, party by party",
            )
        )
    fast = [record for record in zoo.runs if record.measured and record.learned]
    if fast:
        best = min(fast, key=per_row)
        found.append((words.duration(per_row(best)), f"a row: {best.title}, {words.way(best)}, {best.network['name']}"))
    return found


def accuracies(zoo: Zoo) -> dict[str, Any]:
    """Rows (model, clear and secure accuracy as places in percent of the axis, words) and the axis' ticks."""
    found = [(m, m.plain.answers) for m in zoo.models if m.plain and m.plain.answers and m.plain.learned]
    lowest = min([min(a.right, a.clear_right) / a.rows for _, a in found] or [0.0])
    low = math.floor(lowest * 10) / 10 if lowest < 1 else 0.9

    def place(part: int, whole: int) -> float:
        return 100 * (part / whole - low) / (1 - low)

    rows = [
        {
            "model": model,
            "clear_place": place(a.clear_right, a.rows),
            "secure_place": place(a.right, a.rows),
            "clear_text": words.percent(a.clear_right, a.rows),
            "secure_text": words.percent(a.right, a.rows),
            "same": words.same(a),
        }
        for model, a in found
    ]
    step = 2 if low >= 0.9 else 5 if low >= 0.7 else 10
    percents = range(round(100 * low), 101, step)
    ticks = [(100 * (p - 100 * low) / (100 - 100 * low), f"{p}%") for p in percents]
    return {"rows": rows, "ticks": ticks}


def sides(zoo: Zoo, classes: dict[str, str]) -> list[dict[str, Any]]:
    """Dot plots, a row per model and a dot per engine: seconds on each network, bytes, depth."""
    found = []
    for network in zoo.networks:
        values = {m.name: [(w, _seconds(m, w, network)) for w in zoo.ways] for m in zoo.models}
        found.append(_dots(zoo, classes, f"Time for each row, {network}", network, values, words.duration))
    values = {m.name: [(w, _sent(m, w)) for w in zoo.ways] for m in zoo.models}
    found.append(_dots(zoo, classes, "Bytes for each row, all parties", "", values, words.size))
    return [side for side in found if side["rows"]]


def _seconds(model: Model, way: Record, network: str) -> float | None:
    record = model.run(way, network)
    return per_row(record) if record and record.measured else None


def _sent(model: Model, way: Record) -> float | None:
    record = model.any_run(way)
    return record.cost.bytes / record.rows if record and record.cost else None


def _dots(
    zoo: Zoo,
    classes: dict[str, str],
    title: str,
    network: str,
    values: dict[str, list[tuple[Record, float | None]]],
    text: Any,
) -> dict[str, Any]:
    axis = charts.LogAxis.around([value for row in values.values() for _, value in row if value])
    rows = []
    for model in zoo.models:
        dots = [
            {"kind": classes[way.way], "place": axis.place(value), "text": f"{words.way(way)}: {text(value)}"}
            for way, value in values[model.name]
            if value
        ]
        if dots:
            places = [dot["place"] for dot in dots]
            rows.append({"model": model, "dots": dots, "low": min(places), "width": max(places) - min(places)})
    return {"title": title, "network": network, "rows": rows, "ticks": axis.ticks(text)}


def bytes_scatter(zoo: Zoo, classes: dict[str, str]) -> str:
    points = []
    for model in zoo.models:
        for way in zoo.ways:
            record = model.any_run(way)
            if record and record.predicted and record.measured:
                text = f"{model.title}, {words.way(way)}: {words.size(record.predicted.bytes)} predicted, "
                text += f"{words.size(record.measured.bytes)} sent"
                points.append(charts.Point(record.predicted.bytes, record.measured.bytes, classes[way.way], text))
    return charts.scatter(points, "predicted bytes", "sent", words.size) if points else ""


def time_scatter(zoo: Zoo, classes: dict[str, str]) -> str:
    """Against the predicted time of the whole query if every run has one, else against that of its messages."""
    runs = [record for record in zoo.runs if record.measured and record.messages_seconds is not None]
    whole = all_predicted(zoo)
    points = []
    for record in runs:
        predicted = record.predicted_seconds if whole else record.messages_seconds
        text = f"{record.title}, {words.way(record)}, {record.network['name']}: "
        text += f"{words.duration(predicted)} predicted, {words.duration(record.measured.seconds)} measured"
        points.append(charts.Point(predicted, record.measured.seconds, classes[record.way], text))
    across = "predicted" if whole else "predicted, messages alone"
    return charts.scatter(points, across, "measured", words.duration) if points else ""


def all_predicted(zoo: Zoo) -> bool:
    """Whether the time of every measured run was predicted."""
    return all(record.predicted_seconds for record in zoo.runs if record.measured)


def engines(zoo: Zoo) -> list[dict[str, Any]]:
    """For each engine with its transfers: what it is, and means over the models that every one of them has."""
    common = [m for m in zoo.models if all((r := m.any_run(way)) and r.cost for way in zoo.ways)]
    rows = []
    for way in zoo.ways:
        runs = [model.any_run(way) for model in common]
        times = {}
        for network in zoo.networks:
            here = [w for w in zoo.ways if any(_seconds(m, w, network) for m in common)]
            every = [m for m in common if all(_seconds(m, w, network) for w in here)]
            times[network] = mean([_seconds(m, way, network) for m in every]) if way in here else 0.0
        answers = [r.answers for m in zoo.models if (r := m.any_run(way)) and r.answers]
        rows.append(
            {
                "way": way,
                "models": sum(1 for model in zoo.models if model.any_run(way)),
                "same": f"{sum(a.same for a in answers)} of {sum(a.rows for a in answers)}",
                "bytes": mean([run.cost.bytes / run.rows for run in runs]),
                "depth": mean([run.cost.depth for run in runs]),
                "times": times,
            }
        )
    return rows


def mean(values: Sequence[float]) -> float:
    """The geometric one; 0 of nothing."""
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else 0.0
