# SPDX-License-Identifier: Apache-2.0
"""Prints requirements that pyproject.toml declares, one a line, for pip -r: of run time and development, or of the
extras that are named (``python scripts/requirements.py docs``)."""

import re
import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
wanted = [line for name in sys.argv[1:] for line in extras[name]] or project["dependencies"] + extras["dev"]
print("\n".join(line for line in wanted if re.split(r"[<>=!~ \[]", line)[0] != "torch"))
