# SPDX-License-Identifier: Apache-2.0
"""The text recognition that the package rapidocr-onnxruntime brings, and printed lines of forms."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch

from .. import Model
from ..packages import file_of
from .lines import CALIBRATION, LINES, drawn

PACKAGE, MODULE, FILE = "rapidocr-onnxruntime", "rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx"
COLUMNS = 24  # of scores: one for 8 pixels of width
BLANK = 0


def preprocess(pictures: torch.Tensor) -> torch.Tensor:
    """uint8 pictures [n, 48, 192] to [n, 3, 48, 192] from -1 to 1, as the package scales them."""
    return (pictures.to(torch.float32) / 127.5 - 1).unsqueeze(1).repeat(1, 3, 1, 1)


def indices(scores: torch.Tensor) -> torch.Tensor:
    """int64 [n, 24] of scores [n, 24, characters]: the characters of each line, then zeros. As in the package, a
    column with the blank or with its neighbour's character adds none; spaces at the ends are left out."""
    space = scores.shape[2] - 1
    best = scores.argmax(2)
    read = torch.zeros_like(best)
    for row, columns in enumerate(best.tolist()):
        kept = [c for c, before in zip(columns, [BLANK, *columns], strict=False) if c not in (BLANK, before)]
        while kept and kept[-1] == space:
            kept.pop()
        while kept and kept[0] == space:
            kept.pop(0)
        read[row, : len(kept)] = torch.tensor(kept, dtype=torch.int64)
    return read


@cache
def alphabet(path: str) -> list[str]:
    """The character of each score; the first is the blank."""
    import onnx

    notes = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    return ["", *notes["character"].splitlines(), " "]


def text(row: torch.Tensor, path: str) -> str:
    """What a row of ``indices`` says."""
    return "".join(alphabet(path)[index] for index in row.tolist())


def written(lines: tuple[str, ...], path: str) -> torch.Tensor:
    """The row of ``indices`` of each line."""
    places = {character: place for place, character in enumerate(alphabet(path))}
    rows = torch.zeros(len(lines), COLUMNS, dtype=torch.int64)
    for row, line in zip(rows, lines, strict=True):
        row[: len(line)] = torch.tensor([places[character] for character in line])
    return rows


def load() -> Model:
    path = str(file_of(PACKAGE, MODULE, FILE))
    samples = drawn(LINES)
    return Model(
        Path(__file__).parent.name, path, preprocess(samples[:1]), preprocess, samples, written(LINES, path),
        drawn(CALIBRATION), answer=indices,
    )  # fmt: skip
