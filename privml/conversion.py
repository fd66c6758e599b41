# SPDX-License-Identifier: Apache-2.0
"""From a trained model to a program: front end, passes, formats, verification."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import fx

from privml.errors import ConfigError, InvalidInput, UnsupportedOperator
from privml.graph.adapted import adapt, parameters_of
from privml.graph.batches import Batch, batch_of, fixed_batch
from privml.graph.blame import no_output, quiet_torch
from privml.graph.declared import (
    LOOKED,
    completed,
    declared_of,
    growing,
    sessions,
    state_last,
    stepped,
    without_output,
)
from privml.graph.export import evaluating, export
from privml.graph.generation import SCORES, decoder, sizes
from privml.graph.passes import (
    blend,
    bound_masks,
    fold_batchnorm,
    fold_factors,
    fold_public,
    fold_weights,
    fold_zeros,
    masks_last,
    maxpool_before_monotone,
    merge_elementwise,
    merge_factors,
    merge_products,
    split_powers,
    tanh_by_sigmoid,
    verify,
    whole_functions,
    whole_norms,
)
from privml.graph.passes.choose_formats import TRIED, Precision, choose_formats
from privml.graph.passes.promises import check_promises
from privml.graph.token_ids import embed
from privml.program import Program
from privml.tables import Progress, notebook_bar

PASSES: tuple[Callable[[fx.GraphModule], fx.GraphModule], ...] = (
    masks_last,
    fold_weights,
    whole_norms,
    whole_functions,
    fold_batchnorm,
    maxpool_before_monotone,
    fold_zeros,
    split_powers,
    blend,
    tanh_by_sigmoid,
    fold_factors,
    merge_factors,
    merge_products,
    merge_elementwise,
)
# Those that leave every number what it is, but for batch normalization.
FLOAT_PASSES = (fold_weights, fold_batchnorm, maxpool_before_monotone, fold_zeros)


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of ``convert`` for the model.

    ``method``: what an estimator computes, ``predict``, ``predict_proba`` or ``decision_function``. ``tree_structure``:
    of trees in ONNX files and estimators, what all parties know: "public" (shape and features) or "hidden" (depth and
    number alone). ``token_ids``: how embeddings of the client's ids are looked up, for all inputs or by their names:
    "secret" (no party learns them), "public" (all parties learn the ids) or "client" (the client learns the table and
    looks up for itself); see ``privml.graph.token_ids``. ``outputs``: the fields that are kept of a model's output
    class (default: ``logits``, else ``last_hidden_state``, ...). ``state``: what calls of one session keep as shares,
    ``{name: (input, output)}``, an input of the model and the output, by name or number, that is its next value; the
    first call finds zeros, and what later ones find is worked out from the calibration data; ``{name: (input, output,
    dimension, most)}`` of one that begins empty and grows along a dimension, up to a length ``most``. ``generate``: of
    a causal language model of ``transformers`` a step of greedy decoding, for texts of at most so many ids; see
    ``privml.graph.generation``. ``steps``: calls of a session on which the formats of a model with state are judged.
    ``debug``: torch's log and the graphs that it prints while it traces.
    """

    method: str = "predict"
    tree_structure: str = "public"
    token_ids: str | Mapping[str, str] = "secret"
    outputs: tuple[str, ...] | None = None
    state: Mapping[str, Any] | None = None
    generate: int | None = None
    steps: int = LOOKED
    debug: bool = False

    @staticmethod
    def of(given: Mapping[str, Any]) -> Options:
        """ConfigError for names that there are not."""
        known = {field.name for field in fields(Options)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ConfigError(f"convert has no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
        outputs = given.get("outputs")
        if isinstance(outputs, str):
            given = {**given, "outputs": (outputs,)}
        if type(given.get("steps", 1)) is not int or given.get("steps", 1) < 1:
            raise ConfigError(f"steps must be a whole number of calls from 1 on, got {given['steps']!r}")
        return Options(**given)


def convert(
    model: torch.nn.Module | str | os.PathLike | Any,
    example_inputs: Any = None,
    *,
    calibration: Any = None,
    numerics: Precision | Mapping[str, Any] | None = None,
    dynamic_batch: bool = True,
    progress: Progress | None = None,
    **options: Any,
) -> Program:
    """A program, with its weights, of a PyTorch module, an ONNX file (a path, or a ``onnx.ModelProto``) or a fitted
    estimator or pipeline of scikit-learn (with the extra ``sklearn``).

    ``example_inputs``: one batch per input, for tracing (default: the first calibration sample): a tensor, a tuple or
    list of them, or a mapping from the names of the model's parameters, as tokenizers return it. ``calibration``:
    inputs like those to come, in the same forms or as a DataLoader, on which ranges are measured and formats chosen
    (default: the example inputs); values larger than ``margin`` times what they reach would wrap. ``numerics``: see
    ``Precision``. ``dynamic_batch``: let the batch vary where the model allows it. ``options``: see ``Options``.
    ``progress``: called with the steps done, those in all and the next one's name; None shows a bar in a notebook.

    ``program.choice`` holds the formats' measured error and the overflow report, ``program.notes`` what was decided
    about the model. Raises UnsupportedOperator (all operators at once), InvalidInput, OverflowDetected, PrecisionLost
    (no formats keep the tolerance), ConfigError, and CorruptFile for a broken ONNX file.
    """
    precision, chosen = Precision.of(numerics), Options.of(options)
    declared = declared_of(chosen.state)
    parameters = parameters_of(model) if isinstance(model, torch.nn.Module) else None
    data = batch_of(calibration, parameters)
    examples = batch_of(example_inputs, parameters)
    if declared and parameters is None and not isinstance(model, torch.nn.Module):
        data, examples = (completed(each, *_inputs_of(model), declared) for each in (data, examples))
    own = not examples.tensors
    examples = data.first_rows() if own else examples
    data = data if data.tensors else examples
    if parameters is None and data.names is not None and not isinstance(model, torch.nn.Module):
        names, _ = _inputs_of(model)
        data, examples = data.ordered(names), examples.ordered(names)
    if not examples.tensors:
        raise InvalidInput("pass example inputs or calibration data, one tensor per input of the model")
    passes = PASSES if precision.floating is None else FLOAT_PASSES
    steps = ["load", "trace", *(p.__name__ for p in passes), "choose formats"]
    tell = progress or notebook_bar("convert")
    total, tried = len(steps) + TRIED, 0

    def report(step: str) -> None:
        tell(steps.index(step), total, step)

    def trial(words: str) -> None:
        nonlocal tried
        tried = min(tried + 1, TRIED)
        tell(len(steps) - 1 + tried, total, words)

    report("load")
    varying = None
    if chosen.generate is not None:
        if declared:
            raise ConfigError("generate= adds its own state: leave out state=")
        module, examples, data, declared = decoder(model, data, chosen.generate)
        varying = sizes(len(declared), chosen.generate)
    else:
        module = _module_of(model, examples, data, chosen)
        batch = fixed_batch(getattr(module, "input_shapes", ())) if parameters is None else None
        if batch is not None and batch > 1 and data.rows:  # a file's queries have so many rows
            data = data.in_batches(batch)
            if own:
                examples = data.first_rows(batch)
                module = _module_of(model, examples, data, chosen)
    known = getattr(module, "input_names", None if varying else data.names or parameters)
    order = None if known is None else list(known)[: len(data.tensors)]
    examples, lengths, declared = (examples, {}, declared) if varying else growing(examples, declared, order)
    report("trace")
    with quiet_torch(chosen.debug), no_output(chosen.debug):
        graph_module = export(module, examples.tensors, dynamic_batch, data.names, varying, lengths)
    notes = tuple(graph_module.meta.get("notes", ()))
    if chosen.generate is not None and data.tensors[0].shape[1] < chosen.generate:
        notes += (
            f"formats have room for texts of {data.tensors[0].shape[1]} ids, the length of the calibration rows: at "
            f"later places, up to generate={chosen.generate}, a larger number gives a wrong id without an error",
        )
    for note in notes:
        warnings.warn(note, stacklevel=2)
    tensors: list[torch.Tensor] = list(data.tensors)
    others: list[list[torch.Tensor]] = []
    calls = None
    if declared:
        places = state_last(graph_module, declared, order, getattr(module, "output_names", None))
        tensors = [tensors[i] for i in places]
        if not varying:
            begun = tensors
            tensors, others, grown = stepped(graph_module, tensors, declared)
            for note in grown:
                warnings.warn(note, stacklevel=2)
            notes = (*notes, *grown)
            if not grown:
                with torch.no_grad():
                    calls = sessions(graph_module, begun, declared, chosen.steps)
    graph_module, client, lookups = embed(fold_public(verify(graph_module, after="export")), chosen.token_ids)
    if client is not None:
        count = len(tensors) - len(declared)
        tensors, *others = ([*client(*each[:count]), *each[count:]] for each in (tensors, *others))
        calls = calls and replace(calls, inputs=[list(client(*each)) for each in calls.inputs])
    if precision.floating is None:
        graph_module = verify(bound_masks(graph_module, tensors, precision.margin), after="bound_masks")
    for rewrite in passes:
        report(rewrite.__name__)
        graph_module = verify(rewrite(graph_module), after=rewrite.__name__)
    report("choose formats")
    graph_module, choice = choose_formats(graph_module, tensors, precision, others, calls, trial)
    verify(graph_module, formats=True, after="choose_formats")
    check_promises(graph_module, choice.precision.numerics, tensors)
    if varying:
        without_output(graph_module, SCORES)
    labels = getattr(module, "labels", None) or ()
    if declared and any(names is not None for names in labels):
        raise UnsupportedOperator("a model with state cannot return strings")
    state = [{"name": each.name, "grows": each.grows, "most": each.most} for each in declared]
    notes = (*notes, *map(str, lookups), *choice.accepted, *choice.worse_elsewhere)
    program = Program.of(graph_module, choice.precision.numerics, labels, client, state, [n[:2000] for n in notes])
    program.choice = choice
    tell(total, total, "done")
    return program


def _inputs_of(model: Any) -> tuple[list[str], list[Any]]:
    """The inputs of an ONNX file, in order, and their shapes, as far as the file has them."""
    from privml.graph.onnx.module import OnnxModule
    from privml.graph.scikit_learn import is_estimator

    if is_estimator(model):
        return ["x"], [None]
    module = OnnxModule(model)
    return module.input_names, module.input_shapes


def _module_of(model: Any, examples: Batch, data: Batch, options: Options) -> torch.nn.Module:
    if isinstance(model, torch.nn.Module):
        with quiet_torch(options.debug), evaluating(model):
            return adapt(model, examples, options.outputs)
    from privml.graph.onnx.module import OnnxModule
    from privml.graph.scikit_learn import is_estimator, onnx_of, require_agreement

    if not is_estimator(model):
        return OnnxModule(model, tree_structure=options.tree_structure, examples=examples.tensors)
    module = OnnxModule(onnx_of(model, examples.tensors, options.method), tree_structure=options.tree_structure)
    require_agreement(model, options.method, module, data.tensors[0])
    return module
