# SPDX-License-Identifier: Apache-2.0
"""Inputs on the command line: one file, an archive of several arrays, or a file for each input by its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privml.cli.arrays import read_array
from privml.errors import InvalidInput


def read_inputs(given: Any) -> torch.Tensor | dict[str, torch.Tensor]:
    """What ``KEY=FILE`` (one array), ``KEY=FILE.npz`` (arrays by name) or ``KEY.NAME=FILE`` say; InvalidInput naming
    the file that is missing or holds no numbers. Integers keep their dtype."""
    if isinstance(given, Mapping):
        return {str(name): read_array(path) for name, path in given.items()}
    return read_archive(Path(given)) if str(given).endswith(".npz") else read_array(given)


def read_archive(path: Path) -> dict[str, torch.Tensor]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file") from None
    except Exception as error:  # of files, zip archives and memory, which NumPy lets through
        raise InvalidInput(f"{path}: not an archive of arrays ({error})") from None
    wrong = next((name for name, array in arrays.items() if array.dtype.kind not in "fiub"), None)
    if wrong is not None:
        raise InvalidInput(f"{path}: {wrong} has dtype {arrays[wrong].dtype}, which is not a number type")
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def real_as(data: Any, dtype: torch.dtype) -> Any:
    """Floating-point tensors of ``data`` in ``dtype``, integers as they are."""
    if isinstance(data, Mapping):
        return {name: real_as(value, dtype) for name, value in data.items()}
    return data.to(dtype) if data.dtype.is_floating_point else data
