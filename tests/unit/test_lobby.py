# SPDX-License-Identifier: Apache-2.0
"""Where a dealer sorts connections into sessions: nobody who begins many keeps out another one."""

from __future__ import annotations

import itertools

import pytest

from privml.errors import IdentityError, ProtocolError
from privml.session import dealer
from privml.session.dealer import PLACES, PendingSessions

MOST = 6


class Channel:
    def __init__(self, name=""):
        self.peer_name, self.closed = name, False
        self.names = ([], [name] if name else [])

    def close(self):
        self.closed = True


@pytest.fixture
def lobby(monkeypatch):
    monkeypatch.setattr(dealer, "MOST_WAITING", MOST)
    lines = []
    lobby = PendingSessions(60.0, lines.append)
    lobby.lines = lines
    return lobby


TOKENS = (number.to_bytes(32, "big") for number in itertools.count())


def begin(lobby, *names):
    """For each name a session that it has begun: its token and its first connection."""
    begun = [(next(TOKENS), Channel(name)) for name in names]
    for token, channel in begun:
        assert lobby.add(channel, token, PLACES[0]) is None
    return begun


def complete(lobby, token, name=""):
    """``name``: that of the party whose first connection is there."""
    assert lobby.add(Channel(name), token, PLACES[1]) is None
    return lobby.add(Channel(), token, PLACES[2])


def test_who_begins_many_makes_room_with_its_own(lobby):
    ((honest, first),) = begin(lobby, "hospital-a")
    flood = begin(lobby, *["lab-x"] * (MOST - 1))
    others = begin(lobby, "lab-b", "lab-c")
    more = begin(lobby, *["lab-x"] * 20)
    assert not first.closed and not any(channel.closed for _, channel in others)
    assert all(channel.closed for _, channel in [*flood, *more[:-3]]), "the oldest of the most"
    assert not any(channel.closed for _, channel in more[-3:])
    assert "most of them of 'lab-x'" in lobby.lines[0] and len(lobby.lines) == len(flood) + 17
    for name, token in (("hospital-a", honest), ("lab-b", others[0][0]), ("lab-c", others[1][0])):
        assert complete(lobby, token, name).token == token


def test_without_names_the_oldest_goes(lobby):
    begun = begin(lobby, *[""] * (MOST + 2))
    assert [channel.closed for _, channel in begun] == [True] * 2 + [False] * MOST
    assert complete(lobby, begun[-1][0]) is not None


def test_a_connection_of_a_session_that_waits_takes_nobodys_place(lobby):
    begun = begin(lobby, *["hospital-a"] * MOST)
    with pytest.raises(ProtocolError, match="there already"):
        lobby.add(Channel("hospital-a"), begun[0][0], PLACES[0])
    gathering = complete(lobby, begun[0][0], "hospital-a")
    assert gathering.complete and not any(channel.closed for channel in gathering.channels.values())
    assert lobby.lines == []


def test_a_party_has_one_name_and_no_two_have_the_same(lobby):
    ((token, _),) = begin(lobby, "hospital-a")
    with pytest.raises(IdentityError, match="a further connection of 'hospital-a'"):
        lobby.add(Channel("lab-b"), token, PLACES[1])
    with pytest.raises(IdentityError, match="two of the three parties"):
        lobby.add(Channel("hospital-a"), token, PLACES[2])
    assert lobby.add(Channel("lab-b"), token, PLACES[2]) is None, "who was refused has spoilt nothing"
    assert lobby.add(Channel("hospital-a"), token, PLACES[1]).complete


def test_no_party_has_the_dealers_own_name(lobby):
    channel = Channel("helper-c")
    channel.names = (["helper-c"], ["lab-b", "helper-c"])
    with pytest.raises(IdentityError, match="'helper-c'"):
        lobby.add(channel, next(TOKENS), PLACES[0])
