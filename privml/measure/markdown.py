# SPDX-License-Identifier: Apache-2.0
"""The zoo in Markdown: its page of the documentation, and the part of a model's card between two markers. The text of
a card outside the markers is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privml.measure import words
from privml.measure.records import Record
from privml.measure.views import Zoo, per_row

NOTE = "<!-- Written by `privml evaluate zoo` (see below); do not edit. -->"
INTRODUCTION = """\
Every folder of `models/` holds a model: its definition, a training recipe, weights and a card. The weights of
`characters` and `recordings` come from packages that their cards name; both are left out if the package is missing.
This page compares the answers of secure inference with those of the clear model, and says what a query costs.

```
privml evaluate zoo engine=threepc link=lan        # all models; model=lenet or model=lenet+mlp for some
privml evaluate zoo -m engine=plain,twopc,threepc link=loopback,lan,wan
privml evaluate zoo measure=false cards=true markdown=docs/zoo.md results=benchmarks/results/zoo.jsonl
```

The first two commands measure, and keep one record for each model, engine and network, in the user's cache folder or
in `results=FILE`. The last command writes the cards and this page from the records of a checkout. Each of them also
writes a report with pictures, `build/zoo.html`, from all records. Each party is a process; delay and bandwidth of `lan`
and `wan` are simulated. Bytes are the sum of what all parties send, set-up and correlations included. Depth is the
number of messages that wait for each other. Time runs from the handshake to the answer.
"""
ANSWERS = """\
## Answers
Answers for the shipped test rows, computed with the number formats of secure inference. Models shown without accuracy
have random weights.

"""
PRECISION = """\
## Precision
The difference of each score from the clear model's; a unit is the last place of a score. Conversion chooses the
narrowest formats that keep the allowed error, so errors are many units.

"""

BEGIN = "<!-- measured by `privml evaluate zoo`: begin -->"
END = "<!-- measured: end -->"
CARD_COLUMNS = ("engine", "network", "rows", "same labels", "sent", "depth", "time", "sent as predicted")


def document(records: Sequence[Record]) -> str:
    zoo = Zoo(records)
    parts = [
        NOTE,
        "# The zoo",
        INTRODUCTION,
        accuracy(zoo),
        times(zoo),
        traffic(zoo),
        forecasts(zoo),
        precision(zoo),
        ending(zoo),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in table)


def accuracy(zoo: Zoo) -> str:
    rows = []
    for model in zoo.models:
        plain = model.plain
        if plain is None or plain.answers is None:
            continue
        found = plain.answers
        right = [words.percent(n, found.rows) for n in (found.clear_right, found.right)] if plain.learned else ["", ""]
        rows.append([model.title, f"{plain.parameters:,}", plain.numbers, str(found.rows), *right, words.same(found)])
    columns = ["model", "parameters", "numbers", "rows", "clear", "secure", "same labels"]
    return ANSWERS + lines(columns, rows)


def times(zoo: Zoo) -> str:
    text = "## Time\nMeasured time for one row of a query; the number of rows is in brackets.\n"
    for network in zoo.networks:
        columns = ["model", *(words.way(record) for record in zoo.ways)]
        rows = []
        for model in zoo.models:
            cells = [model.run(way, network) for way in zoo.ways]
            rows.append([model.title, *("" if cell is None else _time(cell) for cell in cells)])
        text += f"\n### {network}: {zoo.link(network)}\n{lines(columns, rows)}\n"
    return text


def _time(record: Record) -> str:
    return f"{words.duration(per_row(record))} ({record.rows})" if record.measured else "not run"


def traffic(zoo: Zoo) -> str:
    columns = ["model", *(words.way(record) for record in zoo.ways)]
    rows = []
    for model in zoo.models:
        cells = [model.any_run(way) for way in zoo.ways]
        rows.append([model.title, *("" if c is None or c.cost is None else _sent(c) for c in cells)])
    return "## Bytes\nBytes that all parties send for one row of a query, and the depth of the query.\n\n" + lines(
        columns, rows
    )


def _sent(record: Record) -> str:
    return f"{words.size(record.cost.bytes / record.rows)}, {record.cost.depth:,}"


def forecasts(zoo: Zoo) -> str:
    runs = [record for record in zoo.runs if record.exact is not None]
    exact = sum(1 for record in runs if record.exact)
    text = f"""\
## Predicted and measured
In {exact} of {len(runs)} runs every party sent and received exactly the bytes that the cost functions predict, in every
phase and at the predicted depth. """
    predicted = [r for r in runs if r.predicted_seconds]
    if not predicted:
        return text + "The report draws the predicted time of the messages alone beside the measured time."
    close = sum(1 for r in predicted if abs(r.predicted_seconds / r.measured.seconds - 1) <= 0.25)
    return text + f"The time is predicted within a quarter for {close} of {len(predicted)}."


def precision(zoo: Zoo) -> str:
    rows = []
    for model in zoo.models:
        errors = model.plain.errors if model.plain else None
        if errors is not None:
            units = errors.largest / errors.unit
            numbers = [words.power(x) for x in (errors.reach, errors.median, errors.largest, errors.unit)]
            rows.append([model.title, *numbers, f"{units:,.0f}", words.power(errors.allowed) if errors.allowed else ""])
    columns = ["model", "largest score", "median error", "largest error", "unit", "in units", "allowed"]
    return PRECISION + lines(columns, rows)


def ending(zoo: Zoo) -> str:
    return f"## Machine\n{zoo.machine}\n\nCards: " + ", ".join(f"`models/{model.name}`" for model in zoo.models) + "."


# ---- cards
def fill_card(card: Path, records: Sequence[Record]) -> None:
    """Writes what ``records`` found into ``card``, at its markers or at its end; nothing without records."""
    if not records:
        return
    text = card.read_text()
    before, rest = text.split(BEGIN, 1) if BEGIN in text else (text.rstrip("\n") + "\n\n", "\n" + END + "\n")
    after = rest.split(END, 1)[1]
    card.write_text(before + BEGIN + "\n" + card_part(records) + "\n" + END + after)


def card_part(records: Sequence[Record]) -> str:
    """Paragraphs and a table in Markdown."""
    ordered = words.ordered(records)
    begun = [f"**Measured.** {card_sentence(ordered)}", ""]
    shown = [record for record in ordered if record.engine != "plain"]
    return "\n".join([*begun, lines(CARD_COLUMNS, [card_row(record) for record in shown])]) if shown else begun[0]


def card_sentence(records: Sequence[Record]) -> str:
    plain = next((record for record in records if record.engine == "plain"), None)
    if plain is None or plain.answers is None:
        return f"{records[0].numbers.capitalize()}."
    answers, errors = plain.answers, plain.errors
    text = f"{plain.numbers.capitalize()}. On the {answers.rows} shipped samples "
    if records[0].learned:
        right, clear = (words.percent(n, answers.rows) for n in (answers.right, answers.clear_right))
        text += f"{right} right (the clear model {clear}), "
    text += f"{words.same(answers)} labels those of the clear model"
    if errors is not None:
        text += f", scores within {words.power(errors.largest)} of clear ones up to {words.power(errors.reach)}"
    return text + "."


def card_row(record: Record) -> list[str]:
    cost, measured = record.cost, record.measured
    return [
        words.way(record),
        record.network["name"],
        str(record.rows),
        words.same(record.answers) or "not run",
        words.size(cost.bytes) if cost else "",
        f"{cost.depth:,}" if cost else "",
        words.duration(measured.seconds) if measured else "not run",
        "" if record.exact is None else "exactly" if record.exact else "no",
    ]
