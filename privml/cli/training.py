# SPDX-License-Identifier: Apache-2.0
"""The loop of ``privml train``: an ordinary loop of PyTorch, on batches and a model that are secret tensors or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from omegaconf import DictConfig, OmegaConf
from torch import nn
from torch.func import functional_call, grad, grad_and_value

import privml
from privml.checkpoint import load_shares, new_run, newest_common, save_shares
from privml.cli.fields import WrongCall
from privml.service.events import Progress

WEIGHTS_OWNER, DATA_OWNER = 0, 1
Tensors = dict[str, torch.Tensor]
Give = Callable[[torch.Tensor, int], torch.Tensor]
# What may differ in a run that goes on from another one's shares.
_MAY_DIFFER = ("epochs", "rate")


class Way(NamedTuple):
    """``advance(x, y, rate, with_loss)`` trains on a batch and gives its loss, ``model()`` has the weights so far,
    ``state()`` is all that training goes on from."""

    advance: Callable[[torch.Tensor, torch.Tensor, float, bool], torch.Tensor | None]
    model: Callable[[], nn.Module]
    state: Callable[[], Tensors]


class Rates(NamedTuple):
    """Learning rates by the steps, counted from 0, that they begin with."""

    since: tuple[tuple[int, float], ...]

    def at(self, step: int) -> float:
        return next(rate for start, rate in reversed(self.since) if start <= step)

    def then(self, step: int, rate: float) -> Rates:
        kept = tuple((start, old) for start, old in self.since if start < step)
        return self if self.since and kept == self.since and kept[-1][1] == rate else Rates((*kept, (step, rate)))


class Outcome(NamedTuple):
    losses: list[float]
    accuracies: list[tuple[int, float]]
    weights: Tensors
    steps: int  # of this process, without those before a resume
    rates: Rates


class Run(NamedTuple):
    """One run of the loop: what a party owns is made to tensors by ``give``, the first model by ``take``; ``session``:
    None in the clear, with the ``rates`` of the secret run."""

    task: Any
    config: DictConfig
    give: Give
    take: Callable[[nn.Module], nn.Module]
    session: privml.Session | None = None
    rates: Rates | None = None


def train(run: Run, progress: Progress) -> Outcome:
    """The ordinary loop."""
    task, config, session = run.task, run.config, run.session
    batches = list(order(len(task.x), config))
    start, number, stored = found(config, session)
    losses, rates = stored.pop("losses", torch.empty(0)).tolist(), rates_of(run, start, stored)
    way = (traced if config.way == "traced" and session else eager)(run, stored)
    accuracies = []
    for step, rows in enumerate(batches[start:], start + 1):
        progress(step - 1, len(batches), f"loss {losses[-1]:.3f}" if losses else "")
        asked = bool(config.show_loss) and step % config.show_loss == 0
        loss = way.advance(*batch_of(task, rows, config.split, run.give), rates.at(step - 1), asked)
        losses += [known(loss)] if asked else []
        if config.show_accuracy and step % config.show_accuracy == 0:
            accuracies.append((step, secret_accuracy(run, way.model())))
        if session is not None and config.save_every and step % config.save_every == 0:
            kept = {"losses": losses, "rates": rates.since}
            state = {**way.state(), **{name: torch.tensor(value, dtype=torch.float64) for name, value in kept.items()}}
            save_shares(config.out, session, step, number, state, settings(config))
    progress(len(batches), len(batches), "done")
    weights = {name: value.detach() for name, value in way.model().named_parameters()}
    return Outcome(losses, accuracies, weights, len(batches) - start, rates)


# ---- runs that go on from others
def found(config: DictConfig, session: privml.Session | None) -> tuple[int, int, Tensors]:
    """The step to go on from, this run's number, and what was saved there; nothing in clear and for a fresh run."""
    if session is None or not (config.save_every or config.resume):
        return 0, 0, {}
    newest = newest_common(config.out, session) if config.resume else None
    if newest is None:
        return 0, new_run(session), {}
    step, run = newest
    return step, new_run(session), load_shares(config.out, session, step, run, settings(config))


def settings(config: DictConfig) -> dict[str, Any]:
    """What runs that go on from one another have in common, by the keys of the command line."""
    plain: dict[str, Any] = OmegaConf.to_container(config)  # type: ignore[assignment]
    recipe = {f"train.{name}": value for name, value in plain["train"].items() if name not in _MAY_DIFFER}
    return recipe | {name: plain[name] for name in ("way", "bits", "scale", "floating", "split", "seed")}


def rates_of(run: Run, start: int, stored: Tensors) -> Rates:
    """Those of the runs before this one, then the one that is set."""
    if run.rates is not None:
        return run.rates
    before = Rates(tuple((int(step), rate) for step, rate in stored.pop("rates", torch.empty(0, 2)).tolist()))
    return before.then(start, run.config.train.rate)


# ---- ways to make a step
def eager(run: Run, stored: Tensors) -> Way:
    """``loss.backward()`` and an optimizer of torch."""
    model = first(run)
    model = put(model, weights_in(stored)) if stored else run.take(model)
    names = dict(model.named_parameters())
    optimizer = optimizer_of(run.config.train, names.values())
    for name, parameter in names.items():
        if any(key.startswith(f"optimizer.{name}|") for key in stored):
            own = {key.split("|")[1]: v for key, v in stored.items() if key.startswith(f"optimizer.{name}|")}
            optimizer.state[parameter] = own

    def advance(x: torch.Tensor, y: torch.Tensor, rate: float, with_loss: bool) -> torch.Tensor:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = run.task.loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    def state() -> Tensors:
        result = {f"weight.{name}": parameter.detach() for name, parameter in names.items()}
        for name, parameter in names.items():
            own = optimizer.state.get(parameter, {})
            result |= {f"optimizer.{name}|{k}": v for k, v in own.items() if isinstance(v, torch.Tensor)}
        return result

    return Way(advance, lambda: model, state)


def traced(run: Run, stored: Tensors) -> Way:
    """SGD as a function of all that it needs, one graph."""
    recipe = run.config.train
    if recipe.optimizer != "sgd":
        raise WrongCall("way=traced trains with train.optimizer=sgd; use way=eager for others")
    skeleton = first(run)
    model = put(first(run), weights_in(stored)) if stored else run.take(first(run))
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    speeds = {name: stored[f"speed.{name}"] if stored else torch.zeros_like(w) for name, w in weights.items()}
    compiled: dict[tuple[float, bool], Any] = {}

    def step(weights: Tensors, speeds: Tensors, x: torch.Tensor, y: torch.Tensor, rate: float, with_loss: bool) -> Any:
        def loss(w: Tensors) -> torch.Tensor:
            return run.task.loss(functional_call(skeleton, w, (x,)), y)

        gradients, value = grad_and_value(loss)(weights) if with_loss else (grad(loss)(weights), None)
        if recipe.weight_decay:
            gradients = {name: g + weights[name] * recipe.weight_decay for name, g in gradients.items()}
        speeds = {n: speeds[n] * recipe.momentum + g for n, g in gradients.items()} if recipe.momentum else gradients
        weights = {name: w + speeds[name] * -rate for name, w in weights.items()}
        return (weights, speeds if recipe.momentum else {}, *([value] if with_loss else []))

    def advance(x: torch.Tensor, y: torch.Tensor, rate: float, with_loss: bool) -> torch.Tensor | None:
        nonlocal weights, speeds
        given = weights, speeds if recipe.momentum else {}, x, y
        if (rate, with_loss) not in compiled:
            compiled[rate, with_loss] = privml.compile_step(lambda *args: step(*args, rate, with_loss), *given)
        weights, speeds, *loss = compiled[rate, with_loss](*given)
        return loss[0] if loss else None

    def state() -> Tensors:
        return {f"weight.{n}": w for n, w in weights.items()} | {f"speed.{n}": s for n, s in speeds.items()}

    return Way(advance, lambda: put(skeleton, weights), state)


def weights_in(stored: Tensors) -> Tensors:
    return {name.removeprefix("weight."): value for name, value in stored.items() if name.startswith("weight.")}


def put(model: nn.Module, weights: Tensors) -> nn.Module:
    """The model with these parameters."""
    for name, value in weights.items():
        *path, key = name.split(".")
        model.get_submodule(".".join(path))._parameters[key] = nn.Parameter(value)
    return model


def first(run: Run) -> nn.Module:
    torch.manual_seed(run.config.seed)
    return run.task.make()


def optimizer_of(recipe: DictConfig, parameters: Any) -> torch.optim.Optimizer:
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, recipe.rate, eps=recipe.get("eps", 1e-8), weight_decay=recipe.weight_decay)
    return torch.optim.SGD(parameters, recipe.rate, momentum=recipe.momentum, weight_decay=recipe.weight_decay)


# ---- data
def order(count: int, config: DictConfig) -> Iterator[torch.Tensor]:
    """The rows of the batches of all epochs, the last incomplete ones left out. With split=horizontal the first half of
    each comes from party 0's rows, the first half of the data."""
    generator = torch.Generator().manual_seed(config.seed)
    left, batch = config.steps or math.inf, config.train.batch
    for _ in range(config.train.epochs):
        if config.split == "horizontal":
            half = count // 2
            mine = torch.randperm(half, generator=generator).split(batch // 2)
            theirs = (half + torch.randperm(half, generator=generator)).split(batch - batch // 2)
            rows = [torch.cat(pair) for pair in zip(mine, theirs, strict=False)]
        else:
            rows = list(torch.randperm(count, generator=generator).split(batch))
        for each in rows:
            if len(each) == batch and left > 0:
                left -= 1
                yield each


def batch_of(task: Any, rows: torch.Tensor, split: str, give: Give) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = task.x[rows], task.y[rows]
    if split == "horizontal":
        half = len(rows) // 2
        return tuple(torch.cat([give(v[:half], 0), give(v[half:], 1)]) for v in (x, y))
    if split == "vertical":
        half = x.shape[task.columns] // 2
        mine, theirs = x.split([half, x.shape[task.columns] - half], task.columns)
        return torch.cat([give(mine, 0), give(theirs, 1)], task.columns), give(y, DATA_OWNER)
    return give(x, DATA_OWNER), give(y, DATA_OWNER)


@torch.no_grad()
def secret_accuracy(run: Run, model: nn.Module) -> float:
    rows = run.config.accuracy_rows
    x, y = (run.give(v[:rows], DATA_OWNER) for v in (run.task.test_x, run.task.test_y))
    return known(run.task.right(model(x), y).float().mean())


@torch.no_grad()
def accuracy(run: Run, weights: Tensors) -> float:
    model = put(first(run), weights)
    return float(run.task.right(model(run.task.test_x), run.task.test_y).float().mean())


def known(value: torch.Tensor) -> float:
    return float(privml.reveal(value) if isinstance(value, privml.SecretTensor) else value)
