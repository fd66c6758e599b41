# SPDX-License-Identifier: Apache-2.0
"""Prints the run-time and development requirements that pyproject.toml declares, one a line, for pip -r."""

import re
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
print("\n".join(line for line in wanted if re.split(r"[<>=!~ \[]", line)[0] != "torch"))
