# SPDX-License-Identifier: Apache-2.0
"""The sections of docs/benchmarks on the other engines, networks, predictions and SPU."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from pages.figures import Bars, bars, rate, rounded, seconds, size, table
from pages.results import PEERS, RESULTS, Section, facts, lines_of, measured, picture, span
from privml.measure.records import read_all
from privml.measure.views import Zoo

_MEGA = 1 << 20


def _published(line: dict, place: int) -> str:
    return rounded(line["published"]["megabytes"][place]) if line["published"] else ""


def three_parties() -> Section:
    lines = lines_of("threepc")
    text = facts(
        "privml bench suite=threepc", lines, ["mizar"],
        "Three processes. Megabytes (2^20 bytes) count what party 0 sends and receives online, and what the dealer "
        "sends it. `sigmoid` and `gelu` are the published approximations of three and four pieces; programs use the "
        "splines. The rows of 32 bits were measured while other programs ran.",
    )  # fmt: skip
    rows, drawn = [], []
    for line in lines:
        online, dealt = (line["phases"][phase]["party0"] / _MEGA for phase in ("online", "preprocess"))
        rows.append([
            f"`{line['op']}`", str(line["bits"]), f"{line['n']:,}", rounded(online), _published(line, 0),
            rounded(dealt),
            _published(line, 1), str(line["phases"]["online"]["depth"]), seconds(line["seconds"]),
            size(line["peak_rss_bytes"]),
        ])  # fmt: skip
        if line["published"]:
            published = sum(line["published"]["megabytes"])
            drawn.append(Bars(f"{line['op']}, {line['bits']} bits", (online + dealt, published)))
    head = [
        "operation",
        "bits",
        "n",
        "online MB",
        "MIZAR",
        "from the dealer, MB",
        "MIZAR",
        "depth",
        "time",
        "memory, largest party",
    ]
    text += table(head, rows)
    chart = bars(
        "Megabytes of party 0, online and from the dealer (logarithmic)", ("privml", "MIZAR, published"), drawn, rounded
    )
    text += picture("three-parties", "Megabytes of party 0 beside the published figures")
    text += ["What these operations do: [three-party engine](../three-party.md)."]
    return Section("Three parties", text, ("three-parties", chart))


def _newest(lines: Sequence[dict], *keys: str) -> list[dict]:
    return list({tuple(str(line[key]) for key in keys): line for line in lines}.values())


def _per_second(figures: Sequence[float | None] | None) -> str:
    return rate(figures[0]) if figures and figures[0] else ""


def _phase(line: dict, phase: str) -> tuple[str, str]:
    """Operations per second of a phase alone, and the bytes of one that a party sends in it."""
    count = line["phases"].get(phase)
    return (rate(line["n"] / count["seconds"]), size(count["sent"] / line["n"])) if count else ("", "")


def active() -> Section:
    text = facts(
        "privml bench suite=spdz2k", lines_of("spdz2k"), ["mpspdz", "damgard"],
        "Two processes; MAC checks included. The two phases are timed separately: correlations, and online. Bytes "
        "count what one party sends.",
    )  # fmt: skip
    drawn = []
    for name, network in (("loopback", "loopback"), ("gigabit", "1 Gbit/s, 0.4 ms in each direction")):
        rows = []
        for line in _newest(measured("spdz2k", "softspoken-k4-malicious", name), "op", "bits"):
            online, others = line["phases"].get("online"), line["published"]
            mpspdz, paper = others.get("mpspdz"), others.get("paper")
            rows.append([
                f"`{line['op']}`", str(line["bits"]), f"{line['n']:,}", *_phase(line, "online"),
                str(online["depth"]) if online else "", _per_second(mpspdz), _per_second(paper),
                *_phase(line, "preprocess"), _per_second(others.get("mpspdz_correlations")),
                size(line["peak_rss_bytes"]),
            ])  # fmt: skip
            if online and name == "loopback" and mpspdz:
                label = f"{line['op']}, k = {line['bits']}"
                drawn.append(Bars(label, (line["n"] / online["seconds"], mpspdz[0], paper[0] if paper else None)))
        head = ["operation", "ring", "n", "online per second", "sent", "depth", "MP-SPDZ online", "published online",
                "correlations per second", "sent", "MP-SPDZ correlations", "memory"]  # fmt: skip
        text += [f"### {network}", "", *table(head, rows)]
    series = ("privml", "MP-SPDZ", "published (Java, 1 Gbit/s)")
    chart = bars("Online operations per second (logarithmic)", series, drawn, rate)
    text += picture("active", "Online operations per second beside MP-SPDZ and the published figures")
    text += [
        "How the engine works: [active security](../active-security.md), "
        "[its protocols](../active-security.md#actively-secure-protocols)."
    ]
    return Section("Actively secure engine", text, ("active", chart))


def classical() -> Section:
    lines = measured("classical", "softspoken-k4-malicious", "gigabit")
    text = facts(
        "privml bench suite=classical engine=active link=gigabit", lines, ["damgard"],
        "Engine `active`, ring of 64 bits, one sample, over 1 Gbit/s and 0.4 ms in each direction; random parameters. "
        "What the structure of a tree means: [bring your own model](../howto/models.md).",
    )  # fmt: skip
    rows = []
    for line in _newest(lines, "op"):
        phases, published = line["phases"], line["published"].get("milliseconds")
        shape = ", ".join(f"{k} {v}" for k, v in line["params"].items() if k != "model")
        rows.append([
            f"`{line['op']}`", shape, seconds(phases["online"]["seconds"]), f"{published} ms" if published else "",
            str(phases["online"]["depth"]), size(phases["online"]["bytes"]), seconds(phases["preprocess"]["seconds"]),
            size(phases["preprocess"]["bytes"]),
        ])  # fmt: skip
    head = ["model", "shape", "online", "published", "depth", "bytes", "preprocessing", "its bytes"]
    return Section("Trees and support vector machines", text + table(head, rows, words=2))


def products() -> Section:
    lines = lines_of("linear")
    text = facts(
        "privml bench suite=linear ot=silent", lines, [],
        "Products with weights that party 0 knows, of shared factors and of attention, by lattice ciphertexts; two "
        "processes. Bytes count both directions, of one operation. Once a session: the base transfers of a new "
        "session; keys of packed answers are sent before the measurement. Prepared: what does not depend on the "
        "inputs, transfers included. `matmul_prepare` and `columns` are preparations alone, `matmul_online` and "
        "`conv3x3_online` products with what was prepared; `ntt4096` and `encrypt4096` are computed by one party "
        "alone.", ["linear"],
    )  # fmt: skip
    rows = []
    for line in _newest(lines, "op", "ot"):
        phases = line["phases"]
        once, prepared, online = (phases.get(name) for name in ("setup", "preprocess", "online"))
        rows.append([
            f"`{line['op']}`", line["ot"], f"{line['n']:,}", rate(line["ops_per_second"]), seconds(line["seconds"]),
            *(f"{size(phase['bytes'] / count)}, {seconds(phase['seconds'])}" if phase else ""
              for phase, count in ((once, 1), (prepared, line["n"]), (online, line["n"]))),
            size(line["peak_rss_bytes"]),
        ])  # fmt: skip
    head = ["operation", "transfers", "n", "per second", "time of all", "once a session", "prepared", "online",
            "memory, larger party"]  # fmt: skip
    text += table(head, rows, words=2)
    text += ["How these products are made, and what they assume: [two-party protocols](../protocols.md)."]
    return Section("Products by ciphertexts", text)


def networks() -> Section:
    lines = [line for ot in ("softspoken-k4", "silent") for line in measured("recurrent", ot)]
    text = facts(
        "privml bench suite=recurrent", lines, ["sirnn"],
        "Networks of the published shapes with random weights and 16-bit variables; `_functions` are the published "
        "counts of functions alone. Bytes and depth are predicted; networks of more than 400 MB are not run. Every "
        "shipped model on every engine and network: [the zoo](../zoo.md).",
    )  # fmt: skip
    rows = []
    for line in _newest(lines, "op", "n", "ot"):
        phases, peer = line["phases"], PEERS["networks"].get(f"{line['op']}-{line['n']}", (None, None))
        total = sum(phase["bytes"] for phase in phases.values())
        time = seconds(line["seconds"]) if line.get("seconds") else "not run"
        rows.append([f"`{line['op']}`", line["ot"], str(line["n"]), size(total), size(peer[0]) if peer[0] else "",
                     str(phases["online"]["depth"]), str(line["details"].get("one_by_one") or ""), time,
                     seconds(peer[1]) if peer[1] else ""])  # fmt: skip
    head = ["network", "transfers", "batch", "bytes", "published", "depth online", "depth operator by operator", "time",
            "published"]  # fmt: skip
    return Section("Recurrent networks", text + table(head, rows, words=2))


def predictions() -> Section:
    told = [
        record for record in Zoo(read_all(RESULTS / "zoo.jsonl")).runs if record.predicted_seconds and record.measured
    ]
    ratios = [record.predicted_seconds / record.measured.seconds for record in told]
    exact = sum(record.exact is True for record in told)
    text = [
        "The time that `privml cost` predicts for a query, and the time that it took between fresh processes: once, or "
        "the median of three runs, some of them while other programs ran. Bytes and depth equal the prediction in "
        f"{exact} of {len(told)} records. How it is predicted: [choose an engine](../choosing.md).", "",
        "- Command: `privml evaluate zoo engine=... link=... calibrate=missing`, for some with `repeats=3`.",
        f"- Measured: {span(record.about['time'] for record in told)}. Records: `benchmarks/results/zoo.jsonl`.", "",
        f"The prediction is within 25% of the measured time for {_close(ratios)} of {len(told)} queries; by engine and "
        "network:", "",
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
    text += table(["engine", *networks, "median of predicted / measured"], rows)
    rows = [
        [record.model, record.way, record.network["name"], str(record.rows), seconds(record.predicted_seconds),
         seconds(record.measured.seconds), f"{ratio:.2f}", "yes" if record.exact else "no"]
        for record, ratio in zip(told, ratios, strict=True)
    ]  # fmt: skip
    head = ["model", "engine", "network", "rows", "predicted", "measured", "ratio", "bytes equal"]
    return Section("Predicted beside measured", text + table(head, rows, words=3))


def _close(ratios: Sequence[float]) -> int:
    return sum(abs(ratio - 1) <= 0.25 for ratio in ratios)


def _formats(line: dict) -> str:
    """The widest ring of a row and its fractional bits, and those of weights where they differ."""
    used = line.get("numerics")
    if not used:
        return ""
    own = f"{used['bits']} / {used['scale']}"
    if used["weight_bits"] in (None, used["bits"]):
        return own
    scale = used["scale"] if used["weight_scale"] is None else used["weight_scale"]
    return f"{own}, weights {used['weight_bits']} / {scale}"


def spu() -> Section:
    lines = _newest(lines_of("compare-spu"), "row")
    ways = dict.fromkeys((line["ot"], line.get("linear", "auto")) for line in lines if line["engine"] == "twopc")
    settings = "; ".join(f"--ot={ot} --linear={linear}" for ot, linear in ways)
    text = facts(
        f"python benchmarks/compare_spu.py --spu=PYTHON_WITH_SPU {settings}", lines, ["spu"],
        "All parties are threads of one process; messages stay in memory. Bytes of a run count what all parties send, "
        "correlations included; what a session sends once stands apart. On `twopc`, `--ot` names the transfers and "
        "`--linear` how products are made (`lattice`: the ciphertexts of the fewest bytes). Errors are the largest "
        "differences from floating point; privml's formats are such that its errors are no larger than SPU's, which "
        "has 64 bits, 18 of them fractional, and its other settings as they are by default. 2^17 values (2^15 for GELU "
        "on two parties).", ["compare-spu"],
    )  # fmt: skip
    rows, drawn = [], []
    for line in lines:
        rows.append([
            f"`{line['row']}`", f"`{line['engine']}`", _formats(line), line["peer"], seconds(line["seconds"]),
            seconds(line["peer_seconds"]), rounded(line["times_faster"]), size(line["bytes"]), size(line["peer_bytes"]),
            size(line.get("phases", {}).get("setup", 0)), f"{line['error']:.1e}", f"{line['peer_error']:.1e}",
        ])  # fmt: skip
        drawn.append(Bars(f"{line['row']}, {line['engine']}", (line["seconds"], line["peer_seconds"])))
    head = ["row", "engine", "bits / fractional", "SPU protocol", "time", "SPU", "times faster", "bytes", "SPU",
            "once a session", "error", "SPU"]  # fmt: skip
    text += table(head, rows, words=4)
    chart = bars("Seconds (logarithmic)", ("privml", "SPU"), drawn, seconds)
    text += picture("spu", "Seconds beside SecretFlow-SPU")
    return Section("SecretFlow-SPU", text, ("spu", chart))


OTHER_ENGINES = (products, three_parties, active, classical, predictions, spu)
