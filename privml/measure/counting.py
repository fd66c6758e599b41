# SPDX-License-Identifier: Apache-2.0
"""The time that a newly started party needs to count what a query draws: ``python -m privml.measure.counting task``.

``task``: a pickle of a program's file, the inputs' shapes and a ``Setting``. Prints seconds.
"""

from __future__ import annotations

import pickle
import sys
import time
from pathlib import Path

from privml.measure.predict import demand_of
from privml.program import Program
from privml.session.session import load_torch


def main() -> None:
    file, shapes, setting = pickle.loads(Path(sys.argv[1]).read_bytes())
    load_torch()  # as parties do before they meet
    program = Program.load(file)
    start = time.perf_counter()
    demand_of(program, shapes, setting)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
