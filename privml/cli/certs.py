# SPDX-License-Identifier: Apache-2.0
"""``privml certs init``, ``privml certs issue name=hospital-a``, ``privml certs show file=certs/hospital-a.pem``."""

from __future__ import annotations

from omegaconf import DictConfig

from privml.cli import console
from privml.errors import ConfigError
from privml.service.certificates import describe, issue, make_authority


def run(config: DictConfig) -> None:
    if config.action == "show":
        if config.file is None:
            raise ConfigError("file is missing: add file=certs/NAME.pem")
        console.out.print(
            console.table(str(config.file), ["", ""], [list(row) for row in describe(config.file).items()])
        )
        return
    if config.action == "init":
        made = make_authority(config.folder, config.name or "privml authority", config.days or 1825)
        console.out.print(f"authority {made.certificate}: give it to every party")
        console.out.print(f"its key {made.key}: keep it secret, on the machine that issues certificates")
        return
    if config.name is None:
        raise ConfigError("name is missing: add name=..., the party's name")
    made = issue(config.folder, config.name, config.out, config.days or 365)
    console.out.print(f"certificate {made.certificate} and key {made.key}: for {config.name} alone")
    console.out.print(f"the other parties add identity.tls.names.ROLE={config.name}, ROLE: server, client or dealer")
