# SPDX-License-Identifier: Apache-2.0
"""``privml cost model=lenet link=wan``: one query's cost, predicted by the protocols' own cost functions, and its
time on this machine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.ledgers import DEALT, correlation_line, layer_table, phase_table
from privml.cli.measuring import measures, spec_of, timer_of
from privml.cli.paths import load_program
from privml.cli.sources import converted, source_of
from privml.engines.correlations import OtChoice
from privml.engines.stores import KEPT_WEIGHTS
from privml.errors import ConfigError
from privml.measure.predict import Times, cost_of, prepared_cost
from privml.program import INPUT_OWNER, Program, Shapes
from privml.service.choose_ot import forecasts
from privml.session.ledger import Ledger, PhaseCount
from privml.spec import SessionSpec


def run(config: DictConfig) -> None:
    if config.engine.get("device", "cpu") != "cpu":
        raise ConfigError(f"engine.device={config.engine.device}: costs and times are those of the CPU; leave it out")
    program = load_program(config.program) if config.program is not None else converted(config, source_of(config))
    spec = spec_of(config)
    backend, drawn, how = spec.backend, DEALT, f"{spec.backend.parties} parties"
    if backend.transfers:
        if not spec.ot.decided:
            spec = replace(spec, ot=chosen(config, program, spec))
        how, drawn = str(spec.ot), f"made ahead by {spec.ot}"
    if spec.threads > 1:
        how += f", {spec.threads} threads"
    shapes = shapes_of(config, program)
    if backend.by_kind:
        how = f"actively secure, ring of {spec.engine.ring} bits"
        drawn += f"; {kinds(backend.demand(program, shapes, spec))}"
    if config.prepared:
        show_prepared(config, program, spec, (how, drawn))
        return
    ledger = cost_of(program, shapes, spec, INPUT_OWNER)
    line = correlation_line(ledger.as_dict(), drawn)
    if measures(config):  # measuring takes minutes, the costs are known at once
        show(config, program, ledger.as_dict(), None, how)
        console.out.print(line)
    with console.progress("measure", config.quiet) as step:
        timer = timer_of(config, step)
        times = None if timer is None else timer(program, shapes, spec)
    show(config, program, ledger.as_dict() if times is None else filled(ledger.as_dict(), times), times, how)
    console.out.print(line)
    if backend.dealt:
        console.out.print(dealt_line(program, shapes, spec), soft_wrap=True)
    if program.state:
        console.out.print(step_line(program, shapes, spec))
    console.out.print(forecast(config, ledger) if times is None else summary(config, times))


def shapes_of(config: DictConfig, program: Program) -> Shapes:
    """The shapes of the query's inputs and state. Raises ConfigError if ``length`` is given and no state grows, or if
    a state would exceed its limit."""
    shapes = program.shapes(config.batch)
    growing = [spec for spec in program.state if spec.grows is not None]
    if config.length and not growing:
        raise ConfigError(f"length={config.length}: this program has no state that grows")
    for spec in growing:
        added = spec.added(program.open_size(shapes))
        if spec.most is not None and config.length + added > spec.most:
            raise ConfigError(f"length={config.length} and {added} more: state {spec.name!r} holds {spec.most}")
    return program.complete(shapes, config.length)


def dealt_line(program: Program, shapes: Shapes, spec: SessionSpec) -> str:
    """What a dealer sends before a query, and what the query then costs the client if that was stored."""
    dealt, beside = program.dealt(shapes, spec)
    text = f"the dealer sends the server {console.size(dealt)} before each query"
    if beside or program.state:
        return f"{text}; it cannot be stored, because the dealer also takes part in the query itself"
    sizes = []
    for prepared in (frozenset[str](), frozenset([KEPT_WEIGHTS])):
        stored = replace(spec, stored=True, prepared=prepared)
        sizes.append(program.cost(shapes, stored, rank=INPUT_OWNER).snapshot().online.bytes)
    weights = console.size(sizes[0] - sizes[1])
    return (
        f"{text}; from a store a query sends {console.size(sizes[1])} online, and {weights} of masked weights: once if "
        "the store was made with the weights, otherwise in each query"
    )


def step_line(program: Program, shapes: Shapes, spec: SessionSpec) -> str:
    """What the client sends and receives in one more step of the session; a step is one id if the state grows."""
    after = program.following(shapes)
    growing = next((n for n, each in enumerate(program.state) if each.grows is not None), None)
    step = "each further step"
    if growing is not None:
        length = after[len(program.inputs) + growing][program.state[growing].grows or 0]
        after, step = program.complete(program.shapes(1), length), f"one more step of 1, after {length}"
    cost = program.session_cost([shapes, after], spec)[1][0].snapshot()
    ahead, online = cost.setup + cost.preprocess, cost.online
    sizes = f"{console.size(online.bytes)} online in {online.depth} messages in sequence"
    return f"{step}: {sizes}, {console.size(ahead.bytes)} for its correlations"


def show_prepared(config: DictConfig, program: Program, spec: SessionSpec, words: tuple[str, str]) -> None:
    """Shows the cost of a query whose products were prepared together with those of other queries, without seconds."""
    (how, drawn), shapes = words, shapes_of(config, program)
    spec, prepared = prepared_cost(program, shapes, spec, config.prepared, INPUT_OWNER)
    if not prepared:
        raise ConfigError(
            f"prepared={config.prepared}: with these settings no product with weights is prepared; leave it out"
        )
    ledger = cost_of(program, shapes, spec, INPUT_OWNER)
    numbers = ledger.as_dict()
    for node in numbers["nodes"]:
        node["prepared"] = prepared[node["name"]].bytes if node["name"] in prepared else 0
    show(config, program, numbers, None, how)
    console.out.print(correlation_line(numbers, drawn))
    total = sum(prepared.values(), PhaseCount())
    sent, received = console.size(total.sent), console.size(total.received)
    console.out.print(f"prepared for {config.prepared} queries together: {sent} sent and {received} received for each")
    console.out.print(forecast(config, ledger))


def show(config: DictConfig, program: Program, numbers: dict[str, Any], times: Times | None, how: str) -> None:
    title = f"Predicted cost by layer: batch of {config.batch}, {how}"
    console.out.print(layer_table(title, numbers, timed=times is not None, calibrated=program.calibrated_layers))
    console.out.print(phase_table("Totals of the client", numbers, timed=times is not None))


def kinds(demand: dict[str, Any]) -> str:
    """The correlations that a run uses, by kind."""
    counts = {name: count for name, count in demand.items() if isinstance(count, int)}
    counts["input masks"] = sum(demand["masks"])
    counts |= {f"numbers of {width} shared bits": count for width, count in demand["edabits"].items()}
    counts |= {f"triples of {n}x{k} and {k}x{m} matrices": count for (n, k, m), count in demand["matrices"].items()}
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items() if count)


def chosen(config: DictConfig, program: Program, spec: SessionSpec) -> OtChoice:
    """Prints a table of all correlations and returns the choice of ot=auto."""
    ranked = forecasts(program, shapes_of(config, program), spec)
    rows = [[str(each.ot), f"{each.link:.3f}", f"{each.compute:.3f}", f"{each.seconds:.3f}"] for each in ranked]
    title = f"ot=auto at {spec.link}: seconds predicted for a query, set-up included"
    console.out.print(console.table(title, ["correlations", "messages", "making them", "together"], rows))
    return ranked[0].ot


def filled(numbers: dict[str, Any], times: Times) -> dict[str, Any]:
    """``numbers`` with the predicted seconds filled in."""
    for node in numbers["nodes"]:
        node["online"]["seconds"] = times.nodes.get(node["name"], 0.0)
    for phase in ("setup", "preprocess", "online"):
        numbers["total"][phase]["seconds"] = getattr(times, phase)
    return numbers


def summary(config: DictConfig, times: Times) -> str:
    parts = f"handshake {times.handshake:.3f}, set-up {times.setup:.3f}, correlations {times.preprocess:.3f}"
    source = (
        "calculated with figures of a reference machine; calibrate=missing measures this one"
        if times.estimated
        else "measured"
    )
    return (
        f"link={config.link.name}: {times.seconds:.3f} s predicted between machines like this one "
        f"({parts}, online {times.online:.3f}), {source}"
    )


def forecast(config: DictConfig, ledger: Ledger) -> str:
    """One line: the time of the messages, without that of the computation."""
    total = ledger.snapshot().total
    seconds = total.depth * config.link.delay_ms / 1000
    if config.link.bandwidth_mbps:
        seconds += max(total.sent, total.received) * 8 / (config.link.bandwidth_mbps * 1e6)
    if seconds == 0:
        return f"link={config.link.name}: messages take no time; choose link=lan or link=wan for a prediction"
    return f"link={config.link.name}: at least {seconds:.2f} s for messages, set-up included"
