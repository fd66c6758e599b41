# SPDX-License-Identifier: Apache-2.0
"""Keys, altered files and folders that hold no store."""

from __future__ import annotations

import errno
import multiprocessing
import os
import shutil

import pytest
from stores import header, taken, write

from privml.errors import ConfigError, CorruptFile
from privml.store import durable
from privml.store import key as key_module
from privml.store.key import default_key_file, key_in, read_key
from privml.store.store import Store
from privml.store.writer import StoreWriter

pytestmark = pytest.mark.usefixtures("small_chunks")
FORK = multiprocessing.get_context("fork")
PROCESSES, ROUNDS = 4, 20


def test_another_key_does_not_open_it(folder, key, tmp_path):
    key_in(tmp_path / "other")
    with pytest.raises(ConfigError, match="another key"):
        Store(folder, tmp_path / "other")
    with pytest.raises(ConfigError, match="no key"):
        Store(folder, tmp_path / "missing")


def test_keys_are_checked(key):
    made = key_in(key)
    assert read_key(key) == made and len(made) == 32 and key_in(key) == made
    assert key_in(key.with_name("second")) != made
    key.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_key(key)
    key.chmod(0o600)
    key.write_bytes(made[:31])
    with pytest.raises(CorruptFile, match="31"):
        read_key(key)


def ask_together(path, turn, found):
    """In a process of its own: what ``key_in`` gives for one new file after the other."""
    for number in range(ROUNDS):
        turn.wait(60)
        found.put(key_in(path / str(number) / "key"))


def test_processes_that_ask_at_once_get_one_key(tmp_path):
    turn, found = FORK.Barrier(PROCESSES), FORK.Queue()
    asking = [FORK.Process(target=ask_together, args=(tmp_path, turn, found)) for _ in range(PROCESSES)]
    for each in asking:
        each.start()
    keys = [found.get(timeout=60) for _ in range(PROCESSES * ROUNDS)]
    for each in asking:
        each.join(60)
        assert each.exitcode == 0
    assert len(set(keys)) == ROUNDS and all(keys.count(key) == PROCESSES for key in keys)
    assert all([file.name for file in folder.iterdir()] == ["key"] for folder in tmp_path.iterdir())


def test_a_key_that_another_process_makes_first_is_taken(key, monkeypatch):
    def slow(path, data):
        if not key.exists():  # the other process, between the look and the link
            key.write_bytes(bytes(range(32)))
            key.chmod(0o600)
        durable.write_new(path, data)

    monkeypatch.setattr(key_module, "write_new", slow)
    assert key_in(key) == bytes(range(32)) and [file.name for file in key.parent.iterdir()] == ["key"]


def test_a_file_system_without_links_has_a_key_too(key, monkeypatch):
    def link(source, target):
        raise PermissionError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", link)
    assert key_in(key) == key_in(key) and [file.name for file in key.parent.iterdir()] == ["key"]


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
