#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long run of `privml serve`: clients that come, ask and go, some of them badly, while the server is watched.

    python scripts/soak.py                                   10,000 queries of the small MLP and of LeNet-5
    python scripts/soak.py model=mlp queries=2000 clients=4
    python scripts/soak.py engine=threepc seconds=600        with a dealer, who is watched too; ten minutes at most

Every answer is compared with the plain engine's. Sessions have one to `per_session` queries; a share of the clients
misbehaves: garbage, silence, an end in the middle of a query. After every `sample` queries the server gives back memory
it does not use (malloc_trim, by a signal handler installed around the verb) and is measured. The run fails for a wrong
answer, an error of a client that behaves, growth of memory beyond `limit_kib` per 1,000 queries, or descriptors or
threads left at the end; never for its speed.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# The verb as the command line has it, with a handler that returns unused memory to the system.
SERVED = """
import ctypes, gc, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: (gc.collect(), ctypes.CDLL(None).malloc_trim(0)))
from privml.cli import main
main()
"""
GARBAGE, SILENT, LEAVING = "garbage", "silent", "leaving"
# One of so many clients each; a silent one keeps its connection for some seconds.
DEFAULTS: dict[str, Any] = {
    "model": "mlp+lenet", "engine": "twopc", "queries": 10_000, "clients": 2, "per_client": 50, "per_session": 5,
    "sample": 100, GARBAGE: 100, SILENT: 1000, LEAVING: 50, "limit_kib": 256.0, "deadline": 30.0, "out": "", "seed": 1,
    "serve": "", "batch": 1, "seconds": 0,
}  # fmt: skip


@dataclass
class Sample:
    """What a process holds after so many answered queries."""

    queries: int
    rss_kib: int
    descriptors: int
    threads: int


@dataclass
class Watched:
    """A server or dealer under way and what was seen of it."""

    name: str
    process: subprocess.Popen
    address: str
    samples: list[Sample] = field(default_factory=list)

    def sample(self, queries: int) -> Sample:
        os.kill(self.process.pid, signal.SIGUSR1)
        time.sleep(1.0)  # its main thread wakes twice a second
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        self.samples.append(Sample(queries, int(status["VmRSS"].split()[0]), descriptors, int(status["Threads"])))
        return self.samples[-1]


def settings_of(words: list[str]) -> dict[str, Any]:
    settings = dict(DEFAULTS)
    for name, _, value in (word.partition("=") for word in words):
        if name not in settings:
            sys.exit(f"unknown setting {name}; there are {', '.join(settings)}")
        settings[name] = type(DEFAULTS[name])(value)
    return settings


# ---- clients, in processes of their own that come and go
def behave(task: dict[str, Any], results: Any) -> None:
    """Queries of one client process, in sessions of some, each told as (model, seconds, error or "")."""
    import torch

    torch.set_num_threads(1)
    chance, done, places = random.Random(task["seed"]), 0, task["models"]
    inputs = {name: np.load(f"{place['folder']}/inputs.npy") for name, place in places.items()}
    expected = {name: np.load(f"{place['folder']}/expected.npy") for name, place in places.items()}
    while done < task["count"]:
        name = chance.choice(sorted(places))
        with client_of(task, name, ahead=chance.random() < 0.25) as client:
            for _ in range(min(chance.randint(1, task["per_session"]), task["count"] - done)):
                first = chance.randrange(len(inputs[name]) - task["batch"] + 1)
                rows, start = slice(first, first + task["batch"]), time.monotonic()
                try:
                    found = patient(client, torch.from_numpy(inputs[name][rows]))
                    error = wrong(found, expected[name][rows], task["tolerance"])
                except Exception as problem:
                    error = f"{type(problem).__name__}: {problem}"
                results.put((name, time.monotonic() - start, error))
                done += 1


def patient(client: Any, value: Any) -> np.ndarray:
    """The answer of a server that may be busy; whatever else goes wrong is an error."""
    from privml.errors import ServiceBusy

    while True:
        try:
            return client.query(value).outputs[0].numpy()
        except ServiceBusy as busy:
            time.sleep(busy.retry_after)


def client_of(task: dict[str, Any], name: str, **settings: Any) -> Any:
    from privml import Client

    place = task["models"][name]
    settings |= {"deadline": task["deadline"], "dealer": place["dealer"], **task["query"]}
    return Client(place["folder"], place["server"], **settings)


def wrong(found: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    if found.shape != expected.shape or not np.abs(found - expected).max() <= tolerance:
        return f"a wrong answer: {found.tolist()} instead of {expected.tolist()}"
    return ""


def misbehave(kind: str, task: dict[str, Any], name: str) -> None:
    """A client that no server should have to meet."""
    chance = random.Random(task["seed"])
    if kind == LEAVING:
        import torch

        torch.set_num_threads(1)
        value = torch.from_numpy(np.load(f"{task['models'][name]['folder']}/inputs.npy")[:1])

        def step(done: int, total: int, label: str) -> None:
            if done == leave_at:
                os.kill(os.getpid(), signal.SIGKILL)

        with client_of(task, name) as client:
            leave_at = chance.randrange(len(client.program.layers))
            client.query(value, progress=step)
        return
    host, port = task["models"][name]["server"].split(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        if kind == GARBAGE:
            connection.sendall(chance.randbytes(chance.randrange(1, 5000)))
        connection.settimeout(60)
        try:
            while connection.recv(1 << 16):
                pass
        except OSError:
            pass


# ---- the run
class Soak:
    def __init__(self, settings: dict[str, Any], folder: Path) -> None:
        self.settings, self.folder = settings, folder
        self.servers: dict[str, Watched] = {}
        self.dealers: dict[str, Watched] = {}
        self.answers: list[tuple[str, float]] = []
        self.errors: list[str] = []
        self.bad: list[Any] = []
        self.misbehaved: Counter[str] = Counter()
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["torch.distributed.tensor", "privml.service.client"])
        self.results = self.processes.Queue()

    def prepare(self) -> dict[str, Any]:
        """Programs, inputs and what the plain engine answers; servers under way."""
        import torch

        import models
        from privml.conversion import convert
        from privml.evaluation.answers import plain_outputs
        from privml.program import Program

        torch.set_num_threads(1)
        engine, places = self.settings["engine"], {}
        for name in self.settings["model"].split("+"):
            place = self.folder / name
            model = models.load(name)
            inputs = model.preprocess(model.samples[:64]).float()
            numerics = {**model.numerics, **({} if engine == "twopc" else {"narrow": False})}
            convert(model.module, calibration=model.preprocess(model.calibration), numerics=numerics).save(place)
            program = Program.load(place / "program", place / "weights.safetensors")
            oracle = {} if engine == "twopc" else {"like": engine}
            expected = torch.cat([plain_outputs(program, inputs[i : i + 1], **oracle)[0] for i in range(len(inputs))])
            np.save(place / "inputs.npy", inputs.numpy())
            np.save(place / "expected.npy", expected.numpy())
            dealer = None
            if engine == "threepc":
                self.dealers[name] = self._start("deal", name, place, [])
                dealer = self.dealers[name].address
            words = [f"weights={place}/weights.safetensors", *([f"dealer={dealer}"] if dealer else [])]
            words += ["engine=active"] if engine == "active" else []
            self.servers[name] = self._start("serve", name, place, words + self.settings["serve"].split())
            places[name] = {"folder": str(place), "server": self.servers[name].address, "dealer": dealer}
        return {
            "models": places, **{name: self.settings[name] for name in ("deadline", "batch", "per_session")},
            "tolerance": 0.0 if engine == "twopc" else 0.25, "query": {"ring": 64} if engine == "active" else {},
        }  # fmt: skip

    def _start(self, verb: str, name: str, place: Path, words: list[str]) -> Watched:
        command = [sys.executable, "-c", SERVED, verb, f"program={place}/program", "listen=127.0.0.1:0"]
        log = (self.folder / f"{verb}-{name}.log").open("w", buffering=1)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [*command, f"deadline={self.settings['deadline']}", *words],
            stdout=subprocess.PIPE, stderr=log, text=True, env=environment,
        )  # fmt: skip
        port = process.stdout.readline().split("port ")[1].split(",")[0].strip()

        def listen() -> None:
            log.writelines(process.stdout)

        threading.Thread(target=listen, daemon=True).start()
        return Watched(f"{verb} {name}", process, f"127.0.0.1:{port}")

    @property
    def watched(self) -> list[Watched]:
        return [*self.servers.values(), *self.dealers.values()]

    def run(self) -> float:
        """The seconds that the queries took."""
        task = self.prepare()
        seeds = iter(range(self.settings["seed"], 1 << 62))
        left, running, sampled, start = self.settings["queries"], [], 0, time.monotonic()
        bad = self._bad(task, seeds)
        while left > 0 or running:
            left = 0 if 0 < self.settings["seconds"] < time.monotonic() - start else left
            while left > 0 and len(running) < self.settings["clients"]:
                count = min(left, self.settings["per_client"])
                left -= count
                running.append(self._client({**task, "count": count, "seed": next(seeds)}))
            self._collect()
            for process in [process for process in running if not process.is_alive()]:
                running.remove(process)
                if process.exitcode != 0:
                    self.errors.append(f"a client's process ended with status {process.exitcode}")
            next(bad)
            if len(self.answers) - sampled >= self.settings["sample"]:
                sampled = len(self.answers)
                self._sample(time.monotonic() - start)
        self._collect()
        seconds = time.monotonic() - start
        for process in self.bad:
            process.join()
        time.sleep(2)
        self._sample(seconds)
        return seconds

    def _client(self, task: dict[str, Any]) -> Any:
        process = self.processes.Process(target=behave, args=(task, self.results))
        process.start()
        return process

    def _collect(self) -> None:
        """What clients have told within a moment."""
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            try:
                told = self.results.get(timeout=max(end - time.monotonic(), 0.001))
            except queue.Empty:
                return
            if told is not None:
                name, seconds, error = told
                self.answers.append((name, seconds))
                if error:
                    self.errors.append(f"{name}: {error}")

    def _bad(self, task: dict[str, Any], seeds: Iterator[int]) -> Iterator[None]:
        """Starts the share of misbehaving clients that is due after so many answers, and ends with them."""
        while True:
            for kind in (GARBAGE, SILENT, LEAVING):
                every = self.settings[kind]
                while every and self.misbehaved[kind] < len(self.answers) // every:
                    self.misbehaved[kind] += 1
                    chosen = sorted(self.servers)[self.misbehaved[kind] % len(self.servers)]
                    order = (kind, {**task, "seed": next(seeds)}, chosen)
                    process = self.processes.Process(target=misbehave, args=order)
                    process.start()
                    self.bad.append(process)
            self.bad = [process for process in self.bad if process.is_alive()]
            yield

    def _sample(self, seconds: float) -> None:
        for each in self.watched:
            if each.process.poll() is not None:
                self.errors.append(f"{each.name} ended with status {each.process.returncode}")
                raise SystemExit(self.errors[-1])
            now = each.sample(len(self.answers))
            print(
                f"{len(self.answers):6d} queries, {len(self.answers) / seconds:.1f}/s: {each.name} {now.rss_kib} KiB, "
                f"{now.descriptors} descriptors, {now.threads} threads; {len(self.errors)} errors",
                flush=True,
            )

    def end(self) -> None:
        for each in self.watched:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGINT)
        for each in self.watched:
            try:
                each.process.wait(20)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()


# ---- the verdict
def growth_of(samples: list[Sample]) -> dict[str, float]:
    """KiB per 1,000 queries by least squares over the samples after the first fifth, and its standard error."""
    kept = samples[len(samples) // 5 :]
    if len(kept) < 3:
        return {"kib_per_1000": 0.0, "standard_error": float("inf")}
    x = np.array([sample.queries for sample in kept]) / 1000
    y = np.array([float(sample.rss_kib) for sample in kept])
    slope, level = np.polyfit(x, y, 1)
    rest = y - (slope * x + level)
    spread = np.sqrt((rest**2).sum() / max(len(x) - 2, 1) / ((x - x.mean()) ** 2).sum())
    return {"kib_per_1000": float(slope), "standard_error": float(spread)}


def percentiles(times: list[float]) -> dict[str, float]:
    """Seconds that so many percent of the queries took at most."""
    ordered = sorted(times)
    return {f"p{p}": ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 95, 99) if ordered}


def verdict(soak: Soak, seconds: float) -> tuple[dict[str, Any], list[str]]:
    """The report, and why the run failed."""
    times = [each for _, each in soak.answers]
    failures = [f"{len(soak.errors)} errors, the first one {soak.errors[0]}"] if soak.errors else []
    report: dict[str, Any] = {
        "settings": soak.settings,
        "answered": len(times),
        "seconds": seconds,
        "per_second": len(times) / seconds,
        "latency": percentiles(times),
        "latency_by_model": {},
        "misbehaved": dict(soak.misbehaved),
        "errors": soak.errors[:20],
        "watched": {},
    }
    for name in soak.servers:
        report["latency_by_model"][name] = percentiles([each for which, each in soak.answers if which == name])
    for each in soak.watched:
        early, growth = each.samples[: max(len(each.samples) // 5, 1)], growth_of(each.samples)
        report["watched"][each.name] = {**growth, "samples": [asdict(sample) for sample in each.samples]}
        if growth["kib_per_1000"] - 2 * growth["standard_error"] > soak.settings["limit_kib"]:
            failures.append(f"{each.name} grows by {growth['kib_per_1000']:.0f} KiB per 1,000 queries")
        for what in ("descriptors", "threads"):
            now, then = getattr(each.samples[-1], what), max(getattr(sample, what) for sample in early)
            if now > then:
                failures.append(f"{each.name} has {now} {what}, {then} at the beginning")
    return report, failures


def main() -> None:
    settings = settings_of(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="privml-soak-") as folder:
        soak = Soak(settings, Path(folder))
        try:
            seconds = soak.run()
        finally:
            soak.end()
    report, failures = verdict(soak, seconds)
    name = f"soak-{settings['engine']}-{settings['model'].replace('+', '-')}.json"
    out = Path(settings["out"] or ROOT / "benchmarks/results" / name)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({**report, "failures": failures}, indent=1) + "\n")
    latency = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in report["latency"].items())
    print(f"{report['answered']} answers in {seconds:.0f} s, {report['per_second']:.2f} a second; {latency}")
    for each, seen in report["watched"].items():
        print(f"{each}: {seen['kib_per_1000']:+.1f} ± {seen['standard_error']:.1f} KiB per 1,000 queries")
    print(f"clients that misbehaved: {report['misbehaved']}; written to {out}")
    if failures:
        sys.exit("failed: " + "; ".join(failures))


if __name__ == "__main__":
    main()
