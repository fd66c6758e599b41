# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/benchmarks of the other engines, of networks, and of predictions."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pages.figures import Bars, bars, rate, rounded, seconds, size, table
from pages.results import RESULTS, heading, lines_of, opening, page, picture, span
from privml.evaluation.records import read_all
from privml.evaluation.views import Zoo

_MEGA = 1 << 20


def _published(line: dict, place: int) -> str:
    return rounded(line["published_mb"][place]) if line.get("published_mb") else ""


def three_parties() -> dict[str, str]:
    name = "threepc-cpu-loopback"
    text = opening(
        "Three parties", "privml bench suite=threepc", [name], ["mizar"],
        "Three processes. Megabytes (2^20 bytes) are what party 0 sent and received online, and was dealt. "
        "`sigmoid` and `gelu` are the published ones of three and four pieces; the splines are what programs use. The "
        "lines of 32 bits were taken while other work ran.",
    )  # fmt: skip
    rows, drawn = [], []
    for line in lines_of(name):
        online, dealt = (line["party0_bytes"][phase] / _MEGA for phase in ("online", "preprocess"))
        rows.append([
            f"`{line['op']}`", str(line["bits"]), f"{line['n']:,}", rounded(online), _published(line, 0),
            rounded(dealt),
            _published(line, 1), str(line["phases"]["online"]["depth"]), seconds(line["seconds"]),
            size(max(line["peak_rss_bytes"])),
        ])  # fmt: skip
        if line.get("published_mb"):
            drawn.append(Bars(f"{line['op']}, {line['bits']} bits", (online + dealt, sum(line["published_mb"]))))
    head = [
        "operation",
        "bits",
        "n",
        "online MB",
        "MIZAR",
        "dealt MB",
        "MIZAR",
        "depth",
        "time",
        "memory, largest party",
    ]
    text += table(head, rows)
    chart = bars(
        "Megabytes of party 0, online and dealt together (logarithmic)", ("privml", "MIZAR, published"), drawn, rounded
    )
    text += picture("three-parties", "Megabytes of party 0 beside the published figures")
    text += ["What these operations do: [three-party engine](../three-party.md)."]
    return page("three-parties", text, chart)


def _newest(lines: Sequence[dict], *keys: str) -> list[dict]:
    return list({tuple(str(line[key]) for key in keys): line for line in lines}.values())


def _per_second(figures: Sequence[float | None] | None) -> str:
    return rate(figures[0]) if figures and figures[0] else ""


def active() -> dict[str, str]:
    names = ["spdz2k-softspoken-k4-malicious-loopback", "spdz2k-softspoken-k4-malicious-gigabit"]
    classical = "classical-softspoken-k4-malicious-gigabit"
    text = opening(
        "Actively secure engine", "privml bench suite=spdz2k", [*names, classical], ["mpspdz", "damgard"],
        "Two processes; MAC checks included. Both phases are timed apart: what is made ahead, and online. Bytes are "
        "what one party sends.",
    )  # fmt: skip
    drawn = []
    for name, network in zip(names, ("loopback", "1 Gbit/s, 0.4 ms each way"), strict=True):
        rows = []
        for line in _newest(lines_of(name), "op", "ring"):
            online, made = line["online"] or {}, line["made"] or {}
            rows.append([
                f"`{line['op']}`", str(line["ring"]), f"{(online or made).get('n', 0):,}",
                rate(online["per_second"]) if online else "", size(online["sent_per_op"]) if online else "",
                str(online.get("depth", "")), _per_second(line["measured"]), _per_second(line["published"]),
                rate(made["per_second"]) if made else "", size(made["sent_per_op"]) if made else "",
                _per_second(line["made_measured"]), size(line["peak_rss_bytes"]),
            ])  # fmt: skip
            if online and name == names[0] and line["measured"]:
                label = f"{line['op']}, k = {line['ring']}"
                published = line["published"][0] if line["published"] else None
                drawn.append(Bars(label, (online["per_second"], line["measured"][0], published)))
        head = ["operation", "ring", "n", "online per second", "sent", "depth", "MP-SPDZ online", "published online",
                "made per second", "sent", "MP-SPDZ made", "memory"]  # fmt: skip
        text += [f"## {network}", "", *table(head, rows)]
    series = ("privml", "MP-SPDZ", "published (Java, 1 Gbit/s)")
    chart = bars("Online operations per second (logarithmic)", series, drawn, rate)
    text += picture("active", "Online operations per second beside MP-SPDZ and the published figures")
    text += ["## Trees and support vector machines", "", "One sample, k = 64, over 1 Gbit/s and 0.4 ms each way.", ""]
    rows = []
    for line in lines_of(classical):
        phases, published = line["phases"], line["published_ms"]
        shape = ", ".join(f"{k} {v}" for k, v in line["params"].items() if k != "model")
        rows.append([
            f"`{line['op']}`", shape, seconds(phases["online"]["seconds"]), f"{published} ms" if published else "",
            str(phases["online"]["depth"]), size(phases["online"]["bytes"]), seconds(phases["preprocess"]["seconds"]),
            size(phases["preprocess"]["bytes"]),
        ])  # fmt: skip
    head = ["model", "shape", "online", "published", "depth", "bytes", "made ahead in", "bytes made ahead"]
    text += table(head, rows, words=2)
    text += ["How the engine works: [active security](../active-security.md), [its protocols](../active-protocols.md)."]
    return page("active", text, chart)


def networks() -> dict[str, str]:
    names = ["recurrent-softspoken-k4-loopback", "recurrent-silent-loopback"]
    text = opening(
        "Recurrent networks", "privml bench suite=recurrent", names, [],
        "Shapes of SiRNN's section VI, random weights, 16-bit variables. Bytes and depth come from the cost functions; "
        "networks of more than 400 MB are not run. Published figures: [recurrent networks](../recurrent.md). "
        "Every shipped model on every engine and network: [the zoo](../zoo.md).",
    )  # fmt: skip
    rows = []
    for name in names:
        for line in lines_of(name):
            phases = line["phases"]
            total = sum(phase["bytes"] for phase in phases.values())
            time = seconds(line["seconds"]) if line.get("seconds") else "not run"
            rows.append([f"`{line['op']}`", line["ot"], str(line["n"]), size(total), str(phases["online"]["depth"]),
                         str(line["one_by_one"]) if line.get("one_by_one") else "", time])  # fmt: skip
    head = ["network", "transfers", "batch", "bytes", "depth online", "operator by operator", "time"]
    text += table(head, rows, words=2)
    return page("networks", text)


def predictions() -> dict[str, str]:
    told = [
        record for record in Zoo(read_all(RESULTS / "zoo.jsonl")).runs if record.predicted_seconds and record.measured
    ]
    ratios = [record.predicted_seconds / record.measured.seconds for record in told]
    exact = sum(record.exact is True for record in told)
    text = [
        *heading(
            "Predicted beside measured",
            "`privml evaluate zoo engine=... network=... calibrate=missing`, `repeats=3` for some",
            "What `privml cost` foretells of a query of so many rows, and what it took between fresh processes, once "
            "or as the median of three runs, some of them beside other work. Bytes and depth are equal in "
            f"{exact} of {len(told)} records. How it is predicted: [costs and times](../costs.md).",
        ),
        f"- When: {span(record.about['time'] for record in told)}. Records: `benchmarks/results/zoo.jsonl`.", "",
        f"Within a quarter: {_close(ratios)} of {len(told)} queries.", "",
    ]  # fmt: skip
    networks = list(dict.fromkeys(record.network["name"] for record in told))
    rows = []
    for way in dict.fromkeys(record.way for record in told):
        here = [
            [x for r, x in zip(told, ratios, strict=True) if (r.way, r.network["name"]) == (way, n)] for n in networks
        ]
        rows.append(
            [way, *(f"{_close(x)} of {len(x)}" if x else "" for x in here), f"{statistics.median(sum(here, [])):.2f}"]
        )
    text += table(["engine", *networks, "median of predicted : measured"], rows)
    rows = [
        [record.model, record.way, record.network["name"], str(record.rows), seconds(record.predicted_seconds),
         seconds(record.measured.seconds), f"{ratio:.2f}", "yes" if record.exact else "no"]
        for record, ratio in zip(told, ratios, strict=True)
    ]  # fmt: skip
    head = ["model", "engine", "network", "rows", "predicted", "measured", "ratio", "bytes equal"]
    return page("predictions", text + table(head, rows, words=3))


def _close(ratios: Sequence[float]) -> int:
    return sum(abs(ratio - 1) <= 0.25 for ratio in ratios)


def spu() -> dict[str, str]:
    name = "compare-spu"
    text = opening(
        "Beside SecretFlow-SPU", "python benchmarks/compare_spu.py --spu=PYTHON_WITH_SPU", [name], ["spu"],
        "All parties as threads of one process, messages in memory; bytes are what all parties send, correlations "
        "included (SoftSpoken with k = 4). Errors are the largest ones against float. "
        "2^17 values (2^15 for GELU on two parties).",
    )  # fmt: skip
    rows, drawn = [], []
    for line in lines_of(name):
        rows.append([
            f"`{line['row']}`", f"`{line['engine']}`", line["peer"], seconds(line["seconds"]),
            seconds(line["peer_seconds"]), rounded(line["times_faster"]), size(line["bytes"]), size(line["peer_bytes"]),
            f"{line['error']:.1g}",
            f"{line['peer_error']:.1g}",
        ])  # fmt: skip
        drawn.append(Bars(f"{line['row']}, {line['engine']}", (line["seconds"], line["peer_seconds"])))
    head = ["row", "engine", "SPU protocol", "time", "SPU", "times faster", "bytes", "SPU", "error", "SPU"]
    text += table(head, rows, words=3)
    chart = bars("Seconds (logarithmic)", ("privml", "SPU"), drawn, seconds)
    text += picture("spu", "Seconds beside SecretFlow-SPU")
    return page("spu", text, chart)


MAKERS = (three_parties, active, networks, predictions, spu)
