# SPDX-License-Identifier: Apache-2.0
"""MkDocs hook: adds the generated pages and pictures to the site; nothing is written below docs/.

Each module of ``MODULES`` offers ``pages()``: file name below docs/ -> text. A page that holds tables between marks
(see ``pages.runs``) stands in docs/ without them.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

SCRIPTS = Path(__file__).resolve().parents[1]
MODULES = ("drawings", "notebooks", "options", "operators", "papers", "benchmarks", "runs", "errors")


def made(module: str) -> dict[str, str]:
    """The files of one generator, below docs/, and their text."""
    if str(SCRIPTS) not in sys.path:
        sys.path[:0] = [str(SCRIPTS.parent), str(SCRIPTS)]
    return importlib.import_module(f"pages.{module}").pages()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs with the files of docs/."""
    from mkdocs.structure.files import File

    for module in MODULES:
        for name, text in made(module).items():
            written = files.get_file_from_path(name)
            if written is not None:
                files.remove(written)
            files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by MkDocs with the text of a page: links to a notebook lead to its page, those to the list of ONNX
    operators to the page of all operators."""
    markdown = re.sub(r"(\]\([\w./-]*)onnx-operators\.md(?=\))", r"\1operators.md#onnx-operators", markdown)
    return re.sub(r"(\]\([\w./-]+)\.ipynb(?=[)#])", r"\1.md", markdown)
