# SPDX-License-Identifier: Apache-2.0
"""Importing this module registers all rules."""

from privml.frontend.onnx import (
    activation,
    convolution,
    elementwise,
    indexing,
    matrix,
    normalization,
    pooling,
    reduce,
    shape,
)

__all__ = [
    "activation",
    "convolution",
    "elementwise",
    "indexing",
    "matrix",
    "normalization",
    "pooling",
    "reduce",
    "shape",
]
