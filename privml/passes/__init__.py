# SPDX-License-Identifier: Apache-2.0
"""Rewrites of a program's graph: each takes an ``fx.GraphModule`` and returns one, ``verify`` runs after each."""

from privml.passes.fold_batchnorm import fold_batchnorm
from privml.passes.maxpool_before_monotone import maxpool_before_monotone
from privml.passes.verify import verify

__all__ = ["fold_batchnorm", "maxpool_before_monotone", "verify"]
