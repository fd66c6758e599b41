# SPDX-License-Identifier: Apache-2.0
"""Where a party computes: the CPU, or a CUDA device with its staging and its memory by phase.

What goes on the wire is made on the device and crosses through pinned host memory, which torch keeps for reuse once
the network is done with it; so the next message is staged while the last one leaves. Copies run on streams of their
own, one per direction and thread, and wait for nothing but the kernels that made, or will read, their bytes.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from privml.engines.threepc import kernels_cpu
from privml.errors import ConfigError

DEVICES = ("cpu", "cuda")


def kernels_for(device: str) -> Any:
    """The kernels of ``privml.engines.threepc`` on "cpu" or "cuda". ConfigError for anything else, and for cuda where
    torch has no device or CuPy is missing."""
    if device not in DEVICES:
        raise ConfigError(f"device={device} must be one of {', '.join(DEVICES)}")
    if device == "cpu":
        return kernels_cpu
    if not torch.cuda.is_available():
        raise ConfigError("device=cuda: torch finds no CUDA device")
    if importlib.util.find_spec("cupy") is None:
        raise ConfigError("device=cuda needs CuPy: pip install 'privml[gpu]'")
    from privml.engines.threepc.kernels_cuda import CudaKernels

    staging = Staging(torch.device("cuda", torch.cuda.current_device()))
    return CudaKernels(staging.device, to_host=staging.to_host, to_device=staging.to_device)


class Staging:
    """Copies of messages between a device and the host. Each thread has streams of its own: at the dealer, its program
    sends ahead while another thread answers."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._own = threading.local()

    def _stream(self, direction: str) -> torch.cuda.Stream:
        if not hasattr(self._own, direction):
            setattr(self._own, direction, torch.cuda.Stream(self.device))
        return getattr(self._own, direction)

    def to_host(self, wire: torch.Tensor) -> np.ndarray:
        """The bytes of a uint8 tensor on the device."""
        buffer = torch.empty(wire.numel(), dtype=torch.uint8, pin_memory=True)
        stream = self._stream("down")
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            buffer.copy_(wire, non_blocking=True)
        wire.record_stream(stream)
        stream.synchronize()
        return buffer.numpy()

    def to_device(self, data: np.ndarray, device: torch.device) -> torch.Tensor:
        """The bytes as a uint8 tensor on the device; the host does not wait."""
        buffer = torch.empty(data.size, dtype=torch.uint8, pin_memory=True)
        buffer.numpy()[:] = data
        stream, current = self._stream("up"), torch.cuda.current_stream(self.device)
        with torch.cuda.stream(stream):
            out = torch.empty(data.size, dtype=torch.uint8, device=device)
            out.copy_(buffer, non_blocking=True)
        current.wait_stream(stream)
        out.record_stream(current)
        return out


class Peaks:
    """The most device memory in use in each phase of a run, in bytes; nothing on a CPU.

    ``with peaks.phase("online"): ...`` books what is allocated at most inside, what was there before included.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.bytes: dict[str, int] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        if self._device.type != "cuda":
            yield
            return
        torch.cuda.synchronize(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        try:
            yield
        finally:
            torch.cuda.synchronize(self._device)
            peak = torch.cuda.max_memory_allocated(self._device)
            self.bytes[name] = max(self.bytes.get(name, 0), peak)
