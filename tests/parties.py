# SPDX-License-Identifier: Apache-2.0
"""Two parties on threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from privml import _core


def run_both(party: Callable[[int, Any], Any], *, deadline: float = 20.0) -> list[Any]:
    """Runs ``party(rank, channel)`` for both ranks on threads; returns results, errors in their place."""
    channels = _core.memory_pair()
    results: list[Any] = [None, None]

    def run(rank: int) -> None:
        channels[rank].set_deadline(deadline)
        try:
            results[rank] = party(rank, channels[rank])
        except BaseException as error:
            results[rank] = error
            channels[rank].close()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a party hangs"
    return results


def succeed(results: list[Any]) -> list[Any]:
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
