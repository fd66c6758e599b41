# SPDX-License-Identifier: Apache-2.0
"""What editors and type checkers are told of the package."""

import sys
from pathlib import Path

import pytest

import privml

pytest.importorskip("privml._core")
pytest.importorskip("pybind11_stubgen")
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "scripts")]

import make_stubs  # noqa: E402


def test_stubs_of_the_core_are_those_of_the_extension(monkeypatch, tmp_path):
    current = make_stubs.made()
    assert make_stubs.stale(current) == [], "make build"
    assert "class TwoPartySession" in current["__init__.pyi"] and "def relu" in current["twopc.pyi"]
    for name, text in current.items():
        (tmp_path / name).write_text(text.replace("def millionaires", "def billionaires"))
    monkeypatch.setattr(make_stubs, "STUBS", tmp_path)
    assert make_stubs.stale(current) == ["twopc.pyi"]


def test_the_package_says_that_it_is_typed():
    assert (Path(privml.__file__).parent / "py.typed").is_file()


def test_the_public_modules_are_checked():
    """Those that public names are in are among the files of mypy."""
    settings = (Path(privml.__file__).parents[1] / "pyproject.toml").read_text()
    for module in {*privml._MODULES.values(), "privml.errors", "privml.formats"}:
        assert f'"{module.replace(".", "/")}.py"' in settings, f"{module} is not checked by mypy"
