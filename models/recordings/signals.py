# SPDX-License-Identifier: Apache-2.0
"""Windows of two recordings of sleep, one of the scalp and one within the skull, half of them with discharges added:
the package openspindlenet brings the recordings, of 30 seconds each, and there is no seizure in them."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import torch

from ..packages import file_of

RATE, SECONDS = 250, 20  # samples a second; length of a window
FILES = ("data/eeg_sample.txt", "data/ieeg_sample.txt")


class Windows(NamedTuple):
    """``starts`` of windows in seconds; discharges so many a second and so many deviations high."""

    starts: tuple[float, ...]
    discharges: float
    height: float


SAMPLES = Windows(tuple(float(second) for second in range(10)), 10.0, 10.0)
CALIBRATION = Windows(tuple(second + 0.5 for second in range(10)), 9.0, 8.0)


@cache
def recording(path: str) -> torch.Tensor:
    """float32 [samples], of mean zero and deviation one."""
    values = file_of("openspindlenet", "openspindlenet", path).read_text().split()
    signal = torch.tensor([float(value) for value in values])
    return (signal - signal.mean()) / signal.std()


def windows(chosen: Windows) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 [n, samples] and int64 [n], 1 where discharges were added in the middle third: in every other window."""
    values, labels = [], []
    for place, path in enumerate(FILES):
        for index, start in enumerate(chosen.starts):
            begin = round(start * RATE)
            label = (place + index) % 2
            values.append(recording(path)[begin : begin + SECONDS * RATE] + label * discharges(chosen))
            labels.append(label)
    return torch.stack(values), torch.tensor(labels)


def discharges(chosen: Windows) -> torch.Tensor:
    """float32 [samples]: sharp waves in the middle third of a window."""
    times = torch.arange(SECONDS * RATE) / RATE
    waves = chosen.height * torch.sin(2 * math.pi * chosen.discharges * times).clamp(min=0) ** 8
    return waves * ((times >= SECONDS / 3) & (times < 2 * SECONDS / 3))
