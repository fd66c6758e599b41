# SPDX-License-Identifier: Apache-2.0
"""The page's table of models of `transformers` is that of the records, and refusals stay short in it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

pytest.importorskip("transformers")
ROOT = Path(__file__).resolve().parents[2]
# Beside the package of the same name.
_spec = importlib.util.spec_from_file_location("benchmarks_models", ROOT / "benchmarks" / "models.py")
measured = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(measured)
RECORDS = [json.loads(line) for line in (ROOT / "benchmarks" / "results" / "models.jsonl").read_text().splitlines()]


def test_the_page_has_the_table_of_the_records():
    page = (ROOT / "docs" / "howto" / "models.md").read_text()
    assert page.partition(measured.MARK)[2].strip() == measured.table(RECORDS)


def test_a_refusal_is_a_word_in_the_table_and_a_message_below():
    kept = next(record for record in RECORDS if "convert" in record)
    message = "PrecisionLost: an output changes"
    whole = {**{key: kept[key] for key in ("size", "token_ids", "shapes")}, "family": "one", "refused": message}
    part = {**kept, "family": "two", "twopc": {"refused": message}}
    rows, _, below = measured.table([whole, part]).partition("\n\n")
    assert rows.count("refused (PrecisionLost)") == 2 and message not in rows
    assert below.splitlines()[2:] == [f"- one, {kept['size']}: {message}", f"- two, {kept['size']} on twopc: {message}"]
