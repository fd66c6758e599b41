# SPDX-License-Identifier: Apache-2.0
"""A store hands every chunk out at most once, to one process at a time."""

from __future__ import annotations

import multiprocessing
import os
import stat
import threading

import pytest
from stores import FROM0, FROM1, QUERIES, content, header, opened, taken, write

from privml.errors import StoreError
from privml.store import files
from privml.store.layout import Kind
from privml.store.store import Store

pytestmark = pytest.mark.usefixtures("small_chunks")
FORK = multiprocessing.get_context("fork")


def test_every_chunk_comes_once_in_order(folder, key):
    with Store(folder, key) as store:
        assert store.left() == (QUERIES * FROM0, QUERIES * FROM1) and store.queries_left == QUERIES
        assert taken(store, (22, 7)) == [(0, 0), (0, 1), (0, 2), (1, 0)]
        assert taken(store, (1, 0)) == [(0, 3)]
        assert store.queries_left == 2
        assert store.position == (4, 1)
    with Store(folder, key) as store:
        assert store.notes == [] and store.position == (4, 1)
        assert taken(store, (22, 22)) == [(0, 4), (0, 5), (0, 6), (1, 1), (1, 2), (1, 3)]
        assert taken(store, (1000, 1000)) == [(0, chunk) for chunk in range(7, 12)]
        assert store.left() == (0, 0) and store.queries_left == 0
        assert taken(store, (5, 5)) == []
    assert list((folder / "chunks").iterdir()) == []


def test_the_later_position_of_the_two_parties_counts(folder, key):
    with Store(folder, key) as store:
        assert store.valid((5, 2)) and not store.valid((13, 0)) and not store.valid((-1, 0))
        assert taken(store, (10, 7), (5, 2)) == [(0, 5), (0, 6), (1, 2)]
        with pytest.raises(StoreError, match="used before"):
            store.take((1, 1), (0, 0))
    assert {path.name for path in (folder / "chunks").iterdir()} == {f"0-{n:08d}" for n in range(7, 12)} | {
        "1-00000003"
    }


@pytest.mark.parametrize("wanted", [(22, 7), (5, 7), (0, 3), (31, 0)], ids=str)
def test_threads_share_a_store_and_never_a_chunk(folder, key, wanted):
    threads, taken_by, begin = 8, [], threading.Barrier(8)

    def draw(store):
        begin.wait(20)
        while (allotted := store.take_after(wanted, (0, 0))) is not None:
            chunks = [(chunk.kind, store.seal.open(chunk.sealed, chunk.context)[1]) for chunk in allotted[1]]
            taken_by.append((allotted[0], chunks))

    with Store(folder, key) as store:
        started = [threading.Thread(target=draw, args=(store,)) for _ in range(threads)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join(60)
        assert any(want > have for want, have in zip(wanted, store.left(), strict=True)), "taken until nothing suffices"
        left = [(d, chunk) for d in (0, 1) for chunk in range(store.position[d], store.header.chunks(d))]
    handed_out = [chunk for _, chunks in taken_by for chunk in chunks]
    assert sorted(handed_out + left) == [(d, chunk) for d in (0, 1) for chunk in range(12 if d == 0 else 4)]
    for start, chunks in taken_by:
        sizes = [sum(header().size(d, chunk) for at, chunk in chunks if at == d) for d in (0, 1)]
        assert all(size >= want for size, want in zip(sizes, wanted, strict=True))
        assert all(chunk >= start[direction] for direction, chunk in chunks)


def test_what_does_not_suffice_is_left_alone(folder, key):
    with Store(folder, key) as store:
        assert store.take_after((QUERIES * FROM0 + 1, 0), (0, 0)) is None
        assert store.take_after((22, 7), (10, 0)) is None
        assert store.position == (0, 0)
        start, chunks = store.take_after((22, 7), (3, 2))
        assert start == (3, 2) and len(list(chunks)) == 4 and store.position == (6, 3)


# Chunks of 10 * 16 bytes: one key, 5 numbers in one chunk each query, 7 of 40 bytes in chunks of at most 4.
QUERY = (Kind("key", 1), Kind("numbers", 5, 32), Kind("longer numbers", 7, 40))


def test_queries_that_are_taken_whole(tmp_path, key):
    folder = write(tmp_path / "store", key, kinds=QUERY, engine="active", ring=64)
    first = [(0, 0), (1, 0), (2, 0), (2, 1)]
    with Store(folder, key) as store:
        assert store.header.query_start(3) == (3, 3, 6) and store.queries_left == QUERIES
        assert store.header.query_at((0, 0, 0)) == 0 and store.header.query_at((1, 1, 2)) == 1
        assert store.header.query_at((1, 0, 0)) == 1 and store.header.query_at((1, 1, 3)) == 2, "begun is used"
        assert opened(store, store.take_query(0)) == first and store.position == (1, 1, 2)
        with pytest.raises(StoreError, match="used before"):
            store.take_query(0)
        assert opened(store, store.take_query(2)) == [(0, 2), (1, 2), (2, 4), (2, 5)]
        assert store.queries_left == 1
    assert {path.name for path in (folder / "chunks").iterdir()} == {
        "0-00000003", "1-00000003", "2-00000006", "2-00000007"
    }  # fmt: skip
    (folder / "chunks" / "2-00000006").unlink()
    (folder / "index").unlink()
    with Store(folder, key) as store:
        assert store.header.query_at(store.position) == QUERIES and store.queries_left == 0


def test_the_index_is_on_the_disk_before_anything_is_handed_out(folder, key):
    with Store(folder, key) as store:
        chunks = store.take((22, 7), store.position)
        index = (folder / "index").read_bytes()
        assert files.unpack_index(store.seal, store.header, index) == (3, 1)
        assert len(list((folder / "chunks").iterdir())) == 16, "nothing was read yet"
        next(chunks)
        assert not (folder / "chunks" / "0-00000000").exists()


def test_a_closed_store_gives_nothing_out(folder, key):
    store = Store(folder, key)
    begun = store.take((22, 7), store.position)
    next(begun)
    store.close()
    store.close()
    with Store(folder, key) as other:  # whose it is now
        for use in (
            lambda: store.take((1, 1), store.position),
            lambda: store.take_after((1, 1), (0, 0)),
            lambda: store.take_query(3),
            lambda: store.take_query_after((0, 0)),
            lambda: next(begun),
        ):
            with pytest.raises(StoreError, match="was closed"):
                use()
        assert other.position == (3, 1) and other.queries_left == QUERIES - 1


def test_files_are_for_the_owner_only(folder, key):
    with Store(folder, key) as store:
        taken(store, (1, 1))
    for path in [folder, *folder.rglob("*"), key]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_nothing_lies_in_clear(folder):
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert content(0, 1, 1) not in data and content(1, 0, 1) not in data and b"o" * 16 not in data


def open_elsewhere(folder, key):
    try:
        Store(folder, key)
    except StoreError:
        os._exit(42)


def test_one_process_at_a_time(folder, key):
    with Store(folder, key):
        with pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
            Store(folder, key)
        other = FORK.Process(target=open_elsewhere, args=(folder, key))
        other.start()
        other.join(60)
        assert other.exitcode == 42
    Store(folder, key).close()
