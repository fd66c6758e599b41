# SPDX-License-Identifier: Apache-2.0
"""What the dealer does in a session: hears what is asked, runs the program on shapes, deals."""

from __future__ import annotations

import time
from dataclasses import dataclass

from privml.program import INPUT_OWNER, Program
from privml.service.request import Shape, checked_shapes
from privml.session.deal import open_dealer
from privml.session.dealer import Gathering
from privml.session.ledger import Ledger
from privml.session.session import Settings
from privml.sharing import reveal


@dataclass(frozen=True, slots=True)
class Dealt:
    """One session that ended well."""

    shapes: tuple[Shape, ...]
    seconds: float
    ledger: Ledger

    def __str__(self) -> str:
        shapes, cost = ", ".join(str(list(shape)) for shape in self.shapes), self.ledger.snapshot()
        return (
            f"a session for input {shapes}, {self.seconds:.2f} s; dealt {cost.preprocess.bytes / 1e6:.2f} MB; online "
            f"{cost.online.bytes / 1e6:.2f} MB"
        )


def deal_session(gathering: Gathering, program: Program, settings: Settings, deadline: float) -> Dealt:
    """The session of the parties gathered, to its end; see ``open_dealer`` for ``deadline`` and errors."""
    start = time.monotonic()
    shapes: list[tuple[Shape, ...]] = []

    def check(words: dict) -> None:
        shapes.append(checked_shapes(words, program))

    with open_dealer(gathering, settings, check, deadline=deadline) as session:
        for output in program.results(session, *shapes[0]):
            reveal(output, to=INPUT_OWNER)
    return Dealt(shapes[0], time.monotonic() - start, session.ledger)
