# SPDX-License-Identifier: Apache-2.0
"""scripts/train.py as users start it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = str(ROOT / "scripts/train.py")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def lines_of(folder):
    return [json.loads(line) for line in (folder / "losses.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("how", [["engine=plain"], ["processes=true"]], ids=["plain", "three processes"])
def test_training_follows_the_clear_loop(how, tmp_path):
    pytest.importorskip("mlxtend")
    command = [sys.executable, SCRIPT, *how, "steps=3", "train.batch=8", f"out={tmp_path}"]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    report, *steps = lines_of(tmp_path)
    assert len(steps) == 3 and len({step["clear"] for step in steps}) == 3
    assert max(abs(step["clear"] - step["secret"]) for step in steps) < 0.01
    assert (report["online_bytes_per_step"] > 0) == (how != ["engine=plain"])
    assert (tmp_path / "losses.png").stat().st_size > 1000


RECIPES = {
    "vertical": ["train=logistic", "split=vertical", "show_accuracy=2"],
    "horizontal, traced": ["train=logistic", "split=horizontal", "way=traced", "show_loss=2"],
    "small": ["train=small", "split=vertical", "train.momentum=0", "way=traced"],
    "gru": ["train=gru", "way=traced"],
    "relevance": ["train=relevance", "train.settings.features=20", "train.settings.hidden=[6]"],
    "mlp": ["train=mlp", "train.settings.hidden=[8]", "train.batch=8"],
    "floats": ["train=small", "floating=float32", "train.optimizer=adam", "train.rate=0.05", "+train.eps=1e-8"],
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_and_splits(recipe, tmp_path):
    """In the clear, with the numbers of the secure engines."""
    if recipe in ("mlp", "gru"):
        pytest.importorskip({"mlp": "mlxtend", "gru": "sktime"}[recipe])
    pytest.importorskip("sklearn")
    command = [sys.executable, SCRIPT, "engine=plain", "steps=4", f"out={tmp_path}", "quiet=true", *RECIPES[recipe]]
    done = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    report, *lines = lines_of(tmp_path)
    steps = [line for line in lines if "secret" in line]
    every = report["settings"]["show_loss"]
    assert [line["step"] for line in steps] == list(range(every, 5, every))
    assert max(abs(line["clear"] - line["secret"]) for line in steps) < 0.01
    accuracies = [line for line in lines if "accuracy" in line]
    assert [line["step"] for line in accuracies] == ([2, 4] if recipe == "vertical" else [])
    assert all(0 < line["accuracy"] <= 1 for line in accuracies)


def parties(folder, engine, *more):
    """One process per party, as on different machines."""
    listener, dealer = [f"127.0.0.1:{port}" for port in free_ports(2)]
    three = engine[0] == "engine=threepc"
    places = [[f"listen={listener}"], [f"connect={listener}"]]
    if three:
        places = [[*place, f"dealer={dealer}"] for place in places] + [[f"listen={dealer}"]]
    command = [sys.executable, SCRIPT, *engine, "train=logistic", "split=vertical", "steps=12"]
    command += ["save_every=2", "compare=false", "quiet=true", f"out={folder}", *more]
    return [
        subprocess.Popen([*command, f"rank={rank}", *place], env=ENVIRONMENT, cwd=folder)
        for rank, place in enumerate(places)
    ]


def free_ports(count):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


DETERMINISTIC = {
    "twopc, eager": ["engine=twopc"],
    "threepc, traced": ["engine=threepc", "engine.truncation=exact", "way=traced"],
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", DETERMINISTIC)
def test_a_run_whose_parties_were_all_killed_ends_as_if_they_had_not_been(how, tmp_path):
    """With truncations that are functions of the values, whatever the shares are."""
    pytest.importorskip("sklearn")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    assert [party.wait(240) for party in parties(whole, DETERMINISTIC[how])] == [0] * (3 if "three" in how else 2)
    running = parties(broken, DETERMINISTIC[how])
    try:
        deadline = time.monotonic() + 240
        while not any(path.name >= "step-000000004.safetensors" for path in (broken / "party-0").glob("step-*")):
            assert time.monotonic() < deadline and all(party.poll() is None for party in running)
            time.sleep(0.002)
    finally:
        for party in running:
            party.kill()
            party.wait()
    assert not (broken / "losses.jsonl").exists()  # killed before its end
    saved = [sorted(path.name for path in (broken / f"party-{r}").iterdir()) for r in range(len(running))]
    assert all(saved) and "step-000000012.safetensors" not in sum(saved, [])
    assert [party.wait(240) for party in parties(broken, DETERMINISTIC[how], "resume=true")] == [0] * len(running)
    assert (broken / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    curves = [[line["secret"] for line in lines_of(folder)[1:]] for folder in (whole, broken)]
    assert curves[0] == curves[1] and len(curves[0]) == 12 and curves[0][-1] < 0.5 * curves[0][0]
