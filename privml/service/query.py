# SPDX-License-Identifier: Apache-2.0
"""One query: a client that asks once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from privml.program import Program
from privml.service.asking import Answer
from privml.service.client import Client
from privml.service.options import DEFAULT_SPEC, Addresses
from privml.service.progress import Progress
from privml.spec import SessionSpec

__all__ = ["Answer", "query"]


def query(
    program: Program,
    server: str | Addresses,
    inputs: Any | Sequence[Any],
    spec: SessionSpec = DEFAULT_SPEC,
    *,
    progress: Progress | None = None,
    **settings: Any,
) -> Answer:
    """Asks the server at ``server`` ("host:port", or with a dealer ``Addresses``) for the outputs of ``inputs``: an
    array or tensor, or a tuple or list with one of them per input of the program. ``spec``, ``settings``: see
    ``Client``.

    Raises InvalidInput, before anything is sent, for a wrong shape or dtype and for NaN, infinite or too large values;
    then HandshakeMismatch, StoreError (too few correlations left), PeerDisconnected (also when the server is not there
    within ``spec.deadline``), ServiceBusy (with the seconds to wait), ProtocolError.
    """
    with Client(program, server, spec, **settings) as client:
        return client.query(inputs, progress=progress)
