# SPDX-License-Identifier: Apache-2.0
"""Engines whose parties compute by different kernels: the CUDA ones, run on a CPU, beside the compiled ones."""

import threading

import pytest
import torch
from cuda_emulation import Emulation, compiler

import privml
from privml.engines.base import Operand
from privml.engines.shares import Promise, Shift
from privml.engines.threepc import backend as threepc
from privml.engines.threepc import kernels_cpu
from privml.engines.threepc.device import kernels_for
from privml.engines.threepc.kernels_cuda import CudaKernels
from privml.errors import ConfigError
from privml.formats import FixedPoint

WORKING, TARGET = FixedPoint(64, 16), FixedPoint(32, 16)


class OneByOne:
    """A launcher that lets one thread in at a time."""

    def __init__(self, launcher):
        self._launcher, self._lock = launcher, threading.Lock()
        self.launched = set()

    def launch(self, name, threads, arguments, shared=0):
        with self._lock:
            self.launched.add(name)
            self._launcher.launch(name, threads, arguments, shared)


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    if compiler() is None:
        pytest.skip("no C++ compiler to run the CUDA kernels on a CPU with")
    return OneByOne(Emulation(tmp_path_factory.mktemp("emulation")))


def results(kernels):
    """What comes of one operation of each kind; all randomness from one seed."""
    made = threepc.create(threepc.Config("faithful"), deadline=60.0, test_seed=5, kernels=kernels)
    x = torch.cat([torch.arange(-40, 40) << 20, torch.tensor([2**40, -(2**40), 0])])
    y = x.flip(0) + 3
    a, b = made.input(x, x.shape, 0, 64), made.input(y, y.shape, 1, 64)
    c = made.input(x >> 4, x.shape, 0, 64)
    shifts = Shift(13), Shift(13, Promise(bound=1 << 20)), Shift(13, reduces=True)
    out = [
        *(
            made.reveal(made.shifted_product("multiply", Operand(a, 64), Operand(c, 64), 64, shift, b), 51)
            for shift in shifts
        ),
        made.reveal_bits(made.less_than_zero(a, 64)),
        made.reveal(made.relu(a, 64)[0], 64),
        made.reveal(made.multiply(Operand(a, 64), Operand(b, 64), 64), 64),
        made.reveal(made.truncate(a, 64, 13), 64),
        made.reveal(made.truncate(c, 64, 13, Promise(bound=1 << 20)), 64),
        made.reveal(made.extend(tuple(c.clone() for c in made.input(x & 255, x.shape, 2, 32)), 32, 64), 64),
        made.reveal(made.bits_to_ring(made.input_bits((x & 1).to(torch.uint8), x.shape, 1), 32), 32),
        made.reveal(made.max_last(tuple(c[:80].reshape(20, 4) for c in a), 64)[0], 64),
        *(made.reveal(made.function(name, c, WORKING, TARGET), 64) for name in ("gelu", "exp", "sin", "rsqrt")),
        made.reveal(made.lookup(torch.arange(16) * 3, made.input(x & 15, x.shape, 0, 4), 4, 32), 32),
    ]
    made.close()
    return out


def _flat(data, device):
    """As a device's staging memory takes bytes."""
    assert data.ndim == 1
    return torch.from_numpy(data).to(device)


@pytest.mark.parametrize("where", [(0,), (1,), (2,), (0, 1, 2)])
def test_parties_of_either_kind_work_together(launcher, where):
    kernels = [CudaKernels("cpu", launcher, to_device=_flat) if rank in where else kernels_cpu for rank in range(3)]
    for found, expected in zip(results(kernels), results(None), strict=True):
        assert torch.equal(found, expected)
    assert {"fill_words", "pack_words", "unpack_words"} <= launcher.launched


def test_devices_are_checked():
    with pytest.raises(ConfigError, match="device"):
        kernels_for("tpu")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no CUDA device"):
            privml.local("threepc", device="cuda")
