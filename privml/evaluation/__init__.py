# SPDX-License-Identifier: Apache-2.0
"""Compares secure with clear inference of the shipped models: measurements, cards, the page and the report."""
