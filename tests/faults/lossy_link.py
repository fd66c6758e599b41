# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a link that loses and delays packets: TCP's own retransmissions are at work.

    python lossy_link.py NAME LOSS JITTER_MS     as root; namespaces NAME-0 (10.77.0.1) and NAME-1 (10.77.0.2)

The link are two TUN devices between which this process carries packets. It prints "ready"; lines on standard input
("LOSS JITTER_MS") change it; at its end the namespaces go. ``netem`` does the same by the kernel's queueing discipline
where the kernel has it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time
from pathlib import Path

ADDRESSES = ("10.77.0.1", "10.77.0.2")
_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_CLONE_NEWNET = 0x40000000
_PACKET = 65536


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def missing() -> str | None:
    """Why this machine cannot, or None."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    if not Path("/dev/net/tun").exists():
        return "this kernel has no TUN devices"
    name = f"privml-probe-{os.getpid()}"
    try:
        ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError):
        return "network namespaces cannot be made here"
    ip("netns", "del", name)
    return None


def netem_missing() -> str | None:
    """Why the kernel's own lossy queue cannot be used, or None."""
    if reason := missing():
        return reason
    name = f"privml-probe-{os.getpid()}"
    ip("netns", "add", name)
    try:
        command = ["tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "netem", "loss", "1%"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return None if done.returncode == 0 else f"tc: {done.stderr.strip()}"
    finally:
        ip("netns", "del", name)


def enter(name: str) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{name}") as place:
        if library.setns(place.fileno(), _CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {name}")


def device(name: str) -> int:
    """The descriptor of a TUN device of this process's namespace."""
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return handle


def namespaces(name: str) -> tuple[str, str]:
    return f"{name}-0", f"{name}-1"


def make_tunnel(name: str) -> list[int]:
    handles = []
    for place, here, there in zip(namespaces(name), ADDRESSES, ADDRESSES[::-1], strict=True):
        ip("netns", "add", place)
        enter(place)
        handles.append(device("link0"))
        ip("-n", place, "link", "set", "lo", "up")
        ip("-n", place, "addr", "add", here, "peer", there, "dev", "link0")
        ip("-n", place, "link", "set", "link0", "up")
    return handles


def make_netem(name: str, loss: float, jitter_ms: float) -> None:
    first, second = namespaces(name)
    for place in (first, second):
        ip("netns", "add", place)
        ip("-n", place, "link", "set", "lo", "up")
    ip("link", "add", "link0", "netns", first, "type", "veth", "peer", "name", "link0", "netns", second)
    for place, here in zip((first, second), ADDRESSES, strict=True):
        ip("-n", place, "addr", "add", f"{here}/24", "dev", "link0")
        ip("-n", place, "link", "set", "link0", "up")
        delay = ["delay", f"{jitter_ms / 2}ms", f"{jitter_ms / 2}ms"] if jitter_ms else []
        command = ["tc", "-n", place, "qdisc", "add", "dev", "link0", "root", "netem", *delay, "loss", f"{loss:%}"]
        subprocess.run(command, check=True, capture_output=True)


def remove(name: str) -> None:
    for place in namespaces(name):
        subprocess.run(["ip", "netns", "del", place], check=False, capture_output=True)


def carry(handles: list[int], loss: float, jitter_ms: float) -> None:
    """Packets from each device to the other until the standard input ends."""
    late: list[tuple[float, int, int, bytes]] = []
    number, chance = 0, random.Random(7)
    while True:
        wait = max(late[0][0] - time.monotonic(), 0) if late else None
        for ready in select.select([*handles, 0], [], [], wait)[0]:
            if ready == 0:
                line = os.read(0, 1000).decode()
                if not line:
                    return
                loss, jitter_ms = map(float, line.split()[-2:])
                print("changed", flush=True)
                continue
            packet, other = os.read(ready, _PACKET), handles[1 - handles.index(ready)]
            number += 1
            if chance.random() >= loss:
                heapq.heappush(late, (time.monotonic() + chance.random() * jitter_ms / 1000, number, other, packet))
        while late and late[0][0] <= time.monotonic():
            with contextlib.suppress(BlockingIOError):  # a full queue loses it too
                os.write(late[0][2], late[0][3])
            heapq.heappop(late)


class LossyLink:
    """``with LossyLink(loss, jitter_ms) as link``: ``link.namespaces``, in which processes can be started."""

    def __init__(self, loss: float, jitter_ms: float = 0.0, netem: bool = False) -> None:
        self._settings = (loss, jitter_ms)
        self._name = f"privml-{os.getpid()}"
        self._netem, self._process = netem, None
        self.namespaces = namespaces(self._name)

    def __enter__(self) -> LossyLink:
        if self._netem:
            make_netem(self._name, *self._settings)
            return self
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._name, *map(str, self._settings)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n"
        return self

    def change(self, loss: float, jitter_ms: float = 0.0) -> None:
        self._process.stdin.write(f"{loss} {jitter_ms}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "changed\n"

    def __exit__(self, *exception: object) -> None:
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait(20)
            self._process.stdout.close()
        remove(self._name)


if __name__ == "__main__":
    try:
        joined = make_tunnel(sys.argv[1])
        print("ready", flush=True)
        carry(joined, float(sys.argv[2]), float(sys.argv[3]))
    finally:
        remove(sys.argv[1])
