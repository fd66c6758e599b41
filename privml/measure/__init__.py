# SPDX-License-Identifier: Apache-2.0
"""Measurements and predictions: all parties on this machine, benchmarks, the zoo, experiments, times and advice."""
