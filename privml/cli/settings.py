# SPDX-License-Identifier: Apache-2.0
"""Checks of a verb's settings before it starts: nothing missing, and of the type that is read."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.session.identity import ROLES, Tls

_TRUTH = "true or false"
_TEXT = "text"
_NUMBER = "a positive number"
_DURATION = "a number of seconds, 0 or more"
_WHOLE = "a whole number, at least {}"

# Setting -> (what it must be, smallest whole number); null is checked by whoever reads it.
SETTINGS: dict[str, tuple[str, int]] = {
    "quiet": (_TRUTH, 0),
    "server": (_TEXT, 0),
    "listen": (_TEXT, 0),
    "dealer": (_TEXT, 0),
    "truncation": (_TEXT, 0),
    "device": (_TEXT, 0),
    "sessions": (_WHOLE, 0),
    "preprocessing": (_TEXT, 0),
    "store": (_TEXT, 0),
    "store_key": (_TEXT, 0),
    "when_empty": (_TEXT, 0),
    "deadline": (_NUMBER, 0),
    "workers": (_WHOLE, 1),
    "worker_sessions": (_WHOLE, 1),
    "worker_port": (_WHOLE, 0),
    "cluster": (_TEXT, 0),
    "advertise": (_TEXT, 0),
    "ray_address": (_TEXT, 0),
    "queue": (_WHOLE, 0),
    "queue_seconds": (_DURATION, 0),
    "session_seconds": (_DURATION, 0),
    "sessions_per_name": (_WHOLE, 0),
    "query_rows": (_WHOLE, 1),
    "query_elements": (_WHOLE, 1),
    "half_open": (_WHOLE, 1),
    "hello_seconds": (_NUMBER, 0),
    "drain_seconds": (_DURATION, 0),
    "answer_seconds": (_DURATION, 0),
    "monitor": (_TEXT, 0),
    "aborts": (_TEXT, 0),
    "log": (_TEXT, 0),
    "queries": (_WHOLE, 0),
    "session_queries": (_WHOLE, 1),
    "idle": (_NUMBER, 0),
    "retries": (_WHOLE, 0),
    "backoff": (_NUMBER, 0),
    "batch": (_WHOLE, 1),
    "count": (_WHOLE, 1),
    "n": (_WHOLE, 1),
    "repeats": (_WHOLE, 1),
    "threads": (_WHOLE, 1),
    "largest": (_NUMBER, 0),
    "patience": (_NUMBER, 0),
    "measure": (_TRUTH, 0),
    "cards": (_TRUTH, 0),
    "days": (_WHOLE, 1),
    "seed": (_WHOLE, 0),
    "results": (_TEXT, 0),
    "report": (_TEXT, 0),
    "markdown": (_TEXT, 0),
}


def check(config: DictConfig) -> None:
    """Raises ConfigError that names the first setting that is missing or of another type than its verb reads."""
    for name in config:
        if OmegaConf.is_missing(config, name):
            raise ConfigError(f"{name} is missing: add {name}=...")
        value = config[name]
        kind, least = SETTINGS.get(name, ("", 0))
        if kind and value is not None and not _fits(value, kind, least):
            raise ConfigError(f"{name}={value} must be {kind.format(least)}")


def _fits(value: object, kind: str, least: int) -> bool:
    if kind is _TRUTH:
        return isinstance(value, bool)
    if kind is _TEXT:
        return isinstance(value, str)
    if kind in (_NUMBER, _DURATION):
        return type(value) in (int, float) and 0 <= value < float("inf") and (value > 0 or kind is _DURATION)
    return type(value) is int and value >= least


def identity_of(config: DictConfig) -> dict[str, Any]:
    """``tls`` and ``insecure`` as the services take them."""
    chosen = config.network.tls
    files = {name: chosen[name] for name in ("authority", "certificate", "key")}
    given = OmegaConf.to_container(chosen.names, resolve=True)
    names = {role: some for role, some in given.items() if some}
    if not any((*files.values(), *names)):
        return {"tls": None, "insecure": bool(config.network.insecure)}
    for name, file in files.items():
        if file is None:
            raise ConfigError(f"network.tls.{name} is missing: TLS needs authority, certificate and key")
    return {"tls": Tls(**files, names={ROLES.index(role): some for role, some in names.items()}), "insecure": False}


def ot_of(config: DictConfig) -> OtChoice:
    """The choice of the ``ot`` group."""
    return OtChoice(config.ot.provider, config.ot.k, config.ot.security, config.ot.refill)
