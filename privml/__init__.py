# SPDX-License-Identifier: Apache-2.0
"""Secure two- and three-party neural networks: secret tensors are torch tensors."""

import importlib

from privml import errors, formats
from privml.context import Session
from privml.formats import Numerics, node
from privml.session.local import local
from privml.sharing import reveal, secret, share
from privml.tensor import SecretTensor
from privml.version import VERSION as __version__

__all__ = [
    "ANY_NAME",
    "Addresses",
    "Client",
    "Identity",
    "LinkProfile",
    "Numerics",
    "OtChoice",
    "Program",
    "RemoteModel",
    "Retries",
    "SecretTensor",
    "Session",
    "SessionSpec",
    "Tls",
    "__version__",
    "compile_step",
    "connect",
    "convert",
    "engine",
    "errors",
    "formats",
    "load",
    "local",
    "node",
    "reveal",
    "secret",
    "share",
]


# Loaded on first use: sessions without programs, and plain sessions without the compiled core, start faster.
_LAZY = {
    "Addresses": ("privml.service.options", "Addresses"),
    "Client": ("privml.service.client", "Client"),
    "Retries": ("privml.service.options", "Retries"),
    "RemoteModel": ("privml.service.remote_model", "RemoteModel"),
    "ANY_NAME": ("privml.session.identity", "ANY_NAME"),
    "Tls": ("privml.session.identity", "Tls"),
    "Program": ("privml.program", "Program"),
    "compile_step": ("privml.step", "compile_step"),
    "SessionSpec": ("privml.spec", "SessionSpec"),
    "LinkProfile": ("privml.spec", "LinkProfile"),
    "Identity": ("privml.spec", "Identity"),
    "OtChoice": ("privml.engines.correlations", "OtChoice"),
    "engine": ("privml.spec", "engine"),
    "connect": ("privml.session.connect", "connect"),
    "convert": ("privml.conversion", "convert"),
    "load": ("privml.program", "load"),
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module 'privml' has no attribute {name!r}")
