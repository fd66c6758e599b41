# SPDX-License-Identifier: Apache-2.0
"""Secure two- and three-party neural networks: secret tensors are torch tensors.

Names are loaded on first use: ``import privml`` loads neither torch nor the compiled core.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from privml.version import VERSION as __version__

if TYPE_CHECKING:
    from privml import errors, formats
    from privml.context import Session
    from privml.conversion import convert
    from privml.engines.correlations import OtChoice
    from privml.formats import Numerics, node
    from privml.program import Program, load
    from privml.service.client import Client
    from privml.service.options import Addresses, Retries
    from privml.service.remote_model import RemoteModel
    from privml.session.connect import connect
    from privml.session.identity import ANY_NAME, Tls
    from privml.session.local import local
    from privml.sharing import reveal, secret, share
    from privml.spec import Identity, LinkProfile, SessionSpec, engine
    from privml.step import compile_step
    from privml.tensor import SecretTensor
else:  # a type checker that saw this would take every name for one

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return getattr(importlib.import_module(_MODULES[name]), name)
        if name in __all__:  # a module
            return importlib.import_module(f"privml.{name}")
        raise AttributeError(f"module 'privml' has no attribute {name!r}")


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

# Name -> the module that it is in; the names that are modules themselves are not here.
_MODULES = {
    "ANY_NAME": "privml.session.identity",
    "Addresses": "privml.service.options",
    "Client": "privml.service.client",
    "Identity": "privml.spec",
    "LinkProfile": "privml.spec",
    "Numerics": "privml.formats",
    "OtChoice": "privml.engines.correlations",
    "Program": "privml.program",
    "RemoteModel": "privml.service.remote_model",
    "Retries": "privml.service.options",
    "SecretTensor": "privml.tensor",
    "Session": "privml.context",
    "SessionSpec": "privml.spec",
    "Tls": "privml.session.identity",
    "compile_step": "privml.step",
    "connect": "privml.session.connect",
    "convert": "privml.conversion",
    "engine": "privml.spec",
    "load": "privml.program",
    "local": "privml.session.local",
    "node": "privml.formats",
    "reveal": "privml.sharing",
    "secret": "privml.sharing",
    "share": "privml.sharing",
}


def __dir__() -> list[str]:
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
