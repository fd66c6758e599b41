# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

import privml


def test_package_and_metadata_name_one_release():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert re.search(r'^version = "(.*)"$', text, re.MULTILINE).group(1) == privml.__version__
