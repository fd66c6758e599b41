# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of the operators: two processes over loopback TCP, one JSON object per operator."""
