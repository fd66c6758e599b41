# SPDX-License-Identifier: Apache-2.0
"""From the groups ``identity``, ``link`` and ``ot`` to what services and sessions take."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.cli.fields import WrongCall
from privml.engines.correlations import OtChoice
from privml.engines.interface import Backend
from privml.errors import ConfigError
from privml.session.identity import ROLES, Tls
from privml.spec import LinkProfile


def identity_of(config: DictConfig) -> dict[str, Any]:
    """``tls`` and ``insecure`` as the services take them."""
    chosen = config.identity.tls
    files = {name: chosen[name] for name in ("authority", "certificate", "key")}
    given = OmegaConf.to_container(chosen.names, resolve=True)
    names = {role: some for role, some in given.items() if some}
    if not any((*files.values(), *names)):
        return {"tls": None, "insecure": bool(config.identity.insecure)}
    for name, file in files.items():
        if file is None:
            raise ConfigError(f"identity.tls.{name} is missing: TLS needs authority, certificate and key")
    return {"tls": Tls(**files, names={ROLES.index(role): some for role, some in names.items()}), "insecure": False}


def link_of(config: DictConfig) -> LinkProfile:
    """The link of the ``link`` group."""
    return LinkProfile(config.link.delay_ms, config.link.bandwidth_mbps)


def ot_of(config: DictConfig, engine: Backend) -> OtChoice:
    """The choice of the ``ot`` group, with the security that ``engine`` needs. WrongCall."""
    security = config.ot.security if engine.security is None else engine.security
    try:
        return OtChoice(config.ot.provider, config.ot.k, security, config.ot.refill)
    except ConfigError as error:
        raise WrongCall(f"ot.{error}") from None
