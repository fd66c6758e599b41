# SPDX-License-Identifier: Apache-2.0
"""What tests of several folders share lies beside this file."""

import logging
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


@pytest.fixture
def logged():
    """The records of warnings and worse, of every logger, that come while the test runs."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = records.append
    loggers = [logging.getLogger()]
    loggers += [each for each in logging.Logger.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    loggers = [each for each in loggers if each.parent is None or not each.propagate]
    for each in loggers:
        each.addHandler(handler)
    yield records
    for each in loggers:
        each.removeHandler(handler)
