# SPDX-License-Identifier: Apache-2.0
"""Settings that ``serve`` and ``deal`` have in common, and their end."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.errors import ConfigError
from privml.service.dispatcher import Capacity
from privml.service.logs import FORMATS, json_lines
from privml.service.stopping import Stop, on_signals


def capacity_of(config: DictConfig) -> Capacity:
    """What the service takes on."""
    return Capacity(**{each.name: config[each.name] for each in fields(Capacity)})


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
