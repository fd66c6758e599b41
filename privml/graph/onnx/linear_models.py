# SPDX-License-Identifier: Apache-2.0
"""Linear models of ai.onnx.ml, whose coefficients are parameters, and what all its classifiers and regressors do with
their scores: labels and post transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from onnx import numpy_helper

from privml.graph.onnx.table import ML, Node, Run, operator

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
        return numpy_helper.to_array(tensor).reshape(-1)
    value: Any = node.attribute(name, default)
    return None if not value else np.array(value, np.float32)


# ---- the models
@operator("LinearRegressor", domain=ML)
def linear_regressor(node: Node) -> Run:
    targets = node.attribute("targets", 1)
    _, transform = post_transform(node)
    node.parameter("coefficients", floats(node, "coefficients").reshape(targets, -1))
    intercepts = floats(node, "intercepts")
    if intercepts is not None:
        node.parameter("intercepts", intercepts)

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        return transform(torch.nn.functional.linear(as_float(x).float(), weight, bias))

    return run


@operator("LinearClassifier", domain=ML)
def linear_classifier(node: Node) -> Run:
    labels = class_labels(node, "classlabels_ints")
    name, transform = post_transform(node)
    node.ignore("multi_class")  # the coefficients say it
    intercepts = floats(node, "intercepts")
    coefficients = floats(node, "coefficients")
    one_score = intercepts is not None and len(intercepts) == 1 and len(labels) == 2
    if one_score and name == "SOFTMAX":
        node.refuse("post_transform=SOFTMAX of a single score is not supported")
    rows = len(labels) if intercepts is None else len(intercepts)
    coefficients = coefficients.reshape(rows, -1)
    if rows == len(labels) == 2 and not node.wants(1):  # the label is the sign of the difference
        one_score, coefficients = True, coefficients[1:] - coefficients[:1]
        intercepts = None if intercepts is None else intercepts[1:] - intercepts[:1]
    node.parameter("coefficients", coefficients)
    if intercepts is not None:
        node.parameter("intercepts", intercepts)

    def run(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Any:
        scores = torch.nn.functional.linear(as_float(x).float(), weight, bias)
        if one_score:
            label = binary_label(scores.squeeze(-1) > 0, labels)
            scores = transform(scores)
            return label, torch.cat([1 - scores, scores], -1)
        return label_of(scores.argmax(-1), labels), transform(scores)

    return run


def two_columns(score: torch.Tensor, transform: str) -> torch.Tensor:
    """The scores [n, 2] of both classes, of a score [n, 1] for the second: opposite, or probabilities."""
    if transform == "LOGISTIC":
        positive = torch.sigmoid(score)
        return torch.cat([1 - positive, positive], -1)
    return torch.cat([-score, score], -1)
