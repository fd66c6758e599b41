# SPDX-License-Identifier: Apache-2.0
"""How large the constants may become that a model computes from its own numbers: a file of a few bytes must not fill
the memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.shape_inference import infer_node_outputs

from privml.graph.onnx.table import Refusal

# Elements that the constants of a model may have beyond those of the operands they are computed from, together.
MOST_GROWN = 1 << 26
# Operands that say how large a result becomes are shapes, counts and limits.
_SAYS_SIZES = 1024


class Growth:
    """Counts what folding adds; ``expect`` raises Refusal before a node's results would be too large."""

    def __init__(self, opsets: Sequence[onnx.OperatorSetIdProto]) -> None:
        self._opsets = list(opsets)
        self._left = MOST_GROWN

    def expect(self, proto: onnx.NodeProto, operands: Sequence[np.ndarray | None]) -> None:
        """``operands``: the node's, all known; None for those left out."""
        given = sum(array.size for array in operands if array is not None)
        self._left -= max(_elements(proto, operands, self._opsets) - given, 0)
        if self._left < 0:
            raise Refusal(f"the constants that the model computes have more than {MOST_GROWN} elements")


def _elements(
    proto: onnx.NodeProto, operands: Sequence[np.ndarray | None], opsets: list[onnx.OperatorSetIdProto]
) -> int:
    """Elements of a node's results, as ONNX infers them; 0 where it cannot."""
    version = next((o.version for o in opsets if o.domain == proto.domain), 1)
    try:
        named = {name: a for name, a in zip(proto.input, operands, strict=True) if name and a is not None}
        kinds = {name: helper.np_dtype_to_tensor_dtype(a.dtype) for name, a in named.items()}
        types = {name: helper.make_tensor_type_proto(kinds[name], a.shape) for name, a in named.items()}
        data = {name: numpy_helper.from_array(a, name) for name, a in named.items() if a.size <= _SAYS_SIZES}
        schema = onnx.defs.get_schema(proto.op_type, version, proto.domain)
        made = infer_node_outputs(schema, proto, types, data, opset_imports=opsets)
    except Exception:
        return 0
    return sum(math.prod(d.dim_value for d in kind.tensor_type.shape.dim) for kind in made.values())
