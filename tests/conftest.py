# SPDX-License-Identifier: Apache-2.0
"""What tests of several folders share lies beside this file."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
