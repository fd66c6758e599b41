# SPDX-License-Identifier: Apache-2.0
"""Training between three processes of which one is killed: the others say so, and the run goes on from its checkpoint
to the same weights as one that nothing has disturbed."""

from __future__ import annotations

import shutil
import time

import pytest
from fault_parties import assert_clean_error, seconds_until
from fault_service import GONE, POINTS, Outcome
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


def kill(training, outcomes, victim, byte, point):
    """Kills ``victim`` when ``byte`` bytes have crossed; both others end with PeerDisconnected."""
    shutil.rmtree(training.folder / "run", ignore_errors=True)
    proxy = training.proxy
    parties = training.start()
    proxy.fail_at(byte, lambda: training.parties[victim].kill())
    assert proxy.fired.wait(120), "the run ended before"
    assert parties[victim].wait() == -9
    outcome = Outcome("training, threepc", "kill -9", f"party {victim}", point)
    for rank in RANKS:
        if rank != victim:
            side = f"party {rank}"
            outcome.seconds[side] = seconds_until(lambda party=parties[rank]: party.status is not None, proxy.failed_at)
            outcome.said[side] = assert_clean_error(parties[rank], *GONE)
    outcomes.add(outcome)
    assert not (training.folder / "run/weights.safetensors").exists()


def test_a_run_goes_on_after_a_kill(undisturbed, training, outcomes):
    weights, total = undisturbed
    kill(training, outcomes, 1, total * 2 // 3, "66.7 %")
    assert all(training.saved()) and LAST not in training.saved()
    assert training.finish("resume=true") == weights


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("victim", RANKS)
def test_a_run_goes_on_after_a_kill_at_any_point(undisturbed, training, outcomes, victim):
    weights, total = undisturbed
    for number in range(POINTS):
        share = (2 * number + 1) / (2 * POINTS)
        kill(training, outcomes, victim, int(total * share), f"{100 * share:.1f} %")
        assert training.finish("resume=true") == weights, f"after the kill at {share:.1%}"


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
    parties = training.start(deadline=8.0)
    proxy.fail_at(total // 2, getattr(proxy, fault))
    assert proxy.fired.wait(120)
    outcome = Outcome("training, threepc", fault.replace("_", " "), "", "50.0 %")
    for rank in RANKS:
        side = f"party {rank}"
        outcome.seconds[side] = seconds_until(lambda party=parties[rank]: party.status is not None, proxy.failed_at)
        outcome.said[side] = assert_clean_error(parties[rank], *GONE)
    outcomes.add(outcome)
    assert training.finish("resume=true") == weights
