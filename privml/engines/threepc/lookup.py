# SPDX-License-Identifier: Apache-2.0
"""Tables that all parties know at an index that no party knows.

A table of 2^k entries: parts of the one-hot vector of r are dealt, which parties 0 and 1 turn by their public m;
2^k elements dealt per index, whatever the number of tables, and one element each way per entry.
Source: MIZAR, Section 4.2.
"""

from __future__ import annotations

import torch

from privml.engines.shares import Share
from privml.engines.threepc.party import Party
from privml.engines.threepc.products import Opening


def lookup_begun(party: Party, tables: torch.Tensor, index: Share, in_bits: int, out_bits: int) -> Opening:
    """tables[:, index] for public ``tables`` [k, 2^in_bits], in_bits <= 8: a share of shape [k, ...]."""
    (m, r), size = index, 1 << in_bits
    shape = (*r.shape, size)
    hot = None
    if party.deals:
        hot = r.new_zeros(shape).scatter_(-1, (r & (size - 1)).unsqueeze(-1), 1)
    dealt = party.deal(hot, shape, out_bits)
    part = None
    if not party.deals:
        part = party.kernels.lookup_shares(tables, m, dealt, out_bits)
    return Opening(part, (tables.shape[0], *r.shape), out_bits)
