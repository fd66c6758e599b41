# SPDX-License-Identifier: Apache-2.0
"""Engines: one interface, several ways to compute on shares."""
