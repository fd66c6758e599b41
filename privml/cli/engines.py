# SPDX-License-Identifier: Apache-2.0
"""Which engine a service's party runs, out of ``engine`` and ``dealer``; contradictions end here."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig

from privml.engines.active.backend import RINGS
from privml.engines.threepc.device import DEVICES
from privml.engines.threepc.engine import TRUNCATIONS
from privml.errors import ConfigError

# engine -> whether a dealer is the third party (None: as ``dealer`` says).
_DEALT = {"auto": None, "twopc": False, "active": False, "threepc": True}


def parties_of(config: DictConfig) -> dict[str, Any]:
    """``dealer``, ``truncation``, ``device`` and ``ring`` as ``serve`` and ``query`` take them. ConfigError, which
    names the settings, where they contradict each other."""
    name, dealer = config.engine.name, config.dealer
    if name not in _DEALT:
        raise ConfigError(f"engine={name} has no parties that serve or query: choose from {', '.join(_DEALT)}")
    dealt = dealer is not None if _DEALT[name] is None else _DEALT[name]
    if dealt and dealer is None:
        raise ConfigError(f"engine={name} has a third party: name the address of its `privml deal` as dealer=host:port")
    if dealer is not None and not dealt:
        raise ConfigError(f"engine={name} has no dealer: leave out dealer={dealer}, or choose engine=threepc")
    return {"dealer": dealer, **choices_of(config, dealt), "ring": ring_of(config)}


def dealer_of(config: DictConfig) -> dict[str, Any]:
    """``truncation`` and ``device`` as ``deal`` takes them. ConfigError for an engine without a dealer."""
    if config.engine.name != "threepc":
        raise ConfigError(f"engine={config.engine.name} has no dealer: a dealer runs engine=threepc")
    return choices_of(config, True)


def choices_of(config: DictConfig, dealt: bool) -> dict[str, str]:
    """``truncation`` and ``device`` of the engine. ConfigError for those that there are not, and for those that two
    parties, semi-honest, have no use for."""
    truncation, device = config.engine.get("truncation", "auto"), config.engine.get("device", "cpu")
    for name, value, known in (("truncation", truncation, TRUNCATIONS), ("device", device, DEVICES)):
        if value not in known:
            raise ConfigError(f"engine.{name}={value} must be one of {', '.join(known)}")
    if not dealt:
        for name, value, neutral in (("truncation", truncation, "auto"), ("device", device, "cpu")):
            if value != neutral and config.engine.name != "active":
                raise ConfigError(f"engine.{name}={value} is about three parties: name the third as dealer=host:port")
    return {"truncation": truncation, "device": device}


def ring_of(config: DictConfig) -> int | None:
    """The ring of engine=active; None for other engines."""
    if config.engine.name != "active":
        return None
    if config.engine.ring not in RINGS:
        raise ConfigError(f"engine.ring={config.engine.ring} must be one of {', '.join(map(str, RINGS))}")
    return config.engine.ring


def preprocessing_engine_of(config: DictConfig) -> dict[str, Any]:
    """``ring`` and ``truncation`` as ``preprocess`` takes them. ConfigError for engines whose correlations are not made
    ahead of queries."""
    if config.engine.name not in ("twopc", "active"):
        raise ConfigError(f"engine={config.engine.name} needs no correlations beforehand: choose twopc or active")
    return {"ring": ring_of(config), "truncation": choices_of(config, False)["truncation"]}
