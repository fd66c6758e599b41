# SPDX-License-Identifier: Apache-2.0
"""Through crashes, copies of old files and full disks no chunk of a store is handed out twice."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest
from stores import taken, write

from privml.errors import StoreError
from privml.store import durable
from privml.store import store as store_module
from privml.store.key import key_in
from privml.store.store import Store

pytestmark = pytest.mark.usefixtures("small_chunks")
FORK = multiprocessing.get_context("fork")


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
    key_in(key)
    with monkeypatch.context() as patch:
        full_disk(patch, after)
        with pytest.raises(StoreError, match="disk is full"):
            write(tmp_path / "store", key)
    assert not (tmp_path / "store").exists()
    write(tmp_path / "store", key)
