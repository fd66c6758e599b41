# SPDX-License-Identifier: Apache-2.0
"""Stores of correlations when parties die and disks fill up: nothing is handed out twice, and they go on working."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from fault_parties import assert_clean_error
from fault_proxy import Proxy
from fault_service import CLIENT, GONE, SERVER, VALUE
from fault_stores import RANKS, Stored, preprocess

from privml import load
from privml.store.key import key_in

QUERIES = 12


@pytest.fixture(scope="session")
def halves(spawner, small, tmp_path_factory):
    """Both halves of a store for QUERIES queries of the small network."""
    folder = tmp_path_factory.mktemp("store")
    with Proxy() as proxy:
        parties = preprocess(spawner, proxy, folder, small.folder / "twopc", QUERIES)
        for party in parties.values():
            assert party.wait() == 0, party.errors
    return folder


@pytest.fixture
def stored(deploy, halves):
    def stored(**options) -> Stored:
        made = Stored(deploy("twopc", name="small network, twopc from a store", **options), halves)
        made.fill()
        return made

    return stored


@pytest.fixture(scope="session")
def prepared_halves(spawner, small, tmp_path_factory):
    """The same with prepared products."""
    folder = tmp_path_factory.mktemp("products")
    with Proxy() as proxy:
        parties = preprocess(spawner, proxy, folder, small.folder / "twopc", QUERIES, products=True)
        for party in parties.values():
            assert party.wait() == 0, party.errors
    return folder


@pytest.fixture
def prepared(deploy, prepared_halves):
    """A service whose store has products, which every query takes."""
    name, words = "small network, twopc from a store with products", ["engine.linear=lattice"]
    made = Stored(deploy("twopc", name=name, words=words, recheck=False), prepared_halves)
    made.fill()
    assert len(made.position(SERVER)) == 4
    return made


def assert_grown(stored, before):
    """Positions never go back on either side, and each was used by a query."""
    now = {side: stored.position(side) for side in RANKS}
    for side in RANKS:
        assert all(new >= old for new, old in zip(now[side], before[side], strict=True)), (before, now)
    stored.assert_nothing_twice()
    return now


@pytest.mark.parametrize("victim", [SERVER, CLIENT])
def test_a_kill_costs_a_query_of_the_store_at_most(stored, outcomes, victim):
    stored = stored(recheck=False)
    service = stored.service
    points = service.points(2, phases=False)
    service.down()
    before = {side: stored.position(side) for side in RANKS}
    for point in points:
        outcomes.add(service.kill(victim, point))
        service.down()
        before = assert_grown(stored, before)
    service.assert_answers()
    service.down()
    now = assert_grown(stored, before)
    assert now[SERVER] == now[CLIENT] != before[SERVER]


def strike_at_step(stored, side, number):
    """A query in which ``side`` is killed at step ``number`` of its store; False when there was no such step."""
    service = stored.service
    service.hooks[side] = [*stored.recording(side), ["die_at_store_step", [number]]]
    service.proxy.restart()
    if side == SERVER:
        try:
            service.up()
        except AssertionError:  # while it opened its half
            assert service.parties[SERVER].wait() == -9
            return True
        client = service.ask()
        if client.wait() == 0:
            return False
        assert_clean_error(client, *GONE)
    else:
        service.up()
        if service.ask().wait() == 0:
            return False
        if service.proxy.reached:
            service.parties[SERVER].line("a connection ended without an answer: PeerDisconnected")
    assert service.parties[side].wait() == -9
    return True


@pytest.mark.slow
@pytest.mark.parametrize("side", [SERVER, CLIENT])
def test_killed_at_every_step_of_the_store(stored, side):
    """Before and after every write, sync, renaming and removal that opening a half and a query make in it."""
    stored = stored()
    before = {each: stored.position(each) for each in RANKS}
    for number in itertools.count(1):
        died = strike_at_step(stored, side, number)
        stored.service.down()
        before = assert_grown(stored, before)
        if not died:
            break
        if number % (QUERIES - 2) == 0:
            stored.fill()
            before = {each: stored.position(each) for each in RANKS}
    assert number > 10, "a write, two syncs and a renaming of the index, and removals"


@pytest.mark.slow
@pytest.mark.parametrize("side", [SERVER, CLIENT])
def test_killed_at_every_step_no_prepared_product_is_used_twice(prepared, side):
    """The first 24 steps: the index, and the removal of each of the query's four chunks."""
    before = {each: prepared.position(each) for each in RANKS}
    for number in range(1, 25):
        died = strike_at_step(prepared, side, number)
        prepared.service.down()
        before = assert_grown(prepared, before)
        if not died:
            break
        if number % (QUERIES - 2) == 0:
            prepared.fill()
            before = {each: prepared.position(each) for each in RANKS}
    assert number > 10, "a write, two syncs and a renaming of the index, and removals"


@pytest.mark.parametrize("full", [SERVER, CLIENT])
def test_a_full_disk_ends_the_query_at_both_sides(stored, full):
    stored = stored()
    service = stored.service
    flag = service.folder / "full"
    service.hooks[full] = [*stored.recording(full), ["full_while", [str(flag)]]]
    service.settle()
    before = {each: stored.handed_out(each) for each in RANKS}
    for _ in range(2):
        flag.touch()
        client = service.ask()
        assert client.wait() == 1
        line = assert_clean_error(client, "StoreError")
        assert "disk is full" in line
        logged = service.parties[SERVER].line("a connection ended without an answer")
        assert "StoreError" in logged and "disk is full" in logged
        assert {each: stored.handed_out(each) for each in RANKS}[full] == before[full], "nothing was handed out"
        flag.unlink()
        service.assert_answers()
        service.mark()
        service.parties[SERVER].assert_holds(service.warm[SERVER])
        before = {each: stored.handed_out(each) for each in RANKS}
    service.down()
    stored.assert_nothing_twice()


@pytest.mark.parametrize("full", [SERVER, CLIENT])
def test_a_disk_that_fills_up_while_a_store_is_made(spawner, proxy, small, tmp_path, full):
    """Neither side keeps a half, both say why, and the next attempt finds room."""
    flag, program = tmp_path / "full", small.folder / "twopc"
    flag.touch()
    key_in(tmp_path / f"{full}.key")
    hooks = {full: [["full_while", [str(flag)]]]}
    for side, party in preprocess(spawner, proxy, tmp_path, program, 2, hooks).items():
        assert party.wait() == 1
        assert "disk is full" in assert_clean_error(party, "StoreError")
        assert not (tmp_path / side).exists()
    flag.unlink()
    for side, party in preprocess(spawner, proxy, tmp_path, program, 2, hooks).items():
        assert party.wait() == 0, party.errors
        assert (tmp_path / side / "header").exists()


# ---- a disk that is really full
@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of its own with room for little more than the halves, and a file that takes the rest."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill_up(place: Path) -> Path:
    filler = place / "filler"
    with filler.open("ab", 0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    assert os.statvfs(place).f_bavail == 0
    return filler


@pytest.mark.parametrize("full", [SERVER, CLIENT])
def test_a_store_on_a_full_disk(stored, tiny_disk, full):
    stored = stored()
    service = stored.service
    stored.places[full] = tiny_disk / "half"
    service.own[full] = [f"preprocessing={stored.places[full]}", f"store_key={stored.made / full}.key"]
    stored.fill()
    service.settle()
    before = stored.handed_out(full)
    filler = fill_up(tiny_disk)
    client = service.ask()
    assert client.wait() == 1
    assert "disk is full" in assert_clean_error(client, "StoreError")
    assert "StoreError" in service.parties[SERVER].line("a connection ended without an answer")
    assert stored.handed_out(full) == before
    filler.unlink()
    service.assert_answers()
    service.down()
    stored.assert_nothing_twice()


@pytest.mark.parametrize("full", [SERVER, CLIENT])
def test_a_store_that_outgrows_its_disk(spawner, proxy, small, tiny_disk, tmp_path, full):
    """The free space is enough for the bytes, but files take whole blocks: the disk is full in the middle."""
    key_in(tmp_path / f"{full}.key")
    drawn = load(small.folder / "twopc" / "program").correlations([VALUE.shape])
    count = int(0.9 * os.statvfs(tiny_disk).f_bavail * os.statvfs(tiny_disk).f_bsize / (16 * drawn.total + 80))
    program, places = small.folder / "twopc", {full: tiny_disk / "half"}
    for party in preprocess(spawner, proxy, tmp_path, program, count, stores=places).values():
        assert party.wait() == 1
        assert "disk is full" in assert_clean_error(party, "StoreError")
    assert list(tiny_disk.iterdir()) == []
    for party in preprocess(spawner, proxy, tmp_path, program, 2, stores=places).values():
        assert party.wait() == 0, party.errors
