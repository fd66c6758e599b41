# SPDX-License-Identifier: Apache-2.0
"""What a store says about itself, and how its correlations are cut into chunks.

A direction is named by its sender's rank. Each query's correlations of a direction are cut into equally many chunks
of nearly equal size, so that any run of so many chunks holds exactly a query's need, wherever it begins.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from privml.errors import CorruptFile

FORMAT = 1
MAGIC = b"privml store\x00\x01\r\n"
DIRECTIONS = (0, 1)
BLOCK_BYTES = 16
# Correlations of the largest chunk: 4 MiB.
LARGEST_CHUNK = 1 << 18
LARGEST_COUNT = 1 << 48


@dataclass(frozen=True, slots=True)
class Header:
    """``store``: the id that both halves share; ``salt``: this half's own; ``key``: which key seals it; ``rank``: whose
    half it is; ``provider``, ``k``, ``security``: how it was made; ``program``: the hash of the program it was made
    for; ``batch``: inputs per query; ``queries``: how many; ``from0``, ``from1``: correlations of one query by
    direction."""

    store: str
    salt: str
    key: str
    rank: int
    provider: str
    k: int
    security: str
    program: str
    batch: int
    queries: int
    from0: int
    from1: int
    format: int = FORMAT

    def __post_init__(self) -> None:
        hexadecimal = re.compile(r"[0-9a-f]+")
        fits = all(isinstance(x, str) and len(x) <= 128 for x in (self.provider, self.security, self.program))
        fits = fits and all(isinstance(x, str) and hexadecimal.fullmatch(x) for x in (self.store, self.salt, self.key))
        fits = fits and len(self.store) == len(self.salt) == 32
        numbers = (self.rank, self.k, self.batch, self.queries, self.from0, self.from1)
        fits = fits and all(type(x) is int and 0 <= x <= LARGEST_COUNT for x in numbers)
        if not fits or self.rank > 1 or self.batch < 1 or self.queries < 1 or self.format != FORMAT:
            raise CorruptFile("not a store of this release of privml")

    # ---- correlations and chunks
    @property
    def per_query(self) -> tuple[int, int]:
        """Correlations of one query, by direction."""
        return self.from0, self.from1

    def chunks_per_query(self, direction: int) -> int:
        return -(-self.per_query[direction] // LARGEST_CHUNK)

    def chunks(self, direction: int) -> int:
        """How many chunks the whole store has."""
        return self.queries * self.chunks_per_query(direction)

    def before(self, direction: int, chunk: int) -> int:
        """Correlations that lie before ``chunk``."""
        pieces, size = self.chunks_per_query(direction), self.per_query[direction]
        if pieces == 0:
            return 0
        query, piece = divmod(chunk, pieces)
        return query * size + piece * size // pieces

    def size(self, direction: int, chunk: int) -> int:
        """Correlations in one chunk."""
        return self.before(direction, chunk + 1) - self.before(direction, chunk)

    def end_of(self, direction: int, first: int, wanted: int) -> int:
        """The chunk after the last one needed for ``wanted`` correlations from ``first`` on, or the store's end."""
        pieces, size = self.chunks_per_query(direction), self.per_query[direction]
        if wanted <= 0 or size == 0:
            return first
        end, held = first + wanted // size * pieces, wanted // size * size
        while held < wanted:
            held += self.size(direction, end)
            end += 1
        return min(end, self.chunks(direction))

    # ---- bytes
    def plain(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    def context(self, what: str) -> bytes:
        """What a sealed part of this half is bound to."""
        return f"privml store {self.store} {self.salt} rank {self.rank} {what}".encode()

    def chunk_context(self, direction: int, chunk: int) -> bytes:
        return self.context(f"from {direction} chunk {chunk} of {self.size(direction, chunk)}")


def parse_header(text: bytes) -> Header:
    """CorruptFile for anything that is no header."""
    try:
        content: dict[str, Any] = json.loads(text)
        if set(content) != {field.name for field in fields(Header)}:
            raise ValueError("other fields")
        return Header(**content)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptFile(f"not a store of this release of privml ({error})") from None
