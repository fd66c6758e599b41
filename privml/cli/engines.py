# SPDX-License-Identifier: Apache-2.0
"""The engine that a verb's settings choose; contradictions end here."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from privml.cli.fields import WrongCall, typed
from privml.cli.settings import identity_of, link_of, ot_of
from privml.engines.interface import Backend, backend, backends
from privml.errors import ConfigError, PrivmlError
from privml.spec import Identity, SessionSpec
from privml.store.files import header_path, unpack_header

# Chooses between two and three parties by ``dealer``; what two have no use for is allowed if it is the default.
AUTO = "auto"


def backend_of(config: DictConfig, dealt: bool | None = None) -> Backend:
    """The engine of ``engine=NAME``. engine=auto: the first one between processes with a dealer, or without one; None:
    as the setting ``dealer`` or the store says."""
    if config.engine.name != AUTO:
        return backend(config.engine.name)
    if dealt is None:
        dealt = config.get("dealer") is not None or _dealt_ahead(config.get("preprocessing"))
    return next(each for each in backends() if each.remote and each.dealt == dealt)


def _dealt_ahead(folder: str | None) -> bool:
    """Whether the store in ``folder`` is of an engine with a dealer, as it says itself; its user checks that."""
    if folder is None:
        return False
    try:
        header, _ = unpack_header(header_path(Path(folder)).read_bytes())
        return backend(header.engine).dealt
    except (OSError, PrivmlError):  # it is reported when the store is opened
        return False


def engine_of(config: DictConfig, dealt: bool | None = None) -> Any:
    """The engine's own settings, its ``Config``. ConfigError, which names the setting, for what it does not have."""
    chosen, automatic = backend_of(config, dealt), config.engine.name == AUTO
    known = [field.name for field in fields(chosen.Config)]
    either = (
        [field for dealt in (True, False) for field in fields(backend_of(config, dealt).Config)] if automatic else []
    )
    unused = {field.name: field.default for field in either}
    given = {name: value for name, value in config.engine.items() if name != "name"}
    for name, value in list(given.items()):
        if name in known:
            continue
        if name not in unused or value != unused[name]:
            hint = " with a dealer" if chosen.dealt else " without a dealer: name the third party as dealer=host:port"
            hint = hint if automatic else ""
            raise ConfigError(f"engine.{name}={value} is no setting of engine={config.engine.name}{hint}")
        del given[name]
    try:
        return chosen.config(**typed(chosen.Config, given, "engine."))
    except ConfigError as error:
        wrong = next((name for name in given if str(error).startswith(name)), None)
        raise WrongCall(f"engine.{wrong}={given[wrong]}: {error}" if wrong else str(error)) from None


def spec_of(config: DictConfig, dealt: bool | None = None) -> SessionSpec:
    """How this party's sessions run; ``dealt``: see ``backend_of``. ConfigError, which names the settings, if they
    contradict each other."""
    chosen = backend_of(config, dealt)
    if not chosen.remote:
        choices = [AUTO, *(each.name for each in backends() if each.remote)]
        raise ConfigError(f"engine={config.engine.name} cannot run between processes: choose from {', '.join(choices)}")
    own: dict[str, Any] = {"identity": Identity(**identity_of(config)), "deadline": config.deadline}
    if "threads" in config:
        own["threads"] = config.threads
    if "link" in config:
        own["link"] = link_of(config)
    if "ot" in config:
        own["ot"] = ot_of(config, chosen)
    return SessionSpec(engine_of(config, dealt), **own)
