# SPDX-License-Identifier: Apache-2.0
"""The table of ONNX operators, and why others are not in it. A rule reads a node once, at conversion, and returns the
torch function of it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import onnx

from privml.graph.onnx.values import FLOATING, TORCH_TYPES, Value, type_name

Run = Callable[..., Any]
ML = "ai.onnx.ml"


class Refusal(Exception):
    """A rule declines a node; the message says which attribute or operand, and what would do."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``static``: operands that must be public numbers, passed as NumPy arrays. ``buffers``: operands that are
    statistics rather than parameters. ``numbers``: constants of one element may arrive as Python numbers."""

    build: Callable[[Node], Run]
    static: tuple[int, ...] = ()
    buffers: tuple[int, ...] = ()
    numbers: bool = False


TABLE: dict[tuple[str, str], Rule] = {}
# Operators that the conversion itself takes care of.
CONTROL = ("If", "Loop", "Scan", "Shape", "Size", "Constant")


def operator(
    *names: str, domain: str = "", static: Sequence[int] = (), buffers: Sequence[int] = (), numbers: bool = False
) -> Callable[[Callable[[Node], Run]], Callable[[Node], Run]]:
    """Registers the decorated rule for the operators ``names``."""

    def register(build: Callable[[Node], Run]) -> Callable[[Node], Run]:
        for name in names:
            if (domain, name) in TABLE:
                raise RuntimeError(f"{domain}:{name} has two rules")
            TABLE[domain, name] = Rule(build, tuple(static), tuple(buffers), numbers)
        return build

    return register


def function(name: str, run: Run, domain: str = "", numbers: bool = False) -> None:
    """Registers an operator without attributes that is ``run`` itself."""
    operator(name, domain=domain, numbers=numbers)(lambda node: run)


def supported_operators() -> dict[str, list[str]]:
    """Domain -> names of the operators with a rule; "" is ONNX's own domain. Operators that ONNX defines as
    functions of these are supported as well, by inlining."""
    names: dict[str, list[str]] = {"": list(CONTROL), ML: ["ZipMap"]}
    for domain, name in TABLE:
        names.setdefault(domain, []).append(name)
    return {domain: sorted(group) for domain, group in names.items()}


def nearest(domain: str, name: str) -> list[str]:
    """Supported operators spelt like ``name``, best first."""
    names = {n.lower(): n for n in supported_operators().get(domain, [])}
    return [names[n] for n in difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.6)]


# ---- operators of a graph
@dataclass(slots=True)
class Node:
    """A node as a rule sees it: attributes, what is known of its operands, which results are wanted. ``labels``: for
    results that are strings the list that the numbers computed in their place index. ``tree_structure``: public or
    hidden."""

    proto: onnx.NodeProto
    inputs: list[Value | None]
    wanted: list[bool]
    attributes: dict[str, Any]
    read: set[str] = field(default_factory=set)
    parameters: list[tuple[str, np.ndarray]] = field(default_factory=list)
    taken: list[Value] = field(default_factory=list)
    labels: dict[int, list[str]] = field(default_factory=dict)
    tree_structure: str = "public"

    @property
    def op_type(self) -> str:
        return self.proto.op_type

    # ---- attributes
    def attribute(self, name: str, default: Any = None) -> Any:
        """The attribute's value; an attribute no rule asks for makes the conversion refuse the node."""
        self.read.add(name)
        value = self.attributes.get(name)
        return default if value is None else value

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self.attribute(name, int(default)))

    def choice(self, name: str, default: str, *allowed: str) -> str:
        """A string attribute that must be one of ``allowed``."""
        value = self.attribute(name, default)
        if value not in allowed:
            self.refuse(f"{name}={value!r} is not supported, only {', '.join(map(repr, allowed))}")
        return value

    def ignore(self, *names: str) -> None:
        """Attributes that do not change the result here."""
        self.read.update(names)

    def unread(self) -> list[str]:
        return sorted(set(self.attributes) - self.read)

    # ---- operands and results
    def drop(self, index: int) -> None:
        """Leaves out an operand that has no influence."""
        if self.has(index):
            self.inputs[index] = None

    def has(self, index: int) -> bool:
        return index < len(self.inputs) and self.inputs[index] is not None

    def value(self, index: int) -> np.ndarray | None:
        """The operand when it is known at conversion, else None."""
        return self.inputs[index].array if self.has(index) else None

    def take(self, index: int) -> Any:
        """The one number an operand holds, which becomes public; None when it is not known or not one. The
        function is then passed None in its place."""
        array = self.value(index)
        if array is None or array.size != 1:
            return None
        self.taken.append(self.inputs[index])
        self.inputs[index] = None
        return array.item()

    def rank(self, index: int) -> int | None:
        return self.inputs[index].rank if self.has(index) else None

    def floating(self, index: int) -> bool | None:
        """Whether the operand is floating point; None when its type is unknown."""
        element = self.inputs[index].element
        return element in FLOATING if element else None

    def wants(self, index: int) -> bool:
        return index < len(self.wanted) and self.wanted[index]

    def parameter(self, name: str, array: Any) -> None:
        """Makes numbers held in attributes a parameter; it is passed after the node's operands."""
        self.parameters.append((name, np.asarray(array)))

    def torch_type(self, element: int) -> Any:
        """The torch type of an ONNX element type."""
        if element not in TORCH_TYPES:
            self.refuse(f"element type {type_name(element)} has no torch counterpart")
        return TORCH_TYPES[element]

    def refuse(self, reason: str) -> NoReturn:
        raise Refusal(reason)


# ---- why an operator that ONNX has is not here, and what to do instead
_SHAPE = "the shape of its result depends on values and would reveal them"
_QUANTIZED = "integer arithmetic of quantized models; convert the floating-point model"
_RANDOM = "random results, on which the parties would have to agree; make them an input"
_SEQUENCE = "sequences and optional values; only tensors are computed"
_STRING = "strings; only numbers are computed"
_TRAINING = "a training step; train the module with torch.optim instead"
_SPECTRUM = "complex numbers; write the transform as a product with a constant matrix"
_PLACES = "it reads at positions that depend on values"

REASONS: dict[str, str] = {
    **dict.fromkeys(("NonMaxSuppression", "NonZero", "Unique"), _SHAPE),
    **dict.fromkeys(
        ("ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv",
         "QLinearMatMul", "QuantizeLinear"),
        _QUANTIZED,
    ),
    **dict.fromkeys(
        ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        _RANDOM,
    ),
    **dict.fromkeys(
        ("ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
         "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap",
         "SplitToSequence"),
        _SEQUENCE,
    ),
    **dict.fromkeys(
        ("CastMap", "CategoryMapper", "DictVectorizer", "RegexFullMatch", "StringConcat", "StringNormalizer",
         "StringSplit"),
        _STRING,
    ),
    **dict.fromkeys(("Adagrad", "Adam", "Gradient", "Momentum"), _TRAINING),
    **dict.fromkeys(("DFT", "MelWeightMatrix", "STFT"), _SPECTRUM),
    **dict.fromkeys(("DeformConv", "MaxRoiPool", "MaxUnpool", "RoiAlign", "TensorScatter", "TfIdfVectorizer"), _PLACES),
    **dict.fromkeys(
        ("CausalConvWithState", "LinearAttention"),
        "onnx cannot inline its body when an optional operand is left out",
    ),
    "BitCast": "it reinterprets the bits of a number, which a share does not have",
    "ImageDecoder": "it decodes a file; decode before sharing",
}  # fmt: skip
