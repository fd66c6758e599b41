# SPDX-License-Identifier: Apache-2.0
"""A program's graph as plain data (strings, numbers, lists, objects) and back.

The body is an object of ``numerics`` (bits, scale, exp, and for floats floating and dot), ``constants`` (name -> dtype,
shape, base64 of the little-endian elements), ``nodes`` in the order of execution, ``outputs`` (names of nodes), and
where outputs are indices of strings ``labels`` (for each output a list of them, or null). A
node has ``name``, ``kind`` (``input``, ``attribute``, ``call``), for attributes ``target`` (a weight's or constant's
name), for calls ``target`` (an operator's name), ``args`` and ``kwargs``; ``secret``; if it is a tensor ``shape`` (null
where it varies) and ``dtype``; secrets also ``layer`` and ``format``, possibly ``request``, ``working`` and ``fixed``.
``state``, if calls of a session keep something for the next one, has for each of the last inputs and outputs ``name``,
``grows`` (a dimension or null) and ``most`` (the length along it); see ``privml.graph.state``.
``client``, if the client computes something by itself first, has ``constants``, ``nodes`` and ``outputs`` too, without
formats: its outputs are the program's inputs. Within arguments, objects of one key stand for what JSON does not know:
``node``, ``dtype``, ``layout``, ``device``, ``memory_format``, ``float`` (inf, -inf).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import fx

from privml.errors import ConfigError, CorruptFile, UnsupportedOperator
from privml.formats import EXPONENTIALS, FORMATS, Boolean, Float, Format, Integer, Numerics
from privml.graph.client_part import ClientPart
from privml.graph.ir import DTYPES, attribute, dtype_of, name_of, shape_of, target_of, tensor_of
from privml.graph.state import StateSpec, states_of

_LAYOUTS = {"strided": torch.strided}
_MEMORY = {"contiguous_format": torch.contiguous_format, "preserve_format": torch.preserve_format}
_MOST_NOTES, _LONGEST_NOTE = 256, 2000
_KINDS = {"input": "placeholder", "attribute": "get_attr", "call": "call_function"}
# What plain data that is no program can lead to.
_NO_PROGRAM = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError, OverflowError, RuntimeError,
)  # fmt: skip
_FORMAT_KEYS = ("format", "request", "working", "fixed")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,255}\Z")
_PATH = re.compile(r"[A-Za-z0-9_.]{1,512}\Z")


def digest(value: Any) -> str:
    """SHA-256 in hex of the canonical JSON of ``value``."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def formats_of(body: Mapping[str, Any]) -> Any:
    """The part of a body that says what the ring elements stand for."""
    keys = ("name", *_FORMAT_KEYS)
    return [body["numerics"], [{k: node[k] for k in keys if k in node} for node in body["nodes"]]]


# ---- to plain data
def body_of(
    module: fx.GraphModule,
    numerics: Numerics,
    labels: Sequence[Sequence[str] | None] = (),
    client: fx.GraphModule | None = None,
    state: Sequence[Mapping[str, Any]] = (),
    notes: Sequence[str] = (),
) -> tuple[dict[str, Any], dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Body, weights and the client's tables of a graph with formats. ``labels``: of each output the strings that it
    indexes; ``client``: the graph of what the client computes before; ``state``: see above;
    ``notes``: what parties should know of the program."""
    part, weights = _encode_graph(module)
    numbers: dict[str, Any] = {"bits": numerics.bits, "scale": numerics.scale, "exp": numerics.exp}
    if numerics.floating is not None:
        numbers["floating"] = asdict(numerics.floating)
    if numerics.dot != "fused":
        numbers["dot"] = numerics.dot
    body, tables = {"numerics": numbers, **part}, {}
    if client is not None:
        body["client"], tables = _encode_graph(client)
    if state:
        body["state"] = [dict(entry) for entry in state]
    if notes:
        body["notes"] = list(notes)
    if any(names is not None for names in labels):
        body["labels"] = [None if names is None else list(names) for names in labels]
    return body, weights, tables


def _encode_graph(module: fx.GraphModule) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Constants, nodes and outputs of a graph, and its weights."""
    weights: dict[str, torch.Tensor] = {}
    constants: dict[str, Any] = {}
    nodes, outputs = [], []
    for node in module.graph.nodes:
        if node.op == "output":
            outputs = [result.name for result in node.args[0]]
            continue
        if node.op == "get_attr":
            value = attribute(module, node.target).detach()
            if node.meta.get("secret"):
                weights[node.target] = value.clone().contiguous()
            else:
                constants[node.target] = _constant(value)
        nodes.append(_encode_node(node))
    return {"constants": constants, "nodes": nodes, "outputs": outputs}, weights


def _encode_node(node: fx.Node) -> dict[str, Any]:
    kind = next(kind for kind, op in _KINDS.items() if op == node.op)
    result: dict[str, Any] = {"name": node.name, "kind": kind, "secret": bool(node.meta.get("secret"))}
    if kind == "attribute":
        result["target"] = node.target
    if kind == "call":
        result["target"] = name_of(node.target)
        result["args"] = [_encode(a) for a in node.args]
        result["kwargs"] = {k: _encode(v) for k, v in node.kwargs.items()}
    if tensor_of(node) is not None:
        result["shape"] = list(shape_of(node))
        result["dtype"] = str(dtype_of(node)).removeprefix("torch.")
    if node.meta.get("secret"):
        result["layer"] = node.meta.get("layer", node.name)
        for key in _FORMAT_KEYS:
            if node.meta.get(key) is not None:
                fmt = node.meta[key]
                result[key] = {"type": type(fmt).__name__, **asdict(fmt)}
    return result


def _encode(value: Any) -> Any:
    if isinstance(value, fx.Node):
        return {"node": value.name}
    if isinstance(value, (list, tuple)):
        return [_encode(v) for v in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"float": "inf" if value > 0 else "-inf"}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for key, kind in (("dtype", torch.dtype), ("layout", torch.layout), ("memory_format", torch.memory_format)):
        if isinstance(value, kind):
            return {key: str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": "cpu"}
    raise ConfigError(f"an argument of type {type(value).__name__} cannot be stored in a program")


def _constant(value: torch.Tensor) -> dict[str, Any]:
    value = value.cpu().contiguous()
    data = value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
    return {
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": list(value.shape),
        "data": base64.b64encode(data).decode(),
    }


# ---- and back
def graph_of(body: Mapping[str, Any]) -> tuple[fx.Graph, dict[str, torch.Tensor], Numerics]:
    """Graph, constants and numerics; CorruptFile for what no program holds, UnsupportedOperator for an operator that
    this release does not know."""
    try:
        return _graph_of(body)
    except (CorruptFile, UnsupportedOperator):
        raise
    except _NO_PROGRAM as error:
        raise CorruptFile(f"not a program of privml: {type(error).__name__}: {error}") from error


def _graph_of(body: Mapping[str, Any]) -> tuple[fx.Graph, dict[str, torch.Tensor], Numerics]:
    if set(body) - {"labels", "client", "state", "notes"} != {"numerics", "constants", "nodes", "outputs"}:
        raise CorruptFile(f"a program's body has other parts than {sorted(body)}")
    numerics = _decode_numerics(body["numerics"])
    graph, constants, results = _decode_graph(body, True)
    if not all(node.meta["secret"] and "shape" in node.meta for node in results):
        raise CorruptFile("an output of the program is not a secret tensor")
    if "notes" in body:
        _check_notes(body["notes"])
    if "labels" in body:
        _check_labels(body["labels"], len(results))
    return graph, constants, numerics


def kept_of(body: Mapping[str, Any], graph: fx.Graph) -> tuple[StateSpec, ...]:
    """What calls of a session keep for the next one; errors as of ``graph_of``."""
    if "state" not in body:
        return ()
    try:
        entries = body["state"]
        if not entries or any(set(entry) != {"name", "grows", "most"} for entry in entries):
            raise CorruptFile("each state of a program must have a name and declare how it grows")
        return states_of(graph, entries)
    except CorruptFile:
        raise
    except _NO_PROGRAM as error:
        raise CorruptFile(f"not a program of privml: {type(error).__name__}: {error}") from error


def client_of(body: Mapping[str, Any]) -> ClientPart | None:
    """What the client computes before a program; errors as of ``graph_of``."""
    if "client" not in body:
        return None
    try:
        part = body["client"]
        if set(part) != {"constants", "nodes", "outputs"}:
            raise CorruptFile(f"the client's part of a program has other parts than {sorted(part)}")
        graph, constants, results = _decode_graph(part, False)
        entered = [entry for entry in body["nodes"] if entry["kind"] == "input"]
        entered = entered[: len(entered) - len(body.get("state", ()))]  # a state is no input of the client's
        kinds = [(shape_of(node), str(dtype_of(node)).removeprefix("torch.")) for node in results]
        if kinds != [(tuple(entry["shape"]), entry["dtype"]) for entry in entered]:
            raise CorruptFile("the client's part of a program does not make the inputs that the program takes")
    except (CorruptFile, UnsupportedOperator):
        raise
    except _NO_PROGRAM as error:
        raise CorruptFile(f"not a program of privml: {type(error).__name__}: {error}") from error
    return ClientPart(graph, constants)


def _decode_graph(
    part: Mapping[str, Any], formats: bool
) -> tuple[fx.Graph, dict[str, torch.Tensor], tuple[fx.Node, ...]]:
    constants = {_matching(_PATH, name): _decode_constant(c) for name, c in part["constants"].items()}
    graph = fx.Graph()
    nodes: dict[str, fx.Node] = {}
    for entry in part["nodes"]:
        name = _matching(_NAME, entry["name"])
        if name in nodes:
            raise CorruptFile(f"two nodes are called {name!r}")
        nodes[name] = _decode_node(graph, entry, nodes, constants, formats)
    if not part["outputs"]:
        raise CorruptFile("the program has no outputs")
    results = tuple(nodes[name] for name in part["outputs"])
    graph.output(results)
    return graph, constants, results


def _check_notes(notes: Any) -> None:
    """Texts of another party: short ones."""
    texts = isinstance(notes, list) and 0 < len(notes) <= _MOST_NOTES
    if not texts or not all(isinstance(note, str) and 0 < len(note) <= _LONGEST_NOTE for note in notes):
        raise CorruptFile("the notes of the program are not a list of short texts")


def _check_labels(labels: Any, outputs: int) -> None:
    given = [names for names in labels if names is not None]
    lists = len(labels) == outputs and all(isinstance(names, list) and names for names in given)
    if not lists or not all(isinstance(text, str) and len(text) <= 512 for names in given for text in names):
        raise CorruptFile("the labels of the outputs are not lists of short strings, one for each output")


def _decode_numerics(numbers: Mapping[str, Any]) -> Numerics:
    exp = numbers.get("exp", "auto")
    if exp not in EXPONENTIALS:
        raise CorruptFile(f"a program whose exponentials are {exp!r}")
    floating = numbers.get("floating")
    if floating is not None:
        floating = Float(_integer(floating["exponent"]), _integer(floating["mantissa"]))
    bits, scale = _integer(numbers["bits"]), _integer(numbers["scale"])
    return Numerics(bits, scale, exp=exp, floating=floating, dot=numbers.get("dot", "fused"))


def _decode_node(
    graph: fx.Graph,
    entry: Mapping[str, Any],
    nodes: Mapping[str, fx.Node],
    constants: Mapping[str, Any],
    formats: bool,
) -> fx.Node:
    """``formats``: whether secrets have them, as all but those of the client alone."""
    kind, name = entry["kind"], entry["name"]
    target, args, kwargs = name, (), {}
    if kind == "attribute":
        target = _matching(_PATH, entry["target"])
        if not entry["secret"] and target not in constants:
            raise CorruptFile(f"the constant {target!r} is missing")
    elif kind == "call":
        try:
            target = target_of(entry["target"])
        except KeyError:
            raise UnsupportedOperator(
                f"node {name!r} calls {str(entry['target'])[:100]!r}, which is no operator of this release; "
                "convert the model again, or update privml"
            ) from None
        args = tuple(_decode(a, nodes) for a in entry["args"])
        kwargs = {_matching(_NAME, k): _decode(v, nodes) for k, v in entry["kwargs"].items()}
    node = graph.create_node(_KINDS[kind], target, args, kwargs, name=name)
    node.meta["secret"] = entry["secret"] is True
    if "shape" in entry:
        node.meta["shape"] = tuple(None if n is None else _integer(n) for n in entry["shape"])
        node.meta["dtype"] = DTYPES[entry["dtype"]]
    elif kind != "call":
        raise CorruptFile(f"the {kind} {name!r} has no shape")
    if node.meta["secret"] and formats:
        node.meta["layer"] = str(entry["layer"])[:512]
        if "format" not in entry:
            raise CorruptFile(f"the secret {name!r} has no format")
        for key in _FORMAT_KEYS:
            if key in entry:
                node.meta[key] = _decode_format(entry[key])
    _check_secrecy(node)
    return node


def _check_secrecy(node: fx.Node) -> None:
    """A program cannot pass off a secret as public."""
    depends = any(parent.meta["secret"] for parent in node.all_input_nodes)
    secret = node.meta["secret"]
    # Ids may be public: the party that converts a model decides it, and the program says so.
    real = node.op == "placeholder" and node.meta["dtype"].is_floating_point
    wrong = (real and not secret) or (node.op == "call_function" and "shape" in node.meta and depends != secret)
    if wrong:
        raise CorruptFile(f"node {node.name!r} is declared {'secret' if secret else 'public'}, but is not")


def _decode(value: Any, nodes: Mapping[str, fx.Node]) -> Any:
    if isinstance(value, list):
        return [_decode(v, nodes) for v in value]
    if not isinstance(value, dict):
        return value
    ((key, content),) = value.items()
    if key == "node":
        return nodes[content]
    if key == "float":
        return {"inf": float("inf"), "-inf": float("-inf")}[content]
    if key == "device":
        return torch.device("cpu")
    return {"dtype": DTYPES, "layout": _LAYOUTS, "memory_format": _MEMORY}[key][content]


def _decode_format(value: Mapping[str, Any]) -> Format:
    kind = FORMATS[value["type"]]
    fields = {k: v for k, v in value.items() if k != "type"}
    for key, given in fields.items():
        fits = type(given) is bool if key == "nonnegative" else type(given) is int and 0 <= given <= 2**64
        if not (fits or key == "bound" and given is None):
            raise CorruptFile(f"a format whose {key} is {str(given)[:40]!r}")
    if kind in (Integer, Boolean) and not 1 <= fields["bits"] <= (64 if kind is Integer else 1):
        raise CorruptFile(f"a format of {fields['bits']} bits")
    return kind(**fields)


def _decode_constant(value: Mapping[str, Any]) -> torch.Tensor:
    dtype, shape = DTYPES[value["dtype"]], [_integer(n) for n in value["shape"]]
    data = bytearray(base64.b64decode(value["data"], validate=True))
    if not data and 0 not in shape:
        raise CorruptFile(f"a constant of shape {shape} has no elements")
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data, dtype=torch.uint8).view(dtype).reshape(shape)


def _integer(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**48:
        raise CorruptFile(f"expected a size, found {str(value)[:40]!r}")
    return value


def _matching(pattern: re.Pattern, text: Any) -> str:
    if not isinstance(text, str) or not pattern.match(text):
        raise CorruptFile(f"not a legal name: {str(text)[:100]!r}")
    return text
