# SPDX-License-Identifier: Apache-2.0
"""Shipped models as the programs that they were converted to before, in the user's cache folder.

An entry's name is the SHA-256 of all that its program depends on: the code of this package and of the models, the
versions of what traces them, what the model consists of, its weights, the calibration data and the settings.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from privml.cli.paths import PACKAGE, models_folder
from privml.errors import PrivmlError, StoreError
from privml.graph.passes.precision import Choice, Headroom, Precision
from privml.measure.machine import cache_folder
from privml.measure.scratch import scratch_folder
from privml.program import Program

# What all entries may take together; the oldest ones go first.
LARGEST = 512 << 20
# What traces a model, and what reads one from a file.
_TRACERS = ("torch", "onnx", "numpy")
# Of an entry that cannot be read, for whatever reason: the model is converted again.
_UNREADABLE = (PrivmlError, OSError, ValueError, KeyError, TypeError, AttributeError)


def kept(
    model: torch.nn.Module | str, data: Any, settings: Mapping[str, Any], convert: Callable[[], Program]
) -> Program:
    """The program of a shipped ``model`` (a module, or the path of a file) calibrated on ``data`` with ``settings``:
    an earlier one, else what ``convert`` returns, which is kept."""
    entry = _folder() / _name(model, data, settings)
    try:
        program = Program.load(entry / "program", entry / "weights.safetensors")
        fields = json.loads((entry / "choice.json").read_text())
        program.choice, program.notes = _choice(fields["choice"]), tuple(fields["notes"])
        os.utime(entry)
        return program
    except _UNREADABLE:
        program = convert()
    if program.weights is not None and program.choice.error <= program.choice.precision.tolerance:
        with contextlib.suppress(OSError, StoreError):  # a full disk takes nothing from the answer
            _keep(program, entry)
    return program


def _keep(program: Program, entry: Path) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(entry, ignore_errors=True)
    with scratch_folder(entry.parent) as folder:
        made = Path(folder, "made")
        program.save(made)
        fields = {"choice": asdict(program.choice), "notes": list(program.notes)}
        (made / "choice.json").write_text(json.dumps(fields))
        made.rename(entry)
    _drop_oldest(entry.parent, LARGEST)


def _drop_oldest(folder: Path, largest: int) -> None:
    total = 0
    for entry in sorted(folder.glob("[0-9a-f]*"), key=lambda entry: -entry.stat().st_mtime):
        total += sum(file.stat().st_size for file in entry.iterdir())
        if total > largest:
            shutil.rmtree(entry, ignore_errors=True)


def _folder() -> Path:
    return cache_folder() / "programs"


def _choice(fields: Mapping[str, Any]) -> Choice:
    report = tuple(Headroom(**line) for line in fields["report"])
    unseen = tuple((layer, factor) for layer, factor in fields["unseen"])
    floats = tuple(fields["floats"])
    counts = {name: fields[name] for name in ("held_out", "judged", "supposed")}
    elsewhere = tuple((engine, error) for engine, error in fields["elsewhere"])
    told = {"unseen": unseen, "floats": floats, "by_step": tuple(fields["by_step"]), "elsewhere": elsewhere}
    return Choice(Precision(**fields["precision"]), fields["error"], report, **told, **counts)


def _name(model: torch.nn.Module | str, data: Any, settings: Mapping[str, Any]) -> str:
    total = hashlib.sha256()
    total.update(json.dumps([_versions(), settings], sort_keys=True).encode())
    for root in (PACKAGE, models_folder()):
        for path in sorted(root.rglob("*.py")):
            total.update(f"{path.relative_to(root)} {path.stat().st_size};".encode())
            total.update(path.read_bytes())
    core = next(PACKAGE.glob("_core*.so")).stat()
    total.update(f"{core.st_size} {core.st_mtime_ns};".encode())
    if isinstance(model, torch.nn.Module):
        total.update(f"{type(model).__module__}.{type(model).__qualname__} {model!r};".encode())
        _add(total, model.state_dict())
    else:
        _add_file(total, Path(model))
    _add(total, data if isinstance(data, Mapping) else {"": data})
    return total.hexdigest()


def _add_file(total: Any, path: Path) -> None:
    """An ONNX file, and those beside it in which it keeps weights."""
    from privml.graph.onnx.weights import files_beside

    for file in (path, *files_beside(path)):
        total.update(f"{file.name} {file.stat().st_size};".encode())
        total.update(file.read_bytes())


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in _TRACERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def _add(total: Any, tensors: Mapping[str, torch.Tensor]) -> None:
    for name, tensor in tensors.items():
        tensor = torch.as_tensor(tensor).detach().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        total.update(tensor.numpy().tobytes())
