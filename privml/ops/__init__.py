# SPDX-License-Identifier: Apache-2.0
"""The rows of the operator table, by family; importing this package registers them all."""

from privml.ops import (
    activation,
    compare,
    convolution,
    creation,
    derived,
    in_place,
    leak,
    linear,
    normalization,
    pooling,
    product,
    structural,
)

__all__ = [
    "activation",
    "compare",
    "convolution",
    "creation",
    "derived",
    "in_place",
    "leak",
    "linear",
    "normalization",
    "pooling",
    "product",
    "structural",
]
