# SPDX-License-Identifier: Apache-2.0
"""Keys, altered files and folders that hold no store."""

from __future__ import annotations

import shutil

import pytest
from stores import header, taken, write

from privml.errors import ConfigError, CorruptFile
from privml.store.key import default_key_file, make_key, read_key
from privml.store.store import Store
from privml.store.writer import StoreWriter

pytestmark = pytest.mark.usefixtures("small_chunks")


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
