# SPDX-License-Identifier: Apache-2.0
"""``privml run model=lenet``: all parties on this machine, each a process of its own; or engine=plain in one."""

from __future__ import annotations

from typing import Any

import torch
from omegaconf import DictConfig

from privml.cli import console
from privml.cli.inputs import read_inputs, real_as
from privml.cli.ledgers import conditions, correlation_line, layer_table, phase_table, reliance
from privml.cli.measuring import spec_of
from privml.cli.query import FIRST, check_writable, save
from privml.cli.sources import Source, converted, source_of
from privml.errors import ConfigError
from privml.measure.answers import agreeing, plain_outputs
from privml.measure.copies import Copies
from privml.measure.launch import PARTY, launch
from privml.program import Program, require_names
from privml.session.session import load_torch
from privml.spec import SessionSpec


def run(config: DictConfig) -> None:
    check_writable(config.out)
    spec = spec_of(config)
    with copies_of(spec) as copies:
        source = source_of(config)
        inputs = inputs_of(config, source)
        program = converted(config, source)
        if not config.quiet:
            console.out.print(conditions(program, spec), soft_wrap=True)
        if not spec.backend.remote:
            outputs = plain_outputs(program, inputs)
            if program.calibrated_layers and not config.quiet:
                console.out.print(f"{reliance(program)}; no value was beyond it")
        else:
            outputs = run_processes(config, spec, program, inputs, copies)
    save(program.decode(outputs), config.out)
    if not config.quiet:
        compare(source, inputs, outputs[0], config.input is None)


def copies_of(spec: SessionSpec) -> Copies:
    """The parties' processes, made when torch is loaded and nothing else has happened."""
    if not spec.backend.remote:
        return Copies(PARTY, 0)
    load_torch()
    return Copies(PARTY, spec.backend.parties)


def inputs_of(config: DictConfig, source: Source) -> torch.Tensor | dict[str, torch.Tensor]:
    if config.input is not None:
        inputs, examples = read_inputs(config.input), source.calibration
        if isinstance(inputs, dict) and isinstance(examples, dict):  # the program takes what its examples are
            require_names(inputs, list(examples), "the calibration has")
        return inputs
    if source.samples is None:
        raise ConfigError("give the inputs as input=FILE; only shipped models have samples")
    return source.samples[: config.count]


def rows_of(inputs: torch.Tensor | dict[str, torch.Tensor]) -> int:
    """How many samples there are."""
    return len(next(iter(inputs.values())) if isinstance(inputs, dict) else inputs)


def run_processes(
    config: DictConfig, spec: SessionSpec, program: Program, inputs: Any, copies: Copies
) -> tuple[torch.Tensor, ...]:
    with console.progress("run", config.quiet, f"starting the parties, {FIRST}") as step:
        result = launch(program, inputs, spec, progress=step, copies=copies)
    if not config.quiet:
        title, layers = "Online cost by layer, as the client sees it", program.calibrated_layers
        console.out.print(layer_table(title, result.client.ledger, calibrated=layers))
        console.out.print(phase_table("Totals of the client", result.client.ledger))
        console.out.print(correlation_line(result.client.ledger, result.client.source))
        if result.dealer is not None:
            console.out.print(phase_table("Totals of the dealer", result.dealer.ledger))
        memory = ", ".join(console.size(report.peak_rss_bytes) for report in result.reports)
        console.out.print(f"{rows_of(inputs)} inputs in {result.client.seconds:.2f} s; peak memory {memory}")
    return result.outputs


def compare(source: Source, inputs: Any, outputs: torch.Tensor, shipped: bool) -> None:
    """Beside the clear model, if there is one."""
    count = rows_of(inputs)
    if not isinstance(source.model, torch.nn.Module):
        if shipped and source.labels is not None:
            right = agreeing(source.read([outputs]), source.labels[:count]).sum().item()
            console.out.print(f"right for {right} of {count}")
        return
    with torch.no_grad():
        given = real_as(inputs, torch.float32)
        clear = source.model(**given) if isinstance(given, dict) else source.model(given)
    if not isinstance(clear, torch.Tensor):
        return
    if clear.dim() == 2:
        same = (clear.argmax(1) == outputs.argmax(1)).sum().item()
        text = f"same label as the clear model for {same} of {count}"
        if shipped and source.labels is not None:
            right = (outputs.argmax(1) == source.labels[:count]).sum().item()
            text += f", right for {right}"
        console.out.print(text)
    error = (clear - outputs).abs().max().item()
    console.out.print(f"largest difference from the clear model: {error:.4g} (largest output {clear.abs().max():.4g})")
