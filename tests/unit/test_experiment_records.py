# SPDX-License-Identifier: Apache-2.0
"""Lines of experiments: what is kept, and what a table of them shows."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from privml.cli import sweep
from privml.measure import records


def made(engine: str, network: str, delay: float, seed: int = 0, **metrics: float) -> dict:
    config = {"engine": {"name": engine}, "network": {"delay_ms": delay}, "seed": seed}
    return records.record("trial", config, {"engine": engine, "network": network}, metrics)


def test_a_record_says_how_to_run_it_again() -> None:
    line = made("twopc", "lan", 0.4, seconds=1.5)
    assert line["status"] == "ok" and line["metrics"] == {"seconds": 1.5}
    assert set(line["git"]) == {"commit", "dirty"} and line["machine"]["cores"] >= 1
    assert line["config"]["network"] == {"delay_ms": 0.4} and line["config"]["seed"] == 0


def test_lines_written_side_by_side_do_not_mix(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "trial.jsonl"
    records.append(file, made("plain", "lan", 0.4))
    start = records.size(file)

    def write(index: int) -> None:
        for seed in range(20):
            records.append(file, made("twopc", "wan", 40.0, seed=100 * index + seed))

    threads = [threading.Thread(target=write, args=(index,)) for index in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(records.read(file)) == 81 and len(records.read(file, start)) == 80
    assert len({each["config"]["seed"] for each in records.read(file, start)}) == 80
    assert records.read(tmp_path / "none.jsonl") == [] and records.size(tmp_path / "none.jsonl") == 0


def test_a_table_shows_the_settings_that_differ() -> None:
    lines = [made("twopc", "lan", 0.4), made("twopc", "wan", 40.0), made("twopc", "wan", 40.0, seed=1)]
    assert records.varied(lines) == ["network", "seed"]  # what a group holds goes by its choice
    assert [records.setting(each, "network") for each in lines] == ["lan", "wan", "wan"]
    assert [records.setting(each, "seed") for each in lines] == ["0", "0", "1"]
    shaped = [made("twopc", "lan", 0.4), made("twopc", "lan", 5.0)]
    assert records.varied(shaped) == ["network.delay_ms"]


def test_a_table_shows_which_runs_have_no_numbers() -> None:
    fine = made("twopc", "lan", 0.4, seconds=2.0, online_bytes=1e6)
    failed = {**made("threepc", "lan", 0.4), "status": records.UNSUPPORTED, "reason": "no floats there"}
    columns = {column.header: list(column.cells) for column in sweep.table([fine, failed]).columns}
    assert columns == {
        "engine": ["twopc", "threepc"],
        "online": ["1.00 MB", ""],
        "seconds": ["2.000", ""],
        "status": ["ok", "unsupported"],
    }


def test_phases_of_a_ledger_become_metrics() -> None:
    count = {"sent": 3, "received": 4, "depth": 2, "seconds": 0.5}
    node = {"online": {"seconds": 0.25}}
    found = records.phases(
        {"total": dict.fromkeys(("setup", "preprocess", "online"), count), "nodes": [node, node, node]}
    )
    assert found["setup_bytes"] == 7 and found["online_depth"] == 2
    assert found["online_seconds"] == 0.75 and found["preprocess_seconds"] == 0.5


def test_runs_are_tracked(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    assert records.tracks()
    failed = records.record("trial", {"seed": 3}, {"engine": "plain"}, {}, records.FAILED, "lost")
    assert records.track([made("twopc", "lan", 0.4, seconds=1.5), failed], uri) == 2
    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("trial")
    runs = {run.data.params["choice.engine"]: run for run in client.search_runs([experiment.experiment_id])}
    assert runs["twopc"].data.metrics == {"seconds": 1.5} and runs["twopc"].info.status == "FINISHED"
    assert runs["twopc"].data.params["network.delay_ms"] == "0.4" and "git.commit" in runs["twopc"].data.tags
    assert runs["plain"].info.status == "FAILED" and runs["plain"].data.tags["reason"] == "lost"
