# SPDX-License-Identifier: Apache-2.0
"""One party of three: its links, its pairwise streams, and the steps that every protocol is made of.

A share of a ring value x is (m, r) with x = m - r: parties 0 and 1 know m and hold additive parts of r, party 2
(the dealer) knows r alone and has zeros for m. A share of a bit is the same with exclusive or.
Source: MIZAR, Section 2.2 (masked secret sharing with a dealer).
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from privml.engines.base import Share
from privml.engines.shape_tensor import ShapeTensor
from privml.engines.threepc import kernels_cpu, kernels_shapes
from privml.engines.threepc.links import DEALER, Links, Message, Meter
from privml.engines.threepc.randomness import Stream
from privml.errors import PeerDisconnected

Result = TypeVar("Result")
# A masked part of a value, and the same as it goes on the wire.
Masked = tuple[torch.Tensor, np.ndarray]
# Comparisons send few bytes, in up to three messages in a row, or take two messages at most.
COMPARISONS = ("few_bytes", "few_rounds")
# How many messages of the dealer may wait for the others before its program does.
_QUEUED = 4096


class Party:
    """``streams``: peer -> what is drawn alike with it; own rank -> what all three draw alike, which is no secret;
    ``kernels``: where everything is computed; ``comparison``: one of ``COMPARISONS``. At the dealer, everything that
    waits for the others runs on a thread of its own, in order, so that the dealing runs ahead of it."""

    def __init__(
        self,
        links: Links | Meter,
        streams: Mapping[int, Stream],
        kernels: Any = kernels_cpu,
        comparison: str = COMPARISONS[0],
    ) -> None:
        self.links, self.rank = links, links.rank
        self.streams, self.kernels, self.comparison = dict(streams), kernels, comparison
        self.device = kernels.device
        self.metering = isinstance(links, Meter)
        self.counts_only = kernels is kernels_shapes
        self.deals = self.rank == DEALER
        self.transcript: Any = None  # see Engine
        self.keys: dict[int, bytes] = {}  # peer -> key that others are derived from; own rank -> what all three know
        self.weights: Any = None  # see ``stored.KeptWeights``
        self._worker = ThreadPoolExecutor(1, "dealer") if self.deals and not self.metering else None
        self._queued: list[Future[Any]] = []
        # Place of a storage of zeros -> what keeps another storage from that place.
        self._zeros: dict[int, StorageWeakRef] = {}

    def close(self) -> None:
        self.links.close()
        if self._worker is not None:
            self._worker.shutdown(wait=False, cancel_futures=True)
        self._queued = []  # a step that failed would keep this party, and so its sockets, in a cycle
        self.keys = {}
        for stream in self.streams.values():
            stream.wipe()
        if self.weights is not None:
            self.weights.wipe()

    # ---- shapes and sizes
    def nothing(self, shape: Sequence[int], dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Zeros, of which large ones take no memory until they are written."""
        if self.counts_only:
            return ShapeTensor(shape, dtype)
        if self.device.type != "cpu":
            return torch.zeros(tuple(shape), dtype=dtype, device=self.device)
        return torch.from_numpy(np.zeros(tuple(shape), np.uint8 if dtype is torch.uint8 else np.int64))

    def unmasked(self, shape: Sequence[int], dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """This party's part of a mask that the other computing party has as a whole: zeros, for ``keep_unmasked``."""
        zeros = self.nothing(shape, dtype)
        if not self.counts_only:
            zeros.unmasked = True  # type: ignore[attr-defined]
        return zeros

    def keep_unmasked(self, r: torch.Tensor) -> None:
        """``is_unmasked`` recognises ``r``, if it comes from ``unmasked``, and its views: nothing writes to them."""
        if hasattr(r, "unmasked"):
            self._zeros = {place: known for place, known in self._zeros.items() if not known.expired()}
            storage = r.untyped_storage()
            self._zeros[storage._cdata] = StorageWeakRef(storage)

    def is_unmasked(self, r: torch.Tensor) -> bool:
        """Whether ``r`` is known to be zeros, which follows from the program alone."""
        if not self._zeros:
            return False
        known = self._zeros.get(r.untyped_storage()._cdata)
        return known is not None and not known.expired()

    def masked(self, m: torch.Tensor | None, r: torch.Tensor) -> Share:
        """The share of mask ``r``; ``m`` is None at the dealer."""
        return (self.nothing(r.shape, r.dtype) if m is None else m), r

    # ---- randomness in common
    def masks(self, shape: Sequence[int], bits: int) -> torch.Tensor:
        """A fresh uniform r of Z_2^bits that only the dealer knows: this party's part, or the whole."""
        if self.deals:
            return self.streams[0].words(shape, bits) + self.streams[1].words(shape, bits)
        return self.streams[DEALER].words(shape, bits)

    def bit_masks(self, shape: Sequence[int]) -> torch.Tensor:
        """``masks`` of bits."""
        if self.deals:
            return self.streams[0].bits(shape) ^ self.streams[1].bits(shape)
        return self.streams[DEALER].bits(shape)

    def common_offset(self, bits: int) -> torch.Tensor:
        """A fresh uniform number of Z_2^bits that all three know: for probabilities that hold whatever a mask is."""
        return self.streams[self.rank].words((), bits)

    # ---- dealing
    def deal(self, value: torch.Tensor | None, shape: Sequence[int], bits: int) -> torch.Tensor | None:
        """Additive parts (parties 0 and 1) in Z_2^bits of a value the dealer knows: one element to party 0."""
        if self.rank == 1:
            return self.streams[DEALER].words(shape, bits)
        size = packed_bytes(math.prod(shape), bits)
        if self.deals:
            assert value is not None
            self.links.deal(None if self.metering else self.streams[1].deal_packed(value, bits), size)
            return None
        return self.kernels.unpack(self.links.deal(None, size), shape, bits)

    def deal_bits(self, value: torch.Tensor | None, shape: Sequence[int]) -> torch.Tensor | None:
        """``deal`` with exclusive or: one bit each."""
        if self.rank == 1:
            return self.streams[DEALER].bits(shape)
        size = packed_bytes(math.prod(shape), 1)
        if self.deals:
            assert value is not None
            part = value ^ self.streams[1].bits(shape)
            self.links.deal(None if self.metering else self.kernels.pack(part, 1), size)
            return None
        return self.kernels.unpack_bits(self.links.deal(None, size), shape)

    # ---- messages
    def exchange(
        self, messages: Sequence[Message], payloads: Mapping[int, np.ndarray], phase: str = "online"
    ) -> dict[int, np.ndarray]:
        return self.links.round(messages, payloads, phase)

    def open_all(
        self, masked: Sequence[Masked | None], kinds: Sequence[tuple[Sequence[int], int, bool]]
    ) -> list[torch.Tensor | None]:
        """The sums of the parts of parties 0 and 1, to both: of several values, of each shape, ring and whether it is a
        bit (with exclusive or), one element each way in one message; None at the dealer."""
        sizes = [packed_bytes(math.prod(shape), bits) for shape, bits, _ in kinds]
        messages = [Message(0, 1, sum(sizes)), Message(1, 0, sum(sizes))]
        if self.deals:
            if self.metering:
                self.exchange(messages, {})
            return [None] * len(masked)
        parts, packed = zip(*masked, strict=True)
        payload = packed[0] if len(packed) == 1 or self.metering else np.concatenate(packed)
        received = self.exchange(messages, {1 - self.rank: payload})[1 - self.rank]
        theirs = [received] if len(sizes) == 1 else np.split(received, list(accumulate(sizes))[:-1])
        return [
            part ^ self.kernels.unpack_bits(data, shape) if boolean else self.kernels.add_packed(part, data, bits)
            for part, data, (shape, bits, boolean) in zip(parts, theirs, kinds, strict=True)
        ]

    # ---- the dealer's second thread
    def in_order(self, step: Callable[[], Result]) -> Callable[[], Result]:
        """Runs ``step``, which exchanges messages: at the dealer after all such steps before it, while its program goes
        on. Returns what waits for the result."""
        if self._worker is None:
            result = step()
            return lambda: result
        self._queued = [future for future in self._queued if self._pending(future)]
        if len(self._queued) >= _QUEUED:
            self._queued[0].result()
        try:
            future = self._worker.submit(contextvars.copy_context().run, self._guarded, step)
        except RuntimeError:
            raise PeerDisconnected("this session ended: it was closed; open a new one") from None
        self._queued.append(future)
        return future.result

    def _guarded(self, step: Callable[[], Result]) -> Result:
        try:
            return step()
        except BaseException:
            self.links.close()  # the dealing may wait for a party that reads no more
            raise

    def drain(self) -> None:
        """Waits until nothing is left of what the dealer does besides its program."""
        while self._queued:
            self._queued.pop(0).result()

    @staticmethod
    def _pending(future: Future[Any]) -> bool:
        if not future.done():
            return True
        future.result()  # a failure there ends the program here
        return False


def packed_bytes(count: int, bits: int) -> int:
    return -(-count * bits // 8)
