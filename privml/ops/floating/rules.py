# SPDX-License-Identifier: Apache-2.0
"""Importing this module registers the rows for tensors of Float formats in the operator table.

Where a Float meets another format, the result is a Float: fixed point and integers are rounded to it.
"""

from privml.ops.floating import (  # noqa: F401
    activation,
    arithmetic,
    compare,
    functions,
    moments,
    pooling,
    product,
    structural,
)
