# SPDX-License-Identifier: Apache-2.0
"""``privml deal program=lenet/program listen=127.0.0.1:9002``"""

from __future__ import annotations

from omegaconf import DictConfig

from privml.cli.engines import spec_of
from privml.cli.paths import load_program
from privml.cli.serving import capacity_of, logging_of, until_stopped
from privml.memory import keep_freed_memory
from privml.service.dealer import deal, refuse_without_dealer
from privml.service.options import Hooks


def run(config: DictConfig) -> None:
    keep_freed_memory()
    capacity, logging, spec = capacity_of(config), logging_of(config), spec_of(config, dealt=True)
    refuse_without_dealer(spec)
    program = load_program(config.program)
    with until_stopped() as stop:
        deal(
            program,
            config.listen,
            spec,
            sessions=config.sessions,
            capacity=capacity,
            hooks=Hooks(stop=stop, **logging),
        )
