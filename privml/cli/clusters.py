# SPDX-License-Identifier: Apache-2.0
"""``privml serve cluster=local workers=2`` and ``cluster=ray``: a front, and workers in processes of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from omegaconf import DictConfig

from privml.cli.engines import parties_of
from privml.cli.serving import capacity_of, logging_of, until_stopped
from privml.cli.settings import identity_of, ot_of
from privml.errors import ConfigError
from privml.program import Program
from privml.service.answering import Limits
from privml.service.cluster import Start, Worker
from privml.service.front import front, public_host
from privml.service.local_workers import LocalWorker
from privml.service.serve import settings_of
from privml.service.worker import task_of
from privml.session.address import parse_address
from privml.spec import LinkProfile

CLUSTERS = ("local", "ray")
# What only a cluster reads, and what it is if it was not set.
_OF_CLUSTERS = {"worker_sessions": 1, "worker_port": 0, "advertise": None, "ray_address": None}


def check_cluster(config: DictConfig) -> None:
    """ConfigError for settings that the service would not read."""
    if config.cluster == "local" and config.ray_address is not None:
        raise ConfigError(f"ray_address={config.ray_address} is about cluster=ray: leave it out, or choose cluster=ray")
    if config.cluster is not None:
        return
    for name, neutral in _OF_CLUSTERS.items():
        if config[name] != neutral:
            raise ConfigError(f"{name}={config[name]} is about a cluster: add cluster=local or cluster=ray")


def run_cluster(config: DictConfig, program: Program) -> None:
    """Until it is stopped. ConfigError for what does not go with a cluster."""
    if config.cluster not in CLUSTERS:
        raise ConfigError(f"cluster={config.cluster}: choose from {', '.join(CLUSTERS)}")
    for name, neutral in (("preprocessing", None), ("queries", 0), ("sessions_per_name", 0), ("aborts", None)):
        if config[name] != neutral:
            raise ConfigError(f"{name} goes with one process: leave it out, or cluster={config.cluster}")
    ot, parties = ot_of(config), parties_of(config)
    if parties.pop("ring") is not None:
        raise ConfigError("engine=active goes with one process, which counts the failed sessions of each client")
    settings = settings_of(program, ot, config.threads, **parties)
    capacity, identity = capacity_of(config), identity_of(config)
    task = task_of(
        config.program,
        config.weights,
        ot=ot,
        capacity=replace(capacity, workers=config.worker_sessions),
        link_profile=LinkProfile(config.link.delay_ms, config.link.bandwidth_mbps),
        deadline=config.deadline,
        threads=config.threads,
        **parties,
        limits=Limits(config.session_queries, config.idle),
        **identity,
    )
    with until_stopped() as stop:
        front(
            program,
            config.listen,
            settings,
            _starter(config, task),
            workers=config.workers,
            capacity=capacity,
            deadline=config.deadline,
            monitor=config.monitor,
            stop=stop,
            **identity,
            **logging_of(config),
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
    from privml.service.ray_workers import RayWorker, connect

    ray = connect(config.ray_address)

    def start(number: int, port: int) -> Worker:
        return RayWorker(ray, task_for(number, port), host)

    return start
