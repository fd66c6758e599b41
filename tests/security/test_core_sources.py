# SPDX-License-Identifier: Apache-2.0
"""What protocol code must not contain: randomness that can be foreseen, comparisons that end early."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for kind in ("*.h", "*.cpp", "*.cu")
    for path in sorted((ROOT / "csrc").rglob(kind))
    if not re.search(r"(_test|_bench)\.\w+$|/testing/|/prove_|/fuzz/", str(path))
]
# Why a line may stand where it does: file, what it contains.
ALLOWED = {("net/tcp.cpp", "std::memcmp(&here, &there")}  # addresses of sockets
FORBIDDEN = {
    "weak randomness": r"\b(s?rand|rand_r|drand48)\s*\(|(?<!> )\brandom\s*\(\)"
    r"|std::(mt19937|minstd|default_random|random_device|ranlux|shuffle\b)",
    "an early exit": r"(?<!sodium_)\bmemcmp\s*\(|\bstrn?cmp\s*\(|\bbcmp\s*\(",
    "a clock as seed": r"\bPrg\s*\(?\{?[^;]*\b(time|clock|now)\s*\(",
}


def findings(sources, pattern):
    found = []
    for path in sources:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("//")[0]
            allowed = any(str(path).endswith(file) and text in line for file, text in ALLOWED)
            if re.search(pattern, code) and not allowed:
                found.append(f"{path}:{number}: {line.strip()}")
    return found


@pytest.mark.parametrize("what", FORBIDDEN)
def test_protocol_code_has_none_of_it(what):
    assert len(SOURCES) > 300
    assert findings(SOURCES, FORBIDDEN[what]) == []


@pytest.mark.parametrize(
    "what, line",
    [
        ("weak randomness", "  const u64 mask = rand() & 1;"),
        ("weak randomness", "  std::mt19937_64 random(seed);"),
        ("weak randomness", "  Block seed{std::random_device{}(), 0};"),
        ("an early exit", "  if (std::memcmp(mine.data(), theirs.data(), 32) != 0) abort();"),
        ("a clock as seed", "  Prg prg({time(nullptr), 0});"),
    ],
)
def test_the_scan_finds_it(what, line, tmp_path):
    path = tmp_path / "protocol.cpp"
    path.write_text(f"// rand() in a comment\n{line}\n  sodium_memcmp(a, b, 32);\n")
    assert len(findings([path], FORBIDDEN[what])) == 1


def test_python_code_draws_secrets_from_the_system():
    """``random`` and ``numpy.random`` appear only where nothing is secret: planning, benchmarks, training data, and the
    global generators that all parties have alike."""
    pattern = r"^\s*(import random|from random import)|np\.random\."
    public = (
        "experiments",
        "measure",
        "client.py",  # when a client tries again
        "generators.py",
    )
    paths = [p for p in (ROOT / "privml").rglob("*.py") if not any(part in public for part in p.parts)]
    assert len(paths) > 150
    assert findings(paths, pattern) == []
