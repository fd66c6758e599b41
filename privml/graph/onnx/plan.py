# SPDX-License-Identifier: Apache-2.0
"""Conversion of a graph into steps: constants are folded, rules bound, and whatever is unsupported collected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

from privml.errors import UnsupportedOperator
from privml.graph.onnx import control
from privml.graph.onnx.load import Loaded, needed_values, opset_of
from privml.graph.onnx.static import RANDOM, Growth, folder, shape_array
from privml.graph.onnx.table import ML, REASONS, TABLE, Node, Refusal, Rule, Run, nearest
from privml.graph.onnx.values import (
    FLOATING,
    TORCH_TYPES,
    Value,
    is_mask,
    known,
    to_tensor,
    type_name,
)

# Operators that leave strings what they are, whatever their shape.
_SAME_STRINGS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
_QUANTIZED = {TensorProto.INT8, TensorProto.UINT8, TensorProto.INT4, TensorProto.UINT4}


@dataclass(frozen=True, slots=True)
class Constant:
    """An operand that is the same in every run: a tensor, a number, or an array for a rule that wants one."""

    value: Any


@dataclass(slots=True)
class Step:
    """One torch function: where its operands come from (a key, a Constant, or None), what its results are
    called ("" for unused ones), and which operands are arrays still to be made tensors at run time."""

    label: str
    run: Run
    sources: list[Any]
    results: list[str]
    to_tensor: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    steps: list[Step] = field(default_factory=list)
    inputs: list[tuple[str, Value]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    output_names: list[str] = field(default_factory=list)
    parameters: dict[str, np.ndarray] = field(default_factory=dict)
    buffers: dict[str, np.ndarray] = field(default_factory=dict)
    public: dict[str, tuple[int, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    labels: list[list[str] | None] = field(default_factory=list)


def make_plan(
    loaded: Loaded, public: Iterable[str], tree_structure: str = "public", examples: Sequence[torch.Tensor] = ()
) -> Plan:
    """The plan of a loaded model; UnsupportedOperator lists every node that cannot be converted. Nodes that no output
    depends on are left out. ``examples``: of the inputs, for branches and loops that depend on shapes."""
    planner = Planner(loaded.model, frozenset(public), tree_structure, examples)
    graph = loaded.model.graph
    scope: dict[str, Value] = {}
    for name, array in loaded.arrays.items():
        scope[name] = planner.initializer(name, array)
    for info in loaded.inputs:
        value = _declared(info)
        planner.check_type(f"input {info.name!r}", value.element, info)
        scope[info.name] = value
        planner.plan.inputs.append((info.name, value))
    planner.nodes([n for n in graph.node if any(o in planner.needed for o in n.output)], scope, graph.value_info)
    plan = planner.plan
    for output in graph.output:
        plan.output_names.append(output.name)
        if output.name not in scope:
            plan.problems.append(f"output {output.name!r} is computed nowhere")
        elif output.name in planner.maps or planner.check_type(f"output {output.name!r}", 0, output):
            plan.outputs.append(planner.operand(scope[output.name]))
            plan.labels.append(scope[output.name].labels)
    if plan.problems:
        raise UnsupportedOperator(_report(plan.problems))
    return plan


def _report(problems: list[str]) -> str:
    count = f"{len(problems)} nodes" if len(problems) > 1 else "a node"
    lines = [f"the ONNX model has {count} that cannot be computed securely:"]
    lines += [f"  - {problem}" for problem in problems]
    return "\n".join([*lines, "privml.graph.onnx.table.supported_operators() lists what can be"])


def _declared(info: onnx.ValueInfoProto) -> Value:
    kind = info.type.tensor_type
    shape = None
    if kind.HasField("shape"):
        shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim)
    return Value(info.name, kind.elem_type, shape)


class Planner:
    """Goes through the nodes in order; ``scope`` maps names to values, also inside unrolled bodies."""

    def __init__(
        self,
        model: onnx.ModelProto,
        public: frozenset[str],
        tree_structure: str = "public",
        examples: Sequence[torch.Tensor] = (),
    ) -> None:
        self.tree_structure = tree_structure
        self.examples, self.computed = examples, {}  # the steps' results on the examples, as far as they were needed
        self.needed = needed_values(model.graph)
        self.plan = Plan()
        self.opsets = model.opset_import
        self.opset = opset_of(model) or 0
        self.public = public
        self.keys: dict[str, int] = {}
        self.maps: set[str] = set()  # results of ZipMap, which stay tensors
        self.unrolled = 0  # bodies of loops
        self.growth = Growth(self.opsets)

    # ---- values
    def key(self, name: str) -> str:
        """``name``, or a variant of it when a body is unrolled more than once."""
        seen = self.keys[name] = self.keys.get(name, -1) + 1
        return name if not seen else f"{name}#{seen}"

    def initializer(self, name: str, array: np.ndarray) -> Value:
        value = known(self.key(name), array)
        value.weight = name not in self.public and _holds_weights(value)
        return value

    def operand(self, value: Value | None, buffer: bool = False) -> Any:
        """How a step gets a value as a tensor: by key, or as a constant, or from a parameter."""
        if value is None or value.array is None:
            return None if value is None else value.key
        if value.weight and value.element in FLOATING and not is_mask(value.array):
            table = self.plan.buffers if buffer else self.plan.parameters
            if value.key not in self.plan.buffers and value.key not in self.plan.parameters:
                table[value.key] = value.array
            return value.key
        self._is_public(value)
        return Constant(to_tensor(value.array))

    def _is_public(self, value: Value) -> None:
        """Notes numbers of the file that stay in the clear."""
        if value.element in FLOATING and value.array.size:
            self.plan.public[value.key] = tuple(value.array.shape)

    def check_type(self, what: str, element: int, info: onnx.ValueInfoProto | None = None) -> bool:
        if info is not None and not info.type.HasField("tensor_type"):
            kind = info.type.WhichOneof("value") or "unknown type"
            self.plan.problems.append(f"{what} is a {kind.removesuffix('_type')}, not a tensor")
            return False
        if element and element not in TORCH_TYPES:
            self.plan.problems.append(f"{what} has element type {type_name(element)}")
            return False
        return True

    # ---- nodes
    def nodes(self, protos: Iterable[onnx.NodeProto], scope: dict[str, Value], infos: Iterable[Any]) -> None:
        """Plans a list of nodes; what they produce is added to ``scope``."""
        declared = {info.name: _declared(info) for info in infos if info.type.HasField("tensor_type")}
        for proto in protos:
            try:
                self._node(proto, scope, declared)
            except Refusal as refusal:
                self.plan.problems.append(f"{describe(proto)}: {refusal}")
            except Exception as error:  # operands or attributes are missing, or others than the operator has
                self.plan.problems.append(f"{describe(proto)}: it does not fit: {type(error).__name__}: {error}")
            for name in proto.output:
                if name and name not in scope:  # after a refusal: go on, to report all of them at once
                    scope[name] = self.result(name, declared)

    def result(self, name: str, declared: Mapping[str, Value], static: bool = False) -> Value:
        like = declared.get(name, Value(""))
        return Value(self.key(name), like.element, like.shape, static=static)

    def _node(self, proto: onnx.NodeProto, scope: dict[str, Value], declared: Mapping[str, Value]) -> None:
        missing = [name for name in proto.input if name and name not in scope]
        if missing:
            raise Refusal(f"its input {missing[0]!r} is computed nowhere")
        operands = [scope[name] if name else None for name in proto.input]
        if proto.op_type in control.CONTROL and not proto.domain:
            control.CONTROL[proto.op_type](self, proto, operands, scope)
        elif proto.op_type in ("Shape", "Size") and not proto.domain:
            self._shape(proto, operands[0], scope)
        elif (proto.domain, proto.op_type) in (("", "Identity"), (ML, "ZipMap")):
            scope[proto.output[0]] = operands[0]
            if proto.op_type == "ZipMap":
                self.maps.add(proto.output[0])
        elif proto.op_type == "CastLike" and self._cast_constant(proto, operands, scope):
            return
        elif self._foldable(proto, operands):
            self._fold(proto, operands, scope, declared)
        else:
            self._bind(proto, operands, scope, declared)

    def _cast_constant(self, proto: Any, operands: list[Value], scope: dict[str, Value]) -> bool:
        """A constant cast to the type of a tensor stays a constant; function bodies are full of them."""
        value, like = operands
        if value.array is None or not like.element or like.element not in TORCH_TYPES:
            return False
        array = value.array.astype(helper.tensor_dtype_to_np_dtype(like.element))
        scope[proto.output[0]] = known(self.key(proto.output[0]), array, value.weight)
        return True

    def _foldable(self, proto: onnx.NodeProto, operands: Sequence[Value | None]) -> bool:
        if proto.op_type in RANDOM or not all(v is None or v.static for v in operands):
            return False
        if all(v is None or v.array is not None for v in operands):
            return True
        if any(v is not None and v.weight for v in operands):
            return False  # sizes come to it at run time: a weight must be a parameter by then
        return proto.op_type not in ("Expand", "ConstantOfShape", "Range")  # these make tensors of sizes

    def _fold(self, proto: Any, operands: list[Value | None], scope: dict[str, Value], declared: Any) -> None:
        """Computes the node now, or leaves a step that computes with NumPy at run time."""
        try:
            fold = folder(proto, self.opsets)
            arrays = [None if v is None else v.array for v in operands]
            if all(v is None or v.array is not None for v in operands):
                self.growth.expect(proto, arrays)
                results = fold(*arrays)
                if any(isinstance(r, (list, dict)) or r is not None and r.dtype.kind in "OUS" for r in results):
                    raise Refusal("strings and sequences are not supported")
                weight = any(v is not None and v.weight for v in operands)
                for name, array in zip(proto.output, results, strict=True):
                    if name:
                        value = scope[name] = known(self.key(name), array)
                        fresh = not operands and array.size > 1 and _holds_weights(value)
                        value.weight = name not in self.public and (weight or fresh)
                return
        except Refusal:
            raise
        except Exception as error:
            raise Refusal(f"cannot be evaluated on its constant operands: {error}") from None
        sources = [None if v is None else v.key if v.array is None else Constant(v.array) for v in operands]
        self._step(proto, fold, sources, scope, declared, static=True)

    def _shape(self, proto: onnx.NodeProto, value: Value, scope: dict[str, Value]) -> None:
        attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}
        start, end = attributes.get("start", 0), attributes.get("end")
        size = proto.op_type == "Size"
        name = proto.output[0]
        if value.shape is not None and None not in value.shape:
            numbers = np.array(value.shape, np.int64)
            scope[name] = known(self.key(name), numbers.prod() if size else numbers[start:end])
            return

        def run(x: Any) -> np.ndarray:
            return np.array(x.numel()) if size else shape_array(list(x.shape)[start:end])

        length = () if size else (None,) if value.rank is None else (len(range(value.rank)[start:end]),)
        scope[name] = Value(self.key(name), TensorProto.INT64, length, static=True)
        self.plan.steps.append(Step(describe(proto), run, [value.key], [scope[name].key]))

    def _bind(self, proto: Any, operands: list[Value | None], scope: dict[str, Value], declared: Any) -> None:
        rule = TABLE.get((proto.domain, proto.op_type))
        if rule is None:
            raise Refusal(_unknown(proto))
        attributes = {a.name: _decoded(helper.get_attribute_value(a)) for a in proto.attribute}
        wanted = [name in self.needed for name in proto.output]
        node = Node(proto, list(operands), wanted, attributes, tree_structure=self.tree_structure)
        spoken = next((v.labels for v in operands if v is not None and v.labels), None)
        if spoken is not None:
            if proto.op_type not in _SAME_STRINGS:
                raise Refusal("it computes with strings, which can only be labels of an output")
            node.labels[0] = spoken
        for index in rule.static:
            if node.has(index) and not operands[index].static:
                raise Refusal(
                    f"its operand {_operand_name(proto, index, self.opsets)} depends on the values of the model's "
                    "inputs and would reveal them; it must be a constant or depend on shapes only"
                )
        run = self._build(rule, node)
        if node.unread():
            raise Refusal(f"attribute {', '.join(node.unread())} is not supported")
        operands = node.inputs
        for value in node.taken:
            self._is_public(value)
        sources = [self._source(value, index, rule, operands) for index, value in enumerate(operands)]
        label = label_of(proto)
        if node.parameters:
            most = len(sources)
            sources += [None] * (_most_inputs(proto, self.opsets, most) - most)
        for name, array in node.parameters:
            sources.append(self.operand(known(self.key(f"{label}.{name}"), array, True)))
        late = [
            i for i, v in enumerate(operands) if v is not None and v.static and v.array is None and i not in rule.static
        ]
        for index, name in enumerate(proto.output):
            if name and index not in node.labels:
                self.check_type(f"{describe(proto)}: result {name!r}", declared.get(name, Value("")).element)
        self._step(proto, run, sources, scope, declared, False, late)
        for index, labels in node.labels.items():
            if proto.output[index]:
                scope[proto.output[index]].labels = labels

    def _build(self, rule: Rule, node: Node) -> Run:
        try:
            return rule.build(node)
        except Refusal:
            raise
        except Exception as error:  # an attribute is missing, or of another type or length than the operator has
            raise Refusal(f"its attributes or constants do not fit: {type(error).__name__}: {error}") from error

    def _source(self, value: Value | None, index: int, rule: Rule, operands: list[Value | None]) -> Any:
        if value is None or value.array is None:
            return None if value is None else value.key
        if index in rule.static:
            self._is_public(value)
            return Constant(value.array)
        others = [v.rank for v in operands if v is not None and v.array is None]
        if (
            rule.numbers
            and not value.weight
            and value.array.size == 1
            and value.array.ndim <= max([r for r in others if r is not None], default=0)
            and value.element != TensorProto.BOOL
        ):
            self._is_public(value)
            return Constant(value.array.item())
        return self.operand(value, index in rule.buffers)

    def append(self, proto: Any, run: Run, operands: Sequence[Value], result: Value) -> None:
        """Adds a step beside the node's own: stacking what a loop collects, picking what a scan reads."""
        self.plan.steps.append(Step(label_of(proto), run, [self.operand(v) for v in operands], [result.key]))

    def size(self, proto: Any, value: Value, axis: int) -> Value:
        """The public number that is the size of ``value`` along an axis."""
        result = Value(self.key(f"{value.key}.size"), TensorProto.INT64, (), static=True)

        def run(x: Any) -> np.ndarray:
            return shape_array(list(x.shape)).reshape(-1)[axis : axis + 1 or None].reshape(())

        self.plan.steps.append(Step(label_of(proto), run, [value.key], [result.key]))
        return result

    def check(self, proto: Any, run: Run, value: Value) -> None:
        """Adds a step that looks at a public number and has no result."""
        self.plan.steps.append(Step(f"{label_of(proto)}_check", run, [value.key], []))

    def traced(self, value: Value) -> Any:
        """The value of a public number on the example inputs; None if there are none."""
        names = [key for key, _ in self.plan.inputs]
        if not self.examples or len(self.examples) != len(names):
            return None
        known = self.computed
        known.update(zip(names, self.examples, strict=True))
        needed, steps = {value.key}, []
        for step in reversed(self.plan.steps):
            if needed & set(step.results) and not all(key in known for key in step.results if key):
                steps.append(step)
                needed |= {s for s in step.sources if isinstance(s, str) and s not in known}
        with torch.no_grad():
            for step in reversed(steps):
                results = step.run(*(self._operand_of(step, i) for i in range(len(step.sources))))
                results = results if isinstance(results, (tuple, list)) else (results,)
                known.update((key, found) for key, found in zip(step.results, results, strict=False) if key)
        return known[value.key]

    def _operand_of(self, step: Step, index: int) -> Any:
        source = step.sources[index]
        if isinstance(source, Constant):
            source = source.value
        elif isinstance(source, str):
            held = {**self.plan.parameters, **self.plan.buffers}.get(source) if source not in self.computed else None
            source = self.computed[source] if held is None else to_tensor(held)
        return to_tensor(source) if index in step.to_tensor else source

    def _step(
        self, proto: Any, run: Run, sources: list, scope: dict, declared: Any, static: bool, late: Any = ()
    ) -> None:
        for name in proto.output:
            if name:
                scope[name] = self.result(name, declared, static)
        results = [scope[name].key if name else "" for name in proto.output]
        self.plan.steps.append(Step(label_of(proto), run, sources, results, list(late)))


def _holds_weights(value: Value) -> bool:
    """Whether numbers of an initializer are the model's own: not a literal that an exporter named."""
    if value.element in FLOATING:
        return not (value.array.ndim == 0 and value.key.startswith("val_"))
    return value.element in _QUANTIZED and value.array.size > 1


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], bytes):
        return [v.decode("utf-8", "replace") for v in value]
    return value


def label_of(proto: onnx.NodeProto) -> str:
    """The node's name, or one made of its operator and first result."""
    return proto.name or f"{proto.op_type}_{next((o for o in proto.output if o), '')}"


def describe(proto: onnx.NodeProto) -> str:
    where = f"node {proto.name!r}" if proto.name else f"node producing {next(iter(proto.output), '')!r}"
    return f"{proto.op_type} (domain {proto.domain or 'ai.onnx'!r}, {where})"


def _unknown(proto: onnx.NodeProto) -> str:
    close = nearest(proto.domain, proto.op_type)
    reason = REASONS.get(proto.op_type)
    text = "not supported" + (f": {reason}" if reason else "")
    return text + (f"; nearest by name: {', '.join(close)}" if close else "")


def _schema(proto: onnx.NodeProto, opsets: Any) -> Any:
    version = next((o.version for o in opsets if o.domain == proto.domain), 1)
    return onnx.defs.get_schema(proto.op_type, version, proto.domain)


def _operand_name(proto: onnx.NodeProto, index: int, opsets: Any) -> str:
    try:
        return f"{_schema(proto, opsets).inputs[index].name!r} ({proto.input[index]!r})"
    except (onnx.defs.SchemaError, IndexError):
        return repr(proto.input[index])


def _most_inputs(proto: onnx.NodeProto, opsets: Any, least: int) -> int:
    try:
        return max(least, min(_schema(proto, opsets).max_input, 16))
    except onnx.defs.SchemaError:
        return least
