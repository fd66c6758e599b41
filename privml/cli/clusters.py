# SPDX-License-Identifier: Apache-2.0
"""``privml serve cluster=local workers=2`` and ``cluster=ray``: clients are redirected to workers in processes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omegaconf import DictConfig

from privml.cli.engines import spec_of
from privml.cli.serving import limits_of, logging_of, place_of, until_stopped
from privml.errors import ConfigError
from privml.program import Program
from privml.service.cluster import Start, Worker, public_host, serve_cluster
from privml.service.negotiation import settings_of
from privml.service.options import Hooks
from privml.service.worker import LocalWorker, task_of
from privml.session.identity import parse_address

# What only a cluster reads, and what it is if it was not set.
_OF_CLUSTERS = {"worker_sessions": 1, "worker_port": 0, "advertise": None, "ray_address": None}


def check_cluster(config: DictConfig) -> None:
    """ConfigError for settings that the service would not read."""
    if config.cluster == "local" and config.ray_address is not None:
        raise ConfigError(
            f"ray_address={config.ray_address} applies to cluster=ray only: leave it out, or choose cluster=ray"
        )
    if config.cluster is not None:
        return
    for name, neutral in _OF_CLUSTERS.items():
        if config[name] != neutral:
            raise ConfigError(f"{name}={config[name]} applies to clusters only: add cluster=local or cluster=ray")


def run_cluster(config: DictConfig, program: Program) -> None:
    """Until it is stopped. ConfigError for what does not go with a cluster."""
    for name, neutral in (("preprocessing", None), ("queries", 0), ("sessions_per_name", 0), ("aborts", None)):
        if config[name] != neutral:
            raise ConfigError(f"{name} works with one process only: leave it out, or cluster={config.cluster}")
    spec, limits = spec_of(config), limits_of(config)
    dealer = place_of(config, spec).dealer
    if spec.backend.actively_secure:
        name = spec.backend.name
        raise ConfigError(f"engine={name} works with one process only, which counts the failed sessions of each client")
    settings, capacity = settings_of(program, spec), limits.capacity
    of_worker = replace(limits, capacity=replace(capacity, workers=config.worker_sessions))
    task = task_of(config.program, config.weights, dealer, spec, of_worker)
    with until_stopped() as stop:
        serve_cluster(
            settings,
            config.listen,
            _starter(config, task),
            capacity=capacity,
            hooks=Hooks(monitor=config.monitor, stop=stop, **logging_of(config)),
        )


def _starter(config: DictConfig, task: dict[str, Any]) -> Start:
    """How the cluster's workers are made."""
    host, listen = public_host(config.listen, config.advertise), parse_address(config.listen)[0]
    address = f"[{listen}]" if ":" in listen else listen

    def task_for(number: int, port: int) -> dict[str, Any]:
        wanted = port or (config.worker_port + number if config.worker_port else 0)
        return {**task, "listen": f"{address}:{wanted}"}

    if config.cluster == "local":
        return lambda number, port: LocalWorker(task_for(number, port), host)
    from privml.service.worker import RayWorker, connect

    ray = connect(config.ray_address)

    def start(number: int, port: int) -> Worker:
        return RayWorker(ray, task_for(number, port), host)

    return start
