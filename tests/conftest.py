# SPDX-License-Identifier: Apache-2.0
"""What tests of several folders share lies beside this file."""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# Where services keep what outlives them, and commands what they can make again.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="privml-tests-")
os.environ["PRIVML_CACHE"] = tempfile.mkdtemp(prefix="privml-tests-")
