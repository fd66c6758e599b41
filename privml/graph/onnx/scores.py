# SPDX-License-Identifier: Apache-2.0
"""What the classifiers and regressors of ai.onnx.ml do with their scores: labels and post transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from privml.graph.onnx.table import Node

Transform = Callable[[torch.Tensor], torch.Tensor]


def post_transform(node: Node) -> tuple[str, Transform]:
    """The node's post_transform, by name and as a function of scores [n, classes]."""
    name = node.choice("post_transform", "NONE", "NONE", "LOGISTIC", "SOFTMAX")
    functions: dict[str, Transform] = {
        "NONE": lambda scores: scores,
        "LOGISTIC": torch.sigmoid,
        "SOFTMAX": lambda scores: torch.softmax(scores, -1),
    }
    return name, functions[name]


def class_labels(node: Node, integers: str) -> list[int]:
    """The class labels as integers; strings are computed as their index, and looked up once it is revealed."""
    strings = node.attribute("classlabels_strings")
    if strings:
        node.labels[0] = list(strings)
        return list(range(len(strings)))
    labels = node.attribute(integers)
    if not labels:
        node.refuse(f"{integers} is missing")
    return list(labels)


def label_of(index: torch.Tensor, labels: list[int]) -> torch.Tensor:
    """labels[index] for an index [n], without looking up a secret position."""
    if labels == list(range(len(labels))):
        return index
    places = index.unsqueeze(-1) == torch.arange(len(labels))
    return (places.to(torch.int64) * torch.tensor(labels)).sum(-1)


def binary_label(positive: torch.Tensor, labels: list[int]) -> torch.Tensor:
    """labels[1] where ``positive`` [n] holds, labels[0] elsewhere."""
    return positive.to(torch.int64) * (labels[1] - labels[0]) + labels[0]


def as_float(x: torch.Tensor) -> torch.Tensor:
    """The features as floating point: integers become float32."""
    return x if x.dtype.is_floating_point else x.float()


def floats(node: Node, name: str, default: list[float] | None = None) -> np.ndarray | None:
    """A float attribute, as a list or (``name``_as_tensor) as a tensor."""
    tensor = node.attribute(f"{name}_as_tensor")
    if tensor is not None:
        from onnx import numpy_helper

        return numpy_helper.to_array(tensor).reshape(-1)
    value: Any = node.attribute(name, default)
    return None if not value else np.array(value, np.float32)
