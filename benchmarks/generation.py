# SPDX-License-Identifier: Apache-2.0
"""``python benchmarks/generation.py [--engines threepc,twopc] [--prompt 64] [--count 8] [--layers 12]
[--ot softspoken] [--linear auto] [--out FILE]``

Greedy decoding with GPT-2 of full width and vocabulary and random weights, between processes on this machine: a prompt,
then one id after another, which only the client learns; it looks up the embeddings of its ids by itself. One JSON line
per engine, appended to ``--out``: seconds and bytes of each step, whether these are the bytes foretold, whether the ids
are those of the clear model, and how much memory each party took at most.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import queue
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

import privml
from privml.measure.machine import machine, revision
from privml.measure.scratch import scratch_folder
from privml.memory import peak_memory
from privml.service.dealer import deal
from privml.service.options import Addresses, Hooks, Limits
from privml.service.server import serve

ROOT = Path(__file__).resolve().parent.parent
LISTEN = "127.0.0.1:0"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", default="threepc,twopc")
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--ot", default="softspoken", help="what engine twopc's correlations are made by")
    parser.add_argument("--linear", default="auto", help="how engine twopc makes products with weights")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "results" / "generation.jsonl")
    given = parser.parse_args()
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=given.layers)).eval()
    prompt = torch.randint(0, model.config.vocab_size, (given.prompt,))
    whole = model.generate(prompt[None], max_new_tokens=given.count, do_sample=False, pad_token_id=0, eos_token_id=None)
    expected = whole[0, given.prompt :].tolist()
    texts = torch.randint(0, model.config.vocab_size, (2, given.prompt + given.count))
    begun = time.perf_counter()
    program = privml.convert(model, calibration=texts, generate=texts.shape[1], token_ids="client")
    common = {
        "layers": given.layers, "prompt": given.prompt, "machine": machine(), "revision": revision(),
        "convert_seconds": time.perf_counter() - begun, "error": program.choice.error,
    }  # fmt: skip
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with scratch_folder() as folder:
        program.save(folder)
        for engine in given.engines.split(","):
            own = {"ot": given.ot, "linear": given.linear} if engine == "twopc" else {}
            # A party may compute for long before the other hears of it.
            spec = privml.SessionSpec.of(engine=engine, deadline=600.0, **own)
            record = {**common, "engine": engine, **own, **decoded(program, folder, prompt, expected, spec)}
            with given.out.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps({key: value for key, value in record.items() if key != "machine"}), flush=True)


def decoded(
    program: Any, folder: Path, prompt: torch.Tensor, expected: list[int], spec: privml.SessionSpec
) -> dict[str, Any]:
    """What the steps of one text took, and its ids."""
    steps, ids = [], prompt
    torch.set_num_threads(spec.threads)  # here and at the others: they share this machine
    with parties(folder, spec, len(expected)) as (place, peaks):
        with privml.Client(program, place, spec) as client, client.session() as session:
            while len(steps) < len(expected):
                steps.append(session.step(ids[None]))
                ids = steps[-1].outputs[0].reshape(1)
        memory = [*peaks(), peak_memory()]
    queries = [[(1, len(prompt))], *[[(1, 1)]] * (len(expected) - 1)]
    foretold = [ledger.snapshot().total.bytes for ledger, _ in program.session_cost(queries, spec)]
    spent = [answer.ledger.snapshot().total.bytes for answer in steps]
    return {
        "ids_equal": [int(answer.outputs[0]) for answer in steps] == expected,
        "seconds": [answer.seconds for answer in steps],
        "bytes": spent,
        "as_foretold": spent == foretold,
        "ahead_bytes": [answer.ahead.total.bytes for answer in steps],
        "peak_rss_bytes": memory,
    }


@contextlib.contextmanager
def parties(folder: Path, spec: privml.SessionSpec, count: int) -> Iterator[tuple[Addresses, Callable[[], list[int]]]]:
    """A server of ``count`` steps and, if the engine has one, a dealer: where they listen, and what gives their peak
    memory once they have ended."""
    context = multiprocessing.get_context("spawn")
    told, running = context.Queue(), []
    dealer = None
    if spec.backend.dealt:
        running.append(context.Process(target=_deal, args=(folder, spec, told)))
        running[-1].start()
        dealer = f"127.0.0.1:{_port(told, running[-1])}"
    running.append(context.Process(target=_serve, args=(folder, Addresses(LISTEN, dealer), spec, count, told)))
    running[-1].start()
    address = f"127.0.0.1:{_port(told, running[-1])}"
    try:
        yield Addresses(address, dealer), lambda: [told.get(timeout=60) for _ in running]
    except BaseException:
        for process in running:  # they would wait for steps that do not come
            process.kill()
        raise
    finally:
        for process in running:
            process.join(60)
            process.kill()


def _port(told: Any, process: Any) -> int:
    """Where a process listens that has just begun."""
    while process.is_alive():
        with contextlib.suppress(queue.Empty):
            return told.get(timeout=1)
    raise RuntimeError("a party ended before it listened; its error is above")


def _deal(folder: Path, spec: privml.SessionSpec, told: Any) -> None:
    torch.set_num_threads(spec.threads)
    hooks = Hooks(on_listening=told.put, log=_unseen)
    deal(privml.load(folder / "program"), LISTEN, spec, sessions=1, hooks=hooks)
    told.put(peak_memory())


def _serve(folder: Path, place: Addresses, spec: privml.SessionSpec, count: int, told: Any) -> None:
    torch.set_num_threads(spec.threads)
    program = privml.load(folder / "program", folder / "weights.safetensors")
    hooks = Hooks(on_listening=told.put, log=_unseen)
    serve(program, place, spec, limits=Limits(queries=count), hooks=hooks)
    told.put(peak_memory())


def _unseen(line: str) -> None:
    """Standard output is for records."""


if __name__ == "__main__":
    main()
