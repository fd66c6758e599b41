# SPDX-License-Identifier: Apache-2.0
"""``privml doctor``: what this machine offers, and what to do about what is missing; with the settings of a party's
TLS also its certificate, and the names that it demands of the others."""

from __future__ import annotations

import sys

from omegaconf import DictConfig
from rich.table import Table
from rich.text import Text

from privml.cli import console
from privml.cli.settings import identity_of
from privml.service.doctor import BROKEN, GOOD, LACKING, PARTLY, examine, examine_identity

_COLOURS = {GOOD: "green", PARTLY: "yellow", LACKING: "yellow", BROKEN: "red"}


def run(config: DictConfig) -> None:
    tls = identity_of(config)["tls"]
    findings = examine() if tls is None else [*examine_identity(tls), *examine()]
    table = Table("", "", "found", "what to do", title="privml doctor", title_justify="left")
    for finding in findings:
        table.add_row(finding.subject, Text(finding.state, _COLOURS[finding.state]), finding.found, finding.advice)
    console.out.print(table)
    broken = [f.subject for f in findings if f.state == BROKEN]
    if broken:
        console.out.print(f"privml does not work here yet: {', '.join(broken)}")
        sys.exit(1)
    console.out.print("privml works here; what is missing is optional")
