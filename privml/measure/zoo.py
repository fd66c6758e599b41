# SPDX-License-Identifier: Apache-2.0
"""One model under one engine on one network: compared with the clear model and with its predicted cost."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any

import torch

import privml
from privml.errors import UnsupportedOperator
from privml.measure import answers
from privml.measure.calibration import transfers_of
from privml.measure.launch import Run, launch
from privml.measure.machine import machine, revision
from privml.measure.predict import cost_of
from privml.measure.records import PHASES, Cost, Layer, Phase, Record
from privml.program import Program
from privml.service.events import Progress
from privml.session.ledger import Ledger
from privml.spec import LinkProfile, SessionSpec

Forecast = Callable[[Program, int], float | None]
# Rows that the plain engine answers at once.
CHUNK = 100


@dataclass(frozen=True)
class Settings:
    """``spec``: of the sessions, whose link is called ``network``. ``rows``: of one query, fewer if more than
    ``largest`` bytes would be sent; a query that even then sends more, or whose messages take longer than ``patience``
    seconds, is predicted but not run. ``repeats``: runs of that query, of which the record has the one of median time.
    ``numerics``: for all models in place of their own.
    """

    spec: SessionSpec
    network: str
    numerics: Mapping[str, Any] | None = None
    rows: int = 10
    repeats: int = 1
    largest: float = 1e9
    patience: float = 150.0

    @property
    def link(self) -> LinkProfile:
        return self.spec.simulated or LinkProfile()

    @property
    def measurable(self) -> bool:
        """Whether parties send anything."""
        return self.spec.backend.remote


@dataclass(frozen=True)
class Prepared:
    """A model of the zoo, converted, with the clear and the plain engine's outputs of all its samples, which lie in
    their first dimension."""

    model: Any
    program: Program
    inputs: torch.Tensor
    clear: answers.Outputs
    plain: answers.Outputs
    seconds: float


def evaluate(
    load: Callable[[str], Any],
    name: str,
    card: str,
    settings: Settings,
    progress: Progress | None = None,
    forecast: Forecast | None = None,
) -> Record | None:
    """The record of model ``name``, which ``load`` gives (``models.load``) and ``card`` describes; None where the
    engine does not have the model's numbers or operators. ``forecast``: seconds of a query of so many rows."""
    prepared = prepare(load, name, json.dumps(settings.numerics))
    if not settings.measurable:
        return _record(prepared, card, settings, Query(len(prepared.inputs), prepared.plain))
    if not settings.spec.backend.floats and prepared.program.numerics.floating is not None:
        return None
    try:
        rows, predicted = affordable(prepared.program, settings, min(settings.rows, len(prepared.inputs)))
    except UnsupportedOperator:
        return None
    seconds = forecast(prepared.program, rows) if forecast else None
    waiting = messages_seconds(predicted[1], settings)
    if sent(predicted, PHASES) > settings.largest or waiting > settings.patience:
        record = _record(prepared, card, settings, Query(rows, None, predicted))
    else:
        run = _median_run(prepared, settings, rows, progress)
        found = answers.by_row(run.outputs, prepared.model.rows)
        record = _record(prepared, card, settings, Query(rows, found, predicted, run))
    return replace(record, predicted_seconds=seconds)


@cache
def prepare(load: Callable[[str], Any], name: str, numerics: str) -> Prepared:
    """Done once for all engines and networks; ``numerics`` as JSON, null: the model's own."""
    model = load(name)
    chosen = json.loads(numerics) or dict(model.numerics)
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration), numerics=chosen)
    inputs = model.preprocess(model.samples)
    start = time.perf_counter()
    parts = [answers.by_row(answers.plain_outputs(program, part), model.rows) for part in inputs.split(CHUNK)]
    seconds = time.perf_counter() - start
    plain = tuple(torch.cat(outputs) for outputs in zip(*parts, strict=True))
    clear = answers.by_row(answers.clear_outputs(model.module, inputs), model.rows)
    return Prepared(model, program, inputs, clear, plain, seconds)


def affordable(program: Program, settings: Settings, rows: int) -> tuple[int, list[dict[str, Any]]]:
    """So many rows, halved until they send at most ``largest`` bytes, and the predicted ledgers of all parties."""
    while True:
        ledgers = [ledger.as_dict() for ledger in predictions(program, settings.spec, rows)]
        if rows == 1 or sent(ledgers, PHASES) <= settings.largest:
            return rows, ledgers
        rows //= 2


def predictions(program: Program, spec: SessionSpec, rows: int) -> list[Ledger]:
    """By rank, from the cost functions."""
    return [cost_of(program, program.shapes(rows), spec, rank) for rank in range(spec.backend.parties)]


def messages_seconds(ledger: Mapping[str, Any], settings: Settings) -> float:
    """How long a party's messages alone take on the network."""
    total = ledger["total"]
    return sum(settings.link.seconds(_Count(**{k: total[p][k] for k in ("depth", "sent", "received")})) for p in PHASES)


@dataclass(frozen=True)
class _Count:
    depth: int
    sent: int
    received: int


def sent(ledgers: list[Any], phases: tuple[str, ...]) -> int:
    """Bytes of all parties."""
    return sum(ledger["total"][phase]["sent"] for ledger in ledgers for phase in phases)


def _median_run(prepared: Prepared, settings: Settings, rows: int, progress: Progress | None) -> Run:
    inputs = prepared.inputs[:rows]
    runs = [launch(prepared.program, inputs, settings.spec, progress=progress) for _ in range(settings.repeats)]
    return sorted(runs, key=lambda run: run.client.seconds)[(len(runs) - 1) // 2]


@dataclass(frozen=True)
class Query:
    """A query of so many ``rows``: its outputs if it was answered, the predicted ledgers by rank, and its run."""

    rows: int
    outputs: answers.Outputs | None
    predicted: list[dict[str, Any]] = field(default_factory=list)
    run: Run | None = None


def _record(prepared: Prepared, card: str, settings: Settings, query: Query) -> Record:
    model, program, spec = prepared.model, prepared.program, settings.spec
    predicted, run, found = query.predicted, query.run, query.outputs
    reports = run.reports if run else []
    measured = [report.ledger for report in reports]
    title, task, parameters = heading(card)
    ot = transfers_of(spec)
    return Record(
        model=model.name,
        title=title,
        task=task,
        parameters=parameters,
        learned=model.learned,
        numbers=numbers(program),
        engine=spec.engine.engine,
        ot=ot.tag if ot else "",
        network={"name": settings.network, **asdict(settings.link)},
        rows=query.rows,
        threads=spec.threads,
        answers=None if found is None else answers.compared(found, prepared.clear, model.labels, model.answer),
        errors=None if found is None else answers.errors(program, found, prepared.clear),
        predicted=cost(predicted, 0.0) if predicted else None,
        measured=cost(measured, run.client.seconds) if run else _plain_cost(prepared, settings),
        exact=agree(predicted, measured) if predicted and run else None,
        differing=None if run is None else answers.differing(found, tuple(x[: query.rows] for x in prepared.plain)),
        outputs=0 if found is None else sum(x.numel() for x in found),
        messages_seconds=messages_seconds(predicted[1], settings) if predicted else None,
        layers=layers(measured or predicted),
        peak_memory=tuple(report.peak_rss_bytes for report in reports),
        about=about(),
    )


def _plain_cost(prepared: Prepared, settings: Settings) -> Cost | None:
    return None if settings.measurable else Cost(seconds=prepared.seconds)


def cost(ledgers: list[dict[str, Any]], seconds: float) -> Cost:
    """``ledgers`` by rank; depth and seconds are those of the client, party 1."""
    client = ledgers[1]["total"]
    phases = {p: Phase(sent(ledgers, (p,)), client[p]["depth"], client[p]["seconds"]) for p in PHASES}
    return Cost(**phases, seconds=seconds)


def agree(predicted: list[dict[str, Any]], measured: list[dict[str, Any]]) -> bool:
    """Whether both send and receive the same bytes at the same depth, at every party and in every phase."""
    keys = ("sent", "received", "depth")
    return all(
        first["total"][phase][key] == second["total"][phase][key]
        for first, second in zip(predicted, measured, strict=True)
        for phase in PHASES
        for key in keys
    )


def layers(ledgers: list[dict[str, Any]]) -> tuple[Layer, ...]:
    """In the order of execution, those that send something; the time of all others comes as one more, "local"."""
    found, local = [], 0.0
    others = [{node["name"]: node for node in ledger["nodes"]} for ledger in ledgers]
    for node in ledgers[1]["nodes"] if ledgers else ():
        sides = [other[node["name"]] for other in others if node["name"] in other]
        online, prepared = (sum(side[phase]["sent"] for side in sides) for phase in ("online", "preprocess"))
        seconds, depth = node["online"]["seconds"], node["online"]["depth"]
        if online + prepared:
            found.append(Layer(node["name"], node["operator"], online, prepared, depth, round(seconds, 6)))
        else:
            local += seconds
    return (*found, Layer("local", "", 0, 0, 0, round(local, 6))) if found else ()


def heading(card: str) -> tuple[str, str, int]:
    """Title, task and number of parameters, as the card has them."""
    rows = {
        parts[1].strip(): parts[2].strip()
        for parts in (line.split("|") for line in card.splitlines())
        if len(parts) > 3
    }
    digits = rows.get("Parameters", "").split(" ")[0].replace(",", "")
    return card.splitlines()[0].removeprefix("# "), rows.get("Task", ""), int(digits) if digits.isdigit() else 0


def numbers(program: Program) -> str:
    """What numbers the program computes with, in words."""
    if program.numerics.floating is not None:
        form = program.numerics.floating
        return f"floats of {form.exponent} and {form.mantissa} bits"
    widths = [spec.format.bits for spec in program.weight_specs if len(spec.shape) > 1]
    weights = f", weights of {max(widths)} bits" if widths else ""
    return f"{program.numerics.scale} fractional bits{weights}"


@cache
def about() -> dict[str, Any]:
    """The machine and the time of a measurement."""
    facts = machine()
    return {
        "time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "revision": (revision()["commit"] or "")[:7],
        **{name: facts[name] for name in ("processor", "cores", "python", "torch", "privml")},
    }
