# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each side in the middle of a query: the others say so in one line and go on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fault_parties import ROOT
from fault_service import CLIENT, DEALER, GONE_UNDER_TLS, POINTS, SERVER

SIDES = [("twopc", SERVER), ("twopc", CLIENT), ("threepc", CLIENT), ("threepc", DEALER), ("active", CLIENT)]


@pytest.mark.parametrize(("engine", "side"), SIDES)
def test_a_side_is_killed(deploy, outcomes, engine, side):
    service = deploy(engine)
    for point in service.points(1, phases=(engine, side) == ("twopc", CLIENT)):
        outcomes.add(service.kill(f"small network, {engine}", side, point))
    if side != CLIENT:
        service.assert_answers()


@pytest.mark.parametrize("side", [pytest.param(SERVER, marks=pytest.mark.slow), CLIENT])
def test_a_side_is_killed_under_tls(deploy, certificates, outcomes, side):
    service = deploy("twopc", own=certificates)
    for point in service.points(1, phases=False):
        outcomes.add(service.kill("small network, twopc under TLS", side, point, GONE_UNDER_TLS))
    if side != CLIENT:
        service.assert_answers()


@pytest.mark.slow
def test_the_spawned_programs_are_those_of_the_command_line(deploy, tmp_path):
    """The same query by a program that was started from a shell, while its server is killed."""
    service = deploy("twopc")
    middle = service.points(1, phases=False)[0]
    service.up()
    service.proxy.restart()
    service.proxy.fail_at(middle.byte, service.parties[SERVER].kill)
    words = [f"program={service.program}/program", f"server={service.links[SERVER]}", "input=input.npy", "out=x.npy"]
    done = subprocess.run(
        [sys.executable, "-c", "from privml.cli import main; main()", "query", *words],
        cwd=service.folder, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("PeerDisconnected: peer 127.0.0.1:") and last.endswith("closed the connection")
    assert not (service.folder / "x.npy").exists()


# ---- the whole matrix
WHOLE = [("twopc", SERVER), ("twopc", CLIENT), ("threepc", SERVER), ("threepc", CLIENT), ("threepc", DEALER)]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("engine", "side"), WHOLE)
def test_a_side_is_killed_at_every_point_of_lenet(deploy_lenet, outcomes, engine, side):
    service = deploy_lenet(engine)
    for point in service.points(POINTS):
        outcomes.add(service.kill(f"LeNet, {engine}", side, point))
    service.assert_answers()


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("side", [SERVER, CLIENT])
def test_a_side_is_killed_at_every_point_of_an_actively_secure_lenet(deploy_lenet, outcomes, side):
    """A query takes half a minute and more: that the server goes on is asked once, at the end."""
    service = deploy_lenet("active", recheck=False, deadline=60.0)
    for point in service.points(POINTS):
        outcomes.add(service.kill("LeNet, active", side, point))
    service.assert_answers()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("side", [SERVER, CLIENT])
def test_a_side_is_killed_at_every_point_under_tls(deploy_lenet, certificates, outcomes, side):
    service = deploy_lenet("twopc", own=certificates)
    for point in service.points(POINTS, phases=False):
        outcomes.add(service.kill("LeNet, twopc under TLS", side, point, GONE_UNDER_TLS))
    service.assert_answers()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("side", [SERVER, CLIENT])
def test_a_side_is_killed_at_every_point_with_lanes(deploy_lenet, outcomes, side):
    service = deploy_lenet("twopc", words=["threads=2", "ot.refill=background"])
    for point in service.points(POINTS, phases=False):
        outcomes.add(service.kill("LeNet, twopc on two lanes, refilled in the background", side, point))
    service.assert_answers()
