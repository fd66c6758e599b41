# SPDX-License-Identifier: Apache-2.0
"""Readable names and numbers of engines and networks."""

from __future__ import annotations

from collections.abc import Sequence

from privml.engines.interface import Backend, backend, names
from privml.measure.records import Answers, Record

_NETWORKS = ("loopback", "lan", "gigabit", "wan")
_TRANSFERS = {"softspoken": "SoftSpoken OT", "silent": "silent OT", "ideal": "no real OT"}


def size(count: float) -> str:
    """Bytes: 1.23 MB (powers of ten)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{three_digits(count)} {unit}"
        count /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """12.3 ms, 4.56 s or 7.8 min."""
    if seconds < 1:
        return f"{three_digits(seconds * 1000)} ms"
    return f"{three_digits(seconds)} s" if seconds < 120 else f"{three_digits(seconds / 60)} min"


def three_digits(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def tick(text: str) -> str:
    """10.0 ms -> 10 ms"""
    number, _, rest = text.partition(" ")
    return f"{float(number):g} {rest}"


def percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def power(value: float) -> str:
    """A small number with two digits: 0.014, 3.1e-6."""
    return f"{value:.2g}" if value == 0 or value >= 1e-3 else f"{value:.1e}".replace("e-0", "e-")


def same(answers: Answers | None) -> str:
    return "" if answers is None else f"{answers.same} of {answers.rows}"


def way(record: Record) -> str:
    """three parties; two parties, SoftSpoken OT, k = 4"""
    provider, *further = record.ot.split("-")
    engine = engine_of(record)
    parts = [_kind(engine) if engine else record.engine, _TRANSFERS.get(provider, provider)]
    parts += [f"k = {part[1:]}" if part[:1] == "k" else part for part in further]
    if engine and engine.security in parts:
        parts.remove(engine.security)  # the only transfers that it takes
    return ", ".join(part for part in parts if part)


def engine_of(record: Record) -> Backend | None:
    """None for an engine that is not installed here."""
    return backend(record.engine) if record.engine in names() else None


def _kind(engine: Backend) -> str:
    if not engine.remote:
        return "in the clear"
    return ("three" if engine.dealt else "two") + " parties" + (", malicious security" * engine.actively_secure)


def protects(record: Record) -> str:
    engine = engine_of(record)
    if engine is None:
        return ""
    if not engine.remote:
        return "nothing: the same numbers in the clear"
    if engine.actively_secure:
        return "each party, also one that breaks the protocol"
    return f"each party{' alone' * engine.dealt}, as long as {'all' if engine.dealt else 'both'} follow the protocol"


def parties(record: Record) -> str:
    engine = engine_of(record)
    if engine is None:
        return ""
    return "one" if not engine.remote else "three, one a dealer" if engine.dealt else "two"


def ordered(records: Sequence[Record]) -> list[Record]:
    """By engine, transfers and network; the plain engine first."""

    def key(r: Record) -> tuple:
        provider = r.ot.partition("-")[0]
        engine = engine_of(r)
        kind = (engine.actively_secure, engine.remote, not engine.dealt) if engine else (True, True, True)
        return kind, r.engine, place(provider, list(_TRANSFERS)), r.ot, place(r.network["name"], _NETWORKS)

    return sorted(records, key=key)


def networks(records: Sequence[Record]) -> list[str]:
    """The names of the networks, the fastest first."""
    return sorted({r.network["name"] for r in records if r.engine != "plain"}, key=lambda n: place(n, _NETWORKS))


def place(name: str, order: Sequence[str]) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)


def link(record: Record) -> str:
    """100 Mbit/s, 80 ms round trip"""
    speed, delay = record.network["bandwidth_mbps"], record.network["delay_ms"]
    if not speed and not delay:
        return "this machine's own, unshaped"
    rate = f"{speed / 1000:g} Gbit/s" if speed >= 1000 else f"{speed:g} Mbit/s" if speed else "unlimited bandwidth"
    return f"{rate}, {2 * delay:g} ms round trip"
