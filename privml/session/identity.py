# SPDX-License-Identifier: Apache-2.0
"""Who the parties are: certificates under mutual TLS 1.3, and what may be done without."""

from __future__ import annotations

import ipaddress
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privml import _core
from privml.errors import ConfigError, IdentityError
from privml.session.address import parse_address


@dataclass(frozen=True)
class Tls:
    """This party's proof of its name, and the names it demands of the others.

    ``authority``: PEM file of the certificate that signs every party's; ``certificate`` and ``key``: PEM files of this
    party's own. ``names``: rank of a party -> the names, one or several, that its certificate may bear; a party that is
    not in it may bear any name the authority has signed. ``privml certs`` makes all of them.
    """

    authority: str | Path
    certificate: str | Path
    key: str | Path
    names: Mapping[int, str | Sequence[str]] = field(default_factory=dict)

    def allowed(self, rank: int) -> tuple[str, ...]:
        """The names that party ``rank`` may prove; none: any."""
        names = self.names.get(rank) or ()
        return (names,) if isinstance(names, str) else tuple(names)

    def identity(self, *peers: int) -> _core.TlsIdentity:
        """For connections to any of the parties ``peers``. ConfigError naming a file that cannot be used."""
        allowed = [self.allowed(rank) for rank in peers]
        names = [] if () in allowed else [name for some in allowed for name in some]
        try:
            return _core.TlsIdentity(str(self.authority), str(self.certificate), str(self.key), names)
        except ValueError as error:
            raise ConfigError(f"{error}; `privml certs` makes and shows certificates") from None


def link_to(network: Mapping[str, float] | None, tls: Tls | None, *peers: int) -> dict[str, Any]:
    """What a connection to one of ``peers`` is made with: the simulated network, and the identity."""
    return {**(network or {}), "identity": None if tls is None else tls.identity(*peers)}


def refuse_other_name(channel: _core.Channel, tls: Tls | None, rank: int) -> None:
    """Raises IdentityError where a channel that was opened for several parties belongs to another one than ``rank``."""

    if tls is None or not tls.allowed(rank) or channel.peer_name in tls.allowed(rank):
        return
    raise IdentityError(f"the certificate for '{channel.peer_name}' is not that of party {rank}")


def refuse_open(tls: Tls | None, insecure: bool, *addresses: str | None) -> None:
    """ConfigError where an address leads away from this machine without TLS; a warning with ``insecure``."""
    for address in filter(None, addresses):
        host = parse_address(address)[0]
        if tls is not None or is_loopback(host):
            continue
        if not insecure:
            raise ConfigError(
                f"{host} is not this machine, and without TLS anybody between the parties can pose as one of them: "
                "give the parties certificates (tls=privml.Tls(...), or network.tls.authority=... and so on; `privml "
                "certs` makes them), or allow it with insecure=true in a network that you trust"
            )
        warnings.warn(
            f"no TLS to {host}: whoever controls the network between the parties can read and change what they send",
            stacklevel=3,
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
