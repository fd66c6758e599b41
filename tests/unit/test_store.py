# SPDX-License-Identifier: Apache-2.0
"""A store hands every chunk out at most once: through crashes, copies of old files, damage and full disks."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privml.errors import ConfigError, CorruptFile, StoreError
from privml.store import durable, files, layout
from privml.store import store as store_module
from privml.store.key import default_key_file, make_key, read_key
from privml.store.layout import BLOCK_BYTES, Header, Kind, transfers
from privml.store.store import Store
from privml.store.writer import StoreWriter, bytes_needed, check_space

FORK = multiprocessing.get_context("fork")
QUERIES, FROM0, FROM1 = 4, 22, 7


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
    }
    return Header(**{**made, **fields})


def content(kind, chunk, size, each=BLOCK_BYTES):
    return bytes([kind, chunk]) * (size * each // 2)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(layout, "LARGEST_CHUNK", 10)


@pytest.fixture
def key(tmp_path):
    return tmp_path / "keys" / "key"


@pytest.fixture
def folder(tmp_path, key):
    return write(tmp_path / "store", key)


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


# ---- layout


@given(st.integers(1, 60), st.integers(0, 70), st.integers(0, 200), st.integers(0, 30))
def test_any_run_of_chunks_holds_what_is_wanted_and_no_chunk_too_many(queries, size, wanted, first):
    # LARGEST_CHUNK is 10 here (see small_chunks); hypothesis shares the patch over its examples.
    made = header(queries=queries, kinds=transfers(size, 1))
    last = made.chunks(0)
    assert sum(made.size(0, chunk) for chunk in range(last)) == queries * size
    assert all(0 < made.size(0, chunk) <= 10 for chunk in range(last))
    first = min(first, last)
    end = made.end_of(0, first, wanted)
    held = sum(made.size(0, chunk) for chunk in range(first, end))
    assert first <= end <= last
    assert held >= wanted or end == last
    assert end == first or held - made.size(0, end - 1) < wanted, "one chunk less would not do"
    if wanted == size and last - first >= made.chunks_per_query(0):
        assert held == size, "a query of the size it was made for wastes nothing"


@pytest.mark.parametrize("fields", [
    {"rank": 2}, {"queries": 0}, {"store": "xyz"}, {"kinds": transfers(-1, 0)}, {"batch": True}, {"kinds": ()},
    {"kinds": (Kind("a", 1, 0),)}, {"kinds": (Kind("a", 1),) * 2}, {"kinds": (Kind(1, 1),)}, {"ring": "64"},
])  # fmt: skip
def test_headers_that_cannot_be(fields):
    with pytest.raises(CorruptFile):
        header(**fields)


# ---- use


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


# ---- crashes


def take_and_die(folder, key, step, nth, out):
    """In a process of its own: hands chunks out, writing which to ``out``, and is killed at the nth such step."""
    left = nth

    def die(here):
        nonlocal left
        left -= here == step
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    replace, unlink = store_module.replace, Path.unlink

    def deadly_replace(path, data):
        die("before the index")
        replace(path, data)
        die("after the index")

    def deadly_unlink(self, missing_ok=False):
        if self.parent.name == "chunks":
            die("before a removal")
        unlink(self, missing_ok)
        if self.parent.name == "chunks":
            die("after a removal")

    store_module.replace, Path.unlink = deadly_replace, deadly_unlink
    with Store(folder, key) as store, open(out, "w") as file:
        for wanted in ((10, 10), (25, 5), (1, 0)):
            for chunk in store.take(wanted, store.position):
                print(chunk.context.decode(), file=file, flush=True)


@pytest.mark.parametrize("step", ["before the index", "after the index", "before a removal", "after a removal"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_killed_at_any_step_nothing_comes_twice(folder, key, tmp_path, step, nth):
    out = tmp_path / "handed out"
    process = FORK.Process(target=take_and_die, args=(folder, key, step, nth, out))
    process.start()
    process.join(60)
    assert process.exitcode == -9
    handed_out = set(out.read_text().splitlines())
    with Store(folder, key) as store:
        later = []
        for chunk in store.take((1000, 1000), store.position):
            assert store.seal.open(chunk.sealed, chunk.context) is not None
            later.append(chunk.context.decode())
    assert handed_out.isdisjoint(later)
    assert len(set(later)) == len(later) > 0
    assert bool(handed_out) == (nth > 1), "the first is killed before it hands anything out"


@pytest.mark.parametrize("size", [0, 1, 30, 55])
def test_a_torn_index_is_noticed(folder, key, size):
    with Store(folder, key) as store:
        taken(store, (22, 7))
    index = folder / "index"
    index.write_bytes(index.read_bytes()[:size])
    with Store(folder, key) as store:
        assert "damaged" in store.notes[0] and store.position == (3, 1)
        assert taken(store, (1, 1)) == [(0, 3), (1, 1)]


def test_a_lost_or_foreign_index_is_noticed(folder, key, tmp_path):
    with Store(folder, key) as store:
        taken(store, (22, 7))
    (folder / "index").unlink()
    with Store(folder, key) as store:
        assert "damaged" in store.notes[0] and store.position == (3, 1)
    other = write(tmp_path / "other", key)
    shutil.copy(other / "index", folder / "index")
    with Store(folder, key) as store:
        assert "damaged" in store.notes[0] and store.position == (3, 1)


def test_an_old_index_that_is_copied_back_brings_nothing_back(folder, key, tmp_path):
    shutil.copy(folder / "index", tmp_path / "old")
    with Store(folder, key) as store:
        first = taken(store, (50, 14))
    shutil.copy(tmp_path / "old", folder / "index")
    with Store(folder, key) as store:
        assert "older" in store.notes[0] and store.position == (7, 2)
        assert not set(first) & set(taken(store, (1000, 1000)))


def test_a_write_that_was_interrupted_leaves_the_old_index(folder, key):
    (folder / "index.new").write_bytes(b"half")
    with Store(folder, key) as store:
        assert store.position == (0, 0) and taken(store, (1, 0)) == [(0, 0)]


def full_disk(monkeypatch, after=0):
    left = after
    real = os.write

    def write(handle, data):
        nonlocal left
        left -= len(data)
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(handle, data)

    monkeypatch.setattr(durable.os, "write", write)


def test_a_full_disk_hands_nothing_out(folder, key, monkeypatch):
    with Store(folder, key) as store:
        with monkeypatch.context() as patch:
            full_disk(patch)
            with pytest.raises(StoreError, match="disk is full"):
                store.take((22, 7), store.position)
        assert len(list((folder / "chunks").iterdir())) == 16 and not (folder / "index.new").exists()
        assert store.position == (0, 0) and taken(store, (10, 0))[0] == (0, 0)


@pytest.mark.parametrize("after", [0, 100, 500, 2200])
def test_a_full_disk_leaves_no_half_store(tmp_path, key, monkeypatch, after):
    make_key(key)
    with monkeypatch.context() as patch:
        full_disk(patch, after)
        with pytest.raises(StoreError, match="disk is full"):
            write(tmp_path / "store", key)
    assert not (tmp_path / "store").exists()
    write(tmp_path / "store", key)


def test_too_small_a_disk_is_noticed_before(tmp_path):
    huge = header(kinds=transfers(1 << 40, 1 << 40), queries=1 << 10)
    assert bytes_needed(huge) > (1 << 54)
    with pytest.raises(StoreError, match="needs"):
        check_space(tmp_path / "not" / "there", huge)
    check_space(tmp_path, header())


# ---- keys and damage


def test_another_key_does_not_open_it(folder, key, tmp_path):
    make_key(tmp_path / "other")
    with pytest.raises(ConfigError, match="another key"):
        Store(folder, tmp_path / "other")
    with pytest.raises(ConfigError, match="no key"):
        Store(folder, tmp_path / "missing")


def test_keys_are_checked(key):
    made = make_key(key)
    assert read_key(key) == made and len(made) == 32
    with pytest.raises(FileExistsError):
        make_key(key)
    key.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_key(key)
    key.chmod(0o600)
    key.write_bytes(made[:31])
    with pytest.raises(CorruptFile, match="31"):
        read_key(key)


def test_where_the_key_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_key_file() == tmp_path / "privml" / "store.key"


def test_altered_public_facts_are_noticed(folder, key):
    path = folder / "header"
    data = path.read_bytes()
    assert b'"queries":4' in data
    path.write_bytes(data.replace(b'"queries":4', b'"queries":9'))
    with pytest.raises(CorruptFile, match="altered"):
        Store(folder, key)
    for broken in (data[:5], data[:-1], b"", data.replace(b'"k":4', b'"k":"')):
        path.write_bytes(broken)
        with pytest.raises(CorruptFile):
            Store(folder, key)
    path.write_bytes(data)
    Store(folder, key).close()


def test_an_altered_chunk_is_noticed(folder, key):
    path = folder / "chunks" / "0-00000000"
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    shutil.copy(folder / "chunks" / "0-00000003", folder / "chunks" / "0-00000001")
    path = folder / "chunks" / "1-00000000"
    path.write_bytes(path.read_bytes()[:-1])
    with Store(folder, key) as store:
        chunks = store.take((22, 7), store.position)
        for _ in range(2):
            chunk = next(chunks)
            assert store.seal.open(chunk.sealed, chunk.context) is None
        assert store.seal.open((last := next(chunks)).sealed, last.context) is not None
        with pytest.raises(CorruptFile, match="1-00000000"):
            next(chunks)


def test_a_missing_chunk_costs_those_before_it(folder, key):
    (folder / "chunks" / "0-00000005").unlink()
    with Store(folder, key) as store:
        assert store.position == (6, 0) and store.notes
        (folder / "chunks" / "0-00000006").unlink()
        with pytest.raises(CorruptFile, match="missing"):
            taken(store, (1, 0))


def test_no_store_and_half_a_store(tmp_path, key):
    with pytest.raises(ConfigError, match="no store"):
        Store(tmp_path, key)
    writer = StoreWriter(tmp_path / "half", header(), key)
    with pytest.raises(ConfigError, match="never finished"):
        Store(tmp_path / "half", key)
    with pytest.raises(ValueError, match="all its chunks"):
        writer.commit(b"")


def test_a_folder_in_use_is_not_overwritten(folder, key, tmp_path):
    with pytest.raises(ConfigError, match="not empty"):
        write(folder, key)
    (tmp_path / "empty").mkdir(mode=0o755)
    write(tmp_path / "empty", key)
    Store(tmp_path / "empty", key).close()
    Store(folder, key).close()


def test_two_stores_have_keys_of_their_own(folder, key, tmp_path):
    """The same id and the same party's key: chunks of one do not open in the other."""
    other = write(tmp_path / "other", key)
    shutil.copy(other / "chunks" / "0-00000000", folder / "chunks" / "0-00000000")
    with Store(folder, key) as store:
        chunk = next(store.take((1, 0), (0, 0)))
        assert store.seal.open(chunk.sealed, chunk.context) is None
