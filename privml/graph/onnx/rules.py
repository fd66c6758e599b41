# SPDX-License-Identifier: Apache-2.0
"""Importing this module registers all rules."""

from privml.graph.onnx import (
    activation,
    attention,
    convolution,
    elementwise,
    indexing,
    linear_models,
    matrix,
    ml_data,
    normalization,
    pooling,
    recurrent,
    reduce,
    resize,
    shape,
    support_vectors,
    trees,
)

__all__ = [
    "activation",
    "attention",
    "convolution",
    "elementwise",
    "indexing",
    "linear_models",
    "matrix",
    "ml_data",
    "normalization",
    "pooling",
    "recurrent",
    "reduce",
    "resize",
    "shape",
    "support_vectors",
    "trees",
]
