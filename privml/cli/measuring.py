# SPDX-License-Identifier: Apache-2.0
"""Settings of the verbs that run all parties on this machine, or predict what they do: the session between them, and
``calibrate``, where times come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.engines import engine_of
from privml.cli.settings import link_of, ot_of
from privml.engines.interface import backend
from privml.errors import PrivmlError
from privml.measure import estimate, reference
from privml.measure.calibration import Calibration
from privml.measure.predict import Times
from privml.program import Program
from privml.service.events import Progress
from privml.spec import SessionSpec

# What predicts the seconds of a query on this machine, None if they cannot be predicted.
Timer = Callable[[Program, Sequence[Sequence[int]], SessionSpec], Times | None]

CALIBRATE = {"quick": "quick", "missing": "missing", "all": "all", "none": "none", True: "all", False: "none"}


def spec_of(config: DictConfig, engine: Mapping[str, Any] | None = None) -> SessionSpec:
    """The session of all parties over the link of the ``link`` group. ``engine``: its settings in place of those of
    the ``engine`` group, of which those count that the engine has."""
    if engine is None:
        own = engine_of(config)
        chosen = backend(own.engine)
    else:
        chosen = backend(engine["name"])
        own = chosen.config(
            **{field.name: engine[field.name] for field in fields(chosen.Config) if field.name in engine}
        )
    ot, link = ot_of(config, chosen), link_of(config)
    further = {"deadline": config.deadline} if "deadline" in config else {}
    return SessionSpec(own, ot, threads=config.threads, link=link, simulated=link, **further)


def measures(config: DictConfig) -> bool:
    """Whether calibrate=... may take minutes."""
    return CALIBRATE[config.calibrate] in ("missing", "all")


def timer_of(config: DictConfig, progress: Progress, estimates: bool = True) -> Timer | None:
    """What calibrate=... chooses; None with calibrate=none. ``progress`` gets what is measured. ``estimates``:
    whether a measurement that fails leaves an estimate; else its error is raised."""
    how = CALIBRATE[config.calibrate]
    if how == "none":
        return None
    calibration = Calibration.load(fresh=how == "all")
    if how == "quick":
        return partial(estimate.forecast, calibration=calibration)
    calibration.progress = progress
    return Measuring(calibration) if estimates else partial(reference.forecast, calibration=calibration)


class Measuring:
    """A ``Timer`` that measures what ``calibration`` lacks. After a failure it estimates: what went wrong once may take
    as long again."""

    def __init__(self, calibration: Calibration) -> None:
        self._calibration, self._failed = calibration, False

    def __call__(self, program: Program, shapes: Sequence[Sequence[int]], spec: SessionSpec) -> Times | None:
        if not self._failed:
            try:
                return reference.forecast(program, shapes, spec, self._calibration)
            except (PrivmlError, OSError) as error:
                self._failed = True
                why = f"{type(error).__name__}: {error}"
                console.err.print(
                    f"not measured, times are estimated from here on (as with calibrate=quick): {why}", soft_wrap=True
                )
        return estimate.forecast(program, shapes, spec, self._calibration)
