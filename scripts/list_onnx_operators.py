# SPDX-License-Identifier: Apache-2.0
"""Writes docs/reference/onnx-operators.md: which ONNX operators are supported, with the figures of the node tests
that the onnx package ships, as measured now: ``python scripts/list_onnx_operators.py [FILE]``.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import onnx
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "model")]

from onnx_backend import Case, cases, convert, differences, is_finite, run, run_secret, tolerance  # noqa: E402

import privml  # noqa: E402
from privml.errors import InvalidInput, UnsupportedOperator  # noqa: E402
from privml.graph.onnx.load import TARGET_OPSET  # noqa: E402
from privml.graph.onnx.table import REASONS, supported_operators  # noqa: E402

HEADER = f"""# ONNX operators

`OnnxModule` turns an ONNX model into a PyTorch module. Models of opsets before {TARGET_OPSET} are first converted
to opset {TARGET_OPSET}; functions of the model, and operators that ONNX defines as functions of others, are inlined.

The tables count the node tests that the onnx package ({onnx.__version__}) brings along:

- **in the clear**: the number of tests that give the right result on ordinary tensors, of all tests. In the other
  tests the model is refused when it is converted, mostly for an element type (strings, 4-bit and 8-bit floats, unsigned
  16 to 64 bits) that torch does not compute with.
- **secret**: the number of tests that give the right result on secret inputs in fixed point (64 bits, 16 of them
  fractional) to within 0.001 (LpPool: 2^-8), of those whose inputs and results can be shared (no infinities, no NaN).
  The other tests raise `UnsupportedOperator` when they are run.

A result that is wrong would fail the tests of this project. Written by `scripts/list_onnx_operators.py`.
"""
NOTES = {
    "Constant": "single numbers stay public, arrays become parameters",
    "CumProd": "one product after the other",
    "Div": "a divisor of the model becomes a factor; by a secret through an inverse root",
    "Dropout": "for inference only",
    "GRU": "sequence_lens must be constants; no activations with parameters (alpha, beta)",
    "If": "the condition must be known at conversion, or depend on shapes",
    "Loop": "unrolled; trip count and conditions must be known at conversion, or depend on shapes",
    "LSTM": "as GRU",
    "Pad": "the constant must be part of the model",
    "Range": "bounds are public",
    "RNN": "as GRU",
    "Scan": "unrolled; from opset 9 on",
    "Shape": "public, and folded",
    "Size": "public, and folded",
    "SVMClassifier": "class probabilities for two classes only",
    "TreeEnsemble": "thresholds and leaf values secret; shape of the trees and features public, or with "
    "tree_structure=hidden secret but for depth and number",
    "TreeEnsembleClassifier": "as TreeEnsemble; string labels are looked up in clear",
    "LinearClassifier": "string labels are looked up in clear",
    "TreeEnsembleRegressor": "as TreeEnsemble",
    "ZipMap": "dropped: the scores stay a tensor",
}


def measure(case: Case) -> str:
    """What becomes of a case: refused, wrong, public (nothing to share), unshareable, unsupported, or secret."""
    try:
        module = convert(case)
    except UnsupportedOperator:
        return "refused"
    if list(differences(case, run(case, module))):
        return "wrong"
    if not module.input_names:
        return "public"
    if not is_finite(case):
        return "unshareable"
    try:
        with privml.local("plain"):
            problems = list(differences(case, run_secret(case, module), tolerance(case), tolerance(case)))
    except InvalidInput:
        return "unshareable"
    except UnsupportedOperator:
        return "unsupported"
    return "wrong" if problems else "secret"


def has_body(name: str) -> bool:
    """Whether ONNX defines the operator as a function of others (an old name is converted to a newer one)."""
    if not onnx.defs.has(name):
        return False
    schema = onnx.defs.get_schema(name)
    return schema.deprecated or schema.has_function or schema.has_context_dependent_function


def row(name: str, count: Counter) -> str:
    total, refused, wrong = count.total(), count["refused"], count["wrong"]
    shareable = count["secret"] + count["unsupported"]
    clear = f"{total - refused - wrong} of {total}" if total else "none"
    secret = f"{count['secret']} of {shareable}" if shareable else "none"
    return f"| {name} | {clear} | {secret} | {NOTES.get(name, '')} |"


def table(names: list[str], counts: dict[str, Counter]) -> list[str]:
    head = ["| operator | in the clear | secret | notes |", "| --- | --- | --- | --- |"]
    return [*head, *(row(name, counts.get(name, Counter())) for name in names), ""]


def page() -> str:
    counts = {operator: Counter(map(measure, group)) for operator, group in cases().items()}
    supported = supported_operators()
    known = {name for names in supported.values() for name in names}
    inlined = sorted(n for n, c in counts.items() if n not in known and has_body(n) and c["refused"] < c.total())
    refused = sorted((set(counts) | set(REASONS)) - known - set(inlined))
    total = sum(counts.values(), Counter())
    lines = [HEADER, "## ONNX", "", *table(supported[""], counts), "## ai.onnx.ml", ""]
    lines += [*table(supported["ai.onnx.ml"], counts), "## By inlining", ""]
    lines += ["Operators that are replaced by those above (as are all others that ONNX defines in terms of them).", ""]
    lines += [*table(inlined, counts), "## Refused", "", "| operator | why |", "| --- | --- |"]
    lines += [f"| {name} | {REASONS.get(name, 'no rule yet')} |" for name in refused]
    lines += [
        "",
        "## All together",
        "",
        f"Of {total.total()} tests {total.total() - total['refused'] - total['wrong']} are right in the clear, "
        f"{total['refused']} refused, {total['wrong']} wrong. Of those right in the clear, {total['secret']} are "
        f"right on secret tensors, {total['unsupported']} unsupported there, {total['unshareable']} have inputs "
        f"that cannot be shared, and {total['public']} have public inputs only.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    torch.set_num_threads(1)
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "reference" / "onnx-operators.md"
    text = page()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    print(text.rsplit("## All together", 1)[1].strip())
    print(f"written to {target}")


if __name__ == "__main__":
    main()
