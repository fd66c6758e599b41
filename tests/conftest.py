# SPDX-License-Identifier: Apache-2.0
"""What tests of several folders share lies beside this file."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Where services keep what outlives them, and commands what they can make again.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="privml-tests-")
os.environ["PRIVML_CACHE"] = tempfile.mkdtemp(prefix="privml-tests-")


@pytest.fixture
def narrow(monkeypatch):
    """Products with weights have no ciphertexts for operands of any width, which often have the fewest bytes."""
    from privml.engines.twopc import preparation, weights

    for module in (weights, preparation):
        monkeypatch.setattr(module, "candidates", lambda product, ot, linear: [])
