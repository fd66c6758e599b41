# SPDX-License-Identifier: Apache-2.0
"""What the dealer sends to party 0 ahead of time, encrypted and authenticated under a key of these two.

Each payload is cut into pieces of at most 256 KiB; a piece is sent as AES-256-GCM with the number of the piece in the
session as its nonce, so that none can be left out, repeated or moved. Its tag of 16 bytes is counted as frames' headers
and TLS's records are: not at all in the ledger, which counts what is dealt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privml.errors import SecurityAbort

_PIECE_BYTES = 1 << 18
TAG_BYTES = 16
_NONCE_BYTES = 12


class Dealt:
    """``channel``: between party 2, which sends, and party 0, which receives; ``key``: 32 bytes, for this alone."""

    def __init__(self, channel: Any, key: bytes) -> None:
        self._channel, self._cipher, self._pieces = channel, AESGCM(key), 0

    def send(self, payload: np.ndarray) -> None:
        """Sends a contiguous uint8 array."""
        for start in range(0, payload.size, _PIECE_BYTES):
            piece = self._cipher.encrypt(self._nonce(), payload[start : start + _PIECE_BYTES], None)
            self._channel.write_array(np.frombuffer(piece, np.uint8))
        self._channel.flush()

    def receive(self, size: int) -> np.ndarray:
        """The next ``size`` bytes, as many as were sent at once. SecurityAbort for bytes that party 2 has not sent."""
        payload = np.empty(size, np.uint8)
        for start in range(0, size, _PIECE_BYTES):
            length = min(_PIECE_BYTES, size - start)
            sealed = self._channel.read_array(length + TAG_BYTES)
            try:
                piece = self._cipher.decrypt(self._nonce(), sealed, None)
            except InvalidTag:
                raise SecurityAbort(
                    "what the dealing connection carries is not what the dealer has sent: somebody changed it"
                ) from None
            payload[start : start + length] = np.frombuffer(piece, np.uint8)
        return payload

    def _nonce(self) -> bytes:
        self._pieces += 1
        return self._pieces.to_bytes(_NONCE_BYTES, "little")
