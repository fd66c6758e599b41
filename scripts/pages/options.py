# SPDX-License-Identifier: Apache-2.0
"""The settings of every command, from configs/*.yaml and their comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from privml.cli import VERBS

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
# Groups of whole files to choose from; those of models, suites and the like are listed by name alone.
LISTED = ("model", "suite", "experiment", "train")
# What settings are whose file does not say it; VERB.NAME goes before NAME.
WORDS = {
    "action": "init, issue or show",
    "advertise": "host under which clients reach the processes of `cluster`; null: the host of `listen`",
    "advise.batch": "inputs per query",
    "batch": "inputs per query",
    "calibration": "inputs (.npy) that ranges are measured on; null: the shipped model's own",
    "convert.out": "folder of the program and the weights",
    "count": "the largest number of inputs",
    "deadline": "seconds that a read may wait",
    "device": "cpu or cuda",
    "dot": "fused: integer sums of aligned mantissas, rounded once; exact: a chain of correctly rounded operations",
    "hello_seconds": "seconds within which a new connection must send its first message",
    "input": "the inputs (.npy)",
    "k": "SoftSpoken's degree, 1 to 10; 0 if it does not apply",
    "listen": "host:port to listen on",
    "evaluate.largest": "see count",
    "evaluate.markdown": "see cards",
    "evaluate.patience": "see count",
    "name": "name of the results",
    "network.bandwidth_mbps": "megabits per second in each direction; 0: no limit",
    "network.delay_ms": "milliseconds one way",
    "numerics.bits": "the widest ring",
    "numerics.floating": "format of all real numbers",
    "numerics.layers": "formats by patterns of layers' or operators' names",
    "numerics.margin": "room above the largest value of the calibration data, as a factor",
    "numerics.narrow": "each layer uses the narrowest ring that holds its values",
    "numerics.scale": "fractional bits of activations; null: the fewest that keep outputs within tolerance",
    "numerics.tolerance": "largest allowed error of an output, as a part of the largest output",
    "numerics.weight_bits": "width of weights; null: the smallest that keeps outputs within tolerance",
    "identity.tls.certificate": "this party's certificate",
    "identity.tls.key": "this party's key",
    "identity.tls.names.client": "name in the client's certificate",
    "identity.tls.names.dealer": "name in the dealer's certificate",
    "identity.tls.names.server": "name in the server's certificate",
    "op": "one operator of the suite",
    "out": "file of the results (.npy); null: none",
    "program": "file of the converted model; null: the model is converted first",
    "n": "elements of a batch",
    "preprocess.batch": "inputs per query",
    "preprocess.server": "host:port of the listening party, at the party that connects",
    "provider": "oblivious transfers: softspoken, silent, ideal or auto",
    "query.program": "file of the converted model",
    "query.server": "host:port of the server",
    "queue": "sessions that may wait for a thread; further clients are told when to try again",
    "queue_seconds": "seconds that a session may wait",
    "quiet": "print only results",
    "ray_address": "address of a Ray cluster; null: one is started on this machine",
    "refill": "none, or background: correlations are made while the online phase runs",
    "repeats": "number of runs; the best counts",
    "results": "folder of the JSON lines",
    "security": "semi_honest, or malicious: SecurityAbort if a peer deviates while transfers are made",
    "seed": "seed of weights, batches and calibration",
    "serve.program": "file of the converted model",
    "threads": "lanes of the session, each a connection and a thread; the same at both parties",
    "training.bits": "ring",
    "training.rate": "learning rate",
    "training.scale": "fractional bits",
    "training.steps": "steps of gradient descent",
    "truncation": "auto, probabilistic, faithful or exact; the same at all parties",
    "weights": "file of the weights",
    "worker_port": "first port of the processes of `cluster`; 0: any free ports",
    "worker_sessions": "sessions at a time of each process of `cluster`",
}
GROUPS = {
    "engine": "number of parties, and what it protects against",
    "identity": "certificates",
    "model": "the model to convert, run or measure",
    "network": "the link to simulate or to predict for",
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
    """The file's heading comment, groups and settings, each with the comment above it; what it takes in comes last."""
    lines = [line.rstrip() for line in path.read_text().splitlines()]
    result, comment, heading, inside = File(path.stem), [], True, ""
    included: list[Setting] = []
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
            if not text.startswith("- "):
                continue
            entry = text.removeprefix("- ")
            if ":" in entry and "override" not in entry:
                result.groups.append(_group(entry, about))
            elif entry not in ("common", "_self_", "defaults:") and (path.parent / f"{entry}.yaml").exists():
                included += read(path.parent / f"{entry}.yaml").settings
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
    own = {setting.name for setting in result.settings}
    result.settings += [setting for setting in included if setting.name not in own]
    return result


def _group(text: str, about: str) -> Group:
    name, choice = (part.strip() for part in text.split(":"))
    name, _, place = name.partition("@")
    return Group(name, choice, place or name, about)


def verbs() -> list[File]:
    return [read(CONFIGS / f"{verb}.yaml") for verb in VERBS]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _settings(settings: list[Setting], of: str, place: str = "") -> Iterator[str]:
    """``of``: the verb or group; ``place``: what a group's names begin with."""
    if not settings:
        return
    yield from ("| setting | default | |", "| --- | --- | --- |")
    for setting in settings:
        name = f"{place}.{setting.name}" if place else setting.name
        about = setting.about or WORDS.get(f"{of}.{setting.name}") or WORDS.get(setting.name, "")
        yield f"| `{name}` | {f'`{_cell(setting.value)}`' if setting.value else ''} | {_cell(about)} |"
    yield ""


def _verb(file: File) -> Iterator[str]:
    words = VERBS[file.name]
    yield from (f"## privml {file.name}", "", file.about or f"{words[0].upper()}{words[1:]}.", "")
    if file.groups:
        yield from ("| group | default | |", "| --- | --- | --- |")
        for group in file.groups:
            name = group.name if group.place == group.name else f"{group.name}@{group.place}"
            link = f"[`{name}`](#{group.name})"
            yield f"| {link} | `{group.choice}` | {_cell(group.about or GROUPS.get(group.name, ''))} |"
        yield ""
    yield from _settings(file.settings, file.name)


def _groups() -> Iterator[str]:
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
            yield from _settings(own, folder.name, place)


def pages() -> dict[str, str]:
    lines = [HEAD]
    for file in verbs():
        lines += _verb(file)
    lines += _groups()
    text = "\n".join(lines).replace("\n# Groups", "\n## Groups")
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return {"reference/settings.md": text.rstrip() + "\n"}
