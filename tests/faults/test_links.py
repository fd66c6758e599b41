# SPDX-License-Identifier: Apache-2.0
"""Connections that fail in the middle of a query: reset, half closed, half open, no longer read, slow, interrupted."""

from __future__ import annotations

import pytest
from fault_service import ENGINES, GONE_UNDER_TLS, SERVER, Point

CUTS = ("reset", "half_close", "stop_reading", "swallow")
# Seconds: what is silent is noticed after so many.
DEADLINE = 3.0


@pytest.mark.parametrize(
    ("engine", "fault"),
    [("twopc", "half_close"), ("twopc", "stop_reading"), ("twopc", "swallow"), ("threepc", "reset")],
)
def test_a_connection_fails(deploy, outcomes, engine, fault):
    service = deploy(engine, deadline=DEADLINE)
    outcomes.add(service.cut(f"small network, {engine}", fault, service.points(1, phases=False)[0]))


def test_a_connection_goes_silent_under_tls(deploy, certificates, outcomes):
    service = deploy("twopc", own=certificates, deadline=DEADLINE)
    outcomes.add(service.cut("small network, twopc under TLS", "swallow", Point("connection", 0), GONE_UNDER_TLS))


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
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", CUTS)
@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_a_connection_fails_in_lenet(deploy_lenet, outcomes, engine, fault):
    service = deploy_lenet(engine, deadline=DEADLINE + 1)
    for point in service.points(5 if engine == "twopc" else 3):
        outcomes.add(service.cut(f"LeNet, {engine}", fault, point))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", CUTS)
def test_a_connection_fails_under_tls(deploy_lenet, certificates, outcomes, fault):
    service = deploy_lenet("twopc", own=certificates, deadline=DEADLINE + 1)
    for point in service.points(5, phases=False):
        outcomes.add(service.cut("LeNet, twopc under TLS", fault, point, GONE_UNDER_TLS))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", CUTS)
def test_a_connection_fails_in_an_actively_secure_query(deploy, outcomes, fault):
    service = deploy("active", deadline=DEADLINE + 1)
    for point in service.points(5):
        outcomes.add(service.cut("small network, active", fault, point))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ENGINES)
def test_jitter_and_outages_change_no_answer(deploy, deploy_lenet, engine):
    """200 ms of jitter each way; then nothing gets through for half of every second."""
    service = deploy("active", deadline=20.0) if engine == "active" else deploy_lenet(engine, deadline=20.0)
    service.settle()
    service.proxy.slow(0.0, 0.2)
    service.assert_answers()
    service.proxy.slow(0.0)
    service.proxy.interrupt(1.0, 0.5)
    service.assert_answers()
