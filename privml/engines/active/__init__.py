# SPDX-License-Identifier: Apache-2.0
"""The actively secure two-party engine."""
