# SPDX-License-Identifier: Apache-2.0
"""Predictions before a query runs: its time on this machine and a link, and which engine, numbers and
transfers to choose."""
