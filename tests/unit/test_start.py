# SPDX-License-Identifier: Apache-2.0
"""What needs neither torch nor the compiled core starts without them, and says if they are missing."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import privml

# Verbs end in SystemExit, which leaves sys.modules to be looked at.
SCRIPT = """
import sys
{before}
try:
    {body}
except SystemExit as ended:
    assert not ended.code, ended.code
loaded = [name for name in ("torch", "privml._core") if sys.modules.get(name)]
assert not loaded, loaded
"""
MAIN = "from privml.cli import main; main({})"
STARTS = {
    "import": "import privml; dir(privml)",
    "the parts": "import privml; privml.errors, privml.formats, privml.ANY_NAME, privml.Tls, privml.OtChoice",
    "help": MAIN.format(["--help"]),
    "version": MAIN.format(["--version"]),
    "a verb's help": MAIN.format(["serve", "--help"]),
    "certs": MAIN.format(["certs", "init", "folder=made"]),
    "certs with values": MAIN.format(["certs", "init", "folder=made", "name=an authority", "days=30"]),
    "doctor": "import privml.cli.doctor",
}


def started(body: str, folder: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT.format(body=body, before=before)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("case", STARTS)
def test_torch_and_the_core_are_not_loaded(case, tmp_path):
    result = started(STARTS[case], tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "made" / "authority.pem").exists() == case.startswith("certs")


@pytest.mark.parametrize("case", ["help", "version", "certs", "certs with values"])
def test_hydra_is_not_loaded_where_nothing_is_chosen_from_groups(case, tmp_path):
    result = started(STARTS[case], tmp_path, "sys.modules.update(hydra=None)")
    assert result.returncode == 0, result.stderr


def test_doctor_says_what_is_missing(tmp_path):
    """None in sys.modules: its import fails."""
    missing = "sys.modules.update({'torch': None, 'privml._core': None})"
    result = started(MAIN.format(["doctor"]), tmp_path, missing)
    assert "AssertionError: 1" in result.stderr, "a machine without the core is broken"
    assert "privml does not work here yet: compiled core" in result.stdout


def test_editors_see_every_name_where_it_is():
    tree = ast.parse(Path(privml.__file__).read_text())
    (guarded,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {name.name: node.module for node in guarded.body for name in node.names}
    modules = {name: module for name, module in seen.items() if module == "privml"}
    assert seen == {**privml._MODULES, **modules}
    assert sorted([*seen, "__version__"]) == sorted(privml.__all__)
    for name in privml.__all__:
        assert getattr(privml, name) is not None and name in dir(privml)
    assert {name for name in dir(privml) if not name.startswith("__")} == {*privml.__all__} - {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = privml.nothing
