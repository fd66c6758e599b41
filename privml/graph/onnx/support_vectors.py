# SPDX-License-Identifier: Apache-2.0
"""Support vector machines of ai.onnx.ml. Support vectors and coefficients are parameters; their number is public."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from privml.graph.onnx.linear_models import (
    as_float,
    binary_label,
    class_labels,
    floats,
    label_of,
    post_transform,
    two_columns,
)
from privml.graph.onnx.table import ML, Node, Run, operator

# (x [n, features], vectors [m, features]) -> kernel values [n, m]
Kernel = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _kernel(node: Node) -> Kernel:
    kind = node.choice("kernel_type", "LINEAR", "LINEAR", "POLY", "RBF", "SIGMOID")
    gamma, constant, degree = (*(node.attribute("kernel_params") or []), 0.0, 0.0, 0.0)[:3]

    def dot(x: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        return x @ vectors.t()

    def rbf(x: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        squares = (x * x).sum(-1, keepdim=True) + (vectors * vectors).sum(-1)
        return torch.exp(-gamma * (squares - 2 * dot(x, vectors)))

    kernels: dict[str, Kernel] = {
        "LINEAR": dot,
        "POLY": lambda x, vectors: (gamma * dot(x, vectors) + constant) ** degree,
        "RBF": rbf,
        "SIGMOID": lambda x, vectors: torch.tanh(gamma * dot(x, vectors) + constant),
    }
    return kernels[kind]


@operator("SVMRegressor", domain=ML)
def svm_regressor(node: Node) -> Run:
    kernel, (_, transform) = _kernel(node), post_transform(node)
    supports, one_class = node.attribute("n_supports", 0), node.flag("one_class")
    coefficients = floats(node, "coefficients")
    if supports:
        node.parameter("support_vectors", floats(node, "support_vectors").reshape(supports, -1))
        node.parameter("coefficients", coefficients.reshape(supports, 1))
    else:
        node.ignore("support_vectors")
        node.parameter("coefficients", coefficients.reshape(1, -1))
    node.parameter("rho", floats(node, "rho", [0.0])[:1])

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        x = as_float(x).float()
        if supports:
            vectors, weight, rho = parameters
            score = kernel(x, vectors) @ weight + rho
        else:
            weight, rho = parameters
            score = kernel(x, weight) + rho
        return torch.where(score > 0, 1.0, -1.0) if one_class else transform(score)

    return run


def _pairs(coefficients: np.ndarray, counts: list[int]) -> np.ndarray:
    """Weights [vectors, pairs]: the decision between classes i < j sums over the vectors of both (LIBSVM's
    layout: row j - 1 of class i, row i of class j)."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = []
    for i in range(len(counts)):
        for j in range(i + 1, len(counts)):
            column = np.zeros(starts[-1], np.float32)
            mine, theirs = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            column[mine], column[theirs] = coefficients[j - 1, mine], coefficients[i, theirs]
            columns.append(column)
    return np.stack(columns, 1)


def _votes(decisions: torch.Tensor, classes: int) -> torch.Tensor:
    """How many of the decisions [n, pairs], between classes i < j and positive for i, each class has won."""
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    won = {pair: place for place, pair in enumerate(pairs)} | {(j, i): len(pairs) + p for p, (i, j) in enumerate(pairs)}
    columns = [won[i, j] for i in range(classes) for j in range(classes) if i != j]
    first = (decisions > 0).to(torch.int64)  # small integers: the votes are compared in a narrow ring
    votes = torch.cat([first, 1 - first], 1).index_select(1, torch.tensor(columns))
    return votes.reshape(-1, classes, classes - 1).sum(-1)


@operator("SVMClassifier", domain=ML)
def svm_classifier(node: Node) -> Run:
    labels = class_labels(node, "classlabels_ints")
    counts = node.attribute("vectors_per_class")
    if not counts:
        return _linear(node, labels)
    kernel, (name, transform) = _kernel(node), post_transform(node)
    classes = len(counts)
    if classes == 2 and name == "SOFTMAX" and not node.attribute("prob_a"):
        node.refuse("post_transform=SOFTMAX of a single score is not supported")
    coefficients = floats(node, "coefficients").reshape(classes - 1, -1)
    node.parameter("support_vectors", floats(node, "support_vectors").reshape(sum(counts), -1))
    node.parameter("coefficients", _pairs(coefficients, counts))
    node.parameter("rho", floats(node, "rho"))
    a, b = floats(node, "prob_a"), floats(node, "prob_b")
    probability = a is not None
    if probability and classes > 2:
        node.refuse("class probabilities of more than two classes need an iteration; convert the model without")
    if probability:
        node.parameter("prob_a", a)
        node.parameter("prob_b", b)

    def run(x: torch.Tensor, vectors: Any, weight: Any, rho: Any, *sigmoid: Any) -> Any:
        decisions = kernel(as_float(x).float(), vectors) @ weight + rho
        if probability:
            slope, shift = sigmoid
            first = torch.sigmoid(-(decisions * slope + shift))
            label = binary_label((decisions <= 0).squeeze(-1), labels)
            return label, transform(torch.cat([first, 1 - first], -1))
        if classes == 2:
            return binary_label((decisions <= 0).squeeze(-1), labels), two_columns(decisions, name)
        return label_of(_votes(decisions, classes).argmax(-1), labels), transform(decisions)

    return run


def _linear(node: Node, labels: list[int]) -> Run:
    """Without support vectors the coefficients are those of a linear classifier."""
    kernel, (_, transform) = _kernel(node), post_transform(node)
    node.ignore("support_vectors", "prob_a", "prob_b")
    node.parameter("coefficients", floats(node, "coefficients").reshape(len(labels), -1))
    node.parameter("rho", floats(node, "rho", [0.0])[:1])

    def run(x: torch.Tensor, weight: torch.Tensor, rho: torch.Tensor) -> Any:
        scores = kernel(as_float(x).float(), weight) + rho
        return label_of(scores.argmax(-1), labels), transform(scores)

    return run
