# SPDX-License-Identifier: Apache-2.0
"""Runs the notebooks of docs/ and keeps what they print in them: ``python scripts/run_notebooks.py [NAME ...]``."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "docs" / "howto"
SECONDS_PER_CELL = 300


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """The notebook, run from its beginning with ``folder`` as the working directory."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook, timeout=SECONDS_PER_CELL, resources=resources, record_timing=False, coalesce_streams=True
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """What each cell of code prints."""
    return [
        "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def main() -> None:
    import tempfile

    chosen = [NOTEBOOKS / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(NOTEBOOKS.glob("*.ipynb"))
    for path in chosen:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
        print(path)


if __name__ == "__main__":
    main()
