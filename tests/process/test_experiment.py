# SPDX-License-Identifier: Apache-2.0
"""Sweeps of ``privml experiment``: lines, table, launchers, runs that fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import run
from patience import PATIENCE

from privml.cli import configuration, schemas

PROGRAM = "from privml.cli import main; main()"
REPOSITORY = Path(__file__).parents[2]


def experiment(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run("experiment", *arguments, cwd=cwd, check=False)


def shell(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """For launchers that start this interpreter again."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", PROGRAM, "experiment", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_sweep_leaves_a_line_per_run_and_a_table(tmp_path: Path) -> None:
    done = experiment(
        "-m", "name=trial", "model=mlp", "engine=plain,threepc", "numerics=fixed32,float32", "count=2", "tracking=null",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = {
        (each["choices"]["engine"], each["choices"]["numerics"]): each
        for each in lines(tmp_path / "experiments/trial.jsonl")
    }
    assert len(made) == 4
    assert made["threepc", "float32"]["status"] == "unsupported"
    assert "floating point" in made["threepc", "float32"]["reason"] and "floating point" in done.stdout
    ran = made["threepc", "fixed32"]
    assert ran["status"] == "ok" and ran["config"]["seed"] == 0 and ran["machine"]["cores"] >= 1
    for metric in ("accuracy", "same_label", "online_bytes", "online_depth", "online_seconds", "seconds"):
        assert ran["metrics"][metric] > 0, metric
    # What does not depend on time is the same again.
    assert (
        experiment("name=trial", "model=mlp", "engine=threepc", "count=2", "tracking=null", cwd=tmp_path).returncode
        == 0
    )
    again = lines(tmp_path / "experiments/trial.jsonl")[-1]["metrics"]
    for metric in ("accuracy", "online_bytes", "preprocess_bytes", "online_depth"):
        assert again[metric] == ran["metrics"][metric], metric


def test_an_experiment_of_training_from_its_file(tmp_path: Path) -> None:
    done = experiment(
        "+experiment=training_truncation", "count=4", "training.steps=2", "tracking=null", "quiet=true", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    made = lines(tmp_path / "experiments/training_truncation.jsonl")
    by_truncation = {each["config"]["engine"]["truncation"]: each["metrics"] for each in made}
    assert set(by_truncation) == {"exact", "faithful", "probabilistic"}
    assert by_truncation["exact"]["loss_error"] < 0.01 and by_truncation["faithful"]["loss_error"] < 0.01
    assert by_truncation["exact"]["online_bytes"] > by_truncation["faithful"]["online_bytes"]


def test_runs_go_side_by_side_with_joblib(tmp_path: Path) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    done = shell(
        "-m", "name=side", "model=mlp", "engine=plain", "numerics=fixed32,fixed64", "count=2", "tracking=null",
        "hydra/launcher=joblib", "hydra.launcher.n_jobs=2",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {each["choices"]["numerics"] for each in lines(tmp_path / "experiments/side.jsonl")} == {
        "fixed32",
        "fixed64",
    }
    assert "2 lines added" in done.stdout


def test_every_shipped_experiment_composes() -> None:
    from hydra import compose, initialize_config_dir

    folder = REPOSITORY / "configs"
    names = sorted(file.stem for file in (folder / "experiment").glob("*.yaml"))
    assert {"lenet_engines", "numerics_relevance", "ot_networks", "training_truncation"} <= set(names)
    configuration.register("experiment")
    for name in names:
        with initialize_config_dir(str(folder), version_base="1.3"):
            config = compose("experiment", overrides=[f"+experiment={name}"], return_hydra_config=True)
        assert config.name == name and config.hydra.mode.name == "MULTIRUN"
        for parameter, values in config.hydra.sweeper.params.items():
            assert parameter.partition(".")[0] in schemas.names("experiment")
            group = folder / parameter
            if group.is_dir():
                assert all((group / f"{value}.yaml").exists() for value in values.split(",")), (name, parameter)


@pytest.mark.parametrize(("override", "words"), [("task=dance", "task=dance"), ("engine=void", "void")])
def test_wrong_settings_end_at_once(tmp_path: Path, override: str, words: str) -> None:
    done = experiment("name=x", override, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and not (tmp_path / "experiments").exists()
