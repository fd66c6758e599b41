# SPDX-License-Identifier: Apache-2.0
"""The kinds of errors, their meaning and their remedy, in the page on trouble: from the classes' docstrings."""

from __future__ import annotations

import inspect
import re

from pages.figures import table
from pages.results import ROOT
from pages.runs import with_tables
from privml import errors

MARK = "kinds of errors"


def pages() -> dict[str, str]:
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    rows = [[f"`{kind.__name__}`", *meaning_and_remedy(kind)] for kind in kinds()]
    return {
        "troubleshooting.md": with_tables(text, {MARK: table(["error", "meaning", "remedy"], rows, 3)}, "privml.errors")
    }


def kinds() -> list[type[errors.PrivmlError]]:
    """In the order of their definition, without the base."""
    found = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    return [kind for kind in found if issubclass(kind, errors.PrivmlError) and kind is not errors.PrivmlError]


def meaning_and_remedy(kind: type[errors.PrivmlError]) -> list[str]:
    """Cells of a table. Raises ValueError for a class whose docstring has no remedy."""
    meaning, remedy, text = (kind.__doc__ or "").partition("Remedy:")
    if not remedy or not text.strip():
        raise ValueError(f"{kind.__name__}: the docstring gives no remedy")
    return [re.sub("`+", "`", " ".join(part.split())).replace("|", "\\|") for part in (meaning, text)]
