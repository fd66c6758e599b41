# SPDX-License-Identifier: Apache-2.0
"""Certificates made, and a query under TLS, by the command line alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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


def tls(name: str, role: str, peer: str) -> list[str]:
    files = {"authority": "certs/authority.pem", "certificate": f"certs/{name}.pem", "key": f"certs/{name}.key"}
    return [*(f"network.tls.{what}={file}" for what, file in files.items()), f"network.tls.names.{role}={peer}"]


def test_a_query_between_certificates(folder: Path) -> None:
    place = ["program=lenet/program", "weights=lenet/weights.safetensors", "listen=127.0.0.1:0", "queries=1"]
    with Command("serve", *place, *tls("hospital-a", "client", "lab-b"), cwd=folder) as server:
        port = server.stdout.readline().split("port ")[1].split(",")[0]
        ask = ["query", "program=lenet/program", f"server=127.0.0.1:{port}", "input=digit.npy"]
        for identity, words in (
            (tls("stranger-c", "server", "hospital-a"), "does not bear a name"),
            (tls("lab-b", "server", "stranger-c"), "the peer's certificate is for hospital-a"),
            ([], "PeerDisconnected"),
        ):
            refused = privml(*ask, *identity, cwd=folder, check=False)
            assert refused.returncode == 1 and words in refused.stderr, refused.stderr
        privml(*ask, "out=scores.npy", *tls("lab-b", "server", "hospital-a"), cwd=folder)
        assert server.wait() == 0
        log = server.stdout.read()
    assert log.count("IdentityError") == 3 and "stranger-c" in log
    assert np.load(folder / "scores.npy").shape == (1, 10)


def test_certificates_are_shown(folder: Path) -> None:
    privml("certs", "init", "folder=mine", cwd=folder)
    shown = privml("certs", "show", "file=certs/lab-b.pem", cwd=folder).stdout
    assert "lab-b" in shown and "364 days left" in shown
    twice = privml("certs", "issue", "name=lab-b", cwd=folder, check=False)
    assert twice.returncode == 1 and "there already" in twice.stderr


def test_half_an_identity_is_refused() -> None:
    network = OmegaConf.load(config_directory() / "identity" / "default.yaml")
    assert identity_of(OmegaConf.create({"network": network})) == {"tls": None, "insecure": False}
    network.tls.key = "lab-b.key"
    with pytest.raises(ConfigError, match="network.tls.authority is missing"):
        identity_of(OmegaConf.create({"network": network}))
