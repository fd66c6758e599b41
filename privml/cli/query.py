# SPDX-License-Identifier: Apache-2.0
"""``privml query program=lenet/program server=127.0.0.1:9000 input=digits.npy out=scores.npy``"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from privml.errors import ConfigError, InvalidInput
from privml.generation import greedy
from privml.memory import keep_freed_memory
from privml.program import INPUT_OWNER, Program
from privml.service.client import Answer, Client
from privml.service.options import Retries

# What happens before a query's first layer.
FIRST = "agreeing on keys, making correlations"


def run(config: DictConfig) -> None:
    keep_freed_memory()
    check_writable(config.out, config.ledger)
    spec = replace(spec_of(config), on_wait=Waiting(config.server, config.quiet))
    server = place_of(config, spec)
    refuse_without_store(config)
    program = load_program(config.program)
    value = read_inputs(config.input)
    logging.getLogger("privml").setLevel(logging.ERROR if config.quiet else logging.WARNING)  # of what is no secret
    preprocessing = preprocessing_of(config, INPUT_OWNER, program)
    retries = Retries(config.retries, config.backoff, config.answer_seconds)
    steps, several = steps_of(program, value) if config.generate is None else ([], True)
    with (
        preprocessing or contextlib.nullcontext(),
        console.progress("query", config.quiet, FIRST) as bar,
        Client(program, server, spec, preprocessing=preprocessing, retries=retries) as client,
    ):
        ask = client.session().step if program.state else client.query
        answers = [ask(each, progress=bar) for each in steps]
        if config.generate is not None:
            require_ids(program)
            (prompt,) = program.ordered(value)
            list(greedy(lambda ids: _kept(answers, ask(ids, progress=bar)), prompt, config.generate))
    outputs = tuple(torch.stack(parts) for parts in zip(*(answer.outputs for answer in answers), strict=True))
    outputs = program.decode(outputs if several else answers[0].outputs)
    save(outputs, config.out)
    if config.ledger is not None:
        ledgers = [answer.ledger.as_dict() for answer in answers]
        Path(config.ledger).write_text(json.dumps(ledgers if several else ledgers[0]))
    if not config.quiet:
        show(program, answers, outputs, config.out)


def require_ids(program: Program) -> None:
    """ConfigError for a program that takes no ids and returns none."""
    ids = [not spec.dtype.is_floating_point for spec in (*program.inputs, *program.outputs)]
    if not program.state or ids != [True, True]:
        raise ConfigError("generate= is for programs that were converted with generate=")


def _kept(answers: list[Answer], answer: Answer) -> torch.Tensor:
    answers.append(answer)
    return answer.outputs[0]


def steps_of(program: Program, value: Any) -> tuple[list[list[torch.Tensor]], bool]:
    """The inputs of each step, and whether there may be several: of a program with state, inputs with one dimension
    more than it takes. InvalidInput if they are of different numbers of steps."""
    inputs = [torch.as_tensor(each) for each in program.ordered(value)]
    stepped = [each.dim() == len(spec.shape) + 1 for each, spec in zip(inputs, program.inputs, strict=True)]
    if not program.state or not any(stepped):
        return [inputs], False
    if not all(stepped) or len({len(each) for each in inputs}) > 1 or not len(inputs[0]):
        raise InvalidInput("all inputs must have the same number of steps, one or more, along their first dimension")
    return [list(each) for each in zip(*inputs, strict=True)], True


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


def show(program: Program, answers: Sequence[Answer], outputs: Sequence[Any], out: str | None) -> None:
    """Costs are those of the last step."""
    ledger, last = answers[-1].ledger.as_dict(), f", step {len(answers)}" if len(answers) > 1 else ""
    console.out.print(layer_table(f"Online cost by layer{last}", ledger, calibrated=program.calibrated_layers))
    console.out.print(phase_table(f"Totals of this party{last}", ledger))
    console.out.print(correlation_line(ledger, answers[-1].source))
    seconds = sum(answer.seconds for answer in answers)
    console.out.print(f"answered in {seconds:.2f} s" + (f"; scores in {out}" if out else ""))
    if out is None:
        for output in outputs:
            console.out.print(str(output), markup=False)
