# SPDX-License-Identifier: Apache-2.0
"""Causal language models of ``transformers`` as a step of greedy decoding, whose cache of keys and values is state.

A step takes new ids and what attention keeps of all before, and gives the likeliest next id and the keys and values of
the new ids alone: these are appended to what is kept. The numbers of new ids and of those before are public sizes that
vary, so that the prompt and every further token are calls of one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from privml.errors import ConfigError, InvalidInput
from privml.graph.batches import Batch
from privml.graph.blame import blame
from privml.graph.declared import Declared

# Sizes of the examples that are traced: new ids, and ids before. Sizes of 1 and equal ones would be taken for fixed.
_NEW, _BEFORE = 3, 5
# The output with the scores of all ids, which formats are judged by and no party learns.
SCORES = 1


class Decoder(torch.nn.Module):
    """``adapted``, a causal language model: (ids [1, m], keys and values of each layer [1, heads, n, width]) ->
    (next id [1], scores [1, vocabulary], keys and values of the m new ids)."""

    def __init__(self, adapted: torch.nn.Module) -> None:
        super().__init__()
        self.adapted = adapted

    def forward(self, input_ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cache, layers = _cache(past)
        found = self.adapted(input_ids=input_ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
        scores = found.logits[:, -1]
        return (scores.argmax(-1), scores, *(part for layer in layers for part in layer.added))


def _cache(past: Sequence[torch.Tensor]) -> tuple[Any, list[Any]]:
    """A cache of the library with ``past`` in it, and its layers, which remember what a call adds."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    class Layer(DynamicLayer):
        def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
            super().__init__()
            self.keys, self.values, self.is_initialized = keys, values, True
            self.dtype, self.device = keys.dtype, keys.device
            self.added: tuple[torch.Tensor, ...] = ()

        def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any) -> Any:
            self.added = (key_states, value_states)
            self.keys = torch.cat([self.keys, key_states], -2)
            self.values = torch.cat([self.values, value_states], -2)
            return self.keys, self.values

        def get_seq_length(self) -> int:
            return self.keys.shape[-2]

    cache = DynamicCache()
    layers = [Layer(keys, values) for keys, values in zip(past[::2], past[1::2], strict=True)]
    cache.layers = layers
    return cache, layers


def decoder(model: Any, data: Batch, most: int) -> tuple[torch.nn.Module, Batch, Batch, tuple[Declared, ...]]:
    """A step of ``model``, examples to trace it with, ``data`` (ids [rows, length]) as it takes them, and its state, of
    at most ``most`` ids. ConfigError for a model that cannot take so many, InvalidInput for data that are no ids."""
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise ConfigError("generate= is for causal language models of transformers")
    if len(data.tensors) != 1 or data.tensors[0].dim() != 2 or data.tensors[0].dtype.is_floating_point:
        raise InvalidInput("generate=: the calibration data are ids, [rows, length], and nothing else")
    longest = getattr(model.config, "max_position_embeddings", most)
    if type(most) is not int or not 1 < most <= longest:
        raise ConfigError(f"generate={most} must be a whole number of ids from 2 to {longest}, the prompt included")
    (ids,) = data.tensors
    if ids.shape[1] > most:
        raise InvalidInput(f"rows of {ids.shape[1]} ids are longer than generate={most}")
    with torch.no_grad():
        try:
            layers = model(input_ids=ids[:1], use_cache=True).past_key_values.layers
        except Exception as error:
            raise InvalidInput(
                f"the model keeps no keys and values of ids {tuple(ids[:1].shape)}: {blame(error)}"
            ) from error
    kept = [part for layer in layers for part in (layer.keys, layer.values)]
    examples = [torch.randn(1, part.shape[1], _BEFORE, part.shape[3]) for part in kept]
    nothing = [torch.zeros(len(ids), part.shape[1], 0, part.shape[3]) for part in kept]
    new = ids[:1, :1].expand(1, _NEW).clone()
    names = [f"{kind} {i}" for i in range(len(layers)) for kind in ("keys", "values")]
    states = tuple(Declared(name, f"past_{i}", SCORES + 1 + i, 2, most) for i, name in enumerate(names))
    return Decoder(model), Batch((new, *examples)), Batch((ids, *nothing)), states


def sizes(states: int, most: int) -> dict[str, Any]:
    """The dynamic shapes of torch.export for a ``Decoder``."""
    new, before = torch.export.Dim("new", min=1, max=most), torch.export.Dim("before", min=0, max=most)
    return {"input_ids": {1: new}, "past": tuple({2: before} for _ in range(states))}
