# SPDX-License-Identifier: Apache-2.0
"""Times that nothing was measured for: near those of the zoo's records, at once, and replaced by what is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import run as privml

from models import load
from privml.cli import measuring
from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.errors import PeerDisconnected
from privml.measure import estimate, reference
from privml.measure.calibration import Calibration
from privml.measure.predict import calls_of
from privml.measure.records import Record, read_all
from privml.program import Program
from privml.spec import LinkProfile, SessionSpec

ROOT = Path(__file__).resolve().parents[2]
RECORDS = [each for each in read_all(ROOT / "benchmarks" / "results" / "zoo.jsonl") if each.model == "mlp"]
RECORDS = [each for each in RECORDS if each.measured is not None and each.engine != "plain"]


@pytest.fixture(scope="module")
def program() -> Program:
    model = load("mlp")
    return convert(model.module, calibration=model.preprocess(model.calibration), numerics=dict(model.numerics))


@pytest.fixture
def same_speed(tmp_path: Path) -> Calibration:
    """A machine as fast as the one of the figures."""
    return Calibration(tmp_path / "calibration.json", {estimate.SPEED: 1.0})


def spec_of(record: Record) -> SessionSpec:
    link = LinkProfile(record.network["delay_ms"], record.network["bandwidth_mbps"])
    ot = OtChoice(
        record.ot.split("-")[0] or "softspoken", security=SessionSpec(record.engine).backend.security or "semi_honest"
    )
    return replace(SessionSpec(record.engine), ot=ot, link=link)


@pytest.mark.parametrize("record", RECORDS, ids=lambda each: "-".join((*each.key[1:3], each.network["name"])))
def test_estimates_are_near_the_records_that_they_come_from(
    program: Program, same_speed: Calibration, record: Record
) -> None:
    times = estimate.forecast(program, program.shapes(record.rows), spec_of(record), same_speed)
    assert times.estimated and record.measured.seconds / 2.5 < times.seconds < 2.5 * record.measured.seconds


def test_a_slower_machine_takes_longer_beside_the_links_time(program: Program, same_speed: Calibration) -> None:
    shapes, spec = program.shapes(1), SessionSpec()
    one = estimate.forecast(program, shapes, spec, same_speed)
    same_speed.seconds[estimate.SPEED] = 3.0
    assert estimate.forecast(program, shapes, spec, same_speed).seconds == pytest.approx(3 * one.seconds, rel=0.05)
    far = replace(spec, link=LinkProfile(1000.0))
    late = estimate.forecast(program, shapes, far, same_speed)
    assert late.online > 1.0 * late.ledger.snapshot().online.depth


def test_the_speed_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIVML_CACHE", str(tmp_path))
    monkeypatch.setattr(estimate, "DRAWN", 1 << 10)
    assert estimate.speed(Calibration.load()) > 0
    monkeypatch.setattr(estimate, "measured_speed", None)
    assert estimate.speed(Calibration.load()) == json.loads(next(tmp_path.iterdir()).read_text())["seconds"]["speed"]


def test_what_was_measured_comes_before_figures(program: Program, same_speed: Calibration) -> None:
    class Known(dict):
        def __missing__(self, name: str) -> float:
            return 1.0

        def __contains__(self, name: object) -> bool:
            return True

    spec, shapes = SessionSpec(), program.shapes(1)
    times = estimate.forecast(program, shapes, spec, Calibration(same_speed.path, Known()))
    assert not times.estimated and times.online > len(calls_of(program, shapes, spec))


def test_an_engine_without_figures_has_no_times(
    program: Program, same_speed: Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimate, "figures", dict)
    assert estimate.forecast(program, program.shapes(1), SessionSpec(), same_speed) is None


def test_a_failed_measurement_leaves_an_estimate(
    program: Program, same_speed: Calibration, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts = []

    def fails(*arguments: object) -> None:
        attempts.append(arguments)
        raise PeerDisconnected("nobody connected")

    monkeypatch.setattr(reference, "forecast", fails)
    timer = measuring.Measuring(same_speed)
    for _ in range(2):
        assert timer(program, program.shapes(1), SessionSpec()).estimated
    assert len(attempts) == 1  # it may have taken minutes
    told = capsys.readouterr().err
    assert "nobody connected" in told and "calibrate=quick" in told


def test_cost_writes_in_the_users_cache_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, folder = tmp_path / "cache", tmp_path / "folder"
    folder.mkdir()
    monkeypatch.setenv("PRIVML_CACHE", str(cache))
    done = privml("cost", "model=mlp", "link=wan", cwd=folder)
    assert "figures of a reference machine" in done.stdout and "seconds" in done.stdout
    assert list(folder.iterdir()) == []
    assert sorted(each.suffix or each.name for each in cache.iterdir()) == [".json", "programs"]
