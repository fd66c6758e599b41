# SPDX-License-Identifier: Apache-2.0
"""Parties with certificates of one authority, on threads, and how each of them ends."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from patience import PATIENCE

from privml import Tls
from privml.service.certificates import issue, make_authority

SERVER, CLIENT, DEALER = "hospital-a", "lab-b", "helper-c"
# Which name each rank should have.
NAMES = {0: SERVER, 1: CLIENT, 2: DEALER}


def make_certificates(folder: Path) -> Path:
    make_authority(folder)
    for name in NAMES.values():
        issue(folder, name)
    return folder


def tls(folder: Path, name: str, names: dict[int, str] | None = None) -> Tls:
    """``name``'s identity; ``names``: what it demands of the others, by default that they are who they should be."""
    return Tls(
        folder / "authority.pem", folder / f"{name}.pem", folder / f"{name}.key", NAMES if names is None else names
    )


def ends(*bodies: Callable[[], Any]) -> list[Any]:
    """What each of several parties returns, or the error that it ends with."""

    def end(body: Callable[[], Any]) -> Any:
        try:
            return body()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(bodies)) as pool:
        return [future.result(PATIENCE) for future in [pool.submit(end, body) for body in bodies]]
