# SPDX-License-Identifier: Apache-2.0
"""``privml convert model=lenet out=lenet``: writes out/program and out/weights.safetensors."""

from __future__ import annotations

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.ledgers import reliance
from privml.cli.sources import converted, source_of
from privml.program import TABLES, Program


def run(config: DictConfig) -> None:
    program = converted(config, source_of(config))
    path, weights = program.save(config.out)
    if config.quiet:
        return
    console.out.print(report(program))
    choice = program.choice
    console.out.print(choice.measured)
    for layer, factor in choice.unseen:
        console.out.print(
            f"layer {layer}: values of the held-out rows are up to {factor:.2g} times as large as the other rows and "
            "numerics.margin allow. The rings were widened for them, but new rows may be larger still: give more "
            "calibration data or a larger numerics.margin"
        )
    if choice.floats:
        console.out.print(
            f"layers {', '.join(choice.floats)} compute with floats ({choice.precision.rescue}), because no ring keeps "
            "the tolerance; only engines with floating point run the program"
        )
    if program.calibrated_layers:
        console.out.print(reliance(program))
    console.out.print(f"program {path} ({console.size(path.stat().st_size)}), for both parties, {program.hash[:16]}")
    if weights is not None:
        console.out.print(f"weights {weights} ({console.size(weights.stat().st_size)}), for the server only")
    if program.tables:
        tables = path.with_name(TABLES)
        console.out.print(f"tables {tables} ({console.size(tables.stat().st_size)}), for the server and its clients")


def report(program: Program) -> object:
    rows = [
        [
            line.layer,
            str(line.bits),
            str(line.scale),
            f"{line.seen:.3g}",
            f"{line.limit:.3g}",
            f"{line.headroom_bits:.2f}",
        ]
        for line in program.choice.report
    ]
    columns = ["layer", "ring bits", "scale", "largest seen", "first that wraps", "head room, bits"]
    return console.table("Layers whose values come closest to wrapping on the calibration data", columns, rows)
