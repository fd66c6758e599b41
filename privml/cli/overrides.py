# SPDX-License-Identifier: Apache-2.0
"""Settings as they are written on the command line: those that a verb would not read are refused before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from privml.errors import ConfigError

# Verbs whose parties are on machines of their own, and verbs that run or reckon with all parties here.
APART = ("serve", "query", "deal", "preprocess")
TOGETHER = ("run", "cost", "advise", "experiment", "bench", "evaluate")
# What may be added to a verb's settings, by Hydra's sign +.
_ADDED = {"experiment": ("experiment",)}
_LINK = ("network.name", "network.delay_ms", "network.bandwidth_mbps")


def check(verb: str, overrides: Sequence[str]) -> None:
    """ConfigError for the first of ``overrides`` that ``verb`` would ignore, which says where it belongs."""
    for override in overrides:
        if override.startswith("-") or "=" not in override:
            continue
        key = override.split("=", 1)[0]
        name = key.lstrip("+~").split("@", 1)[0]
        _check_place(verb, key.lstrip("+~"))
        if key.startswith("+") and name not in _ADDED.get(verb, ()) and not name.startswith("hydra"):
            raise ConfigError(
                f"{override}: `privml {verb}` reads no settings beside those that `privml {verb} --help` shows; "
                f"to change one, write {name}=... without +"
            )


def _check_place(verb: str, key: str) -> None:
    if verb in APART and key in ("truncation", "device"):
        raise ConfigError(f"{key} is a setting of the engine: write engine.{key}=...")
    if verb in APART and (key == "network" or key in _LINK):
        where = "" if verb in ("query", "deal") else f"; the link that ot=auto reckons with is {_link(key)} here"
        raise ConfigError(
            f"{key} is the simulated link of verbs that run all parties on this machine ({', '.join(TOGETHER)}); "
            f"`privml {verb}` has network.tls and network.insecure{where}"
        )
    if verb in TOGETHER and (key.startswith("network.tls") or key == "network.insecure"):
        raise ConfigError(
            f"{key} is about parties on machines of their own ({', '.join(APART)}); `privml {verb}` has "
            "network.delay_ms and network.bandwidth_mbps"
        )


def _link(key: str) -> str:
    return "network@link" if key == "network" else key.replace("network.", "link.")
