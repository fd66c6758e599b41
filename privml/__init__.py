# SPDX-License-Identifier: Apache-2.0
"""Secure two- and three-party neural networks: secret tensors are torch tensors."""

from privml import errors, formats
from privml.context import Numerics, Session, node
from privml.local_session import local
from privml.sharing import reveal, secret, share
from privml.tensor import SecretTensor

__all__ = [
    "Numerics",
    "SecretTensor",
    "Session",
    "errors",
    "formats",
    "local",
    "node",
    "reveal",
    "secret",
    "share",
]
