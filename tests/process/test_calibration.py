# SPDX-License-Identifier: Apache-2.0
"""Times of calls, measured between real processes; and bytes that the prediction of a query has exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from privml.conversion import convert
from privml.measure import reference
from privml.measure.calibration import Calibration
from privml.measure.launch import launch
from privml.measure.predict import calls_of, times_of
from privml.program import Program
from privml.session.ledger import PHASES
from privml.spec import SessionSpec


@pytest.fixture(scope="module")
def program() -> Program:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).eval()
    return convert(module, calibration=torch.rand(8, 6), numerics={"bits": 32})


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small reference query, once, and a cache of its own."""
    monkeypatch.setenv("PRIVML_CACHE", str(tmp_path))
    monkeypatch.setattr(reference, "RUNS", 1)
    monkeypatch.setattr(reference, "LAYERS", 2)
    monkeypatch.setattr(reference, "FEW", 1)


def test_every_call_is_measured_once_and_kept(program: Program, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, shapes = SessionSpec("twopc"), program.shapes(2)
    calls, calibration = calls_of(program, shapes, spec), Calibration.load()
    assert not calibration.knows(spec, calls)
    reference.calibrate(calibration, spec, calls)
    assert calibration.knows(spec, calls)
    assert all(calibration.of(spec, call) > 0 for call in calls)
    times = times_of(program, shapes, spec, calibration)
    assert times.online > sum(calibration.of(spec, call) for call in calls) and times.seconds > times.online
    monkeypatch.setattr(reference, "launch", None)  # nothing is measured again
    reference.calibrate(Calibration.load(), spec, calls)


@pytest.mark.parametrize("name", ["twopc", "threepc"])
def test_bytes_and_depth_are_predicted_exactly(program: Program, name: str) -> None:
    run = launch(program, torch.rand(3, 6), SessionSpec(name))
    shapes = program.shapes(3)
    for rank, report in enumerate((run.server, run.client)):
        cost = program.cost(shapes, SessionSpec(name), rank)
        for phase in PHASES:
            predicted, found = getattr(cost.snapshot(), phase), report.ledger["total"][phase]
            assert (predicted.sent, predicted.received) == (found["sent"], found["received"]), (rank, phase)
            if phase == "online":
                assert predicted.depth == found["depth"], rank
