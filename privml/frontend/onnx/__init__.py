# SPDX-License-Identifier: Apache-2.0
"""ONNX models as PyTorch modules: one torch function per node, on public and on secret tensors alike."""

from privml.frontend.onnx.load import TARGET_OPSET
from privml.frontend.onnx.module import OnnxModule
from privml.frontend.onnx.table import supported_operators

__all__ = ["TARGET_OPSET", "OnnxModule", "supported_operators"]
