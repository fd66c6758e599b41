# SPDX-License-Identifier: Apache-2.0
"""The semi-honest three-party engine."""
