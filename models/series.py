# SPDX-License-Identifier: Apache-2.0
"""The time series that the package sktime ships, read from its files without importing it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch


def read(name: str, part: str, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Series float32 [n, channels, steps] and classes int64 [n] of data set ``name``, ``part`` "TRAIN" or "TEST".

    Series of other lengths are interpolated linearly to ``steps``. Classes are numbered in the file's order of
    labels. Raises ImportError when sktime is not installed.
    """
    spec = importlib.util.find_spec("sktime")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("the data is part of the package sktime: pip install sktime")
    path = Path(spec.submodule_search_locations[0], "datasets", "data", name, f"{name}_{part}.ts")
    series, classes, labels = [], [], []
    for line in path.read_text().splitlines():
        if line.lower().startswith("@classlabel"):
            labels = line.split()[2:]
        elif line and line[0] not in "#@":
            *channels, label = line.split(":")
            values = torch.tensor([[float(v) for v in channel.split(",")] for channel in channels])
            series.append(torch.nn.functional.interpolate(values[None], steps, mode="linear", align_corners=True)[0])
            classes.append(labels.index(label.strip()))
    return torch.stack(series), torch.tensor(classes)
