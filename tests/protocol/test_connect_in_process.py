# SPDX-License-Identifier: Apache-2.0
"""privml.connect: both parties of one program, here on threads over loopback TCP."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from ports import reserved

import privml
from privml.errors import ConfigError, HandshakeMismatch, PeerDisconnected


@pytest.fixture
def address():
    with reserved(1) as (address,):
        yield address


def run(address, *settings, program=None):
    specs = [privml.SessionSpec.of(deadline=20.0, **own) for own in settings]

    def party(rank):
        side = {"listen": address} if rank == 0 else {"connect": address}
        with privml.connect(rank, specs[rank], **side, program=program and program[rank]) as session:
            x = privml.share(torch.tensor([1.5, -2.0, 3.0]) if rank == 1 else None, owner=1, shape=(3,))
            w = privml.share(torch.tensor([2.0, 5.0, -1.0]) if rank == 0 else None, owner=0, shape=(3,))
            return privml.reveal(torch.relu(x * w), to=1), session

    with ThreadPoolExecutor(2) as executor:
        return [executor.submit(party, rank) for rank in range(2)]


def test_both_parties_run_one_program(address):
    numerics = privml.Numerics(bits=32, scale=10)
    server, client = (f.result() for f in run(address, {"numerics": numerics}, {"numerics": numerics}))
    assert server[0] is None and client[0].tolist() == [3.0, 0.0, 0.0]
    sessions = server[1], client[1]
    assert [s.rank for s in sessions] == [0, 1] and sessions[0].common_seed == sessions[1].common_seed
    ours, theirs = (s.ledger.snapshot() for s in sessions)
    for phase in ("setup", "preprocess", "online"):
        assert getattr(ours, phase).sent == getattr(theirs, phase).received
    assert ours.online.bytes > 0 and ours.cots_as_sender == theirs.cots_as_receiver


def test_simulated_network_slows_it_down(address):
    settings = {"ot": "ideal", "delay_ms": 20.0, "bandwidth_mbps": 100.0}
    _, (_, session) = (f.result() for f in run(address, settings, settings))
    online = session.ledger.snapshot().online
    assert online.seconds >= 0.02 * (online.depth - 1) > 0


def test_numerics_must_agree(address):
    for future in run(address, {"numerics": privml.Numerics(bits=32, scale=10)}, {}):
        with pytest.raises(HandshakeMismatch, match="numerics is '"):
            future.result()


def test_program_must_agree(address):
    for future in run(address, {}, {}, program=("aa", "bb")):
        with pytest.raises(HandshakeMismatch, match="program is '"):
            future.result()


HERE = {"listen": "127.0.0.1:0"}


@pytest.mark.parametrize(("rank", "places", "settings"), [
    (2, HERE, {}), (0, {}, {}), (0, {"listen": "a:1", "connect": "b:1"}, {}), (0, {"listen": "nonsense"}, {}),
    (0, HERE, {"engine": "plain"}), (0, HERE, {"ot": "other"}), (0, HERE, {"k": 11}),
    (0, {"listen": "0.0.0.0:0"}, {"ot": "ideal"}), (0, {"listen": "10.0.0.1:0"}, {"test_seed": 1}),
])  # fmt: skip
def test_wrong_settings_are_refused_at_once(rank, places, settings):
    own = {"deadline": 0.1} | settings if settings.get("engine") != "plain" else settings
    with pytest.raises(ConfigError):
        privml.connect(rank, privml.SessionSpec.of(**own), **places)


@pytest.mark.parametrize("name", [
    "engine", "ot", "k", "security", "numerics", "deadline", "network", "threads", "refill", "truncation", "device",
    "ring", "tls", "insecure", "test_seed",
])  # fmt: skip
def test_what_moved_into_the_specification_says_so(name):
    now = "delay_ms" if name == "network" else name
    with pytest.raises(ConfigError, match=rf"has no {name}=: .*SessionSpec\.of\({now}="):
        privml.connect(0, **HERE, **{name: None})
    with pytest.raises(TypeError, match="unexpected keyword argument 'ports'"):
        privml.connect(0, **HERE, ports=1)


def test_nobody_there(address):
    waited = []
    with pytest.raises(PeerDisconnected, match="within 1.5 seconds"):
        privml.connect(1, privml.SessionSpec(deadline=1.5, on_wait=waited.append), connect=address)
    assert waited and 0 < waited[0] <= 1.5
