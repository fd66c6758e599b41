# SPDX-License-Identifier: Apache-2.0
"""What follows a sweep of ``privml experiment``: a table of its runs, and MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from privml.cli import console
from privml.measure import records

# Metric -> (its column, how it is shown).
COLUMNS: dict[str, tuple[str, Any]] = {
    "accuracy": ("accuracy", lambda x: f"{x:.1%}"),
    "accuracy_clear": ("in clear", lambda x: f"{x:.1%}"),
    "same_label": ("same label", lambda x: f"{x:.1%}"),
    "largest_error": ("largest error", lambda x: f"{x:.3g}"),
    "loss_error": ("loss beside clear", lambda x: f"{x:.3g}"),
    "preprocess_bytes": ("ahead", console.size),
    "online_bytes": ("online", console.size),
    "online_depth": ("depth", lambda x: f"{x:.0f}"),
    "seconds": ("seconds", lambda x: f"{x:.3f}"),
}


def file_of(config: DictConfig) -> Path:
    return Path(config.results) / f"{config.name}.jsonl"


class Table(Callback):
    """Shows the records that were added while runs went on, and tracks them."""

    def __init__(self) -> None:
        self._start = 0

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        self._start = records.size(file_of(config))

    on_multirun_start = on_run_start

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        made = records.read(file_of(config), self._start)
        if not made:
            return
        if not config.quiet:
            console.out.print(table(made))
            for why in dict.fromkeys(f"{each['status']}: {each['reason']}" for each in made if each["reason"]):
                console.out.print(why, markup=False, soft_wrap=True)
            console.out.print(f"{len(made)} lines added to {file_of(config)}", markup=False)
        if config.tracking is None:
            return
        if not records.tracks():
            console.err.print(
                "not tracked: MLflow is missing (pip install 'privml[experiments]'; tracking=null: never)"
            )
            return
        count = records.track(made, str(config.tracking))
        if not config.quiet:
            console.out.print(f"{count} runs tracked; mlflow ui --backend-store-uri {config.tracking}", markup=False)

    on_multirun_end = on_run_end


def table(made: Sequence[Mapping[str, Any]]) -> Any:
    """A row per run: the settings in which they differ, then what was measured."""
    names = records.varied(made) or ["model", "engine"]
    shown = [key for key in COLUMNS if any(key in each["metrics"] for each in made)]
    failed = any(each["status"] != records.OK for each in made)
    rows = []
    for each in made:
        metrics = each["metrics"]
        row = [records.setting(each, name) for name in names]
        row += [COLUMNS[key][1](metrics[key]) if key in metrics else "" for key in shown]
        rows.append([*row, each["status"]] if failed else row)
    columns = [*names, *(COLUMNS[key][0] for key in shown), *(["status"] if failed else [])]
    return console.table(f"{made[0]['experiment']}: {len(made)} runs", columns, rows)
