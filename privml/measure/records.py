# SPDX-License-Identifier: Apache-2.0
"""Records of experiments and of the zoo, one JSON line each: everything to read them, and to run them again."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from privml.measure.machine import machine, revision
from privml.session.ledger import PHASES

# How a run ended. Whatever an engine or format does not offer is "unsupported", with the reason.
OK, UNSUPPORTED, FAILED = "ok", "unsupported", "failed"
# MLflow keeps so many characters of a parameter.
LONGEST_PARAMETER = 500


# ---- experiments
def record(
    name: str,
    config: Mapping[str, Any],
    choices: Mapping[str, str],
    metrics: Mapping[str, float],
    status: str = OK,
    reason: str = "",
) -> dict[str, Any]:
    """``config``: all settings, resolved; ``choices``: what was chosen of each group of settings; ``metrics``: numbers
    by name, empty unless ``status`` is ok."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "experiment": name,
        "status": status,
        "reason": reason,
        "choices": dict(choices),
        "metrics": dict(metrics),
        "config": dict(config),
        "git": revision(),
        "machine": machine(),
    }


def append(file: Path, line: Mapping[str, Any]) -> None:
    """Adds one line; runs side by side may write to one file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = (json.dumps(line, sort_keys=True) + "\n").encode()
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, text)  # in one piece: lines of different runs do not mix
    finally:
        os.close(descriptor)


def size(file: Path) -> int:
    """Bytes of ``file`` so far, for ``read``."""
    return file.stat().st_size if file.exists() else 0


def read(file: Path, start: int = 0) -> list[dict[str, Any]]:
    """The records from byte ``start`` on."""
    if not file.exists():
        return []
    with file.open("rb") as stream:
        stream.seek(start)
        return [json.loads(line) for line in stream]


def phases(ledger: Mapping[str, Any]) -> dict[str, float]:
    """Metrics of a ledger (``Ledger.as_dict()``): seconds, bytes (both ways) and depth of every phase."""
    found: dict[str, float] = {}
    for phase in PHASES:
        count = ledger["total"][phase]
        found[f"{phase}_bytes"] = count["sent"] + count["received"]
        found[f"{phase}_depth"] = count["depth"]
        found[f"{phase}_seconds"] = count["seconds"]
    if ledger["nodes"]:  # a node's own time knows the computing between protocols, too
        found["online_seconds"] = sum(node["online"]["seconds"] for node in ledger["nodes"])
    return found


def varied(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings, by dotted names, in which the records differ: choices of groups first."""
    names: dict[str, set[str]] = {}
    for each in records:
        for key, value in each["choices"].items():
            names.setdefault(key, set()).add(str(value))
    found = [key for key, values in names.items() if len(values) > 1]
    groups = tuple(f"{key}." for key in names)
    flat = [flatten(each["config"]) for each in records]
    keys = dict.fromkeys(key for each in flat for key in each if not key.startswith(groups))
    for key in keys:
        if len({str(each.get(key)) for each in flat}) > 1:
            found.append(key)
    inner = dict.fromkeys(key for each in flat for key in each if key.startswith(groups))
    for key in inner:  # a setting within a group that stays the same
        if key.split(".")[0] not in found and len({str(each.get(key)) for each in flat}) > 1:
            found.append(key)
    return found


def setting(each: Mapping[str, Any], name: str) -> str:
    """The value of a name that ``varied`` gives."""
    if name in each["choices"]:
        return str(each["choices"][name])
    return str(flatten(each["config"]).get(name))


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted names."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            found.update(flatten(value, f"{prefix}{key}."))
        else:
            found[f"{prefix}{key}"] = value
    return found


# ---- MLflow, where it is installed (``pip install privml[experiments]``)
def tracks() -> bool:
    return importlib.util.find_spec("mlflow") is not None


def track(records: Sequence[Mapping[str, Any]], uri: str) -> int:
    """Logs each record as a run of the MLflow experiment of its name at ``uri`` (say sqlite:///mlflow.db): settings as
    parameters, numbers as metrics, status, revision and machine as tags. Returns how many."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import mlflow  # an extra, and slow to load
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    for each in records:
        found = client.get_experiment_by_name(each["experiment"])
        experiment = found.experiment_id if found is not None else client.create_experiment(each["experiment"])
        run = client.create_run(experiment, tags=_tags(each)).info.run_id
        parameters = {**flatten(each["config"]), **{f"choice.{key}": value for key, value in each["choices"].items()}}
        client.log_batch(
            run,
            metrics=[mlflow.entities.Metric(key, float(value), 0, 0) for key, value in each["metrics"].items()],
            params=[mlflow.entities.Param(key, str(value)[:LONGEST_PARAMETER]) for key, value in parameters.items()],
        )
        client.set_terminated(run, "FINISHED" if each["status"] == "ok" else "FAILED")
    return len(records)


def _tags(each: Mapping[str, Any]) -> dict[str, str]:
    tags = {"status": each["status"], "reason": each["reason"], "time": each["time"]}
    tags["git.commit"], tags["git.dirty"] = str(each["git"]["commit"]), str(each["git"]["dirty"])
    tags.update({f"machine.{key}": str(value) for key, value in each["machine"].items()})
    tags["mlflow.runName"] = ", ".join(str(value) for value in each["choices"].values())
    return tags


# ---- the zoo: one line per model, engine and network
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
