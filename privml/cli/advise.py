# SPDX-License-Identifier: Apache-2.0
"""``privml advise model=lenet link=wan threat=semi_honest``: ranked engines, number formats and transfers."""

from __future__ import annotations

from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from privml.cli import console
from privml.cli.arrays import read_array
from privml.cli.measuring import timer_of
from privml.cli.settings import link_of
from privml.cli.sources import Source, source_of
from privml.errors import ConfigError
from privml.measure.advise import Advice, Choice, Hooks, Subject, Wish, advise
from privml.measure.answers import clear_outputs
from privml.measure.calibration import transfers_of
from privml.spec import LinkProfile

COLUMNS = ["", "engine", "numerics", "transfers", "seconds", "ahead", "online", "depth", "error beside clear", "risk"]


def run(config: DictConfig) -> None:
    source = source_of(config)
    link = link_of(config)
    wish = Wish(config.threat, config.parties, link, config.batch, config.threads, config.truncation)
    formats: dict[str, Any] = OmegaConf.to_container(config.formats, resolve=True)  # type: ignore[assignment]
    if not formats.get("mixed", {}).get("layers"):
        formats.pop("mixed", None)
    report = console.printer(config.quiet)
    with console.progress("advise", config.quiet) as step:
        hooks = Hooks(step, lambda choice: report(" | ".join(each for each in row(choice) if each)))
        advice = advise(subject_of(config, source), wish, formats, timer_of(config, step), hooks)
    if "mixed" not in formats:
        advice.refused.append(("any engine", "mixed", "it needs formats.mixed.layers={pattern: format}"))
    show(config, advice, link)


def subject_of(config: DictConfig, source: Source) -> Subject:
    samples = source.samples if config.input is None else read_array(config.input).to(torch.float32)
    samples = None if samples is None else samples[: config.count]
    expected = None
    if samples is not None:
        try:
            expected = clear_outputs(source.model, samples.to(torch.float32))[0]
        except ConfigError as error:  # an ONNX file, and nothing to run it with
            console.err.print(f"accuracy is not measured: {error}", markup=False)
    return Subject(source.model, source.calibration, samples, expected, source.read)


def show(config: DictConfig, advice: Advice, link: LinkProfile) -> None:
    shown = advice.choices if config.transfers == "all" else advice.best()
    rows = [[str(index + 1), *row(choice)] for index, choice in enumerate(shown)]
    if rows:
        title = f"For {link}, {config.threat} parties, batch of {config.batch}: the best choice first"
        console.out.print(console.table(title, COLUMNS, rows))
    else:
        console.out.print("nothing fits")
    if config.calibrate != "none" and any(choice.times is not None and choice.times.estimated for choice in shown):
        console.out.print(
            "seconds: from figures of a reference machine, scaled to this one; calibrate=missing measures (minutes)"
        )
    if any(choice.times is None for choice in advice.choices):
        console.out.print("no times without figures or measurements (calibrate=quick or missing); ranked by bytes")
    for engine, backend in {choice.engine: choice.backend for choice in advice.choices}.items():
        console.out.print(f"{engine} assumes: {backend.assumes}", markup=False, soft_wrap=True)
    for engine, numerics, why in advice.refused:
        console.out.print(f"not {engine} with numerics {numerics}: {why}", markup=False, soft_wrap=True)


def row(choice: Choice) -> list[str]:
    setup, ahead, online = choice.cost.setup, choice.cost.preprocess, choice.cost.online
    how = "measured" if choice.risk.measured else "calibration data"
    return [
        choice.engine,
        choice.numerics,
        str(transfers_of(choice.spec) or ""),
        "" if choice.times is None else f"{choice.seconds:.3f}",
        console.size(setup.bytes + ahead.bytes),
        console.size(online.bytes),
        str(setup.depth + ahead.depth + online.depth),
        f"{choice.risk} ({how})",
        "high" if choice.risk.high else "low",
    ]
