# SPDX-License-Identifier: Apache-2.0
"""``privml preprocess program=lenet/program count=100 listen=127.0.0.1:9000 store=store`` and, at the other party,
``privml preprocess program=lenet/program count=100 server=127.0.0.1:9000 store=store``."""

from __future__ import annotations

from dataclasses import replace

from omegaconf import DictConfig
from rich.table import Table

from privml.cli import console
from privml.cli.engines import backend_of, spec_of
from privml.cli.paths import load_program
from privml.cli.query import Waiting
from privml.errors import ConfigError
from privml.service.preprocess import Made, Order, preprocess, refuse_without_stores
from privml.store.key import default_key_file


def run(config: DictConfig) -> None:
    spec = spec_of(config)
    if config.server is not None:
        spec = replace(spec, on_wait=Waiting(config.server, config.quiet))
    refuse_without_stores(spec)
    refuse_contradictions(config)
    key_file = config.store_key or default_key_file()
    program = load_program(config.program, config.weights if config.listen is not None else None)
    order = Order(program, config.store, config.count, config.batch, spec, key_file)

    def on_listening(port: int) -> None:
        if not config.quiet:
            print(f"listening on port {port}, program {program.hash[:12]}", flush=True)

    with console.progress("preprocess", config.quiet, "agreeing on keys") as step:
        made = preprocess(
            order,
            listen=config.listen,
            server=config.server,
            dealer=config.dealer,
            on_listening=on_listening,
            progress=step,
        )
    if not config.quiet:
        if made.layers:
            console.out.print(layers(made))
        console.out.print(report(made))
        if made.short:
            console.err.print(f"{made.header.queries} of {config.count} queries: {made.short}", markup=False)
        console.out.print(f"sealed with the key {key_file}; use it as preprocessing={config.store}", soft_wrap=True)


def refuse_contradictions(config: DictConfig) -> None:
    """ConfigError for weights that nothing is prepared with, and for products without weights."""
    dealt, linear = backend_of(config).dealt, config.engine.get("linear")
    if dealt and config.dealer is None:
        raise ConfigError(f"engine={config.engine.name} has a dealer: give its address, dealer=host:port")
    if config.dealer is not None and not dealt:
        raise ConfigError(f"dealer={config.dealer}: engine={config.engine.name} has no dealer; choose engine=threepc")
    if config.weights is not None and config.listen is None:
        raise ConfigError(f"weights={config.weights}: the listening party has the weights; leave them out here")
    if config.weights is not None and linear in (None, "ot") and not dealt:
        raise ConfigError(
            f"weights={config.weights}: nothing is prepared with weights unless engine.linear is auto or lattice"
        )
    if linear == "lattice" and config.listen is not None and config.weights is None:
        raise ConfigError("engine.linear=lattice prepares products with the weights: name their file as weights=FILE")


def layers(made: Made) -> Table:
    """What was prepared for each layer, as this party sees it, and per query."""
    queries, rows = made.header.queries, []
    for record in made.layers:
        cost = record.cost.total
        each = [console.size(round(size / queries)) for size in (cost.sent, cost.received)]
        rows.append([record.name, *each, f"{cost.seconds / queries:.4f}"])
    return console.table("Prepared products, per query", ["layer", "sent", "received", "seconds"], rows)


def report(made: Made) -> str:
    header, preprocess = made.header, made.cost.preprocess
    sent, received = console.size(preprocess.sent), console.size(preprocess.received)
    store = f"store {header.store[:8]} in {made.folder}: {header.queries} queries of {header.batch} input(s), "
    if header.dealt:
        what = f"{sent} sent, {received} received" + (", shares of the weights included" if header.weights else "")
        return f"{store}{console.size(made.bytes)} on the disk; dealt ahead, {what}, {made.seconds:.1f} s"
    return (
        f"{store}"
        f"{sum(header.per_query):,} correlations each, {console.size(made.bytes)} on the disk; "
        f"made by {made.ot}, {sent} sent, {received} received, {made.seconds:.1f} s"
    )
