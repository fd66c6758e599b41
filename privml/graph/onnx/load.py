# SPDX-License-Identifier: Apache-2.0
"""From a file, bytes or a ModelProto to one checked graph: one opset, no functions, shapes inferred."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import checker, helper, inliner, numpy_helper, shape_inference, version_converter

from privml.errors import CorruptFile, InvalidInput, UnsupportedOperator
from privml.graph.onnx.legacy import rewrite_old, settle_resize
from privml.graph.onnx.table import CONTROL, TABLE
from privml.graph.onnx.weights import detach

# Models of older opsets are brought to this one; newer ones keep theirs (the rules know what changed since).
TARGET_OPSET = 21
_MINIMUM_IR = 8


@dataclass(slots=True)
class Loaded:
    """``model``: the graph without its large weights; ``arrays``: all initializers and fixed inputs;
    ``inputs``: what remains to be passed, in order."""

    model: onnx.ModelProto
    arrays: dict[str, np.ndarray]
    inputs: list[onnx.ValueInfoProto]


def load(
    source: onnx.ModelProto | bytes | str | os.PathLike,
    fixed: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int | None]],
) -> Loaded:
    """Reads, checks and normalizes a model; see OnnxModule for the arguments and what is raised."""
    model, folder = _read(source)
    _require_text(model)
    skeleton, arrays = detach(model, folder)
    weights = set(arrays)
    _open_sizes(skeleton.graph)
    _set_inputs(skeleton, arrays, fixed, shapes)
    skeleton.ir_version = max(skeleton.ir_version, _MINIMUM_IR)
    _one_name_for_the_default_domain(skeleton)
    if not skeleton.opset_import:
        raise CorruptFile("not an ONNX model: it names no operator set")
    for opset in skeleton.opset_import:
        if not 0 <= opset.version < 2**31:
            raise CorruptFile(f"not an ONNX model: an operator set of version {opset.version}")
    if not skeleton.graph.output:
        raise CorruptFile("not an ONNX model: it has no outputs")
    newest, version = onnx.defs.onnx_opset_version(), opset_of(skeleton) or 0
    if version > newest:
        raise UnsupportedOperator(
            f"the model is of opset {version}, the installed onnx package knows {newest} at most; install a newer one"
        )
    rewrite_old(skeleton, version or TARGET_OPSET)
    unknown = [n for n in all_nodes(skeleton.graph) if not _has_schema(n, skeleton)]
    if not unknown:
        skeleton = _inline_local(skeleton)
        _check(skeleton)
        # A body is written in the opset of its operator, so some can be inlined only before the conversion.
        skeleton = _bring_to_target(_inline_composites(skeleton))
        settle_resize(skeleton, version or TARGET_OPSET)
        skeleton = _inline_composites(skeleton)
    skeleton = infer(skeleton)
    for tensor in skeleton.graph.initializer:  # the version converter turns old attributes into operands
        if tensor.name not in arrays:
            arrays[tensor.name] = numpy_helper.to_array(tensor)
    inputs = [value for value in skeleton.graph.input if value.name not in weights and value.name not in fixed]
    return Loaded(skeleton, arrays, inputs)


def _require_text(model: onnx.ModelProto) -> None:
    """Names must be UTF-8; protobuf hands damaged ones out as bytes, or fails when they are read."""
    graph = model.graph
    try:
        names = [model.producer_name, graph.name, *(o.domain for o in model.opset_import)]
        names += [v.name for v in (*graph.input, *graph.output, *graph.initializer, *graph.value_info)]
        for node in all_nodes(graph):
            names += [node.name, node.op_type, node.domain, *node.input, *node.output]
            names += [attribute.name for attribute in node.attribute]
        damaged = [name for name in names if not isinstance(name, str)]
    except UnicodeDecodeError as error:
        damaged = [error]
    if damaged:
        raise CorruptFile(f"not a valid ONNX model: a name in it is not text: {damaged[0]!r}")


def _check(model: onnx.ModelProto) -> None:
    """onnx.checker, which also wants a shape of each input and output; exporters often leave them out."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for info in [*copy.graph.input, *copy.graph.output]:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.shape.SetInParent()
    try:
        checker.check_model(copy)
    except (checker.ValidationError, UnicodeDecodeError) as error:
        raise CorruptFile(f"not a valid ONNX model: {error}") from None


def _read(source: Any) -> tuple[onnx.ModelProto, Path | None]:
    if isinstance(source, onnx.ModelProto):
        return source, None
    folder = None if isinstance(source, (bytes, bytearray)) else Path(source).parent
    try:
        if folder is None:
            model = onnx.load_model_from_string(bytes(source))
        else:
            model = onnx.load_model(os.fspath(source), load_external_data=False)
    except (DecodeError, UnicodeDecodeError) as error:
        what = "the bytes are" if folder is None else f"{os.fspath(source)} is"
        raise CorruptFile(f"{what} not an ONNX model: {error}") from None
    return model, folder


def _open_sizes(graph: onnx.GraphProto) -> None:
    """Some exporters write -1 for a size that may vary."""
    for info in (*graph.input, *graph.output):
        for index, size in enumerate(info.type.tensor_type.shape.dim):
            if size.HasField("dim_value") and size.dim_value < 0:
                size.dim_param = f"{info.name}_{index}"


def _set_inputs(
    model: onnx.ModelProto,
    arrays: dict[str, np.ndarray],
    fixed: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int | None]],
) -> None:
    """Turns fixed inputs into constants and overrides the declared shapes of others."""
    graph = model.graph
    inputs = {value.name: value for value in graph.input}
    for name in [*fixed, *shapes]:
        if name not in inputs and name not in arrays:
            raise InvalidInput(f"the model has no input {name!r}; it has {', '.join(map(repr, inputs))}")
    for name, value in fixed.items():
        array = value.numpy() if hasattr(value, "numpy") else np.asarray(value)
        if name in inputs:
            graph.input.remove(inputs[name])
        for tensor in [t for t in graph.initializer if t.name == name]:
            graph.initializer.remove(tensor)
        arrays[name] = array
        graph.initializer.append(numpy_helper.from_array(array, name))
    for name, shape in shapes.items():
        kind = inputs[name].type.tensor_type
        sizes = [f"{name}_{i}" if size is None else size for i, size in enumerate(shape)]
        inputs[name].CopyFrom(helper.make_tensor_value_info(name, kind.elem_type, sizes))


def _one_name_for_the_default_domain(model: onnx.ModelProto) -> None:
    for owner in [model, *model.functions]:
        for opset in owner.opset_import:
            opset.domain = "" if opset.domain == "ai.onnx" else opset.domain
    for body in [model.graph, *model.functions]:
        for node in all_nodes(body):
            node.domain = "" if node.domain == "ai.onnx" else node.domain


def all_nodes(graph: Any) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph or function, and those of the graphs in their attributes."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []:
                yield from all_nodes(inner)


def needed_values(graph: onnx.GraphProto) -> set[str]:
    """Names of the values that the outputs of ``graph`` depend on; in graphs within its nodes, all that are read."""
    needed = {output.name for output in graph.output}
    for node in reversed(graph.node):
        if any(name in needed for name in node.output):
            needed.update(node.input)
            for attribute in node.attribute:
                for body in [attribute.g, *attribute.graphs] if attribute.type in (5, 10) else []:
                    needed.update(output.name for output in body.output)
                    for inner in all_nodes(body):
                        needed.update(inner.input)
    return needed - {""}


def opset_of(model: onnx.ModelProto, domain: str = "") -> int | None:
    return next((o.version for o in model.opset_import if o.domain == domain), None)


def _has_schema(node: onnx.NodeProto, model: onnx.ModelProto) -> bool:
    """Whether ONNX, or a function of the model, defines the operator."""
    if any(f.domain == node.domain and f.name == node.op_type for f in model.functions):
        return True
    if node.domain not in ("", "ai.onnx.ml"):
        return (node.domain, node.op_type) in TABLE
    version = opset_of(model, node.domain)
    return version is None or onnx.defs.has(node.op_type, version, node.domain)


def _inline_local(model: onnx.ModelProto) -> onnx.ModelProto:
    if not model.functions:
        return model
    return _try("inlining the model's functions", inliner.inline_local_functions, model, True)


def _bring_to_target(model: onnx.ModelProto) -> onnx.ModelProto:
    version = opset_of(model)
    if version is None or version >= TARGET_OPSET:
        return model
    what = f"conversion from opset {version} to {TARGET_OPSET}"
    return _try(what, version_converter.convert_version, model, TARGET_OPSET)


def _inline_composites(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replaces operators without a rule by their bodies, as ONNX defines them, until none is left to replace.

    One that cannot be inlined is left in place, to be reported with the others."""
    failed: set[tuple[str, str]] = set()
    for _ in range(10):
        names = {(n.domain, n.op_type) for n in all_nodes(model.graph)} - set(TABLE) - failed
        composite = sorted(n for n in names if n[1] not in CONTROL and _is_function(n, model))
        if not composite:
            break
        for name in composite:
            _write_defaults(model, name)
            try:
                model = _inline(infer(model), name)
            except Exception:
                failed.add(name)
    return model


def _inline(model: onnx.ModelProto, name: tuple[str, str]) -> onnx.ModelProto:
    """Inlines one operator. The inliner knows the types of inputs but not of initializers, so they are both."""
    names = {value.name for value in model.graph.input}
    extra = [t for t in model.graph.initializer if t.name not in names]
    model.graph.input.extend(helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in extra)
    try:
        result = inliner.inline_selected_functions(model, [name], exclude=False, inline_schema_functions=True)
    finally:
        del model.graph.input[len(names) :]
    del result.graph.input[len(names) :]
    return result


def _write_defaults(model: onnx.ModelProto, name: tuple[str, str]) -> None:
    """Writes the default attributes of an operator out: the inliner does not know them."""
    schema = onnx.defs.get_schema(name[1], opset_of(model, name[0]) or 1, name[0])
    for node in all_nodes(model.graph):
        if (node.domain, node.op_type) == name:
            given = {attribute.name for attribute in node.attribute}
            node.attribute.extend(
                a.default_value for a in schema.attributes.values() if a.default_value.name and a.name not in given
            )


def _is_function(name: tuple[str, str], model: onnx.ModelProto) -> bool:
    try:
        schema = onnx.defs.get_schema(name[1], opset_of(model, name[0]) or 1, name[0])
    except onnx.defs.SchemaError:
        return False
    return schema.has_function or schema.has_context_dependent_function


def infer(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the types and shapes of its values; what a stale file declared of them is forgotten."""
    del model.graph.value_info[:]
    return _try("shape inference", shape_inference.infer_shapes, model, False, False, True)


def _try(what: str, step: Any, *args: Any) -> Any:
    try:
        return step(*args)
    except Exception as error:
        first = str(error).strip().split("\n")[0]
        raise UnsupportedOperator(f"{what} failed: {first}") from None
