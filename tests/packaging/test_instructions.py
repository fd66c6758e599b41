# SPDX-License-Identifier: Apache-2.0
"""The compiled core runs on any x86-64 processor: wider instructions stand only behind a look at the processor."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from instructions import disassembly, dispatched, newer, shared_functions

BUILD = Path(__file__).parents[2] / "build/release/CMakeFiles"
OBJECTS = sorted(BUILD.glob("privml_*.dir/**/*.o")) + sorted(BUILD.glob("_core.dir/**/*.o"))
pytestmark = [
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86-64 only"),
    pytest.mark.skipif(shutil.which("objdump") is None, reason="needs binutils"),
    pytest.mark.skipif(not OBJECTS, reason="needs the objects of `make build`"),
]


def source(file: Path) -> str:
    return f"{file.parent.name}/{file.name.removesuffix('.o')}"


def behind_a_look() -> Iterator[Path]:
    return (file for file in OBJECTS if source(file) in dispatched())


def test_only_dispatched_files_need_newer_processors() -> None:
    assert dispatched() <= {source(file) for file in OBJECTS}
    for file in OBJECTS:
        found = newer(disassembly(file))
        assert bool(found) == (source(file) in dispatched()), (source(file), found)


def test_dispatched_files_share_no_function_with_others() -> None:
    """Else the linker could keep the copy that was compiled for a newer processor, and old ones would run it."""
    for file in behind_a_look():
        assert shared_functions(file) == [], source(file)


LINES = """
0000000000000000 <_ZN6privml4packEv>:
   0:\tendbr64
   4:\tmovdqa (%rdi),%xmm0
   8:\trep bsf %rax,%rdx
   c:\t{call}
  10:\tret
0000000000000020 <_ZN6privml4packEv.arch_x86_64_v3>:
  20:\tvpxor  %ymm0,%ymm0,%ymm0
"""


@pytest.mark.parametrize(
    "instruction",
    ["vpxor %ymm0,%ymm0,%ymm0", "vmovdqu64 %zmm1,(%rax)", "kmovq %k1,%rax", "shlx %rax,%rcx,%rdx", "popcnt %rax,%rax",
     "aesenc %xmm1,%xmm0", "pclmulqdq $0x0,%xmm1,%xmm0", "pshufb %xmm1,%xmm0", "pextrq $0x1,%xmm0,%rax",
     "pblendvb %xmm0,%xmm1,%xmm2", "gf2p8affineqb $0x0,%xmm1,%xmm0", "lock crc32q (%rax),%rcx"],
)  # fmt: skip
def test_newer_instructions_are_seen(instruction: str) -> None:
    name = instruction.removeprefix("lock ").split()[0]
    assert newer(LINES.replace("{call}", instruction)) == {"_ZN6privml4packEv": {name}}


@pytest.mark.parametrize(
    "instruction", ["pxor %xmm0,%xmm0", "verw (%rax)", "call 8 <memcpy>", "pextrw $0x1,%xmm0,%eax"]
)
def test_older_instructions_and_clones_pass(instruction: str) -> None:
    assert newer(LINES.replace("{call}", instruction)) == {}
