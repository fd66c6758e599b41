# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/models.py [--size small] [--families bert,gpt2] [--engines plain,threepc,twopc] [--page FILE]``

Models as their packages make them: how long they take to convert, how far the answers are from the clear model's, and
what a query of one input costs between processes on this machine. ``--size small``: families of ``transformers`` with
random weights, two layers and small widths, those of the tests; ``full``: BERT-base with 128 tokens, GPT-2 with 64,
ResNet-50 and ViT-base with images of 224 x 224; ``generation``: a step of greedy decoding of a small GPT-2;
``packages``: pretrained ONNX models of rapidocr-onnxruntime and brainmaze-eeg-models. One JSON line per family,
appended to ``--out``; ``--page`` writes the table of all lines there. ``--engines`` may be empty: conversion alone. A
refusal is a line too, with its message.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "models_from_outside")]

from families import FAMILIES, Inputs, built, clear  # noqa: E402

import privml  # noqa: E402
from privml.errors import PrivmlError  # noqa: E402
from privml.measure.launch import launch  # noqa: E402
from privml.measure.machine import machine, revision  # noqa: E402
from privml.measure.records import PHASES  # noqa: E402

MARK = "<!-- made by benchmarks/models.py; change nothing below -->"


def bert_base() -> tuple[torch.nn.Module, Inputs]:
    model = transformers.BertForSequenceClassification(transformers.BertConfig())
    return model, {"input_ids": torch.randint(1000, 30000, (2, 128))}


def gpt2_small() -> tuple[torch.nn.Module, Inputs]:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config()), {"input_ids": torch.randint(0, 50000, (2, 64))}


def resnet50() -> tuple[torch.nn.Module, Inputs]:
    return transformers.ResNetForImageClassification(transformers.ResNetConfig()), {
        "pixel_values": torch.rand(2, 3, 224, 224)
    }


def vit_base() -> tuple[torch.nn.Module, Inputs]:
    return transformers.ViTForImageClassification(transformers.ViTConfig()), {
        "pixel_values": torch.rand(2, 3, 224, 224)
    }


def gpt2_step() -> tuple[torch.nn.Module, Inputs]:
    return FAMILIES["gpt2"]()


def text_orientation() -> tuple[str, Inputs]:
    """Printed lines, every other one upside down."""
    from test_packages import file_of, lines

    return str(file_of("rapidocr_onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx")), {"x": lines()[0]}


def text_recognition() -> tuple[str, Inputs]:
    """Printed lines."""
    from test_packages import file_of, lines

    return str(file_of("rapidocr_onnxruntime", "ch_PP-OCRv4_rec_infer.onnx")), {"x": lines(turned=False)[0]}


def seizures() -> tuple[str, Inputs]:
    """Made-up recordings of three seconds."""
    from test_packages import file_of, recordings

    return str(file_of("brainmaze_eeg_models", "modelA_paper.onnx")), {"x": recordings()}


def _named(*makers: Callable[[], tuple[Any, Inputs]]) -> dict[str, Callable[[], tuple[Any, Inputs]]]:
    return {maker.__name__: maker for maker in makers}


SIZES: dict[str, dict[str, Callable[[], tuple[Any, Inputs]]]] = {
    "small": FAMILIES,
    "generation": _named(gpt2_step),
    "full": _named(bert_base, gpt2_small, resnet50, vit_base),
    "packages": _named(text_orientation, text_recognition, seizures),
}
# Ids that a step of decoding has room for.
TEXT = 16


def measured(name: str, size: str, engines: list[str], token_ids: str, ot: str) -> dict[str, Any]:
    """The record of one family; ``ot``: what engine ``twopc`` makes its correlations by."""
    model, inputs = _model(name, size)
    record: dict[str, Any] = {
        "family": name, "size": size, "token_ids": token_ids, "machine": machine(), "revision": revision(),
        "shapes": {key: list(value.shape[1:]) for key, value in inputs.items()},
    }  # fmt: skip
    files = isinstance(model, str)
    calibration = next(iter(inputs.values())) if files else inputs
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", UserWarning)
            generate = {"generate": TEXT} if size == "generation" else {}
            program = privml.convert(model, calibration=calibration, token_ids=token_ids, **generate)
    except PrivmlError as error:
        return {**record, "refused": _refusal(error)}
    record["convert"] = {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    record["notes"] = [str(each.message) for each in warned if each.category is UserWarning]
    record["numerics"] = {"bits": program.numerics.bits, "scale": program.numerics.scale}
    record["judged"] = {"error": program.choice.error, **dict(program.choice.elsewhere)}
    one = {key: value[:1] for key, value in inputs.items()}
    expected = _clear(model, one, size)
    for engine in engines:
        record[engine] = _asked(program, list(one.values()), expected, engine, ot)
    return record


def _model(name: str, size: str) -> tuple[Any, Inputs]:
    """Model, or the path of its file, and inputs."""
    if size == "packages":
        return SIZES[size][name]()
    FAMILIES.setdefault(name, SIZES[size][name])
    return built(name)


def _clear(model: Any, inputs: Inputs, size: str) -> torch.Tensor:
    if isinstance(model, str):
        from test_packages import clear as clear_of_file

        return clear_of_file(model, next(iter(inputs.values())))
    found = clear(model, inputs)
    return found[:, -1].argmax(-1) if size == "generation" else found


def _refusal(error: PrivmlError) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def _asked(program: Any, values: list[torch.Tensor], expected: torch.Tensor, engine: str, ot: str) -> dict[str, Any]:
    settings = {"ot": ot} if engine == "twopc" else {}
    spec = privml.SessionSpec.of(engine=engine, **settings)
    try:
        if not spec.backend.remote:
            with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale) as session:
                results, cost = program.run(session, *values), {}
                found = privml.reveal(results[0] if isinstance(results, (list, tuple)) else results)
        else:
            run = launch(program, values, spec)
            predicted = program.cost([tuple(v.shape) for v in values], spec).snapshot().total.bytes
            phases = [run.client.ledger["total"][phase] for phase in PHASES]
            spent = sum(phase["sent"] + phase["received"] for phase in phases)
            found = run.outputs[0]
            cost = {
                **settings,
                "seconds": run.client.seconds,
                "bytes": spent,
                "as_predicted": spent == predicted,
                "peak_rss_bytes": [report.peak_rss_bytes for report in run.reports],
            }
    except PrivmlError as error:
        return {"refused": _refusal(error)}
    if not expected.dtype.is_floating_point:
        return {"error": float((found.flatten() != expected.flatten()).double().mean()), **cost}
    return {"error": float((found - expected).abs().max() / expected.abs().max()), **cost}


def table(records: list[dict[str, Any]]) -> str:
    """The newest record of every family and size as Markdown, and the messages of refusals below."""
    newest = {(each["family"], each["size"], each["token_ids"]): each for each in records}
    rows = [
        "| family | size | ids | converts in (CPU) | " + " | ".join(f"{e}: {w}" for e, w in _COLUMNS) + " |",
        "| --- |" + " --- |" * (3 + len(_COLUMNS)),
    ]
    refusals = []
    for (family, size, ids), each in sorted(newest.items()):
        converted = _refused(each) if "refused" in each else f"{each['convert']['cpu_seconds']:.1f} s"
        found = {"": each, **{f" on {engine}": each.get(engine) or {} for engine, _ in _COLUMNS}}
        refusals += [f"- {family}, {size}{on}: {it['refused']}" for on, it in found.items() if "refused" in it]
        cells = [family, size, ids if "input_ids" in each["shapes"] else "", converted]
        rows.append(f"| {' | '.join([*cells, *(_cell(each.get(e), w) for e, w in _COLUMNS)])} |")
    return "\n".join([*rows, *(["", "Refused:", "", *refusals] if refusals else [])])


def _refused(found: dict[str, Any]) -> str:
    return f"refused ({found['refused'].partition(':')[0]})"


_COLUMNS = (("plain", "error"), ("threepc", "error, time, bytes"), ("twopc", "error, time, bytes"))


def _cell(found: dict[str, Any] | None, what: str) -> str:
    if found is None:
        return "not measured"
    if "refused" in found:
        return _refused(found)
    if what == "error":
        return f"{found['error']:.2%}"
    as_told = "" if found["as_predicted"] else " (other than predicted)"
    made = ", silent OT" if found.get("ot") == "silent" else ""
    return f"{found['error']:.2%}, {found['seconds']:.1f} s, {found['bytes'] / 1e6:.1f} MB{made}{as_told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default="")
    parser.add_argument("--size", choices=list(SIZES), default="small")
    parser.add_argument("--engines", default="plain,threepc,twopc")
    parser.add_argument("--token-ids", default="secret")
    parser.add_argument("--ot", choices=["softspoken", "silent"], default="softspoken")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "results" / "models.jsonl")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    names = [name for name in given.families.split(",") if name]
    if not names and given.page is None:
        names = list(SIZES[given.size])
    for name in names:
        record = measured(name, given.size, [e for e in given.engines.split(",") if e], given.token_ids, given.ot)
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with given.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(json.dumps({key: value for key, value in record.items() if key != "machine"}), flush=True)
    if given.page is not None:
        records = [json.loads(line) for line in given.out.read_text().splitlines()]
        before = given.page.read_text().partition(MARK)[0]
        given.page.write_text(f"{before}{MARK}\n\n{table(records)}\n")


if __name__ == "__main__":
    main()
