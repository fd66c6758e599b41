# SPDX-License-Identifier: Apache-2.0
"""The network between the parties, as a relay that counts what crosses it and can go wrong at a chosen byte or message.

    with Proxy() as proxy:
        address = proxy.link("127.0.0.1:9000")        whoever connects here talks to port 9000
        proxy.lead(address, "127.0.0.1:9001")         and from now on to port 9001
        proxy.fail_at(100_000, proxy.reset)           when so many bytes, of all links and both ways, were forwarded
        proxy.fail_at_message(7, server.kill)         when so many messages (frames of privml, without TLS) were

Everything before the chosen point has been handed to its receiver's socket, nothing behind it, when the fault happens.
"""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable

_CHUNK = 1 << 18
_HELD = 1 << 22  # bytes under way in one direction, more are not read
_HEADER = struct.Struct("<IIQ")  # of a frame: payload length, depth, tag
_LARGEST_FRAME = 1 << 16
_RESET = struct.pack("ii", 1, 0)


def _address(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


class Frames:
    """Counts frames and their payload in a direction's bytes; ``known`` is False once the bytes are no frames."""

    def __init__(self) -> None:
        self.messages, self.payload, self.known = 0, 0, True
        self._header, self._left = b"", 0

    def until(self, data: memoryview, messages: int) -> int:
        """How many of ``data``'s bytes belong to the next ``messages`` frames; all when there are not so many."""
        place, done = 0, 0
        while self.known and place < len(data) and done < messages:
            if self._left == 0:
                taken = bytes(data[place : place + _HEADER.size - len(self._header)])
                self._header += taken
                place += len(taken)
                if len(self._header) < _HEADER.size:
                    break
                self._left = _HEADER.unpack(self._header)[0]
                self._header = b""
                self.known = 0 < self._left <= _LARGEST_FRAME
                if not self.known:
                    return len(data)
            taken = min(self._left, len(data) - place)
            self._left -= taken
            self.payload += taken
            place += taken
            if self._left == 0:
                self.messages += 1
                done += 1
        return place if self.known else len(data)


class Direction:
    """What one socket sends to another: bytes under way, each with the time at which it arrives."""

    def __init__(self, proxy: Proxy, source: socket.socket, target: socket.socket, name: str) -> None:
        self.proxy, self.source, self.target, self.name = proxy, source, target, name
        self.queue: deque[tuple[float, memoryview]] = deque()
        self.held, self.ended, self.shut, self.deaf, self.mute = 0, False, False, False, False
        self.frames, self.forwarded, self.last = Frames(), 0, 0.0

    def receive(self) -> None:
        try:
            data = self.source.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self.proxy.broken(self)
            return
        if not data:
            self.ended = True
            return
        # Never before what was sent earlier.
        self.last = max(self.last, time.monotonic() + self.proxy.delay())
        self.queue.append((self.last, memoryview(data)))
        self.held += len(data)

    def forward(self, now: float) -> None:
        while self.queue and self.queue[0][0] <= now and not self.shut and not self.proxy.interrupted(now):
            due, data = self.queue.popleft()
            if self.mute:
                self.held -= len(data)
                continue
            allowed = self.proxy.allowance(self, data)
            try:
                sent = self.target.send(data[:allowed]) if allowed else 0
            except BlockingIOError:
                sent = 0
                blocked = True
            except OSError:
                self.proxy.broken(self)
                return
            else:
                blocked = sent < allowed
            self.held -= sent
            self.forwarded += sent
            if sent < len(data):
                self.queue.appendleft((due, data[sent:]))
            self.proxy.count(self, data[:sent])
            if blocked:
                return
        if self.ended and not self.queue and not self.shut and not self.mute:
            self.shut = True
            with contextlib.suppress(OSError):
                self.target.shutdown(socket.SHUT_WR)

    @property
    def wants_to_read(self) -> bool:
        return not self.ended and not self.deaf and self.held < _HELD


class Proxy:
    """All links of a run. ``trace`` keeps, for every forwarded piece, (bytes so far, payload bytes so far);
    ``reached`` how many connections each link has carried, ``failed_at`` the time of the fault."""

    def __init__(self, seed: int = 0) -> None:
        self._selector = selectors.DefaultSelector()
        self._listeners: dict[socket.socket, tuple[str, int] | None] = {}
        self._pairs: list[tuple[Direction, Direction]] = []
        self._random = random.Random(seed)
        self._lock = threading.RLock()
        self._stop, self._thread = False, threading.Thread(target=self._run, name="proxy", daemon=True)
        self._wake, self._waking = socket.socketpair()
        self._waking.setblocking(False)
        self._byte: int | None = None
        self._message: int | None = None
        self._action: Callable[[], None] | None = None
        self._delay, self._jitter, self._outage = 0.0, 0.0, (0.0, 0.0)
        self.bytes, self.messages, self.failed_at = 0, 0, 0.0
        self.reached: dict[str, int] = {}
        self.fired = threading.Event()
        self.trace: list[tuple[int, int]] = []

    # ---- set-up
    def link(self, target: str | None = None) -> str:
        """An address that leads to ``target``; who connects where none is named is refused."""
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        with self._lock:
            self._listeners[listener] = None
        address = _address(listener)
        if target is not None:
            self.lead(address, target)
        self._wake.send(b"w")
        return address

    def lead(self, address: str, target: str) -> None:
        """What connects to the link ``address`` from now on comes to ``target``."""
        host, port = target.rsplit(":", 1)
        with self._lock:
            for listener in self._listeners:
                if _address(listener) == address:
                    self._listeners[listener] = (host, int(port))

    def fail_at(self, byte: int, action: Callable[[], None]) -> None:
        """Calls ``action`` once when ``byte`` bytes were forwarded since the last ``restart``."""
        with self._lock:
            self._byte, self._message, self._action = byte, None, action
            self.fired.clear()

    def fail_at_message(self, message: int, action: Callable[[], None]) -> None:
        with self._lock:
            self._byte, self._message, self._action = None, message, action
            self.fired.clear()

    def restart(self) -> None:
        """Counts from zero, forgets the fault and the delays, and drops what connections there are."""
        with self._lock:
            for first, second in list(self._pairs):
                self._drop(first, second)
            self._byte = self._message = self._action = None
            self._delay, self._jitter, self._outage = 0.0, 0.0, (0.0, 0.0)
            self.bytes = self.messages = 0
            self.reached.clear()
            self.trace.clear()
            self.fired.clear()

    def slow(self, delay: float, jitter: float = 0.0) -> None:
        """Everything takes ``delay`` seconds, and up to ``jitter`` more, in each direction."""
        self._delay, self._jitter = delay, jitter

    def interrupt(self, period: float, share: float) -> None:
        """Nothing gets through in the last ``share`` of every ``period`` seconds; it comes in a burst then."""
        self._outage = (period, share)

    # ---- faults, for fail_at
    def reset(self) -> None:
        """All connections are reset, as by a firewall that has forgotten them."""
        with self._lock:
            for first, second in list(self._pairs):
                for each in (first.source, second.source):
                    with contextlib.suppress(OSError):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self._drop(first, second)

    def half_close(self) -> None:
        """The connecting sides' streams end, while the other direction stays open."""
        with self._lock:
            for upwards, _ in self._pairs:
                upwards.ended = upwards.shut = True
                with contextlib.suppress(OSError):
                    upwards.target.shutdown(socket.SHUT_WR)

    def stop_reading(self) -> None:
        """As if both ends had stopped: nothing is taken any more, so that buffers fill up."""
        for pair in self._pairs:
            for direction in pair:
                direction.deaf = direction.mute = True

    def swallow(self) -> None:
        """A half-open connection: everything is taken, and nothing arrives."""
        for pair in self._pairs:
            for direction in pair:
                direction.mute = True

    def clear(self) -> None:
        """No fault: for counting."""

    # ---- for directions
    def delay(self) -> float:
        return self._delay + self._random.random() * self._jitter

    def interrupted(self, now: float) -> bool:
        period, share = self._outage
        return bool(period) and now % period > period * (1 - share)

    def allowance(self, direction: Direction, data: memoryview) -> int:
        """How many of ``data``'s bytes may go before the fault."""
        if self._byte is not None:
            return min(len(data), self._byte - self.bytes)
        if self._message is not None and direction.frames.known:
            probe = Frames()
            probe.__dict__.update(direction.frames.__dict__)
            return probe.until(data, self._message - self.messages)
        return len(data)

    def count(self, direction: Direction, data: memoryview) -> None:
        before = direction.frames.messages, direction.frames.payload
        direction.frames.until(data, len(data) + 1)
        self.messages += direction.frames.messages - before[0]
        self.bytes += len(data)
        payload = self.trace[-1][1] if self.trace else 0
        self.trace.append((self.bytes, payload + direction.frames.payload - before[1]))
        reached = self._byte is not None and self.bytes >= self._byte
        reached = reached or (self._message is not None and self.messages >= self._message)
        if reached and self._action is not None:
            action, self._action, self._byte, self._message = self._action, None, None, None
            self.failed_at = time.monotonic()
            action()
            self.fired.set()

    def broken(self, direction: Direction) -> None:
        """A socket that was reset resets the other one."""
        for first, second in list(self._pairs):
            if direction in (first, second):
                for each in (first.source, second.source):
                    with contextlib.suppress(OSError):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self._drop(first, second)

    # ---- the loop
    def _drop(self, first: Direction, second: Direction) -> None:
        if (first, second) in self._pairs:
            self._pairs.remove((first, second))
        for each in (first.source, second.source):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(each)
            each.close()
        for direction in (first, second):
            direction.shut = True
            direction.queue.clear()

    def _accept(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        try:
            server = socket.create_connection(self._listeners[listener] or ("127.0.0.1", 1), 5)
        except OSError:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.close()
            return
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.setblocking(False)
        here = _address(listener)
        self.reached[here] = self.reached.get(here, 0) + 1
        self._pairs.append((Direction(self, client, server, "up"), Direction(self, server, client, "down")))

    def _register(self, now: float) -> float:
        """Tells the selector what to wait for; returns the seconds until something is due."""
        wait = 0.2
        for pair in self._pairs:
            for direction, back in (pair, pair[::-1]):
                events = selectors.EVENT_READ if direction.wants_to_read else 0
                if back.queue and back.queue[0][0] <= now and not back.shut and not self.interrupted(now):
                    events |= selectors.EVENT_WRITE
                elif back.queue:
                    wait = min(wait, max(back.queue[0][0] - now, 0.001))
                self._watch(direction.source, events)
        return 0.005 if self._outage[0] else wait

    def _watch(self, watched: socket.socket, events: int) -> None:
        known = self._selector.get_map().get(watched)
        if known is None and events:
            self._selector.register(watched, events)
        elif known is not None and not events:
            self._selector.unregister(watched)
        elif known is not None and known.events != events:
            self._selector.modify(watched, events)

    def _run(self) -> None:
        while not self._stop:
            with self._lock:
                for listener in self._listeners:
                    self._watch(listener, selectors.EVENT_READ)
                self._watch(self._waking, selectors.EVENT_READ)
                wait = self._register(time.monotonic())
            ready = self._selector.select(wait)
            with self._lock:
                by_source = {d.source: d for pair in self._pairs for d in pair}
                for key, events in ready:
                    if key.fileobj in self._listeners:
                        self._accept(key.fileobj)
                    elif key.fileobj is self._waking:
                        with contextlib.suppress(OSError):
                            self._waking.recv(100)
                    elif events & selectors.EVENT_READ:
                        direction = by_source.get(key.fileobj)
                        if direction is not None and direction.wants_to_read:
                            direction.receive()
                now = time.monotonic()
                for first, second in list(self._pairs):
                    first.forward(now)
                    second.forward(now)
                    if first.shut and second.shut:
                        self._drop(first, second)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop = True
        self._wake.send(b"w")
        self._thread.join(10)
        with self._lock:
            for first, second in list(self._pairs):
                self._drop(first, second)
            for each in (*self._listeners, self._wake, self._waking):
                each.close()
            self._selector.close()
