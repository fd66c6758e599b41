# SPDX-License-Identifier: Apache-2.0
"""From a trained model to a program: front end, passes, formats, verification."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from privml.errors import InvalidInput
from privml.graph.export import export
from privml.graph.passes import (
    blend,
    bound_masks,
    fold_batchnorm,
    fold_weights,
    fold_zeros,
    maxpool_before_monotone,
    merge_elementwise,
    merge_factors,
    merge_products,
    tanh_by_sigmoid,
    verify,
    whole_norms,
)
from privml.graph.passes.choose_formats import Precision, choose_formats
from privml.graph.passes.promises import check_promises
from privml.program import Program
from privml.tables import Progress, notebook_bar

PASSES: tuple[Callable[[fx.GraphModule], fx.GraphModule], ...] = (
    fold_weights,
    whole_norms,
    fold_batchnorm,
    maxpool_before_monotone,
    fold_zeros,
    blend,
    tanh_by_sigmoid,
    merge_factors,
    merge_products,
    merge_elementwise,
)
# Those that leave every number what it is, but for batch normalization.
FLOAT_PASSES = (fold_weights, fold_batchnorm, maxpool_before_monotone, fold_zeros)


def convert(
    model: torch.nn.Module | str | os.PathLike | Any,
    example_inputs: torch.Tensor | Sequence[torch.Tensor] | None = None,
    *,
    calibration: torch.Tensor | Sequence[torch.Tensor] | None = None,
    numerics: Precision | Mapping[str, Any] | None = None,
    dynamic_batch: bool = True,
    method: str = "predict",
    tree_structure: str = "public",
    progress: Progress | None = None,
) -> Program:
    """A program, with its weights, of a PyTorch module, an ONNX file (a path, or a ``onnx.ModelProto``) or a fitted
    estimator or pipeline of scikit-learn (with the extra ``sklearn``).

    ``example_inputs``: one batch per input, for tracing (default: the first calibration sample). ``calibration``:
    inputs like those to come, on which ranges are measured and formats chosen (default: the example inputs); values
    larger than ``margin`` times what they reach would wrap. ``numerics``: see ``Precision``. ``dynamic_batch``: let the
    first dimension vary where the model allows it. ``method``: what an estimator computes, ``predict``,
    ``predict_proba`` or ``decision_function``. ``tree_structure``: of trees in ONNX files and estimators, what all
    parties know: "public" (shape and features) or "hidden" (depth and number alone). ``progress``: called with the
    steps done, those in all and the next one's name; None shows a bar in a notebook.

    ``program.choice`` holds the formats' measured error and the overflow report. Raises UnsupportedOperator (all
    operators at once), InvalidInput, OverflowDetected, PrecisionLost (no formats keep the tolerance), ConfigError, and
    CorruptFile for a broken ONNX file.
    """
    precision = Precision.of(numerics)
    data = _tensors(calibration)
    examples = _tensors(example_inputs) or [x[:1] if x.dim() else x for x in data]
    if not examples:
        raise InvalidInput("pass example inputs or calibration data, one tensor per input of the model")
    passes = PASSES if precision.floating is None else FLOAT_PASSES
    steps = ["load", "trace", *(p.__name__ for p in passes), "choose formats", "done"]

    tell = progress or notebook_bar("convert")

    def report(step: str) -> None:
        tell(steps.index(step), len(steps) - 1, step)

    report("load")
    module = _module_of(model, examples, data or examples, method, tree_structure)
    report("trace")
    graph_module = verify(export(module, examples, dynamic_batch), after="export")
    if precision.floating is None:
        graph_module = verify(bound_masks(graph_module, data or examples, precision.margin), after="bound_masks")
    for rewrite in passes:
        report(rewrite.__name__)
        graph_module = verify(rewrite(graph_module), after=rewrite.__name__)
    report("choose formats")
    graph_module, choice = choose_formats(graph_module, data or examples, precision)
    verify(graph_module, formats=True, after="choose_formats")
    check_promises(graph_module, choice.precision.numerics)
    program = Program.of(graph_module, choice.precision.numerics, getattr(module, "labels", None) or ())
    program.choice = choice
    report("done")
    return program


def _tensors(value: Any) -> list[torch.Tensor]:
    if value is None:
        return []
    return [torch.as_tensor(v) for v in value] if isinstance(value, (list, tuple)) else [torch.as_tensor(value)]


def _module_of(
    model: Any, examples: Sequence[torch.Tensor], data: Sequence[torch.Tensor], method: str, tree_structure: str
) -> torch.nn.Module:
    if isinstance(model, torch.nn.Module):
        return model
    from privml.graph.onnx.module import OnnxModule
    from privml.graph.scikit_learn import is_estimator, onnx_of, require_agreement

    if not is_estimator(model):
        return OnnxModule(model, tree_structure=tree_structure, examples=examples)
    module = OnnxModule(onnx_of(model, examples, method), tree_structure=tree_structure)
    require_agreement(model, method, module, data[0])
    return module
