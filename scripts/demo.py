# SPDX-License-Identifier: Apache-2.0
"""Private classification of ten handwritten digits between two processes, from PyTorch and from ONNX.

The server (party 0) owns LeNet-5's weights, the client (party 1) the images. Exits 0 only if every secure answer equals
the clear model's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from models import load  # noqa: E402
from privml.cli import console  # noqa: E402
from privml.cli.ledgers import layer_table, phase_table  # noqa: E402
from privml.conversion import convert  # noqa: E402
from scripts.export_onnx import export  # noqa: E402

DIGITS = 10
SECONDS_TO_ANSWER = 120


def main() -> int:
    torch.set_num_threads(1)
    model = load("lenet")
    inputs = model.preprocess(model.samples[:DIGITS])
    with torch.no_grad():
        clear = model.module(inputs)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="privml-demo-") as name:
        folder = Path(name)
        np.save(folder / "digits.npy", inputs.numpy())
        onnx_file = folder / "lenet.onnx"
        export(model.module, model.example, onnx_file)
        calibration = model.preprocess(model.calibration)
        for road, source in (("torch.export", model.module), ("ONNX", str(onnx_file))):
            say(f"\nLeNet-5 through {road}")
            start = time.monotonic()
            program = convert(source, calibration=calibration)
            program.save(folder / road)
            say(f"converted in {time.monotonic() - start:.1f} s, program {program.hash[:16]}")
            scores, ledger = classify(folder, folder / road)
            wrong += report(scores, clear, model.labels[:DIGITS])
            console.out.print(
                layer_table("Online cost by layer: bytes in both directions, one-way messages in sequence", ledger)
            )
            console.out.print(phase_table("Totals as the client sees them", ledger))
    say("all secure answers equal the clear ones" if wrong == 0 else f"{wrong} answers differ from the clear model's")
    return 0 if wrong == 0 else 1


def say(text: str) -> None:
    print(text, flush=True)


def classify(folder: Path, converted: Path) -> tuple[torch.Tensor, dict]:
    """Scores of the digits, computed by `privml serve` and `privml query` as two processes over TCP."""
    privml = [sys.executable, "-c", "from privml.cli import main; main()"]
    program = f"program={converted}/program"
    serve = [*privml, "serve", program, f"weights={converted}/weights.safetensors", "listen=127.0.0.1:0", "queries=1"]
    out, ledger = folder / "scores.npy", folder / "ledger.json"
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            first = server.stdout.readline()
            port = first.split("port ")[1].split(",")[0]
            say(f"server: party 0, process {server.pid}, port {port}, owns the weights")
            client = subprocess.run(
                [
                    *privml,
                    "query",
                    program,
                    f"server=127.0.0.1:{port}",
                    f"input={folder}/digits.npy",
                    f"out={out}",
                    f"ledger={ledger}",
                    "quiet=true",
                ],
                cwd=ROOT,
                timeout=SECONDS_TO_ANSWER,
                check=False,
            )
            if client.returncode != 0:
                raise SystemExit("the client failed; its message stands above")
            say(f"server: {server.stdout.readline().strip()}")
        finally:
            server.terminate()
    return torch.from_numpy(np.load(out)), json.loads(ledger.read_text())


def report(scores: torch.Tensor, clear: torch.Tensor, labels: torch.Tensor) -> int:
    """Prints a row per digit; returns how many answers differ from the clear model's."""
    secure, expected = scores.argmax(1), clear.argmax(1)
    rows = [
        [
            str(i),
            str(secure[i].item()),
            str(expected[i].item()),
            str(labels[i].item()),
            f"{(scores[i] - clear[i]).abs().max():.4f}",
        ]
        for i in range(len(labels))
    ]
    columns = ["digit", "secure answer", "clear model", "label", "largest score difference"]
    console.out.print(console.table("Answers", columns, rows))
    return int((secure != expected).sum())


if __name__ == "__main__":
    sys.exit(main())
