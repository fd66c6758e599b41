# SPDX-License-Identifier: Apache-2.0
"""Secure two- and three-party neural networks: secret tensors are torch tensors."""

from privml import errors, formats
from privml.context import Numerics, Session, node
from privml.local_session import local
from privml.sharing import reveal, secret, share
from privml.tensor import SecretTensor
from privml.version import VERSION as __version__

__all__ = [
    "Numerics",
    "SecretTensor",
    "Session",
    "__version__",
    "connect",
    "errors",
    "formats",
    "local",
    "node",
    "reveal",
    "secret",
    "share",
]


def __getattr__(name: str) -> object:
    if name == "connect":  # needs the compiled core, which plain sessions do without
        from privml.session.connect import connect

        return connect
    raise AttributeError(f"module 'privml' has no attribute {name!r}")
