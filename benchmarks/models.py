# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/models.py [--families bert,gpt2] [--size small] [--engines plain,threepc,twopc] [--page FILE]``

Models of ``transformers``, unmodified and with random weights: how long they take to convert, how far the answers are
from the clear model's, and what a query of one input costs between processes on this machine. ``--size small``: two
layers and small widths, those of the tests; ``full``: BERT-base with 128 tokens, GPT-2 with 64, ResNet-50 and ViT-base
with images of 224 x 224. One JSON line per family, appended to ``--out``; ``--page`` writes the table of all lines
there. ``--engines`` may be empty: conversion alone. A refusal is a line too, with its message.
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


FULL: dict[str, Callable[[], tuple[torch.nn.Module, Inputs]]] = {
    each.__name__: each for each in (bert_base, gpt2_small, resnet50, vit_base)
}


def measured(name: str, size: str, engines: list[str], token_ids: str) -> dict[str, Any]:
    """The record of one family."""
    FAMILIES.update(FULL)
    model, inputs = built(name)
    record: dict[str, Any] = {
        "family": name, "size": size, "token_ids": token_ids, "machine": machine(), "revision": revision(),
        "shapes": {key: list(value.shape[1:]) for key, value in inputs.items()},
    }  # fmt: skip
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            program = privml.convert(model, calibration=inputs, token_ids=token_ids)
    except PrivmlError as error:
        return {**record, "refused": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    record["convert"] = {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    record["notes"] = [str(each.message) for each in told if each.category is UserWarning]
    record["numerics"] = {"bits": program.numerics.bits, "scale": program.numerics.scale}
    one = {key: value[:1] for key, value in inputs.items()}
    expected = clear(model, one)
    for engine in engines:
        record[engine] = _asked(program, one, expected, engine)
    return record


def _asked(program: Any, inputs: Inputs, expected: torch.Tensor, engine: str) -> dict[str, Any]:
    values = [inputs[spec.name] for spec in program.inputs]
    spec = privml.SessionSpec.of(engine=engine)
    try:
        if not spec.backend.remote:
            with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale) as session:
                found, cost = privml.reveal(program.run(session, *values)), {}
        else:
            run = launch(program, values, spec)
            predicted = program.cost([tuple(v.shape) for v in values], spec).snapshot().total.bytes
            phases = [each for each in run.client.ledger["total"].values() if isinstance(each, dict)]
            spent = sum(phase["sent"] + phase["received"] for phase in phases)
            found = run.outputs[0]
            cost = {
                "seconds": run.client.seconds,
                "bytes": spent,
                "as_predicted": spent == predicted,
                "peak_rss_bytes": [report.peak_rss_bytes for report in run.reports],
            }
    except PrivmlError as error:
        return {"refused": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
    return {"error": float((found - expected).abs().max() / expected.abs().max()), **cost}


def table(records: list[dict[str, Any]]) -> str:
    """The newest record of every family and size as Markdown."""
    newest = {(each["family"], each["size"], each["token_ids"]): each for each in records}
    rows = [
        "| family | size | ids | converts in (CPU) | " + " | ".join(f"{e}: {w}" for e, w in _COLUMNS) + " |",
        "| --- |" + " --- |" * (3 + len(_COLUMNS)),
    ]
    for (family, size, ids), each in sorted(newest.items()):
        converted = each.get("refused") or f"{each['convert']['cpu_seconds']:.1f} s"
        cells = [family, size, ids if "input_ids" in each["shapes"] else "", converted]
        rows.append(f"| {' | '.join([*cells, *(_cell(each.get(e), w) for e, w in _COLUMNS)])} |")
    return "\n".join(rows)


_COLUMNS = (("plain", "error"), ("threepc", "time, bytes"), ("twopc", "time, bytes"))


def _cell(found: dict[str, Any] | None, what: str) -> str:
    if found is None:
        return "not measured"
    if "refused" in found:
        return found["refused"]
    if what == "error":
        return f"{found['error']:.2%}"
    return f"{found['seconds']:.1f} s, {found['bytes'] / 1e6:.1f} MB" + ("" if found["as_predicted"] else " (other)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--families", default="")
    parser.add_argument("--size", choices=["small", "full"], default="small")
    parser.add_argument("--engines", default="plain,threepc,twopc")
    parser.add_argument("--token-ids", default="secret")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "results" / "models.jsonl")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    names = [name for name in given.families.split(",") if name]
    if not names and given.page is None:
        names = list(FAMILIES if given.size == "small" else FULL)
    for name in names:
        record = measured(name, given.size, [e for e in given.engines.split(",") if e], given.token_ids)
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
