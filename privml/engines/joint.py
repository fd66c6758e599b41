# SPDX-License-Identifier: Apache-2.0
"""All parties in this process, each on a thread of its own, behind the interface of one engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from privml.engines.base import Engine, Operand, Share
from privml.engines.correlations import Correlations
from privml.engines.operations import OPERATIONS, Kind, offer
from privml.engines.owned import SharedEngine
from privml.engines.party_threads import PartyThreads
from privml.engines.shares import is_share
from privml.formats import FixedPoint


class JointEngine(SharedEngine):
    """The engines of all parties as one: a share is the concatenation of the parties' shares.

    ``engines`` holds one engine per rank, with equally many components and a close(). Local operations run on the
    calling thread, interactive ones on the parties' threads.
    """

    rank = None

    def __init__(self, engines: Sequence[Engine], threads: PartyThreads) -> None:
        self.engines = tuple(engines)
        self.threads = threads
        self.name = engines[0].name
        self.parties = len(self.engines)
        self.components = self.parties * engines[0].components
        self.trivial_inputs, self.stays_wide = engines[0].trivial_inputs, engines[0].stays_wide
        self.sums_low_bits = engines[0].sums_low_bits
        self.actively_secure, self.portable = engines[0].actively_secure, engines[0].portable
        self.floors = engines[0].floors
        self.ot, self.lanes = engines[0].ot, engines[0].lanes
        self.opened_together, self.composes = engines[0].opened_together, engines[0].composes
        self.shifts_products = engines[0].shifts_products
        self.rectifies_maxima = engines[0].rectifies_maxima

    def lane(self, index: int) -> JointEngine:
        return JointEngine([engine.lane(index) for engine in self.engines], self.threads.beside())

    def twin(self) -> Engine | None:
        return self.engines[0].twin()

    def clock(self) -> tuple[Any, ...]:
        return tuple(engine.clock() for engine in self.engines)

    def advance(self, clock: Sequence[Any]) -> None:
        for engine, own in zip(self.engines, clock, strict=True):
            engine.advance(own)

    def keep(self, share: Share) -> None:
        for call in self._calls("keep", share):
            call()

    def composed(self, name: str, through: Engine, *args: Any) -> Any:
        return self.engines[0].composed(name, through, *args)

    def computes_whole(self, name: str, *args: Any) -> bool:
        return self.engines[0].computes_whole(name, *args)

    def function_ring(self, name: str, source: FixedPoint, target: FixedPoint) -> int:
        return self.engines[0].function_ring(name, source, target)

    def together(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        by_party = [
            partial(engine.together, [(name, [self._part(a, rank) for a in args]) for name, args in calls])
            for rank, engine in enumerate(self.engines)
        ]
        return [_join(results) for results in zip(*self.threads.run(by_party), strict=True)]

    def close(self) -> None:
        """Ends the session and wipes the parties' keys; raises what a party's engine raises at its end."""
        self.threads.close()
        with ExitStack() as stack:
            for engine in self.engines:
                stack.callback(engine.close)

    def counters(self) -> dict[str, Any]:
        """What party 0 has counted so far; its sent and received bytes are both directions."""
        return self.engines[0].counters()

    def reserve(self, correlations: Correlations) -> None:
        self.threads.run(self._calls("reserve", correlations))

    # ---- distributing
    def _part(self, value: Any, rank: int) -> Any:
        """What party ``rank`` sees of an argument: its own tensors of a share, all of anything public."""
        if isinstance(value, Operand):
            return replace(value, share=self._part(value.share, rank))
        if is_share(value):
            width = len(value) // self.parties  # bits may have fewer components than numbers
            return value[rank * width : (rank + 1) * width]
        return value

    def _calls(self, operation: str, /, *args: Any, **kwargs: Any) -> list[Callable[[], Any]]:
        return [
            partial(
                getattr(engine, operation),
                *(self._part(a, rank) for a in args),
                **{name: self._part(a, rank) for name, a in kwargs.items()},
            )
            for rank, engine in enumerate(self.engines)
        ]

    # ---- operations, by their kind
    def _local(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        return _join([call() for call in self._calls(operation, *args, **kwargs)])

    def _interactive(self, operation: str, /, *args: Any, **kwargs: Any) -> Any:
        return _join(self.threads.run(self._calls(operation, *args, **kwargs)))

    def _from_owner(
        self, operation: str, /, value: torch.Tensor | None, shape: Sequence[int], owner: int, *args: Any, **kwargs: Any
    ) -> Share:
        calls = [
            partial(getattr(engine, operation), value if rank == owner else None, tuple(shape), owner, *args, **kwargs)
            for rank, engine in enumerate(self.engines)
        ]
        return _join([call() for call in calls] if self.trivial_inputs else self.threads.run(calls))

    def _opened(self, operation: str, /, *args: Any, **kwargs: Any) -> torch.Tensor | None:
        results = self.threads.run(self._calls(operation, *args, **kwargs))
        return next((value for value in results if value is not None), None)


_BY_KIND = {
    Kind.LOCAL: JointEngine._local,
    Kind.INTERACTIVE: JointEngine._interactive,
    Kind.INPUT: JointEngine._from_owner,
    Kind.OPENING: JointEngine._opened,
}
offer(JointEngine, {name: _BY_KIND[operation.kind] for name, operation in OPERATIONS.items()})


def _join(results: Sequence[Any]) -> Any:
    """Concatenates the parties' shares, also inside a tuple of several results."""
    first = results[0]
    if first is None:
        return None
    if isinstance(first[0], torch.Tensor):
        return tuple(tensor for share in results for tensor in share)
    return tuple(_join(parts) for parts in zip(*results, strict=True))


def joined(parties: int, party: Callable[[int], Engine], close: Callable[[], None]) -> JointEngine:
    """All parties of one session, each on a thread of its own. ``party(rank)`` makes its engine there; ``close`` ends
    what connects them."""
    workers = PartyThreads(parties, close)
    try:
        engines = workers.run([partial(party, rank) for rank in range(parties)])
    except BaseException:
        workers.close()
        raise
    return JointEngine(engines, workers)
