# SPDX-License-Identifier: Apache-2.0
"""From the groups ``identity`` and ``ot`` to what services and sessions take."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.session.identity import ROLES, Tls


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


def ot_of(config: DictConfig) -> OtChoice:
    """The choice of the ``ot`` group."""
    return OtChoice(config.ot.provider, config.ot.k, config.ot.security, config.ot.refill)
