# SPDX-License-Identifier: Apache-2.0
"""From settings to what ``serve``, ``query``, ``deal`` and ``preprocess`` take; and how services end."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.settings import identity_of, ot_of
from privml.engines.interface import DEFAULT, Backend, backend, backends
from privml.errors import ConfigError
from privml.service.logs import FORMATS, json_lines
from privml.service.options import Addresses, Capacity, Limits, addresses_of
from privml.service.stopping import Stop, on_signals
from privml.spec import Identity, LinkProfile, SessionSpec

# Of ``engine``, in place of a name: three parties if there is a dealer, otherwise two.
AUTO = "auto"


def spec_of(config: DictConfig) -> SessionSpec:
    """How this party's sessions run. ConfigError for settings that contradict each other."""
    chosen = _backend_of(config)
    given = {name: value for name, value in config.engine.items() if name not in ("name", "parties")}
    known = {each.name for each in fields(chosen.Config)}
    if config.engine.name == AUTO and not chosen.dealt:
        for name, value in given.items():
            neutral = {each.name: each.default for each in fields(_dealt().Config)}
            if name not in known and value != neutral[name]:
                raise ConfigError(f"engine.{name}={value} is about three parties: name the third as dealer=host:port")
        given = {name: value for name, value in given.items() if name in known}
    own = {}
    if "threads" in config:
        own["threads"] = config.threads
    if "link" in config:
        own["link"] = LinkProfile(config.link.delay_ms, config.link.bandwidth_mbps)
    if "ot" in config:
        ot = ot_of(config)
        own["ot"] = ot if chosen.security is None else replace(ot, security=chosen.security)
    identity = Identity(**identity_of(config))
    return SessionSpec(_engine_of(chosen, given), deadline=config.deadline, identity=identity, **own)


def _engine_of(chosen: Backend, given: dict[str, Any]) -> Any:
    try:
        return chosen.config(**given)
    except ConfigError as error:
        prefix = "engine." if str(error).startswith(tuple(given)) else ""
        raise ConfigError(f"{prefix}{error}") from None


def _backend_of(config: DictConfig) -> Backend:
    name = config.engine.name
    if name == AUTO:
        return backend(DEFAULT) if config.get("dealer") is None else _dealt()
    chosen = backend(name)
    if not chosen.remote:
        remote = [AUTO, *(each.name for each in backends() if each.remote)]
        raise ConfigError(f"engine={name} has no parties that serve or query: choose from {', '.join(remote)}")
    return chosen


def _dealt() -> Backend:
    return next(each for each in backends() if each.dealt)


def place_of(config: DictConfig, spec: SessionSpec) -> Addresses:
    """Where the server and its dealer, if any, listen."""
    return addresses_of(Addresses(config.listen if "listen" in config else config.server, config.dealer), spec)


def capacity_of(config: DictConfig) -> Capacity:
    """What the service handles at a time."""
    return Capacity(**{each.name: config[each.name] for each in fields(Capacity)})


def limits_of(config: DictConfig) -> Limits:
    """Of a server."""
    return Limits(
        config.queries, config.session_queries, config.idle, capacity=capacity_of(config), aborts=config.aborts
    )


def logging_of(config: DictConfig) -> dict[str, Any]:
    """``log`` and ``on_event`` as the services take them. ConfigError for a form of log that there is not."""
    if config.log not in FORMATS:
        raise ConfigError(f"log={config.log}: choose from {', '.join(FORMATS)}")
    if config.log == "json":
        silent: Callable[[str], None] = console.teller(True)
        return {"log": silent, "on_event": json_lines(sys.stdout)}
    return {"log": console.teller(config.quiet)}


@contextlib.contextmanager
def until_stopped() -> Iterator[Stop]:
    """Signals end the service inside; the process ends with the code that says how."""
    with on_signals(Stop()) as stop:
        yield stop
    if stop.exit_code:
        sys.stdout.flush()
        os._exit(stop.exit_code)  # a thread may still compute for a session that was cut off
