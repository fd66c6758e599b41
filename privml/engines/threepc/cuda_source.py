# SPDX-License-Identifier: Apache-2.0
"""Where the CUDA kernels' text is, and CuPy to compile and launch them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

# One quad of elements per thread; the shared memory of a block stays below 48 KiB.
BLOCK = 128


def include_directory() -> Path:
    """The folder with threepc/kernels.cu and its headers: beside this file when installed, csrc in a checkout."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "cuda", here.parents[3] / "csrc"):
        if (folder / "threepc" / "kernels.cu").is_file():
            return folder
    raise FileNotFoundError("threepc/kernels.cu is neither installed with privml nor in a checkout's csrc")


def compile_options() -> tuple[str, ...]:
    """Options that NVRTC and nvcc both take."""
    return ("-std=c++17", f"-I{include_directory()}")


@functools.cache
def _module() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise RuntimeError("three-party kernels on a GPU need CuPy: pip install 'privml[gpu]'") from error
    text = (include_directory() / "threepc" / "kernels.cu").read_text()
    return cupy.RawModule(code=text, options=compile_options(), backend="nvrtc")


class CupyLauncher:
    """Launches on the current torch stream of ``device``; the kernels are compiled at the first launch."""

    def __init__(self, device: torch.device) -> None:
        if not torch.cuda.is_available():
            raise RuntimeError("device=cuda: torch finds no CUDA device")
        self._index = device.index if device.index is not None else torch.cuda.current_device()

    def launch(self, name: str, threads: int, arguments: Sequence[Any], shared: int = 0) -> None:
        import cupy

        with (
            cupy.cuda.Device(self._index),
            cupy.cuda.ExternalStream(torch.cuda.current_stream(self._index).cuda_stream),
        ):
            kernel = _module().get_function(name)
            blocks = -(-threads // BLOCK)
            kernel((blocks,), (BLOCK,), tuple(map(_argument, arguments)), shared_mem=4 * shared * BLOCK)


def _argument(value: Any) -> Any:
    """Addresses as 64-bit numbers, the rest as it is."""
    if value is None:
        return np.uint64(0)
    return np.uint64(value.data_ptr()) if isinstance(value, torch.Tensor) else value
