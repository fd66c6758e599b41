# SPDX-License-Identifier: Apache-2.0
"""``privml cost model=lenet network=wan``: one query's cost, predicted by the protocols' own cost functions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.ledgers import DEALT, correlation_line, layer_table, phase_table
from privml.cli.settings import ot_of, ring_of
from privml.cli.sources import program_of
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.program import Program
from privml.service.choose_ot import LinkProfile, forecasts
from privml.session.ledger import Ledger


def run(config: DictConfig) -> None:
    if config.engine.name not in ("twopc", "threepc", "active"):
        raise ConfigError(
            f"engine={config.engine.name} sends nothing; costs are predicted for engine=twopc, threepc and active"
        )
    program = Program.load(config.program) if config.program is not None else program_of(config)[0]
    if config.engine.name == "threepc":
        truncation = config.engine.get("truncation", "auto")
        ledger = program.dealt_cost(*program.shapes(config.batch), truncation=truncation)
        how, drawn = "three parties", DEALT
    elif config.engine.name == "active":
        ring, truncation = ring_of(config), config.engine.truncation
        shapes, ot = program.shapes(config.batch), replace(ot_of(config), security="malicious")
        ledger = program.active_cost(*shapes, ot=ot, ring=ring, truncation=truncation)
        demand = program.demand(*shapes, ring=ring, truncation=truncation)
        how, drawn = f"actively secure, ring of {ring} bits", f"made ahead by {ot}; {kinds(demand)}"
    else:
        ot = ot_of(config)
        if not ot.decided:
            ot = chosen(config, program, ot.security)
        ledger = program.cost(*program.shapes(config.batch), ot=ot, threads=config.threads)
        how, drawn = str(ot) + (f", {config.threads} threads" if config.threads > 1 else ""), f"made ahead by {ot}"
    numbers = ledger.as_dict()
    title = f"Predicted cost by layer: batch of {config.batch}, {how}"
    console.out.print(layer_table(title, numbers, timed=False, calibrated=program.calibrated_layers))
    console.out.print(phase_table("Totals of the client", numbers, timed=False))
    console.out.print(correlation_line(numbers, drawn))
    console.out.print(forecast(config, ledger))


def kinds(demand: dict[str, Any]) -> str:
    """What a run draws, in words."""
    counts = {name: count for name, count in demand.items() if isinstance(count, int)}
    counts["input masks"] = sum(demand["masks"])
    counts |= {f"numbers of {width} shared bits": count for width, count in demand["edabits"].items()}
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def chosen(config: DictConfig, program: Program, security: str) -> OtChoice:
    """The choice of ot=auto, after a table of all."""
    link = LinkProfile(config.network.delay_ms, config.network.bandwidth_mbps)
    ranked = forecasts(program, program.shapes(config.batch), security, link, config.threads)
    rows = [[str(each.ot), f"{each.link:.3f}", f"{each.compute:.3f}", f"{each.seconds:.3f}"] for each in ranked]
    title = f"ot=auto at {link}: seconds predicted for a query, set-up included"
    console.out.print(console.table(title, ["correlations", "messages", "making them", "together"], rows))
    return ranked[0].ot


def forecast(config: DictConfig, ledger: Ledger) -> str:
    """Time that the messages alone take; computing comes on top."""
    network, total = config.network, ledger.snapshot().total
    seconds = total.depth * network.delay_ms / 1000
    if network.bandwidth_mbps:
        seconds += max(total.sent, total.received) * 8 / (network.bandwidth_mbps * 1e6)
    if seconds == 0:
        return f"network={network.name}: messages take no time; choose network=lan or network=wan for a forecast"
    return f"network={network.name}: at least {seconds:.2f} s for messages, set-up included"
