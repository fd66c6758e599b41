# SPDX-License-Identifier: Apache-2.0
"""Private classification of ten handwritten digits between two processes, from PyTorch and from ONNX.

The server (party 0) owns LeNet-5's weights, the client (party 1) the images. Exits 0 only if every secure answer equals
the clear model's. Prints at most 40 lines, the last of them what each side gains.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from models import load  # noqa: E402
from privml.cli import console  # noqa: E402
from privml.conversion import convert  # noqa: E402
from scripts.export_onnx import export  # noqa: E402

DIGITS = 10
SECONDS_TO_ANSWER = 120
PRIVML = [sys.executable, "-c", "from privml.cli import main; main()"]
# A character of the picture stands for two dark or light squares, one above the other, of so many pixels each way.
SQUARE, SHADES = 2, " ▀▄█"
ABREAST = 5


@dataclass(frozen=True)
class Answer:
    """What the client learned, and its ledger's totals."""

    scores: torch.Tensor
    total: dict

    @property
    def labels(self) -> list[int]:
        return self.scores.argmax(1).tolist()

    def all_phases(self, name: str) -> float:
        return sum(self.total[phase][name] for phase in ("setup", "preprocess", "online"))


def main() -> int:
    torch.set_num_threads(1)
    model = load("lenet")
    inputs, labels = model.preprocess(model.samples[:DIGITS]), model.labels[:DIGITS].tolist()
    calibration = model.preprocess(model.calibration)
    start = time.perf_counter()
    with torch.no_grad():
        clear = model.module(inputs)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory(prefix="privml-demo-") as name:
        folder = Path(name)
        np.save(folder / "digits.npy", inputs.numpy())
        export(model.module, model.example, folder / "lenet.onnx")
        roads = {"PyTorch": model.module, "ONNX": str(folder / "lenet.onnx")}
        for road, source in roads.items():
            start = time.monotonic()
            program = convert(source, calibration=calibration)
            program.save(folder / road)
            say(f"LeNet-5 from {road} converted in {time.monotonic() - start:.1f} s, program {program.hash[:16]}")
        answers = {road: classify(folder, folder / road) for road in roads}
    expected = clear.argmax(1).tolist()
    secure = answers["PyTorch"]
    show_digits(model.samples[:DIGITS], {"secure answer": secure.labels, "clear model": expected, "label": labels})
    console.out.print(gains(secure, clear, labels, seconds, inputs.nbytes))
    wrong = sum(DIGITS - right(answer.labels, expected) for answer in answers.values())
    say("all secure answers equal the clear ones" if wrong == 0 else f"{wrong} answers differ from the clear model's")
    return 0 if wrong == 0 else 1


def say(text: str) -> None:
    print(text, flush=True)


def right(found: Sequence[int], wanted: Sequence[int]) -> int:
    return sum(a == b for a, b in zip(found, wanted, strict=True))


def classify(folder: Path, converted: Path) -> Answer:
    """Scores of the digits, computed by `privml serve` and `privml query` as two processes over TCP."""
    program = f"program={converted}/program"
    serve = [*PRIVML, "serve", program, f"weights={converted}/weights.safetensors", "listen=127.0.0.1:0", "queries=1"]
    out, ledger = folder / "scores.npy", folder / "ledger.json"
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            port = server.stdout.readline().split("port ")[1].split(",")[0]
            say(f"server: party 0, process {server.pid}, owns the weights, port {port}")
            query = [
                *PRIVML, "query", program, f"server=127.0.0.1:{port}", f"input={folder}/digits.npy", f"out={out}",
                f"ledger={ledger}", "quiet=true",
            ]  # fmt: skip
            with subprocess.Popen(query, cwd=ROOT) as client:
                say(f"client: party 1, process {client.pid}, owns the images")
                if client.wait(SECONDS_TO_ANSWER) != 0:
                    raise SystemExit("the client failed; its message stands above")
        finally:
            server.terminate()
    return Answer(torch.from_numpy(np.load(out)), json.loads(ledger.read_text())["total"])


def show_digits(images: torch.Tensor, rows: dict[str, list[int]]) -> None:
    """The images, some side by side, and below each what ``rows`` say of it."""
    middle = np.asarray(images, np.float64).reshape(len(images), 28, 28)[:, 4:24, 4:24]
    side = middle.shape[1] // SQUARE
    squares = middle.reshape(len(images), side, SQUARE, side, SQUARE).mean((2, 4))
    dark = (squares > 0.35 * squares.max()).astype(int)
    shades = dark[:, ::2] + 2 * dark[:, 1::2]
    margin = max(map(len, rows)) + 2
    for first in range(0, len(images), ABREAST):
        chosen = range(first, min(first + ABREAST, len(images)))
        for line in range(side // 2):
            say(" " * margin + "   ".join("".join(SHADES[shade] for shade in shades[i, line]) for i in chosen))
        for name, values in rows.items():
            say(name.ljust(margin) + "   ".join(str(values[i]).center(side) for i in chosen))


def gains(answer: Answer, clear: torch.Tensor, labels: list[int], seconds: float, image_bytes: int) -> Table:
    """What the model in the clear and the secure one reveal and cost; ``seconds``: of the former."""
    largest = (answer.scores - clear).abs().max().item()
    sent = console.size(answer.all_phases("sent") + answer.all_phases("received"))
    depth = int(answer.all_phases("depth"))
    rows = [
        ["the server learns", "the images and the answers", "that there were ten images"],
        ["the client learns", "its answers", "its answers"],
        [
            "right answers",
            *(f"{right(found, labels)} of {DIGITS}" for found in (clear.argmax(1).tolist(), answer.labels)),
        ],
        ["scores", "exact", f"differ by {largest:.2f} at most, of {clear.abs().max():.1f}"],
        ["sent", console.size(image_bytes), f"{sent} in {depth} messages one after the other"],
        ["seconds", f"{seconds:.3f}", f"{answer.all_phases('seconds'):.3f} with set-up"],
    ]
    columns = ["ten digits", "sent to the server in the clear", "with privml"]
    return console.table("What privacy gives and costs", columns, rows)


if __name__ == "__main__":
    sys.exit(main())
