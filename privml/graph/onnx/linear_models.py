# SPDX-License-Identifier: Apache-2.0
"""Linear models of ai.onnx.ml. Coefficients are parameters."""

from __future__ import annotations

from typing import Any

import torch

from privml.graph.onnx.scores import as_float, binary_label, class_labels, floats, label_of, post_transform
from privml.graph.onnx.table import ML, Node, Run, operator


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
