# SPDX-License-Identifier: Apache-2.0
"""The header of a store, and how its correlations are cut into chunks.

Each query's correlations of a kind are cut into equally many chunks of nearly equal size, so that any run of so many
chunks holds exactly a query's need, wherever it begins. Of transfers the two directions are the kinds; of what an
actively secure session draws its part of the key is one, of which a query has a single piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from privml.engines.stores import Kind
from privml.errors import ConfigError, CorruptFile

FORMAT = 6
MAGIC = b"privml store\x00\x01\r\n"
BLOCK_BYTES = 16
# Correlations of 16 bytes in the largest chunk: 4 MiB.
LARGEST_CHUNK = 1 << 18
LARGEST_COUNT = 1 << 48
LARGEST_BYTES = 1 << 36
# As many as a message that names a position has room for; their files have numbers of three digits.
MOST_KINDS = 512
# Longer than the shapes of any query that can be announced.
LONGEST_TEXT = 1 << 14


def check_kinds(kinds: Sequence[Kind]) -> None:
    """ConfigError for kinds of which no store can be made."""
    if len(kinds) > MOST_KINDS:
        raise ConfigError(
            f"a query of this program draws {len(kinds)} kinds of correlations, a store holds {MOST_KINDS}"
        )
    longest = max(len(kind.name) for kind in kinds)
    if longest > LONGEST_TEXT:
        raise ConfigError(f"the name of a correlation has {longest} characters, in a store at most {LONGEST_TEXT}")


@dataclass(frozen=True, slots=True)
class Header:
    """``store``: the id that both halves share; ``salt``: this half's own; ``key``: which key seals it; ``rank``: whose
    half it is; ``provider``, ``k``, ``security``: how it was made; ``program``: the hash of the program it was made
    for; ``batch``: inputs per query; ``queries``: how many; ``kinds``: of what, of the same names and counts at both
    parties; ``engine``: which one draws it; ``ring``: of the engine ``active``, else 0; ``weights``: a keyed hash of
    the weights that it was made for, at the party that has them and if it depends on them, else ""; ``link``: what the
    session that made it reckoned with, as (delay in ms, Mbit/s), or (); ``noise``: what bounds the noise of prepared
    products, or ""; ``dealt``: the settings that a dealer dealt it for, or ""."""

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
    kinds: tuple[Kind, ...]
    engine: str
    ring: int = 0
    weights: str = ""
    link: tuple[float, ...] = ()
    noise: str = ""
    dealt: str = ""
    format: int = FORMAT

    def __post_init__(self) -> None:
        hexadecimal = re.compile(r"[0-9a-f]+")
        names = (kind.name for kind in self.kinds)
        texts = (self.provider, self.security, self.program, self.engine, self.noise, self.dealt, *names)
        fits = all(isinstance(x, str) and len(x) <= LONGEST_TEXT for x in texts)
        fits = fits and all(isinstance(x, str) and hexadecimal.fullmatch(x) for x in (self.store, self.salt, self.key))
        fits = fits and len(self.store) == len(self.salt) == 32
        numbers = (self.rank, self.k, self.batch, self.queries, self.ring, *(kind.count for kind in self.kinds))
        fits = fits and all(type(x) is int and 0 <= x <= LARGEST_COUNT for x in numbers)
        fits = fits and all(type(kind.bytes) is int and 0 < kind.bytes <= LARGEST_BYTES for kind in self.kinds)
        fits = (
            fits and isinstance(self.weights, str) and (not self.weights or bool(hexadecimal.fullmatch(self.weights)))
        )
        fits = fits and len(self.link) in (0, 2) and all(type(x) in (int, float) and x >= 0 for x in self.link)
        fits = fits and 0 < len({kind.name for kind in self.kinds}) == len(self.kinds) <= MOST_KINDS
        if not fits or self.rank > 1 or self.batch < 1 or self.queries < 1 or self.format != FORMAT:
            raise CorruptFile("not a store of this release of privml")

    # ---- correlations and chunks
    @property
    def per_query(self) -> tuple[int, ...]:
        """Correlations of one query, by kind."""
        return tuple(kind.count for kind in self.kinds)

    def chunks_per_query(self, kind: int) -> int:
        largest = max(LARGEST_CHUNK * BLOCK_BYTES // self.kinds[kind].bytes, 1)
        return -(-self.kinds[kind].count // largest)

    def chunks(self, kind: int) -> int:
        """How many chunks the whole store has."""
        return self.queries * self.chunks_per_query(kind)

    def before(self, kind: int, chunk: int) -> int:
        """Correlations that lie before ``chunk``."""
        pieces, size = self.chunks_per_query(kind), self.per_query[kind]
        if pieces == 0:
            return 0
        query, piece = divmod(chunk, pieces)
        return query * size + piece * size // pieces

    def size(self, kind: int, chunk: int) -> int:
        """Correlations in one chunk."""
        return self.before(kind, chunk + 1) - self.before(kind, chunk)

    def query_start(self, query: int) -> tuple[int, ...]:
        """The first chunk of each kind that belongs to ``query``."""
        return tuple(query * self.chunks_per_query(kind) for kind in range(len(self.kinds)))

    def query_at(self, position: Sequence[int]) -> int:
        """The first query of which nothing lies before ``position``."""
        pieces = [self.chunks_per_query(kind) for kind in range(len(self.kinds))]
        return max((-(-chunk // n) for chunk, n in zip(position, pieces, strict=True) if n), default=0)

    def end_of(self, kind: int, first: int, wanted: int) -> int:
        """The chunk after the last one needed for ``wanted`` correlations from ``first`` on, or the store's end."""
        pieces, size = self.chunks_per_query(kind), self.per_query[kind]
        if wanted <= 0 or size == 0:
            return first
        end, held = first + wanted // size * pieces, wanted // size * size
        while held < wanted:
            held += self.size(kind, end)
            end += 1
        return min(end, self.chunks(kind))

    # ---- bytes
    def plain(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    def context(self, what: str) -> bytes:
        """What a sealed part of this half is bound to."""
        return f"privml store {self.store} {self.salt} rank {self.rank} {what}".encode()

    def chunk_context(self, kind: int, chunk: int) -> bytes:
        return self.context(f"{self.kinds[kind].name} chunk {chunk} of {self.size(kind, chunk)}")


def parse_header(text: bytes) -> Header:
    """CorruptFile for anything that is no header."""
    try:
        content: dict[str, Any] = json.loads(text)
        if set(content) != {field.name for field in fields(Header)}:
            raise ValueError("other fields")
        kinds, link = tuple(Kind(**kind) for kind in content["kinds"]), tuple(content["link"])
        return Header(**{**content, "kinds": kinds, "link": link})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFile(f"not a store of this release of privml ({error})") from None
