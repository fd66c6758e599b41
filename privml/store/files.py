# SPDX-License-Identifier: Apache-2.0
"""Names of a store's files and the forms of their contents.

``header`` (public facts, then a sealed secret that the whole store has, such as an offset), ``index`` (sealed: the next
chunk of each kind), ``chunks/K-NNNNNNNN`` (sealed correlations of kind K, removed as they are used), ``lock``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import privml._core as _core
from privml.errors import CorruptFile
from privml.store.layout import MAGIC, Header, parse_header

_CHUNK_NAME = re.compile(r"([0-9]{1,3})-([0-9]{8,})")

Position = tuple[int, ...]


def header_path(folder: Path) -> Path:
    return folder / "header"


def index_path(folder: Path) -> Path:
    return folder / "index"


def chunk_folder(folder: Path) -> Path:
    return folder / "chunks"


def chunk_path(folder: Path, kind: int, chunk: int) -> Path:
    return chunk_folder(folder) / f"{kind}-{chunk:08d}"


def seal_of(key: bytes, header: Header) -> _core.Seal:
    """The store's own key: derived from the party's for this half's salt."""
    return _core.Seal(key, bytes.fromhex(header.salt))


def offset_context(header: Header) -> bytes:
    """Binds the sealed secret to every public fact of the header, so that none can be altered."""
    return header.context("offset") + header.plain()


def pack_header(header: Header, sealed_offset: bytes) -> bytes:
    plain = header.plain()
    return MAGIC + struct.pack("<I", len(plain)) + plain + sealed_offset


def unpack_header(data: bytes) -> tuple[Header, bytes]:
    """(header, sealed secret), not yet authenticated; CorruptFile."""
    start = len(MAGIC) + 4
    if not data.startswith(MAGIC) or len(data) < start:
        raise CorruptFile("not a store of privml")
    (length,) = struct.unpack("<I", data[len(MAGIC) : start])
    return parse_header(data[start : start + length]), data[start + length :]


def pack_index(seal: _core.Seal, header: Header, position: Position) -> bytes:
    return seal.seal(_index(header).pack(*position), header.context("index"))


def _index(header: Header) -> struct.Struct:
    return struct.Struct(f"<{len(header.kinds)}Q")


def unpack_index(seal: _core.Seal, header: Header, data: bytes) -> Position | None:
    """None for anything but a whole index of this store."""
    plain = seal.open(data, header.context("index"))
    if plain is None or len(plain) != _index(header).size:
        return None
    position = _index(header).unpack(plain)
    return position if all(chunk <= header.chunks(kind) for kind, chunk in enumerate(position)) else None


def chunks_there(folder: Path, header: Header) -> list[set[int]]:
    """By kind, the chunks that have a file."""
    there: list[set[int]] = [set() for _ in header.kinds]
    for kind, chunk in _chunk_names(folder):
        if kind < len(there):
            there[kind].add(chunk)
    return there


def _chunk_names(folder: Path) -> Iterator[tuple[int, int]]:
    for path in chunk_folder(folder).iterdir():
        match = _CHUNK_NAME.fullmatch(path.name)
        if match:
            yield int(match[1]), int(match[2])
