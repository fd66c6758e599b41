# SPDX-License-Identifier: Apache-2.0
"""The release, which both parties of a session compare; the same as in pyproject.toml."""

VERSION = "0.1.0"
