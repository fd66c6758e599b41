# SPDX-License-Identifier: Apache-2.0
"""Stores that a dealer fills, and queries on them, for the tests of this folder."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from services import deal, preprocess
from store_pairs import INPUT, answer, both, order

import privml
from privml.program import Program
from privml.service.events import Stop
from privml.session.preprocessing import StoreHalf
from privml.spec import SessionSpec

THREE = {"engine": "threepc", "truncation": "exact"}
SPEC = SessionSpec.of("threepc", truncation="exact")
COUNT = 3


@contextlib.contextmanager
def dealing(program, sessions=1, **options):
    """(its address, what it has said) of a dealer, which has the program without weights; it ends with the block."""
    ports, said, stop = Queue(), [], Stop()
    with ThreadPoolExecutor(1) as executor:
        told = {"on_listening": ports.put, "log": said.append, "sessions": sessions, "stop": stop}
        future = executor.submit(deal, Program(program.body), "127.0.0.1:0", **{**THREE, **told, **options})
        try:
            yield f"127.0.0.1:{ports.get(timeout=60)}", said
        finally:
            stop.ask()
        future.result(60)


def make(program, folder, client=None, weights=True, **fields):
    """The outcomes of both parties that fill folder/0 and folder/1 with what a dealer deals."""
    fields = {**THREE, "count": COUNT, **fields}
    bare = Program(program.body)
    with dealing(program) as (dealer, said):
        outcomes = both(
            lambda told: preprocess(
                order(program if weights else bare, f"{folder}/0", **fields),
                listen="127.0.0.1:0", dealer=dealer, on_listening=told, deadline=20.0,
            ),
            lambda address: preprocess(
                order(bare, f"{folder}/1", **{**fields, **(client or {})}), server=address, dealer=dealer, deadline=20.0
            ),
        )  # fmt: skip
    return outcomes, said


def filled(program, folder, **fields):
    outcomes, said = make(program, folder, **fields)
    for outcome in outcomes:
        assert not isinstance(outcome, Exception), outcome
    return folder, outcomes, said


def half(program, folder, rank, **options):
    return StoreHalf(Path(folder) / str(rank), rank, program.hash, f"{folder}/{rank}.key", **options)


def ask(program, ours, theirs, value=INPUT, **options):
    return answer(program, ours, theirs, value, **{**THREE, **options})


def counted(snapshot):
    phases = (snapshot.setup, snapshot.preprocess, snapshot.online)
    return [(phase.sent, phase.received, phase.depth) for phase in phases]


def clear(program):
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale, like="threepc") as session:
        return privml.reveal(program.run(session, INPUT), to=1)
