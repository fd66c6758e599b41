# SPDX-License-Identifier: Apache-2.0
"""Everything in Python that reads a peer's or a file's bytes: for each a target with valid seeds, changes that know its
structure, and a function that takes any bytes and lets only errors of privml out (it swallows those)."""

from __future__ import annotations

import atexit
import contextlib
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutation import Mutator, mutate_bytes

from privml.errors import PrivmlError

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """``seeds``: valid inputs. ``mutate``: changes that keep what hides the rest (lengths, hashes) right, often."""

    name: str
    seeds: Callable[[], list[bytes]]
    run: Callable[[bytes], object]
    mutate: Mutator = mutate_bytes

    def take(self, data: bytes) -> bool:
        """Whether ``data`` was accepted; errors of privml are refusals, every other one passes through."""
        try:
            self.run(data)
        except PrivmlError:
            return False
        return True

    def corpus(self) -> list[Path]:
        folder = CORPUS / self.name
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def inputs(self, source: random.Random) -> Iterator[bytes]:
        """Without end: seeds and corpus, each changed once or a few times."""
        pool = self.seeds() + [path.read_bytes() for path in self.corpus()]
        while True:
            data = source.choice(pool)
            for _ in range(source.choice((1, 1, 1, 2, 5))):
                data = mutate_bytes(source, data) if source.random() < 0.25 else self.mutate(source, data)
            yield data


def targets() -> dict[str, Target]:
    """All of them by name."""
    import fuzz_files
    import fuzz_models
    import fuzz_peers

    found = [*fuzz_peers.TARGETS, *fuzz_files.TARGETS, *fuzz_models.TARGETS]
    return {target.name: target for target in found}


def workplace(name: str) -> Path:
    """A folder of this process, removed at its end."""
    made = Path(tempfile.mkdtemp(prefix=f"privml-fuzz-{name}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@contextlib.contextmanager
def kept(folder: Path) -> Iterator[Path]:
    """A copy of ``folder`` that may be written to."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as other:
        shutil.copytree(folder, Path(other) / folder.name)
        yield Path(other) / folder.name
