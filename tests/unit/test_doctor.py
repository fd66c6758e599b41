# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds is there, and what it misses comes with advice."""

import importlib.metadata
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from privml.service import doctor
from privml.service.doctor import BROKEN, GOOD, LACKING, PARTLY, examine


def by_subject(findings):
    return {finding.subject: finding for finding in findings}


def test_a_working_machine():
    found = by_subject(examine())
    assert found["compiled core"].state == GOOD
    assert found["torch"].found == importlib.metadata.version("torch")
    assert (found["GPU"].state == GOOD) <= torch.cuda.is_available()
    assert not [finding for finding in found.values() if finding.state == BROKEN]
    assert all(finding.advice for finding in found.values() if finding.state == LACKING)


def test_the_kernels_of_transfers_are_named_and_limited():
    code = "from privml.service.doctor import _kernels; print(*_kernels())"
    for limit, names in (("portable", "portable"), ("aesni", "aesni")):
        said = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PRIVML_CPU": limit}, capture_output=True, text=True
        )
        if limit == "portable" or "pclmulqdq" in Path("/proc/cpuinfo").read_text():
            assert f"AES {names}" in said.stdout and "unset PRIVML_CPU" in said.stdout, said.stderr
    wrong = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PRIVML_CPU": "fast"}, capture_output=True)
    assert b"broken" in wrong.stdout and b"PRIVML_CPU must be" in wrong.stdout, wrong.stderr


def test_a_missing_package_comes_with_its_command(monkeypatch: pytest.MonkeyPatch):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in ("rich", "mlflow") else real(name))
    found = by_subject(examine())
    assert found["rich"].state == BROKEN and found["rich"].advice == "pip install rich"
    assert found["mlflow"].state == LACKING and "privml[experiments]" in found["mlflow"].advice


def test_an_old_processor_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path):
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: Old One\nflags\t\t: fpu sse2 aes\n")
    path = doctor.Path
    monkeypatch.setattr(doctor, "Path", lambda name: path(info if name == "/proc/cpuinfo" else name))
    found = by_subject(doctor._processor())
    assert "Old One" in found["processor"].found
    assert found["instruction sets"].state == PARTLY and "avx2" in found["instruction sets"].found


def files(monkeypatch: pytest.MonkeyPatch, tmp_path, **contents: str):
    """What the doctor reads of the system: file name -> its text, with _ for /."""
    path = doctor.Path

    def read(name):
        key = str(name).removeprefix("/").replace("/", "_")
        if key not in contents:
            return path(name)
        (tmp_path / key).write_text(contents[key])
        return path(tmp_path / key)

    monkeypatch.setattr(doctor, "Path", read)


@pytest.mark.parametrize(
    ("pattern", "state"),
    [
        ("core", GOOD),
        ("|/usr/lib/systemd/systemd-coredump %P %u", GOOD),
        ("|/usr/share/apport/apport -p%p", GOOD),
        ("|/opt/collector %p", LACKING),
    ],
)
def test_who_gets_core_dumps(monkeypatch: pytest.MonkeyPatch, tmp_path, pattern: str, state: str):
    files(monkeypatch, tmp_path, proc_sys_kernel_core_pattern=pattern + "\n", proc_swaps="Filename Type\n")
    found = by_subject(doctor._secrecy())
    assert found["core dumps"].state == state and ("collector" in found["core dumps"].advice) == (state == LACKING)
    assert found["swap"].state == GOOD


def test_swap_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path):
    files(monkeypatch, tmp_path, proc_swaps="Filename Type Size\n/dev/sda2 partition 1000\n")
    swap = by_subject(doctor._secrecy())["swap"]
    assert swap.state == LACKING and swap.found == "/dev/sda2" and "encrypt" in swap.advice


def test_a_clock_that_nobody_keeps(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "_clock_is_kept", lambda: False)
    (clock,) = doctor._clock()
    assert clock.state == LACKING and "certificates" in clock.advice
    monkeypatch.setattr(doctor.time, "gmtime", lambda: time.struct_time((1970, 1, 1, 0, 0, 0, 3, 1, 0)))
    (clock,) = doctor._clock()
    assert clock.state == BROKEN and "1970-01-01" in clock.found


def test_network_emulation_says_why_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    (found,) = doctor._network()
    assert found.state == LACKING and "iproute2" in found.advice
    monkeypatch.setattr(doctor.shutil, "which", lambda name: name)
    refused = subprocess.CompletedProcess([], 1, "", "unshare failed: Operation not permitted\nmore\n")
    monkeypatch.setattr(doctor.subprocess, "run", lambda *args, **options: refused)
    (found,) = doctor._network()
    assert found.state == LACKING and found.found == "unshare failed: Operation not permitted"


def test_few_descriptors_and_little_disk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda what: (256, 4096))
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda where: SimpleNamespace(free=1))
    found = by_subject(doctor._system())
    assert found["open files"].state == LACKING and "ulimit" in found["open files"].advice
    assert found["disk here"].state == LACKING and "store=" in found["disk here"].advice
