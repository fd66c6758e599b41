# SPDX-License-Identifier: Apache-2.0
"""The settings of every command, from their schemas and the groups in configs/."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from omegaconf import MISSING, OmegaConf

from privml.cli import VERBS, groups
from privml.cli.schemas import NESTED, SCHEMAS, settings_of, shipped_alone

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
HEAD = """# Settings of the command line

`privml VERB key=value ...` runs a command ([Hydra](https://hydra.cc) reads the settings). Choose a group of settings by
its name (`ot=silent`) and change one of its settings with a dot (`ot.k=8`). `privml VERB --help` shows what a verb
does, an example and its settings with their meanings; `--cfg job` prints those of a call without running it.
`--multirun` (`-m`) runs the command for each of several values separated by commas.

`???` means that you must give a value, `null` that none is set. The exit status is 0 on success, 1 after an error of
privml (one line on stderr), and 2 after a wrong call: an unknown verb, setting or choice, one that is missing, or a
value that does not fit.
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _value(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
    return MISSING if value == MISSING else text


def _verb(verb: str) -> Iterator[str]:
    schema = SCHEMAS[verb]
    yield from (f"## privml {verb}", "", " ".join(schema.__doc__.split()), "", f"    {schema.EXAMPLE}", "")
    if schema.GROUPS:
        yield from ("| group | default | |", "| --- | --- | --- |")
        for name, choice in schema.GROUPS.items():
            group = name.partition("@")[0]
            yield f"| [`{name}`](#{group}) | `{_value(choice)}` | {groups.ABOUT[group]} |"
        yield ""
    values: Any = OmegaConf.to_container(OmegaConf.structured(schema))
    yield from ("| setting | default | |", "| --- | --- | --- |")
    for each in settings_of(schema):
        if each.name in NESTED:
            for name, about in groups.abouts(NESTED[each.name]).items():
                yield f"| `{each.name}.{name}` | `{_cell(_value(values[each.name][name]))}` | {_cell(about)} |"
            continue
        value, about = values[each.name], _cell(each.metadata["about"])
        if each.name == "model":
            value = MISSING if each.metadata["required"] else value["name"]
        yield f"| `{each.name}` | `{_cell(_value(value))}` | {about} |"
        if each.name == "model" and not shipped_alone(verb):
            own = {name: about for name, about in groups.abouts(groups.Model).items() if name != "name"}
            yield from (f"| `model.{name}` | `null` | {_cell(about)} |" for name, about in own.items())
    yield ""


def _group(group: str) -> Iterator[str]:
    yield from (f"### {group}", "")
    names = [name for name in groups.choices(group) if groups.file_of(group, name).exists()]
    yield from ("| choice | |", "| --- | --- |")
    yield from (f"| `{group}={name}` | {_cell(groups.head_of(group, name))} |" for name in names)
    yield ""
    if group not in groups.ABOUT or group == "suite":
        return
    rows: dict[tuple[str, str], list[str]] = {}
    for choice in names:
        about = groups.meanings(group, choice)
        for name, value in groups.settings(group, choice).items():
            meaning = about.get(name) or about.get(name.rpartition(".")[0], "")
            rows.setdefault((name, meaning), []).append(f"`{_value(value)}` ({choice})")
    yield from ("| setting | values of the choices | |", "| --- | --- | --- |")
    for (name, meaning), values in rows.items():
        yield f"| `{group}.{name}` | {_cell(', '.join(values))} | {_cell(meaning)} |"
    yield ""


def pages() -> dict[str, str]:
    lines = [HEAD]
    for verb in VERBS:
        lines += _verb(verb)
    lines += ["## Groups", "", "The files of the folders of `configs`; `GROUP=NAME` takes one of them.", ""]
    for folder in sorted(path for path in CONFIGS.iterdir() if path.is_dir()):
        lines += _group(folder.name)
    return {"reference/settings.md": "\n".join(lines).rstrip() + "\n"}
