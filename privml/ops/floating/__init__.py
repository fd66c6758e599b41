# SPDX-License-Identifier: Apache-2.0
"""The rows of the operator table for tensors of Float formats, by family; ``rules`` loads them all."""
