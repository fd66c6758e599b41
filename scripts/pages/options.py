# SPDX-License-Identifier: Apache-2.0
"""The settings of every verb, out of configs/*.yaml and their comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from privml.cli import VERBS

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
# Groups of whole files to choose from; those of models, suites and the like are listed by name alone.
LISTED = ("model", "suite", "experiment", "train")
HEAD = """# Settings of the command line

Every verb is a [Hydra](https://hydra.cc) application: `privml VERB key=value ...`. A group is chosen as a whole
(`ot=silent`), each of its settings by name (`ot.k=8`). `privml VERB --help` shows what a call would run with, and
`--multirun` (`-m`) runs a sweep over values separated by commas. `???` must be given; `null` is nothing.

The verbs end with 0 when all went well, with 1 and one line on stderr after an error of privml, and with 2 after a
wrong call. `quiet=true` prints results alone.
"""


@dataclass
class Setting:
    name: str
    value: str
    about: str


@dataclass
class Group:
    """An entry of the defaults list: ``group: choice``, read into ``place`` (the group's name unless it says)."""

    name: str
    choice: str
    place: str
    about: str


@dataclass
class File:
    name: str
    about: str = ""
    groups: list[Group] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)


def read(path: Path) -> File:
    """The file's heading comment, groups and settings, each with the comment above it."""
    lines = [line.rstrip() for line in path.read_text().splitlines()]
    result, comment, heading, inside = File(path.stem), [], True, ""
    parents: list[tuple[int, str]] = []
    for line in lines:
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if not text:
            comment = []
            continue
        if text.startswith("#"):
            words = text.removeprefix("#").strip()
            if not words.startswith(("SPDX-", "@package")):
                comment.append(words)
            continue
        if heading:
            result.about, comment, heading = " ".join(comment), [], False
        about, comment = " ".join(comment), []
        if indent == 0:
            inside, parents = text.split(":")[0], []
        if inside == "hydra":
            continue
        if inside == "defaults":
            if text.startswith("- ") and ":" in text and "override" not in text:
                result.groups.append(_group(text.removeprefix("- "), about))
            continue
        while parents and parents[-1][0] >= indent:
            parents.pop()
        name, value = (part.strip() for part in text.split(":", 1))
        full = ".".join([*(parent for _, parent in parents), name])
        if value:
            result.settings.append(Setting(full, value, about))
        else:
            parents.append((indent, name))
            if about:
                result.settings.append(Setting(full, "", about))
    return result


def _group(text: str, about: str) -> Group:
    name, choice = (part.strip() for part in text.split(":"))
    name, _, place = name.partition("@")
    return Group(name, choice, place or name, about)


def verbs() -> list[File]:
    return [read(CONFIGS / f"{verb}.yaml") for verb in VERBS]


def shared_words() -> dict[str, str]:
    """What a setting is said to be by the first verb that says something, for those that do not."""
    words: dict[str, str] = {"quiet": "print results alone", "deadline": "seconds that a read may wait"}
    for file in verbs():
        for setting in file.settings:
            if setting.about:
                words.setdefault(setting.name, setting.about)
    return words


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _settings(settings: list[Setting], words: dict[str, str], place: str = "") -> Iterator[str]:
    if not settings:
        return
    yield from ("| setting | default | |", "| --- | --- | --- |")
    for setting in settings:
        name = f"{place}.{setting.name}" if place else setting.name
        about = setting.about or words.get(setting.name, "as above")
        yield f"| `{name}` | {f'`{_cell(setting.value)}`' if setting.value else ''} | {_cell(about)} |"
    yield ""


def _verb(file: File, words: dict[str, str]) -> Iterator[str]:
    yield from (f"## privml {file.name}", "", f"{VERBS[file.name][0].upper()}{VERBS[file.name][1:]}.", "")
    if file.about:
        yield from (file.about, "")
    if file.groups:
        yield from ("| group | default | |", "| --- | --- | --- |")
        for group in file.groups:
            name = group.name if group.place == group.name else f"{group.name}@{group.place}"
            link = f"[`{name}`](#{group.name})"
            yield f"| {link} | `{group.choice}` | {_cell(group.about)} |"
        yield ""
    yield from _settings(file.settings, words)


def _groups(words: dict[str, str]) -> Iterator[str]:
    yield from ("# Groups", "", "The files of the folders of `configs`; `GROUP=NAME` takes one of them.", "")
    for folder in sorted(path for path in CONFIGS.iterdir() if path.is_dir()):
        files = [read(path) for path in sorted(folder.glob("*.yaml"))]
        yield from (f"## {folder.name}", "")
        if folder.name in LISTED:
            yield from ("| name | |", "| --- | --- |")
            yield from (f"| `{file.name}` | {_cell(file.about)} |" for file in files)
            yield ""
            continue
        place = "network" if folder.name == "identity" else folder.name
        for file in files:
            yield from (f"### {folder.name}={file.name}" if len(files) > 1 else "", "", file.about, "")
            own = [s for s in file.settings if s.name not in ("name", "parties")]
            yield from _settings(own, words, place)


def pages() -> dict[str, str]:
    words = shared_words()
    lines = [HEAD]
    for file in verbs():
        lines += _verb(file, words)
    lines += _groups(words)
    text = "\n".join(lines).replace("\n# Groups", "\n## Groups")
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return {"reference/settings.md": text.rstrip() + "\n"}
