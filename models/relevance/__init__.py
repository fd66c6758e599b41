# SPDX-License-Identifier: Apache-2.0
"""A network that scores how relevant an advertisement is, on features in the units in which they were counted."""

from .data import Cases, cases
from .model import Relevance
from .train import train

__all__ = ["Cases", "Relevance", "cases", "train"]
