# SPDX-License-Identifier: Apache-2.0
"""The queue of a service: order, capacity, and when requests are refused; and the two signals that end it."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from privml.service import sessions as module
from privml.service.events import LONGEST_TEXT, Events, Stop, kept_signals, on_signals, printable
from privml.service.options import Capacity
from privml.service.sessions import Dispatcher

LONG = 60.0


class Request:
    peer, gone = "", False

    def __init__(self, name=0):
        self.name, self.closed, self.go = name, threading.Event(), threading.Event()

    def close(self):
        self.closed.set()
        self.go.set()


class Clock:
    now = 100.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def started():
    """Makes a dispatcher whose sessions last until their request may go; ``ran`` lists them in order."""
    made = []

    def make(run=None, **capacity):
        ran = []

        def hold(request):
            ran.append(request.name)
            assert request.go.wait(LONG)

        dispatcher = Dispatcher(Capacity(**capacity), run or hold)
        dispatcher.ran = ran
        made.append(dispatcher)
        return dispatcher

    yield make
    for each in made:
        each.end()


def test_nobody_keeps_a_request_whose_session_has_ended(started):
    dispatcher = started(run=lambda request: None, workers=1)
    dispatcher.start()
    request = Request()
    kept = weakref.ref(request)
    assert dispatcher.offer(request) and request.closed.wait(LONG)
    del request
    wait_until(dispatcher, lambda: kept() is None)


def offer_until(dispatcher, count):
    requests = [Request(number) for number in range(count)]
    return requests, [dispatcher.offer(request) for request in requests]


def wait_until(dispatcher, condition):
    end = time.monotonic() + LONG
    while not condition():  # a session's begin is announced to nobody
        assert time.monotonic() < end
        time.sleep(0.01)


def test_requests_are_served_in_their_order_and_closed_afterwards(started):
    dispatcher = started(workers=1, queue=5)
    requests, taken = offer_until(dispatcher, 6)
    assert taken == [True] * 6 and dispatcher.waiting == 6 and not dispatcher.idle
    dispatcher.start()
    for request in requests:
        request.go.set()
        assert request.closed.wait(LONG)
    wait_until(dispatcher, lambda: not dispatcher._running)
    assert dispatcher.ran == list(range(6)) and dispatcher.idle


@pytest.mark.parametrize("workers, queue", [(1, 0), (1, 2), (3, 0), (2, 3)])
def test_as_many_are_taken_as_there_is_room_for(started, workers, queue):
    dispatcher = started(workers=workers, queue=queue)
    dispatcher.start()
    requests, taken = offer_until(dispatcher, workers + queue + 2)
    assert taken == [True] * (workers + queue) + [False] * 2 and dispatcher.full
    requests[0].go.set()
    wait_until(dispatcher, lambda: len(dispatcher._running) + len(dispatcher._waiting) < workers + queue)
    assert not dispatcher.full and dispatcher.offer(Request())


def test_one_name_has_so_many_sessions_and_no_more(started):
    class Named(Request):
        peer = "lab-b"

    dispatcher = started(workers=1, queue=9, sessions_per_name=2)
    dispatcher.start()
    first, second = Named(1), Named(2)
    assert dispatcher.offer(first)
    wait_until(dispatcher, lambda: dispatcher.running == 1)
    assert dispatcher.offer(second), "one that runs, one that waits"
    assert not dispatcher.offer(Named(3)) and not dispatcher.full
    assert [dispatcher.offer(Request()) for _ in range(3)] == [True] * 3, "who has proved no name is not told apart"
    second.gone = True
    third = Named(3)
    assert dispatcher.offer(third) and not dispatcher.offer(Named(4)), "who is gone does not count"
    first.go.set()
    wait_until(dispatcher, lambda: first not in dispatcher._running)
    assert dispatcher.offer(Named(5)) and not dispatcher.offer(Named(6))


def test_sessions_that_give_way_make_room(started):
    dispatcher = started(workers=1, queue=0)
    dispatcher.start()
    assert dispatcher.offer(Request()) and not dispatcher.offer(Request())
    dispatcher._spare = lambda: 1
    assert not dispatcher.full and dispatcher.offer(Request()) and dispatcher.full


def test_who_waits_too_long_is_given_back(started, clock):
    dispatcher = started(workers=1, queue=3, queue_seconds=5.0)
    (first, second), _ = offer_until(dispatcher, 2)
    clock.now += 3
    third = Request()
    assert dispatcher.offer(third) and dispatcher.overdue() == []
    clock.now += 2.5
    assert dispatcher.overdue() == [first, second] and dispatcher.waiting == 1
    clock.now += 3
    assert dispatcher.overdue() == [third] and dispatcher.idle


def test_the_time_to_come_again_follows_from_how_long_sessions_take(started, clock):
    dispatcher = started(workers=2, queue=4)
    assert dispatcher.retry_after() == 1.0
    dispatcher._done(Request(), 10.0)
    assert dispatcher.retry_after() == 1.0, "nobody is there"
    offer_until(dispatcher, 6)
    assert dispatcher.retry_after() == 30.0
    dispatcher._done(Request(), 5.0)
    assert dispatcher.retry_after() == 27.0
    for _ in range(50):
        dispatcher._done(Request(), 1e6)
    assert dispatcher.retry_after() == 300.0


def test_a_session_that_takes_too_long_is_reported_once(started, clock):
    dispatcher = started(workers=2, queue=3, queue_seconds=1e6, session_seconds=100.0)
    dispatcher.start()
    requests, _ = offer_until(dispatcher, 3)
    wait_until(dispatcher, lambda: len(dispatcher._running) == 2)
    assert not any(dispatcher.is_past_half(request) for request in requests)
    clock.now += 60
    assert [dispatcher.is_past_half(request) for request in requests] == [True, True, False], (
        "the third one has not begun"
    )
    assert dispatcher.overlong() == []
    clock.now += 50
    assert dispatcher.overlong() == requests[:2] and dispatcher.overlong() == []
    assert [dispatcher.is_late(request) for request in requests] == [True, True, False]
    requests[0].go.set()
    wait_until(dispatcher, lambda: dispatcher.ran == [0, 1, 2])
    assert not dispatcher.is_late(requests[0]) and not dispatcher.is_past_half(requests[2])


def test_sessions_need_not_have_a_limit(started, clock):
    dispatcher = started(workers=1, session_seconds=0)
    dispatcher.start()
    request = Request()
    dispatcher.offer(request)
    wait_until(dispatcher, lambda: len(dispatcher._running) == 1)
    clock.now += 1e9
    assert dispatcher.overlong() == [] and not dispatcher.is_past_half(request)


def test_draining_begins_nothing(started):
    dispatcher = started(workers=1, queue=3)
    dispatcher.start()
    requests, _ = offer_until(dispatcher, 3)
    wait_until(dispatcher, lambda: len(dispatcher._running) == 1)
    assert dispatcher.drain() == requests[1:] and not dispatcher.offer(Request()) and not dispatcher.idle
    requests[0].go.set()
    wait_until(dispatcher, lambda: not dispatcher._running)
    assert dispatcher.idle and dispatcher.ran == [0] and dispatcher.end() == 0


def test_the_end_closes_what_runs_and_what_waits(started):
    dispatcher = started(workers=2, queue=3)
    dispatcher.start()
    requests, _ = offer_until(dispatcher, 4)
    wait_until(dispatcher, lambda: len(dispatcher._running) == 2)
    assert dispatcher.end() == 2
    assert all(request.closed.is_set() for request in requests) and dispatcher.ran == [0, 1]


def test_sessions_that_give_way_are_not_cut_off(started):
    dispatcher = started(workers=2, queue=0)
    dispatcher.start()
    offer_until(dispatcher, 2)
    wait_until(dispatcher, lambda: len(dispatcher._running) == 2)
    dispatcher._spare = lambda: 1
    assert dispatcher.end() == 1


def test_what_a_session_raises_is_kept_and_the_next_one_runs(started):
    ran = []

    def run(request):
        ran.append(request.name)
        raise KeyError(request.name)

    dispatcher = started(run, workers=1, queue=3)
    dispatcher.start()
    requests, _ = offer_until(dispatcher, 2)
    assert requests[1].closed.wait(LONG) and ran == [0, 1]
    assert isinstance(dispatcher.failure, KeyError) and dispatcher.failure.args == (0,)


def test_many_threads_offer_at_once(started):
    served, lock = [], threading.Lock()

    def run(request):
        with lock:
            served.append(request.name)

    dispatcher = started(run, workers=4, queue=10_000)
    dispatcher.start()
    with ThreadPoolExecutor(8) as executor:
        taken = list(executor.map(lambda number: dispatcher.offer(Request(number)), range(2000)))
    wait_until(dispatcher, lambda: not dispatcher._running and not dispatcher._waiting)
    assert all(taken) and sorted(served) == list(range(2000))


# ---- signals
@pytest.mark.parametrize("below", [True, False], ids=["by the system's call", "in Python"])
def test_a_library_does_not_keep_the_signals_that_it_takes(below):
    with on_signals(Stop()) as stop:
        with kept_signals():
            if below:
                ctypes.CDLL(None).signal(int(signal.SIGTERM), signal.SIG_IGN)
            else:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.kill(os.getpid(), signal.SIGTERM)
            assert not stop.draining
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.draining


def test_one_signal_drains_and_the_second_ends():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with on_signals(Stop()) as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert (stop.draining, stop.ending, stop.exit_code) == (True, False, 0)
        os.kill(os.getpid(), signal.SIGINT)
        assert (stop.draining, stop.ending, stop.exit_code) == (True, True, 130)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "a third one has its usual effect"
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_the_exit_code_tells_of_sessions_cut_off():
    assert Stop().exit_code == 0 and Stop(draining=True, signal=15).exit_code == 0
    assert Stop(draining=True, signal=15, cut=3).exit_code == 1


# ---- events
@pytest.mark.parametrize(
    "text, shown",
    [
        ("hospital-a", "hospital-a"),
        ("a\nlistening on port 1", "a\\nlistening on port 1"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\u202eb\u2028c\x85d", "a\\u202eb\\u2028c\\x85d"),
        ("\udc80", "\\udc80"),
        ("Klinikum Süd 東京", "Klinikum Süd 東京"),
        ("x" * 600, "x" * LONGEST_TEXT + "..."),
    ],
)
def test_text_of_peers_cannot_steer_a_terminal_or_forge_a_line(text, shown):
    assert printable(text) == shown
    events = []
    Events(events.append).emit("refused", text=text, peer=text, nested=[{"a": text}])
    assert events[0].text == shown and events[0].fields == {"peer": shown, "nested": [{"a": shown}]}


def test_the_error_of_a_watcher_is_kept_and_the_others_are_called():
    told = []

    def fail(event):
        raise StopIteration(event.kind)

    events = Events(fail, told.append, None)
    events.emit("started", "abc")
    events.emit("ended", "abc")
    assert [event.kind for event in told] == ["started", "ended"] and events.failure.args == ("started",)
