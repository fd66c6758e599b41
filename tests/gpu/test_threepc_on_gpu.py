# SPDX-License-Identifier: Apache-2.0
"""On a CUDA device every kernel of the three-party engine computes what it does on a CPU, bit for bit."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from threepc_kernel_cases import CASES, assert_equal

from privml.engines.threepc.kernels_cuda import CudaKernels

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device"),
    pytest.mark.skipif(importlib.util.find_spec("cupy") is None, reason="CuPy is not installed"),
]


@pytest.mark.parametrize("name", CASES)
def test_device_and_cpu_agree(name: str) -> None:
    assert_equal(*CASES[name](CudaKernels("cuda"), lambda values: torch.from_numpy(values).cuda()))
