# SPDX-License-Identifier: Apache-2.0
"""``privml VERB --help``: what a verb does, an example, and its settings with meaning and default."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any

import privml.cli.groups as groups
import privml.cli.schemas as schemas
from privml.cli.overrides import BESIDE, chosen

# Columns of the text, as far as the terminal is that wide; and where the meanings begin.
_WIDEST, _MEANING = 112, 30
_SWEEPS = (
    "--multirun (-m) runs the verb for each of several values separated by commas; --cfg job prints all settings of a "
    "call without running it."
)


def text(verb: str, overrides: Sequence[str] = (), width: int | None = None) -> str:
    """The help of a verb. ``overrides``: the rest of the call; choices in it decide which settings of a group are
    shown."""
    width = min(width or shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)
    schema = schemas.SCHEMAS[verb]
    lines = [f"usage: privml {verb} {'init | issue | show ' if verb == 'certs' else ''}KEY=VALUE ...", ""]
    lines += [*textwrap.wrap(" ".join(schema.__doc__.split()), width), "", "example:", f"  {schema.EXAMPLE}", ""]
    all_settings = list(_settings(verb))
    for title, required in (("required:", True), ("settings, with their defaults:", False)):
        shown = [row for row in all_settings if row[0] is required]
        if shown:
            lines += [title, *(line for _, key, about in shown for line in _row(key, about, width)), ""]
    if verb in BESIDE:
        lines += [*(line for row in _beside(BESIDE[verb]) for line in _row(*row, width)), ""]
    if schema.GROUPS:
        how = "groups: NAME=CHOICE takes a choice of settings, NAME.KEY=VALUE changes one of them"
        lines += [*textwrap.wrap(how, width), ""]
        choice_of = chosen(verb, overrides)
        compared = [place for place in choice_of if "." in place]
        for place, choice in choice_of.items():
            if place not in compared[1:]:
                group = schemas.places(verb)[place]
                lines += [*_group(place, choice, group, compared if place in compared else [], width), ""]
    return "\n".join([*lines, *textwrap.wrap(_SWEEPS, width)])


def _settings(verb: str) -> Iterator[tuple[bool, str, str]]:
    """Of each setting whether it is required, how it is written and what it means."""
    schema = schemas.SCHEMAS[verb]
    for each in schemas.settings_of(schema):
        default = _default(each)
        if each.name == "action":
            continue  # the word behind the verb
        if each.name == "model":
            name = default["name"]
            yield each.metadata["required"], "model" if name is None else f"model={name}", each.metadata["about"]
            own = {} if schemas.shipped_alone(verb) else groups.abouts(groups.Model)
            yield from ((False, f"model.{key}=null", about) for key, about in own.items() if key != "name")
        elif is_dataclass(default):
            when = "task=training: " if each.name == "training" else ""
            for own in fields(default):
                yield False, f"{each.name}.{own.name}={value(own.default)}", f"{when}{own.metadata['about']}"
        else:
            required = default == schemas.MISSING
            yield required, each.name if required else f"{each.name}={value(default)}", _about(each)


def _default(each: Field) -> Any:
    return each.default_factory() if callable(each.default_factory) else each.default


def _about(each: Field) -> str:
    """What a setting means, and which values it takes where the text does not say so."""
    about, of = each.metadata["about"], [value(choice) for choice in each.metadata["of"] if choice not in (True, False)]
    unnamed = [choice for choice in of if choice not in about]
    return f"{about} ({', '.join(of)})" if unnamed and of else about


def _beside(folder: str) -> Iterator[tuple[str, str]]:
    yield f"{folder}=NAME", "several settings at once, which those of the call then change"
    for name in groups.choices(folder):
        yield f"  {folder}={name}", groups.head_of(folder, name)


def _group(place: str, choice: str | None, group: str, compared: Sequence[str], width: int) -> Iterator[str]:
    """``compared``: the places of several choices that are used beside each other, shown as one."""
    prefix, known = place, groups.choices(group)
    if compared:
        prefix = f"{place.partition('.')[0]}.NAME"
        yield from _row(
            prefix, f"{groups.ABOUT[group]} to compare: {', '.join(compared)}; ~formats.NAME leaves one out", width
        )
    elif len(known) == 1:
        yield from _row(place, groups.head_of(group, known[0]), width)
    else:
        yield from _row(f"{place}={value(choice)}", groups.ABOUT[group], width)
        for name in known:
            yield from _row(f"  {place}={name}", groups.head_of(group, name) or "an engine from outside privml", width)
    if choice is None or group == "suite":
        return
    about, last = groups.meanings(group, choice), ""
    for key, default in groups.settings(group, choice).items():
        meaning = about.get(key) or about.get(key.rpartition(".")[0], "")
        yield from _row(f"  {prefix}.{key}={value(default)}", "" if meaning == last else meaning, width)
        last = meaning


def _row(key: str, about: str, width: int) -> list[str]:
    """A setting and its meaning, which begins on the next line if the setting is long."""
    left = f"  {key}"
    lines = textwrap.wrap(about, max(width - _MEANING, 20), break_on_hyphens=False)
    if not lines:
        return [left]
    if len(left) > _MEANING - 2:
        return [left, *(" " * _MEANING + line for line in lines)]
    return [left.ljust(_MEANING) + lines[0], *(" " * _MEANING + line for line in lines[1:])]


def value(default: Any) -> str:
    """A value as it is written on the command line."""
    if default is None or isinstance(default, bool):
        return {None: "null", True: "true", False: "false"}[default]
    if isinstance(default, float):
        return f"{default:g}"
    return str(default).replace(" ", "") if isinstance(default, (list, dict)) else str(default)
