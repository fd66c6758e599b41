# SPDX-License-Identifier: Apache-2.0
"""``privml <verb> key=value ...``: every verb is a Hydra application over ``configs/``."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

from privml.cli.fields import did_you_mean
from privml.cli.paths import config_directory

VERBS = {
    "convert": "turn a trained model (PyTorch or ONNX) into a program and the server's weights",
    "serve": "party 0: own the weights, answer queries",
    "deal": "party 2, for three parties: help a server and its clients without learning anything",
    "query": "party 1: own the input, learn the scores",
    "preprocess": "make correlations of many queries ahead of time, into a store at each party",
    "certs": "certificates of the parties: init, issue, show",
    "doctor": "what this machine offers, and what to do about what is missing",
    "run": "all parties on this machine, to try a model",
    "cost": "bytes, rounds and correlations of one query, predicted from the graph",
    "advise": "which engine, number format and transfers to choose",
    "train": "train a model on secret data, and for comparison in the clear",
    "experiment": "sweeps over engines, networks, number formats and models, kept as JSON lines",
    "bench": "throughput and bytes of a suite of operators",
    "evaluate": "the zoo: secure inference compared with clear inference, as records, cards and a page",
}

# Verbs whose first word says what to do.
ACTION_VERBS = ("certs",)
# Words that may stand behind a verb, as in `privml evaluate zoo`.
_SUBJECTS = {"evaluate": "zoo"}


def usage() -> str:
    lines = ["usage: privml <verb> [key=value ...]", ""]
    lines += [f"  {verb:<11} {what}" for verb, what in VERBS.items()]
    lines += ["", "privml <verb> --help shows what it does, an example and its settings."]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Runs one verb; exits 0 on success, 1 on an error of privml (one line on stderr), 2 on a wrong call, 141 if the
    reader of its output has left, as `head` does."""
    # NumPy starts threads when it is imported, and a process with threads cannot be copied (measure/copies.py).
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Idle threads of torch would keep cores busy that the other parties on this machine compute with.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what the interpreter writes at its end
        sys.exit(141)


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["help"]:
        print(usage())
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        import privml

        print(f"privml {privml.__version__}")
        return
    if arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    verb, *rest = arguments
    if verb not in VERBS:
        hint = did_you_mean(verb, VERBS)
        print(f"privml: unknown verb '{verb}'{hint}\n\n{usage()}", file=sys.stderr)
        sys.exit(2)
    if verb in ACTION_VERBS and rest and "=" not in rest[0] and not rest[0].startswith("-"):
        rest[0] = f"action={rest[0]}"
    rest = rest[1:] if rest[:1] == [_SUBJECTS.get(verb)] else rest
    if "--help" in rest or "-h" in rest:
        from privml.cli import console, help

        with console.clean_errors(verb):
            print(help.text(verb, [word for word in rest if "=" in word]))
        return
    run_verb(verb, rest)


def without_core_dumps() -> None:
    """A process that holds shares and keys leaves no image of its memory behind when it dies."""
    import resource
    from pathlib import Path

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Programs that collect dumps are not held to the limit: give them a dump without memory.
    with contextlib.suppress(OSError):
        Path("/proc/self/coredump_filter").write_text("0")


def run_verb(verb: str, overrides: list[str]) -> None:
    from privml.cli import configuration, console
    from privml.cli import overrides as written

    with console.clean_errors(verb):
        overrides = written.checked(verb, written.gathered(overrides))
        if configuration.is_plain(verb, overrides):
            without_core_dumps()
            console.plain_warnings()
            importlib.import_module(f"privml.cli.{verb}").run(
                configuration.checked(verb, configuration.plain(verb, overrides))
            )
            return
    run_with_hydra(verb, overrides)


def run_with_hydra(verb: str, overrides: list[str]) -> None:
    import hydra
    from omegaconf import DictConfig

    from privml.cli import configuration, console

    configuration.register(verb)
    configuration.register_engines(overrides)

    def application(config: DictConfig) -> None:
        without_core_dumps()
        console.plain_warnings()
        with console.clean_errors(verb):
            importlib.import_module(f"privml.cli.{verb}").run(configuration.checked(verb, config))

    application.__module__ = "privml.cli"
    decorated = hydra.main(version_base="1.3", config_path=str(config_directory()), config_name=verb)(application)
    sys.argv = [f"privml {verb}", *overrides]
    decorated()
