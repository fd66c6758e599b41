# SPDX-License-Identifier: Apache-2.0
"""One party's half of a store: hands each chunk of correlations out once, whatever happens in between.

Order of every hand-out: the index that counts the chunks as used is on the disk, then each chunk's file is read and
removed, then its contents go out. A chunk that was handed out therefore has no file any more, so that even an old
index that is copied back brings nothing back; a chunk that was counted and not handed out (the process died in
between) is removed when the store is opened again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import privml._core as _core
from privml.errors import ConfigError, CorruptFile, StoreError
from privml.store import files
from privml.store.durable import FolderLock, replace, sync_folder
from privml.store.files import Position
from privml.store.key import key_id, read_key, tag_of
from privml.store.layout import Header


@dataclass(frozen=True, slots=True)
class Chunk:
    """Sealed correlations of one kind, to be opened by the store's ``seal`` in ``context``."""

    kind: int
    count: int
    context: bytes
    sealed: bytes


class Store:
    """``header``: what it holds; ``position``: the next chunk of each kind; ``notes``: what opening had to repair.
    Threads may share it: what one takes no other one gets. Once it is closed, whatever would use it up and what is not
    handed out yet raise StoreError: another process may have it.

    Raises ConfigError (no store there, another key), CorruptFile, StoreError (in use by another process).
    """

    def __init__(self, folder: str | Path, key_file: str | Path) -> None:
        self.folder = Path(folder)
        self.notes: list[str] = []
        if not files.header_path(self.folder).exists():
            unfinished = files.chunk_folder(self.folder).exists()
            what = "the store was never finished; remove it" if unfinished else "no store there"
            raise ConfigError(f"{self.folder}: {what}; `privml preprocess store=FOLDER` makes one")
        self._key = key = read_key(Path(key_file))
        self._turn = threading.RLock()  # held by a thread that changes the position
        self._lock = FolderLock(self.folder)
        try:
            self.header, self.sealed_offset = self._read_header(key, key_file)
            self.seal = files.seal_of(key, self.header)
            if self.seal.open(self.sealed_offset, files.offset_context(self.header)) is None:
                raise CorruptFile(f"{files.header_path(self.folder)}: the header was altered")
            self.position: Position = self._settle()
        except BaseException:
            self._lock.release()
            raise

    def _read_header(self, key: bytes, key_file: str | Path) -> tuple[Header, bytes]:
        path = files.header_path(self.folder)
        try:
            header, sealed = files.unpack_header(path.read_bytes())
        except CorruptFile as error:
            raise CorruptFile(f"{path}: {error}") from None
        if header.key != key_id(key):
            raise ConfigError(f"{self.folder} is sealed with another key than {key_file}")
        return header, sealed

    def _settle(self) -> Position:
        """The position after a crash at any moment, on the disk, with no chunk before it left."""
        path = files.index_path(self.folder)
        recorded = files.unpack_index(self.seal, self.header, path.read_bytes()) if path.exists() else None
        if recorded is None:
            self.notes.append("the index was damaged: continuing after the last chunk that was used")
        there, kinds = files.chunks_there(self.folder, self.header), range(len(self.header.kinds))
        used = [max(set(range(self.header.chunks(kind))) - there[kind], default=-1) + 1 for kind in kinds]
        if recorded is not None and any(used[kind] > recorded[kind] for kind in kinds):
            self.notes.append("the index is older than the chunks: continuing after the last chunk that was used")
        position = tuple(max(used[kind], recorded[kind] if recorded else 0) for kind in kinds)
        if position != recorded:
            self._write_index(position)
        leftovers = [(kind, chunk) for kind in kinds for chunk in sorted(there[kind]) if chunk < position[kind]]
        self._remove(leftovers)
        if leftovers:
            self.notes.append(f"{len(leftovers)} chunk(s) were counted as used and not handed out: removed")
        return position

    def fits_weights(self, digest: bytes) -> bool:
        """Whether this half depends on no weights, or was made for those with this digest."""
        made = self.header.weights
        return not made or made == tag_of(self._key, self.header.salt, digest)

    # ---- what is left
    def left(self) -> tuple[int, ...]:
        """Correlations by kind that were not used."""
        return self.left_at(self.position)

    def left_at(self, position: Position) -> tuple[int, ...]:
        header = self.header
        return tuple(
            header.before(kind, header.chunks(kind)) - header.before(kind, chunk) for kind, chunk in enumerate(position)
        )

    @property
    def queries_left(self) -> int:
        """Queries of the size it was made for."""
        pairs = zip(self.left(), self.header.per_query, strict=True)
        return min((left // need for left, need in pairs if need), default=0)

    def valid(self, position: Sequence[Any]) -> bool:
        """Whether ``position``, from a peer, exists in this store."""
        fits = len(position) == len(self.header.kinds)
        return fits and all(
            type(chunk) is int and 0 <= chunk <= self.header.chunks(kind) for kind, chunk in enumerate(position)
        )

    # ---- using
    def take(self, wanted: Sequence[int], start: Position) -> Iterator[Chunk]:
        """Chunks from ``start`` on that hold ``wanted`` correlations by kind, or what there is. They, and all before
        them, count as used on the disk when this returns. Raises StoreError for a start before ``position``."""
        return self._use(start, tuple(self.header.end_of(kind, start[kind], n) for kind, n in enumerate(wanted)))

    def take_query(self, query: int) -> Iterator[Chunk]:
        """``take`` of all that was made for one query, counted from 0."""
        return self._use(self.header.query_start(query), self.header.query_start(query + 1))

    def _use(self, start: Position, end: Position) -> Iterator[Chunk]:
        with self._turn:
            self._refuse_closed()
            before = self.position
            if any(first < unused for first, unused in zip(start, before, strict=True)):
                raise StoreError(f"{self.folder}: these correlations were used before")
            if end != before:
                self._write_index(end)
                self.position = end
                self._remove([(kind, chunk) for kind, old in enumerate(before) for chunk in range(old, start[kind])])
        return self._hand_out([(kind, chunk) for kind, first in enumerate(start) for chunk in range(first, end[kind])])

    def take_after(self, wanted: Sequence[int], theirs: Position) -> tuple[Position, Iterator[Chunk]] | None:
        """All of ``wanted`` from the later of ``position`` and ``theirs``, the peer's, on: where that begins, and as
        ``take``. None, and nothing is used, when too little is left there."""
        with self._turn:
            self._refuse_closed()
            start = self._later(theirs)
            if any(want > have for want, have in zip(wanted, self.left_at(start), strict=True)):
                return None
            return start, self.take(wanted, start)

    def take_query_after(self, theirs: Position) -> tuple[Position, Iterator[Chunk]] | None:
        """The same for the first query of which neither party has used anything."""
        with self._turn:
            self._refuse_closed()
            query = self.header.query_at(self._later(theirs))
            return None if query == self.header.queries else (self.header.query_start(query), self.take_query(query))

    def _later(self, theirs: Position) -> Position:
        return tuple(max(pair) for pair in zip(self.position, theirs, strict=True))

    def _hand_out(self, chunks: list[tuple[int, int]]) -> Iterator[Chunk]:
        for kind, chunk in chunks:
            self._refuse_closed()
            count = self.header.size(kind, chunk)
            path = files.chunk_path(self.folder, kind, chunk)
            try:
                sealed = path.read_bytes()
            except FileNotFoundError:
                raise CorruptFile(f"{path}: this chunk is missing") from None
            self._remove([(kind, chunk)])
            if len(sealed) != count * self.header.kinds[kind].bytes + _core.Seal.overhead:
                raise CorruptFile(f"{path}: {len(sealed)} bytes is not the size of {count} correlations")
            yield Chunk(kind, count, self.header.chunk_context(kind, chunk), sealed)

    def _write_index(self, position: Position) -> None:
        replace(files.index_path(self.folder), files.pack_index(self.seal, self.header, position))

    def _remove(self, chunks: list[tuple[int, int]]) -> None:
        for kind, chunk in chunks:
            files.chunk_path(self.folder, kind, chunk).unlink(missing_ok=True)
        if chunks:
            sync_folder(files.chunk_folder(self.folder))

    def _refuse_closed(self) -> None:
        if not self._lock.held:
            raise StoreError(f"{self.folder}: the store was closed; open it again to continue")

    def close(self) -> None:
        with self._turn:  # an index that is being written is on the disk before another process may open it
            self._lock.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"store {self.header.store[:8]} ({os.fspath(self.folder)})"
