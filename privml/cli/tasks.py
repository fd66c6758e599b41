# SPDX-License-Identifier: Apache-2.0
"""What the measurements of all suites are told alike."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.cli.settings import ot_of
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError


def common(config: DictConfig, name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The part of a task that every row of every suite has; ``n``: batch, else n of the command, else the row's."""
    return {
        "suite": config.suite.name,
        "op": name,
        "operator": row["operator"],
        "n": int(config.batch or config.n or row["n"]),
        "params": row["params"],
        "network": OmegaConf.to_container(config.link),
        "repeats": config.repeats,
    }


def transfers(config: DictConfig) -> OtChoice:
    """The oblivious transfers to measure with; ConfigError where only a query could choose."""
    ot = ot_of(config)
    if not ot.decided:
        raise ConfigError("ot=auto chooses for a query; name the provider to measure")
    return ot
