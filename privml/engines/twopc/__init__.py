# SPDX-License-Identifier: Apache-2.0
"""The semi-honest two-party engine."""
