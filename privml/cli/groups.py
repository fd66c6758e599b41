# SPDX-License-Identifier: Apache-2.0
"""The groups of settings that are chosen from, files of ``configs``: their choices, settings and meanings.

The comment at the head of a file says what the choice is, the comment above a setting what that means. What the files
leave open are the types and ranges, in the dataclasses of ``schema_of``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privml.cli.fields import setting
from privml.cli.paths import config_directory
from privml.engines.interface import BUILT_IN
from privml.engines.interface import names as engine_names

# Of ``privml.measure.suites``, which needs torch.
KINDS = ("core", "active_core", "engine", "network", "classical")

_OPEN = {"train": ("settings",), "numerics": ("layers",), "suite": ("operators",)}

# What each group decides.
ABOUT = {
    "engine": "which parties there are, and what it protects against",
    "identity": "certificates",
    "link": "the link between the parties: it is simulated, or used for predictions and by ot=auto",
    "numerics": "number formats",
    "ot": "how correlations are made",
    "suite": "what to measure",
    "train": "what to train, and how",
}


@dataclass
class Model:
    """A shipped model by its name, or one of your own."""

    name: str | None = setting(None, "a shipped model; model=NAME for short")
    onnx: str | None = setting(None, "file of your own model, FILE.onnx")
    torch: str | None = setting(
        None,
        "your own model: MODULE:FUNCTION or FILE.py:FUNCTION, which returns the trained module; or FILE.safetensors "
        "or FILE.pt, its weights, for the module that `factory` makes",
    )
    factory: str | None = setting(
        None, "MODULE:FUNCTION or FILE.py:FUNCTION that makes the untrained module of a file of weights"
    )
    input_shape: list[int] | None = setting(
        None, "shape of random inputs to try a model without `calibration`, [1,3,32,32] for instance"
    )


@dataclass
class Files:
    """This party's proof of its name, as PEM files: all three or none."""

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    names: dict[str, Any] = field(default_factory=dict)


@dataclass
class Identity:
    tls: Files = field(default_factory=Files)
    insecure: bool = False


@dataclass
class Link:
    """A link between two parties."""

    delay_ms: float = setting(0.0, "how long a message takes in one direction, in milliseconds", least=0)
    bandwidth_mbps: float = setting(0.0, "of each direction, in Mbit/s; 0: unlimited", least=0)


@dataclass
class Suite:
    """Operators of one kind."""

    kind: str = setting("core", "how its operators are run", of=KINDS)
    engine: str | None = setting(None, "engine of its operators; null: that of engine=NAME")
    operators: dict[str, Any] = setting({}, "row of each operator, by its name")


@dataclass
class SuiteRow:
    """One operator of a suite."""

    operator: str = setting("", "what is run")
    n: int = setting(1, "operations at once, or inputs of a query", least=1)
    params: dict[str, Any] = setting({}, "what the operator takes")
    published: dict[str, Any] = setting({}, "figures of others, to compare with")
    truncation: str | None = setting(None, "how three parties truncate; null: auto")


@dataclass
class Recipe:
    """A model, its data and how it is trained."""

    model: str = setting("lenet", "model and data: a task of models/tasks.py")
    settings: dict[str, Any] = setting({}, "sizes of the model, which its task takes")
    epochs: int = setting(1, "passes over the training data", least=1)
    batch: int = setting(32, "rows of a step", least=1)
    optimizer: str = setting("sgd", "sgd, or adam with way=eager", of=("sgd", "adam"))
    rate: float = setting(0.02, "learning rate", positive=True)
    momentum: float = setting(0.0, "of sgd: the part of the last change that is added again", least=0)
    weight_decay: float = setting(0.0, "the part of a weight that is added to its gradient", least=0)
    eps: float = setting(1e-8, "of adam: added to the divisor of each step", positive=True)


def schema_of(group: str) -> Any:
    """The dataclass of a group's settings besides its name; None: those of the chosen engine. Loaded here, since some
    need torch."""
    if group == "ot":
        from privml.engines.correlations import OtChoice as schema
    elif group == "numerics":
        from privml.graph.passes.choose_formats import Precision as schema
    else:
        return {"identity": Identity, "link": Link, "suite": Suite, "train": Recipe}.get(group)
    return schema


def own_names(group: str) -> list[str]:
    """The settings that a group's schema names, also where a file leaves them out; an engine's are those of its
    file."""
    from dataclasses import fields

    schema = schema_of(group)
    return [] if schema is None else [each.name for each in fields(schema)]


def open_names(group: str) -> tuple[str, ...]:
    """The settings below which any name may stand."""
    return _OPEN.get(group, ())


# ---- files
def choices(group: str) -> list[str]:
    """The names that ``GROUP=NAME`` takes."""
    found = sorted(path.stem for path in (config_directory() / group).glob("*.yaml"))
    return found + [name for name in engine_names() if name not in BUILT_IN] if group == "engine" else found


def file_of(group: str, choice: str) -> Path:
    return config_directory() / group / f"{choice}.yaml"


def settings(group: str, choice: str) -> dict[str, Any]:
    """The settings of a choice by their names, a.b for b in a, without the choice's own name; those of an engine from
    outside privml are its own."""
    path = file_of(group, choice)
    if not path.exists():
        from dataclasses import asdict

        from privml.engines.interface import backend

        return asdict(backend(choice).Config())
    return {name: value for name, value in _flat(_read(path)) if name != "name" or group == "train"}


def _read(path: Path) -> dict[str, Any]:
    import yaml

    values = yaml.safe_load(path.read_text())
    merged: dict[str, Any] = {}
    for name in values.pop("defaults", ()):
        merged |= {} if name == "_self_" else _read(path.with_name(f"{name}.yaml"))
    return merged | values


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, value


def head_of(group: str, choice: str) -> str:
    """What a choice is."""
    path = file_of(group, choice)
    return comments(path)[0] if path.exists() else ""


def meanings(group: str, choice: str) -> dict[str, str]:
    """What the settings of a choice mean, by their names, a.b for b in a: as its file says, or one of the others."""
    found: dict[str, str] = {}
    for each in (choice, *choices(group)):
        if file_of(group, each).exists():
            found = {**comments(file_of(group, each))[1], **found}
    schema = {"link": Link, "suite": Suite, "train": Recipe}.get(group)
    return found | ({} if schema is None else abouts(schema))


def abouts(schema: Any) -> dict[str, str]:
    """The meanings of a dataclass's fields."""
    from dataclasses import fields

    return {each.name: each.metadata["about"] for each in fields(schema)}


def comments(path: Path) -> tuple[str, dict[str, str]]:
    """The comment at the head of a group's file, to the first setting or empty line, and those above its settings
    (a.b for b in a)."""
    head: str | None = None
    comment: list[str] = []
    found: dict[str, str] = {}
    parents: list[tuple[int, str]] = []
    for line in path.read_text().splitlines():
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if text.startswith("#"):
            comment += [] if "SPDX-" in text or "@package" in text else [text.removeprefix("#").strip()]
            continue
        if head is None:
            head, comment = " ".join(comment), []
        if not text:
            continue
        parents = [(at, name) for at, name in parents if at < indent]
        name = text.split(":")[0]
        if comment:
            found[".".join([*(parent for _, parent in parents), name])] = " ".join(comment)
        parents.append((indent, name))
        comment = []
    return head or "", found
