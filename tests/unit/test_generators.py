# SPDX-License-Identifier: Apache-2.0
"""The global generators are alike at all parties while a session is entered, and afterwards what they were."""

import random
import threading

import numpy as np
import pytest
import torch

import privml
from privml.generators import CommonGenerators


def draw():
    return torch.rand(1).item(), random.random(), np.random.rand()


def entered(seed=5):
    session = privml.local("plain")
    session.generators = CommonGenerators(seed)
    return session


def test_they_follow_the_seed_and_are_restored():
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    expected = draw()
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    drawn = []
    for seed in (5, 5, 6):
        with entered(seed):
            drawn.append(draw())
    assert drawn[0] == drawn[1] and drawn[1] != drawn[2]
    assert draw() == expected


def test_they_are_restored_after_an_error_and_once():
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    session = entered()
    with pytest.raises(KeyError), session:
        first = torch.rand(1)
        with session:  # entered already: nothing is seeded again
            assert torch.rand(1) != first
        assert session.generators.digest()
        raise KeyError
    assert torch.rand(1) == expected and session.generators.digest() == b""


def test_draws_within_an_inner_session_count_for_that_one():
    """The outer session's other parties may not take part in the inner one."""
    with entered(5) as outer:
        torch.rand(1)
        before = outer.generators.digest()
        with entered(6) as inner:
            assert torch.rand(1) and inner.generators.digest()
            assert outer.generators.digest() == before
        assert outer.generators.digest() == before
        torch.rand(1)
        assert outer.generators.digest() != before


def test_every_draw_changes_their_digest():
    with entered() as session:
        seen = {session.generators.digest()}
        for one in (lambda: torch.rand(1), random.random, np.random.rand, np.random.randn, np.random.randn):
            one()
            seen.add(session.generators.digest())
    assert len(seen) == 6


def test_nothing_drawn_is_as_on_another_thread():
    """A party on the main thread and one on another thread agree until one of them draws."""
    with entered() as session:
        assert session.generators.digest() == b""
        torch.rand(1)
        assert session.generators.digest()


def test_other_threads_leave_them_alone():
    torch.manual_seed(1)
    before = torch.get_rng_state()

    def body():
        with entered() as session:
            assert session.generators.digest() == b"" and torch.equal(torch.get_rng_state(), before)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert torch.equal(torch.get_rng_state(), before)


def test_private_generators_are_not_alike():
    with entered() as session:
        drawn = {torch.rand(1, generator=session.private_generator()).item() for _ in range(3)}
    assert len(drawn) == 3
