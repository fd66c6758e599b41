# SPDX-License-Identifier: Apache-2.0
"""The steps of Dockerfile and compose files in plain folders and environments, for where no container engine is:
python scripts/container_steps.py FOLDER [compose file ...].

Each stage of the Dockerfile becomes a folder with an environment of Python; COPY copies, RUN runs, in a shell whose
absolute paths lead into that folder. Steps that change the system (apt-get, useradd) are left out and listed. Then
the services of each compose file run as processes, with the commands, secrets, volumes and health checks that stand
there, and the client's answer is compared with the clear model's. What this cannot show: isolation, limits, users.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
# Folders of the images; a path that begins with one of them leads into the stage's folder.
IMAGE_FOLDERS = ("source", "wheels", "data", "program", "run/secrets")
SYSTEM_STEPS = ("apt-get", "useradd", "rm -rf /var/lib/apt")
FROM_HOST = ("PATH", "LANG", "PIP_", "HTTP", "http", "SSL_", "REQUESTS_", "CCACHE_", "CMAKE_")


# ---- the Dockerfile
def instructions(text: str) -> Iterator[tuple[str, str]]:
    """(instruction, the rest of its line or lines), comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            yield word.upper(), " ".join(rest.split())


@dataclass
class Stage:
    """``variables``: of ENV and ARG; ``left_out``: steps that change the system."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    where: str = "/"
    entry: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        return self.folder / (inside if inside.startswith("/") else f"{self.where}/{inside}").lstrip("/")

    def environment(self) -> dict[str, str]:
        host = {name: value for name, value in os.environ.items() if name.startswith(FROM_HOST)}
        moved = {name: translated(value, self.folder) for name, value in self.variables.items()}
        return {**host, **moved, "PATH": f"{self.folder}/env/bin:{host['PATH']}"}

    def run(self, command: str) -> None:
        steps = [step.strip() for step in command.split("&&")]
        kept = [step for step in steps if not step.startswith(SYSTEM_STEPS)]
        self.left_out += [step for step in steps if step not in kept]
        if kept:
            text = translated(" && ".join(kept), self.folder)
            print(f"RUN {text}", flush=True)
            self.path(self.where).mkdir(parents=True, exist_ok=True)
            subprocess.run(["bash", "-ec", text], cwd=self.path(self.where), env=self.environment(), check=True)


def translated(text: str, folder: Path) -> str:
    return re.sub(rf"(?<![\w./])/(?=(?:{'|'.join(IMAGE_FOLDERS)}|tmp)\b)", f"{folder}/", text)


def build(dockerfile: str, context: Path, folder: Path) -> Stage:
    """Runs the steps; returns the last stage."""
    given: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    stage: Stage | None = None
    for word, rest in instructions(dockerfile):
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            image = expanded(image, given)
            if not image.startswith("python:"):
                raise SystemExit(f"FROM {image}: only images of Python can be imitated")
            stage = stages[name] = Stage(folder / name)
            (stage.folder / "tmp").mkdir(parents=True)
            subprocess.run([sys.executable, "-m", "venv", str(stage.folder / "env")], check=True)
        elif word == "ARG":
            name, _, value = rest.partition("=")
            (given if stage is None else stage.variables)[name] = os.environ.get(name, value)
        elif stage is None:
            raise SystemExit(f"{word} stands before FROM")
        elif word == "RUN":
            stage.run(rest)
        elif word == "COPY":
            copy(rest, stage, stages, context)
        elif word == "ENV":
            stage.variables.update(assignment.split("=", 1) for assignment in shlex.split(rest))
        elif word == "WORKDIR":
            stage.where = rest
            stage.path(rest).mkdir(parents=True, exist_ok=True)
        elif word in ("ENTRYPOINT", "CMD"):
            words = yaml.safe_load(rest)
            stage.entry = words if word == "ENTRYPOINT" else stage.entry
        elif word != "USER":
            raise SystemExit(f"{word}: no step that is imitated here")
    if stage is None:
        raise SystemExit("no FROM")
    return stage


def copy(rest: str, stage: Stage, stages: Mapping[str, Stage], context: Path) -> None:
    *sources, target = rest.split()
    place = stage.path(target)
    if sources[0].startswith("--from="):
        origin = stages[sources.pop(0).removeprefix("--from=")]
        files = [origin.path(source) for source in sources]
    else:
        files = [context / source for source in sources]
    for file in files:
        into = place / file.name if target.endswith("/") else place
        into.parent.mkdir(parents=True, exist_ok=True)
        if file.is_dir():
            shutil.copytree(file, into, dirs_exist_ok=True)
        else:
            shutil.copy(file, into)


def context_of(repository: Path, folder: Path) -> Path:
    """What an engine would be sent: the tracked files that .dockerignore lets through."""
    lines = (repository / ".dockerignore").read_text().splitlines()
    wanted = [line[1:] for line in lines if line.startswith("!")]
    tracked = subprocess.run(["git", "ls-files", *wanted], cwd=repository, capture_output=True, text=True, check=True)
    for name in tracked.stdout.splitlines():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / name, folder / name)
    return folder


# ---- the compose files
def expanded(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with ${NAME} and ${NAME:-default} replaced."""
    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", lambda match: variables.get(match[1]) or (match[2] or ""), text)


def merged(base: Any, over: Any) -> Any:
    """As ``extends`` does: mappings by key, lists one after the other."""
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{key: merged(base[key], value) if key in base else value for key, value in over.items()}}
    return base + over if isinstance(base, list) and isinstance(over, list) else over


def compose(file: Path, variables: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The file with its variables and what its services extend filled in."""
    read = yaml.safe_load(expanded(file.read_text(), variables))
    for name, service in read["services"].items():
        if "extends" in service:
            other = service.pop("extends")
            base = compose(file.parent / other["file"], variables)["services"][other["service"]]
            read["services"][name] = merged(base, service)
    return read


def in_order(services: Mapping[str, Any]) -> list[str]:
    """Names, each after those it depends on."""
    done: list[str] = []

    def visit(name: str) -> None:
        for other in services[name].get("depends_on", {}):
            visit(other)
        if name not in done:
            done.append(name)

    for name in services:
        visit(name)
    return done


def mounts(service: Mapping[str, Any], secrets: Mapping[str, Any], base: Path) -> dict[str, str]:
    """Path in the container -> path here, of volumes and secrets; longer paths first."""
    found = {f"/run/secrets/{name}": str(base / secrets[name]["file"]) for name in service.get("secrets", [])}
    for volume in service.get("volumes", []):
        here, there = volume.split(":")[:2]
        found[there] = str(base / here)
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


def command_here(words: list[str], places: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    """A service's command with the paths and addresses of this machine."""
    moved = []
    for word in words:
        key, _, value = word.partition("=")
        for inside, here in places.items():
            if value == inside or value.startswith(inside + "/"):
                value = here + value[len(inside) :]
                break
        if key in ("listen", "server", "dealer"):
            host, port = value.split(":")
            value = f"127.0.0.1:{port}" if host in (*names, "0.0.0.0") else value
        moved.append(f"{key}={value}" if "=" in word else word)
    return moved


def healthy(service: Mapping[str, Any], stage: Stage, patience: float) -> bool:
    kind, *words = service["healthcheck"]["test"]
    assert kind == "CMD", kind
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if subprocess.run(words, env=stage.environment(), cwd=stage.folder, check=False).returncode == 0:
            return True
        time.sleep(1)
    return False


def run_services(file: Path, stage: Stage, base: Path) -> None:
    """Starts what others depend on, waits until it is healthy, and runs the rest to its end."""
    read = compose(file)
    services, running = read["services"], []
    try:
        for name in in_order(services):
            service = services[name]
            words = command_here(service["command"], mounts(service, read["secrets"], base), services)
            print(f"{name}: privml {shlex.join(words)}", flush=True)
            process = subprocess.Popen(
                [stage.folder / "env/bin" / stage.entry[0], *words], cwd=base, env=stage.environment()
            )
            running.append(process)
            if "healthcheck" not in service:
                if process.wait(600) != 0:
                    raise SystemExit(f"{name} ended with status {process.returncode}")
            elif not healthy(service, stage, 300):
                raise SystemExit(f"{name} is not healthy")
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(60)


def prepare(base: Path, stage: Stage) -> None:
    """Program, certificates and input where the compose files expect them, by the image's own command."""
    privml = str(stage.folder / "env/bin/privml")
    for words in (
        ["convert", "model=lenet", "out=program"],
        ["certs", "init"],
        *(["certs", "issue", f"name={name}"] for name in ("server", "client", "dealer")),
    ):
        subprocess.run([privml, *words], cwd=base, env=stage.environment(), check=True)
    (base / "data").mkdir()
    ask = (
        "import numpy; from privml.cli.paths import shipped_models; model = shipped_models().load('lenet');"
        "numpy.save('data/input.npy', model.preprocess(model.samples[:2]).numpy());"
        "numpy.save('data/clear.npy', model.module(model.preprocess(model.samples[:2])).detach().numpy())"
    )
    subprocess.run([stage.folder / "env/bin/python", "-c", ask], cwd=base, env=stage.environment(), check=True)


def check_answer(base: Path, stage: Stage) -> None:
    ask = (
        "import numpy; a, b = (numpy.load(f'data/{name}.npy') for name in ('answer', 'clear'));"
        "assert (a.argmax(1) == b.argmax(1)).all(), (a, b); print('answer: as in the clear')"
    )
    subprocess.run([stage.folder / "env/bin/python", "-c", ask], cwd=base, env=stage.environment(), check=True)
    (base / "data/answer.npy").unlink()


def main() -> None:
    folder, *names = sys.argv[1:]
    place = Path(folder).resolve()
    place.mkdir(parents=True, exist_ok=False)
    files = [Path(name) for name in names] or [ROOT / "deploy/compose.yaml", ROOT / "deploy/compose.three.yaml"]
    context = context_of(ROOT, place / "context")
    stage = build((ROOT / "Dockerfile").read_text(), context, place)
    base = place / "deploy"
    base.mkdir()
    prepare(base, stage)
    for file in files:
        run_services(file.resolve(), stage, base)
        check_answer(base, stage)
    print("left out, for they change the system: " + "; ".join(stage.left_out))


if __name__ == "__main__":
    main()
