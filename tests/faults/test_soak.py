# SPDX-License-Identifier: Apache-2.0
"""The long run's verdicts, and a short long run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from fault_parties import ROOT

sys.path[:0] = [str(ROOT / "scripts")]
import soak  # noqa: E402
import soak_record  # noqa: E402
from pages import runs  # noqa: E402
from soak_record import Journal, Part, Sample  # noqa: E402

LIMIT = soak.DEFAULTS["limit_kib"]


def part(growth=0.0, descriptors=30, errors=(), ended=soak_record.ANSWERED, level=300_000):
    """Ten thousand queries, of which a hundred are told."""
    chance = np.random.default_rng(1)
    samples = [
        Sample(n, int(level + growth * n / 1000 + chance.normal() * 50), 30 if n < 9900 else descriptors, 9)
        for n in range(0, 10_000, 100)
    ]
    answers = [("mlp", 0.001 * (n + 1)) for n in range(100)]
    return Part(dict(soak.DEFAULTS), answers, list(errors), samples={"serve mlp": samples}, seconds=10.0, ended=ended)


def test_a_run_without_growth_passes():
    report, failures = soak_record.verdict([part()], 100, LIMIT)
    assert failures == [] and report["per_second"] == 10.0 and report["left"] == {"descriptors": 0, "threads": 0}
    assert report["latency"] == pytest.approx({"p50": 0.051, "p95": 0.096, "p99": 0.1})
    assert abs(report["watched"]["serve mlp"]["kib_per_1000"]) < 20


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (part(growth=400.0), "serve mlp grows by"),
        (part(descriptors=31), "1 descriptors more than at the beginning"),
        (part(errors=["mlp: a wrong answer"]), "a wrong answer"),
    ],
)
def test_a_run_that_leaks_or_errs_fails(run, why):
    for parts in ([run], [part(), run], [run, part()]):
        _, failures = soak_record.verdict(parts, 200, LIMIT)
        assert len(failures) == 1 and why in failures[0], failures


def test_growth_is_found_within_its_error():
    growth = soak_record.growth_of([part(growth=400.0).samples["serve mlp"]])
    assert abs(growth["kib_per_1000"] - 400) < 4 * growth["standard_error"] < 50


def test_growth_is_that_within_parts():
    """What a new server holds more or less than the one before is no growth."""
    runs = [part(growth=400.0, level=level).samples["serve mlp"] for level in (300_000, 900_000, 200_000)]
    growth = soak_record.growth_of(runs)
    assert abs(growth["kib_per_1000"] - 400) < 4 * growth["standard_error"] < 50


def test_parts_say_how_they_ended():
    """An interrupted one had clients under way at its end: what it held then is not held against it."""
    parts = [part(descriptors=33, ended=soak_record.INTERRUPTED), part()]
    report, failures = soak_record.verdict(parts, 10_000, LIMIT)
    assert failures == [] and report["answered"] == 200 and report["asked"] == 10_000 and report["seconds"] == 20.0
    assert [each["ended"] for each in report["parts"]] == ["interrupted", "all answered"]
    row = runs.long_run(json.loads(json.dumps(report)))
    assert row[0].endswith("; 2 parts one after another, each on new servers: 100, 100 answers")
    assert row[1] == "200 of 10,000 in 20 s (all answered)" and row[-1] == "none left"
    alone, _ = soak_record.verdict(parts[:1], 10_000, LIMIT)
    assert alone["left"] == {"descriptors": None, "threads": None}


def test_a_journal_survives_its_writer(tmp_path):
    file, settings = tmp_path / "run.journal", dict(soak.DEFAULTS)
    first = Journal(file, settings)
    for at in (0.5, 1.0):
        first.tell(at, answer="mlp", took=0.25)
    first.tell(2.0, sampled="serve mlp", sample={"queries": 2, "rss_kib": 9, "descriptors": 5, "threads": 3})
    first.tell(2.0, misbehaved="garbage")
    with file.open("a") as cut:
        cut.write('{"at": 3.0, "answer": "ml')  # killed as it wrote
    (kept,) = soak_record.read(file)
    assert kept == first.part and kept.seconds == 2.0 and not kept.whole and len(kept.answers) == 2
    second = Journal(file, settings, [kept])
    second.tell(0.5, answer="mlp", took=0.5, error="mlp: a wrong answer")
    second.tell(1.0, ended=soak_record.ANSWERED)
    assert soak_record.read(file) == [kept, second.part] == second.parts


def test_a_run_is_continued_as_it_was_begun(tmp_path):
    out, settings = tmp_path / "run.json", dict(soak.DEFAULTS)
    journal = soak_record.journal_of(settings, out)
    journal.tell(1.0, answer="mlp", took=0.25)
    with pytest.raises(SystemExit, match="interrupted after 1 answers; resume=true"):
        soak_record.journal_of(settings, out)
    with pytest.raises(SystemExit, match="other settings: engine, clients"):
        soak_record.journal_of({**settings, "resume": True, "engine": "threepc", "clients": 3}, out)
    going_on = soak_record.journal_of({**settings, "resume": True, "seconds": 60}, out)
    assert going_on.parts[0].answers == journal.part.answers and len(going_on.parts) == 2
    assert going_on.part.settings["seed"] != settings["seed"]
    with pytest.raises(SystemExit) as all_done:
        soak_record.journal_of({**settings, "resume": True, "queries": 1}, out)
    assert all_done.value.code == 0


def test_wrong_answers_are_seen():
    exact = np.zeros((2, 3))
    assert soak.wrong(exact.copy(), exact, 0.0) == ""
    assert "wrong answer" in soak.wrong(exact + 1e-6, exact, 0.0)
    assert "wrong answer" in soak.wrong(exact[:1], exact, 1.0)
    assert "wrong answer" in soak.wrong(np.full((2, 3), np.nan), exact, 1.0)


def run(out, *words):
    """A run of a few queries to its end."""
    command = [sys.executable, str(ROOT / "scripts/soak.py"), "model=mlp", "per_client=10", "sample=10", f"out={out}"]
    return subprocess.Popen(
        [*command, *words], env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_a_short_long_run(tmp_path, engine):
    with run(
        tmp_path / "soak.json", "queries=40", "garbage=10", "leaving=10", "silent=0", f"engine={engine}"
    ) as running:
        output, errors = running.communicate(timeout=600)
    assert running.returncode == 0, output[-2000:] + errors[-3000:]
    report = json.loads((tmp_path / "soak.json").read_text())
    assert report["answered"] == 40 and report["errors"] == report["failures"] == []
    assert report["misbehaved"]["garbage"] == report["misbehaved"]["leaving"] == 4


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_long_run_goes_on_after_it_was_interrupted(tmp_path):
    out, words = tmp_path / "soak.json", ("queries=60", "garbage=0", "leaving=0", "silent=0")
    with run(out, *words) as running:
        assert " queries, " in running.stdout.readline()  # the first sample
        running.terminate()
        output, errors = running.communicate(timeout=600)
    assert running.returncode == 1 and "resume=true goes on" in errors, output + errors
    before = json.loads(out.read_text())
    assert 10 <= before["answered"] < 60 and before["parts"][0]["ended"] == "interrupted"
    with run(out, *words, "resume=true") as running:
        output, errors = running.communicate(timeout=600)
    assert running.returncode == 0, output[-2000:] + errors[-3000:]
    report = json.loads(out.read_text())
    assert report["answered"] == 60 and report["failures"] == []
    assert [each["ended"] for each in report["parts"]] == ["interrupted", "all answered"]
    assert sum(each["answered"] for each in report["parts"]) == 60
