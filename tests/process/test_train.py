# SPDX-License-Identifier: Apache-2.0
"""``privml train`` as users start it."""

from __future__ import annotations

import contextlib
import json
import shutil
import time

import pytest
from commands import Command, run
from patience import PATIENCE
from ports import reserved

from privml.cli.train import start


def lines_of(folder):
    return [json.loads(line) for line in (folder / "losses.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("how", [["engine=plain"], ["processes=true"]], ids=["plain", "three processes"])
def test_training_follows_the_clear_loop(how, tmp_path):
    pytest.importorskip("mlxtend")
    run("train", *how, "steps=3", "train.batch=8", f"out={tmp_path}", cwd=tmp_path)
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
    "adam": ["train=small", "split=vertical", "train.optimizer=adam", "train.rate=0.01"],
    "floats": ["train=small", "floating=float32", "train.optimizer=adam", "train.rate=0.05", "train.eps=1e-8"],
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_and_splits(recipe, tmp_path):
    """In the clear, with the numbers of the secure engines."""
    if recipe in ("mlp", "gru"):
        pytest.importorskip({"mlp": "mlxtend", "gru": "sktime"}[recipe])
    pytest.importorskip("sklearn")
    run("train", "engine=plain", "steps=4", f"out={tmp_path}", "quiet=true", *RECIPES[recipe], cwd=tmp_path)
    report, *lines = lines_of(tmp_path)
    steps = [line for line in lines if "secret" in line]
    every = report["settings"]["show_loss"]
    assert [line["step"] for line in steps] == list(range(every, 5, every))
    assert max(abs(line["clear"] - line["secret"]) for line in steps) < 0.01
    accuracies = [line for line in lines if "accuracy" in line]
    assert [line["step"] for line in accuracies] == ([2, 4] if recipe == "vertical" else [])
    assert all(0 < line["accuracy"] <= 1 for line in accuracies)


@pytest.fixture
def parties():
    """Starts one process per party, as on different machines, and ends them with the test."""

    def start(folder, engine, *more, own=None):
        listener, dealer = addresses
        three = engine[0] == "engine=threepc"
        places = [[f"listen={listener}"], [f"connect={listener}"]]
        if three:
            places = [[*place, f"dealer={dealer}"] for place in places] + [[f"listen={dealer}"]]
        command = ["train", *engine, "train=logistic", "split=vertical", "steps=12"]
        command += ["save_every=2", "compare=false", "quiet=true", f"out={folder}", *more]
        return [
            stack.enter_context(Command(*command, f"rank={rank}", *place, *([next(own)] if own else []), cwd=folder))
            for rank, place in enumerate(places)
        ]

    with reserved(2) as addresses, contextlib.ExitStack() as stack:
        yield start


def killed_between_checkpoints(start, folder):
    """What is left of a run whose parties were all killed after step 4 and before the last one's checkpoint. A run
    that was faster than this process is tried again."""
    while True:
        shutil.rmtree(folder)
        folder.mkdir()
        running = start(folder)
        while not any(path.name >= "step-000000004.safetensors" for path in (folder / "party-0").glob("step-*")):
            assert not any(party.poll() for party in running)
            time.sleep(0.002)
        for party in running:
            party.kill()
        saved = [sorted(path.name for path in (folder / f"party-{r}").iterdir()) for r in range(len(running))]
        if not (folder / "losses.jsonl").exists() and "step-000000012.safetensors" not in sum(saved, []):
            assert all(saved)
            return


DETERMINISTIC = {
    "twopc, eager": ["engine=twopc"],
    "threepc, traced": ["engine=threepc", "engine.truncation=exact", "way=traced"],
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("how", DETERMINISTIC)
def test_a_run_whose_parties_were_all_killed_ends_as_if_they_had_not_been(parties, how, tmp_path):
    """With truncations that are functions of the values, whatever the shares are."""
    pytest.importorskip("sklearn")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    succeeded = [0] * (3 if "three" in how else 2)
    assert [party.wait() for party in parties(whole, DETERMINISTIC[how])] == succeeded
    killed_between_checkpoints(lambda folder: parties(folder, DETERMINISTIC[how]), broken)
    resumed = parties(broken, DETERMINISTIC[how], "resume=true")
    assert [party.wait() for party in resumed] == succeeded
    assert (broken / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    curves = [[line["secret"] for line in lines_of(folder)[1:]] for folder in (whole, broken)]
    assert curves[0] == curves[1] and len(curves[0]) == 12 and curves[0][-1] < 0.5 * curves[0][0]


def trained(folder, *more):
    """Logistic regression in the clear, with the numbers of the secure engines."""
    recipe = ["engine=plain", "train=logistic", "save_every=2", "quiet=true", "out=run", *more]
    return run("train", *recipe, cwd=folder, check=False)


def test_a_resumed_run_may_go_on_for_longer_and_with_another_rate(tmp_path):
    pytest.importorskip("sklearn")
    assert trained(tmp_path, "train.epochs=1").returncode == 0
    first = [line["secret"] for line in lines_of(tmp_path / "run")[1:]]
    done = trained(tmp_path, "train.epochs=2", "train.rate=0.1", "resume=true")
    assert done.returncode == 0, done.stderr
    lines = lines_of(tmp_path / "run")[1:]
    assert len(lines) == 2 * len(first) and [line["secret"] for line in lines[:6]] == first[:6]
    # In the clear, too, every step has the rate of its time.
    assert max(abs(line["clear"] - line["secret"]) for line in lines) < 0.01
    slower = lines[-1]["secret"]
    assert trained(tmp_path, "train.epochs=2", "resume=false").returncode == 0
    assert lines_of(tmp_path / "run")[-1]["secret"] != slower


def test_a_resumed_run_with_other_settings_names_each(tmp_path):
    pytest.importorskip("sklearn")
    assert trained(tmp_path, "steps=2").returncode == 0
    done = trained(tmp_path, "steps=4", "resume=true", "train.batch=32", "seed=4")
    assert done.returncode == 1
    assert "was saved with train.batch=64, now 32; seed=3, now 4" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and len(done.stderr) < 300


def test_parties_with_different_rates_are_told_apart_before_anything_is_revealed(parties, tmp_path):
    pytest.importorskip("sklearn")
    own = iter(["train.rate=0.5", "train.rate=0.25"])
    running = parties(tmp_path, ["engine=twopc"], "show_loss=0", own=own)
    assert [party.wait() for party in running] == [1, 1]
    assert any("ProgramsDiffer" in party.stderr.read() for party in running)
    assert not list(tmp_path.glob("losses.jsonl"))


@pytest.mark.parametrize(
    "wrong, words",
    [
        (["rank=0"], "rank=0 needs listen"),
        (["listen=127.0.0.1:9000"], "rank=0, 1 or 2"),
        (["train.model=lenett"], "did you mean lenet?"),
        (["train=logistic", "train.settings.hidden=[8]"], "train.settings"),
        (["train.epochs=0"], "train.epochs=0 must be a whole number, at least 1"),
        (["train=logistic", "engine=plain", "way=traced", "train.optimizer=adam"], "train.optimizer=sgd"),
    ],
)
def test_a_wrong_call_is_one_line(wrong, words, tmp_path):
    done = run("train", *wrong, cwd=tmp_path, check=False)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_starts_a_party_runs_the_command(tmp_path):
    """Other tests replace it (commands.py)."""
    with open(tmp_path / "errors", "w+") as errors:
        assert start(["nonsense"], errors).wait(PATIENCE) != 0
        assert start(["--version"], errors).wait(PATIENCE) == 0
        errors.seek(0)
        assert "nonsense" in errors.read()


def test_parties_in_processes_of_their_own_fail_with_one_message(tmp_path):
    pytest.importorskip("sklearn")
    recipe = ["train", "train=logistic", "engine=twopc", "processes=true", "quiet=true", "out=run", "compare=false"]
    run(*recipe, "steps=2", "save_every=2", cwd=tmp_path)
    done = run(*recipe, "steps=4", "resume=true", "seed=4", cwd=tmp_path, check=False)
    assert done.returncode == 1 and done.stderr.count("seed=3, now 4") == 1
