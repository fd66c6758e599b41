# SPDX-License-Identifier: Apache-2.0
"""``privml preprocess program=lenet/program count=100 listen=127.0.0.1:9000 store=store`` and, at the other party,
``privml preprocess program=lenet/program count=100 server=127.0.0.1:9000 store=store``."""

from __future__ import annotations

from dataclasses import replace

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.engines import spec_of
from privml.cli.paths import load_program
from privml.cli.query import Waiting
from privml.service.preprocess import Made, Order, preprocess, refuse_without_stores
from privml.store.key import default_key_file


def run(config: DictConfig) -> None:
    spec = spec_of(config)
    if config.server is not None:
        spec = replace(spec, on_wait=Waiting(config.server, config.quiet))
    refuse_without_stores(spec)
    key_file = config.store_key or default_key_file()
    program = load_program(config.program)
    order = Order(program, config.store, config.count, config.batch, spec, key_file)

    def on_listening(port: int) -> None:
        if not config.quiet:
            print(f"listening on port {port}, program {program.hash[:12]}", flush=True)

    with console.progress("preprocess", config.quiet, "agreeing on keys") as step:
        made = preprocess(
            order,
            listen=config.listen,
            server=config.server,
            on_listening=on_listening,
            progress=step,
        )
    if not config.quiet:
        console.out.print(report(made))
        console.out.print(f"sealed with the key {key_file}; use it as preprocessing={config.store}", soft_wrap=True)


def report(made: Made) -> str:
    header, preprocess = made.header, made.cost.preprocess
    sent, received = console.size(preprocess.sent), console.size(preprocess.received)
    return (
        f"store {header.store[:8]} in {made.folder}: {header.queries} queries of {header.batch} input(s), "
        f"{sum(header.per_query):,} correlations each, {console.size(made.bytes)} on the disk; "
        f"made by {made.ot}, {sent} sent, {received} received, {made.seconds:.1f} s"
    )
