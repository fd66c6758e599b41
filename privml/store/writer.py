# SPDX-License-Identifier: Apache-2.0
"""Writes one party's half of a new store: chunks first, the header, without which it is no store, last."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import replace as with_fields
from pathlib import Path

import privml._core as _core
from privml.errors import ConfigError, StoreError
from privml.store import files
from privml.store.durable import FOLDER_MODE, FolderLock, replace, sync_folder, write_new, writing
from privml.store.key import key_id, key_in, tag_of
from privml.store.layout import Header


class StoreWriter:
    """``with StoreWriter(folder, header, key_file) as writer``: put() every chunk, then commit(); whatever is not
    committed is removed. ``header`` needs no salt and key: they are filled in, and its hash of the weights if their
    digest is given.

    Raises ConfigError when the folder is not empty, StoreError when the disk is full or will be.
    """

    def __init__(self, folder: str | Path, header: Header, key_file: str | Path, weights: bytes | None = None) -> None:
        self.folder = Path(folder)
        path = Path(key_file)
        key, salt = key_in(path), os.urandom(16).hex()
        tag = "" if weights is None else tag_of(key, salt, weights)
        self.header = with_fields(header, salt=salt, key=key_id(key), weights=tag)
        self.seal = files.seal_of(key, self.header)
        self._next = [0] * len(self.header.kinds)
        self._whole = True
        self._committed = False
        make_private_folder(self.folder)
        try:
            self._lock = FolderLock(self.folder)
            with writing(self.folder):
                files.chunk_folder(self.folder).mkdir(mode=FOLDER_MODE)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def put(self, kind: int, sealed: bytes) -> None:
        """The next chunk of ``kind``, sealed in ``next_context(kind)``; on the disk when it returns."""
        path = files.chunk_path(self.folder, kind, self._next[kind])
        with writing(path):
            write_new(path, sealed)
        self._next[kind] += 1

    def skip(self, kind: int) -> None:
        """Goes on behind a chunk that could not be put; what lacks one cannot be committed."""
        self._next[kind] += 1
        self._whole = False

    def next_context(self, kind: int) -> bytes:
        return self.header.chunk_context(kind, self._next[kind])

    def next_size(self, kind: int) -> int:
        """Correlations that the next chunk of ``kind`` must hold."""
        return self.header.size(kind, self._next[kind])

    def shorten(self, queries: int) -> None:
        """The store ends after so many queries, of which all was put; what was put of later ones is removed."""
        header = with_fields(self.header, queries=queries)
        for kind, following in enumerate(self._next):
            for chunk in range(header.chunks(kind), following):
                files.chunk_path(self.folder, kind, chunk).unlink(missing_ok=True)
        self.header, self._next = header, [header.chunks(kind) for kind in range(len(self._next))]

    @property
    def offset_context(self) -> bytes:
        return files.offset_context(self.header)

    def commit(self, sealed_offset: bytes) -> None:
        """Makes it a store; ``sealed_offset``: the secret of all its correlations, sealed in ``offset_context``: this
        party's offset of transfers; nothing where each query has a secret of its own."""
        complete = all(following == self.header.chunks(kind) for kind, following in enumerate(self._next))
        if not self._whole or not complete:
            raise ValueError("a store is committed only after all its chunks were put")
        with writing(self.folder):
            sync_folder(files.chunk_folder(self.folder))
        start = self.header.query_start(0)
        replace(files.index_path(self.folder), files.pack_index(self.seal, self.header, start))
        replace(files.header_path(self.folder), files.pack_header(self.header, sealed_offset))
        sync_folder(self.folder.absolute().parent)
        self._committed = True

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._committed:
            with contextlib.suppress(OSError):
                shutil.rmtree(self.folder)
        self._lock.release()


def make_private_folder(folder: Path) -> None:
    """An empty folder of mode 0700; ConfigError when something is in it."""
    with writing(folder):
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; choose another store=FOLDER or remove what is there")
    folder.chmod(FOLDER_MODE)


def bytes_needed(header: Header) -> int:
    """What the chunks will take on the disk."""
    sizes = (
        header.queries * kind.count * kind.bytes + header.chunks(index) * _core.Seal.overhead
        for index, kind in enumerate(header.kinds)
    )
    return sum(sizes)


def check_space(folder: str | Path, header: Header) -> None:
    """StoreError when the disk that ``folder`` lies or will lie on cannot hold the store."""
    there = Path(folder).absolute()
    while not there.exists():
        there = there.parent
    needed, free = bytes_needed(header), shutil.disk_usage(there).free
    if needed > free:
        raise StoreError(f"{folder}: the store needs {needed / 1e6:,.1f} MB and the disk has {free / 1e6:,.1f} MB left")
