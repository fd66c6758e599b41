# SPDX-License-Identifier: Apache-2.0
"""Engines are named in their own packages: elsewhere everything about one is behind its backend."""

import re
from pathlib import Path

import privml

PACKAGE = Path(privml.__file__).parent
NAMED = re.compile(r"""["'](twopc|threepc|active)["']""")


def test_no_other_module_names_an_engine():
    modules = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    named = {name for name, text in modules.items() if NAMED.search(text) and not name.startswith("engines/")}
    assert not named
