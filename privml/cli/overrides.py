# SPDX-License-Identifier: Apache-2.0
"""Settings as they are written on the command line: those that a verb would not read are refused before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from privml.cli.schemas import SCHEMAS, names
from privml.errors import ConfigError

# What may be added to a verb's settings, by Hydra's sign +.
_ADDED = {"experiment": ("experiment",)}
# Former name -> name.
_RENAMED = {
    "network.tls": "identity.tls",
    "network.insecure": "identity.insecure",
    "network@link": "link",
    "identity@network": "identity",
    "network": "link",
}


def check(verb: str, overrides: Sequence[str]) -> None:
    """ConfigError for the first of ``overrides`` that ``verb`` would ignore, which says where it belongs."""
    for override in overrides:
        if override.startswith("-") or "=" not in override:
            continue
        written = override.split("=", 1)[0]
        key = written.lstrip("+~")
        if key.startswith("hydra"):
            continue
        _refuse_former(verb, key)
        top = key.partition("@")[2] or key
        top = top.partition(".")[0]
        if top not in names(verb) and top not in _ADDED.get(verb, ()):
            where = [f"`privml {each}`" for each in SCHEMAS if top in names(each)]
            hint = f"; it is one of {', '.join(where)}" if where else ""
            raise ConfigError(f"{override}: `privml {verb}` has no setting {key}{hint}; --help shows its own")
        if written.startswith("+") and top not in _ADDED.get(verb, ()):
            raise ConfigError(f"{override}: to change a setting, write {key}=... without +")


def _refuse_former(verb: str, key: str) -> None:
    if key in ("truncation", "device", "ring") and "engine" in names(verb) and key not in names(verb):
        raise ConfigError(f"{key} is a setting of the engine: write engine.{key}=...")
    for former, name in _RENAMED.items():
        if key == former or key.startswith(f"{former}."):
            raise ConfigError(f"{key} is called {name}{key.removeprefix(former)} now")
