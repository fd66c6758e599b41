# SPDX-License-Identifier: Apache-2.0
"""Inputs and weights that stand out occur in no log, error, file or file name of a party that is not to know them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import service_party
import torch

import privml
from privml.checkpoint import new_run, save_shares
from privml.conversion import convert

sys.path.insert(0, str(Path(__file__).parents[1] / "security"))
import markers

ROOT = Path(__file__).parents[2]


def net():
    torch.manual_seed(3)
    layers = {"first": torch.nn.Linear(4, 6), "relu": torch.nn.ReLU(), "second": torch.nn.Linear(6, 3)}
    with torch.no_grad():
        layers["first"].weight[1, 2] = markers.WEIGHT
        layers["second"].bias[1] = markers.WEIGHT
    return torch.nn.Sequential(OrderedDict(layers)).eval()


def inputs():
    return [[0.5, markers.INPUT, 0.25, markers.INPUT]]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("marked")
    torch.manual_seed(4)
    convert(net(), calibration=torch.randn(64, 4) * 1500).save(path)
    return path


def lines_of(*parties):
    """All that they said but the outputs, which the client is to learn."""
    return "\n".join(line for each in parties for line in each.lines if not line.startswith("answer ")).encode()


def test_markers_are_found_where_they_are():
    for value in (markers.INPUT, markers.WEIGHT):
        for data in (
            np.array([1, value], np.float32).tobytes(),
            (torch.tensor([3.0, value], dtype=torch.float64) * 2**16).long().numpy().tobytes(),
            f"input[0, 1] = {value}".encode(),
            repr(torch.tensor([value])).encode(),
            str(np.float32(value)).encode(),
        ):
            assert markers.occurrences(data), data
    assert not markers.occurrences(bytes(range(256)) * 100)


@pytest.mark.parametrize("options", [{}, {"ring": 64}], ids=["twopc", "active"])
def test_server_and_client_say_and_write_nothing_of_them(start, folder, options):
    weights = folder / "weights.safetensors"
    assert not markers.occurrences_below(folder, [weights])
    assert markers.occurrences(weights.read_bytes()) and not markers.readable_by_others(folder, "weights")
    server = start(service_party.serve_program, str(folder), {"queries": 1, **options})
    address = "127.0.0.1:" + server.line("port").split()[1]
    # Errors on the way: of the input at the client, of the shape at the server.
    wrong = start(service_party.send_query, str(folder), {"server": address, "input": [[markers.INPUT] * 3], **options})
    assert wrong.last().startswith("error InvalidInput")
    large = start(
        service_party.send_query, str(folder), {"server": address, "input": [[markers.INPUT, 1e30, 0, 0]], **options}
    )
    assert large.last().startswith("error InvalidInput")
    killed = start(
        service_party.send_query, str(folder), {"server": address, "input": inputs(), "die_at": "first", **options}
    )
    killed.process.join(60)
    assert killed.process.exitcode == -9
    client = start(service_party.send_query, str(folder), {"server": address, "input": inputs(), **options})
    assert client.last().startswith("answer "), client.lines
    assert server.last() == "end"
    assert not markers.occurrences(lines_of(server, client, killed, large, wrong))
    assert not markers.occurrences_below(folder, [weights])


def test_checkpoints_hold_shares_that_only_their_owner_reads(tmp_path):
    value = torch.full((64,), markers.INPUT)
    for engine, settings in (("twopc", {"ot": "ideal"}), ("threepc", {})):
        with privml.local(engine, **settings) as session:
            shared = privml.share(value, owner=0) + privml.share(torch.zeros(64), owner=1)
            product = shared * privml.share(torch.ones(64), owner=1)
            save_shares(tmp_path / engine, session, 1, new_run(session), {"x": product})
    assert len(list(tmp_path.rglob("*.safetensors"))) == 5
    assert not markers.occurrences_below(tmp_path)
    assert not markers.readable_by_others(tmp_path, ".")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_command_line_says_and_writes_nothing_of_them(folder, tmp_path):
    """serve, query, and a query that fails, with everything they print and write."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path),
                   "TMPDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}  # fmt: skip
    command = [sys.executable, "-c", "from privml.cli import main; main()"]
    given, answer = tmp_path / "given.npy", tmp_path / "scores.npy"
    np.save(given, np.array(inputs(), np.float32))
    np.save(tmp_path / "broken.npy", np.array([[markers.INPUT] * 5], np.float32))
    serve = [*command, "serve", f"program={folder}/program", f"weights={folder}/weights.safetensors",
             "listen=127.0.0.1:0", "queries=1"]  # fmt: skip
    with subprocess.Popen(
        serve, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            first = server.stdout.readline()
            port = first.split("port ")[1].split(",")[0]
            asked = []
            for file in ("broken.npy", "given.npy"):
                asked.append(subprocess.run(
                    [*command, "query", f"program={folder}/program", f"server=127.0.0.1:{port}", f"input={file}",
                     f"out={answer}", "ledger=ledger.json"],
                    cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240, check=False,
                ))  # fmt: skip
            said = first + server.communicate(timeout=60)[0]
        finally:
            server.kill()
    assert [done.returncode for done in asked] == [1, 0], asked
    for text in (said, *(done.stdout + done.stderr for done in asked)):
        assert not markers.occurrences(text.encode())
    assert not markers.occurrences_below(tmp_path, [given, tmp_path / "broken.npy"])


def test_a_party_leaves_no_core_dump(start):
    """Neither a file nor to a program that collects them."""
    lines = start(_report_dumps).last().split()
    assert lines == ["limits", "0", "0", "filter", "00000000"]


def _report_dumps(pipe):
    from privml.cli import without_core_dumps

    without_core_dumps()
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    pipe.send(f"limits {limits[0]} {limits[1]} filter {Path('/proc/self/coredump_filter').read_text().strip()}")
