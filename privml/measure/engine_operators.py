# SPDX-License-Identifier: Apache-2.0
"""What the suite of the three-party engine measures: each operator prepares its inputs, of uniform shares, and returns
the call to be timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from privml.engines.base import Operand, Share
from privml.engines.composed.segments import segmented
from privml.engines.shares import Promise, Window
from privml.formats import FixedPoint

# Seconds by layer if the call has layers.
Action = Callable[[], dict[str, float] | None]
# Fractional bits by ring, those of the published figures.
SCALES = {32: 13, 64: 26}
# Party 0 serves the model, party 1 asks.
SERVER, CLIENT = 0, 1


def prepare(engine: Any, task: Mapping[str, Any]) -> Action:
    """The call of ``task["operator"]``; raises KeyError for an unknown name."""
    return OPERATORS[task["operator"]](engine, task["n"], task["bits"], task["params"])


def secret(engine: Any, bits: int, *shape: int, owner: int = CLIENT, magnitude: int | None = None) -> Share:
    """A share of random values |x| < 2^magnitude (default bits - 3)."""
    limit = 1 << (magnitude or bits - 3)
    random = torch.Generator().manual_seed(owner)
    return engine.input(torch.randint(-limit, limit, shape, generator=random), shape, owner, bits)


def silent(call: Callable[[], Any]) -> Action:
    def action() -> None:
        call()

    return action


def sign(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    x = secret(engine, bits, n)
    return silent(lambda: engine.less_than_zero(x, bits))


def relu(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    x = secret(engine, bits, n)
    return silent(lambda: engine.relu(x, bits))


def function(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    """A function of values below 16: of few pieces, as published (``segmented``), or as the engine computes it."""
    scale = SCALES[bits]
    form = FixedPoint(bits, scale)
    x = secret(engine, bits, n, magnitude=scale + 4)
    if params["segmented"]:
        return silent(lambda: segmented(engine, params["function"], x, form, form))
    return silent(lambda: engine.function(params["function"], x, form, form))


def maximum_windows(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    """Windows of four among ``n`` values."""
    x = secret(engine, bits, n // 4, 4)
    return silent(lambda: engine.max_last(x, bits))


def truncate(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    x = secret(engine, bits, n)
    return silent(lambda: engine.truncate(x, bits, SCALES[bits], Promise(bound=1 << (bits - 3))))


def matmul(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    """Served weights, which stay masked, and the truncation of the product."""
    rows, inner, columns = params["rows"], params["inner"], params["columns"]
    x, w = secret(engine, bits, rows, inner), secret(engine, bits, inner, columns, owner=SERVER)

    def call() -> None:
        product = engine.matmul(Operand(x, bits), Operand(w, bits), bits)
        engine.truncate(product, bits, SCALES[bits], Promise(bound=1 << (bits - 3)))

    return silent(call)


def conv2d(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    channels, outputs, size, kernel = params["channels"], params["outputs"], params["size"], params["kernel"]
    x = secret(engine, bits, 1, channels, size, size)
    w = secret(engine, bits, outputs, channels, kernel, kernel, owner=SERVER)
    window = Window(padding=(kernel // 2, kernel // 2))

    def call() -> None:
        product = engine.conv2d(Operand(x, bits), Operand(w, bits), window, bits)
        engine.truncate(product, bits, SCALES[bits], Promise(bound=1 << (bits - 3)))

    return silent(call)


def network(engine: Any, n: int, bits: int, params: Mapping[str, Any]) -> Action:
    """A query of ``n`` images to a converted model (``program``: its folder) whose weights were shared before; seconds
    by layer."""
    import privml
    from privml.context import Session
    from privml.session.ledger import Ledger, Snapshot

    folder = Path(params["folder"])
    program = privml.load(folder / "program", folder / "weights.safetensors" if engine.rank == SERVER else None)
    images = torch.load(folder / "images.pt")[:n]
    ledger = Ledger(lambda: Snapshot.of(engine.counters()))
    session = Session(engine, program.numerics, ledger)
    program.prepare(session)

    def action() -> dict[str, float]:
        ledger.reset_nodes()
        with torch.no_grad():
            privml.reveal(program.run(session, images if engine.rank == CLIENT else tuple(images.shape)), to=CLIENT)
        seconds = {name: record.cost.total.seconds for name, record in ledger.records.items()}
        return {name: round(value, 6) for name, value in seconds.items()}

    return action


OPERATORS: dict[str, Callable[..., Action]] = {
    "sign": sign,
    "relu": relu,
    "function": function,
    "maximum_windows": maximum_windows,
    "truncate": truncate,
    "matmul": matmul,
    "conv2d": conv2d,
    "network": network,
}
