# SPDX-License-Identifier: Apache-2.0
"""Entries of a store that a query does not use as they were dealt: it ends before an output is opened."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from dealt_stores import ask, filled, half, make

from privml.engines.threepc import stored
from privml.engines.threepc import stores as kinds
from privml.engines.threepc.randomness import Stream
from privml.errors import PeerDisconnected, PrivmlError, ProgramsDiffer, ProtocolError
from privml.program import Program
from privml.service import session_worker


def test_the_trail_of_a_stream_tells_amounts_and_order():
    trails = []
    for draws in ((1, 2), (2, 1), (3,), (1, 0, 2), (1, 2, 4)):
        stream = Stream(bytes(32))
        for blocks in draws:
            stream.region(blocks)
        trails.append(stream.trail)
    assert trails[0] == trails[3] and len(set(trails)) == 4


def drawing_differently(monkeypatch, peer):
    """The dealer has a build that draws once more from the stream with ``peer`` (2: with both, 3: the weights' masks)
    and deals as many bytes."""
    deal_ahead = kinds.dealing_ahead

    @contextlib.contextmanager
    def differently(engine, query, kept):
        with deal_ahead(engine, query, kept):
            party = engine.party
            (party.streams[peer] if peer < 3 else party.weights._stream).region(1)
            yield

    monkeypatch.setattr(kinds, "dealing_ahead", differently)


def cut(monkeypatch, more, expected=True):
    """Entries have so many bytes ``more`` than the program draws, as the parties expect or not."""
    send, dealt = stored.Links.send_ahead, Program.dealt

    def altered_payload(self, payload):
        middle = payload[: -stored.ENDS_BYTES]
        middle = np.concatenate([middle, np.zeros(more, np.uint8)]) if more > 0 else middle[:more]
        send(self, np.concatenate([middle, payload[-stored.ENDS_BYTES :]]))

    monkeypatch.setattr(stored.Links, "send_ahead", altered_payload)
    if expected:
        monkeypatch.setattr(Program, "dealt", lambda *args: (dealt(*args)[0] + more, 0))


def refused_before_reveal(program, folder, monkeypatch):
    """What both parties say of a query on a store that does not fit; no output was opened at the server."""
    opened = []
    monkeypatch.setattr(session_worker, "reveal", lambda *args, **options: opened.append(args))
    with half(program, folder, 0) as ours, half(program, folder, 1) as theirs:
        served, got = ask(program, ours, theirs)
    assert not opened
    return served, got


@pytest.mark.parametrize("peer", [0, 2, 3])
def test_a_dealer_that_draws_otherwise_than_the_server(program, tmp_path, monkeypatch, peer):
    drawing_differently(monkeypatch, peer)
    filled(program, tmp_path, count=1)
    served, got = refused_before_reveal(program, tmp_path, monkeypatch)
    assert "ProtocolError" in served and "as it was dealt" in served and isinstance(got, PeerDisconnected)


def test_a_dealer_that_draws_otherwise_than_the_client(program, tmp_path, monkeypatch):
    """The server learns from its entry how far the client's streams have come; what it sends is masked by that."""
    drawing_differently(monkeypatch, 1)
    filled(program, tmp_path, count=1)
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        _, got = ask(program, ours, theirs)
    assert isinstance(got, ProgramsDiffer) and "what it has drawn from the store" in str(got)


def test_weights_that_are_kept_enter_to_the_last_byte(program, tmp_path, monkeypatch):
    filled(program, tmp_path, count=1)
    make_kept = stored.KeptWeights.__init__
    longer = lambda self, stream, known=b"", **options: make_kept(self, stream, known and known + b"0", **options)  # noqa: E731
    monkeypatch.setattr(stored.KeptWeights, "__init__", longer)
    with half(program, tmp_path, 0) as ours, half(program, tmp_path, 1) as theirs:
        _, got = ask(program, ours, theirs)
    assert isinstance(got, ProtocolError) and "as it was dealt" in str(got)


@pytest.mark.parametrize("more,words", [(8, "as it was dealt"), (-8, "draws more than was dealt")])
def test_an_entry_of_another_length_ends_the_query(program, tmp_path, monkeypatch, more, words):
    cut(monkeypatch, more)
    filled(program, tmp_path, count=1)
    served, got = refused_before_reveal(program, tmp_path, monkeypatch)
    assert "ProtocolError" in served and words in served and isinstance(got, PeerDisconnected)


@pytest.mark.parametrize("more", [8, -8])
def test_a_dealer_that_deals_more_or_less_than_expected_fills_no_store(program, tmp_path, monkeypatch, more):
    cut(monkeypatch, more, expected=False)
    outcomes, _ = make(program, tmp_path)
    assert all(isinstance(each, PrivmlError) for each in outcomes), outcomes
    assert "another build" in str(outcomes[0])
    assert not (tmp_path / "0").exists() and not (tmp_path / "1").exists()
