# SPDX-License-Identifier: Apache-2.0
"""Settings as fields of dataclasses: what each means, which values it takes, and values that do not fit."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import Field, field, fields
from typing import Any

from privml.errors import ConfigError

# As many choices are listed if none resembles what was written.
_FEW = 12


class WrongCall(ConfigError):
    """The command line has an unknown setting or choice, lacks a required one, or has a value that does not fit: exit
    status 2."""


def setting(
    default: Any,
    about: str,
    least: int | None = None,
    positive: bool = False,
    of: tuple = (),
    required: bool = False,
) -> Any:
    """A field. ``least``: the smallest number; ``positive``: a number above 0; ``of``: the values that there are. All
    of them allow null where the type does. ``required``: a value must be given, whatever the default."""
    extra = {"about": about, "least": least, "positive": positive, "of": of, "required": required}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=extra)
    return field(default=default, metadata=extra)


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """The rest of a message about an unknown ``word``: the nearest of ``known``, else all of them if they are few;
    each is written with ``prefix``."""
    names = sorted(known)
    if near := nearest(word, names):
        return f"; did you mean {' or '.join(prefix + name for name in near)}?"
    return f"; there are: {', '.join(prefix + name for name in names)}" if 0 < len(names) <= _FEW else ""


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The two of ``known`` at most that resemble ``word``."""
    return difflib.get_close_matches(word.lower(), sorted(known), n=2, cutoff=0.6)


def typed(schema: Any, values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """``values``, converted to the types of the dataclass's fields. WrongCall, which names the setting with
    ``prefix``, for one that there is not or that does not fit."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    node = OmegaConf.structured(schema)
    OmegaConf.set_readonly(node, False)  # which frozen ones are
    known = {each.name: each for each in fields(schema)}
    for name, value in values.items():
        if name not in known:
            raise WrongCall(
                f"there is no setting {prefix}{name}{did_you_mean(name, known, prefix) or '; there are none'}"
            )
        try:
            OmegaConf.update(node, name, value)
            fits = _in_range(known[name].metadata, value)
        except (OmegaConfBaseException, TypeError):
            fits = False
        if not fits:
            raise WrongCall(f"{prefix}{name}={value} must be {_kind(known[name], value)}")
    converted: Any = OmegaConf.to_container(node)
    return {name: converted[name] for name in values}


def _in_range(limits: Mapping[str, Any], value: Any) -> bool:
    if value is None:
        return True
    if limits.get("of"):
        return value in limits["of"]
    if limits.get("positive"):
        return 0 < value < float("inf")
    return limits.get("least") is None or limits["least"] <= value < float("inf")


def _kind(each: Field, value: Any) -> str:
    """What a setting must be that is not ``value``, in words."""
    limits = each.metadata
    if limits.get("of"):
        words = [str(choice) for choice in limits["of"]]
        near = difflib.get_close_matches(str(value), words, n=1)
        return f"one of {', '.join(words)}" + (f"; did you mean {near[0]}?" if near else "")
    if limits.get("positive"):
        return "a positive number"
    name = str(each.type).partition(" ")[0]
    kind = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}.get(name, name)
    return kind if limits.get("least") is None else f"{kind}, at least {limits['least']}"
