# SPDX-License-Identifier: Apache-2.0
"""Who the parties are: their addresses, their certificates under mutual TLS 1.3, and what is allowed without them."""

from __future__ import annotations

import contextlib
import ipaddress
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privml.errors import ConfigError, IdentityError

if TYPE_CHECKING:
    import privml._core as _core
    from privml.spec import SessionSpec

ANY_NAME = "ANY_NAME"
"""In place of the name of a party that this one connects to: any certificate of the authority is accepted."""
# By rank.
ROLES = ("server", "client", "dealer")


def parse_address(text: str) -> tuple[str, int]:
    """("127.0.0.1", 9000) from "127.0.0.1:9000" or "[::1]:9000"; port 0 lets the system choose.

    Raises ConfigError naming the text.
    """
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"'{text}' is not an address; write host:port, for example 127.0.0.1:9000")
    return host, int(port)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reach(host: str) -> str:
    """Who reaches an address that is not for this machine alone."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            return f"{host} is every address of this machine, also those that other machines reach"
    return f"{host} is an address that other machines reach"


@dataclass(frozen=True)
class Tls:
    """This party's certificate, and the names that it requires of the others.

    ``authority``: PEM file of the certificate that signs every party's; ``certificate`` and ``key``: PEM files of this
    party's own. ``names``: rank of a party -> the names, one or several, that its certificate may have. Every party
    that this one connects to needs an entry, because any party of the authority could pose as it otherwise;
    ``ANY_NAME`` allows that, with a warning. A party that connects to this one and has no entry may have any name that
    the authority has signed. ``privml certs`` makes the files.
    """

    authority: str | Path
    certificate: str | Path
    key: str | Path
    names: Mapping[int, str | Sequence[str]] = field(default_factory=dict)

    def allowed(self, rank: int) -> tuple[str, ...]:
        """The names that party ``rank`` may prove; empty: any."""
        names = self._listed(rank)
        return () if ANY_NAME in names else names

    def _listed(self, rank: int) -> tuple[str, ...]:
        names = self.names.get(rank) or ()
        return (names,) if isinstance(names, str) else tuple(names)

    def require_name(self, rank: int) -> None:
        """For a party ``rank`` that this one connects to: ConfigError if it has no name here; a warning if its name is
        ANY_NAME."""
        names, role = self._listed(rank), ROLES[rank]
        if not names:
            why = (
                f"this party connects to party {rank}, the {role}, and requires no name of it: any party of the "
                "authority could pose as it. Add its name, "
            )
            how = f" (`privml certs show file=...` prints the names of a certificate); {ANY_NAME} accepts all"
            raise ConfigError(
                f"{why}names={{{rank}: '...'}}{how}", command_line=f"{why}identity.tls.names.{role}=...{how}"
            )
        if ANY_NAME in names:
            warnings.warn(
                f"{ANY_NAME} for party {rank}, the {role}: any party of the authority can pose as it", stacklevel=4
            )

    def identity(self, *peers: int) -> _core.TlsIdentity:
        """For connections to any of the parties ``peers``. ConfigError names a file that cannot be used."""
        import privml._core as _core  # `privml doctor` starts without it, to say that it is missing

        allowed = [self.allowed(rank) for rank in peers]
        names = [] if () in allowed else [name for some in allowed for name in some]
        try:
            return _core.TlsIdentity(str(self.authority), str(self.certificate), str(self.key), names)
        except ValueError as error:
            raise ConfigError(f"{error}; `privml certs` makes and shows certificates") from None


def accept_options(spec: SessionSpec, *peers: int) -> dict[str, Any]:
    """The options of a connection that one of ``peers`` opens: the simulated link, and this party's identity."""
    tls = spec.identity.tls
    return {**spec.shape, "identity": None if tls is None else tls.identity(*peers)}


def connect_options(spec: SessionSpec, peer: int) -> dict[str, Any]:
    """The options of a connection that this party opens to ``peer``. ConfigError if TLS is on and the specification has
    no name for it."""
    if spec.identity.tls is not None:
        spec.identity.tls.require_name(peer)
    return accept_options(spec, peer)


def refuse_other_name(channel: _core.Channel, tls: Tls | None, rank: int) -> None:
    """Raises IdentityError if the certificate at the other end of ``channel`` is not that of party ``rank``."""
    if tls is None or not tls.allowed(rank) or channel.peer_name in tls.allowed(rank):
        return
    raise IdentityError(f"the certificate for '{channel.peer_name}' is not that of party {rank}")


def refuse_shared_names(*channels: _core.Channel) -> None:
    """Raises IdentityError unless the certificates of this party and of those at the other ends of ``channels`` have
    different names. Without TLS there are none."""
    certified = [channels[0].names[0], *(channel.names[1] for channel in channels)]
    for one, other in combinations(certified, 2):
        shared = sorted(set(one) & set(other))
        if shared:
            raise IdentityError(
                f"two of the three parties are certified by the same name, '{shared[0]}': the three must be "
                "independent, and each needs its own certificate and name"
            )


def expect_same_party(first: _core.Channel, further: _core.Channel) -> None:
    """Raises IdentityError if two connections that should be of one party show different names."""
    if set(first.names[1]) != set(further.names[1]):
        raise IdentityError(
            f"a further connection of '{first.peer_name}' shows the certificate for '{further.peer_name}'"
        )


def check_addresses(spec: SessionSpec, *addresses: str | None) -> None:
    """ConfigError for an address beyond this machine without TLS, or in a session that is for tests alone; a warning
    if ``spec.identity.insecure`` allows to do without TLS."""
    assert spec.ot is not None
    for address in filter(None, addresses):
        host = parse_address(address)[0]
        if is_loopback(host):
            continue
        if spec.ot.provider == "ideal" or spec.test_seed is not None:
            what = "ot=ideal" if spec.ot.provider == "ideal" else "test_seed"
            raise ConfigError(f"{what} gives no security and is allowed on loopback addresses only, not on {host}")
        if spec.identity.tls is not None:
            continue
        if not spec.identity.insecure:
            why = f"{_reach(host)}, and without TLS anybody between the parties can pose as one of them: "
            where = "in a network that you trust"
            raise ConfigError(
                f"{why}give the parties certificates, SessionSpec.of(tls=privml.Tls(...)) (`privml certs` makes them), "
                f"or allow it with SessionSpec.of(insecure=True) {where}",
                command_line=f"{why}give identity.tls.authority=, identity.tls.certificate= and identity.tls.key= "
                f"(`privml certs` makes them), or allow it with identity.insecure=true {where}",
            )
        warnings.warn(
            f"no TLS to {host}: an adversary on the network between the parties can read and change what they send",
            stacklevel=3,
        )
