# SPDX-License-Identifier: Apache-2.0
"""The account of its computation that a party sends to the others if theirs differ, and how it reads theirs.

An account is a first line, the cause, and one line for each step, the oldest first: its place in the computation
(numbers joined by points), its tag, the line of the user's program and the operation. It holds no values. What a peer
sends is cut to what fits a terminal.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from privml.errors import PeerDisconnected, PrivmlError, ProgramsDiffer
from privml.transcript import GENERATORS, LONGEST_PLACE, LONGEST_TEXT, NOWHERE, printable

_STALLED = "stalled"
# What the cause of a party whose program has failed begins with; the name of the error's class follows.
_FAILED = "failed "
_ERROR_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]{0,63}")
# How long a peer may take to read that a program has failed.
_SECONDS_TO_REPORT = 1.0
_LONGEST_LINE = 256
_MOST_LINES = 600
Place = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One line of an account."""

    tag: str
    where: str
    text: str

    def __str__(self) -> str:
        return self.text if self.where == NOWHERE else f"{self.text} at {self.where}"


def difference(rank: int, peer: int, ours: bytes, theirs: bytes) -> PrivmlError:
    """The error at party ``rank``, from its own lines and the report of party ``peer``: cause and lines, or nothing."""
    cause, _, reported = theirs.decode("ascii", "replace").partition("\n")
    failed = cause.removeprefix(_FAILED)
    if failed != cause:
        name = failed if _ERROR_NAME.fullmatch(failed) else "an error"
        return PeerDisconnected(f"the program of party {peer} ended with {name}; see the output of that party")
    mine, others = _steps(ours.decode("ascii", "replace")), _steps(reported)
    common = sorted(set(mine) & set(others))
    first = next((place for place in common if mine[place].tag != others[place].tag), None)
    if first is not None:
        return ProgramsDiffer(_difference(rank, mine[first], peer, others[first], first == common[0]))
    if not theirs:
        return ProgramsDiffer(
            f"the parties compute different things: party {peer} sent what belongs to another operation than "
            f"party {rank}'s {_last(mine)}, and did not say which"
        )
    if cause == _STALLED:
        return PeerDisconnected(
            f"the parties {rank} and {peer} waited for each other until the deadline: party {rank} after "
            f"{_last(mine)}, party {peer} after {_last(others)}"
        )
    if cause != "differs":
        return ProgramsDiffer(f"party {peer} ended the session: {printable(cause, 600)}")
    return ProgramsDiffer(
        f"the parties compute different things: the last operation of party {rank} is {_last(mine)}, that of "
        f"party {peer} is {_last(others)}"
    )


def report_failure(channels: Iterable[Any], error: type[BaseException]) -> None:
    """Tells the peers at the other ends of ``channels`` that this party's program ended with an error of this class;
    nothing else of it, since a message may hold secrets. Peers that are gone get nothing."""
    for channel in channels:
        with contextlib.suppress(PrivmlError, OSError, RuntimeError, ValueError):
            channel.report(_FAILED + error.__name__[:64], _SECONDS_TO_REPORT)


def _difference(rank: int, mine: Step, peer: int, theirs: Step, oldest: bool) -> str:
    if mine.text == theirs.text == GENERATORS:
        return (
            "the parties have drawn differently from the global generators of torch, Python or numpy or from "
            f"session.public_generator(): before {mine.where} at party {rank}, before {theirs.where} at party {peer}. "
            "What only one party draws has to come from session.private_generator()"
        )
    same = ", with other arguments" if mine.text == theirs.text else ""
    since = "; they may differ since an earlier one, which is no longer known" if oldest else ""
    first, second = sorted(((rank, mine), (peer, theirs)), key=lambda pair: pair[0])
    return (
        f"the parties compute different things: party {first[0]}: {first[1]}; party {second[0]}: {second[1]}"
        f"{same}{since}. Run the same program, on the same public values, at all parties"
    )


def _last(steps: dict[Place, Step]) -> str:
    return str(steps[max(steps)]) if steps else "start"


def _steps(text: str) -> dict[Place, Step]:
    """The steps of an account by place; what is no line of one is left out."""
    steps: dict[Place, Step] = {}
    for line in text.split("\n")[:_MOST_LINES]:
        parts = printable(line, _LONGEST_LINE).split(" ", 3)
        numbers = parts[0].split(".")
        if len(parts) == 4 and len(numbers) <= 8 and all(n.isdigit() and len(n) <= 12 for n in numbers):
            steps[tuple(map(int, numbers))] = Step(parts[1], parts[2][:LONGEST_PLACE], parts[3][:LONGEST_TEXT])
    return steps
