# SPDX-License-Identifier: Apache-2.0
"""Preparation of features in ai.onnx.ml: scaling, selection, encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from onnx import numpy_helper

from privml.graph.onnx.linear_models import as_float, floats, label_of
from privml.graph.onnx.table import ML, Node, Run, operator
from privml.graph.onnx.values import integers


@operator("Scaler", domain=ML)
def scaler(node: Node) -> Run:
    node.parameter("offset", floats(node, "offset", [0.0]))
    node.parameter("scale", floats(node, "scale", [1.0]))
    return lambda x, offset, scale: (as_float(x) - offset) * scale


@operator("Normalizer", domain=ML)
def normalizer(node: Node) -> Run:
    norm = node.choice("norm", "MAX", "MAX", "L1", "L2")

    def run(x: torch.Tensor) -> torch.Tensor:
        x = as_float(x)
        if norm == "MAX":
            return x / x.amax(-1, keepdim=True)
        if norm == "L1":
            return x / x.abs().sum(-1, keepdim=True)
        return x * torch.rsqrt((x * x).sum(-1, keepdim=True))

    return run


@operator("Binarizer", domain=ML)
def binarizer(node: Node) -> Run:
    node.parameter("threshold", np.array([node.attribute("threshold", 0.0)], np.float32))
    return lambda x, threshold: (x > threshold).to(x.dtype)


@operator("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(node: Node) -> Run:
    """Columns at public places, or an element of a public list at a secret place."""
    table = node.value(0)
    if table is not None and not node.inputs[1].static:
        return _element(node, table.reshape(-1))
    places = node.value(1)
    if places is None:
        node.refuse("the columns that it picks must be constant; secret ones would be revealed")
    node.drop(1)

    def run(x: torch.Tensor, _: None) -> torch.Tensor:
        picked = x.index_select(-1, torch.tensor(integers(places)))
        return picked.reshape(1, -1) if x.dim() == 1 else picked

    return run


def _element(node: Node, table: np.ndarray) -> Run:
    """As shape [1, n] of an index of n elements, as ONNX wants it."""
    node.drop(0)
    if table.dtype.kind in "OUS":
        node.labels[0] = [v.decode() if isinstance(v, bytes) else str(v) for v in table]
        return lambda _, index: index.reshape(1, -1)
    labels = [v.item() for v in table]
    if not all(float(v).is_integer() for v in labels):
        node.refuse("it looks up fractions at secret places; only whole numbers and strings can be")
    return lambda _, index: label_of(index.reshape(1, -1), [int(v) for v in labels])


@operator("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: Node) -> Run:
    sizes = node.attribute("inputdimensions")

    def run(*parts: torch.Tensor) -> torch.Tensor:
        flat = [as_float(p.reshape(p.shape[0], -1) if p.dim() > 1 else p.reshape(1, -1)) for p in parts]
        if sizes:
            flat = [p[:, :size] for p, size in zip(flat, sizes, strict=True)]
        return torch.cat(flat, 1)

    return run


@operator("Imputer", domain=ML)
def imputer(node: Node) -> Run:
    whole = node.attribute("imputed_value_int64s")
    values = whole or node.attribute("imputed_value_floats")
    missing = node.attribute("replaced_value_int64" if whole else "replaced_value_float", 0)
    node.ignore("replaced_value_int64", "replaced_value_float")

    def run(x: torch.Tensor) -> torch.Tensor:
        filled = torch.tensor(values, dtype=x.dtype)
        return torch.where(torch.isnan(x) if missing != missing else x == missing, filled, x)

    return run


@operator("OneHotEncoder", domain=ML)
def one_hot_encoder(node: Node) -> Run:
    categories = node.attribute("cats_int64s")
    if not categories:
        node.refuse("cats_strings: strings are not supported")
    node.ignore("zeros")  # an unknown category is never an error: that would reveal it
    return lambda x: (x.unsqueeze(-1) == torch.tensor(categories)).float()


@operator("LabelEncoder", domain=ML)
def label_encoder(node: Node) -> Run:
    """Numbers to numbers: each key is compared, and the value of the one that is equal taken."""
    keys, values, default = _mapping(node)
    if node.attribute("keys_strings") or node.attribute("values_strings") or values.dtype.kind in "OUS":
        node.refuse("strings are not supported")
    node.ignore("default_string", "default_int64", "default_float")

    def run(x: torch.Tensor) -> torch.Tensor:
        found = (x.unsqueeze(-1) == torch.from_numpy(keys).to(x.dtype)).to(torch.from_numpy(values).dtype)
        return (found * torch.from_numpy(values - default)).sum(-1) + default.item()

    return run


def _mapping(node: Node) -> tuple[np.ndarray, np.ndarray, Any]:
    """Keys, values, and the value of anything else."""

    def read(kind: str) -> np.ndarray:
        tensor = node.attribute(f"{kind}_tensor")
        if tensor is not None:
            return numpy_helper.to_array(tensor)
        for name, dtype in (("int64s", np.int64), ("floats", np.float32), ("strings", object)):
            value = node.attribute(f"{kind}_{name}")
            if value:
                return np.array(value, dtype)
        node.refuse(f"{kind} are missing")

    keys, values = read("keys"), read("values")
    given = node.attribute("default_tensor")
    if given is not None:
        return keys, values, numpy_helper.to_array(given).reshape(-1)[0]
    if values.dtype.kind == "f":
        return keys, values, np.float32(node.attribute("default_float", -0.0))
    return keys, values, np.int64(node.attribute("default_int64", -1))
