# SPDX-License-Identifier: Apache-2.0
"""A small recurrent network whose calls keep a state, for tests of sessions."""

from __future__ import annotations

import functools

import torch

import privml

FEATURES, HIDDEN = 4, 5


class Recurrent(torch.nn.Module):
    """(x [n, 4], h [n, 5]) -> (y [n, 2], h [n, 5])."""

    def __init__(self) -> None:
        super().__init__()
        self.given, self.before = torch.nn.Linear(FEATURES, HIDDEN), torch.nn.Linear(HIDDEN, HIDDEN)
        self.head = torch.nn.Linear(HIDDEN, 2)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = torch.tanh(self.given(x) + self.before(h))
        return self.head(h), h


@functools.cache
def network() -> Recurrent:
    torch.manual_seed(1)
    return Recurrent().eval()


@functools.cache
def _program() -> privml.Program:
    generator = torch.Generator().manual_seed(2)
    calibration = torch.randn(32, FEATURES, generator=generator), torch.zeros(32, HIDDEN)
    return privml.convert(network(), calibration=calibration, state={"h": ("h", 1)})


def converted() -> privml.Program:
    """A program of its own for each caller, with one body."""
    return privml.Program(_program().body, _program().weights)


def steps(count: int, rows: int = 2) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(rows, FEATURES, generator=generator) for _ in range(count)]


def clear(inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    """What the network says, step by step."""
    h, answers = torch.zeros(len(inputs[0]), HIDDEN), []
    with torch.no_grad():
        for x in inputs:
            y, h = network()(x, h)
            answers.append(y)
    return answers


def plain(program: privml.Program, inputs: list[torch.Tensor], engine: str = "twopc") -> list[torch.Tensor]:
    """What the plain engine says, computing as ``engine`` does."""
    like = {"like": engine} if engine in ("active", "threepc") else {}
    with privml.local(program, engine="plain", **like) as session:
        return [session(x) for x in inputs]
