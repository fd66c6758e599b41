# SPDX-License-Identifier: Apache-2.0
"""Names of a store's files and the forms of their contents.

``header`` (public facts, then the sealed offset), ``index`` (sealed: the next chunk of each direction),
``chunks/D-NNNNNNNN`` (sealed correlations, removed as they are used), ``lock``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

from privml import _core
from privml.errors import CorruptFile
from privml.store.layout import DIRECTIONS, MAGIC, Header, parse_header

_INDEX = struct.Struct("<QQ")
_CHUNK_NAME = re.compile(r"([01])-([0-9]{8,})")

Position = tuple[int, int]


def header_path(folder: Path) -> Path:
    return folder / "header"


def index_path(folder: Path) -> Path:
    return folder / "index"


def chunk_folder(folder: Path) -> Path:
    return folder / "chunks"


def chunk_path(folder: Path, direction: int, chunk: int) -> Path:
    return chunk_folder(folder) / f"{direction}-{chunk:08d}"


def seal_of(key: bytes, header: Header) -> _core.Seal:
    """The store's own key: derived from the party's for this half's salt."""
    return _core.Seal(key, bytes.fromhex(header.salt))


def offset_context(header: Header) -> bytes:
    """Binds the sealed offset to every public fact of the header, so that none can be altered."""
    return header.context("offset") + header.plain()


def pack_header(header: Header, sealed_offset: bytes) -> bytes:
    plain = header.plain()
    return MAGIC + struct.pack("<I", len(plain)) + plain + sealed_offset


def unpack_header(data: bytes) -> tuple[Header, bytes]:
    """(header, sealed offset), not yet authenticated; CorruptFile."""
    start = len(MAGIC) + 4
    if not data.startswith(MAGIC) or len(data) < start:
        raise CorruptFile("not a store of privml")
    (length,) = struct.unpack("<I", data[len(MAGIC) : start])
    return parse_header(data[start : start + length]), data[start + length :]


def pack_index(seal: _core.Seal, header: Header, position: Position) -> bytes:
    return seal.seal(_INDEX.pack(*position), header.context("index"))


def unpack_index(seal: _core.Seal, header: Header, data: bytes) -> Position | None:
    """None for anything but a whole index of this store."""
    plain = seal.open(data, header.context("index"))
    if plain is None or len(plain) != _INDEX.size:
        return None
    first, second = _INDEX.unpack(plain)
    fits = first <= header.chunks(0) and second <= header.chunks(1)
    return (first, second) if fits else None


def chunks_there(folder: Path) -> list[set[int]]:
    """By direction, the chunks that have a file."""
    there: list[set[int]] = [set() for _ in DIRECTIONS]
    for direction, chunk in _chunk_names(folder):
        there[direction].add(chunk)
    return there


def _chunk_names(folder: Path) -> Iterator[tuple[int, int]]:
    for path in chunk_folder(folder).iterdir():
        match = _CHUNK_NAME.fullmatch(path.name)
        if match:
            yield int(match[1]), int(match[2])
