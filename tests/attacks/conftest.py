# SPDX-License-Identifier: Apache-2.0
"""What adversaries did once: each file shows that it fails now. Services run on threads, as in ``tests/process``."""

import sys
from pathlib import Path

import pytest
import torch

for folder in ("process", "protocol"):
    sys.path.append(str(Path(__file__).parent.parent / folder))


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
