# SPDX-License-Identifier: Apache-2.0
"""``privml train train=logistic split=vertical``: a model with everything secret, and beside it in the clear, from the
same start; see docs/training.md.

Losses are revealed for the curve, and the weights at the end. The picture needs matplotlib, and the tasks the packages
that ship their data.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from safetensors.torch import save

import privml
from privml.cli import console
from privml.cli.engines import backend_of, engine_of
from privml.cli.fields import WrongCall, did_you_mean
from privml.cli.paths import shipped_models
from privml.cli.settings import identity_of
from privml.cli.training import DATA_OWNER, WEIGHTS_OWNER, Outcome, Run, accuracy, train
from privml.errors import ConfigError
from privml.formats import float_format
from privml.measure.launch import PartyFailed
from privml.store.durable import replace

# How long the other parties may take to end after one has failed, in seconds.
_SECONDS_TO_END = 10.0


def run(config: DictConfig) -> None:
    torch.set_num_threads(1)
    check_places(config)
    engine_of(config)  # says what is wrong with its settings before anything starts
    task = task_of(config)
    if config.processes and config.rank is None:
        run_processes(config)
    else:
        run_party(config, task)


def task_of(config: DictConfig) -> Any:
    """Model, data and loss. WrongCall for a task that there is not, ConfigError for a package that is missing."""
    tasks = importlib.import_module(f"{shipped_models().__name__}.tasks").TASKS
    name = config.train.model
    if name not in tasks:
        raise WrongCall(f"train.model={name}: there is no task {name}{did_you_mean(name, tasks)}")
    try:
        return tasks[name](**config.train.settings)
    except ImportError as error:
        raise ConfigError(
            f"train.model={name}: its data come with the package {error.name}: pip install 'privml[training]'"
        ) from None
    except TypeError as error:
        raise WrongCall(f"train.settings={dict(config.train.settings)}: {error}") from None


def check_places(config: DictConfig) -> None:
    """WrongCall for addresses without a rank, and a rank without its addresses."""
    needed = {None: (), 0: ("listen",), 1: ("connect",), 2: ("listen",)}[config.rank]
    for name in needed:
        if config[name] is None:
            raise WrongCall(f"rank={config.rank} needs {name}=host:port")
    for name in ("listen", "connect", "dealer"):
        if config.rank is None and config[name] is not None:
            raise WrongCall(f"{name}={config[name]} is for one party of several machines: add rank=0, 1 or 2")


# ---- parties
def run_party(config: DictConfig, task: Any) -> None:
    """One party of several, or all of them in this process."""
    shows = config.rank in (None, DATA_OWNER)
    with ExitStack() as stack:
        session = stack.enter_context(open_session(config))
        begin = time.perf_counter()
        with console.progress("train", config.quiet or not shows) as progress:
            this = Run(task, config, privml.share, lambda model: privml.secret(model, WEIGHTS_OWNER), session)
            secret = train(this, progress)
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
        "accuracy_secret": accuracy(this, secret.weights),
    }
    clear = None
    if config.compare:
        beside = Run(task, config, lambda x, owner: x, lambda model: model, rates=secret.rates)
        with console.progress("train in the clear", config.quiet) as progress:
            clear = train(beside, progress)
        report["accuracy_clear"] = accuracy(beside, clear.weights)
        pairs = zip(smooth(clear.losses), smooth(secret.losses), strict=True)
        report["loss_difference"] = max((abs(a - b) for a, b in pairs), default=0.0)
    write(Path(config.out), config, report, secret, clear)


def open_session(config: DictConfig) -> Any:
    own, engine = asdict(engine_of(config)), backend_of(config).name
    if config.rank is None:
        return privml.local(engine, bits=config.bits, scale=config.scale, floating=config.floating, **own)
    numerics = privml.Numerics(config.bits, config.scale, floating=float_format(config.floating))
    spec = privml.SessionSpec.of(engine, numerics=numerics, deadline=config.deadline, **identity_of(config), **own)
    return privml.connect(config.rank, spec, **{key: config[key] for key in ("listen", "connect", "dealer")})


def run_processes(config: DictConfig) -> None:
    """One process for each party on this machine; ends with the first failure, whose message is printed once."""
    chosen = backend_of(config)
    address, dealer = free_address(), free_address() if chosen.dealt else "null"
    places = [["listen", address, dealer], ["connect", address, dealer], ["listen", dealer, "null"]]
    given = [each for each in HydraConfig.get().overrides.task if each.partition("=")[0] != "processes"]
    with tempfile.TemporaryFile("w+") as others:
        parties = []
        for rank, (side, where, who) in enumerate(places[: chosen.parties]):
            own = [f"rank={rank}", f"{side}={where}", f"dealer={who}"]
            stderr = None if rank == DATA_OWNER else others  # the bar is that party's
            parties.append(start(["train", *given, *own], stderr))
        statuses = wait_for(parties)
        if not any(statuses):
            return
        if not statuses[DATA_OWNER]:  # it has printed nothing
            others.seek(0)
            sys.stderr.write(others.read())
    raise PartyFailed(f"the parties ended with {statuses}; see above")


def start(arguments: Sequence[str], stderr: TextIO | None) -> subprocess.Popen:
    """``privml *arguments`` as a process."""
    return subprocess.Popen([sys.executable, "-c", "from privml.cli import main; main()", *arguments], stderr=stderr)


def wait_for(parties: list[subprocess.Popen]) -> list[int | None]:
    """The exit statuses; None for a party that was ended here because another one had failed."""
    end = None
    while any(party.poll() is None for party in parties):
        if end is None and any(party.poll() for party in parties):
            end = time.monotonic() + _SECONDS_TO_END
        if end is not None and time.monotonic() > end:
            break
        time.sleep(0.05)
    statuses = [party.poll() for party in parties]
    for party in parties:
        party.kill()
        party.wait()
    return statuses


def free_address() -> str:
    import socket

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
    drawn = plot(folder / "losses.png", config, secret, clear)
    if config.quiet:
        return
    for name, value in report.items():
        if name != "settings":
            console.out.print(f"{name.replace('_', ' ')}: {value:.4g}")
    console.out.print(f"losses and weights in {folder}" + ("" if drawn else "; no picture: matplotlib is missing"))


def smooth(losses: list[float], span: int = 10) -> list[float]:
    """Means over ``span`` batches in a row."""
    span = min(span, len(losses))
    return torch.tensor(losses, dtype=torch.float64).unfold(0, span, 1).mean(1).tolist() if span else []


def plot(path: Path, config: DictConfig, secret: Outcome, clear: Outcome | None) -> bool:
    """The curves as a picture; False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
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
    return True
