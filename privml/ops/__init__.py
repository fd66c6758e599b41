# SPDX-License-Identifier: Apache-2.0
"""The rows of the operator table, by family; importing this package registers them all."""

from privml.ops import (
    activation,
    averaging,
    compare,
    convolution,
    creation,
    derived,
    dropout,
    exponential,
    in_place,
    leak,
    linear,
    maximum,
    normalization,
    pooling,
    product,
    resize,
    structural,
    trigonometric,
)

__all__ = [
    "activation",
    "averaging",
    "compare",
    "convolution",
    "creation",
    "derived",
    "dropout",
    "exponential",
    "in_place",
    "leak",
    "linear",
    "maximum",
    "normalization",
    "pooling",
    "product",
    "resize",
    "structural",
    "trigonometric",
]
