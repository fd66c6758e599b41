# SPDX-License-Identifier: Apache-2.0
"""From a verb's settings to the store that its sessions draw from."""

from __future__ import annotations

from omegaconf import DictConfig

from privml.cli import console
from privml.errors import ConfigError
from privml.program import Program
from privml.session.preprocessing import StoreHalf


def preprocessing_of(config: DictConfig, rank: int, program: Program) -> StoreHalf | None:
    """The store of ``preprocessing=``, or None; prints what opening it had to repair."""
    if config.preprocessing is None:
        return None
    made = StoreHalf(config.preprocessing, rank, program.hash, config.store_key, config.when_empty)
    for note in made.store.notes:
        console.err.print(f"{config.preprocessing}: {note}", markup=False)
    return made


def refuse_without_store(config: DictConfig) -> None:
    """ConfigError for settings of a store that is not named."""
    if config.preprocessing is not None:
        return
    for name, neutral in (("when_empty", "refuse"), ("store_key", None)):
        if config[name] != neutral:
            raise ConfigError(f"{name}={config[name]} applies to stores only: name the folder as preprocessing=...")
