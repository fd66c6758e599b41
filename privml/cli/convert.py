# SPDX-License-Identifier: Apache-2.0
"""``privml convert model=lenet out=lenet``: writes out/program and out/weights.safetensors."""

from __future__ import annotations

from omegaconf import DictConfig

from privml.cli import console
from privml.cli.ledgers import reliance
from privml.cli.sources import program_of
from privml.program import TABLES, Program


def run(config: DictConfig) -> None:
    program, _ = program_of(config)
    path, weights = program.save(config.out)
    if config.quiet:
        return
    console.out.print(report(program))
    choice = program.choice
    console.out.print(choice.measured)
    for layer, factor in choice.unseen:
        console.out.print(
            f"layer {layer}: held-out rows reach {factor:.2g} times what the others' margin holds; rings have room for "
            "them, rows to come may go further: give more calibration data or a larger numerics.margin"
        )
    if choice.floats:
        console.out.print(
            f"floats ({choice.precision.rescue}) in layers {', '.join(choice.floats)}, as no ring keeps the tolerance; "
            "only engines with floating point run the program"
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
    return console.table("Ranges on the calibration data, where they come closest to wrapping", columns, rows)
