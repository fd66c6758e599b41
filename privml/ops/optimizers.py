# SPDX-License-Identifier: Apache-2.0
"""A warning where an optimizer of torch would not learn on the formats of the secrets it was given."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from privml.formats import FixedPoint
from privml.tensor import SecretTensor

# They average squares of gradients and divide by the root plus eps.
_ADAPTIVE = (torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RAdam, torch.optim.RMSprop)
# With so many fractional bits squares of gradients of 2^-8 are seen, and quotients by eps stay in range.
LEAST_SCALE, LEAST_EPS = 24, 2.0**-10


def _check(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if not isinstance(optimizer, _ADAPTIVE):
        return
    for group in optimizer.param_groups:
        formats = [p.format for p in group["params"] if isinstance(p, SecretTensor)]
        scales = [fmt.scale for fmt in formats if isinstance(fmt, FixedPoint)]
        if not scales or (min(scales) >= LEAST_SCALE and group["eps"] >= LEAST_EPS):
            continue
        warnings.warn(
            f"{type(optimizer).__name__} with eps={group['eps']:g} on fixed-point numbers of {min(scales)} fractional "
            "bits will not learn well: squares of small gradients become 0, and quotients by eps too large. Open the "
            f"session with scale={LEAST_SCALE} or more and pass eps=1e-3 (at least {LEAST_EPS:g}) to the optimizer, or "
            "use floating=float32 (engines twopc and plain), or SGD with momentum",
            stacklevel=4,
        )
        return


register_optimizer_step_pre_hook(_check)
