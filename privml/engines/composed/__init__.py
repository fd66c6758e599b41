# SPDX-License-Identifier: Apache-2.0
"""Functions of fixed-point numbers made of an engine's comparisons, tables and products; see ``functions``."""
