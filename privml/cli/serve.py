# SPDX-License-Identifier: Apache-2.0
"""``privml serve program=lenet/program weights=lenet/weights.safetensors listen=127.0.0.1:9000``"""

from __future__ import annotations

import contextlib

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.clusters import check_cluster, run_cluster
from privml.cli.engines import parties_of
from privml.cli.serving import capacity_of, logging_of, until_stopped
from privml.cli.settings import identity_of, ot_of
from privml.cli.stores import preprocessing_of, refuse_without_store
from privml.program import WEIGHTS_OWNER, Program
from privml.service.answering import Limits
from privml.service.serve import serve
from privml.spec import LinkProfile


def run(config: DictConfig) -> None:
    capacity, logging, parties = capacity_of(config), logging_of(config), parties_of(config)
    check_cluster(config)
    refuse_without_store(config)
    program = Program.load(config.program, config.weights)
    if config.cluster is not None:
        run_cluster(config, program)
        return
    preprocessing = preprocessing_of(config, WEIGHTS_OWNER, program)
    one_bar = capacity.workers == 1 and config.log == "text" and console.err.is_terminal
    with (
        until_stopped() as stop,
        preprocessing or contextlib.nullcontext(),
        console.progress("answer", config.quiet or not one_bar) as step,
    ):
        serve(
            program,
            config.listen,
            ot=ot_of(config),
            deadline=config.deadline,
            threads=config.threads,
            queries=config.queries,
            limits=Limits(config.session_queries, config.idle),
            progress=step,
            preprocessing=preprocessing,
            **parties,
            **identity_of(config),
            link_profile=LinkProfile(config.link.delay_ms, config.link.bandwidth_mbps),
            aborts=config.aborts,
            capacity=capacity,
            monitor=config.monitor,
            stop=stop,
            **logging,
        )
