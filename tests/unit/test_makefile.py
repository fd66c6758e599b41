# SPDX-License-Identifier: Apache-2.0
"""What a first `make demo` builds, and what setting up prints."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def planned(goal: str, **variables: str) -> str:
    """The commands of a goal, which are not run."""
    command = ["make", "--no-print-directory", "--dry-run", goal]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("goal", ["build", "demo"])
def test_the_extension_alone_is_built(goal: str) -> None:
    builds = [line for line in planned(goal).splitlines() if "cmake --build" in line]
    assert builds and all("--target _core" in line for line in builds)


def test_the_demo_is_the_script_that_its_test_runs() -> None:
    """`.ci/run` leaves `make demo` out, for tests/process/test_demo.py runs the same script."""
    *_, last = planned("demo", VENV=".venv").splitlines()
    assert last == ".venv/bin/python scripts/demo.py"


def test_common_headers_are_compiled_once_without_a_compiler_cache() -> None:
    assert "-DPRIVML_PCH=ON" in planned("configure", CMAKE_CXX_COMPILER_LAUNCHER="")
    assert "-DPRIVML_PCH=OFF" in planned("configure", CMAKE_CXX_COMPILER_LAUNCHER="ccache")


@pytest.mark.parametrize("fails", [False, True])
def test_setting_up_prints_a_line_for_each_stage(fails: bool, tmp_path: Path) -> None:
    """With a pip that does nothing but talk; what it said is shown if it fails."""
    tools = tmp_path / "venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "pip").write_text(f"#!/bin/sh\necho WARNING: noise; exit {int(fails)}\n")
    (tools / "python").write_text(f'#!/bin/sh\ncase "$*" in *sysconfig*) echo "{tmp_path}";; *) echo numpy;; esac\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    done = subprocess.run(
        ["bash", "scripts/setup.sh"],
        cwd=ROOT,
        env={**os.environ, "VENV": str(tmp_path / "venv"), "TORCH": "torch==0"},
        capture_output=True,
        text=True,
    )
    assert "noise" not in done.stdout
    if fails:
        assert done.returncode == 1 and "noise" in done.stderr and "failed: pip" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    stages = [line for line in done.stdout.splitlines() if line.endswith(" s")]
    assert [line.split("  ")[0] for line in stages] == ["pip", "torch==0", "build tools", "all other packages"]
