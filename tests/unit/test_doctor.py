# SPDX-License-Identifier: Apache-2.0
"""What the doctor finds is there, and what it misses comes with advice."""

import importlib.metadata

import pytest
import torch

from privml.service import doctor
from privml.service.doctor import BROKEN, GOOD, LACKING, examine


def by_subject(findings):
    return {finding.subject: finding for finding in findings}


def test_a_working_machine():
    found = by_subject(examine())
    assert found["compiled core"].state == GOOD
    assert found["torch"].found == importlib.metadata.version("torch")
    assert (found["GPU"].state == GOOD) <= torch.cuda.is_available()
    assert not [finding for finding in found.values() if finding.state == BROKEN]
    assert all(
        finding.advice
        for finding in found.values()
        if finding.state == LACKING and finding.subject != "instruction sets"
    )


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
    assert found["instruction sets"].state == LACKING and "avx2" in found["instruction sets"].found
