# SPDX-License-Identifier: Apache-2.0
"""What probabilistic truncations of a session may get wrong, added up."""

from __future__ import annotations

import warnings

# A session whose truncations may go wrong more often than this says so.
NOTICEABLE = 2.0**-7


class TruncationsMayFail(UserWarning):
    """Values of a session are so near to the ends of their rings that probabilistic truncations may be wrong by far."""


def added(total: float, failure: float) -> float:
    """``total`` and ``failure``, bounds of probabilities; warns when their sum becomes noticeable."""
    together = total + failure
    if total <= NOTICEABLE < together:
        warnings.warn(
            "truncation=probabilistic: a truncated value of this session may be wrong by far, with a probability that "
            f"is only known to be below {min(together, 1.0):.2g}; truncation=auto takes that protocol if it is safe",
            TruncationsMayFail,
            stacklevel=3,
        )
    return together
