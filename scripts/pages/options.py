# SPDX-License-Identifier: Apache-2.0
"""The settings of every command, from their schemas and the groups in configs/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from omegaconf import MISSING, OmegaConf

from privml.cli import VERBS
from privml.cli.schemas import SCHEMAS, schema_of, settings_of

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
GROUPS = {
    "engine": "which parties there are, and what it protects against",
    "identity": "certificates",
    "link": "the link between the parties: simulated, predicted for, or used by ot=auto",
    "numerics": "number formats",
    "ot": "how correlations are made",
    "suite": "what to measure",
}
HEAD = """# Settings of the command line

`privml VERB key=value ...` runs a command ([Hydra](https://hydra.cc) reads the settings). Choose a group of settings by
its name (`ot=silent`) and change one of its settings with a dot (`ot.k=8`). `privml VERB --help` shows the settings
that a call would use. `--multirun` (`-m`) runs the command for each of several values separated by commas.

`???` means that you must give a value, `null` that none is set. The exit status is 0 on success, 1 after an error of
privml (one line on stderr), and 2 after a wrong call.
"""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _value(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=1000).removesuffix("...\n").strip()
    return MISSING if value == MISSING else text


def _verb(verb: str) -> Iterator[str]:
    schema = SCHEMAS[verb]
    yield from (f"## privml {verb}", "", " ".join(schema.__doc__.split()), "")
    if schema.GROUPS:
        yield from ("| group | default | |", "| --- | --- | --- |")
        for name, choice in schema.GROUPS.items():
            group = name.partition("@")[0]
            yield f"| [`{name}`](#{group}) | `{_value(choice)}` | {GROUPS[group]} |"
        yield ""
    values: Any = OmegaConf.to_container(OmegaConf.structured(schema))
    yield from ("| setting | default | |", "| --- | --- | --- |")
    for each in settings_of(schema):
        value = "" if each.name == "model" else f"`{_cell(_value(values[each.name]))}`"
        yield f"| `{each.name}` | {value} | {_cell(each.metadata['about'])} |"
    yield ""


def _comments(path: Path) -> tuple[str, dict[str, str]]:
    """The comment at the head of a group's file, and those above its settings (a.b for b in a)."""
    head, comment, found, parents = None, [], {}, []
    for line in path.read_text().splitlines():
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if text.startswith("#"):
            comment += [] if "SPDX-" in text or "@package" in text else [text.removeprefix("#").strip()]
            continue
        if head is None:
            head, comment = " ".join(comment), []
        parents = [(at, name) for at, name in parents if at < indent]
        name = text.split(":")[0]
        if comment:
            found[".".join([*(parent for _, parent in parents), name])] = " ".join(comment)
        parents.append((indent, name))
        comment = []
    return head or "", found


def meanings(schema: Any) -> dict[str, str]:
    """What a dataclass's docstring says of its fields: "``name``: text"."""
    text = " ".join((schema.__doc__ or "").split()).partition(" Raises ")[0]
    parts = re.split(r"(?:^|[.;,] )``(\w+)``: ", text)
    return {name: about.rstrip(".").replace("``", "`") for name, about in zip(parts[1::2], parts[2::2], strict=True)}


def _group(folder: Path) -> Iterator[str]:
    yield from (f"### {folder.name}", "")
    files = {path: _comments(path) for path in sorted(folder.glob("*.yaml"))}
    yield from ("| choice | |", "| --- | --- |")
    yield from (f"| `{folder.name}={path.stem}` | {_cell(head)} |" for path, (head, _) in files.items())
    yield ""
    if folder.name not in GROUPS or folder.name == "suite":
        return
    schema = schema_of(folder.name)
    rows: dict[tuple[str, str], list[str]] = {}
    for path, (_, comments) in files.items():
        for name, value in settings(path).items():
            about = comments.get(name) or (meanings(schema).get(name, "") if schema else "")
            about = about or comments.get(name.rpartition(".")[0], "")
            rows.setdefault((name, about), []).append(f"`{_value(value)}` ({path.stem})")
    yield from ("| setting | values of the choices | |", "| --- | --- | --- |")
    for (name, about), values in rows.items():
        yield f"| `{folder.name}.{name}` | {_cell(', '.join(values))} | {_cell(about)} |"
    yield ""


def settings(path: Path) -> dict[str, Any]:
    """The settings of a group's file by their names, a.b for b in a, without the choice's own name."""
    return dict(_flat(yaml.safe_load(path.read_text())))


def _flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        elif before or name not in ("name", "defaults"):
            yield before + name, value


def pages() -> dict[str, str]:
    lines = [HEAD]
    for verb in VERBS:
        lines += _verb(verb)
    lines += ["## Groups", "", "The files of the folders of `configs`; `GROUP=NAME` takes one of them.", ""]
    for folder in sorted(path for path in CONFIGS.iterdir() if path.is_dir()):
        lines += _group(folder)
    return {"reference/settings.md": "\n".join(lines).rstrip() + "\n"}
