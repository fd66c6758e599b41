# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/predict_times.py [--models lenet,vowels] [--engines threepc] [--networks loopback,lan,wan]``

What ``privml cost`` predicts for a query of one input beside what it takes: bytes, which must be equal, and seconds.
Each query runs between fresh processes on this machine, over TCP shaped as the network says, ``--repeats`` times; the
median counts. One JSON line for each, appended to ``--out``, and a table. On a quiet machine, after
``--calibrate``, the ratios are what docs/costs.md tells.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import models  # noqa: E402
from privml.conversion import convert  # noqa: E402
from privml.engines.correlations import OtChoice  # noqa: E402
from privml.planning.calibration import Calibration  # noqa: E402
from privml.planning.engines import offer_of  # noqa: E402
from privml.planning.machine import machine, revision  # noqa: E402
from privml.planning.reference import forecast  # noqa: E402
from privml.planning.times import cost_of  # noqa: E402
from privml.program import INPUT_OWNER, Program  # noqa: E402
from privml.service.choose_ot import LinkProfile  # noqa: E402
from privml.service.launch import Run, launch  # noqa: E402
from privml.session.ledger import PHASES  # noqa: E402

# Numerics of each model and the engines that it runs on.
ROWS = {
    "lenet": ("fixed32", ("twopc", "threepc", "active")),
    "mlp": ("fixed32", ("twopc", "threepc", "active")),
    "power": ("fixed32", ("twopc", "threepc")),
    "motions": ("fixed32", ("twopc", "threepc")),
    "vowels": ("fixed32", ("twopc", "threepc")),
    "tumours": ("fixed32", ("twopc", "threepc")),
    "encoder": ("fixed32", ("twopc", "threepc")),
    "relevance": ("float32", ("twopc",)),
    "vgg16": ("fixed64", ("threepc",)),
    "resnet18": ("fixed64", ("threepc",)),
}


def source_of(name: str) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """Module, calibration data, one input."""
    model = models.load(name)
    return model.module, model.preprocess(model.calibration), model.preprocess(model.samples)[:1]


@lru_cache(maxsize=1)
def program_of(name: str) -> tuple[Program, torch.Tensor]:
    module, calibration, value = source_of(name)
    numerics = OmegaConf.load(ROOT / "configs" / "numerics" / f"{ROWS[name][0]}.yaml")
    return convert(module, calibration=calibration, numerics=dict(numerics)), value


def client_bytes(ledger: dict[str, Any]) -> dict[str, list[int]]:
    return {name: [ledger["total"][name][side] for side in ("sent", "received", "depth")] for name in PHASES}


def measured(run: Run) -> dict[str, Any]:
    phases = {name: run.client.ledger["total"][name]["seconds"] for name in PHASES}
    online = sum(node["online"]["seconds"] for node in run.client.ledger["nodes"])
    return {"seconds": run.client.seconds, **phases, "online": online}


def compare(name: str, engine: str, network: str, repeats: int, calibration: Calibration, ot: OtChoice) -> dict:
    program, value = program_of(name)
    shape = OmegaConf.load(ROOT / "configs" / "network" / f"{network}.yaml")
    link, shapes = LinkProfile(shape.delay_ms, shape.bandwidth_mbps), program.shapes(len(value))
    setting = offer_of(engine).setting(ot)
    times = forecast(program, shapes, setting, link, calibration)
    cost = cost_of(program, shapes, setting, INPUT_OWNER)
    wire = {"delay_ms": link.delay_ms, "bandwidth_mbps": link.bandwidth_mbps}
    wanted = {"ot": setting.ot or ot, "network": wire, "dealer": setting.parties == 3, "ring": setting.ring}
    runs = [launch(program, value, deadline=3600.0, **wanted) for _ in range(repeats)]
    exact = all(client_bytes(run.client.ledger) == client_bytes(cost.as_dict()) for run in runs)
    found = [measured(run) for run in runs]
    median = {key: statistics.median(each[key] for each in found) for key in found[0]}
    predicted = {key: getattr(times, key) for key in ("seconds", "greeting", "setup", "preprocess")}
    predicted["online"] = sum(seconds for node, seconds in times.nodes.items() if node != "reveal")  # of layers, too
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "model": name,
        "numerics": ROWS[name][0],
        "engine": engine,
        "network": network,
        "predicted": predicted,
        "measured": median,
        "all_measured": [each["seconds"] for each in found],
        "ratio": predicted["seconds"] / median["seconds"],
        "online_ratio": predicted["online"] / median["online"],
        "exact_bytes": exact,
        "machine": machine(),
        "git": revision(ROOT),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(ROWS))
    parser.add_argument("--engines", default="twopc,threepc,active")
    parser.add_argument("--networks", default="loopback,lan,wan")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--calibrate", action="store_true", help="measure everything again")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "predicted-times.jsonl")
    options = parser.parse_args()
    calibration, ot = Calibration.load(options.calibrate), OtChoice()
    print("| model | engine | network | predicted s | measured s | ratio | online ratio | bytes |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for name in options.models.split(","):
        for engine in [each for each in ROWS[name][1] if each in options.engines.split(",")]:
            for network in options.networks.split(","):
                row = compare(name, engine, network, options.repeats, calibration, ot)
                with options.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    f"| {name} | {engine} | {network} | {row['predicted']['seconds']:.3f} "
                    f"| {row['measured']['seconds']:.3f} | {row['ratio']:.2f} | {row['online_ratio']:.2f} "
                    f"| {'equal' if row['exact_bytes'] else 'DIFFERENT'} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
