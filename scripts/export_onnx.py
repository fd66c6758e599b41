# SPDX-License-Identifier: Apache-2.0
"""Writes a model of the zoo as an ONNX file: ``python scripts/export_onnx.py lenet lenet.onnx``.

The batch size stays open, so that one file serves any number of inputs.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import models


def export(module: torch.nn.Module, example: torch.Tensor, path: str | Path, opset: int = 20) -> None:
    """``module`` as ONNX with its weights inside; the first dimension of the input named "batch" and open."""
    batch = torch.export.Dim("batch", min=1, max=4096)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module,
            (torch.cat([example, example]),),
            dynamo=True,
            opset_version=opset,
            input_names=["input"],
            output_names=["output"],
            dynamic_shapes=({0: batch},),
        )
    program.save(str(path), external_data=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models.names())
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    model = models.load(arguments.model)
    export(model.module, model.example, arguments.out)
    print(f"wrote {arguments.out} ({arguments.out.stat().st_size / 1e3:.0f} kB)")


if __name__ == "__main__":
    main()
