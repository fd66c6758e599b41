# SPDX-License-Identifier: Apache-2.0
"""Which operator runs in which format on which engine, out of the operator table and the engines themselves."""

from __future__ import annotations

import re
from collections import defaultdict

import torch

import privml.ops.rules  # noqa: F401 - fills the table
from pages.results import ROOT
from privml import dispatch
from privml.engines.active.engine import ActiveEngine
from privml.engines.base import Engine
from privml.engines.catalogue import FORMS, FUNCTIONS
from privml.engines.plain.engine import PlainEngine
from privml.engines.threepc.engine import ThreePartyEngine
from privml.engines.twopc.engine import TwoPartyEngine

ENGINES: dict[str, type[Engine]] = {
    "plain": PlainEngine,
    "twopc": TwoPartyEngine,
    "threepc": ThreePartyEngine,
    "active": ActiveEngine,
}
HEAD = """# Operators, engines and formats

An operator has one rule for fixed point, integers and bits, and where the table says so another one for floats. Rules
are written against the [engine interface](../extending.md#architecture), so that every rule runs on every engine that
has its format. The suite `tests/model/test_ops.py` runs the cases of `tests/model/op_cases.py` on all engines and
compares them with float64, and with `plain` bit for bit.
"""
NOTES = """
- `active` with a ring of 32 bits has no functions, only what is made of products, comparisons and selections.
- `threepc` (with `truncation=exact`) and `active` compute their functions from comparisons, tables and products
  (`privml/engines/composed`); `plain` does as they do with `like="threepc"` or `like="active"`. In its other modes
  `threepc` has polynomials and addition formulas on masks of its own (`privml/engines/threepc/functions.py`).
- The cheaper forms of a function are chosen by `numerics.exp`; where an engine has none it takes its usual one or
  raises `ConfigError`. See [functions by products](../fixed-point-math.md#functions-by-products).
- An operator without a rule raises `UnsupportedOperator` with its name, the node and a hint. How to add one:
  [extend privml](../extending.md#add-an-operator).
"""


def overrides(engine: type[Engine], name: str) -> bool:
    return getattr(engine, name) is not getattr(Engine, name)


def has_floats(engine: type[Engine]) -> bool:
    return overrides(engine, "float_operation")


def has_formulas(engine: type[Engine]) -> bool:
    return overrides(engine, "formula")


def _engines() -> list[str]:
    lines = ["## Engines and formats", ""]
    lines += ["| | " + " | ".join(f"`{name}`" for name in ENGINES) + " |", "| --- |" + " --- |" * len(ENGINES)]
    rows = (
        ("fixed point, 2 to 64 bits", lambda e: True),
        ("integers, Booleans", lambda e: True),
        ("floats: float32, bfloat16, tf32, float16, others", has_floats),
        ("functions: " + ", ".join(f"`{name}`" for name in FUNCTIONS), lambda e: True),
        ("other forms: " + ", ".join(f"`{name}`" for name in FORMS), has_formulas),
    )
    for name, has in rows:
        lines.append(f"| {name} | " + " | ".join("yes" if has(e) else "" for e in ENGINES.values()) + " |")
    return [*lines, NOTES]


def _family(rule: object) -> str:
    return rule.__module__.removeprefix("privml.ops.").removeprefix("floating.").replace("_", " ")


def _floating(operator: torch._ops.OpOverload) -> bool:
    resolvers = dispatch._RESOLVERS + dispatch._FLOATING_RESOLVERS
    return dispatch._found(operator, dispatch.FLOATING, dict(dispatch._RESOLVED_FLOATING), resolvers) is not None


def _table() -> list[str]:
    families: dict[str, list[torch._ops.OpOverload]] = defaultdict(list)
    for operator, rule in dispatch.TABLE.items():
        families[_family(rule)].append(operator)
    for operator, rule in dispatch.FLOATING.items():
        if operator not in dispatch.TABLE:
            families[_family(rule)].append(operator)
    floats = ", ".join(f"`{name}`" for name, engine in ENGINES.items() if has_floats(engine))
    lines = ["## Operators", "", f"Fixed point, integers and bits: on all engines. Floats: on {floats}.", ""]
    lines += ["| family | operator (aten.) | fixed point, integers, bits | floats |", "| --- | --- | --- | --- |"]
    for family in sorted(families):
        for operator in sorted(families[family], key=str):
            name = str(operator).removeprefix("aten.").removesuffix(".default")
            ring, real = operator in dispatch.TABLE, _floating(operator)
            lines.append(f"| {family} | `{name}` | {'yes' if ring else ''} | {'yes' if real else ''} |")
    lines += [
        "",
        "In-place forms (`add_`, ...), `out=` forms and what PyTorch takes apart before it reaches the table ",
    ]
    lines[-1] += "run by these rules too."
    return [*lines, ""]


def pages() -> dict[str, str]:
    onnx = re.sub("^(#+ )", r"#\1", (ROOT / "docs" / "reference" / "onnx-operators.md").read_text(), flags=re.M)
    return {"reference/operators.md": "\n".join([HEAD, *_engines(), *_table(), onnx])}
