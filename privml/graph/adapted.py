# SPDX-License-Identifier: Apache-2.0
"""Modules as libraries make them: called by the names of inputs, with outputs in classes of their own.

The unmodified module is run once on the examples. What it returns beside tensors (caches, None) is left out, and of a
class with several fields the one that the model is for is kept.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from privml.errors import ConfigError, InvalidInput
from privml.graph.batches import Batch
from privml.graph.blame import blame

# Fields of output classes that are what a model is for, in the order in which they are looked for.
RESULTS = ("logits", "last_hidden_state", "image_embeds", "text_embeds", "prediction_logits", "sample")


class Adapted(torch.nn.Module):
    """``adapted``, called with keyword arguments and ``settings``; returns a tuple of tensors."""

    def __init__(
        self,
        adapted: torch.nn.Module,
        names: Sequence[str] | None,
        settings: Mapping[str, Any],
        pick: Callable[[Any], tuple[torch.Tensor, ...]],
    ) -> None:
        super().__init__()
        self.adapted = adapted
        self._names, self._settings, self._pick = names, dict(settings), pick

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self._names is None:
            return self._pick(self.adapted(*inputs, **self._settings))
        return self._pick(self.adapted(**dict(zip(self._names, inputs, strict=True)), **self._settings))


def parameters_of(module: torch.nn.Module) -> tuple[str, ...] | None:
    """The names of what ``module`` takes as inputs; None if it takes any number."""
    parameters = inspect.signature(module.forward).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        named = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        return tuple(named) if named and any(p.kind is p.VAR_KEYWORD for p in parameters) else None
    return tuple(p.name for p in parameters)


def adapt(module: torch.nn.Module, examples: Batch, outputs: Sequence[str] | None = None) -> torch.nn.Module:
    """``module`` itself if it takes and returns tensors, else it in an ``Adapted``.

    ``outputs``: the names of the fields that are kept of an output class (default: the first one of ``RESULTS`` that
    there is). Raises InvalidInput, with the file and the line of the model's code, if it fails on the examples;
    ConfigError for fields that there are not.
    """
    parameters = inspect.signature(module.forward).parameters
    # A cache of keys and values belongs to generation step by step; it is no tensor.
    settings = {"use_cache": False} if "use_cache" in parameters else {}
    with torch.no_grad():
        try:
            if examples.names is None:
                result = module(*examples.tensors, **settings)
            else:
                result = module(**dict(zip(examples.names, examples.tensors, strict=True)), **settings)
        except Exception as error:
            shapes = ", ".join(str(tuple(x.shape)) for x in examples.tensors)
            raise InvalidInput(f"the model fails on example inputs of shapes {shapes}: {blame(error)}") from error
    pick = _pick_of(result, outputs)
    plain = pick is None and outputs is None
    if plain and not settings and examples.names is None:
        return module
    return Adapted(module, examples.names, settings, pick or _tensors)


def _pick_of(result: Any, outputs: Sequence[str] | None) -> Callable[[Any], tuple[torch.Tensor, ...]] | None:
    """How to get the tensors out of what a model returns; None where it returns tensors alone."""
    fields = _fields(result)
    if fields is None:
        if outputs is not None:
            raise ConfigError(f"outputs={list(outputs)}: the model returns a {type(result).__name__} without names")
        leaves = tree_leaves(result)
        if leaves and all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            return None
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            return _tensors
        raise InvalidInput(
            f"the model returns a {type(result).__name__}, which holds no tensors that privml finds; wrap the model in "
            "a module that returns tensors"
        )
    there = [name for name, value in fields.items() if isinstance(value, torch.Tensor)]
    wanted = list(outputs) if outputs is not None else [name for name in RESULTS if name in there][:1] or there
    missing = [name for name in wanted if name not in there]
    if missing or not wanted:
        raise ConfigError(f"outputs={missing}: the model returns the tensors {there}")
    return lambda found: tuple(_fields(found)[name] for name in wanted)


def _fields(result: Any) -> dict[str, Any] | None:
    """What a mapping or a data class holds, by name."""
    if isinstance(result, Mapping):
        return {str(name): value for name, value in result.items()}
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return {name: getattr(result, name) for name in result._fields}
    return None


def _tensors(result: Any) -> tuple[torch.Tensor, ...]:
    return tuple(leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor))
