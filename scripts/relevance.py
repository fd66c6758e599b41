# SPDX-License-Identifier: Apache-2.0
"""Relevance of advertisements on private data: a network that fixed point fails on at every scale, in float32.

Trains models/relevance, compares fixed point of every scale and float32 on the plain engine with float64, and tells
what inference and one step of training cost two parties (from cost functions), batch 1 and 32. With ``--run`` both
parties also compute batch 1 in this process.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import privml  # noqa: E402
from models.relevance import Cases, Relevance, cases, train  # noqa: E402
from privml.context import Session  # noqa: E402
from privml.engines.correlations import OtChoice  # noqa: E402
from privml.engines.twopc.backend import meter  # noqa: E402
from privml.errors import OverflowDetected  # noqa: E402
from privml.formats import Float, Numerics  # noqa: E402

LEARNING_RATE = 2.0**-30  # the gradients of weights on millions are millions of times larger


def infer(model: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
    """The scores, of secret or public tensors."""
    with torch.no_grad():
        return model.logits(values)


def learn(model: torch.nn.Module, values: torch.Tensor, labels: torch.Tensor, rate: float = LEARNING_RATE) -> Any:
    """One step of stochastic gradient descent on the cross-entropy; the loss. Plain PyTorch, secret or not."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model.logits(values), labels)
    loss.backward()
    optimizer.step()
    return loss.detach()


def exact(model: torch.nn.Module, values: torch.Tensor) -> torch.Tensor:
    return infer(copy.deepcopy(model).double(), values.double())


def error_of(model: torch.nn.Module, values: torch.Tensor, **numerics: Any) -> tuple[float, float]:
    """The largest error of a score and the part of equal answers, beside float64, on the plain engine."""
    expected = exact(model, values)
    with privml.local("plain", **numerics):
        scores = privml.reveal(infer(privml.secret(copy.deepcopy(model)), privml.share(values, owner=1)))
    return float((scores - expected).abs().max()), float((scores.argmax(1) == expected.argmax(1)).float().mean())


def fixed_errors(model: torch.nn.Module, values: torch.Tensor, scales: Any) -> dict[int, tuple[float, float] | None]:
    """By scale, in rings of 64 bits; None where a value overflows."""
    found: dict[int, tuple[float, float] | None] = {}
    for scale in scales:
        try:
            found[scale] = error_of(model, values, bits=64, scale=scale)
        except OverflowDetected:
            found[scale] = None
    return found


def metered() -> Session:
    """A session that computes on zeros and books what two parties would send, with silent transfers."""
    return Session(meter(0, OtChoice("silent")), Numerics(floating=Float()))


def sent(session: Session) -> tuple[float, int]:
    """Bytes of both directions and phases, and depth."""
    counters = session.engine.counters()
    phases = [counters[name] for name in ("setup", "preprocess", "online")]
    return sum(phase["sent"] + phase["received"] for phase in phases), counters["online"]["depth"]


def shared_weights(model: torch.nn.Module) -> None:
    """As they are after a first step: known to nobody."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.data = parameter.data + privml.share(torch.zeros(parameter.shape), owner=1)


def cost(task: str, batch: int, shared: bool, shape: tuple[int, ...] = (), session: Session | None = None) -> Any:
    """(bytes, depth) of ``infer`` or ``learn`` of a network of ``shape`` (features, hidden layers...)."""
    session = session or metered()
    with session:
        model = privml.secret(Relevance(shape[0], shape[1:]) if shape else Relevance())
        if shared:
            shared_weights(model)
        start, depth = sent(session)
        values = privml.share(torch.zeros(batch, model.logits[0].in_features), owner=1)
        if task == "infer":
            with torch.no_grad():
                privml.reveal(model(values), to=1)
        else:
            learn(model, values, privml.share(torch.zeros(batch, dtype=torch.int64), owner=1))
        end = sent(session)
    return end[0] - start, end[1] - depth


def step_errors(model: torch.nn.Module, batch: Cases, engine: str, **numerics: Any) -> tuple[float, float]:
    """Largest error of a gradient and of a weight's change, as parts of the largest of their layer, beside float64."""
    clear, hidden = copy.deepcopy(model).double(), copy.deepcopy(model)
    learn(clear, batch.values.double(), batch.labels)
    with privml.local(engine, **numerics):
        hidden = privml.secret(hidden)
        learn(hidden, privml.share(batch.values, owner=1), privml.share(batch.labels, owner=1))
        gradients = [privml.reveal(p.grad).double() for p in hidden.parameters()]
        weights = [privml.reveal(p.detach()).double() for p in hidden.parameters()]
    worst = [0.0, 0.0]
    for g, w, p in zip(gradients, weights, clear.parameters(), strict=True):
        worst[0] = max(worst[0], float((g - p.grad).abs().max() / p.grad.abs().max()))
        worst[1] = max(worst[1], float((w - p.detach()).abs().max() / p.detach().abs().max()))
    return worst[0], worst[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300, help="training steps of the recipe")
    parser.add_argument("--run", action="store_true", help="compute batch 1 as two parties, too")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, test = train(steps=options.steps), cases(100, seed=-1)
    weights = torch.cat([p.detach().abs().flatten() for p in model.parameters() if p.dim() == 2])
    low, high = (float(weights.kthvalue(max(1, int(len(weights) * part)))[0]) for part in (0.01, 1.0))
    print(f"{len(weights)} weights; all but a hundredth have magnitudes of {low:.1e} to {high:.1e}")
    print(f"accuracy in float64: {float((exact(model, test.values).argmax(1) == test.labels).float().mean()):.3f}")
    for scale, found in fixed_errors(model, test.values, range(4, 32, 2)).items():
        text = "overflows" if found is None else f"error {found[0]:.2g}, {found[1]:.0%} equal answers"
        print(f"fixed point, 64 bits, scale {scale}: {text}")
    error, equal = error_of(model, test.values, floating="float32")
    print(f"float32: error {error:.2g}, {equal:.0%} equal answers")
    gradient, change = step_errors(model, Cases(test.values[:32], test.labels[:32]), "plain", floating="float32")
    print(f"float32, one step on 32 cases: gradients within {gradient:.1e}, weights within {change:.1e} of float64's")
    for task, name in (("infer", "inference"), ("learn", "training step")):
        for batch in (1, 32):
            for shared in (False, True):
                total, depth = cost(task, batch, shared)
                owner = "shared between the parties" if shared else "the server's"
                print(f"{name}, batch {batch}, weights {owner}: {total / 1e9:.3f} GB, depth {depth}")
    if options.run:
        run(model, Cases(test.values[:1], test.labels[:1]))
    return 0


def run(model: torch.nn.Module, batch: Cases) -> None:
    """Both parties in this process, silent transfers."""
    for task in (infer, learn):
        with privml.local("twopc", ot="silent", floating="float32") as session:
            hidden, values = privml.secret(copy.deepcopy(model)), privml.share(batch.values, owner=1)
            start, before = time.monotonic(), sent(session)[0]
            if task is infer:
                score = privml.reveal(infer(hidden, values), to=1)
                what = f"error {float((score - exact(model, batch.values)).abs().max()):.2g}"
            else:
                loss = privml.reveal(learn(hidden, values, privml.share(batch.labels, owner=1)))
                what = f"loss {float(loss):.6f}"
            seconds, total = time.monotonic() - start, sent(session)[0] - before
            print(f"{task.__name__}, batch 1, two parties: {what}, {total / 1e9:.3f} GB, {seconds:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
