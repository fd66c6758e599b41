#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A long run of `privml serve`: clients that come, ask and go, some of them badly, while the server is watched.

    python scripts/soak.py                                   10,000 queries of the small MLP and of LeNet-5
    python scripts/soak.py model=mlp queries=2000 clients=4
    python scripts/soak.py engine=threepc seconds=600        with a dealer, who is watched too; ten minutes at most
    python scripts/soak.py engine=threepc resume=true        the rest of its queries

Every answer is compared with the plain engine's. Sessions have one to `per_session` queries; a share of the clients
misbehaves: garbage, silence, an end in the middle of a query. After every `sample` queries the server gives back memory
it does not use (malloc_trim, by a signal handler installed around the verb) and is measured. The run fails for a wrong
answer, an error of a client that behaves, growth of memory beyond `limit_kib` per 1,000 queries, or descriptors or
threads left at the end; never for its speed.

Everything is kept as it comes, in `out` with the ending .journal, and the record is written anew with every sample.
resume=true goes on with a run that was interrupted or had no more time, on new servers, until `queries` are answered in
all; the record says so.
"""

from __future__ import annotations

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
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from soak_record import ANSWERED, OUT_OF_TIME, Journal, Sample, journal_of, keep, more_than_early, verdict  # noqa: E402

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
    "serve": "", "batch": 1, "seconds": 0, "resume": False,
}  # fmt: skip


@dataclass
class Watched:
    """A server or dealer under way."""

    name: str
    process: subprocess.Popen
    address: str

    def sample(self, queries: int) -> Sample:
        os.kill(self.process.pid, signal.SIGUSR1)
        time.sleep(1.0)  # its main thread wakes twice a second
        status = dict(line.split(":", 1) for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines())
        descriptors = len(os.listdir(f"/proc/{self.process.pid}/fd"))
        return Sample(queries, int(status["VmRSS"].split()[0]), descriptors, int(status["Threads"]))


def settings_of(words: list[str]) -> dict[str, Any]:
    settings = dict(DEFAULTS)
    for name, _, value in (word.partition("=") for word in words):
        if name not in settings:
            sys.exit(f"unknown setting {name}; there are {', '.join(settings)}")
        kind = type(DEFAULTS[name])
        settings[name] = value == "true" if kind is bool else kind(value)
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
    from privml import Addresses, Client, SessionSpec

    place = task["models"][name]
    spec = SessionSpec.of(task["engine"], deadline=task["deadline"])
    return Client(place["folder"], Addresses(place["server"], place["dealer"]), spec, **settings)


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
    """One part of a run, told to ``journal``; its record goes to ``out``."""

    def __init__(self, journal: Journal, out: Path, folder: Path) -> None:
        self.journal, self.part, self.settings = journal, journal.part, journal.part.settings
        self.out, self.folder, self.start = out, folder, time.monotonic()
        self.servers: dict[str, Watched] = {}
        self.dealers: dict[str, Watched] = {}
        self.clients: list[Any] = []
        self.bad: list[Any] = []
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["torch.distributed.tensor", "privml.service.client"])
        self.results = self.processes.Queue()

    def prepare(self) -> dict[str, Any]:
        """Programs, inputs and what the plain engine answers; servers under way."""
        import torch

        import models
        from privml.conversion import convert
        from privml.measure.answers import plain_outputs
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
            "tolerance": 0.0 if engine == "twopc" else 0.25, "engine": engine,
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

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def run(self) -> None:
        """Until all queries of the run are answered, or ``seconds`` have gone."""
        left = self.settings["queries"] - sum(len(part.answers) for part in self.journal.parts)
        task, running, sampled, ended = self.prepare(), self.clients, 0, ANSWERED
        seeds = iter(range(self.settings["seed"], 1 << 62))
        bad, self.start = self._bad(task, seeds), time.monotonic()
        while left > 0 or running:
            if left > 0 and 0 < self.settings["seconds"] < self.elapsed:
                left, ended = 0, OUT_OF_TIME
            while left > 0 and len(running) < self.settings["clients"]:
                count = min(left, self.settings["per_client"])
                left -= count
                running.append(self._client(behave, {**task, "count": count, "seed": next(seeds)}, self.results))
            self._collect()
            for process in [process for process in running if not process.is_alive()]:
                running.remove(process)
                if process.exitcode != 0:
                    self._tell(error=f"a client's process ended with status {process.exitcode}")
            next(bad)
            if len(self.part.answers) - sampled >= self.settings["sample"]:
                sampled = len(self.part.answers)
                self._sample(self.elapsed)
        self._collect()
        seconds = self.elapsed
        for process in self.bad:
            process.join()
        self._settle()
        self._sample(seconds)
        self.journal.tell(seconds, ended=ended)

    def _settle(self) -> None:
        """Waits for the ends of sessions that clients have left, as long as servers and dealers may wait for these."""
        end, held = time.monotonic() + 6 * self.settings["deadline"], True
        while held and time.monotonic() < end:
            time.sleep(1)
            held = any(
                more_than_early(self.part.samples.get(each.name, []), each.sample(0), what) > 0
                for each in self.watched
                for what in ("descriptors", "threads")
                if each.process.poll() is None
            )

    def _tell(self, **what: Any) -> None:
        self.journal.tell(self.elapsed, **what)

    def _client(self, *task: Any) -> Any:
        """A client that ends with this process at the latest."""
        process = self.processes.Process(target=task[0], args=task[1:], daemon=True)
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
                failed = {"error": f"{name}: {error}"} if error else {}
                self._tell(answer=name, took=round(seconds, 4), **failed)

    def _bad(self, task: dict[str, Any], seeds: Iterator[int]) -> Iterator[None]:
        """Starts the share of misbehaving clients that is due after so many answers, and ends with them."""
        while True:
            for kind in (GARBAGE, SILENT, LEAVING):
                every = self.settings[kind]
                while every and self.part.misbehaved[kind] < len(self.part.answers) // every:
                    self._tell(misbehaved=kind)
                    chosen = sorted(self.servers)[self.part.misbehaved[kind] % len(self.servers)]
                    self.bad.append(self._client(misbehave, kind, {**task, "seed": next(seeds)}, chosen))
            self.bad = [process for process in self.bad if process.is_alive()]
            yield

    def _sample(self, seconds: float) -> None:
        count = len(self.part.answers)
        for each in self.watched:
            if each.process.poll() is not None:
                self._tell(error=f"{each.name} ended with status {each.process.returncode}")
                raise SystemExit(self.part.errors[-1])
            now = each.sample(count)
            self.journal.tell(seconds, sampled=each.name, sample=asdict(now))
            print(
                f"{count:6d} queries, {count / seconds:.1f}/s: {each.name} {now.rss_kib} KiB, "
                f"{now.descriptors} descriptors, {now.threads} threads; {len(self.part.errors)} errors",
                flush=True,
            )
        keep(self.report()[0], self.out)

    def report(self) -> tuple[dict[str, Any], list[str]]:
        return verdict(self.journal.parts, self.settings["queries"], self.settings["limit_kib"])

    def end(self) -> None:
        for client in (*self.clients, *self.bad):  # of a run that was interrupted
            client.kill()
        for each in self.watched:
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGINT)
        for each in self.watched:
            try:
                each.process.wait(20)
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()


# ---- the command
def main() -> None:
    settings = settings_of(sys.argv[1:])
    name = f"soak-{settings['engine']}-{settings['model'].replace('+', '-')}.json"
    out = Path(settings["out"] or ROOT / "build" / "results")
    out = out if out.suffix == ".json" else out / name
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    journal = journal_of(settings, out)
    stopped = ""
    with tempfile.TemporaryDirectory(prefix="privml-soak-") as folder:
        soak = Soak(journal, out, Path(folder))
        try:
            soak.run()
        except (KeyboardInterrupt, SystemExit) as why:  # what there is, is kept
            stopped = f"{why or 'interrupted'}; resume=true goes on"
        finally:
            soak.end()
            journal.close()
    report, failures = soak.report()
    keep(report, out)
    show(report, out)
    if failures or stopped:
        sys.exit("; ".join(["failed", *failures] if failures else [stopped]))


def show(report: dict[str, Any], out: Path) -> None:
    latency = ", ".join(f"{name} {1000 * value:.0f} ms" for name, value in report["latency"].items())
    print(
        f"{report['answered']} of {report['asked']} answers in {report['seconds']:.0f} s and {len(report['parts'])} "
        f"part(s), {report['per_second']:.2f} a second; {latency}"
    )
    for each, seen in report["watched"].items():
        print(f"{each}: {seen['kib_per_1000']:+.1f} ± {seen['standard_error']:.1f} KiB per 1,000 queries")
    print(f"clients that misbehaved: {report['misbehaved']}; written to {out}")


if __name__ == "__main__":
    main()
