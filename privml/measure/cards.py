# SPDX-License-Identifier: Apache-2.0
"""The generated part of a model's card, between two markers; the text around it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from privml.measure import words
from privml.measure.zoo_records import Record

BEGIN = "<!-- measured by `privml evaluate zoo`: begin -->"
END = "<!-- measured: end -->"


def fill(card: Path, records: Sequence[Record]) -> None:
    """Writes what ``records`` found into ``card``, at its markers or at its end; nothing without records."""
    if not records:
        return
    text = card.read_text()
    before, rest = text.split(BEGIN, 1) if BEGIN in text else (text.rstrip("\n") + "\n\n", "\n" + END + "\n")
    after = rest.split(END, 1)[1]
    card.write_text(before + BEGIN + "\n" + measured(records) + "\n" + END + after)


def measured(records: Sequence[Record]) -> str:
    """Paragraphs and a table in Markdown."""
    ordered = words.ordered(records)
    lines = [f"**Measured.** {sentence(ordered)}", ""]
    shown = [record for record in ordered if record.engine != "plain"]
    return "\n".join(lines + table(shown)) if shown else lines[0]


def sentence(records: Sequence[Record]) -> str:
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


COLUMNS = ("engine", "network", "rows", "same labels", "sent", "depth", "time", "sent as predicted")


def table(records: Sequence[Record]) -> list[str]:
    """Lines of Markdown: one row per engine and network."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "| " + " | ".join(["---"] * len(COLUMNS)) + " |"]
    return lines + ["| " + " | ".join(row(record)) + " |" for record in records]


def row(record: Record) -> list[str]:
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
