# SPDX-License-Identifier: Apache-2.0
"""A program through files and back: LeNet's, altered, forged, and with the weights of another one."""

import json
import re

import pytest
import torch
from lenet_program import scores, session_for
from safetensors.torch import load_file, save_file

import privml
from privml.errors import ConfigError, CorruptFile, UnsupportedOperator
from privml.graph.body import digest


def test_saved_and_loaded_programs_are_the_same(program, lenet, saved):
    loaded = privml.load(saved / "program", saved / "weights.safetensors")
    assert (loaded.hash, loaded.formats_hash) == (program.hash, program.formats_hash)
    assert re.fullmatch("[0-9a-f]{64}", loaded.hash)
    assert loaded.inputs == program.inputs and loaded.outputs == program.outputs
    assert loaded.layers == program.layers and loaded.numerics == program.numerics
    x = lenet.preprocess(lenet.samples[:20])
    assert torch.equal(scores(loaded, x), scores(program, x))
    assert (saved / "weights.safetensors").stat().st_mode & 0o077 == 0


def test_equal_programs_give_equal_files(program, tmp_path):
    files = set()
    for number in range(8):
        (tmp_path / str(number)).mkdir()
        files.add(tuple(path.read_bytes() for path in program.save(tmp_path / str(number))))
    assert len(files) == 1


def test_the_program_file_holds_no_weights(program, saved):
    assert (saved / "program").stat().st_size < 20_000
    client = privml.load(saved / "program")
    assert client.weights is None and client.hash == program.hash
    with session_for(client) as session, pytest.raises(ConfigError, match=r"weights\.safetensors"):
        client.run(session, torch.zeros(1, 1, 28, 28))


def test_conversion_is_deterministic(program, lenet):
    again = privml.convert(lenet.module, lenet.example, calibration=lenet.preprocess(lenet.calibration))
    assert again.hash == program.hash


@pytest.mark.parametrize("position", [0.0, 0.3, 0.7, 0.999])
def test_altered_and_truncated_programs(saved, position):
    path = saved / "program"
    content = path.read_bytes()
    place = int(len(content) * position)
    while not chr(content[place]).isalnum():
        place -= 1
    path.write_bytes(content[:place] + (b"7" if content[place] != 55 else b"3") + content[place + 1 :])
    with pytest.raises(CorruptFile):
        privml.load(path)
    path.write_bytes(content[: place + 1])
    with pytest.raises(CorruptFile):
        privml.load(path)


def test_files_of_other_kinds(saved):
    path = saved / "program"
    text = path.read_text()
    for content in (
        "",
        "[]",
        "{}",
        '{"privml": "program"}',
        "[" * 100_000,
        text.replace('"version": 1', '"version": 2'),
    ):
        path.write_text(content)
        with pytest.raises(CorruptFile):
            privml.load(path)
    with pytest.raises(CorruptFile, match="has written$"):
        privml.load(saved / "weights.safetensors")
    with pytest.raises(FileNotFoundError):
        privml.load(saved / "nothing")


def forged(saved, change):
    """The program changed by ``change(body)``, with a SHA-256 that fits."""
    path = saved / "program"
    content = json.loads(path.read_text())
    change(content["body"])
    content["sha256"] = digest(content["body"])
    path.write_text(json.dumps(content))
    return path


def call(body):
    return next(node for node in body["nodes"] if node["kind"] == "call" and node["secret"])


@pytest.mark.parametrize(
    "target", ["aten.set_.source_Tensor", "os.system", "builtins.eval", "aten.item.default", "aten.nothing.default"]
)
def test_only_listed_operators_are_loaded(saved, target):
    with pytest.raises(UnsupportedOperator, match=re.escape(target)):
        privml.load(forged(saved, lambda body: call(body).update(target=target)))


def test_forged_programs_are_refused(saved):
    original = (saved / "program").read_text()

    def fresh(change):
        (saved / "program").write_text(original)
        return forged(saved, change)

    changes = [
        lambda b: b.update(nodes=3),
        lambda b: b.update(outputs=[]),
        lambda b: b.update(outputs=["x.y"]),
        lambda b: b.update(more=1),
        lambda b: b["numerics"].update(bits=1000),
        lambda b: call(b).update(args=[{"node": "later"}]),
        lambda b: call(b).update(args=[{"dtype": "object"}]),
        lambda b: call(b).update(args=[{"a": 1, "b": 2}]),
        lambda b: call(b).update(name="x; import os"),
        lambda b: call(b).update(shape=[-1]),
        lambda b: call(b).update(secret=False),
        lambda b: call(b).update(format={"type": "FixedPoint", "bits": 99, "scale": 1}),
        lambda b: call(b).pop("format"),
        lambda b: b["nodes"].append(b["nodes"][0]),
        lambda b: b["nodes"][0].update(secret=False),
        lambda b: b["constants"].update(huge={"dtype": "float32", "shape": [2**40], "data": ""}),
    ]
    for index, change in enumerate(changes):
        with pytest.raises(CorruptFile):
            privml.load(fresh(change))
            pytest.fail(f"change {index} was accepted")


def test_weights_of_another_program(program, lenet, saved, tmp_path):
    other = privml.convert(
        lenet.module, calibration=lenet.preprocess(lenet.calibration), numerics={"scale": 9, "weight_bits": 9}
    )
    other.save(tmp_path / "other")
    with pytest.raises(ConfigError, match=f"belong to the program {other.hash[:12]}, this one is {program.hash[:12]}"):
        privml.load(saved / "program", tmp_path / "other" / "weights.safetensors")


def test_altered_and_truncated_weights(program, saved):
    path = saved / "weights.safetensors"
    content = path.read_bytes()

    def refused(data):
        path.write_bytes(data)
        with pytest.raises(CorruptFile):
            privml.load(saved / "program", path)

    refused(content[:-7])
    refused(content[:100])
    refused(b"")
    refused(content[:-3] + b"\x01\x02\x03")
    tensors = {name: tensor.clone() for name, tensor in program.weights.items()}
    save_file(tensors, path)
    with pytest.raises(CorruptFile, match="not weights that privml wrote"):
        privml.load(saved / "program", path)
    with pytest.raises(FileNotFoundError):
        privml.load(saved / "program", saved / "nothing.safetensors")


def test_weights_file_is_plain_safetensors(program, saved):
    found = load_file(saved / "weights.safetensors")
    assert found.keys() == program.weights.keys()
    assert all(torch.equal(found[name], program.weights[name]) for name in found)
