# SPDX-License-Identifier: Apache-2.0
"""The models whose weights other packages bring: what they read and say, and what happens without these packages."""

from types import SimpleNamespace

import pytest
import torch

import models
import privml
from models import characters, packages, recordings
from models.characters.lines import CALIBRATION, LINES, drawn
from models.recordings import signals
from privml.cli import main
from privml.measure import answers

NAMES = ("characters", "recordings")


def loaded(name):
    try:
        return models.load(name)
    except models.NotInstalled as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", NAMES)
def test_the_clear_model_answers_as_the_card_says(name):
    pytest.importorskip("onnxruntime")
    model = loaded(name)
    clear = answers.by_row(answers.clear_outputs(model.module, model.preprocess(model.samples)), model.rows)
    found = answers.compared(clear, clear, model.labels, model.answer)
    assert found.right == found.rows == len(model.samples) == 20
    card = models.card_of(name).read_text()
    assert "| Accuracy | 100.0% of 20 " in card and "| Secure accuracy | 100.0% of the same 20" in card


@pytest.mark.slow
def test_seizures_in_numbers_of_secure_inference():
    model = loaded("recordings")
    x = model.preprocess(model.samples)
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration))
    found = answers.by_row(answers.plain_outputs(program, x), model.rows)
    assert torch.equal(model.answer(found[0]), model.labels)
    with privml.local("threepc", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        scores = privml.reveal(program.run(session, x[:2])[0])
    assert torch.equal(model.answer(scores.movedim(model.rows, 0)), model.labels[:2])


@pytest.mark.slow
def test_text_in_numbers_of_secure_inference():
    model = loaded("characters")
    x = model.preprocess(model.samples)
    program = privml.convert(model.module, calibration=model.preprocess(model.calibration))
    found = answers.plain_outputs(program, x)
    assert torch.equal(model.answer(found[0]), model.labels)
    with privml.local("threepc", bits=program.numerics.bits, scale=program.numerics.scale) as session:
        scores = privml.reveal(program.run(session, x[:1]))
    assert torch.equal(model.answer(scores), model.labels[:1])


def test_repeated_characters_blanks_and_spaces_at_the_ends():
    columns = torch.tensor([[3, 1, 1, 0, 1, 2, 2, 3, 2, 0, 3, 3], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]])
    scores = torch.nn.functional.one_hot(columns, 4).float()
    read = characters.indices(scores)
    assert read.shape == (2, 12) and read[0].tolist() == [1, 1, 2, 3, 2, *[0] * 7] and not read[1].any()


def test_lines_are_drawn_for_the_model():
    pytest.importorskip("PIL")
    pictures = drawn(LINES)
    assert pictures.shape == (20, 48, 192) and pictures.dtype == torch.uint8 and not set(LINES) & set(CALIBRATION)
    dark = (pictures < 64).flatten(1).sum(1)
    assert (dark > 200).all() and (dark < 4000).all()
    x = characters.preprocess(pictures)
    assert x.shape == (20, 3, 48, 192) and float(x.min()) == -1 and float(x.max()) == 1


def test_discharges_are_added_to_every_other_window(monkeypatch):
    silence = torch.zeros(30 * signals.RATE)
    monkeypatch.setattr(signals, "recording", lambda path: silence)
    values, labels = signals.windows(signals.SAMPLES)
    assert values.shape == (20, 20 * signals.RATE) and labels.tolist() == [0, 1] * 5 + [1, 0] * 5
    assert not values[labels == 0].any() and (values[labels == 1].amax(1) > 9.8).all()
    assert not values[:, : 6 * signals.RATE].any() and not values[:, 14 * signals.RATE :].any()
    scores = torch.zeros(2, 5, 4)
    scores[:, :, 2], scores[1, 3, recordings.SEIZURE] = 1, 2
    assert recordings.seizure(scores).tolist() == [0, 1]


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(packages, "importlib", SimpleNamespace(util=SimpleNamespace(find_spec=lambda name: None)))


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_package_is_named(name, nothing_installed):
    with pytest.raises(models.NotInstalled, match="is part of the package .*: pip install "):
        models.load(name)


def test_the_zoo_is_evaluated_without_the_models_that_are_not_installed(
    nothing_installed, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(models, "names", lambda: ["characters", "diabetes", "recordings"])
    main(["evaluate", "zoo", "engine=plain", "count=3", "results=found.jsonl", "report=null", "calibrate=none"])
    said = " ".join(capsys.readouterr().err.split())
    assert "characters: ch_PP-OCRv4_rec_infer.onnx is part of the package rapidocr-onnxruntime: pip install" in said
    assert "recordings: modelA_paper.onnx is part of the package brainmaze-eeg-models: pip install" in said
    assert (tmp_path / "found.jsonl").read_text().count("\n") == 1
    with pytest.raises(SystemExit) as ended:
        main(["run", "model=characters", "engine=plain"])
    assert ended.value.code == 1 and "pip install rapidocr-onnxruntime" in " ".join(capsys.readouterr().err.split())


def test_rows_with_several_labels_are_right_where_all_are():
    found = (torch.tensor([[[5.0, 1.0], [0.0, 2.0]], [[5.0, 1.0], [3.0, 2.0]]]),)
    truth = torch.tensor([[0, 1], [0, 1]])
    counted = answers.compared(found, found, truth, lambda scores: scores.argmax(2))
    assert (counted.rows, counted.right, counted.same) == (2, 1, 2)
    read = answers.reader(1, lambda scores: scores.argmax(2))
    assert read((found[0].movedim(0, 1),)).tolist() == [[0, 1], [0, 0]]
