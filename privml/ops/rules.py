# SPDX-License-Identifier: Apache-2.0
"""Importing this module registers the rows of all families in the operator table."""

from privml.ops import (  # noqa: F401
    activation,
    averaging,
    choices,
    compare,
    convolution,
    creation,
    derived,
    division,
    dropout,
    elementary,
    exponential,
    in_place,
    layer_norm,
    leak,
    linear,
    losses,
    maximum,
    moments,
    normalization,
    optimizers,
    pooling,
    product,
    resize,
    smooth,
    softmax,
    sorting,
    structural,
    trigonometric,
)
from privml.ops.floating import rules  # noqa: F401
