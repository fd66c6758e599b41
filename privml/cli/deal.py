# SPDX-License-Identifier: Apache-2.0
"""``privml deal program=lenet/program listen=127.0.0.1:9002``"""

from __future__ import annotations

from omegaconf import DictConfig

from privml.cli.engines import dealer_of
from privml.cli.serving import capacity_of, logging_of, until_stopped
from privml.cli.settings import identity_of
from privml.program import Program
from privml.service.deal import deal


def run(config: DictConfig) -> None:
    capacity, logging, engine = capacity_of(config), logging_of(config), dealer_of(config)
    program = Program.load(config.program)
    with until_stopped() as stop:
        deal(
            program,
            config.listen,
            **engine,
            **identity_of(config),
            deadline=config.deadline,
            sessions=config.sessions,
            capacity=capacity,
            stop=stop,
            **logging,
        )
