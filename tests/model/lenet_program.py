# SPDX-License-Identifier: Apache-2.0
"""Sessions for a program, and what it answers in one."""

from __future__ import annotations

import torch

import privml
from privml.context import Session
from privml.program import Program


def session_for(program: Program, engine: str = "plain", **settings) -> Session:
    """With the numerics that the program was made for."""
    return privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **settings)


def scores(program: Program, x: torch.Tensor, engine: str = "plain", **settings) -> torch.Tensor:
    with session_for(program, engine, **settings) as session:
        return privml.reveal(program.run(session, x))
