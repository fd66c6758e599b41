# SPDX-License-Identifier: Apache-2.0
"""Shipped models under secure inference beside the clear: measurements, and the cards, page and report made of them."""
