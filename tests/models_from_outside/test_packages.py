# SPDX-License-Identifier: Apache-2.0
"""Pretrained models as packages bring them: orientation and recognition of text, seizures in brain recordings."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import privml

TEXTS = ("Diagnosis", "Amount due", "Account 4711", "Confidential", "Signature", "Date of birth", "Insured", "Invoice")


def file_of(package, name):
    module = pytest.importorskip(package)
    return next(Path(module.__file__).parent.rglob(name))


def clear(path, x):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])


def answer(program, x, engine, **options):
    with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
        result = program.run(session, x)
        return privml.reveal(result[0] if isinstance(result, (list, tuple)) else result)


def lines(width=192, turned=True):
    """Printed lines [n, 3, 48, width] in [-1, 1], upright and, alternating, upside down; and which are."""
    image, draw, font = (pytest.importorskip(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    pictures = []
    for index, text in enumerate(TEXTS):
        picture = image.new("RGB", (width, 48), "white")
        draw.Draw(picture).text((6, 4), text, "black", font.load_default(30))
        pictures.append(np.asarray(picture.rotate(180) if turned and index % 2 else picture))
    x = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 127.5 - 1
    return x.contiguous(), torch.arange(len(TEXTS)) % 2


@pytest.mark.slow
def test_orientation_of_text():
    path = file_of("rapidocr_onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx")
    x, turned = lines()
    expected = clear(path, x)
    program = privml.convert(path, calibration=x)
    found = answer(program, x, "plain")
    assert program.choice.error <= 1 / 128 and (found - expected).abs().max() < 0.05
    assert torch.equal(found.argmax(1), expected.argmax(1)) and torch.equal(found.argmax(1), turned)


@pytest.mark.slow
def test_orientation_of_text_between_three_parties():
    path = file_of("rapidocr_onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx")
    x, turned = lines()
    program = privml.convert(path, calibration=x)
    assert torch.equal(answer(program, x[:2], "threepc").argmax(1), turned[:2])


@pytest.mark.slow
def test_recognition_of_text():
    path = file_of("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx")
    x, _ = lines(turned=False)
    expected = clear(path, x)
    program = privml.convert(path, calibration=x)
    assert program.choice.error <= 1 / 128
    assert (answer(program, x, "plain").argmax(2) == expected.argmax(2)).double().mean() > 0.98


def recordings():
    """Three seconds of noise, in every other row with three discharges a second, as the model takes them."""
    seizure = pytest.importorskip("brainmaze_eeg_models.seizure")
    random, times = np.random.RandomState(0), np.arange(200 * 3) / 200
    rhythm = 4 * np.maximum(np.sin(2 * np.pi * 3 * times), 0) ** 8 * (np.arange(8) % 2)[:, None]
    return torch.from_numpy(seizure.preprocess_input(random.randn(8, len(times)) + rhythm, 200)).float()


def test_seizures():
    path, x = file_of("brainmaze_eeg_models", "modelA_paper.onnx"), recordings()
    expected = clear(path, x)
    program = privml.convert(path, calibration=x)
    found = answer(program, x, "plain")
    assert program.choice.error <= 1 / 128 and (found - expected).abs().max() < 0.05 * expected.abs().max()
    assert torch.equal(answer(program, x[:1], "threepc", truncation="exact").argmax(2), found[:, :1].argmax(2))
