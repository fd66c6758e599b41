# SPDX-License-Identifier: Apache-2.0
"""Reading initializers, inside the file or beside it, apart from the graph: graphs stay small to transform."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor, uses_external_data

from privml.errors import CorruptFile
from privml.graph.onnx.values import FLOATING

# Floats above this many bytes leave the graph; what shape inference may want to read is far smaller.
DETACH_ABOVE = 4096


def read_initializer(tensor: onnx.TensorProto, folder: Path | None) -> np.ndarray:
    """The array of an initializer; CorruptFile when its data is missing or of the wrong size."""
    try:
        if uses_external_data(tensor):
            tensor = _external(tensor, folder)
        return numpy_helper.to_array(tensor)
    except CorruptFile:
        raise
    except Exception as error:
        raise CorruptFile(f"initializer {tensor.name!r}: {error}") from None


def _external(tensor: onnx.TensorProto, folder: Path | None) -> onnx.TensorProto:
    if folder is None:
        raise CorruptFile(
            f"initializer {tensor.name!r} lies in a file beside the model "
            f"({ExternalDataInfo(tensor).location!r}); pass the model's path instead of its content"
        )
    filled = onnx.TensorProto()
    filled.CopyFrom(tensor)
    load_external_data_for_tensor(filled, str(folder))
    filled.data_location = onnx.TensorProto.DEFAULT
    del filled.external_data[:]
    return filled


def files_beside(path: Path) -> list[Path]:
    """The files in which an ONNX file keeps weights outside itself, as far as they are there; none of a file that is no
    ONNX."""
    try:
        model = onnx.load_model(path, load_external_data=False)
    except Exception:  # the caller says what is wrong
        return []
    tensors = [tensor for tensor in model.graph.initializer if uses_external_data(tensor)]
    found = {path.parent / ExternalDataInfo(tensor).location for tensor in tensors}
    return sorted(file for file in found if file.is_file() and file.resolve().is_relative_to(path.parent.resolve()))


def detach(model: onnx.ModelProto, folder: Path | None) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A copy of the model in which large float initializers are inputs, and the arrays of all initializers."""
    arrays: dict[str, np.ndarray] = {}
    skeleton = onnx.ModelProto()
    for part in ("opset_import", "functions", "metadata_props"):
        getattr(skeleton, part).extend(getattr(model, part))
    skeleton.ir_version = model.ir_version
    graph, source = skeleton.graph, model.graph
    graph.name = source.name or "graph"
    graph.node.extend(source.node)
    graph.output.extend(source.output)
    for tensor in source.sparse_initializer:
        raise CorruptFile(f"sparse initializer {tensor.values.name!r}: only dense initializers are read")
    names = {tensor.name for tensor in source.initializer}
    graph.input.extend(value for value in source.input if value.name not in names)
    for tensor in source.initializer:
        if tensor.name in arrays:
            raise CorruptFile(f"initializer {tensor.name!r} is given twice")
        array = arrays[tensor.name] = read_initializer(tensor, folder)
        if tensor.data_type in FLOATING and array.nbytes > DETACH_ABOVE:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
        elif uses_external_data(tensor):
            graph.initializer.append(_external(tensor, folder))
        else:
            graph.initializer.append(tensor)
    return skeleton, arrays
