# SPDX-License-Identifier: Apache-2.0
"""Training between three processes of which one is killed: the others say so, and the run goes on from its checkpoint
to the same weights as one that nothing has disturbed."""

from __future__ import annotations

import shutil
import time

import pytest
from fault_parties import assert_clean_error, seconds_until
from fault_service import GONE, POINTS, Outcome, Point, spread
from fault_training import LAST, Training

RANKS = range(3)


@pytest.fixture
def undisturbed(spawner, proxy, tmp_path):
    """The weights of a run to its end, and the bytes that all its connections have carried."""
    pytest.importorskip("sklearn")
    training = Training(spawner, proxy, tmp_path / "whole")
    return training.finish(), proxy.bytes


@pytest.fixture
def training(spawner, proxy, tmp_path):
    made = Training(spawner, proxy, tmp_path / "killed")
    yield made
    made.end()


def heard(outcome, training, ranks):
    """``outcome`` with what these parties said, which have ended with PeerDisconnected."""
    for rank in ranks:
        side, party = f"party {rank}", training.parties[rank]
        outcome.seconds[side] = seconds_until(lambda party=party: party.status is not None, training.proxy.failed_at)
        outcome.said[side] = assert_clean_error(party, *GONE)
    return outcome


def kill(training, outcomes, victim, point):
    """Kills ``victim`` at ``point``; both others end with PeerDisconnected."""
    shutil.rmtree(training.folder / "run", ignore_errors=True)
    proxy = training.proxy
    parties = training.start()
    proxy.fail_at(point.byte, lambda: training.parties[victim].kill())
    assert proxy.fired.wait(120), "the run ended before"
    assert parties[victim].wait() == -9
    outcome = Outcome("training, threepc", "kill -9", f"party {victim}", point.name)
    outcomes.add(heard(outcome, training, set(RANKS) - {victim}))
    assert not (training.folder / "run/weights.safetensors").exists()


def test_a_run_goes_on_after_a_kill(undisturbed, training, outcomes):
    weights, total = undisturbed
    kill(training, outcomes, 1, Point("66.7 %", total * 2 // 3))
    assert all(training.saved()) and LAST not in training.saved()
    assert training.finish("resume=true") == weights


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("victim", RANKS)
def test_a_run_goes_on_after_a_kill_at_any_point(undisturbed, training, outcomes, victim):
    weights, total = undisturbed
    for point in spread(POINTS, total):
        kill(training, outcomes, victim, point)
        assert training.finish("resume=true") == weights, f"after the kill at {point.name}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_goes_on_after_many_kills(undisturbed, training):
    """Of one run, each time another party; no step is gone back behind the one that was saved."""
    weights, total = undisturbed
    proxy, reached = training.proxy, ""
    shutil.rmtree(training.folder / "run", ignore_errors=True)
    for number in range(9):
        parties = training.start("resume=true")
        proxy.fail_at(total // 4, lambda: training.parties[number % 3].kill())  # noqa: B023
        while all(party.status is None for party in parties):
            time.sleep(0.01)
        for party in parties:
            party.wait()
        assert min(training.saved()) >= reached
        reached = min(training.saved())
        if all(party.status == 0 for party in parties):
            break
    assert training.finish("resume=true") == weights


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", ["reset", "half_close", "stop_reading", "swallow"])
def test_a_run_whose_connections_fail(undisturbed, training, outcomes, fault):
    weights, total = undisturbed
    proxy = training.proxy
    training.start(deadline=8.0)
    middle = spread(1, total)[0]
    proxy.fail_at(middle.byte, getattr(proxy, fault))
    assert proxy.fired.wait(120)
    outcomes.add(heard(Outcome("training, threepc", fault.replace("_", " "), "", middle.name), training, RANKS))
    assert training.finish("resume=true") == weights
