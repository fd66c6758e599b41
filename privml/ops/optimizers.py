# SPDX-License-Identifier: Apache-2.0
"""Optimizers of torch that divide by the root of a mean of squares, on secret weights in fixed point.

Adam, AdamW and RMSprop keep a state of its own precision (``privml.ops.adaptive``): before torch's step the weights are
changed here, and torch does not see their gradients while its step lasts. For the others there is a check.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from privml.errors import ConfigError
from privml.formats import FixedPoint
from privml.ops import adaptive
from privml.tensor import SecretTensor

_ADAM = (torch.optim.Adam, torch.optim.AdamW)
# All that divide by the root of a mean, or sum, of squares; torch computes derived classes operator by operator.
_OTHERS = (
    torch.optim.Adadelta, torch.optim.Adagrad, torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam,
    torch.optim.RAdam, torch.optim.RMSprop,
)  # fmt: skip
# With so many fractional bits squares of gradients of 2^-8 are seen, and quotients by eps stay in range.
LEAST_SCALE, LEAST_EPS = 24, 2.0**-10
# What the steps of this module need: gradients of 2^-12 are seen, and quotients by eps fit.
_LEAST_SCALE, _LARGEST_SCALE, _LARGEST_EPS = 12, 28, 1.0
_ELSEWHERE = "use floating=float32 (engines twopc and plain), or SGD with momentum"
# What a step depends on beside weights, gradients and state; the same at all parties.
_SETTINGS = (
    "lr", "betas", "alpha", "eps", "weight_decay", "decoupled_weight_decay", "momentum", "maximize", "amsgrad",
)  # fmt: skip
# Gradients that torch's step must not see, until it has ended.
_HIDDEN = "_privml_gradients"
# The key of ``_take`` among the hooks of an optimizer, whose own keys are numbers.
_LAST = "privml"


def _before(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """Checks the step, and puts ``_take`` after the optimizer's own hooks, which may change gradients."""
    if isinstance(optimizer, torch.optim.LBFGS):
        _check_search(optimizer)
        return None
    secret = [(p, group) for group in optimizer.param_groups for p in group["params"] if _in_fixed_point(p)]
    if not secret or not isinstance(optimizer, _OTHERS):
        return None
    if type(optimizer) not in (*_ADAM, torch.optim.RMSprop):
        for parameter, group in secret:
            _check_others(optimizer, parameter, group)
        return None
    for parameter, group in secret:
        _check(optimizer, parameter, group)
    hooks = optimizer._optimizer_step_pre_hooks
    hooks.pop(_LAST, None)
    hooks[_LAST] = _take  # type: ignore[index]
    return None


def _take(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
    """Takes the step for secret weights in fixed point."""
    closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
    if closure is None:
        _step(optimizer)
        return None
    return (args[0], _stepping(optimizer, closure)), {}


def _after(optimizer: torch.optim.Optimizer, args: tuple, kwargs: dict) -> None:
    for parameter, gradient in vars(optimizer).pop(_HIDDEN, ()):
        parameter.grad = gradient


def _stepping(optimizer: torch.optim.Optimizer, closure: Callable[[], Any]) -> Callable[[], Any]:
    """``closure``, which computes the gradients, and the step that they are for."""

    def both() -> Any:
        loss = closure()
        with torch.no_grad():
            _step(optimizer)
        return loss

    return both


def _in_fixed_point(parameter: torch.Tensor) -> bool:
    return isinstance(parameter, SecretTensor) and isinstance(parameter.format, FixedPoint)


# ---- checks, before anything is sent
def _check_search(optimizer: torch.optim.Optimizer) -> None:
    if any(isinstance(p, SecretTensor) for group in optimizer.param_groups for p in group["params"]):
        raise ConfigError(
            "LBFGS of secret weights would reveal the loss and gradients at every step: it decides by them how far to "
            "go and when to stop. Use torch.optim.SGD with momentum, or Adam"
        )


def _check_others(optimizer: torch.optim.Optimizer, parameter: SecretTensor, group: dict) -> None:
    scale, eps = parameter.format.scale, group["eps"]
    if scale < LEAST_SCALE or eps < LEAST_EPS:
        raise ConfigError(
            f"{type(optimizer).__name__} with eps={eps:g} on weights with scale={scale} does not converge: squares of "
            "small gradients become 0, and quotients by eps too large. Open the session with "
            f"scale={LEAST_SCALE} or more and pass eps=1e-3 (at least {LEAST_EPS:g}), or take torch.optim.Adam, AdamW "
            f"or RMSprop as they are, which keep their state at a finer scale; or {_ELSEWHERE}"
        )


def _check(optimizer: torch.optim.Optimizer, parameter: SecretTensor, group: dict) -> None:
    scale, eps, name = parameter.format.scale, group["eps"], type(optimizer).__name__
    session = parameter.session
    working = session.working
    if working.bits < adaptive.RING:
        raise ConfigError(
            f"{name} (eps={eps:g}, scale={scale}) keeps means of squares at {adaptive.SQUARES} fractional bits in "
            f"rings of {adaptive.RING}, and this session has bits={working.bits}; open it with bits={adaptive.RING}, "
            f"or {_ELSEWHERE}"
        )
    for coarse in (scale, working.scale):
        if not _LEAST_SCALE <= coarse <= _LARGEST_SCALE:
            raise ConfigError(
                f"{name} with eps={eps:g} needs weights and gradients with scale={_LEAST_SCALE} to {_LARGEST_SCALE}, "
                f"got scale={coarse}; scale=16 (the default) to 24 work well with eps=1e-8 to {_LARGEST_EPS:g}; or "
                f"{_ELSEWHERE}"
            )
    if not eps <= _LARGEST_EPS:
        raise ConfigError(f"{name} with scale={scale}: eps={eps:g} must be at most {_LARGEST_EPS:g}; 1e-8 works")
    for option in ("centered", "differentiable", "capturable"):
        if group.get(option):
            raise ConfigError(f"{name} of secret weights has no {option}=True; leave it out, or {_ELSEWHERE}")
    for key, value in optimizer.state.get(parameter, {}).items():
        if key != "step" and isinstance(value, torch.Tensor) and not isinstance(value, SecretTensor):
            raise ConfigError(
                f"{name}: its state {key!r} is in the clear, but its weights are secret; do not load the state of a "
                "training in the clear; load that of a secret training"
            )


# ---- steps
def _step(optimizer: torch.optim.Optimizer) -> None:
    """Changes the weights that are secret, in fixed point and have gradients, and hides these."""
    hidden = []
    for group in optimizer.param_groups:
        alike: dict[tuple[int, int, float], list[SecretTensor]] = {}
        for parameter in group["params"]:
            if _in_fixed_point(parameter) and isinstance(parameter.grad, SecretTensor):
                steps = float(optimizer.state[parameter].get("step", 0.0))
                alike.setdefault((id(parameter.session), parameter.format.scale, steps), []).append(parameter)
        for parameters in alike.values():
            with torch.no_grad():
                _change(optimizer, group, parameters)
            hidden += [(parameter, parameter.grad) for parameter in parameters]
    setattr(optimizer, _HIDDEN, hidden)
    for parameter, _ in hidden:
        parameter.grad = None


def _change(optimizer: torch.optim.Optimizer, group: dict, parameters: Sequence[SecretTensor]) -> None:
    """One step of weights of one format that took equally many steps before, as of a single one."""
    settings = {name: group[name] for name in _SETTINGS if name in group}
    gradients = [parameter.grad for parameter in parameters]
    parameters[0].session.step(f"{type(optimizer).__name__}.step", settings, *parameters, *gradients)
    states = [optimizer.state[parameter] for parameter in parameters]
    scale, gradient_scale = parameters[0].format.scale, parameters[0].session.working.scale
    finer = scale + adaptive.FINER
    rate, adam = float(group["lr"]), isinstance(optimizer, torch.optim.Adam)
    decay, decoupled = group["weight_decay"], group.get("decoupled_weight_decay", False) or type(optimizer) is _ADAM[1]
    gradient = _gradient(parameters, gradient_scale, 0.0 if decoupled else decay, group.get("maximize", False))
    floor = 2.0 ** -min(gradient_scale, 18)
    moments = _Moments(parameters, states, min(gradient_scale + 8, adaptive.MEAN))
    if adam:
        change = _adam(group, gradient, moments, floor, rate, finer)
    else:
        change = _rmsprop(group, gradient, moments, floor, rate, finer)
    if decoupled and decay:
        weights = adaptive.flat(parameters, adaptive.RING, scale)
        change = adaptive.added(change, adaptive.decayed(weights, rate * decay, finer, change.format.bits))
    whole, rest = adaptive.in_parts(moments.get("residue", finer, change.format.bits), change, scale)
    moments.put("residue", rest)
    for parameter, part in zip(parameters, moments.parts(whole), strict=True):
        parameter.add_(part)


class _Moments:
    """The state of several weights, taken and put as of one; it lies in the optimizer's, where torch would have it.
    ``scale``: of means of gradients; ``steps``: with this one."""

    def __init__(self, parameters: Sequence[SecretTensor], states: Sequence[dict], scale: int) -> None:
        self.parameters, self.states, self.scale = parameters, states, scale
        for state in states:
            state["step"] = state.get("step", torch.tensor(0.0)) + 1
        self.steps = float(states[0]["step"])

    def get(self, name: str, scale: int | None = None, bits: int = adaptive.RING) -> SecretTensor:
        scale = self.scale if scale is None else scale
        for parameter, state in zip(self.parameters, self.states, strict=True):
            if not isinstance(state.get(name), SecretTensor):
                state[name] = adaptive.zeros(parameter, bits, scale)
        return adaptive.flat([state[name] for state in self.states], bits, scale)

    def put(self, name: str, value: SecretTensor) -> None:
        for state, part in zip(self.states, self.parts(value), strict=True):
            state[name] = part

    def parts(self, value: SecretTensor) -> list[SecretTensor]:
        sizes = [parameter.numel() for parameter in self.parameters]
        pieces = zip(value.split(sizes), self.parameters, strict=True)
        return [piece.reshape(parameter.shape) for piece, parameter in pieces]


def _gradient(parameters: Sequence[SecretTensor], scale: int, decay: float, maximize: bool) -> SecretTensor:
    gradient = adaptive.flat([parameter.grad for parameter in parameters], adaptive.RING, scale)
    if maximize:
        gradient = -gradient
    if not decay:
        return gradient
    finer = max(scale, 20)
    weights = adaptive.flat(parameters, adaptive.RING, parameters[0].format.scale)
    return adaptive.added(adaptive.cast(gradient, adaptive.RING, finer), adaptive.decayed(weights, decay, finer))


def _adam(
    group: dict, gradient: SecretTensor, moments: _Moments, floor: float, rate: float, scale: int
) -> SecretTensor:
    beta1, beta2 = (float(beta) for beta in group["betas"])
    first = adaptive.mean(moments.get("exp_avg"), gradient, 1 - beta1)
    second = adaptive.mean_of_squares(moments.get("exp_avg_sq", adaptive.SQUARES), gradient, 1 - beta2)
    moments.put("exp_avg", first)
    moments.put("exp_avg_sq", second)
    if group["amsgrad"]:
        second = torch.maximum(moments.get("max_exp_avg_sq", adaptive.SQUARES), second)
        moments.put("max_exp_avg_sq", second)
    correction = math.sqrt(1 - beta2**moments.steps)
    direction = adaptive.quotient(first, second, group["eps"] * correction, floor)
    return adaptive.change(direction, rate * correction / (1 - beta1**moments.steps), scale)


def _rmsprop(
    group: dict, gradient: SecretTensor, moments: _Moments, floor: float, rate: float, scale: int
) -> SecretTensor:
    squares = moments.get("square_avg", adaptive.SQUARES)
    squares = adaptive.mean_of_squares(squares, gradient, 1 - group["alpha"])
    moments.put("square_avg", squares)
    direction = adaptive.quotient(adaptive.cast(gradient, adaptive.RING, moments.scale), squares, group["eps"], floor)
    if group["momentum"] > 0:
        direction = adaptive.accumulated(moments.get("momentum_buffer"), direction, group["momentum"])
        moments.put("momentum_buffer", direction)
    return adaptive.change(direction, rate, scale)


register_optimizer_step_pre_hook(_before)
register_optimizer_step_post_hook(_after)
