# SPDX-License-Identifier: Apache-2.0
"""The fuzzing corpus and some fresh inputs through every Python target: what was found once stays found."""

import itertools
import random
import time

import pytest
import torch
from fuzz_targets import CORPUS, Target, targets
from limits import MEGABYTES, TooLong, bounded

from privml.errors import CorruptFile

TARGETS = targets()
FRESH = 20
# Only what hangs takes so many seconds, on whatever machine.
ENDS_WITHIN = 240.0


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize("name", TARGETS)
def test_valid_inputs_are_taken(name):
    taken = [TARGETS[name].take(seed) for seed in TARGETS[name].seeds()]
    assert any(taken) and sum(taken) * 3 >= len(taken)  # some say no, in good order


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_and_fresh_inputs_end_in_errors_of_privml_alone(name):
    target = TARGETS[name]
    assert target.corpus(), "a target keeps a corpus"
    for seed in target.seeds():  # what is made at the first use has no limit
        target.take(seed)
    for path in target.corpus():
        with bounded(ENDS_WITHIN):
            target.take(path.read_bytes())
    for data in itertools.islice(target.inputs(random.Random(1)), FRESH):
        with bounded(ENDS_WITHIN):
            target.take(data)


def test_every_corpus_belongs_to_a_target():
    from pathlib import Path

    source = (Path(__file__).parents[2] / "csrc" / "fuzz" / "targets.cpp").read_text()
    compiled = {name for name in (p.name for p in CORPUS.iterdir()) if f'"{name}"' in source}
    assert {path.name for path in CORPUS.iterdir()} == compiled | set(TARGETS)


def misbehave(data: bytes) -> None:
    if data == b"key":
        raise KeyError("a name")
    if data == b"memory":
        bytearray((MEGABYTES + 512) << 20)
    if data == b"time":
        while True:
            time.sleep(0.01)
    raise CorruptFile("no such input")


def test_the_harness_notices_what_must_not_happen():
    target = Target("none", list, misbehave)
    assert not target.take(b"refused")
    with pytest.raises(KeyError), bounded():
        target.take(b"key")
    with pytest.raises(MemoryError), bounded():
        target.take(b"memory")
    with pytest.raises(TooLong), bounded(seconds=0.1):
        target.take(b"time")
