# SPDX-License-Identifier: Apache-2.0
"""Addresses for parties that must know them before anybody listens."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserved(count: int) -> Iterator[list[str]]:
    """``count`` loopback addresses on which nobody listens yet. Within the block the system gives them to no other
    program, while a listener that names one gets it (the sockets that hold them never listen)."""
    with contextlib.ExitStack() as stack:
        yield [_hold(stack) for _ in range(count)]


def _hold(stack: contextlib.ExitStack) -> str:
    holder = stack.enter_context(socket.socket())
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return f"127.0.0.1:{holder.getsockname()[1]}"
