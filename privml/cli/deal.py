# SPDX-License-Identifier: Apache-2.0
"""``privml deal program=lenet/program listen=127.0.0.1:9002``"""

from __future__ import annotations

from omegaconf import DictConfig

from privml.program import Program
from privml.service.deal import deal


def run(config: DictConfig) -> None:
    def log(text: str) -> None:
        if not config.quiet:
            print(text, flush=True)

    deal(
        Program.load(config.program),
        config.listen,
        truncation=config.truncation,
        device=config.device,
        deadline=config.deadline,
        sessions=config.sessions,
        log=log,
    )
