# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/benchmarks; this file makes the sections on transfers and the two-party engine."""

from __future__ import annotations

import json

from pages import engine_benchmarks
from pages.figures import Bars, bars, rate, rounded, seconds, size, table
from pages.results import PEERS, Section, by_operation, facts, lines_of, measured, page, picture
from pages.svg import Picture


def _total(line: dict) -> str:
    return size(line["bytes_per_op"])


def transfers() -> Section:
    providers = ["softspoken-k1", "softspoken-k2", "softspoken-k4", "softspoken-k8", "silent"]
    text = facts(
        "privml bench suite=ot op=cot", lines_of("ot"), ["emp"],
        "Random correlated transfers in one direction. Bytes and set-up count both directions.",
    )  # fmt: skip
    rows, drawn = [], []
    for provider in providers:
        honest, malicious = (by_operation(measured("ot", f"{provider}{m}")).get("cot") for m in ("", "-malicious"))
        peer, setup = PEERS["transfers"][provider], honest["phases"]["setup"]
        of_malicious = malicious["ops_per_second"] if malicious else None
        rows.append([
            provider, rate(honest["ops_per_second"]), f"{peer['semi_honest']} M",
            rate(of_malicious) if of_malicious else "", f"{peer['malicious']} M", rounded(honest["bytes_per_op"]),
            f"{seconds(setup['seconds'])}, {size(setup['bytes'])}", size(honest["peak_rss_bytes"]),
        ])  # fmt: skip
        drawn.append(
            Bars(provider, (honest["ops_per_second"], of_malicious, peer["semi_honest"] * 1e6, peer["malicious"] * 1e6))
        )
    head = ["provider", "per second", "emp-ot", "malicious", "emp-ot", "bytes each", "set-up", "memory"]
    text += table(head, rows)
    series = ("semi-honest", "malicious", "emp-ot, semi-honest", "emp-ot, malicious")
    chart = bars("Correlated transfers per second (logarithmic)", series, drawn, rate)
    text += picture("transfers", "Correlated transfers per second by provider, beside emp-ot")
    text += ["### Over a slow link", "", "100 Mbit/s, 40 ms in each direction.", ""]
    wide = [by_operation(measured("ot", provider, "wan")) for provider in providers]
    slow = [lines["cot"] for lines in wide if lines]
    text += table(["provider", "n", "seconds", "per second"], [
        [line["ot"], f"{line['n']:,}", seconds(line["seconds"]), rate(line["ops_per_second"])] for line in slow
    ])  # fmt: skip
    text += ["How the transfers work, and what limits them: [correlations](../correlations.md)."]
    return Section("Oblivious transfers", text, ("transfers", chart))


def _against_library(suite: str, peers: str, what: str) -> tuple[list[str], Picture]:
    """Table and pictures of a suite with k = 4 and silent transfers beside the published library."""
    first, second = (by_operation(measured(suite, ot)) for ot in ("softspoken-k4", "silent"))
    rows, drawn = [], []
    for op, line in first.items():
        silent, peer = second.get(op), PEERS[peers].get(op, (None, None))
        rows.append([
            f"`{op}`", f"{line['n']:,}", _total(line), _total(silent) if silent else "",
            size(peer[0]) if peer[0] else "",
            rate(line["ops_per_second"]), rate(silent["ops_per_second"]) if silent else "",
            rate(peer[1]) if peer[1] else "", str(line["phases"]["online"]["depth"]), size(line["peak_rss_bytes"]),
        ])  # fmt: skip
        if peer[0]:
            drawn.append(Bars(op, (line["bytes_per_op"], silent["bytes_per_op"] if silent else None, peer[0])))
    head = ["operation", "n", "bytes, k = 4", "silent", "published library", "per second, k = 4", "silent",
            "published library", "depth of the batch", "memory"]  # fmt: skip
    chart = bars(
        f"Bytes of one {what}, both directions (logarithmic)",
        ("SoftSpoken k = 4", "silent", "published library"),
        drawn,
        size,
    )
    return table(head, rows), chart


def blocks() -> Section:
    text = facts(
        "privml bench suite=twopc", lines_of("twopc"), ["sci"],
        "The time includes making the correlations. Bytes count both directions. The depth is that of all chunks of "
        "the batch; [two-party protocols](../protocols.md) has the depth of one chunk.",
    )  # fmt: skip
    lines, chart = _against_library("twopc", "blocks", "instance")
    text += lines + picture("blocks", "Bytes of building blocks beside the published library")
    text += ["### 32-bit ReLU by provider", ""]
    rows = []
    for name in ("softspoken-k1", "softspoken-k2", "softspoken-k4", "softspoken-k8", "silent"):
        line = by_operation(measured("twopc", name)).get("relu32")
        if line:
            rows.append([name, _total(line), rate(line["ops_per_second"]), size(line["peak_rss_bytes"])])
    text += table(["provider", "bytes", "per second", "memory"], rows)
    return Section("Building blocks", text, ("blocks", chart))


def functions() -> Section:
    text = facts(
        "privml bench suite=fixmath", lines_of("fixmath") + lines_of("realfunc"), ["sci"],
        "Inputs and outputs have 16 bits, 12 of them fractional. Errors: "
        "[fixed-point functions](../fixed-point-math.md).",
    )  # fmt: skip
    lines, chart = _against_library("fixmath", "functions", "function value")
    text += lines + picture("functions", "Bytes of fixed-point functions beside the published library")
    text += ["### By products, over 1 Gbit/s and 0.8 ms", ""]
    text += [
        "`privml bench suite=realfunc link=gigabit`, measured while other programs ran. Published figures: "
        "[functions by products](../fixed-point-math.md#comparison-with-the-paper). "
        "`bound`: the largest value as a part of half "
        "the ring."
    ]
    silent = {json.dumps([line["op"], line["params"]]): line for line in measured("realfunc", "silent", "gigabit")}
    rows = []
    for line in measured("realfunc", "softspoken-k4", "gigabit"):
        other = silent.get(json.dumps([line["op"], line["params"]]))
        bound = line["params"].get("bound")
        name = f"`{line['op']}`" + (f", bound {bound:g}" if bound is not None else "")
        rows.append([
            name, f"{line['n']:,}", str(line["params"].get("bits", "")), size(line["bytes_per_op"] * line["n"]),
            seconds(line["seconds"]), size(other["bytes_per_op"] * line["n"]) if other else "",
            seconds(other["seconds"]) if other else "",
        ])  # fmt: skip
    text += ["", *table(["operation", "n", "bits", "all bytes, k = 4", "time", "silent", "time"], rows)]
    return Section("Fixed-point functions", text, ("functions", chart))


def floats() -> Section:
    text = facts(
        "privml bench suite=secfloat", lines_of("secfloat"), ["sci"],
        "float32, 10,000 at once. What is computed and how exactly: "
        "[floating-point numbers](../fixed-point-math.md#floating-point-numbers).",
    )  # fmt: skip
    lines, chart = _against_library("secfloat", "floats", "operation")
    text += lines + picture("floats", "Bytes of floating-point operations beside the published library")
    text += [
        "### Errors",
        "",
        "`make prove-secfloat`: errors over all 2^32 inputs of each function, in units of the last place.",
        "",
    ]
    rows = [
        [f"`{line['function']}`", f"{line['inputs']:,}", f"{line['largest_error']:.3f}", f"`{line['at']}`",
         f"{100 * line['nearest'] / line['inputs']:.1f}%", str(line["wrong"])]
        for line in lines_of("secfloat-errors")
    ]  # fmt: skip
    text += table(["function", "inputs", "largest error", "at", "correctly rounded", "error above one unit"], rows)
    rows = [
        [f"({line['format'][0]}, {line['format'][1]})", f"{line['pairs']:,}", str(sum(line["wrong"].values()))]
        for line in lines_of("secfloat-primitives")
    ]  # fmt: skip
    text += [
        "Addition, subtraction, product, quotient, square root and comparisons, checked with exact rational numbers "
        "or the hardware:",
        "",
    ]
    text += table(["format (exponent, mantissa)", "pairs", "not correctly rounded"], rows)
    return Section("Floating point", text, ("floats", chart))


def pages() -> dict[str, str]:
    return {
        **page(
            "tables", "Benchmarks in tables",
            "Each operation of the engine `twopc` and what makes its correlations, recurrent networks, the engines "
            "`threepc` and `active`, how well costs are predicted, and privml beside SecretFlow-SPU.",
            [transfers(), blocks(), functions(), floats(), engine_benchmarks.networks(),
             *(make() for make in engine_benchmarks.OTHER_ENGINES)],
        ),
    }  # fmt: skip
