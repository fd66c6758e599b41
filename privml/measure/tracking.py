# SPDX-License-Identifier: Apache-2.0
"""Records of experiments in MLflow, where it is installed (``pip install privml[experiments]``)."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from typing import Any

from privml.measure.record import flatten

# MLflow keeps so many characters of a parameter.
LONGEST_PARAMETER = 500


def available() -> bool:
    return importlib.util.find_spec("mlflow") is not None


def track(records: Sequence[Mapping[str, Any]], uri: str) -> int:
    """Logs each record as a run of the MLflow experiment of its name at ``uri`` (say sqlite:///mlflow.db): settings as
    parameters, numbers as metrics, status, revision and machine as tags. Returns how many."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import mlflow  # an extra, and slow to load
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    for each in records:
        found = client.get_experiment_by_name(each["experiment"])
        experiment = found.experiment_id if found is not None else client.create_experiment(each["experiment"])
        run = client.create_run(experiment, tags=_tags(each)).info.run_id
        parameters = {**flatten(each["config"]), **{f"choice.{key}": value for key, value in each["choices"].items()}}
        client.log_batch(
            run,
            metrics=[mlflow.entities.Metric(key, float(value), 0, 0) for key, value in each["metrics"].items()],
            params=[mlflow.entities.Param(key, str(value)[:LONGEST_PARAMETER]) for key, value in parameters.items()],
        )
        client.set_terminated(run, "FINISHED" if each["status"] == "ok" else "FAILED")
    return len(records)


def _tags(each: Mapping[str, Any]) -> dict[str, str]:
    tags = {"status": each["status"], "reason": each["reason"], "time": each["time"]}
    tags["git.commit"], tags["git.dirty"] = str(each["git"]["commit"]), str(each["git"]["dirty"])
    tags.update({f"machine.{key}": str(value) for key, value in each["machine"].items()})
    tags["mlflow.runName"] = ", ".join(str(value) for value in each["choices"].values())
    return tags
