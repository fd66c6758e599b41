# SPDX-License-Identifier: Apache-2.0
"""The notebooks of docs/ as pages: text as it stands, code, and what it printed or showed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"


def pages() -> dict[str, str]:
    return {
        path.relative_to(DOCS).with_suffix(".md").as_posix(): markdown(path) for path in sorted(DOCS.rglob("*.ipynb"))
    }


def markdown(path: Path) -> str:
    """A notebook's page, with a link to the notebook itself below the title."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        parts += [shown for output in cell["outputs"] for shown in _shown(output)]
    title, _, first = parts[0].partition("\n")
    link = f'<a href="{path.name}" download>This page as a Jupyter notebook</a>'
    return "\n\n".join((title, link, first.strip(), *parts[1:])) + "\n"


def _shown(output: dict[str, Any]) -> Iterator[str]:
    if output["output_type"] == "stream":
        if output["name"] == "stdout":
            yield f"```text\n{''.join(output['text'])}```"
        return
    data = output.get("data", {})
    if "text/html" in data:
        html = "".join(data["text/html"])
        if html:
            yield f'<div class="output">{html}</div>'
    elif "text/plain" in data:
        yield f"```text\n{''.join(data['text/plain'])}\n```"
