# SPDX-License-Identifier: Apache-2.0
"""The long run's verdicts, and a short long run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from fault_parties import ROOT

SPEC = importlib.util.spec_from_file_location("soak", ROOT / "scripts/soak.py")
soak = importlib.util.module_from_spec(SPEC)
sys.modules["soak"] = soak  # dataclasses look their module up
SPEC.loader.exec_module(soak)


class Ended:
    """A run as the verdict sees it."""

    def __init__(self, growth=0.0, descriptors=30, errors=()):
        chance = np.random.default_rng(1)
        self.settings, self.errors, self.misbehaved = dict(soak.DEFAULTS), list(errors), {}
        self.answers = [("mlp", 0.001 * (n + 1)) for n in range(100)]
        server = soak.Watched("serve mlp", None, "")
        for queries in range(0, 10_000, 100):
            rss = 300_000 + growth * queries / 1000 + chance.normal() * 50
            server.samples.append(soak.Sample(queries, int(rss), 30 if queries < 9900 else descriptors, 9))
        self.servers, self.watched = {"mlp": server}, [server]


def test_a_run_without_growth_passes():
    report, failures = soak.verdict(Ended(), 10.0)
    assert failures == [] and report["per_second"] == 10.0
    assert report["latency"] == pytest.approx({"p50": 0.051, "p95": 0.096, "p99": 0.1})
    assert abs(report["watched"]["serve mlp"]["kib_per_1000"]) < 20


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (Ended(growth=400.0), "serve mlp grows by"),
        (Ended(descriptors=31), "31 descriptors, 30 at the beginning"),
        (Ended(errors=["mlp: a wrong answer"]), "a wrong answer"),
    ],
)
def test_a_run_that_leaks_or_errs_fails(run, why):
    _, failures = soak.verdict(run, 10.0)
    assert len(failures) == 1 and why in failures[0]


def test_growth_is_found_within_its_error():
    growth = soak.growth_of(Ended(growth=400.0).watched[0].samples)
    assert abs(growth["kib_per_1000"] - 400) < 4 * growth["standard_error"] < 50


def test_wrong_answers_are_seen():
    exact = np.zeros((2, 3))
    assert soak.wrong(exact.copy(), exact, 0.0) == ""
    assert "wrong answer" in soak.wrong(exact + 1e-6, exact, 0.0)
    assert "wrong answer" in soak.wrong(exact[:1], exact, 1.0)
    assert "wrong answer" in soak.wrong(np.full((2, 3), np.nan), exact, 1.0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_a_short_long_run(tmp_path, engine):
    words = ["model=mlp", "queries=40", "per_client=10", "sample=10", "garbage=10", "leaving=10", "silent=0"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/soak.py"), *words, f"engine={engine}", f"out={tmp_path / 'soak.json'}"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    report = json.loads((tmp_path / "soak.json").read_text())
    assert report["answered"] == 40 and report["errors"] == report["failures"] == []
    assert report["misbehaved"]["garbage"] == report["misbehaved"]["leaving"] == 4
