# SPDX-License-Identifier: Apache-2.0
"""Experiments: what is kept of each run, and where it is tracked."""
