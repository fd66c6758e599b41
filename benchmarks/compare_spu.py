# SPDX-License-Identifier: Apache-2.0
"""privml and SecretFlow-SPU side by side, row by row, on this machine.

``python benchmarks/compare_spu.py --spu /path/to/python [--rows softmax+gelu_2pc] [--out FILE]`` prints a table, and
appends one JSON object per row to FILE. ``--spu`` names an interpreter that has the package spu (0.9.5);
without one the script says so and ends. Two parties: engine twopc beside CHEETAH; three: threepc beside ABY3. On both
sides the parties are threads of one process with messages in memory, weights belong to party 0, inputs to party 1,
everything else is secret; a first run warms up, the median of the others counts. Bytes are what all parties send,
correlations included, without what a session sends once (``phases`` of a line has it apart). Errors are the largest
ones against float; privml's formats are such that its errors are no larger than SPU's. A line holds all settings.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import privml
from privml.engines.interface import names as engines

sys.path.insert(0, str(Path(__file__).parent.parent))

PEER = Path(__file__).with_name("spu_rows.py")
PROTOCOLS = {"twopc": "CHEETAH", "threepc": "ABY3"}
# What of a session's numerics a line tells.
FORMATS = ("bits", "scale", "weight_bits", "weight_scale")
# One run of ours: the session, and what to do in it; returns (found, expected).
Work = Callable[[Any], Callable[[], tuple[torch.Tensor, torch.Tensor]]]


@dataclass(frozen=True)
class Row:
    """``peer``: its name in spu_rows.py. ``work``: prepares a session and gives the call to time. ``numerics``: of the
    session; None for those of the program that ``work`` runs, whose formats keep ``tolerance``."""

    engine: str
    peer: str
    work: Work
    numerics: dict[str, int] | None = None
    tolerance: float | None = None


def elementwise(function: Callable, *shape: int, size: float = 1.0) -> Work:
    def work(session: Any) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
        x = torch.randn(shape) * size
        secret = privml.share(x, owner=1) + privml.share(torch.zeros(shape), owner=0)
        return lambda: (function(secret), function(x))

    return work


def product(rows: int, inner: int, columns: int, known: bool = True) -> Work:
    """``known``: party 0 knows the weights; else they are shared."""

    def work(session: Any) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
        x, w = torch.randn(rows, inner), torch.randn(inner, columns) * inner**-0.5
        secret, weight = privml.share(x, owner=1), privml.share(w, owner=0)
        if not known:
            secret, weight = (
                each + privml.share(torch.zeros(each.shape), owner=owner) for each, owner in ((secret, 0), (weight, 1))
            )
        return lambda: (secret @ weight, x @ w)

    return work


def converted(make: Callable[[], nn.Module], *shape: int, tolerance: float) -> Work:
    """A converted program, in the formats that it chooses to keep ``tolerance``; where rings stay as they are, in the
    format of the session."""

    def work(session: Any) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
        module, x = make().eval(), torch.randn(8, *shape)
        chosen: dict[str, Any] = {"tolerance": tolerance}
        if session.engine.stays_wide:
            chosen |= {"narrow": False, "bits": session.numerics.bits, "scale": session.numerics.scale}
        program = privml.convert(module, calibration=x, numerics=chosen)
        session.numerics = program.numerics
        program.prepare(session)
        with torch.no_grad():
            expected = module(x[:1])
        return lambda: (program.run(session, x[:1]), expected)

    return work


def lenet() -> nn.Module:
    from models.lenet.model import LeNet

    return LeNet()


def resnet() -> nn.Module:
    from models.resnet18.model import ResNet18

    return ResNet18()


def block() -> nn.Module:
    return nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, activation="gelu")


def training_step(session: Any) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    clear = lenet()
    secret = privml.secret(copy.deepcopy(clear), owner=0)
    images, labels = torch.rand(32, 1, 28, 28), torch.arange(32) % 10
    shared = privml.share(images, owner=1)

    def step(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        optimizer.zero_grad()
        F.cross_entropy(module(x), labels).backward()
        optimizer.step()
        return module.fc3.weight.detach()

    return lambda: (step(secret, shared), step(clear, images))


# The formats of a row are such that its error is at most SPU's, which has 64 bits, 18 of them fractional.
NARROW = {"bits": 32, "scale": 16}
SHARED = {"bits": 41, "scale": 18}
OWNED = {**SHARED, "weight_bits": 20, "weight_scale": 18}
WIDE = {"bits": 64, "scale": 18}
COUNT = 2**17
# Of each the shape of an input, and the tolerance of its formats.
NETWORKS = {
    "lenet": (lenet, (1, 28, 28), 2**-12),
    "resnet18": (resnet, (3, 32, 32), 2**-10),
    "block": (block, (32, 128), 2**-9),
}


def network(engine: str, name: str, numerics: dict[str, int] | None = None) -> Row:
    make, shape, tolerance = NETWORKS[name]
    return Row(engine, name, converted(make, *shape, tolerance=tolerance), numerics, tolerance)


ROWS = {
    "softmax_2pc": Row("twopc", "softmax", elementwise(lambda x: x.softmax(-1), 128, 768, size=2.0), NARROW),
    "gelu_2pc": Row("twopc", "gelu_2pc", elementwise(F.gelu, 2**15, size=2.0), NARROW),
    "block_2pc": network("twopc", "block"),
    "matmul_2pc": Row("twopc", "matmul", product(128, 768, 768), OWNED),
    "matmul_shared_2pc": Row("twopc", "matmul", product(128, 768, 768, known=False), SHARED),
    "lenet_2pc": network("twopc", "lenet"),
    "resnet18_2pc": network("twopc", "resnet18"),
    "less": Row("threepc", "less", elementwise(lambda x: (x < 0).float(), COUNT), WIDE),
    "relu": Row("threepc", "relu", elementwise(torch.relu, COUNT), WIDE),
    "sigmoid": Row("threepc", "sigmoid", elementwise(torch.sigmoid, COUNT, size=2.0), WIDE),
    "gelu": Row("threepc", "gelu", elementwise(F.gelu, COUNT, size=2.0), WIDE),
    "softmax": Row("threepc", "softmax", elementwise(lambda x: x.softmax(-1), 128, 768, size=2.0), WIDE),
    "matmul": Row("threepc", "matmul", product(128, 768, 768), WIDE),
    "lenet": network("threepc", "lenet", WIDE),
    "resnet18": network("threepc", "resnet18", WIDE),
    "block": network("threepc", "block", WIDE),
    "lenet_step": Row("threepc", "lenet_step", training_step, WIDE),
}


@dataclass(frozen=True)
class Figures:
    """``phases``: bytes of all parties by phase, the others of each run, "setup" once a session: what came before the
    first run, and what that sent beyond a later one. ``numerics``: of the session."""

    seconds: float
    bytes: int
    error: float
    phases: dict[str, int] = field(default_factory=dict)
    numerics: dict[str, Any] = field(default_factory=dict)


def sent(session: Any) -> dict[str, int]:
    """What all parties have sent so far, by phase."""
    counters = [engine.counters() for engine in session.engine.engines]
    return {phase: sum(c[phase]["sent"] for c in counters) for phase in ("setup", "preprocess", "online")}


def measure(row: Row, runs: int, settings: dict[str, Any]) -> Figures:
    torch.manual_seed(0)
    mine = settings if row.engine == "twopc" else {}
    settings = {**(row.numerics or NARROW), "deadline": 600.0, **mine}
    gradients = torch.set_grad_enabled(row.work is training_step)
    with privml.local(row.engine, **settings) as session, gradients:
        call = row.work(session)
        call()
        seconds, before = [], sent(session)
        for _ in range(runs):
            start = time.perf_counter()
            found, expected = call()
            seconds.append(time.perf_counter() - start)
        after = sent(session)
        phases = {phase: (after[phase] - before[phase]) // runs for phase in ("preprocess", "online")}
        error = float((privml.reveal(found) - expected).abs().max())
        used = session.numerics
    total, formats = sum(phases.values()), {name: getattr(used, name) for name in FORMATS}
    phases = {"setup": max(sum(before.values()) - total, before["setup"]), **phases}
    return Figures(statistics.median(seconds), total, error, phases, formats)


def measure_peer(row: Row, runs: int, interpreter: str) -> Figures:
    """Of the log: a line of seconds and one of bytes for each party and run."""
    protocol = PROTOCOLS[row.engine]
    command = [interpreter, str(PEER), row.peer, protocol, str(runs + 1)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    error = re.search(r"largest error (\S+)", done.stdout)
    if done.returncode or error is None:
        raise RuntimeError(f"SPU failed on {row.peer}:\n{done.stdout[-2000:]}")
    parties = 3 if protocol == "ABY3" else 2
    took = [float(x) for x in re.findall(r"execution took ([\d.e+-]+)s", done.stdout)][parties:]
    moved = [int(x) for x in re.findall(r"total send bytes (\d+)", done.stdout)][-parties:]
    slowest = [max(took[i : i + parties]) for i in range(0, len(took), parties)]
    return Figures(statistics.median(slowest), sum(moved), float(error.group(1)))


def has_spu(interpreter: str) -> bool:
    try:
        return subprocess.run([interpreter, "-c", "import spu, jax"], capture_output=True).returncode == 0
    except OSError:
        return False


def records(names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for name in names:
        row = ROWS[name]
        if row.engine not in engines():
            print(f"{name}: skipped, this privml has no engine {row.engine}")
            continue
        ours = measure(row, options.runs, {"ot": options.ot, "linear": options.linear})
        theirs = measure_peer(row, options.runs, options.spu)
        yield {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "row": name, "engine": row.engine,
            "ot": options.ot if row.engine == "twopc" else None,
            "linear": options.linear if row.engine == "twopc" else None, "numerics": ours.numerics,
            "tolerance": row.tolerance, "phases": ours.phases,
            "seconds": ours.seconds, "bytes": ours.bytes, "error": ours.error,
            "peer": PROTOCOLS[row.engine], "peer_seconds": theirs.seconds, "peer_bytes": theirs.bytes,
            "peer_error": theirs.error, "times_faster": theirs.seconds / ours.seconds,
            "times_fewer_bytes": theirs.bytes / ours.bytes,
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spu", default=sys.executable, help="a Python interpreter that has spu and jax")
    parser.add_argument("--rows", default="+".join(ROWS), help=f"of {', '.join(ROWS)}, joined by +")
    parser.add_argument("--runs", type=int, default=1, help="timed runs after the first")
    parser.add_argument("--ot", default="softspoken", help="what engine twopc's correlations are made by")
    parser.add_argument(
        "--linear", default="auto", help="how engine twopc makes products with weights: auto, ot, lattice"
    )
    parser.add_argument("--out", type=Path, help="file to append JSON lines to")
    options = parser.parse_args()
    names = options.rows.split("+")
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        parser.error(f"no row {unknown[0]!r}; there are {', '.join(ROWS)}")
    if not has_spu(options.spu):
        print(
            f"skipped: {options.spu} has no spu; pip install spu==0.9.5 into an environment and pass --spu=ITS/python"
        )
        return
    torch.set_num_threads(1)
    head = ("row", "engine", "s", "MB", "error", "SPU", "s", "MB", "error", "faster", "fewer bytes")
    form = "{:<12} {:<8} {:>8} {:>8} {:>8}  {:<8} {:>8} {:>8} {:>8} {:>7} {:>7}"
    print(form.format(*head), flush=True)
    for record in records(names, options):
        print(form.format(
            record["row"], record["engine"], f"{record['seconds']:.3f}", f"{record['bytes'] / 1e6:.1f}",
            f"{record['error']:.1e}", record["peer"], f"{record['peer_seconds']:.3f}",
            f"{record['peer_bytes'] / 1e6:.1f}", f"{record['peer_error']:.1e}", f"{record['times_faster']:.1f}",
            f"{record['times_fewer_bytes']:.2f}"), flush=True)  # fmt: skip
        if options.out is not None:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            with options.out.open("a") as stream:
                stream.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
