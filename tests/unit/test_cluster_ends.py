# SPDX-License-Identifier: Apache-2.0
"""What a cluster tells of the sessions that its workers have cut off."""

from __future__ import annotations

import queue
import time

import pytest

from privml.service import cluster as module
from privml.service.cluster import Cluster
from privml.service.events import Events

LONG = 60.0


class Worker:
    """Does what the test says when it is asked to drain or to cut off."""

    host = "127.0.0.1"

    def __init__(self, on_drain=(), on_cut=()):
        self.asked, self._answers, self._told = [], {"drain": on_drain, "cut": on_cut}, queue.Queue()

    def messages(self):
        yield from iter(self._told.get, None)

    def tell(self, *messages):
        for message in messages:
            self._told.put(message)

    def drain(self):
        self._ask("drain")

    def cut(self):
        self._ask("cut")

    def end(self):
        self.asked.append("end")
        self.tell(None)

    def _ask(self, what):
        self.asked.append(what)
        self.tell(*self._answers.pop(what, ()))


def running(count):
    return {"state": {"ready": True, "waiting": 0, "running": count}}


def stopped(cut):
    return {"event": {"kind": "stopped", "session": "", "fields": {"count": 7, "cut": cut}, "text": ""}}


def begun(*workers):
    cluster = Cluster(len(workers), lambda number, port: workers[number], Events())
    end = time.monotonic() + LONG
    for number, worker in enumerate(workers):
        worker.tell(running(number + 1))
    while sorted(state.running for state in cluster.states) != [n + 1 for n in range(len(workers))]:
        assert time.monotonic() < end
        time.sleep(0.01)
    return cluster


def test_workers_that_are_cut_off_tell_how_many_sessions_that_were():
    workers = [Worker(on_cut=(stopped(cut), None)) for cut in (0, 2)]
    cluster = begun(*workers)
    assert cluster.end() == 2
    assert [worker.asked for worker in workers] == [["drain", "cut"]] * 2 and cluster.idle


def test_workers_that_have_ended_before_are_counted():
    """Each cuts off by itself what does not finish in time."""
    workers = [Worker(on_drain=(stopped(cut), None)) for cut in (1, 0, 3)]
    cluster = begun(*workers)
    cluster.drain()
    assert cluster.end() == 4


@pytest.mark.parametrize("dies", [True, False], ids=["dies", "does not answer"])
def test_a_worker_that_tells_nothing_loses_what_it_had_under_way(monkeypatch, dies):
    monkeypatch.setattr(module, "SECONDS_TO_END", 0.0)
    monkeypatch.setattr(module, "_SECONDS_TO_REPORT", LONG if dies else 0.01)
    workers = [Worker(on_cut=(stopped(0), None)), Worker(on_cut=(None,) if dies else ())]
    cluster = begun(*workers)
    assert cluster.end() == 2
    assert ("end" in workers[1].asked) is not dies


def test_notes_of_the_program_are_told_once():
    told, workers = [], [Worker(on_cut=(stopped(0), None)) for _ in range(2)]
    cluster = Cluster(2, lambda number, port: workers[number], Events(told.append))
    for text in ("ids are public", "an error is accepted"):
        note = {"event": {"kind": "note", "session": "", "fields": {"note": text}, "text": text}}
        for worker in workers:
            worker.tell(note)
    for worker in workers:
        worker.tell(running(0))
    end = time.monotonic() + LONG
    while len(cluster.states) < 2 or not all(state.ready for state in cluster.states):
        assert time.monotonic() < end
        time.sleep(0.01)
    cluster.end()
    notes = [event for event in told if event.kind == "note"]
    assert sorted(event.text for event in notes) == ["an error is accepted", "ids are public"]
    assert not any("worker" in event.fields for event in notes)
