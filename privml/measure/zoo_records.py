# SPDX-License-Identifier: Apache-2.0
"""The results of one evaluation, as plain data: one JSON line per model, engine and network."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PHASES = ("setup", "preprocess", "online")


@dataclass(frozen=True)
class Phase:
    """``bytes``: sent by all parties together; ``depth``, ``seconds``: as the client sees them."""

    bytes: int = 0
    depth: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Cost:
    """One query of a batch; ``seconds``: from handshake to answer, 0 if not known."""

    setup: Phase = Phase()
    preprocess: Phase = Phase()
    online: Phase = Phase()
    seconds: float = 0.0

    @property
    def bytes(self) -> int:
        return sum(getattr(self, phase).bytes for phase in PHASES)

    @property
    def depth(self) -> int:
        return sum(getattr(self, phase).depth for phase in PHASES)


@dataclass(frozen=True)
class Layer:
    """``bytes``: online, sent by all parties; ``prepared``: the same of the phase before; ``seconds``: online."""

    name: str
    operator: str
    bytes: int
    prepared: int
    depth: int
    seconds: float


@dataclass(frozen=True)
class Answers:
    """Of ``rows`` labels: how many are ``right``, how many the clear model has right, how many are the ``same``."""

    rows: int
    right: int
    clear_right: int
    same: int


@dataclass(frozen=True)
class Errors:
    """Scores beside those of the clear model. ``counts``: by e, how many errors lie in (2^(e-1), 2^e]; ``exact``: how
    many are zero. ``unit``: the unit of the last place of an output (of the largest one, for floats); ``reach``: the
    largest clear score; ``allowed``: the largest error that the formats were chosen for, 0 for floats."""

    counts: Mapping[str, int]
    exact: int
    largest: float
    median: float
    unit: float
    reach: float
    allowed: float

    @property
    def total(self) -> int:
        return self.exact + sum(self.counts.values())


@dataclass(frozen=True)
class Record:
    """``predicted``: from the cost functions; ``measured``: None if the query was too large to run.
    ``exact``: whether both agree at every party and phase, in each direction and in depth. ``differing``: outputs that
    are not those of the plain engine, which computes with the same formats; ``layers``: of the measured run if there is
    one. ``messages_seconds``: predicted time of the messages alone; ``predicted_seconds``: of the whole query on this
    machine, if requested."""

    model: str
    title: str
    task: str
    parameters: int
    learned: bool
    numbers: str
    engine: str
    ot: str
    network: Mapping[str, Any]
    rows: int
    threads: int
    answers: Answers | None
    errors: Errors | None
    predicted: Cost | None
    measured: Cost | None
    exact: bool | None
    differing: int | None
    outputs: int
    messages_seconds: float | None
    layers: tuple[Layer, ...] = ()
    predicted_seconds: float | None = None
    peak_memory: tuple[int, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cost(self) -> Cost | None:
        """The measured cost, or the predicted one."""
        return self.measured or self.predicted

    @property
    def way(self) -> str:
        """The engine and the source of its correlations."""
        return f"{self.engine} ({self.ot})" if self.ot else self.engine

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What one record is kept for: model, engine, transfers, network."""
        return self.model, self.engine, self.ot, "" if self.engine == "plain" else self.network["name"]


def save(record: Record, path: Path) -> None:
    """Writes the record's line; replaces a line with the same key. Lines are sorted by ``Record.key``."""
    records = {each.key: each for each in read_all(path)} | {record.key: record}
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".partial")
    written.write_text("".join(_line(records[key]) for key in sorted(records)))
    os.replace(written, path)


def read_all(path: Path) -> list[Record]:
    """By model, engine, transfers and network; none if there is no such file."""
    if not path.exists():
        return []
    return [_record(json.loads(line)) for line in path.read_text().splitlines()]


def _line(record: Record) -> str:
    content = asdict(record)
    content["layers"] = [list(layer.values()) for layer in content["layers"]]
    return json.dumps(content, separators=(",", ":")) + "\n"


def _record(content: dict[str, Any]) -> Record:
    for name, kind in (("answers", Answers), ("errors", Errors)):
        content[name] = content[name] and kind(**content[name])
    for name in ("predicted", "measured"):
        content[name] = content[name] and _cost(content[name])
    content["layers"] = tuple(Layer(*layer) for layer in content["layers"])
    content["peak_memory"] = tuple(content["peak_memory"])
    return Record(**content)


def _cost(content: Mapping[str, Any]) -> Cost:
    return Cost(**{name: Phase(**content[name]) for name in PHASES}, seconds=content["seconds"])
