# SPDX-License-Identifier: Apache-2.0
"""``privml evaluate zoo engine=threepc link=lan``: shipped models under secure inference beside the clear ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.cli import console
from privml.cli.measuring import spec_of, timer_of
from privml.cli.paths import in_checkout, results_path, shipped_models
from privml.errors import ConfigError
from privml.measure import markdown, page
from privml.measure.records import Record, read_all, save
from privml.measure.zoo import Forecast, Settings, evaluate
from privml.program import Program
from privml.service.events import Progress
from privml.spec import SessionSpec

COLUMNS = ["model", "rows", "same labels", "largest error", "sent", "depth", "seconds", "as predicted"]


def run(config: DictConfig) -> None:
    path = results_path(None, "zoo.jsonl") if config.results is None else Path(config.results)
    if config.cards and config.results is None:
        raise ConfigError("cards=true: name the records for the cards, as in results=benchmarks/results/zoo.jsonl")
    if config.measure:
        records = measured(config, path)
        if not config.quiet:
            console.out.print(summary(config, records))
            console.err.print(f"records: {path}", soft_wrap=True)
    publish(config, path)


def measured(config: DictConfig, path: Path) -> list[Record]:
    """Evaluates, saving after each model."""
    zoo, records = shipped_models(), []
    names = chosen(config, zoo.names())
    settings = settings_of(config)
    with console.progress("evaluate", config.quiet) as step:
        forecast = forecast_of(config, settings.spec, step)
        for index, name in enumerate(names):
            step(index, len(names), name)
            try:
                record = evaluate(zoo.load, name, zoo.card_of(name).read_text(), settings, forecast=forecast)
            except zoo.NotInstalled as missing:
                console.err.print(f"{name}: {missing}; left out")
                continue
            if record is None:
                console.err.print(
                    f"{name}: engine={config.engine.name} does not have its numbers or operators; left out"
                )
                continue
            save(record, path)
            records.append(record)
        step(len(names), len(names), "done")
    return records


def forecast_of(config: DictConfig, spec: SessionSpec, progress: Progress) -> Forecast | None:
    """Predicts seconds of queries on this machine, if they are wanted."""
    timer = timer_of(config, progress, estimates=False)
    if timer is None or not spec.backend.remote:
        return None

    def seconds(program: Program, rows: int) -> float | None:
        times = timer(program, program.shapes(rows), spec)
        return None if times is None else times.seconds

    return seconds


def chosen(config: DictConfig, known: list[str]) -> list[str]:
    """All models, or those of model.name=a+b."""
    if config.model.name == "all":
        return known
    names = str(config.model.name).split("+")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ConfigError(f"no model {unknown[0]!r} in the zoo; there are: {', '.join(known)}")
    return names


def settings_of(config: DictConfig) -> Settings:
    spec = spec_of(config)
    if not spec.ot.decided:
        raise ConfigError("ot=auto chooses a provider for a query only; name the provider to evaluate with")
    numerics = config.get("numerics")
    return Settings(
        spec=spec,
        network=config.link.name,
        numerics=None if numerics is None else OmegaConf.to_container(numerics),  # type: ignore[arg-type]
        rows=config.count,
        repeats=config.repeats,
        largest=config.largest,
        patience=config.patience,
    )


def publish(config: DictConfig, path: Path) -> None:
    """Cards, Markdown and the page, of all records that there are."""
    records = read_all(path)
    if not records:
        raise ConfigError(f"{path}: no records yet; evaluate with measure=true")
    if config.cards:
        if not in_checkout():
            raise ConfigError("cards=true fills the cards in models/ of a checkout, and this is an installed package")
        zoo = shipped_models()
        for name in zoo.names():
            markdown.fill_card(zoo.card_of(name), [record for record in records if record.model == name])
    if config.markdown is not None:
        write(Path(config.markdown), markdown.document(records))
    if config.report is not None:
        write(Path(config.report), page.document(records))
        console.out.print(f"{config.report}: {len(records)} evaluation{'' if len(records) == 1 else 's'}")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def summary(config: DictConfig, records: list[Record]) -> Any:
    rows = []
    for record in records:
        answers, errors, cost = record.answers, record.errors, record.cost
        sends = cost is not None and record.engine != "plain"
        rows.append(
            [
                record.model,
                str(record.rows),
                "not run" if answers is None else f"{answers.same} of {answers.rows}",
                "" if errors is None else f"{errors.largest:.3g}",
                console.size(cost.bytes) if sends else "",
                f"{cost.depth:,}" if sends else "",
                "" if record.measured is None else f"{record.measured.seconds:.3f}",
                "" if record.exact is None else "exactly" if record.exact else "no",
            ]
        )
    return console.table(f"engine {config.engine.name}, link {config.link.name}", COLUMNS, rows)
