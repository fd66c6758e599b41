# SPDX-License-Identifier: Apache-2.0
"""A peer has one attempt at a wrong value per actively secure session. How many it has had does not depend on whether
the server ran on, and the library's own client does not give a server more of them."""

import json
import os
import stat
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest
import services
import torch
from running import IDEAL, Running
from services import query, serve
from small_network import converted

from privml.errors import ConfigError, CorruptFile, IdentityError, InvalidInput, PeerDisconnected, StoreError
from privml.service.aborts import LIMITS, Aborts
from privml.service.certificates import issue, make_authority
from privml.session.identity import Tls

MALLORY = SimpleNamespace(peer_name="mallory")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "state" / "aborts.json"


def fail(aborts, error=None, channel=MALLORY):
    with pytest.raises(type(error or PeerDisconnected(""))), aborts.counted(channel):
        raise error or PeerDisconnected("gone")


def test_counts_outlive_the_server(file):
    first = Aborts(file)
    for _ in range(LIMITS[32] - 1):
        fail(first)
    second = Aborts(file)
    second.require_trust("mallory", 32)
    fail(second)
    for aborts in (first, second, Aborts(file)):
        with pytest.raises(IdentityError, match="64 of its sessions"):
            aborts.require_trust("mallory", 32)
        aborts.require_trust("alice", 32)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_session_that_the_server_does_not_survive_has_failed(file):
    code = f"""
import os, pathlib, types
from privml.service.aborts import Aborts
with Aborts(pathlib.Path({str(file)!r})).counted(types.SimpleNamespace(peer_name="mallory")):
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=240).returncode == 9
    assert json.loads(file.read_text()) == {"mallory": 1}
    Aborts(file)
    assert json.loads(file.read_text()) == {"mallory": 1}


def test_sessions_that_end_well_or_compute_nothing_do_not_count(file):
    aborts = Aborts(file)
    with aborts.counted(MALLORY):
        assert json.loads(file.read_text()) == {"mallory": 1}
        aborts.require_trust("mallory", 32)
    fail(aborts, InvalidInput("a shape"))
    fail(aborts, channel=SimpleNamespace(peer_name=""))
    assert json.loads(file.read_text()) == {}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mallory": -1}', '{"mallory": "1"}', '{"a": 1.5}', "\xff"])
def test_a_file_that_holds_no_counts_is_no_empty_one(file, text):
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(CorruptFile, match="restore it, or remove it"):
        Aborts(file)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_nothing_is_opened_that_cannot_be_counted_without_rights(file):
    aborts = Aborts(file)
    file.parent.chmod(0o500)
    with pytest.raises(StoreError, match="aborts=FILE"), aborts.counted(MALLORY):
        raise AssertionError


def test_nothing_is_opened_that_cannot_be_counted(file):
    aborts = Aborts(file)
    file.with_name(file.name + ".new").mkdir()  # where the next counts would be written
    with pytest.raises(StoreError, match="aborts=FILE"), aborts.counted(MALLORY):
        raise AssertionError


# ---- a server
@pytest.fixture(scope="module")
def program():
    return converted()


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    make_authority(folder)
    for name in ("server", "mallory"):
        issue(folder, name)
    return lambda name: Tls(folder / "authority.pem", folder / f"{name}.pem", folder / f"{name}.key", {0: "server"})


@pytest.fixture
def server(program, tls, file):
    settings = {"ot": IDEAL, "ring": 32, "tls": tls("server"), "aborts": file}
    return lambda: Running(partial(serve, program, "127.0.0.1:0"), **settings)


def test_a_restarted_server_refuses_whom_it_has_refused(server, program, tls, file):
    settings = {"ot": IDEAL, "ring": 32, "tls": tls("mallory")}
    x = torch.tensor([[0.5, -1.0, 0.25, 2.0]])
    with server() as running:
        assert query(program, running.address, x, **settings).outputs[0].shape == (1, 3)
        with pytest.raises(ZeroDivisionError):  # breaks off in the midst of a session
            query(program, running.address, x, progress=lambda *step: 1 // 0, **settings)
        running.wait("failed")
    assert json.loads(file.read_text()) == {"mallory": 1}
    file.write_text(json.dumps({"mallory": LIMITS[32]}))
    with server() as running, pytest.raises(InvalidInput, match="is refused: 64 of its sessions"):
        query(program, running.address, x, **settings)


def test_a_file_needs_something_to_count(program, tls, file):
    for wrong in ({"ring": 32}, {"tls": tls("server")}, {}):
        with pytest.raises(ConfigError, match="aborts="):
            serve(program, "127.0.0.1:0", ot=IDEAL, aborts=file, **wrong)


# ---- a client
class Failing:
    """A session that breaks off once it was asked."""

    may_continue = False
    failed = True

    def query(self, inputs, progress):
        raise PeerDisconnected("gone")

    def close(self):
        pass

    def raise_unreported(self):
        pass


@pytest.mark.parametrize(("settings", "bounded"), [({"ring": 32}, True), ({}, False)])
def test_a_client_tries_so_often_and_no_more(program, monkeypatch, settings, bounded):
    client, sessions = services.client(program, "127.0.0.1:1", ot=IDEAL, retries=3 * LIMITS[32], **settings), []
    monkeypatch.setattr(client, "_connect", lambda server, away: sessions.append(server) or Failing())
    monkeypatch.setattr(client._closed, "wait", lambda pause: None)
    x = torch.zeros(1, 4)
    with pytest.raises(IdentityError if bounded else PeerDisconnected):
        client.query(x)
    assert len(sessions) == (LIMITS[32] if bounded else 3 * LIMITS[32] + 1)
    if bounded:
        with pytest.raises(IdentityError, match="64 sessions with it failed"):
            client.query(x)
        assert len(sessions) == LIMITS[32]


def test_a_client_counts_sessions_and_not_servers_that_are_not_there(program, server, tls):
    x = torch.zeros(1, 4)
    with server() as running:
        client = services.client(program, running.address, ot=IDEAL, ring=32, tls=tls("mallory"), deadline=20.0)
        client.query(x)
        with pytest.raises(ZeroDivisionError):
            client.query(x, progress=lambda *step: 1 // 0)
        assert client._failures == 1
        client.query(x)
    with pytest.raises(PeerDisconnected):
        services.client(program, "127.0.0.1:1", ot=IDEAL, ring=32, deadline=0.1).query(x)
    assert client._failures == 1
