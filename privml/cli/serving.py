# SPDX-License-Identifier: Apache-2.0
"""From settings to what services take beside a specification; and how services end."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.service.events import Stop, json_lines, on_signals
from privml.service.options import Addresses, Capacity, Limits, addresses_of
from privml.spec import SessionSpec


def place_of(config: DictConfig, spec: SessionSpec) -> Addresses:
    """Where the server and its dealer, if any, listen."""
    place = Addresses(config.listen if "listen" in config else config.server, config.dealer)
    return addresses_of(place, spec, config.preprocessing is not None)


def capacity_of(config: DictConfig) -> Capacity:
    """What the service handles at a time."""
    return Capacity(**{each.name: config[each.name] for each in fields(Capacity)})


def limits_of(config: DictConfig) -> Limits:
    """Of a server."""
    own = {each.name: config[each.name] for each in fields(Limits) if each.name in config}
    return Limits(**own, prepare=config.preprocess.ahead, capacity=capacity_of(config))


def logging_of(config: DictConfig) -> dict[str, Any]:
    """``log`` and ``on_event`` as the services take them."""
    if config.log == "json":
        silent: Callable[[str], None] = console.printer(True)
        return {"log": silent, "on_event": json_lines(sys.stdout)}
    return {"log": console.log_lines(config.quiet)}


@contextlib.contextmanager
def until_stopped() -> Iterator[Stop]:
    """Signals end the service inside; the process ends with the code that says how."""
    with on_signals(Stop()) as stop:
        yield stop
    if stop.exit_code:
        sys.stdout.flush()
        os._exit(stop.exit_code)  # a thread may still compute for a session that was cut off
