# SPDX-License-Identifier: Apache-2.0
"""CUDA kernels on a CPU: kernels.cu compiled by the C++ compiler, called once per thread index."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from privml.engines.threepc.cuda_source import BLOCK, include_directory

# What the language has and C++ has not. A guard word behind the shared memory shows who wrote beyond it.
_PRELUDE = f"""
#define __device__
#define __global__
#define __shared__
#define __forceinline__ inline
struct Index {{ unsigned x; }};
extern "C" {{
Index threadIdx, blockIdx, blockDim;
unsigned shared[(64 + 8) * {BLOCK} + 1];
}}
"""
_TYPES = {
    np.dtype(np.int32): ctypes.c_int32,
    np.dtype(np.uint32): ctypes.c_uint32,
    np.dtype(np.int64): ctypes.c_int64,
    np.dtype(np.uint64): ctypes.c_uint64,
}


def compiler() -> str | None:
    return shutil.which("g++") or shutil.which("clang++")


class Emulation:
    """A launcher for ``CudaKernels("cpu", ...)``."""

    def __init__(self, folder: Path) -> None:
        prelude, library = folder / "prelude.h", folder / "kernels.so"
        prelude.write_text(_PRELUDE)
        source = include_directory() / "threepc" / "kernels.cu"
        command = [compiler(), "-x", "c++", "-std=c++17", "-O1", "-fsanitize=alignment,bounds,shift", "-D__CUDACC__"]
        command += ["-fno-sanitize-recover=all", "-static-libubsan", "-Wno-unknown-pragmas", "-Wno-attributes"]
        command += ["-shared", "-fPIC", "-include", str(prelude), f"-I{include_directory()}", str(source)]
        subprocess.run([*command, "-o", str(library)], check=True, capture_output=True, text=True)
        self._library = ctypes.CDLL(str(library))
        self._thread, self._block, self._size = (
            ctypes.c_uint.in_dll(self._library, name) for name in ("threadIdx", "blockIdx", "blockDim")
        )
        self._shared = (ctypes.c_uint * ((64 + 8) * BLOCK + 1)).in_dll(self._library, "shared")

    def launch(self, name: str, threads: int, arguments: Sequence[Any], shared: int = 0) -> None:
        function = getattr(self._library, name)
        function.restype = None
        values = [_argument(a) for a in arguments]
        self._size.value = BLOCK
        guard = 0xA5A5A5A5
        self._shared[shared * BLOCK] = guard
        for block in range(-(-threads // BLOCK)):
            self._block.value = block
            for thread in range(BLOCK):
                self._thread.value = thread
                function(*values)
        assert self._shared[shared * BLOCK] == guard, f"{name} wrote beyond its {shared} words of shared memory"


def _argument(value: Any) -> Any:
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return _TYPES[value.dtype](value.item())
