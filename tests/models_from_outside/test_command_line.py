# SPDX-License-Identifier: Apache-2.0
"""A model of ``transformers`` on the command line: inputs by name, in archives and file by file, and what is wrong with
some."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")
sys.path.append(str(Path(__file__).parents[1] / "process"))
from commands import run as privml
from families import bert_embeddings, clear

MODEL = f"""
import sys
sys.path.append({str(Path(__file__).parent)!r})
from families import bert_embeddings
import torch


def trained():
    torch.manual_seed(0)
    return bert_embeddings()[0].eval()
"""
CONVERTED = ["model.torch=bert.py:trained", "calibration=texts.npz", "engine=plain"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("bert")
    (made / "bert.py").write_text(MODEL)
    _, inputs = bert_embeddings()
    np.savez(made / "texts.npz", **{name: value.numpy() for name, value in inputs.items()})
    np.savez(made / "two.npz", **{name: value[:2].numpy() for name, value in inputs.items()})
    for name, value in inputs.items():
        np.save(made / f"{name}.npy", value[:2].numpy())
    np.save(made / "real.npy", inputs["input_ids"][:2].float().numpy() + 0.5)
    return made


def test_inputs_by_name(folder):
    torch.manual_seed(0)
    model, inputs = bert_embeddings()
    expected = clear(model.eval(), {name: value[:2] for name, value in inputs.items()})
    given = {"archive": ["input=two.npz"], "files": [f"input.{name}={name}.npy" for name in inputs]}
    for form, words in given.items():
        privml("run", *CONVERTED, *words, f"out={form}.npy", "quiet=true", cwd=folder)
        found = torch.from_numpy(np.load(folder / f"{form}.npy"))
        assert (found - expected).abs().max() <= 0.02 * expected.abs().max()
    assert np.array_equal(np.load(folder / "archive.npy"), np.load(folder / "files.npy"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["input.input_ids=input_ids.npy"], "without attention_mask"),
        (["input.input_ids=input_ids.npy", "input.mask=attention_mask.npy"], "with mask"),
        (["input.input_ids=real.npy", "input.attention_mask=attention_mask.npy"], "input_ids"),
    ],
)
def test_wrong_inputs_are_one_clear_line(folder, words, said):
    done = privml("run", *CONVERTED, *words, "quiet=true", cwd=folder, check=False)
    assert done.returncode != 0 and said in done.stderr and len(done.stderr.strip().splitlines()) == 1


def test_names_of_inputs_are_compared_before_the_model_is_converted(folder):
    # A model that such examples cannot convert.
    (folder / "linear.py").write_text("import torch\n\n\ndef trained():\n    return torch.nn.Linear(3, 1)\n")
    words = ["model.torch=linear.py:trained", *CONVERTED[1:], "input.input_ids=input_ids.npy"]
    done = privml("run", *words, "quiet=true", cwd=folder, check=False)
    assert done.returncode != 0 and "without attention_mask: the calibration has" in done.stderr
