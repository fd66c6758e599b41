# SPDX-License-Identifier: Apache-2.0
"""The table of outcomes: what is kept of several runs, and how it is shown."""

from __future__ import annotations

from fault_outcomes import Outcomes, read
from fault_service import Outcome

GONE = "PeerDisconnected: the peer closed the connection"


def outcome(scenario, side, point, seconds, said=GONE):
    return Outcome(scenario, "kill -9" if side else "reset", side, point, {"other": said}, {"other": seconds})


def run(file, *outcomes):
    """A run that ends after these."""
    made = Outcomes(file)
    for each in outcomes:
        made.add(each)
    return made


def test_a_run_replaces_what_it_tells_anew(tmp_path):
    file = tmp_path / "results" / "faults.jsonl"
    run(file, *(outcome("b", side, point, 1.0) for side in ("server", "client") for point in ("25.0 %", "75.0 %")))
    run(file, outcome("b", "client", "50.0 %", 2.0), outcome("a", "", "50.0 %", 3.0))
    assert [(row["scenario"], row["side"], row["point"]) for row in read(file)] == [
        ("b", "server", "25.0 %"), ("b", "server", "75.0 %"), ("b", "client", "50.0 %"), ("a", "", "50.0 %"),
    ]  # fmt: skip
    assert list(file.parent.iterdir()) == [file]


def test_points_at_which_the_same_was_said_share_a_row():
    shares = [outcome("b", "client", f"{share} %", share / 10) for share in (10.0, 30.0, 50.0, 70.0)]
    late = outcome("b", "client", "90.0 %", 9.0, "the answer")
    made = run(None, outcome("b", "", "50.0 %", 3.0), *shares, late, outcome("a", "server", "connection", 0.5))
    assert made.table().splitlines()[2:] == [
        "| a | kill -9 | server | connection | other: `PeerDisconnected` | 0.50 |",
        "| b | kill -9 | client | 4 from 10 to 70 % of the bytes | other: `PeerDisconnected` | 5.00, at most 7.00 |",
        "| b | kill -9 | client | 90.0 % of the bytes | other: the answer | 9.00 |",
        "| b | reset | the connection | 50.0 % of the bytes | other: `PeerDisconnected` | 3.00 |",
    ]
