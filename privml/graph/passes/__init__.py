# SPDX-License-Identifier: Apache-2.0
"""Rewrites of a program's graph: each takes an ``fx.GraphModule`` and returns one, ``verify`` runs after each."""

from privml.graph.passes.blend import blend
from privml.graph.passes.bound_masks import bound_masks
from privml.graph.passes.fold_batchnorm import fold_batchnorm
from privml.graph.passes.fold_constants import fold_weights, fold_zeros
from privml.graph.passes.fold_factors import fold_factors
from privml.graph.passes.fold_public import fold_public
from privml.graph.passes.masks_last import masks_last
from privml.graph.passes.maxpool_before_monotone import maxpool_before_monotone
from privml.graph.passes.merge_elementwise import merge_elementwise
from privml.graph.passes.merge_factors import merge_factors
from privml.graph.passes.merge_products import merge_products
from privml.graph.passes.split_powers import split_powers
from privml.graph.passes.tanh_by_sigmoid import tanh_by_sigmoid
from privml.graph.passes.verify import verify
from privml.graph.passes.whole_functions import whole_functions
from privml.graph.passes.whole_norms import whole_norms

__all__ = [
    "blend",
    "bound_masks",
    "fold_batchnorm",
    "fold_factors",
    "fold_public",
    "fold_weights",
    "fold_zeros",
    "masks_last",
    "maxpool_before_monotone",
    "merge_elementwise",
    "merge_factors",
    "merge_products",
    "split_powers",
    "tanh_by_sigmoid",
    "verify",
    "whole_functions",
    "whole_norms",
]
