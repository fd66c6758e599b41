#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What compiled training steps save: depth and bytes of a step, eager and compiled, on engines that only count.

python benchmarks/training.py            prints the table of docs/training.md
python benchmarks/training.py vgg16      prints what an eager step of VGG-16 sends on three parties
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value
from torch.nn import functional

import privml
from privml.context import Session
from privml.formats import Numerics
from privml.session.ledger import Snapshot

sys.path.insert(0, str(Path(__file__).parents[1]))
from models.lenet.model import LeNet
from models.motions.model import Motions
from models.vgg16.model import Vgg16

RATE, MOMENTUM = 0.0625, 0.875
CASES = (("LeNet-5", LeNet, (1, 28, 28), 10), ("GRU (motions)", Motions, (25, 24), 4))


def main() -> None:
    from privml.engines.threepc import backend as threepc
    from privml.engines.twopc import backend as twopc

    torch.set_num_threads(1)
    print("| network | engine | batch | eager: depth, MB | compiled: depth, MB | without the loss | depth saved |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, make, shape, classes in CASES:
        for engine, meter, batch in (
            ("threepc", threepc.meter, 32),
            ("twopc", twopc.meter, 32),
            ("twopc", twopc.meter, 1),
        ):
            torch.manual_seed(0)
            net, x = make(), torch.zeros(batch, *shape)
            before = eager(meter(), net, x, classes)
            after, alone = (compiled(meter(), net, x, classes, with_loss) for with_loss in (True, False))
            saved = 1 - after.online.depth / before.online.depth
            columns = " | ".join(f"{c.online.depth}, {total(c):.1f}" for c in (before, after, alone))
            print(f"| {name} | `{engine}` | {batch} | {columns} | {saved:.0%} |")


def vgg16() -> None:
    from privml.engines.threepc import backend as threepc

    print("| truncation | online, MiB | dealt, MiB | depth |")
    print("| --- | --- | --- | --- |")
    for truncation in ("faithful", "probabilistic"):
        meter = threepc.meter(0, threepc.Config(truncation))
        torch.manual_seed(0)
        cost = eager(meter, Vgg16(), torch.zeros(32, 3, 32, 32), 10, Numerics(64, 26), 0.0)
        online, dealt = (phase.bytes / 2**20 for phase in (cost.online, cost.preprocess))
        print(f"| {truncation} | {online:.1f} | {dealt:.1f} | {cost.online.depth} |")


def total(cost: Snapshot) -> float:
    return (cost.online.bytes + cost.preprocess.bytes) / 1e6


def given(net: nn.Module, x: torch.Tensor, classes: int) -> tuple[Any, ...]:
    weights = {n: p.detach() for n, p in net.named_parameters()}
    shared = {n: privml.share(w, owner=0) for n, w in weights.items()}
    speeds = {n: privml.share(torch.zeros_like(w), owner=0) for n, w in weights.items()}
    return shared, speeds, privml.share(x, owner=1), privml.share(torch.zeros(len(x), classes), owner=1)


def eager(
    meter: Any,
    net: nn.Module,
    x: torch.Tensor,
    classes: int,
    numerics: Numerics | None = None,
    momentum: float = MOMENTUM,
) -> Snapshot:
    """The second step: weights and momentum are nobody's own any more."""
    with Session(meter, numerics or Numerics()):
        model = privml.secret(copy.deepcopy(net), owner=0)
        optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=momentum)
        _, _, xs, ys = given(net, x, classes)
        for _ in range(2):
            before = Snapshot.of(meter.counters())
            optimizer.zero_grad()
            functional.cross_entropy(model(xs), ys).backward()
            optimizer.step()
        return Snapshot.of(meter.counters()) - before


def compiled(meter: Any, net: nn.Module, x: torch.Tensor, classes: int, with_loss: bool) -> Snapshot:
    def step(weights: Any, speeds: Any, xs: torch.Tensor, ys: torch.Tensor) -> Any:
        def loss(w: Any) -> torch.Tensor:
            return functional.cross_entropy(functional_call(net, w, (xs,)), ys)

        gradients, value = grad_and_value(loss)(weights) if with_loss else (grad(loss)(weights), None)
        speeds = {n: speeds[n] * MOMENTUM + g for n, g in gradients.items()}
        weights = {n: w + speeds[n] * -RATE for n, w in weights.items()}
        return (weights, speeds, value) if with_loss else (weights, speeds)

    with Session(meter, Numerics()):
        weights, speeds, xs, ys = given(net, x, classes)
        run = privml.compile_step(step, weights, speeds, xs, ys)
        for _ in range(2):
            before = Snapshot.of(meter.counters())
            weights, speeds, *_ = run(weights, speeds, xs, ys)
        return Snapshot.of(meter.counters()) - before


if __name__ == "__main__":
    vgg16() if sys.argv[1:] == ["vgg16"] else main()
