# SPDX-License-Identifier: Apache-2.0
"""The table of secure operators: one ATen overload, one rule. Families in ``privml.ops`` register here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._ops import OpOverload

from privml.errors import OverflowDetected, UnsupportedOperator
from privml.formats import FixedPoint, Float, current_node
from privml.transcript import as_one_step, within_step

Rule = Callable[..., Any]
Resolver = Callable[[OpOverload], Rule | None]
TABLE: dict[OpOverload, Rule] = {}
# The rules of the same operators where a tensor among the arguments has a Float format.
FLOATING: dict[OpOverload, Rule] = {}
# Functions intercepted above autograd, where torch would pick a fused kernel that cannot see a secret.
FUNCTIONS: dict[Callable, Rule] = {}
# What to say about an operator that has no rule, by packet name.
HINTS: dict[str, str] = {}
# Operators that have rules for floats also where reals are public and the secrets integers or bits.
MAKE_REALS: set[OpOverload] = set()
_RESOLVERS: list[Resolver] = []
_FLOATING_RESOLVERS: list[Resolver] = []
_RESOLVED: dict[OpOverload, Rule] = {}
_RESOLVED_FLOATING: dict[OpOverload, Rule] = {}


def implements(*operators: OpOverload) -> Callable[[Rule], Rule]:
    """Registers the decorated rule for these ATen overloads; its signature is the operator's."""
    return _registering(TABLE, operators)


def implements_floating(*operators: OpOverload) -> Callable[[Rule], Rule]:
    """As ``implements``, for calls with a tensor of Float format among the arguments."""
    return _registering(FLOATING, operators)


def _registering(table: dict[OpOverload, Rule], operators: tuple[OpOverload, ...]) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        for operator in operators:
            if operator in table:
                raise RuntimeError(f"{operator} has two rules: {table[operator].__name__} and {rule.__name__}")
            table[operator] = rule
        return rule

    return register


def intercepts(*functions: Callable) -> Callable[[Rule], Rule]:
    """Registers the decorated function to be called instead of ``functions`` on secret tensors; it may return
    NotImplemented to let the original run."""

    def register(rule: Rule) -> Rule:
        FUNCTIONS.update(dict.fromkeys(functions, rule))
        return rule

    return register


def resolver(function: Resolver) -> Resolver:
    """Registers a way to derive a rule for an operator outside the table (tried in order of registration)."""
    _RESOLVERS.append(function)
    return function


def resolver_of_floats(function: Resolver) -> Resolver:
    """As ``resolver``, for Float formats alone, tried after the others."""
    _FLOATING_RESOLVERS.append(function)
    return function


def find_rule(operator: OpOverload) -> Rule | None:
    """The rule of ``operator``: from the table, else derived once by a resolver, else None."""
    return _found(operator, TABLE, _RESOLVED, _RESOLVERS)


def _found(
    operator: OpOverload, table: dict[OpOverload, Rule], resolved: dict[OpOverload, Rule], resolvers: list[Resolver]
) -> Rule | None:
    rule = table.get(operator) or resolved.get(operator)
    if rule is None:
        for resolve in resolvers:
            rule = resolve(operator)
            if rule is not None:
                resolved[operator] = rule
                break
    return rule


def rule_for(operator: OpOverload, args: Iterable[Any], kwargs: dict) -> Rule | None:
    """The rule for these arguments, by the formats of the tensors among them."""
    if (
        holds_floats(args)
        or (kwargs and holds_floats(kwargs.values()))
        or (operator in MAKE_REALS and makes_floats(args))
    ):
        return _found(operator, FLOATING, _RESOLVED_FLOATING, _RESOLVERS + _FLOATING_RESOLVERS)
    return TABLE.get(operator) or find_rule(operator)


def makes_floats(values: Iterable[Any]) -> bool:
    """Whether secret integers or bits of a session of floats meet public reals."""
    secret = [v for v in values if hasattr(v, "session")]
    if not secret or type(secret[0].session.real) is not Float:
        return False
    return not any(type(v.format) is FixedPoint for v in secret) and any(
        isinstance(v, float) or (isinstance(v, torch.Tensor) and v.dtype.is_floating_point) for v in values
    )


def holds_floats(values: Iterable[Any]) -> bool:
    """Whether a secret of a Float format is among ``values`` or in a list among them."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if type(getattr(value, "format", None)) is Float:
                return True
        elif isinstance(value, (list, tuple)) and value and holds_floats(value):
            return True
    return False


def is_supported(operator: OpOverload) -> bool:
    """Whether some rule exists (it may still refuse some arguments)."""
    return find_rule(operator) is not None


def supported_operators() -> list[str]:
    """Names of all operators with a rule of their own, sorted."""
    importlib.import_module("privml.ops.rules")  # the rules import this module
    return sorted(str(operator).removeprefix("aten.") for operator in TABLE)


def dispatch(operator: OpOverload, args: tuple, kwargs: dict) -> Any:
    """Runs the rule of ``operator``, as a step of the session's transcript; raises UnsupportedOperator when there is
    none for these arguments."""
    if within_step():
        return _ruled(operator, args, kwargs)
    return as_step(str(operator), _ruled, operator, args, kwargs)


def as_step(text: str, function: Callable[..., Any], *given: Any) -> Any:
    """``function(*given)``, whose last two arguments are those of an operation, as a step of the transcript of the
    session that a secret tensor among them belongs to."""
    session = _session_of(given[-2:])
    if session is not None:
        session.check_process()
    if session is None or session.transcript is None:
        return function(*given)
    chain, before = session.transcript.chain, session.engine.counters()
    here = chain.here()
    session.step(text, *given[-2:])
    try:
        with as_one_step():
            result = function(*given)
    except Exception:
        # A step that was refused before anything was sent or masked; any other one stays, and the parties differ.
        if not any(chain.pads) and session.engine.counters() == before:
            chain.back_to(here)
        raise
    session.name(result)
    return result


def _session_of(values: Iterable[Any]) -> Any:
    for value in values:
        if isinstance(value, torch.Tensor):
            session = getattr(value, "session", None)
        elif isinstance(value, (list, tuple)):
            session = _session_of(value)
        else:
            session = _session_of(value.values()) if isinstance(value, dict) else None
        if session is not None:
            return session
    return None


def _ruled(operator: OpOverload, args: tuple, kwargs: dict) -> Any:
    rule = rule_for(operator, args, kwargs)
    if rule is None:
        raise unsupported(operator, args, kwargs)
    try:
        result = rule(*args, **kwargs)
    except OverflowDetected as error:
        if not hasattr(error, "operator"):
            error.operator = operator
            error.args = (f"{operator}: {error}",)
        raise
    if result is NotImplemented:
        raise unsupported(operator, args, kwargs)
    return result


def unsupported(operator: OpOverload, args: tuple, kwargs: dict) -> UnsupportedOperator:
    """The error for an operator without a rule: which, on what, where, and what there is instead."""
    packet = operator._schema.name.split("::")[-1]
    name = current_node().name
    place = f" (node {name!r})" if name else ""
    kinds = ", ".join([_kind(a) for a in args] + [f"{k}={_kind(v)}" for k, v in kwargs.items()])
    hint = HINTS.get(packet)
    if hint is None:
        siblings = [str(o) for o in TABLE if o._schema.name.split("::")[-1] == packet and o is not operator]
        if operator not in FLOATING and holds_floats(args):
            hint = "there is none for floating point"
        elif operator in TABLE or operator in _RESOLVED:
            hint = "it is supported on other kinds of arguments only"
        elif siblings:
            hint = f"supported overloads: {', '.join(siblings)}"
        else:
            hint = "privml.dispatch.supported_operators() lists all"
    return UnsupportedOperator(f"no secure implementation of {operator}({kinds}){place}; {hint}")


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        who = "public" if type(value) in (torch.Tensor, torch.nn.Parameter) else "secret"
        return f"{who} {str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in value):
        return f"[{', '.join(_kind(v) for v in value)}]"
    return repr(value)
