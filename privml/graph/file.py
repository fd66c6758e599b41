# SPDX-License-Identifier: Apache-2.0
"""Files of a program. Both are data: reading them executes nothing.

``program``: JSON, an object of ``privml`` ("program"), ``version``, ``sha256`` (of the body's canonical JSON) and
``body`` (see ``privml.graph.body``). ``weights.safetensors``: the weights by name; its metadata holds ``privml``
("weights"), ``version``, ``program`` (the program's hash) and ``sha256`` (of names, dtypes, shapes and elements).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from privml.errors import ConfigError, CorruptFile
from privml.graph.body import digest

VERSION = 1
# Larger than any graph without weights; keeps a wrong file from filling the memory.
LARGEST_PROGRAM = 256 << 20


def write_program(path: Path, body: Mapping[str, Any]) -> Path:
    content = {"privml": "program", "version": VERSION, "sha256": digest(body), "body": body}
    _write(path, [json.dumps(content, indent=1, allow_nan=False).encode()], 0o644)
    return path


def read_program(path: Path) -> dict[str, Any]:
    """The body of the program at ``path``; CorruptFile if it is truncated, altered or of another kind."""
    if path.is_dir():
        path = path / "program"
    size = path.stat().st_size
    if size > LARGEST_PROGRAM:
        raise CorruptFile(f"{path}: {size} bytes are too many for a program")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("privml") != "program":
        remedy = "give the file or folder that privml convert or Program.save has written"
        raise CorruptFile(f"{path}: not a program of privml, or a truncated one; {remedy}")
    _check_version(path, content.get("version"))
    body = content.get("body")
    try:
        found = digest(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(body, dict) or found != content.get("sha256"):
        raise CorruptFile(f"{path}: the content does not match its SHA-256; the file was altered, convert again")
    return body


def write_weights(path: Path, weights: Mapping[str, torch.Tensor], program: str) -> Path:
    metadata = {"privml": "weights", "version": str(VERSION), "program": program, "sha256": _digest(weights)}
    _write(path, _in_one_order(save(dict(weights), metadata)), 0o600)
    return path


def read_weights(
    path: Path, specs: Mapping[str, tuple[tuple[int | None, ...], torch.dtype]], program: str
) -> dict[str, torch.Tensor]:
    """The weights that the program with this hash asks for; ConfigError if they belong to another program,
    CorruptFile if the file is truncated or altered."""
    if not path.is_file():
        raise FileNotFoundError(f"no weights at {path}")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise CorruptFile(f"{path}: not a safetensors file, or a truncated one: {error}") from None
    if metadata.get("privml") != "weights":
        raise CorruptFile(f"{path}: not weights that privml wrote; `privml convert` makes them from a model")
    _check_version(path, metadata.get("version"))
    if metadata.get("sha256") != _digest(weights):
        raise CorruptFile(f"{path}: the content does not match its SHA-256; the file was altered, convert again")
    if metadata.get("program") != program:
        raise ConfigError(
            f"{path}: these weights belong to the program {str(metadata.get('program'))[:12]}, this one is "
            f"{program[:12]}; use the weights that were written together with the program"
        )
    found = {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in weights.items()}
    if found != dict(specs):
        wrong = sorted(n for n in found.keys() | specs.keys() if found.get(n) != specs.get(n))
        raise CorruptFile(f"{path}: the weight {wrong[0]!r} is missing or of another shape than the program says")
    return weights


def _check_version(path: Path, version: Any) -> None:
    if str(version) != str(VERSION):
        raise CorruptFile(f"{path}: file version {version!r}, this release of privml reads version {VERSION}")


def _digest(weights: Mapping[str, torch.Tensor]) -> str:
    total = hashlib.sha256()
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        total.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        total.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return total.hexdigest()


def _in_one_order(file: bytes) -> list[bytes | memoryview]:
    """The parts of a safetensors file with sorted metadata: the library writes them in random order, but equal weights
    are to give equal files."""
    start = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:start])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, memoryview(file)[start:]]


def _write(path: Path, parts: Sequence[bytes | memoryview], mode: int) -> None:
    """All or nothing: a crash leaves the old file."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
