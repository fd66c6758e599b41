# SPDX-License-Identifier: Apache-2.0
"""The pairwise keys of a session, and the proof that all connections belong to the parties that have them.

Each party shows one fresh public key to both others; a key is the Diffie-Hellman agreement of a pair. Then each party
proves to each other one, on every connection between them, that it knows their key and saw the same three public keys.
Party 0 and the dealer prove it on the dealing connection first, and the others wait for their proofs: no party sends
an input before all connections are proved to be those of one session. Without TLS this excludes only machines other
than the three; an attacker that can change all messages of a party can still pose as it.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

import numpy as np

import privml._core as _core
from privml.engines.threepc.links import DEALER, Links, Message, Meter
from privml.engines.threepc.randomness import KEY_BYTES
from privml.errors import IdentityError, PeerDisconnected

# Who has a connection, and a key, with whom.
PAIRS = ((0, 1), (0, 2), (1, 2))
_PROOF_BYTES = 32
_EVERYBODY = [(a, b) for pair in PAIRS for a, b in (pair, pair[::-1])]
_PUBLIC_KEYS = [Message(a, b, KEY_BYTES) for a, b in _EVERYBODY]
_PROOFS = [Message(a, b, _PROOF_BYTES) for a, b in _EVERYBODY]
_DEALING_PROOFS = [Message(a, b, _PROOF_BYTES) for a, b in ((DEALER, 0), (0, DEALER))]
_MAIN, _DEALING = b"main", b"dealing"


def agree_on_keys(links: Links, test_seed: int | None) -> tuple[dict[int, bytes], bytes]:
    """A key with each peer, 32 bytes, which all connections are proved to belong to, and as many bytes that all three
    have in common and that are not secret; what is dealt is encrypted from here on. Raises IdentityError where a
    connection belongs to another session, and PeerDisconnected."""
    secret, shown = _core.key_pair()
    peers = [peer for peer in range(3) if peer != links.rank]
    theirs = links.round(_PUBLIC_KEYS, dict.fromkeys(peers, np.frombuffer(shown, np.uint8)), "setup")
    public = {links.rank: shown, **{peer: theirs[peer].tobytes() for peer in peers}}
    keys = {}
    for peer in peers:
        pair = (links.rank, peer) if links.rank < peer else (peer, links.rank)
        if test_seed is not None:
            keys[peer] = hashlib.blake2b(f"{test_seed} {pair}".encode(), digest_size=KEY_BYTES).digest()
            continue
        keys[peer] = _core.common_key(secret, public[pair[0]], public[pair[1]], pair[1] == peer)
    everybody = b"".join(public[rank] for rank in range(3))
    _prove(links, keys, everybody)
    if links.rank != 1:
        links.seal_dealing(derived(keys[DEALER - links.rank], b"dealt"))
    seen = everybody if test_seed is None else f"{test_seed}".encode()
    return keys, hashlib.blake2b(seen, person=b"common", digest_size=KEY_BYTES).digest()


def meter_keys(links: Meter) -> None:
    """Books what ``agree_on_keys`` sends."""
    links.round(_PUBLIC_KEYS, {}, "setup")
    links.round_dealing(_DEALING_PROOFS, {}, "setup")
    links.round(_PROOFS, {}, "setup")


def derived(key: bytes, purpose: bytes) -> bytes:
    """32 bytes for one ``purpose`` (at most 16 bytes), which reveal nothing about ``key`` or those for another one."""
    return hashlib.blake2b(key=key, person=purpose, digest_size=KEY_BYTES).digest()


def numbered(key: bytes, purpose: bytes, number: int) -> bytes:
    """``derived`` for one of many uses."""
    return hashlib.blake2b(b"%d" % number, key=key, person=purpose, digest_size=KEY_BYTES).digest()


def _prove(links: Links, keys: Mapping[int, bytes], public: bytes) -> None:
    try:
        shown = {peer: _proof(key, links.rank, peer, _DEALING, public) for peer, key in keys.items()}
        _check(links, keys, links.round_dealing(_DEALING_PROOFS, shown, "setup"), _DEALING, public)
        shown = {peer: _proof(key, links.rank, peer, _MAIN, public) for peer, key in keys.items()}
        _check(links, keys, links.round(_PROOFS, shown, "setup"), _MAIN, public)
    except PeerDisconnected as error:
        raise PeerDisconnected(
            f"{error}, before the three parties had proved that their connections belong to one session; another "
            "machine may have opened one of them"
        ) from None


def _proof(key: bytes, source: int, target: int, connection: bytes, public: bytes) -> np.ndarray:
    message = b"%s %d %d " % (connection, source, target) + public
    proof = hashlib.blake2b(message, key=derived(key, b"proof"), digest_size=_PROOF_BYTES).digest()
    return np.frombuffer(proof, np.uint8)


def _check(
    links: Links, keys: Mapping[int, bytes], received: Mapping[int, np.ndarray], connection: bytes, public: bytes
) -> None:
    for peer, proof in received.items():
        expected = _proof(keys[peer], peer, links.rank, connection, public)
        if not hmac.compare_digest(proof.tobytes(), expected.tobytes()):
            links.close()
            which = "the dealing connection" if connection == _DEALING else "the connection"
            raise IdentityError(
                f"{which} to party {peer} is not one of this session: the machine at its other end does not know the "
                "session's keys; use TLS with names, and find out who connects"
            )
