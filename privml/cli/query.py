# SPDX-License-Identifier: Apache-2.0
"""``privml query program=lenet/program server=127.0.0.1:9000 input=digits.npy out=scores.npy``"""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from omegaconf import DictConfig

from privml.cli import console
from privml.cli.engines import spec_of
from privml.cli.inputs import read_inputs
from privml.cli.ledgers import correlation_line, layer_table, phase_table
from privml.cli.paths import load_program
from privml.cli.serving import place_of
from privml.cli.stores import preprocessing_of, refuse_without_store
from privml.errors import ConfigError
from privml.program import INPUT_OWNER, Program
from privml.service.client import Answer, query
from privml.service.options import Retries

# What happens before a query's first layer.
FIRST = "agreeing on keys, making correlations"


def run(config: DictConfig) -> None:
    check_writable(config.out, config.ledger)
    spec = replace(spec_of(config), on_wait=Waiting(config.server, config.quiet))
    server = place_of(config, spec)
    refuse_without_store(config)
    program = load_program(config.program)
    value = read_inputs(config.input)
    if program.public_inputs and not config.quiet:
        console.err.print(f"this program shows all parties the inputs {', '.join(program.public_inputs)}")
    preprocessing = preprocessing_of(config, INPUT_OWNER, program)
    with preprocessing or contextlib.nullcontext(), console.progress("query", config.quiet, FIRST) as step:
        answer = query(
            program,
            server,
            value,
            spec,
            preprocessing=preprocessing,
            retries=Retries(config.retries, config.backoff, config.answer_seconds),
            progress=step,
        )
    save(program.decode(answer.outputs), config.out)
    if config.ledger is not None:
        Path(config.ledger).write_text(json.dumps(answer.ledger.as_dict()))
    if not config.quiet:
        show(program, answer, config.out)


class Waiting:
    """Says once that the server is not there yet."""

    def __init__(self, server: str, quiet: bool) -> None:
        self._server, self._said = server, quiet

    def __call__(self, seconds: float) -> None:
        if not self._said:
            console.err.print(f"waiting for a server at {self._server} ...")
            self._said = True


def check_writable(*paths: str | None) -> None:
    """ConfigError, before minutes of work, for a file whose folder does not exist."""
    for path in filter(None, paths):
        if not Path(str(path)).absolute().parent.is_dir():
            raise ConfigError(f"{path}: its folder does not exist")


def save(outputs: tuple[torch.Tensor | np.ndarray, ...], path: str | None) -> None:
    """One output as the array itself, several as path with .1, .2, ... before the suffix; labels may be strings."""
    if path is None:
        return
    path = str(path) if str(path).endswith(".npy") else f"{path}.npy"  # as np.save does
    for index, output in enumerate(outputs):
        name = Path(path) if index == 0 else Path(path).with_suffix(f".{index}{Path(path).suffix}")
        np.save(name, np.asarray(output))


def show(program: Program, answer: Answer, out: str | None) -> None:
    ledger = answer.ledger.as_dict()
    console.out.print(layer_table("Online cost by layer", ledger, calibrated=program.calibrated_layers))
    console.out.print(phase_table("Totals of this party", ledger))
    console.out.print(correlation_line(ledger, answer.source))
    console.out.print(f"answered in {answer.seconds:.2f} s" + (f"; scores in {out}" if out else ""))
    if out is None:
        for output in program.decode(answer.outputs):
            console.out.print(str(output), markup=False)
