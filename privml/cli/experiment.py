# SPDX-License-Identifier: Apache-2.0
"""``privml experiment experiment=lenet_engines``: one task over engines, networks, numerics, transfers and models.

Every run leaves a JSON line, also one that fails; see ``privml.measure.records``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

import privml
from privml.cli import console
from privml.cli.measuring import spec_of
from privml.cli.sources import Source, converted, source_of
from privml.cli.sweep import file_of
from privml.errors import ConfigError, PrivmlError, UnsupportedOperator
from privml.measure import records
from privml.measure.answers import agreeing, clear_outputs, local_settings, plain_outputs
from privml.measure.launch import launch
from privml.measure.predict import cost_of
from privml.program import INPUT_OWNER
from privml.service.events import Progress

Metrics = dict[str, float]
Batches = list[tuple[Any, Any]]


def run(config: DictConfig) -> None:
    torch.manual_seed(config.seed)
    status, reason, metrics = records.OK, "", {}
    try:
        metrics = TASKS[config.task](config)
    except (ConfigError, UnsupportedOperator) as error:
        status, reason = records.UNSUPPORTED, described(error)
    except (PrivmlError, ValueError, OSError) as error:
        status, reason = records.FAILED, described(error)
    settings: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    line = records.record(config.name, settings, choices(config.model.name), metrics, status, reason)
    records.append(file_of(config), line)
    if not config.quiet:
        words = reason or f"{metrics['seconds']:.2f} s"
        console.err.print(f"{', '.join(line['choices'].values())}: {words}", markup=False)


def described(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def choices(model: str) -> dict[str, str]:
    """What was chosen of each group of settings."""
    chosen = HydraConfig.get().runtime.choices
    return {"model": str(model), **{name: str(chosen[name]) for name in ("engine", "ot", "numerics", "link")}}


# ---- inference
def infer(config: DictConfig) -> Metrics:
    source = source_of(config)
    program = converted(OmegaConf.merge(config, {"quiet": True}), source)  # type: ignore[arg-type]
    if source.samples is None:
        raise ConfigError("experiments run on shipped models, which have samples")
    inputs = source.samples[: config.count]
    spec = spec_of(config)
    if not spec.backend.remote:
        outputs, seconds, spent = plain_outputs(program, inputs), 0.0, {}
    else:
        cost_of(program, [tuple(inputs.shape)], spec, INPUT_OWNER)  # what is not offered is refused here
        result = launch(program, inputs, spec)
        outputs, seconds = result.outputs, result.client.seconds
        spent = {**records.phases(result.client.ledger), "peak_rss_bytes": result.client.peak_rss_bytes}
    return {"seconds": seconds, **spent, **agreement(source, inputs, outputs)}


def agreement(source: Source, inputs: torch.Tensor, outputs: tuple[torch.Tensor, ...]) -> Metrics:
    """Accuracy, and what differs from the clear model, where that can be run."""
    found: Metrics = {}
    truth = None if source.labels is None else source.labels[: len(inputs)]
    if truth is not None:
        found["accuracy"] = equal(source.read(outputs), truth)
    try:
        clear = clear_outputs(source.model, inputs.to(torch.float32))
    except ConfigError:  # an ONNX file, and nothing to run it with
        return found
    found["same_label"] = equal(source.read(outputs), source.read(clear))
    if truth is not None:
        found["accuracy_clear"] = equal(source.read(clear), truth)
    if clear[0].shape == outputs[0].shape:
        found["largest_error"] = (clear[0].to(torch.float64) - outputs[0]).abs().max().item()
        found["largest_output"] = clear[0].abs().max().item()
    return found


def equal(a: torch.Tensor, b: torch.Tensor) -> float:
    """The part of rows with equal labels."""
    return agreeing(a, b).float().mean().item()


# ---- training
def train(config: DictConfig) -> Metrics:
    source = source_of(config)
    if not isinstance(source.model, torch.nn.Module) or source.samples is None or source.labels is None:
        raise ConfigError("task=training needs a shipped model of PyTorch with labelled samples")
    start = fresh(source.model)
    batches = batches_of(source.samples.to(torch.float32), source.labels.long(), config)
    clear = copy.deepcopy(start)
    clear_losses = [descend(clear, values, truth, config.training.rate).item() for values, truth in batches]
    with privml.local(config.engine.name, **session_settings(config)) as session:
        model = privml.secret(copy.deepcopy(start), owner=0)
        secret = [(privml.share(values, owner=1), privml.share(truth, owner=1)) for values, truth in batches]
        began = session.ledger.snapshot()
        with console.progress("train", config.quiet) as step:
            losses, seconds = steps(model, secret, config.training.rate, step)
        spent = {"total": as_phases(session.ledger.snapshot() - began), "nodes": []}
        revealed = [privml.reveal(loss).item() for loss in losses]
        learned = copy.deepcopy(start)
        learned.load_state_dict({name: privml.reveal(value) for name, value in model.state_dict().items()})
    found = {"seconds": seconds, "seconds_per_step": seconds / len(batches), **records.phases(spent)}
    found["loss_error"] = max(abs(a - b) for a, b in zip(clear_losses, revealed, strict=True))
    found["loss"], found["loss_clear"] = revealed[-1], clear_losses[-1]
    pairs = zip(clear.parameters(), learned.parameters(), strict=True)
    found["largest_error"] = max((a - b).abs().max().item() for a, b in pairs)
    return found


def as_phases(spent: Any) -> dict[str, Any]:
    names = ("seconds", "sent", "received", "depth")
    return {
        phase: {name: getattr(getattr(spent, phase), name) for name in names}
        for phase in ("setup", "preprocess", "online")
    }


def session_settings(config: DictConfig) -> dict[str, Any]:
    """Of ``privml.local``."""
    spec, found = spec_of(config), {"bits": config.training.bits, "scale": config.training.scale}
    return {**found, **local_settings(spec)}


def fresh(module: torch.nn.Module) -> torch.nn.Module:
    """The module with new weights, which the seed decides."""
    made = copy.deepcopy(module).train().requires_grad_(True)
    for each in made.modules():
        if hasattr(each, "reset_parameters"):
            each.reset_parameters()
    return made


def batches_of(values: torch.Tensor, truth: torch.Tensor, config: DictConfig) -> Batches:
    """As many as steps, each of ``count`` samples in an order that the seed decides."""
    order = torch.randperm(len(truth)).repeat(-(-config.training.steps * config.count // len(truth)))
    picked = [order[i * config.count : (i + 1) * config.count] for i in range(config.training.steps)]
    return [(values[rows], truth[rows]) for rows in picked]


def descend(model: torch.nn.Module, values: Any, truth: Any, rate: float) -> Any:
    """One step of stochastic gradient descent; the loss. Plain PyTorch, secret or not."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(values), truth)
    loss.backward()
    optimizer.step()
    return loss.detach()


def steps(model: torch.nn.Module, batches: Batches, rate: float, progress: Progress) -> tuple[list[Any], float]:
    """The secret losses of a step on each batch, and the seconds of all."""
    losses, start = [], time.perf_counter()
    for index, (values, truth) in enumerate(batches):
        progress(index, len(batches), "step")
        losses.append(descend(model, values, truth, rate))
    return losses, time.perf_counter() - start


TASKS: dict[str, Callable[[DictConfig], Metrics]] = {"inference": infer, "training": train}
