# SPDX-License-Identifier: Apache-2.0
"""``privml cost model=lenet network=wan``: one query's cost, predicted by the protocols' own cost functions, and its
time on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.ledgers import DEALT, correlation_line, layer_table, phase_table
from privml.cli.settings import ot_of, ring_of
from privml.cli.sources import program_of
from privml.engines.correlations import DEFAULT_OT, OtChoice
from privml.errors import ConfigError
from privml.planning.calibration import Calibration
from privml.planning.reference import calibrate
from privml.planning.times import Times, calls_of, setting_of, times_of
from privml.program import Program
from privml.service.choose_ot import LinkProfile, forecasts
from privml.session.ledger import Ledger

# What calibrate= may be.
CALIBRATE = {"missing": "missing", "all": "all", "none": "none", True: "all", False: "none"}


def run(config: DictConfig) -> None:
    if config.engine.name not in ("twopc", "threepc", "active"):
        raise ConfigError(
            f"engine={config.engine.name} sends nothing; costs are predicted for engine=twopc, threepc and active"
        )
    if config.calibrate not in CALIBRATE:
        raise ConfigError(f"calibrate={config.calibrate}: choose missing, all or none")
    program = Program.load(config.program) if config.program is not None else program_of(config)[0]
    ot, truncation = DEFAULT_OT, config.engine.get("truncation", "auto")
    if config.engine.name == "threepc":
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
    times = predicted(config, program, ot, truncation)
    if times is not None:
        fill(numbers, times)
    timed = times is not None
    title = f"Predicted cost by layer: batch of {config.batch}, {how}"
    console.out.print(layer_table(title, numbers, timed=timed, calibrated=program.calibrated_layers))
    console.out.print(phase_table("Totals of the client", numbers, timed=timed))
    console.out.print(correlation_line(numbers, drawn))
    console.out.print(forecast(config, ledger) if times is None else summary(config, times))


def kinds(demand: dict[str, Any]) -> str:
    """What a run draws, in words."""
    counts = {name: count for name, count in demand.items() if isinstance(count, int)}
    counts["input masks"] = sum(demand["masks"])
    counts |= {f"numbers of {width} shared bits": count for width, count in demand["edabits"].items()}
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def chosen(config: DictConfig, program: Program, security: str) -> OtChoice:
    """The choice of ot=auto, after a table of all."""
    ranked = forecasts(program, program.shapes(config.batch), security, link_of(config), config.threads)
    rows = [[str(each.ot), f"{each.link:.3f}", f"{each.compute:.3f}", f"{each.seconds:.3f}"] for each in ranked]
    title = f"ot=auto at {link_of(config)}: seconds predicted for a query, set-up included"
    console.out.print(console.table(title, ["correlations", "messages", "making them", "together"], rows))
    return ranked[0].ot


def link_of(config: DictConfig) -> LinkProfile:
    return LinkProfile(config.network.delay_ms, config.network.bandwidth_mbps)


def predicted(config: DictConfig, program: Program, ot: OtChoice, truncation: str) -> Times | None:
    """Times on this machine, where they are known or may be measured."""
    how, setting = CALIBRATE[config.calibrate], setting_of(config.engine.name, ot, config.threads, truncation)
    shapes, calibration = program.shapes(config.batch), Calibration.load(fresh=how == "all")
    calls = calls_of(program, shapes, setting)
    if not calibration.knows(setting, calls):
        if how == "none":
            return None
        if not config.quiet:
            console.err.print("measuring calls on this machine, once (calibrate=none: no times)")
        calibrate(calibration, setting, calls)
    return times_of(program, shapes, setting, link_of(config), calibration)


def fill(numbers: dict, times: Times) -> None:
    """Predicted seconds in place of a run's."""
    for node in numbers["nodes"]:
        node["online"]["seconds"] = times.nodes.get(node["name"], 0.0)
    for phase in ("setup", "preprocess", "online"):
        numbers["total"][phase]["seconds"] = getattr(times, phase)


def summary(config: DictConfig, times: Times) -> str:
    parts = f"greeting {times.greeting:.3f}, set-up {times.setup:.3f}, correlations {times.preprocess:.3f}"
    return (
        f"network={config.network.name}: {times.seconds:.3f} s predicted between machines like this one "
        f"({parts}, online {times.online:.3f})"
    )


def forecast(config: DictConfig, ledger: Ledger) -> str:
    """Time that the messages alone take; computing comes on top."""
    total = ledger.snapshot().total
    seconds = total.depth * config.network.delay_ms / 1000
    if config.network.bandwidth_mbps:
        seconds += max(total.sent, total.received) * 8 / (config.network.bandwidth_mbps * 1e6)
    if seconds == 0:
        return f"network={config.network.name}: messages take no time; choose network=lan or network=wan for a forecast"
    return f"network={config.network.name}: at least {seconds:.2f} s for messages, set-up included"
