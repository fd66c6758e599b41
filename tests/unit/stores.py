# SPDX-License-Identifier: Apache-2.0
"""Stores of small chunks with contents that tell which chunk they are of."""

from __future__ import annotations

from privml.engines.twopc.stores import transfers
from privml.store.layout import BLOCK_BYTES, Header
from privml.store.writer import StoreWriter

QUERIES, FROM0, FROM1 = 4, 22, 7
# Correlations in a chunk at the most; the fixture ``small_chunks`` sees to it.
CHUNK = 10


def header(rank=0, store="ab" * 16, **fields):
    made = {
        "store": store,
        "salt": "0" * 32,
        "key": "0",
        "rank": rank,
        "provider": "softspoken",
        "k": 4,
        "security": "semi_honest",
        "program": "feed",
        "batch": 1,
        "queries": QUERIES,
        "kinds": transfers(FROM0, FROM1),
        "engine": "twopc",
    }
    return Header(**{**made, **fields})


def content(kind, chunk, size, each=BLOCK_BYTES):
    return bytes([kind % 256, chunk]) * (size * each // 2)


def write(folder, key, **fields):
    with StoreWriter(folder, header(**fields), key) as writer:
        for index, kind in enumerate(writer.header.kinds):
            for chunk in range(writer.header.chunks(index)):
                plain = content(index, chunk, writer.next_size(index), kind.bytes)
                writer.put(index, writer.seal.seal(plain, writer.next_context(index)))
        writer.commit(writer.seal.seal(b"o" * 16, writer.offset_context))
    return folder


def taken(store, wanted, start=None):
    """What `take` hands out, opened."""
    return opened(store, store.take(wanted, start or store.position))


def opened(store, chunks):
    out = []
    for chunk in chunks:
        plain = store.seal.open(chunk.sealed, chunk.context)
        assert plain is not None and len(plain) == chunk.count * store.header.kinds[chunk.kind].bytes
        out.append((chunk.kind, plain[1]))
    return out
