# SPDX-License-Identifier: Apache-2.0
"""Connections that fail in the middle of a query: reset, half closed, half open, no longer read, slow, interrupted."""

from __future__ import annotations

import pytest
from fault_scenarios import ACTIVE, SCENARIOS, UNDER_TLS
from fault_service import POINTS, SERVER, Point

CUTS = ("reset", "half_close", "stop_reading", "swallow")
# Seconds: what is silent is noticed after so many.
DEADLINE = 3.0


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [("twopc", "half_close"), ("twopc", "stop_reading"), ("twopc", "swallow"), ("threepc", "reset")],
)
def test_a_connection_fails(deploy, outcomes, scenario, fault):
    service = deploy(scenario, deadline=DEADLINE)
    outcomes.add(service.cut(fault, service.points(1, phases=False)[0]))


def test_a_connection_goes_silent_under_tls(deploy, outcomes):
    outcomes.add(deploy(UNDER_TLS, deadline=DEADLINE).cut("swallow", Point("connection", 0)))


def test_a_connection_fails_after_a_message(deploy):
    """The first messages are the two hellos; the server waits for the client's shapes then."""
    service = deploy("twopc", deadline=DEADLINE)
    service.settle()
    service.proxy.restart()
    service.proxy.fail_at_message(2, service.proxy.reset)
    client = service.ask()
    assert service.proxy.fired.wait(30) and client.wait() == 1
    assert client.error_line.startswith("PeerDisconnected: ")
    service.parties[SERVER].line("a connection ended without an answer: PeerDisconnected")
    service.parties[SERVER].assert_holds(service.warm[SERVER])
    service.proxy.restart()
    service.assert_answers()


def test_a_slow_and_interrupted_network_changes_no_answer(deploy):
    service = deploy("twopc", deadline=DEADLINE)
    service.settle()
    service.proxy.slow(0.001, 0.02)
    service.assert_answers()
    service.proxy.slow(0.0)
    service.proxy.interrupt(0.2, 0.5)
    service.assert_answers()


# ---- the whole matrix
@pytest.fixture
def deploy_largest(deploy, deploy_lenet):
    """LeNet, or the small network where a query of LeNet computes for longer than these tests' deadlines."""
    return lambda scenario, **options: (deploy if scenario == ACTIVE else deploy_lenet)(scenario, **options)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", CUTS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_connection_fails_at_every_point(deploy_largest, outcomes, scenario, fault):
    service = deploy_largest(scenario, deadline=DEADLINE + 1)
    for point in service.points(min(POINTS, 5)):
        outcomes.add(service.cut(fault, point))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_jitter_and_outages_change_no_answer(deploy_largest, scenario):
    """200 ms of jitter each way; then nothing gets through for half of every second."""
    service = deploy_largest(scenario, deadline=20.0)
    service.settle()
    service.proxy.slow(0.0, 0.2)
    service.assert_answers()
    service.proxy.slow(0.0)
    service.proxy.interrupt(1.0, 0.5)
    service.assert_answers()
