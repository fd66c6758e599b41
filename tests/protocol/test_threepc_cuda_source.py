# SPDX-License-Identifier: Apache-2.0
"""The CUDA kernels without a GPU: they compile to PTX, and thread by thread they compute what the CPU's do."""

from __future__ import annotations

import importlib.util
import inspect
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from cuda_emulation import Emulation, compiler
from threepc_kernel_cases import CASES, KEY, assert_equal

from privml.engines.threepc import kernels_cpu
from privml.engines.threepc.cuda_source import compile_options, include_directory
from privml.engines.threepc.kernels_cuda import CudaKernels

SOURCE = include_directory() / "threepc" / "kernels.cu"
ENTRIES = re.findall(r"^__global__ void (\w+)\(", SOURCE.read_text(), re.MULTILINE)


def _nvrtc(architecture: int) -> str:
    from cupy.cuda import compiler as cupy_compiler

    program = cupy_compiler._NVRTCProgram(SOURCE.read_text(), "kernels.cu")
    ptx, _ = program.compile((*compile_options(), f"-arch=compute_{architecture}"))
    return ptx.decode() if isinstance(ptx, bytes) else ptx


def _nvcc(architecture: int, folder: Path) -> str:
    out = folder / "kernels.ptx"
    command = ["nvcc", "-ptx", f"-arch=compute_{architecture}", *compile_options(), str(SOURCE), "-o", str(out)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return out.read_text()


@pytest.mark.parametrize("architecture", [80, 90])
def test_every_kernel_compiles_to_ptx(architecture: int, tmp_path: Path) -> None:
    if shutil.which("nvcc"):
        ptx = _nvcc(architecture, tmp_path)
    elif importlib.util.find_spec("cupy"):
        ptx = _nvrtc(architecture)
    else:
        pytest.skip("neither nvcc nor CuPy with NVRTC is here (pip install cupy-cuda13x nvidia-cuda-nvrtc)")
    assert f".target sm_{architecture}" in ptx
    assert sorted(re.findall(r"\.visible \.entry (\w+)\(", ptx)) == sorted(ENTRIES)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> CudaKernels:
    if compiler() is None:
        pytest.skip("no C++ compiler to run the CUDA kernels on a CPU with")
    return CudaKernels("cpu", Emulation(tmp_path_factory.mktemp("emulation")))


@pytest.mark.parametrize("name", CASES)
def test_threads_compute_what_the_cpu_does(name: str, emulated: CudaKernels) -> None:
    assert_equal(*CASES[name](emulated, torch.from_numpy))


def test_both_devices_have_the_same_functions() -> None:
    """Every function of the CPU's module, with the same parameters in the same order."""
    for name, function in vars(kernels_cpu).items():
        if name.startswith("_") or not inspect.isroutine(function):
            continue
        method = getattr(CudaKernels, name)
        if inspect.isfunction(function) and function.__module__ == kernels_cpu.__name__:
            assert list(inspect.signature(method).parameters)[1:] == list(inspect.signature(function).parameters), name
        else:
            assert method is function, name


def test_what_is_refused(emulated: CudaKernels) -> None:
    words, bits = torch.zeros(10, dtype=torch.int64), torch.zeros(10, dtype=torch.uint8)
    with pytest.raises(ValueError, match="32 bytes"):
        emulated.words(b"short", 0, (10,), 64)
    with pytest.raises(ValueError, match="modulus"):
        emulated.numbers(KEY, 0, (10,), 129)
    with pytest.raises(ValueError, match="prime"):
        emulated.sign_deal(words, KEY, 0, 32, 63)
    with pytest.raises(ValueError, match="280 bytes dealt"):
        emulated.sign_mask(0, (words, bits, bits), (np.zeros(3, np.uint8), None, 0), (KEY, 0), 32, 127)
    with pytest.raises(ValueError, match="common with the dealer"):
        emulated.sign_mask(1, (words, bits, bits), (None, None, 0), (KEY, 0), 32, 127)
    with pytest.raises(ValueError, match="280 bytes"):
        emulated.sign_open(np.zeros(280, np.uint8), np.zeros(7, np.uint8), (10,), 32, 127)
    with pytest.raises(ValueError, match="differ in size"):
        emulated.bit_shares(0, bits, words[:3], 32)
    assert emulated.words(KEY, 0, (0, 4), 64).shape == (0, 4)
