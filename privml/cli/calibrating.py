# SPDX-License-Identifier: Apache-2.0
"""The setting ``calibrate``: whether times are measured on this machine."""

from __future__ import annotations

from omegaconf import DictConfig

from privml.cli import console
from privml.errors import ConfigError
from privml.measure.calibration import Calibration

CALIBRATE = {"missing": "missing", "all": "all", "none": "none", True: "all", False: "none"}


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
