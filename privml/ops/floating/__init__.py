# SPDX-License-Identifier: Apache-2.0
"""The rows of the operator table for tensors of Float formats, by family; importing this package registers them.

Where a Float meets another format, the result is a Float: fixed point and integers are rounded to it.
"""

from privml.ops.floating import activation, arithmetic, compare, functions, moments, pooling, product, structural

__all__ = ["activation", "arithmetic", "compare", "functions", "moments", "pooling", "product", "structural"]
