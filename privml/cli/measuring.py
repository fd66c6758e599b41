# SPDX-License-Identifier: Apache-2.0
"""Settings of the verbs that run all parties on this machine, or predict what they do: the session between them, and
``calibrate``, whether times are measured here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.engines import engine_of
from privml.cli.settings import link_of, ot_of
from privml.engines.interface import backend
from privml.errors import ConfigError
from privml.measure.calibration import Calibration
from privml.spec import SessionSpec

CALIBRATE = {"missing": "missing", "all": "all", "none": "none", True: "all", False: "none"}


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


def calibration_of(config: DictConfig) -> Calibration | None:
    """What is known of this machine, to be completed; None with calibrate=none."""
    if config.calibrate not in CALIBRATE:
        raise ConfigError(f"calibrate={config.calibrate}: choose missing, all or none")
    how = CALIBRATE[config.calibrate]
    if how == "none":
        return None
    made = Calibration.load(fresh=how == "all")
    made.on_measure = lambda count: announce(config, count)
    return made


def announce(config: DictConfig, count: int) -> None:
    if not config.quiet:
        console.err.print(f"measuring {count} calls on this machine, once (calibrate=none: no times)")
