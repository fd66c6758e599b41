# SPDX-License-Identifier: Apache-2.0
"""The command line as users call it: real processes, real files. The first tests start them as a shell does, the others
fork them from a server that has loaded torch."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import Command
from commands import run as privml
from patience import PATIENCE

from models import load

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from privml.cli import main; main()"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def shell(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("arguments", [["--help"], ["convert", "--help"]])
def test_a_reader_of_the_output_may_leave(arguments: list[str], tmp_path: Path) -> None:
    """As `head` does: the command ends with the status that shells give it, without a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lenet")
    done = shell("convert", "model=lenet", "out=lenet", cwd=folder)
    assert "weights.safetensors" in done.stdout
    np.save(folder / "digits.npy", digits().numpy())
    return folder


def digits() -> torch.Tensor:
    model = load("lenet")
    return model.preprocess(model.samples[:3])


def test_convert_serve_query(converted: Path) -> None:
    inputs = digits()
    serve = [
        *COMMAND,
        "serve",
        "program=lenet/program",
        "weights=lenet/weights.safetensors",
        "listen=127.0.0.1:0",
        "queries=1",
    ]
    with subprocess.Popen(serve, cwd=converted, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().split("port ")[1].split(",")[0]
            done = shell(
                "query",
                "program=lenet/program",
                f"server=127.0.0.1:{port}",
                "input=digits.npy",
                "out=scores.npy",
                "ledger=ledger.json",
                cwd=converted,
            )
            assert server.wait(PATIENCE) == 0
        finally:
            server.kill()
    scores = torch.from_numpy(np.load(converted / "scores.npy"))
    with torch.no_grad():
        assert torch.equal(scores.argmax(1), load("lenet").module(inputs).argmax(1))
    ledger = json.loads((converted / "ledger.json").read_text())
    assert sum(node["online"]["sent"] for node in ledger["nodes"]) > 0
    assert "conv1" in done.stdout and "online" in done.stdout


def test_serve_is_watched_and_ends_on_a_signal(converted: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        monitor = f"127.0.0.1:{probe.getsockname()[1]}"
    files = ["program=lenet/program", "weights=lenet/weights.safetensors", "listen=127.0.0.1:0"]
    serve = [*COMMAND, "serve", *files, "log=json", f"monitor={monitor}", "workers=2", "queue=1"]
    with subprocess.Popen(serve, cwd=converted, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as server:
        try:
            listening = json.loads(server.stdout.readline())
            assert listening["event"] == "listening" and listening["port"] > 0
            for path, words in (("healthz", "alive"), ("readyz", "ready"), ("metrics", "privml_sessions_total")):
                with urllib.request.urlopen(f"http://{monitor}/{path}", timeout=60) as answer:
                    assert words in answer.read().decode()
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0
            events = [json.loads(line)["event"] for line in server.stdout]
        finally:
            server.kill()
    assert events == ["draining", "stopped"]


def test_quiet_says_nothing(converted: Path) -> None:
    done = privml("convert", "model=lenet", "out=again", "quiet=true", cwd=converted)
    assert done.stdout == "" and done.stderr == ""
    assert (converted / "again" / "program").read_bytes() == (converted / "lenet" / "program").read_bytes()


def test_run_and_cost_agree_on_bytes(converted: Path) -> None:
    done = privml("cost", "model=none", "program=lenet/program", "calibrate=none", cwd=converted)
    assert "reveal" in done.stdout and "total" in done.stdout
    ran = privml("run", "model=lenet", "count=1", "out=one.npy", cwd=converted)
    assert re.search(r"engine twopc; numbers: up to \d+ bits, .*; error in calibration .*tolerance", ran.stdout)
    assert "same label as the clear model for 1 of 1" in ran.stdout

    def total(text: str) -> list[str]:
        line = next(line for line in text.splitlines() if "│ total" in line)
        return [cell.strip() for cell in line.split("│")[2:5]]

    # Beside the protocols' messages a run carries the handshake and the request, outside the ledger's phases.
    assert total(done.stdout) == total(ran.stdout)


def test_cost_shows_what_auto_would_choose(converted: Path) -> None:
    done = privml("cost", "program=lenet/program", "ot=auto", "link=wan", "batch=20", "calibrate=none", cwd=converted)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("│ softspoken", "│ silent"))]
    seconds = [float(line.split("│")[4]) for line in lines]
    assert len(lines) == 8 and seconds == sorted(seconds)
    best = lines[0].split("│")[1].strip()
    assert best == "silent" and f"made ahead by {best}" in done.stdout
    done = privml("bench", "ot=auto", "op=relu32", cwd=converted, check=False)
    assert done.returncode == 1 and "name the provider" in done.stderr


def test_multirun_sweeps(converted: Path) -> None:
    done = privml("cost", "--multirun", "program=lenet/program", "ot.k=1,8", "calibrate=none", cwd=converted)
    assert "k=1" in done.stdout and "k=8" in done.stdout
    done = privml("cost", "program=lenet/program", "threads=2", "ot.refill=background", "calibrate=none", cwd=converted)
    found = " ".join(done.stdout.split())  # a title is as wide as its table
    assert "2 threads" in found and "refilled in the background" in found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["convert", "model.onnx=missing.onnx", "calibration=missing.npy", "out=x"], ["missing.npy", "no such file"]),
        (
            ["convert", "model.torch=nowhere", "model.input_shape=[1,2]", "out=x"],
            ["MODULE:FUNCTION or FILE.py:FUNCTION"],
        ),
        (["query", "program=lenet/program", "server=127.0.0.1:1", "input=absent.npy"], ["InvalidInput", "absent.npy"]),
        (
            ["query", "program=lenet/program", "server=127.0.0.1:1", "input=x.npy", "out=no/y.npy"],
            ["no/y.npy", "folder"],
        ),
        (["query", "program=lenet/weights.safetensors", "server=127.0.0.1:1", "input=x.npy"], ["CorruptFile"]),
        (
            ["query", "program=lenet/program", "server=127.0.0.1:1", "input=digits.npy", "preprocessing=void"],
            ["ConfigError", "void", "no store there", "privml preprocess"],
        ),
        (["preprocess", "program=lenet/program", "store=s"], ["ConfigError", "listen=host:port"]),
        (
            ["serve", "program=lenet/program", "weights=lenet/weights.safetensors", "monitor=0.0.0.0:9100"],
            ["ConfigError", "this machine alone"],
        ),
        (
            ["query", "program=lenet/progran", "server=127.0.0.1:1", "input=x.npy"],
            ["program=lenet/progran: no such file; `privml convert` writes it"],
        ),
        (["cost", "model=lenet", "engine=plain"], ["ConfigError", "plain"]),
    ],
)
def test_errors_are_one_clear_line(converted: Path, arguments: list[str], words: list[str]) -> None:
    done = privml(*arguments, cwd=converted, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dance"], ["unknown verb"]),
        (["convert", "out=x"], ["say which model", "model=lenet"]),
        (["convert", "model=lenet", "numerics.bits=many", "out=x"], ["numerics.bits=many", "whole number"]),
        (["query", "program=lenet/program", "server=127.0.0.1:1"], ["input is missing"]),
        (["query", "program=p", "server=127.0.0.1:1", "input=x.npy", "deadline=soon"], ["deadline=soon", "number"]),
        (["query", "progran=p"], ["did you mean program?"]),
        (["serve", "program=lenet/program", "weights=w", "log=xml"], ["log=xml", "text, json"]),
        (["serve", "program=lenet/program", "weights=w", "workers=0"], ["workers=0"]),
        (["run", "model=lenett"], ["did you mean lenet?"]),
        (["run", "model=lenet", "engine=twopcc"], ["did you mean twopc?"]),
        (["run", "model=lenet", "ot.k=11"], ["ot.k=11 must be a whole number from 1 to 10"]),
        (["bench", "op=nothing"], ["nothing", "relu32"]),
        (["cost", "model=lenet", "calibrate=often"], ["calibrate=often", "missing"]),
    ],
)
def test_wrong_calls_are_one_clear_line_and_exit_with_two(
    converted: Path, arguments: list[str], words: list[str]
) -> None:
    done = privml(*arguments, cwd=converted, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and "+" not in done.stderr
    assert f"privml {arguments[0]}: " in done.stderr or arguments == ["dance"]
    for word in words:
        assert word in done.stderr


def test_nobody_serves(converted: Path) -> None:
    np.save(converted / "digit.npy", np.zeros((1, 1, 28, 28), np.float32))
    done = privml(
        "query",
        "program=lenet/program",
        "server=127.0.0.1:1",
        "input=digit.npy",
        "deadline=1",
        cwd=converted,
        check=False,
    )
    assert done.returncode == 1
    assert "waiting for a server" in done.stderr and "127.0.0.1:1" in done.stderr


def test_help_is_for_the_command_and_for_each_verb(tmp_path: Path) -> None:
    assert "convert" in privml("--help", cwd=tmp_path).stdout
    done = privml("query", "--help", cwd=tmp_path)
    assert done.stdout.startswith("usage: privml query KEY=VALUE")
    assert privml("help", "query", cwd=tmp_path).stdout == done.stdout


def test_bench_prints_json_lines(tmp_path: Path) -> None:
    settings = ["n=16384", "repeats=1", "threads=2", "results=results", "quiet=true"]
    done = privml("bench", "op=relu32+and", *settings, cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [line["op"] for line in lines] == ["relu32", "and"]
    for line in lines:
        assert {"suite", "n", "params", "engine", "ot", "network", "threads", "peak_rss_bytes"} <= line.keys()
        assert line["threads"] == 2 and line["bytes_per_op"] > 0 and line["ops_per_second"] > 0
        assert set(line["phases"]) == {"setup", "preprocess", "online"}
    written = (tmp_path / "results" / "twopc.jsonl").read_text().splitlines()
    assert len(written) == 2


def test_preprocess_serve_query(converted: Path) -> None:
    np.save(converted / "stored.npy", np.zeros((1, 1, 28, 28), np.float32))
    order = ["preprocess", "program=lenet/program", "count=1"]

    def run(first: list[str], second: list[str]) -> tuple[str, str]:
        with Command(*first, "listen=127.0.0.1:0", cwd=converted) as server:
            port = server.stdout.readline().split("port ")[1].split(",")[0]
            done = privml(*second, f"server=127.0.0.1:{port}", cwd=converted)
            text = server.stdout.read()
            assert server.wait() == 0
            return text, done.stdout

    def named(rank: int, name: str) -> list[str]:
        return [f"store_key=key{rank}", f"{name}=half{rank}"]

    for text in run([*order, *named(0, "store")], [*order, *named(1, "store")]):
        assert "1 queries of 1 input(s)" in text and "preprocessing=half" in text
    serve = ["serve", "program=lenet/program", "weights=lenet/weights.safetensors", "queries=1"]
    query = ["query", "program=lenet/program", "input=stored.npy"]
    served, answered = run([*serve, *named(0, "preprocessing")], [*query, *named(1, "preprocessing")])
    assert "correlations from store" in served and "0 queries left" in served
    assert "from store" in answered and "0 queries left" in answered
    line = next(line for line in answered.splitlines() if "│ preprocess" in line)
    assert [cell.strip() for cell in line.split("│")[2:5]] == ["0 B", "0 B", "0"]


def test_convert_and_run_with_own_weights_and_tables(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    torch.manual_seed(0)
    (tmp_path / "net.py").write_text("import torch\ndef Net():\n    return torch.nn.Linear(3, 2)\n")
    module = torch.nn.Linear(3, 2)
    torch.save(module.state_dict(), tmp_path / "net.pt")
    rows = torch.randn(12, 3)
    lines = [",".join(str(value) for value in row) for row in rows.tolist()]
    (tmp_path / "patients.csv").write_text("\n".join(["age,weight,height", *lines]) + "\n")
    own = ["model.torch=net.pt", "model.factory=net.py:Net", "calibration=patients.csv"]
    done = privml("run", *own, "input=patients.csv", "engine=plain", "out=scores.npy", cwd=tmp_path)
    assert "same label as the clear model for 12 of 12" in done.stdout
    scores = torch.from_numpy(np.load(tmp_path / "scores.npy"))
    assert (scores - module(rows).detach()).abs().max() < 0.05
    privml("convert", *own, "out=net", cwd=tmp_path)
    columns = {name: column.tolist() for name, column in zip(("age", "weight", "height"), rows.t(), strict=True)}
    parquet.write_table(pyarrow.table(columns), tmp_path / "patients.parquet")
    both = ["calibration=patients.parquet", "input=patients.parquet"]
    privml("run", *own[:2], *both, "engine=plain", "out=again.npy", cwd=tmp_path)
    assert np.array_equal(np.load(tmp_path / "again.npy"), scores.numpy())
    done = privml("query", "program=net/program", "server=127.0.0.1:1", "input=net.py", cwd=tmp_path, check=False)
    assert done.returncode == 1 and "net.py: not a .npy file; inputs are .npy, .csv or .parquet" in done.stderr
