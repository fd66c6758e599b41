# SPDX-License-Identifier: Apache-2.0
"""Certificates made, and a query under TLS, by the command line alone."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import psutil
import pytest
from commands import Command
from commands import run as privml
from omegaconf import OmegaConf

from models import load
from privml.cli.paths import config_directory
from privml.cli.settings import identity_of
from privml.errors import ConfigError
from privml.service.certificates import issue, make_authority


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    privml("convert", "model=lenet", "out=lenet", cwd=folder)
    make_authority(folder / "certs")
    for name in ("hospital-a", "lab-b", "stranger-c"):
        issue(folder / "certs", name)
    model = load("lenet")
    np.save(folder / "digit.npy", model.preprocess(model.samples[:1]).numpy())
    return folder


def tls(name: str, role: str, peer: str, place: str = "certs") -> list[str]:
    """Settings of party ``name``, whose certificate lies in ``place``, while it trusts the authority of all."""
    files = {"authority": "certs/authority.pem", "certificate": f"{place}/{name}.pem", "key": f"{place}/{name}.key"}
    return [*(f"identity.tls.{what}={file}" for what, file in files.items()), f"identity.tls.names.{role}={peer}"]


def test_a_query_between_certificates(folder: Path) -> None:
    place = ["program=lenet/program", "weights=lenet/weights.safetensors", "listen=127.0.0.1:0", "queries=1"]
    with Command("serve", *place, *tls("hospital-a", "client", "lab-b"), cwd=folder) as server:
        port = server.stdout.readline().split("port ")[1].split(",")[0]
        ask = ["query", "program=lenet/program", f"server=127.0.0.1:{port}", "input=digit.npy"]
        for identity, words in (
            (tls("stranger-c", "server", "hospital-a"), "is one that the peer expects"),
            (tls("lab-b", "server", "stranger-c"), "the peer's certificate is for hospital-a"),
            ([], "ProtocolError: the peer speaks TLS and this party does not"),
        ):
            refused = privml(*ask, *identity, cwd=folder, check=False)
            assert refused.returncode == 1 and words in refused.stderr, refused.stderr
        privml(*ask, "out=scores.npy", *tls("lab-b", "server", "hospital-a"), cwd=folder)
        assert server.wait() == 0
        log = server.stdout.read()
    assert log.count("IdentityError") == 3 and "stranger-c" in log
    assert np.load(folder / "scores.npy").shape == (1, 10)


class Told:
    """What a server with log=json tells; ``event`` waits for the next event of a kind."""

    def __init__(self, server: Command) -> None:
        self._lines, self._kept = server.stdout, []

    def event(self, kind: str, worker: int | None = None) -> dict:
        """``worker``: whose event it is, None for the cluster's own."""

        def fits(event: dict) -> bool:
            return event["event"] == kind and event.get("worker") == worker

        for event in filter(fits, self._kept):
            self._kept.remove(event)
            return event
        for line in self._lines:
            event = json.loads(line)
            if fits(event):
                return event
            self._kept.append(event)
        raise AssertionError(f"the server ended without '{kind}': {self._kept}")


def test_a_cluster_between_certificates(folder: Path) -> None:
    """Front and worker bear one certificate, and each refuses clients that it does not know."""
    make_authority(folder / "elsewhere")
    issue(folder / "elsewhere", "lab-b")
    place = ["program=lenet/program", "weights=lenet/weights.safetensors", "listen=127.0.0.1:0", "log=json"]
    cluster = ["cluster=local", "workers=1"]
    lab = tls("lab-b", "server", "hospital-a")
    strangers = (tls("stranger-c", "server", "hospital-a"), tls("lab-b", "server", "hospital-a", "elsewhere"), [])
    with Command("serve", *place, *cluster, *tls("hospital-a", "client", "lab-b"), cwd=folder) as server:
        told = Told(server)
        ports = {worker: told.event("listening", worker)["port"] for worker in (None, 0)}
        ask = ["query", "program=lenet/program", "input=digit.npy"]
        for worker, port in ports.items():
            for identity in strangers:
                refused = privml(*ask, f"server=127.0.0.1:{port}", *identity, cwd=folder, check=False)
                assert refused.returncode == 1 and "Traceback" not in refused.stderr, refused.stderr
                words = (
                    ("IdentityError: ", "PeerDisconnected: ") if identity else ("ProtocolError: the peer speaks TLS",)
                )
                assert any(each in refused.stderr for each in words), refused.stderr
                event = told.event("refused", worker)
                assert event["reason"] == "identity" and event["error"] == "IdentityError", event
        privml(*ask, f"server=127.0.0.1:{ports[None]}", "retries=10", "out=moved.npy", *lab, cwd=folder)
        assert told.event("moved")["peer"] == told.event("answered", 0)["peer"] == "lab-b"
        workers = psutil.Process(server.pid).children()
        os.kill(server.pid, signal.SIGTERM)
        assert server.wait() == 0
        assert told.event("stopped")["cut"] == 0 and not psutil.wait_procs(workers, 60)[1]
    assert np.load(folder / "moved.npy").shape == (1, 10)


def test_certificates_are_shown(folder: Path) -> None:
    privml("certs", "init", "folder=mine", cwd=folder)
    shown = privml("certs", "show", "file=certs/lab-b.pem", cwd=folder).stdout
    assert "lab-b" in shown and "364 days left" in shown
    twice = privml("certs", "issue", "name=lab-b", cwd=folder, check=False)
    assert twice.returncode == 1 and "already exists" in twice.stderr


def test_the_doctor_looks_at_names(folder: Path) -> None:
    told = privml("doctor", *tls("lab-b", "server", "hospital-a"), cwd=folder, check=False).stdout
    assert "certificate" in told and "lab-b" in told and "hospital-a" in told and "names.dealer" in told


def test_half_an_identity_is_refused() -> None:
    identity = OmegaConf.load(config_directory() / "identity" / "default.yaml")
    assert identity_of(OmegaConf.create({"identity": identity})) == {"tls": None, "insecure": False}
    identity.tls.key = "lab-b.key"
    with pytest.raises(ConfigError, match="identity.tls.authority is missing"):
        identity_of(OmegaConf.create({"identity": identity}))
