# SPDX-License-Identifier: Apache-2.0
"""Serving and querying programs between processes."""
