# SPDX-License-Identifier: Apache-2.0
"""Writes privml/_core/*.pyi, by which editors and type checkers know the compiled core: ``make build`` runs it. With
``--check`` ends with 1 if a stub is not current."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

STUBS = Path(__file__).resolve().parents[1] / "privml" / "_core"
LICENCE = "# SPDX-License-Identifier: Apache-2.0\n"
# What releases of pybind11 call the arguments that stand for a number.
NUMBERS = {
    "typing.SupportsInt | typing.SupportsIndex": "int",
    "typing.SupportsFloat | typing.SupportsIndex": "float",
    "typing.SupportsInt": "int",
    "typing.SupportsFloat": "float",
}


def made() -> dict[str, str]:
    """File name -> text of every stub, from the extension that is installed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pybind11_stubgen", "privml._core", "-o", folder, "--exit-code"]
        subprocess.run(command, cwd=STUBS.parents[1], check=True, capture_output=True)
        files = sorted(Path(folder, "privml", "_core").glob("*.pyi"))
        return {file.name: tidied(file.read_text()) for file in files}


def tidied(text: str) -> str:
    """Without what differs between releases of pybind11, and formatted."""
    for long, short in NUMBERS.items():
        text = text.replace(long, short)
    text = re.sub(r"(\w+): (\w+) = None", r"\1: \2 | None = None", text)
    text = re.sub(r'typing\.Annotated\[(collections\.abc\.Sequence\[\w+\]), "FixedSize\(\d+\)"\]', r"\1", text)
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--isolated",
        "--line-length=120",
        "--stdin-filename=_core.pyi",
        "-",
    ]
    return LICENCE + subprocess.run(command, input=text, text=True, check=True, capture_output=True).stdout


def stale(current: dict[str, str]) -> list[str]:
    """Names of stubs that are missing, superfluous or not as in ``current``."""
    written = {file.name: file.read_text() for file in STUBS.glob("*.pyi")}
    return sorted(name for name in {*current, *written} if current.get(name) != written.get(name))


def main() -> None:
    if importlib.util.find_spec("pybind11_stubgen") is None:
        print("stubs of privml._core are left as they are: pip install pybind11-stubgen")
        return
    current = made()
    names = stale(current)
    if "--check" in sys.argv[1:]:
        print("\n".join(f"{STUBS / name} is not current: make build" for name in names) or "stubs are current")
        sys.exit(bool(names))
    STUBS.mkdir(exist_ok=True)
    for name in names:
        if name in current:
            (STUBS / name).write_text(current[name])
        else:
            (STUBS / name).unlink()


if __name__ == "__main__":
    main()
