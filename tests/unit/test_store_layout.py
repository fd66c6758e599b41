# SPDX-License-Identifier: Apache-2.0
"""How a store's correlations are cut into chunks, and which headers cannot be."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stores import CHUNK, header, write

from privml.engines.twopc.stores import transfers
from privml.errors import ConfigError, CorruptFile, StoreError
from privml.session.agreement import LENGTH_LIMIT
from privml.store import layout
from privml.store.layout import Kind
from privml.store.store import Store
from privml.store.writer import bytes_needed, check_space


@pytest.fixture(autouse=True)  # hypothesis shares the patch over its examples
def cut_small(small_chunks):
    assert layout.LARGEST_CHUNK == CHUNK


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine fails nothing
@given(st.integers(1, 60), st.integers(0, 70), st.integers(0, 200), st.integers(0, 30))
def test_any_run_of_chunks_holds_what_is_wanted_and_no_chunk_too_many(queries, size, wanted, first):
    made = header(queries=queries, kinds=transfers(size, 1))
    last = made.chunks(0)
    assert sum(made.size(0, chunk) for chunk in range(last)) == queries * size
    assert all(0 < made.size(0, chunk) <= CHUNK for chunk in range(last))
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


def test_too_small_a_disk_is_noticed_before(tmp_path):
    huge = header(kinds=transfers(1 << 40, 1 << 40), queries=1 << 10)
    assert bytes_needed(huge) > (1 << 54)
    with pytest.raises(StoreError, match="needs"):
        check_space(tmp_path / "not" / "there", huge)
    check_space(tmp_path, header())


def test_as_many_kinds_as_a_message_names(tmp_path, key):
    kinds = tuple(Kind("x" * 300 + str(index), 1) for index in range(layout.MOST_KINDS))
    layout.check_kinds(kinds)
    with Store(write(tmp_path / "store", key, queries=1, kinds=kinds), key) as store:
        assert len(list(store.take_query(0))) == len(kinds) and store.queries_left == 0
    assert len(json.dumps([999_999] * len(kinds), separators=(",", ":"))) < LENGTH_LIMIT


@pytest.mark.parametrize("kinds", [
    tuple(Kind(str(index), 1) for index in range(layout.MOST_KINDS + 1)), (Kind("x" * (layout.LONGEST_TEXT + 1), 1),),
])  # fmt: skip
def test_what_no_store_can_hold_is_told_before_anything_is_made(kinds):
    with pytest.raises(ConfigError, match="in a store at most|a store holds"):
        layout.check_kinds(kinds)
