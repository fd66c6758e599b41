# SPDX-License-Identifier: Apache-2.0
"""``privml serve program=lenet/program weights=lenet/weights.safetensors listen=127.0.0.1:9000``"""

from __future__ import annotations

import contextlib

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.clusters import check_cluster, run_cluster
from privml.cli.engines import spec_of
from privml.cli.paths import load_program
from privml.cli.serving import limits_of, logging_of, place_of, until_stopped
from privml.cli.stores import preprocessing_of, refuse_without_store
from privml.memory import keep_freed_memory
from privml.program import WEIGHTS_OWNER
from privml.service.options import Hooks
from privml.service.server import serve


def run(config: DictConfig) -> None:
    keep_freed_memory()
    limits, logging, spec = limits_of(config), logging_of(config), spec_of(config)
    listen = place_of(config, spec)
    check_cluster(config)
    refuse_without_store(config)
    program = load_program(config.program, config.weights)
    if config.cluster is not None:
        run_cluster(config, program)
        return
    preprocessing = preprocessing_of(config, WEIGHTS_OWNER, program)
    one_bar = limits.capacity.workers == 1 and config.log == "text" and console.err.is_terminal
    with (
        until_stopped() as stop,
        preprocessing or contextlib.nullcontext(),
        console.progress("answer", config.quiet or not one_bar, "waiting for a client") as step,
    ):
        serve(
            program,
            listen,
            spec,
            preprocessing=preprocessing,
            limits=limits,
            hooks=Hooks(progress=step, monitor=config.monitor, stop=stop, **logging),
        )
