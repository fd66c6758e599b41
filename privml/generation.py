# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding with a program that ``privml.convert(model, generate=...)`` has made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from privml.errors import InvalidInput


def greedy(step: Callable[[torch.Tensor], Any], prompt: Any, count: int, end: Sequence[int] = ()) -> Iterator[int]:
    """At most ``count`` ids, one by one, that continue ``prompt`` (ids [length]); the last one is one of ``end`` if
    these come up.

    ``step`` is a session of which no step was taken: ``client.session()``, or ``privml.local(program, engine=...)``
    once it is entered. The prompt is its first step, and each further id one more. The number of steps, which all
    parties see, says when one of ``end`` came up. InvalidInput for a prompt that is no row of ids.
    """
    ids = torch.as_tensor(prompt)
    if ids.dim() != 1 or not len(ids) or ids.dtype.is_floating_point:
        raise InvalidInput(f"a prompt is one row of ids, not a tensor of shape {tuple(ids.shape)} of {ids.dtype}")
    for _ in range(count):
        found = step(ids.unsqueeze(0))
        ids = found.reshape(1)
        yield int(ids)
        if int(ids) in end:
            return
