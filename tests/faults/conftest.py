# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between real processes: fixtures, and the table of outcomes.

PRIVML_FAULTS=FOLDER keeps them in faults.jsonl there; `make faults` does, and makes the table of docs/testing.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from fault_outcomes import Outcomes
from fault_parties import Spawner
from fault_proxy import Proxy
from fault_scenarios import Deployments, Network
from fault_service import VALUE

import privml


class Small(torch.nn.Module):
    """A network of which a query takes a moment and has every phase."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


KEPT = os.environ.get("PRIVML_FAULTS")
OUTCOMES = Outcomes(Path(KEPT) / "faults.jsonl" if KEPT else None)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def spawner():
    with Spawner() as made:
        yield made


@pytest.fixture
def proxy():
    with Proxy() as made:
        yield made


@pytest.fixture(scope="session")
def outcomes():
    return OUTCOMES


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The small network and what it answers to VALUE."""
    folder = tmp_path_factory.mktemp("small")
    net = Small().eval()
    calibration = torch.randn(64, 4, generator=torch.Generator().manual_seed(4)) * 2
    for name in ("twopc", "threepc", "active"):
        numerics = {"bits": 32, "scale": 8, "narrow": False} if name == "active" else None
        privml.convert(net, torch.randn(1, 4), calibration=calibration, numerics=numerics).save(folder / name)
    with torch.no_grad():
        expected = net(torch.from_numpy(VALUE)).numpy()
    return Network("small network", folder, VALUE, expected, 0.1, {"active": ["engine.ring=32"]})


@pytest.fixture
def deploying(spawner, proxy, tmp_path, request):
    """``Deployments`` of a network."""
    return lambda network: Deployments(
        spawner, proxy, tmp_path, network, lambda: request.getfixturevalue("certificates")
    )


@pytest.fixture
def deploy(deploying, small):
    with deploying(small) as made:
        yield made


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """Settings of server and client under TLS, by side."""
    from privml.service.certificates import issue, make_authority

    folder, names = tmp_path_factory.mktemp("certificates"), {"server": "hospital-a", "client": "lab-b"}
    make_authority(folder)
    settings = {}
    for side, name in names.items():
        issue(folder, name)
        files = {"authority": "authority.pem", "certificate": f"{name}.pem", "key": f"{name}.key"}
        other = "client" if side == "server" else "server"
        settings[side] = [f"identity.tls.{what}={folder / file}" for what, file in files.items()]
        settings[side].append(f"identity.tls.names.{other}={names[other]}")
    return settings


@pytest.fixture(scope="session")
def lenet(spawner, tmp_path_factory):
    """LeNet and what it says to a digit."""
    import models

    folder = tmp_path_factory.mktemp("lenet")
    model = models.load("lenet")
    for name in ("twopc", "active"):
        narrow = ["numerics=fixed64", "numerics.narrow=false"] if name == "active" else []
        done = spawner.start(["convert", "model=lenet", f"out={name}", "quiet=true", *narrow], folder)
        assert done.wait(300) == 0, done.errors
    (folder / "threepc").symlink_to("active")
    value = model.preprocess(model.samples[:1])
    with torch.no_grad():
        return Network("LeNet", folder, value.numpy(), model.module(value).numpy(), 1.0)


@pytest.fixture
def deploy_lenet(deploying, lenet):
    with deploying(lenet) as made:
        yield made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if OUTCOMES.rows:
        terminalreporter.section("what each side said")
        terminalreporter.write_line(OUTCOMES.table())
