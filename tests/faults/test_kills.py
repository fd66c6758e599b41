# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each side in the middle of a query: the others say so in one line and go on."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fault_parties import ROOT
from fault_scenarios import ACTIVE, LANES, SCENARIOS, UNDER_TLS
from fault_service import CLIENT, DEALER, POINTS, SERVER

# One point each of the small network.
QUICK = [
    ("twopc", SERVER), ("twopc", CLIENT), ("threepc", CLIENT), ("threepc", DEALER), (ACTIVE, CLIENT),
    pytest.param(UNDER_TLS, SERVER, marks=pytest.mark.slow), (UNDER_TLS, CLIENT), (LANES, CLIENT),
]  # fmt: skip


@pytest.mark.parametrize(("scenario", "side"), QUICK)
def test_a_side_is_killed(deploy, outcomes, scenario, side):
    service = deploy(scenario)
    for point in service.points(1, phases=(scenario, side) == ("twopc", CLIENT)):
        outcomes.add(service.kill(side, point))
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
# A query takes long there: that the server goes on is asked once, at the end.
LONG = {ACTIVE: {"recheck": False, "deadline": 60.0}}


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("scenario", "side"), [(name, side) for name in SCENARIOS for side in SCENARIOS[name].sides])
def test_a_side_is_killed_at_every_point_of_lenet(deploy_lenet, outcomes, scenario, side):
    service = deploy_lenet(scenario, **LONG.get(scenario, {}))
    for point in service.points(POINTS):
        outcomes.add(service.kill(side, point))
    service.assert_answers()
