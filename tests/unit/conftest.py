# SPDX-License-Identifier: Apache-2.0
import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


# ---- of stores, which need the compiled core
@pytest.fixture
def small_chunks(monkeypatch):
    from stores import CHUNK

    monkeypatch.setattr("privml.store.layout.LARGEST_CHUNK", CHUNK)


@pytest.fixture
def key(tmp_path):
    return tmp_path / "keys" / "key"


@pytest.fixture
def folder(tmp_path, key, small_chunks):
    from stores import write

    return write(tmp_path / "store", key)
