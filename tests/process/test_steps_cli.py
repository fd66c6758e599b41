# SPDX-License-Identifier: Apache-2.0
"""Programs with state on the command line: converted, served, and asked for several steps."""

import json
from pathlib import Path

import numpy as np
import pytest
import recurrent_network as network
import torch
from commands import Command
from commands import run as privml

from privml.cli.query import steps_of
from privml.errors import InvalidInput

TESTS = Path(network.__file__).parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("steps")
    (made / "mine.py").write_text(
        f"import sys; sys.path.insert(0, {str(TESTS)!r})\nfrom recurrent_network import network as trained\n"
    )
    np.save(made / "x.npy", torch.cat(network.steps(20)).numpy())
    np.save(made / "h.npy", np.zeros((40, 5), np.float32))
    files = ["calibration.x=x.npy", "calibration.h=h.npy"]
    done = privml("convert", "model.torch=mine.py:trained", *files, "state={h: [h, 1]}", "out=mine", cwd=made)
    assert done.returncode == 0, done.stderr
    return made


def test_a_query_of_several_steps(folder):
    inputs = network.steps(3)
    np.save(folder / "steps.npy", torch.stack(inputs).numpy())
    served = ["program=mine/program", "weights=mine/weights.safetensors", "listen=127.0.0.1:0", "queries=3"]
    with Command("serve", *served, cwd=folder) as server:
        port = server.stdout.readline().split("port ")[1].split(",")[0]
        place = [f"server=127.0.0.1:{port}", "input=steps.npy", "out=y.npy", "ledger=ledger.json"]
        done = privml("query", "program=mine/program", *place, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert server.wait() == 0
    answers = torch.from_numpy(np.load(folder / "y.npy"))
    assert answers.shape == (3, 2, 2)
    for answer, expected in zip(answers, network.clear(inputs), strict=True):
        assert (answer - expected).abs().max() < 0.03
    assert len(json.loads((folder / "ledger.json").read_text())) == 3 and "step 3" in done.stdout


LANGUAGE = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel


def trained():
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=20, n_embd=16, n_layer=1, n_head=2, n_positions=16, initializer_range=0.5)
    return GPT2LMHeadModel(config).eval()
"""


def test_a_language_model_goes_on(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "language.py").write_text(LANGUAGE)
    namespace = {}
    exec(LANGUAGE, namespace)
    prompt = torch.tensor([4, 7, 1])
    expected = namespace["trained"]().generate(
        prompt[None], max_new_tokens=3, do_sample=False, pad_token_id=0, eos_token_id=None
    )
    np.save(tmp_path / "ids.npy", torch.randint(0, 20, (8, 6), generator=torch.Generator().manual_seed(0)).numpy())
    np.save(tmp_path / "prompt.npy", prompt.numpy())
    words = ["model.torch=language.py:trained", "calibration=ids.npy", "generate=12", "token_ids=client"]
    privml("convert", *words, "out=gpt", cwd=tmp_path)
    told = privml("cost", "program=gpt/program", "batch=3", "engine=threepc", "calibrate=none", cwd=tmp_path).stdout
    assert "one more step of 1, after 3" in told
    refused = privml("cost", "program=gpt/program", "length=12", "engine=threepc", cwd=tmp_path, check=False)
    assert refused.returncode == 1 and "holds 12" in refused.stderr
    served = ["program=gpt/program", "weights=gpt/weights.safetensors", "listen=127.0.0.1:0", "queries=3"]
    with Command("serve", *served, cwd=tmp_path) as server:
        port = server.stdout.readline().split("port ")[1].split(",")[0]
        place = [f"server=127.0.0.1:{port}", "input=prompt.npy", "generate=3", "out=ids.npy"]
        privml("query", "program=gpt/program", *place, cwd=tmp_path)
        assert server.wait() == 0
    assert np.load(tmp_path / "ids.npy").flatten().tolist() == expected[0, 3:].tolist()


def test_what_is_one_step_and_what_are_several():
    program = network.converted()
    assert steps_of(program, torch.zeros(2, 4))[1] is False
    steps, several = steps_of(program, {"x": torch.zeros(3, 2, 4)})
    assert several and [[tuple(x.shape) for x in step] for step in steps] == [[(2, 4)]] * 3
    with pytest.raises(InvalidInput):
        steps_of(program, torch.zeros(0, 2, 4))
