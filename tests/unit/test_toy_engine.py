# SPDX-License-Identifier: Apache-2.0
"""An engine outside the package is found by its entry point, and runs as the built-in ones do."""

import sys
from pathlib import Path

import pytest
import torch

import privml
from privml.cli import main
from privml.engines import interface
from privml.engines.interface import BUILT_IN, backend, backends
from privml.errors import ConfigError


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Installs the folder tests/toy_engine."""
    facts = tmp_path / "toy-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1\n")
    (facts / "entry_points.txt").write_text(f"[{interface.GROUP}]\ntoy = toy_engine.backend:BACKEND\n")
    for folder in (Path(__file__).parents[1], tmp_path):
        monkeypatch.syspath_prepend(folder)
    backend.cache_clear()
    yield backend("toy")
    backend.cache_clear()
    for name in [name for name in sys.modules if name.startswith("toy_engine")]:
        del sys.modules[name]


def test_it_is_one_of_them(toy):
    assert toy in backends() and interface.names() == (*BUILT_IN, "toy")
    assert toy.config(largest=7).largest == 7


def test_it_computes(toy):
    with privml.local("toy", bits=32, scale=12, largest=5) as session:
        product = privml.reveal(privml.share(torch.tensor([1.5, -2.0])) * 2.5)
    assert product.tolist() == [3.75, -5.0]
    assert session.engine.name == "toy" and session.engine.largest == 5 and session.engine.opened == 2


@pytest.mark.parametrize("wrong, said", [({"smallest": 1}, "largest"), ({"largest": 0}, "at least 1")])
def test_its_own_settings_are_checked(toy, wrong, said):
    with pytest.raises(ConfigError, match=said):
        privml.engine("toy", **wrong)


def test_it_has_no_processes(toy):
    with pytest.raises(ConfigError, match="cannot run between processes"):
        privml.connect(0, privml.SessionSpec("toy"), listen="127.0.0.1:0")


def test_the_command_line_knows_its_settings(toy, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["privml"])
    main(["run", "engine=toy", "engine.largest=7", "--cfg", "job"])
    assert "engine:\n  name: toy\n  largest: 7\n" in capsys.readouterr().out


def test_an_unknown_engine_is_named_with_those_there_are():
    with pytest.raises(ConfigError, match="'toys' is not one of plain, twopc, threepc, active"):
        privml.local("toys")
