# SPDX-License-Identifier: Apache-2.0
"""ONNX models as PyTorch modules: one torch function per node, on public and on secret tensors alike."""
