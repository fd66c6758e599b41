# SPDX-License-Identifier: Apache-2.0
"""Secret tensors on disk: each party writes its own shares into a file of its own, which alone reveals nothing.

A file is ``<folder>/party-<rank>/step-<number>.safetensors`` (mode 0600): the components of every share, ring elements
as int64 and bits as uint8, and public tensors as they are. Its metadata says what the shares are of. Old contents or
new ones are there, never a mixture, whenever the process is killed. A holder of the files of as many parties as the
engine needs to open a value has the values: keep them where the parties' other secrets are.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from privml.context import Session
from privml.errors import ConfigError, CorruptFile
from privml.formats import FORMATS, Boolean, Integer, Owned
from privml.graph.ir import DTYPES
from privml.sharing import reveal, share
from privml.store.durable import FOLDER_MODE, replace, sync_folder
from privml.tensor import SHARED, SecretTensor

_FILE = re.compile(r"step-(\d{9})\.safetensors\Z")
_VERSION = "2"
# What a file that is not as it was written can lead to.
_NO_SHARES = (SafetensorError, KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
# The newest steps, which a party announces to the others; a file older than the last common one is removed.
_NEWEST = 4
_LARGEST_RUN = 1 << 30
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


def new_run(session: Session) -> int:
    """A number that all parties know and no other run has: shares of different runs never belong together. A run that
    goes on from a file takes a number of its own too: when parties die while they save, some may have the shares of
    this attempt at a step and some those of the last one."""
    mine = torch.tensor(secrets.randbelow(_LARGEST_RUN)) if session.rank in (None, 0) else None
    return int(reveal(share(mine, 0, Integer(session.working.bits), shape=(), dtype=torch.int64, session=session)))


def save_shares(
    folder: str | Path,
    session: Session,
    step: int,
    run: int,
    tensors: Mapping[str, torch.Tensor],
    settings: Mapping[str, Any] = NO_SETTINGS,
) -> None:
    """Writes this party's file (in one process, every party's), waits until all have theirs, and removes the older ones
    but one, and later ones, which a run that was given up has left. ``run``: see ``new_run``; ``settings``: what a run
    that goes on from here must have in common with this one, values that JSON knows by their names.

    Raises StoreError when the disk is full, OSError for other troubles of the file system, ConfigError for an engine
    whose shares are authenticated under keys of their session, which no other session has.
    """
    if not session.engine.portable:
        raise ConfigError(
            f"shares of the engine {session.engine.name} are valid in their session only, because their checks "
            "need its keys; train without save_every, or on twopc or threepc"
        )
    for rank in _ranks(session):
        place = _folder(folder, rank)
        place.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        replace(place / f"step-{step:09d}.safetensors", _encoded(session, rank, step, run, tensors, settings))
        sync_folder(place)
    _meet(session)
    for rank in _ranks(session):
        files = _files(_folder(folder, rank))
        older = [path for number, path in files if number <= step]
        for path in older[:-2] + [path for number, path in files if number > step]:
            path.unlink()


def newest_common(folder: str | Path, session: Session) -> tuple[int, int] | None:
    """The newest (step, run) of which every party has a file, None if there is none; all parties call it."""
    known: list[set[tuple[int, int]]] = []
    for rank in _writers(session):
        mine = None
        if session.rank in (None, rank):
            found = [(step, _metadata(path)["run"]) for step, path in _files(_folder(folder, rank))][-_NEWEST:]
            mine = torch.tensor(found + [(-1, -1)] * (_NEWEST - len(found)))
        ring = Integer(session.working.bits)
        offered = share(mine, rank, ring, shape=(_NEWEST, 2), dtype=torch.int64, session=session)
        known.append({(step, run) for step, run in reveal(offered).tolist() if step >= 0})
    common = set.intersection(*known)
    return max(common) if common else None


def load_shares(
    folder: str | Path, session: Session, step: int, run: int, settings: Mapping[str, Any] = NO_SETTINGS
) -> dict[str, torch.Tensor]:
    """What ``save_shares`` wrote at ``step``, as secrets of ``session``; the others load theirs.

    Raises CorruptFile for a broken file, ConfigError for one of another engine or run, or with other settings, which
    it names.
    """
    parts = []
    for rank in _ranks(session):
        path = _folder(folder, rank) / f"step-{step:09d}.safetensors"
        about = _metadata(path)
        expected = {"engine": session.engine.name, "run": run, "step": step, "rank": rank}
        _refuse_others(path, expected, {key: about[key] for key in expected})
        _refuse_others(path, json.loads(json.dumps(dict(settings))), about["settings"])
        parts.append((path, about["tensors"]))
    try:
        tensors = _tensors(session, [safe_open(path, "pt") for path, _ in parts], [about for _, about in parts])
    except _NO_SHARES as error:
        raise CorruptFile(f"{parts[0][0].parent.parent}: the shares of step {step} are damaged: {error}") from None
    secret = {name: value for name, value in sorted(tensors.items()) if isinstance(value, SecretTensor)}
    session.step("load shares", step, run, [(name, tuple(x.shape), repr(x.format)) for name, x in secret.items()])
    session.name(list(secret.values()))
    return tensors


def _refuse_others(path: Path, mine: Mapping[str, Any], written: Mapping[str, Any]) -> None:
    """ConfigError for what is different, or only on one side."""
    names = [name for name in (*mine, *(written.keys() - mine)) if mine.get(name) != written.get(name)]
    if names:
        differing = "; ".join(f"{name}={written.get(name)}, now {mine.get(name)}" for name in names)
        raise ConfigError(f"{path} was saved with {differing}: set it as before, or start a new run")


def _tensors(session: Session, files: Sequence[Any], notes: Sequence[Mapping[str, Any]]) -> dict[str, torch.Tensor]:
    """What the parties' files hold; one of ``_NO_SHARES`` where that is no tensor of the session."""
    result: dict[str, torch.Tensor] = {}
    if any(dict(about) != dict(notes[0]) for about in notes):
        raise ValueError("the parties' files hold different tensors")
    for name, about in notes[0].items():
        if about is None:
            result[name] = files[0].get_tensor(f"{name}|0")
            continue
        fmt, owner = dict(about["format"]), about["owner"]
        number = FORMATS[fmt.pop("type")](**fmt)
        dtype = DTYPES[about["dtype"]]
        count = session.engine.components if len(files) == 1 else session.engine.components // len(files)
        if about["components"] not in range(1, count + 1):
            raise ValueError(f"{name!r} has {about['components']!r} components")
        if owner is not None and (type(owner) is not int or owner not in range(session.parties)):
            raise ValueError(f"{name!r} belongs to party {owner!r}")
        components = tuple(file.get_tensor(f"{name}|{i}") for file in files for i in range(about["components"]))
        wanted = torch.uint8 if isinstance(number, Boolean) else torch.int64
        if any(c.dtype != wanted or c.shape != components[0].shape for c in components):
            raise ValueError(f"the components of {name!r} do not belong together")
        placement = SHARED if owner is None else Owned(owner)
        result[name] = SecretTensor(components, number, placement, session, dtype)
    return result


def _ranks(session: Session) -> Sequence[int]:
    """The parties whose files this process has."""
    return _writers(session) if session.rank is None else (session.rank,)


def _writers(session: Session) -> range:
    """The parties that have files: one where a single component is the value (plain)."""
    alone = session.rank is None and session.engine.components < session.parties
    return range(1 if alone else session.parties)


def _folder(folder: str | Path, rank: int) -> Path:
    return Path(folder) / f"party-{rank}"


def _files(place: Path) -> list[tuple[int, Path]]:
    """Steps and files, oldest first."""
    found = [(_FILE.match(path.name), path) for path in place.iterdir()] if place.is_dir() else []
    return sorted((int(match[1]), path) for match, path in found if match)


def _encoded(
    session: Session, rank: int, step: int, run: int, tensors: Mapping[str, torch.Tensor], settings: Mapping[str, Any]
) -> bytes:
    engine, stored, about = session.engine, {}, {}
    width = engine.components if session.rank is not None else engine.components // len(_writers(session))
    first = 0 if session.rank is not None else rank * width
    for name, tensor in tensors.items():
        if not isinstance(tensor, SecretTensor):
            stored[f"{name}|0"], about[name] = tensor.detach().contiguous(), None
            continue
        mine = tensor.share[first : first + width]
        for i, component in enumerate(mine):
            stored[f"{name}|{i}"] = component.detach().cpu().clone(memory_format=torch.contiguous_format)
        fmt = tensor.format
        about[name] = {
            "components": len(mine),
            "format": {"type": type(fmt).__name__, **asdict(fmt)},
            "owner": getattr(tensor.placement, "party", None),
            "dtype": str(tensor.dtype).removeprefix("torch."),
        }
    notes = {"engine": engine.name, "run": run, "step": step, "rank": rank, "settings": dict(settings)}
    notes["tensors"] = about
    return save(stored, {"privml_shares": _VERSION, "about": json.dumps(notes)})


def _metadata(path: Path) -> dict[str, Any]:
    try:
        with safe_open(path, "pt") as file:
            notes = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise CorruptFile(f"{path}: not a safetensors file, or a truncated one: {error}") from None
    if notes.get("privml_shares") != _VERSION:
        raise CorruptFile(f"{path} holds no shares of this release of privml")
    try:
        about = json.loads(notes["about"])
        numbers = [about[name] for name in ("run", "step", "rank")]
        whole = all(type(number) is int and 0 <= number < 2**62 for number in numbers)
        named = all(isinstance(about[name], dict) for name in ("tensors", "settings"))
        if not whole or not named or "engine" not in about:
            raise ValueError("its header is incomplete")
    except _NO_SHARES as error:
        raise CorruptFile(f"{path} holds no shares of this release of privml: {error}") from None
    return about


def _meet(session: Session) -> None:
    """Returns when every party has come here."""
    for rank in range(session.parties):
        mine = torch.zeros(1, dtype=torch.int64) if session.rank in (None, rank) else None
        reveal(share(mine, rank, Integer(session.working.bits), shape=(1,), dtype=torch.int64, session=session))
