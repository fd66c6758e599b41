# SPDX-License-Identifier: Apache-2.0
"""What a dealer deals ahead of queries, and the sessions of the other two that use it without a dealer.

An entry serves one query. It has the keys of three streams, which serve nothing else: of what a party draws alike with
the dealer, with the other computing party, and of what all three draw alike; at party 0 also all that the dealer has
sent, and in the end how far each stream has come, by which both parties see before they open an output whether they
have used the entry as it was dealt. The dealer runs the program on these streams as it does beside a query, and keeps
nothing.

The weights of party 0 may be kept with all entries: then their mask comes from a stream of its own, the same for every
query, and party 1 keeps m = w + r. Nothing is revealed by that. Party 1 sees m once, and the weights of a store never
change, so that no two values are ever masked by this r. Whatever else depends on r is dealt as parts that a fresh
stream makes uniform, or opened under a fresh mask, as in a session of several queries.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from privml.engines.shares import Share
from privml.engines.threepc.engine import ThreePartyEngine
from privml.engines.threepc.keys import derived, numbered
from privml.engines.threepc.links import DEALER, Counts, Links, Message, Meter
from privml.engines.threepc.party import Party, packed_bytes
from privml.engines.threepc.randomness import KEY_BYTES, Stream
from privml.errors import ConfigError, ProtocolError

WEIGHTS_OWNER = 0
# Of all keys of an entry.
KEYS_BYTES = 3 * KEY_BYTES
# What an entry of party 0 ends with: how far the streams of party 0, of party 1, of all three and of the weights' masks
# have come at the dealer.
_ENDS = struct.Struct("<4Q")
ENDS_BYTES = _ENDS.size
_PROOF_BYTES = 32
_PROOFS = [Message(0, 1, _PROOF_BYTES), Message(1, 0, _PROOF_BYTES)]
NEEDS_DEALER = (
    "this program needs the dealer while it runs, for inputs that all parties learn or for "
    "engine.comparison=few_rounds in wide rings: nothing can be dealt ahead of its queries"
)
OUT_OF_STEP = (
    "the query has not used its entry of the store as it was dealt: the dealer has another build of privml, which "
    "draws differently; nothing was revealed. Install one build at all three, and make another store with `privml "
    "preprocess`"
)


# ---- entries
def query_keys(party: Party, query: int) -> dict[int, bytes]:
    """The keys of the entry with this number, by peer; under the own rank what all three have."""
    return {peer: numbered(key, b"store query", query) for peer, key in party.keys.items()}


def packed_keys(keys: Mapping[int, bytes]) -> bytes:
    return b"".join(keys[rank] for rank in range(3))


def unpacked_keys(entry: bytes) -> dict[int, bytes]:
    return {rank: entry[rank * KEY_BYTES : (rank + 1) * KEY_BYTES] for rank in range(3)}


def weights_key(party: Party) -> bytes:
    """Of the masks of weights that are kept; party 0 and the dealer have it."""
    return derived(party.keys[WEIGHTS_OWNER if party.deals else DEALER], b"store weights")


class KeptWeights:
    """How weights enter that are kept with a store. ``stream``: of their masks, at party 0 and the dealer; ``known``:
    the masked weights, at party 1. ``making``: they are sent, and party 1 adds them to ``known``."""

    def __init__(self, stream: Stream | None, known: bytes = b"", making: bool = False) -> None:
        self.known = bytearray(known)
        self._stream, self._making, self._place = stream, making, 0

    def enter(
        self, party: Party, value: torch.Tensor | None, shape: Sequence[int], bits: int, boolean: bool = False
    ) -> Share:
        """Of party 0; bits with exclusive or."""
        size = packed_bytes(math.prod(shape), bits)
        zeros = party.unmasked(shape, torch.uint8 if boolean else torch.int64)
        if party.metering:
            return zeros, zeros
        if party.rank == 1:
            data = self._received(party, size)
            return (
                party.kernels.unpack_bits(data, shape) if boolean else party.kernels.unpack(data, shape, bits)
            ), zeros
        assert self._stream is not None
        mask = self._stream.bits(shape) if boolean else self._stream.words(shape, bits)
        if party.deals:
            return zeros, mask
        assert value is not None
        m = value ^ mask if boolean else value + mask
        if self._making:
            party.exchange([Message(0, 1, size)], {1: party.kernels.pack(m, bits)}, "preprocess")
        return m, mask

    @property
    def trail(self) -> int:
        """Of the masks' stream; see ``Stream``."""
        return 0 if self._stream is None else self._stream.trail

    @property
    def left(self) -> int:
        """Bytes of weights at party 1 that did not enter."""
        return len(self.known) - self._place

    def wipe(self) -> None:
        """Forgets the key of the masks."""
        if self._stream is not None:
            self._stream.wipe()

    def _received(self, party: Party, size: int) -> np.ndarray:
        if self._making:
            data = party.exchange([Message(0, 1, size)], {}, "preprocess")[0]
            self.known += data.tobytes()
            return data
        self._place += size
        if self._place > len(self.known):
            raise ProtocolError("the store keeps fewer weights than the program has")
        return np.frombuffer(self.known, np.uint8)[self._place - size : self._place]


# ---- the dealer
class _Collected:
    """Links of a dealer that deals ahead: what it deals is collected, and no party sends to it."""

    rank = DEALER

    def __init__(self, counts: Counts) -> None:
        self.counts, self.payloads = counts, list[np.ndarray]()

    def deal(self, payload: np.ndarray, size: int) -> None:
        if size:
            self.payloads.append(np.ascontiguousarray(payload).view(np.uint8).reshape(-1))

    def round(
        self, messages: Sequence[Message], payloads: Mapping[int, np.ndarray], phase: str = "online"
    ) -> dict[int, np.ndarray]:
        if any(message.size and DEALER in message[:2] for message in messages):
            raise ConfigError(NEEDS_DEALER)
        return {}

    def advance(self, clock: int) -> None:
        return None


@contextlib.contextmanager
def dealing_ahead(engine: ThreePartyEngine, query: int, kept: bool) -> Iterator[None]:
    """At the dealer: what ``engine`` deals inside is that of the entry with this number, and is sent as a whole in the
    end. ``kept``: the weights are kept with the store."""
    party = engine.party
    links, streams, collected = party.links, party.streams, _Collected(party.links.counts)
    party.links = collected  # type: ignore[assignment]
    party.streams = {peer: Stream(key, party.kernels) for peer, key in query_keys(party, query).items()}
    party.weights = KeptWeights(Stream(weights_key(party), party.kernels)) if kept else None
    try:
        yield
        party.drain()
        ends = _ENDS.pack(*(party.streams[rank].trail for rank in range(3)), _trail_of_weights(party))
    finally:
        for stream in party.streams.values():
            stream.wipe()
        if party.weights is not None:
            party.weights.wipe()
        party.links, party.streams, party.weights = links, streams, None
    assert isinstance(links, Links)
    links.send_ahead(np.concatenate([*collected.payloads, np.frombuffer(ends, np.uint8)]))


def _trail_of_weights(party: Party) -> int:
    return 0 if party.weights is None else party.weights.trail


# ---- sessions on a store
class StoredLinks(Links):
    """To the other computing party alone; what a dealer would deal was dealt before. ``ends``: of the streams, at party
    0; see ``dealing_ahead``."""

    def __init__(self, rank: int, channel: Any, dealt: bytes, ends: tuple[int, ...] = ()) -> None:
        super().__init__(rank, {1 - rank: channel}, None)
        self.ends = ends
        self._stock, self._place = np.frombuffer(bytearray(dealt), np.uint8), 0

    @property
    def left(self) -> int:
        """Bytes that were dealt and not used yet."""
        return self._stock.size - self._place

    def round(
        self, messages: Sequence[Message], payloads: Mapping[int, np.ndarray], phase: str = "online"
    ) -> dict[int, np.ndarray]:
        if any(message.size and DEALER in message[:2] for message in messages):
            self.close()
            raise ConfigError(NEEDS_DEALER)
        return super().round(messages, payloads, phase)

    def deal(self, payload: np.ndarray | None, size: int) -> np.ndarray | None:
        if self.rank != 0:
            return None
        if size > self.left:
            self.close()
            raise ProtocolError("the program draws more than was dealt for it ahead: make another store")
        self._place += size
        return self._stock[self._place - size : self._place]


class StoredMeter(Meter):
    """A meter of such sessions."""

    def deal(self, payload: np.ndarray | None, size: int) -> np.ndarray | None:
        return np.zeros(size, np.uint8) if self.rank == 0 else None


def meter_proofs(links: StoredMeter) -> None:
    """Books what ``prove_entry`` sends."""
    links.round(_PROOFS, {}, "setup")


def prove_entry(links: StoredLinks, keys: Mapping[int, bytes]) -> None:
    """Both parties show that they hold the same entry of one store, before anything depends on it. ProtocolError for
    another one."""
    peer = 1 - links.rank
    received = links.round(_PROOFS, {peer: _proof(keys, links.rank, links.rank)}, "setup")[peer]
    if not hmac.compare_digest(received.tobytes(), _proof(keys, peer, links.rank).tobytes()):
        links.close()
        raise ProtocolError(
            "the other party's half of the store holds another entry here, or it is no half of this store: nothing was "
            "sent that depends on the inputs; make another store with `privml preprocess` at both parties"
        )


def opened_entry(rank: int, channel: Any, entry: bytes) -> tuple[StoredLinks, dict[int, bytes]] | None:
    """The links and keys of an entry of party ``rank``; None if it is too short for one."""
    least = KEYS_BYTES + (ENDS_BYTES if rank == 0 else 0)
    if len(entry) < least:
        return None
    keys, rest = unpacked_keys(entry), entry[KEYS_BYTES:]
    if rank != 0:
        return StoredLinks(rank, channel, rest), keys
    return StoredLinks(rank, channel, rest[:-ENDS_BYTES], _ENDS.unpack(rest[-ENDS_BYTES:])), keys


def settled(party: Party) -> tuple[int, ...]:
    """Once all outputs are computed, and before one is opened: how far the streams that party 1 draws from have come,
    at party 0 with the dealer as the entry says. The two must have it alike. ProtocolError if this party itself has not
    used its entry to the end, as it was dealt."""
    links, weights = party.links, party.weights
    assert isinstance(links, StoredLinks)
    with_dealer, of_all, with_peer = (party.streams[rank].trail for rank in (DEALER, party.rank, 1 - party.rank))
    fits = links.left == 0
    if party.rank == 0:
        of_0, of_1, common, of_weights = links.ends
        fits = fits and (with_dealer, of_all, _trail_of_weights(party)) == (of_0, common, of_weights)
        with_dealer = of_1
    elif weights is not None:
        fits = fits and weights.left == 0
    if not fits:
        links.close()
        raise ProtocolError(OUT_OF_STEP)
    return with_dealer, of_all, with_peer


def _proof(keys: Mapping[int, bytes], rank: int, own: int) -> np.ndarray:
    """Of party ``rank``, computed by party ``own``, under the key of both computing parties."""
    message = b"entry of party %d " % rank + keys[own]
    key = derived(keys[1 - own], b"store proof")
    return np.frombuffer(hashlib.blake2b(message, key=key, digest_size=_PROOF_BYTES).digest(), np.uint8)
