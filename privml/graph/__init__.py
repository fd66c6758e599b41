# SPDX-License-Identifier: Apache-2.0
"""Models as graphs: front ends (PyTorch, ONNX, scikit-learn), passes, files, and how a graph runs."""
