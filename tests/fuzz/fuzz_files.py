# SPDX-License-Identifier: Apache-2.0
"""Files: programs, weights, stores, checkpoints, certificates and keys, calibrations, arrays."""

from __future__ import annotations

import base64
import contextlib
import functools
import io
import json
import os
import random
from pathlib import Path

import numpy as np
import torch
from fuzz_peers import program, store
from fuzz_targets import Target, kept, workplace
from mutation import dump, mutate_bytes, mutate_json, mutate_safetensors
from safetensors.torch import load, save

import privml
from privml.checkpoint import load_shares, newest_common, save_shares
from privml.cli.arrays import read_array
from privml.graph.body import digest
from privml.graph.file import _digest as digest_of_weights
from privml.measure.calibration import Calibration
from privml.program import Program
from privml.service.certificates import describe, issue, make_authority
from privml.session.identity import Tls
from privml.store.store import Store


@functools.cache
def place() -> Path:
    return workplace("files")


def written(name: str, data: bytes) -> Path:
    path = place() / name
    path.write_bytes(data)
    return path


# ---- programs
def read_program(data: bytes) -> None:
    loaded = Program.load(written("program", data))
    for spec in (*loaded.inputs, *loaded.outputs, *loaded.weight_specs):
        assert isinstance(spec.shape, tuple) and 1 <= spec.format.bits <= 64 if hasattr(spec.format, "bits") else True
    assert len(loaded.hash) == len(loaded.formats_hash) == 64
    str(loaded), loaded.layers, loaded.labels, loaded.calibrated_layers


def programs() -> list[bytes]:
    return [program().save(place() / "saved")[0].read_bytes(), written_floats().read_bytes()]


@functools.cache
def written_floats() -> Path:
    """A program of floats with labels, so that these are changed too."""
    torch.manual_seed(2)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Sigmoid()).eval()
    made = privml.convert(net, calibration=torch.randn(8, 3), numerics={"floating": "float32"})
    body = {**made.body, "labels": [["no", "yes"]]}
    return Program(body, made.weights).save(place() / "floats")[0]


def mutate_program(source: random.Random, data: bytes) -> bytes:
    """Changes of the body under a hash that fits."""
    try:
        content = json.loads(data)
        content["body"] = mutate_json(source, content["body"])
        content["sha256"] = digest(content["body"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return mutate_bytes(source, data)
    return dump(content)


# ---- weights
def read_weights(data: bytes) -> None:
    loaded = Program(program().body).load_weights(written("weights", data))
    assert {name: tuple(w.shape) for name, w in loaded.weights.items()} == {
        spec.name: spec.shape for spec in loaded.weight_specs
    }


def weights() -> list[bytes]:
    return [program().save(place() / "saved")[1].read_bytes()]


def mutate_weights(source: random.Random, data: bytes) -> bytes:
    """Changes of header and elements, half of the time under a hash that fits."""
    changed = mutate_safetensors(source, data)
    if source.random() < 0.5:
        with contextlib.suppress(Exception):
            tensors = load(changed)
            about = {"privml": "weights", "version": "1", "program": program().hash}
            return save(tensors, {**about, "sha256": digest_of_weights(tensors)})
    return changed


# ---- stores: which file (1), then its contents
STORE_FILES = ("header", "index", "chunks/0-00000000", "../key")


def open_store(data: bytes) -> None:
    folder = store("files").store.folder
    with kept(folder) as copy:
        (copy / "lock").unlink()
        key = copy.parent / "key"
        key.write_bytes((folder.parent / "key").read_bytes())
        key.chmod(0o600)
        name = STORE_FILES[data[0] % len(STORE_FILES)] if data else STORE_FILES[0]
        (copy / name).resolve().write_bytes(data[1:])
        with Store(copy, key) as opened:
            assert opened.queries_left <= 3 and max(opened.left()) <= 600
            for chunk in opened.take((200, 100), opened.position):
                opened.seal.open(chunk.sealed, chunk.context)
            str(opened)


def store_files() -> list[bytes]:
    folder = store("files").store.folder
    contents = [(folder / name).resolve().read_bytes() for name in STORE_FILES[:3]]
    return [bytes([i]) + content for i, content in enumerate([*contents, (folder.parent / "key").read_bytes()])]


def mutate_store(source: random.Random, data: bytes) -> bytes:
    """Changes of the header's JSON under a length that fits."""
    start = data.find(b"{")
    if data[:1] != b"\0" or start < 0 or source.random() < 0.2:
        return data[:1] + mutate_bytes(source, data[1:])
    end = start + int.from_bytes(data[start - 4 : start], "little")
    try:
        text = dump(mutate_json(source, json.loads(data[start:end])))
    except (ValueError, RecursionError):
        return data[:1] + mutate_bytes(source, data[1:])
    return data[: start - 4] + len(text).to_bytes(4, "little") + text + data[end:]


# ---- checkpoints
RUN, STEP = 12345, 7


@functools.cache
def checkpoint() -> Path:
    folder = place() / "checkpoint"
    with privml.local("plain") as session:
        x = privml.share(torch.tensor([[1.5, -2.25], [0.5, 3.0]]), owner=1)
        tensors = {
            "owned": x,
            "bits": x > 0,
            "whole": privml.share(torch.tensor([3]), owner=0),
            "public": torch.ones(1),
        }
        save_shares(folder, session, STEP, RUN, tensors, {"seed": 3})
    return folder


def resume(data: bytes) -> None:
    with kept(checkpoint()) as copy, privml.local("plain") as session:
        (copy / "party-0" / f"step-{STEP:09d}.safetensors").write_bytes(data)
        newest = newest_common(copy, session)
        assert newest is None or len(newest) == 2
        for tensor in load_shares(copy, session, STEP, RUN, {"seed": 3}).values():
            if isinstance(tensor, privml.SecretTensor):
                privml.reveal(tensor)


def checkpoints() -> list[bytes]:
    return [(checkpoint() / "party-0" / f"step-{STEP:09d}.safetensors").read_bytes()]


# ---- certificates: what it is used as (1), then the file
@functools.cache
def authority() -> Path:
    folder = place() / "authority"
    make_authority(folder)
    issue(folder, "alice")
    return folder


CERTIFICATE_FILES = ("authority.pem", "authority.key", "alice.pem", "alice.key", "alice.pem")


def use_certificate(data: bytes) -> None:
    which = data[0] % 5 if data else 0
    with kept(authority()) as copy:
        (copy / CERTIFICATE_FILES[which]).write_bytes(data[1:])
        if which == 4:
            assert set(describe(copy / "alice.pem")) >= {"names", "valid until"}
        elif which < 2:
            issue(copy, "bob")
        Tls(copy / "authority.pem", copy / "alice.pem", copy / "alice.key").identity(0)


def certificate_files() -> list[bytes]:
    files = [(authority() / name).read_bytes() for name in CERTIFICATE_FILES]
    return [bytes([i]) + content for i, content in enumerate(files)]


def mutate_certificate(source: random.Random, data: bytes) -> bytes:
    """Changes of the bytes that the text stands for."""
    lines = data[1:].split(b"\n")
    if source.random() < 0.3 or len(lines) < 4:
        return data[:1] + mutate_bytes(source, data[1:])
    with contextlib.suppress(ValueError):
        binary = mutate_bytes(source, base64.b64decode(b"".join(lines[1:-2]), validate=True))
        return b"\n".join([data[:1] + lines[0], base64.b64encode(binary), lines[-2], b""])
    return data[:1] + mutate_bytes(source, data[1:])


# ---- calibrations
def read_calibration(data: bytes) -> None:
    before = os.environ.get("PRIVML_CACHE")
    os.environ["PRIVML_CACHE"] = str(place())
    try:
        path = Calibration.load(fresh=True).path
        path.write_bytes(data)
        seconds = Calibration.load().seconds
    finally:
        os.environ.pop("PRIVML_CACHE") if before is None else os.environ.update(PRIVML_CACHE=before)
    assert all(0 <= value < 1e9 for value in seconds.values()) and all(isinstance(name, str) for name in seconds)


def calibrations() -> list[bytes]:
    return [json.dumps({"machine": {}, "seconds": {"twopc/setup/softspoken": 0.25, "twopc/handshake": 1}}).encode()]


def mutate_text(source: random.Random, data: bytes) -> bytes:
    with contextlib.suppress(ValueError, RecursionError):
        return dump(mutate_json(source, json.loads(data)))
    return mutate_bytes(source, data)


# ---- arrays
def read_numbers(data: bytes) -> None:
    array = read_array(written("array.npy", data))
    assert array.numel() <= len(data)


def arrays() -> list[bytes]:
    found = []
    for array in (np.ones((2, 3), np.float32), np.arange(4), np.array([1, 2], ">i2"), np.array([None, 1])):
        file = io.BytesIO()
        np.save(file, array, allow_pickle=True)
        found.append(file.getvalue())
    archive = io.BytesIO()
    np.savez_compressed(archive, x=np.zeros(100_000))
    return [*found, archive.getvalue()]


def mutate_array(source: random.Random, data: bytes) -> bytes:
    """Numbers in the header's text."""
    if data[:6] == b"\x93NUMPY" and source.random() < 0.6:
        number = source.choice(
            (b"(%d,)" % 2**40, b"(%d, %d)" % (2**31, 2**31), b"(-1,)", b"(9999999999,)", b"((((1", b"()")
        )
        start, end = data.find(b"("), data.find(b")")
        if 0 < start < end < len(data):
            header = (data[10:start] + number + data[end + 1 : 10 + int.from_bytes(data[8:10], "little")]).rstrip()
            header += b" " * (-(11 + len(header)) % 64) + b"\n"
            rest = data[10 + int.from_bytes(data[8:10], "little") :]
            return data[:8] + len(header).to_bytes(2, "little") + header + rest
    return mutate_bytes(source, data)


TARGETS = (
    Target("program", programs, read_program, mutate_program),
    Target("weights", weights, read_weights, mutate_weights),
    Target("store", store_files, open_store, mutate_store),
    Target("checkpoint", checkpoints, resume, functools.partial(mutate_safetensors, nested="about")),
    Target("certificates", certificate_files, use_certificate, mutate_certificate),
    Target("calibration", calibrations, read_calibration, mutate_text),
    Target("arrays", arrays, read_numbers, mutate_array),
)
