# SPDX-License-Identifier: Apache-2.0
"""The rows of the operator table, by family; ``rules`` loads them all."""
