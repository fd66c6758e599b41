# SPDX-License-Identifier: Apache-2.0
"""Which instructions of the compiled core only run on newer processors, and where they stand.

A wheel must run on any x86-64 processor (SSE2). Wider instructions may stand in files with flags of their own, whose
functions are called after a look at the processor, and in functions that the loader chooses (``target_clones``).
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

CSRC = Path(__file__).parents[2] / "csrc"
# What the loader chooses between ends so.
CLONE = re.compile(r"\.arch_x86_64_v[34]\b")
# An instruction beyond SSE2 in a line of objdump's. VEX and EVEX mnemonics begin with v (but verr and verw are of the
# 80286); tzcnt stands for `rep bsf`, which older processors execute as bsf.
_INSTRUCTION = re.compile(
    r"""^\ +[0-9a-f]+:\t(?:(?:rep[nz]?|lock|data16|cs|ds|notrack|bnd|\{\w+\})\ )*
    (v(?!err\b|erw\b)\w+ | k(?:mov|and|or|xor|not|shift|ortest|test|unpck|add)\w*
    | mulx | pdep | pext | [rs](?:or|hl|hr|ar)x | andn | bzhi | bextr | bls(?:r|i|msk) | ad[co]x | popcnt | lzcnt
    | aes\w+ | pclmul\w+ | sha(?:1|256)\w+ | gf2p8\w+ | crc32\w? | movbe
    | addsub\w+ | h(?:add|sub)p[sd] | lddqu | mov(?:shdup|sldup|ddup) | ph(?:add|sub)\w+ | p(?:mulhrsw|maddubsw|shufb)
    | psign[bwd] | palignr | pabs[bwd] | [bp]?blend\w+ | p?blendv\w+ | round[ps][sd] | (?:pextr|pinsr)[bdq] | extractps
    | insertps | pmov[sz]x\w+ | p(?:min|max)(?:sb|sd|uw|ud) | pmul(?:dq|ld) | pcmp(?:eqq|gtq|[ei]str\w) | ptest
    | packusdw | phminposuw | mpsadbw | dpp[sd] | movntdqa)(?=[\ \n])""",
    re.MULTILINE | re.VERBOSE,
)


def newer(disassembly: str) -> dict[str, set[str]]:
    """Function -> its mnemonics beyond SSE2, of ``objdump -d --no-show-raw-insn``; those of clones are left out."""
    found: dict[str, set[str]] = defaultdict(set)
    for match in _INSTRUCTION.finditer(disassembly):
        start = disassembly.rindex(" <", 0, disassembly.rindex(">:\n", 0, match.start())) + 2
        function = disassembly[start : disassembly.index(">:\n", start)]
        if not CLONE.search(function):
            found[function].add(match[1])
    return dict(found)


def disassembly(file: Path) -> str:
    command = ["objdump", "-d", "--no-show-raw-insn", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def shared_functions(file: Path) -> list[str]:
    """Functions and variables of an object file of which the linker takes any one copy: inline ones and templates."""
    listed = subprocess.run(["nm", "-C", str(file)], capture_output=True, text=True, check=True).stdout
    return [line[19:] for line in listed.splitlines() if line[17:18] in ("W", "V", "u")]


def dispatched() -> set[str]:
    """The sources that csrc/CMakeLists.txt compiles for newer processors of x86-64, as layer/name.cpp."""
    text = (CSRC / "CMakeLists.txt").read_text()
    return set(re.findall(r"privml_dispatched\((\S+) -m(?!arch=arm)", text))
