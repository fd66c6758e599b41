# SPDX-License-Identifier: Apache-2.0
"""The report on its computation that a party sends to its peers if their computations differ, and how it is read.

The first line of a report is the cause. Each further line is one step, the oldest first: its place in the computation
(numbers joined by points), its tag, the line of the user's program and the operation. A report holds no values. The
report of a peer is cut to a length that fits a terminal.
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
    """One line of a report."""

    tag: str
    where: str
    text: str

    def __str__(self) -> str:
        return self.text if self.where == NOWHERE else f"{self.text} at {self.where}"


def difference(rank: int, peer: int, ours: bytes, theirs: bytes) -> PrivmlError:
    """The error at party ``rank``, given its own lines and the report of party ``peer``, which may be empty."""
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
            f"the parties compute different things: party {rank} is at {_last(mine)}, and party {peer} sent the "
            "message of another operation without saying which"
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
    """Tells the peers at the other ends of ``channels`` the class of the error that ended this party's program. The
    error's message is not sent, because it may hold secrets. Peers that have left are skipped."""
    for channel in channels:
        with contextlib.suppress(PrivmlError, OSError, RuntimeError, ValueError):
            channel.report(_FAILED + error.__name__[:64], _SECONDS_TO_REPORT)


def _difference(rank: int, mine: Step, peer: int, theirs: Step, oldest: bool) -> str:
    if mine.text == theirs.text == GENERATORS:
        return (
            "the parties have drawn different numbers from the global generators of torch, Python or numpy or from "
            f"session.public_generator(): before {mine.where} at party {rank}, before {theirs.where} at party {peer}. "
            "Use session.private_generator() for numbers that only one party draws"
        )
    same = ", with other arguments" if mine.text == theirs.text else ""
    since = "; earlier operations, of which no record is left, may differ too" if oldest else ""
    first, second = sorted(((rank, mine), (peer, theirs)), key=lambda pair: pair[0])
    return (
        f"the parties compute different things: party {first[0]}: {first[1]}; party {second[0]}: {second[1]}"
        f"{same}{since}. Run the same program, on the same public values, at all parties"
    )


def _last(steps: dict[Place, Step]) -> str:
    return str(steps[max(steps)]) if steps else "start"


def _steps(text: str) -> dict[Place, Step]:
    """The steps of a report by place. Lines of another form are left out."""
    steps: dict[Place, Step] = {}
    for line in text.split("\n")[:_MOST_LINES]:
        parts = printable(line, _LONGEST_LINE).split(" ", 3)
        numbers = parts[0].split(".")
        if len(parts) == 4 and len(numbers) <= 8 and all(n.isdigit() and len(n) <= 12 for n in numbers):
            steps[tuple(map(int, numbers))] = Step(parts[1], parts[2][:LONGEST_PLACE], parts[3][:LONGEST_TEXT])
    return steps
