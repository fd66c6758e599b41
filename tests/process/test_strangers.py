# SPDX-License-Identifier: Apache-2.0
"""Callers who are no clients keep nobody out: the silent, the slow, and those who send something else."""

from __future__ import annotations

import contextlib
import struct
import threading

import pytest
from running import LONG, assert_right, connect, value

from privml.service.options import Capacity
from privml.session.handshake import MAGIC
from privml.session.lanes import LANE_MAGIC


def framed(data):
    """One frame of a channel."""
    return struct.pack("<IIQ", len(data), 0, 0) + data


def test_callers_who_say_nothing_keep_nobody_out(server, ask):
    with server(capacity=Capacity(workers=1, half_open=3, hello_seconds=LONG)) as running:
        silent = [connect(running) for _ in range(10)]
        for seed in range(2):
            assert_right(ask(running, value(seed)), value(seed))
        running.wait("refused", 7 + 1, reason="gone")  # each newcomer in place of the oldest
        for each in silent[:7]:
            assert each.recv(1) == b"", "the oldest were sent away"
        for each in silent:
            each.close()


def test_callers_who_speak_slowly_have_the_same_time_as_others(server, ask):
    """Each byte comes in a frame of its own, well before the deadline of any single read."""
    with server(capacity=Capacity(workers=1, hello_seconds=3.0)) as running, connect(running) as slow:
        hello = MAGIC + struct.pack("<I", 4000) + b" " * 4000
        ended = threading.Event()

        def trickle():
            for byte in hello:
                try:
                    slow.sendall(framed(bytes([byte])))
                except OSError:
                    return
                if ended.wait(0.05):
                    return

        thread = threading.Thread(target=trickle)
        thread.start()
        told = running.wait("refused", reason="gone")
        ended.set()
        thread.join(LONG)
        assert "too long" in told.text
        assert_right(ask(running, value(0)), value(0))


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n" * 4,
        bytes(200),
        framed(b"nonsense"),
        framed(MAGIC + struct.pack("<I", 2**32 - 1)),
        framed(MAGIC + struct.pack("<I", 2) + b"[]"),
        framed(MAGIC + struct.pack("<I", 11) + b'{"busy": 1}'),
        framed(LANE_MAGIC + bytes(36)),
    ],
    ids=["http", "zeros", "nonsense", "huge", "list", "busy", "lane of no session"],
)
def test_garbage_is_refused_beside_a_query(server, pause, sent):
    with server(capacity=Capacity(workers=1, queue=0)) as running:
        first = pause(running, value(0)).there()
        with connect(running) as stranger:
            stranger.sendall(sent)
            told = running.wait("refused")
            with contextlib.suppress(ConnectionError):
                while stranger.recv(4096):
                    pass
        assert told.fields["reason"] in ("protocol", "mismatch")
        assert_right(first.go(), value(0))


def test_a_caller_that_leaves_within_its_hello(server, ask):
    with server(capacity=Capacity(workers=1)) as running:
        with connect(running) as stranger:
            stranger.sendall(framed(MAGIC + struct.pack("<I", 400) + b"{"))
        running.wait("refused", reason="gone")
        assert_right(ask(running, value(0)), value(0))
