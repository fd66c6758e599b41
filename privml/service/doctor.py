# SPDX-License-Identifier: Apache-2.0
"""What this machine offers privml, and what to do about what is missing."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import resource
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privml.errors import ConfigError
from privml.service.certificates import describe
from privml.session.identity import ROLES, Tls

# "partly": it works, and would be faster or more complete with what is not there.
GOOD, PARTLY, LACKING, BROKEN = "ok", "partly", "missing", "broken"
_RELEASED = 2026

# Instruction sets by /proc/cpuinfo's names, and what is slower without them.
_FEATURES = {
    "aes": "hashing and random bits",
    "pclmulqdq": "checks of oblivious transfers",
    "avx2": "products and bit transposes",
    "avx512f": "products in wide rings",
    "avx512bw": "three-party kernels",
    "avx512dq": "products modulo 2^64",
    "vaes": "oblivious transfers",
    "vpclmulqdq": "checks of oblivious transfers",
    "gfni": "bit transposes",
}
_NEEDED = ("torch", "numpy", "onnx", "hydra-core", "safetensors", "rich", "cryptography")
# Package -> (what it is for, how to get it).
_OPTIONAL = {
    "onnxruntime": ("comparing imported models with their reference", 'pip install "privml[onnx]"'),
    "skl2onnx": ("models of scikit-learn", 'pip install "privml[sklearn]"'),
    "mlflow": ("tracking of experiments", 'pip install "privml[experiments]"'),
    "matplotlib": ("curves of training", 'pip install "privml[experiments]"'),
}
_LEAST_DESCRIPTORS = 1024
_LEAST_MEMORY_GIB = 2
_LEAST_DISK_GIB = 5
# Programs that the kernel may pipe core dumps to, and that drop those of processes whose limit is 0, as privml's is.
_OBEDIENT = ("systemd-coredump", "apport")
# What adjtimex answers when nothing keeps the clock in step.
_UNSYNCHRONISED = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """``advice`` is empty where nothing needs to be done."""

    subject: str
    state: str
    found: str
    advice: str = ""


def examine() -> list[Finding]:
    """Everything, in the order in which to repair it. Opens no connection beyond this machine."""
    return [*_core(), *_packages(), *_processor(), *_graphics(), *_system(), *_secrecy(), *_clock(), *_network()]


def examine_identity(tls: Tls) -> list[Finding]:
    """This party's certificate, and the names that it demands of the others, by rank."""
    try:
        tls.identity(*range(len(ROLES)))
        said = describe(tls.certificate)
    except ConfigError as error:
        return [Finding("certificate", BROKEN, str(error), "see `privml certs`")]
    expired = "expired" in said["valid until"]
    state, advice = (BROKEN, "issue another one: `privml certs issue`") if expired else (GOOD, "")
    findings = [Finding("certificate", state, f"{said['names']}, valid until {said['valid until']}", advice)]
    own, taken = said["names"].split(", "), set()
    for rank, role in enumerate(ROLES):
        setting, demanded = f"identity.tls.names.{role}", tls.allowed(rank)
        if not demanded:
            found, advice = (
                "any name of the authority",
                f"parties that connect to it need {setting}=..., its certificate's name",
            )
            findings.append(Finding(f"name of the {role}", LACKING, found, advice))
            continue
        shared = taken.intersection(demanded)
        state, advice = (BROKEN, "three parties need three names") if shared else (GOOD, "")
        note = ", this party's own" if set(own).intersection(demanded) else ""
        findings.append(Finding(f"name of the {role}", state, ", ".join(demanded) + note, advice))
        taken.update(demanded)
    return findings


def _core() -> Iterator[Finding]:
    try:
        import privml._core as _core

        second = _core.memory_pair()
        second[0].write(b"x")
        second[0].flush()
        works = second[1].read(1) == b"x"
        yield Finding("compiled core", GOOD if works else BROKEN, str(Path(_core.__file__).name))
    except ImportError as error:
        yield Finding("compiled core", BROKEN, str(error), "build it: pip install . (or make build in a checkout)")


def _packages() -> Iterator[Finding]:
    yield Finding("Python", GOOD, f"{platform.python_version()} ({sys.executable})")
    for name in _NEEDED:
        version = _version(name)
        if version:
            yield Finding(name, GOOD, version)
        else:
            yield Finding(name, BROKEN, "not installed", f"pip install {name}")
    yield Finding("OpenSSL", GOOD, ssl.OPENSSL_VERSION)
    for name, (purpose, advice) in _OPTIONAL.items():
        version = _version(name)
        yield Finding(name, GOOD if version else LACKING, version or f"for {purpose}", "" if version else advice)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> Iterator[Finding]:
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    said = dict(line.split(":", 1) for line in reversed(text.splitlines()) if ":" in line)
    said = {name.strip(): value.strip() for name, value in said.items()}
    model = said.get("model name", platform.machine())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("processor", GOOD, f"{model}, {cores} cores for this process")
    flags = set(said.get("flags", "").split())
    missing = {name: what for name, what in _FEATURES.items() if name not in flags}
    there = [name for name in _FEATURES if name in flags]
    slower = "; slower without: " + ", ".join(f"{what} ({name})" for name, what in missing.items()) if missing else ""
    yield Finding(
        "instruction sets",
        (PARTLY if there else LACKING) if missing else GOOD,
        (", ".join(there) or "none known") + slower,
    )
    yield from _kernels()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    enough = memory >= _LEAST_MEMORY_GIB
    advice = "" if enough else "large models need more; small batches help"
    yield Finding("memory", GOOD if enough else LACKING, f"{memory:.1f} GiB", advice)


def _kernels() -> Iterator[Finding]:
    try:
        from privml._core import transfer_kernels
    except ImportError:  # which stands with the compiled core
        return
    try:
        used = ", ".join(f"{task} {kernel}" for task, kernel in transfer_kernels().items())
    except ValueError as error:
        yield Finding("transfer kernels", BROKEN, str(error), "unset PRIVML_CPU")
        return
    limit = os.environ.get("PRIVML_CPU", "")
    advice = "unset PRIVML_CPU, unless this is a measurement" if limit else ""
    yield Finding("transfer kernels", LACKING if limit else GOOD, used, advice)


def _graphics() -> Iterator[Finding]:
    try:
        import torch
    except ImportError:  # which stands among the packages
        return
    if not torch.cuda.is_available():
        found = "torch finds no CUDA device"
        yield Finding("GPU", LACKING, found, "engine=threepc computes on CPUs; a CUDA device makes it faster")
        return
    name, memory = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory / 2**30
    cupy = next((package for package in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if _version(package)), None)
    advice = "" if cupy else 'pip install "privml[gpu]"'
    yield Finding("GPU", GOOD if cupy else LACKING, f"{name}, {memory:.0f} GiB, {cupy or 'without CuPy'}", advice)


def _system() -> Iterator[Finding]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft >= _LEAST_DESCRIPTORS
    advice = "" if enough else f"ulimit -n {_LEAST_DESCRIPTORS}: a server of many clients needs more"
    yield Finding("open files", GOOD if enough else LACKING, str(soft), advice)
    free = shutil.disk_usage(".").free / 2**30
    enough = free >= _LEAST_DISK_GIB
    advice = "" if enough else "stores of correlations take gigabytes: give store= a folder with more"
    yield Finding("disk here", GOOD if enough else LACKING, f"{free:.0f} GiB free", advice)


def _secrecy() -> Iterator[Finding]:
    """Ways in which the memory of a party could reach a disk."""
    pattern = _first_line("/proc/sys/kernel/core_pattern")
    handler = Path(pattern[1:].split()[0]).name if pattern.startswith("|") else ""
    safe = not handler or handler in _OBEDIENT
    found = f"piped to {handler}" if handler else "off in the processes of privml"
    advice = (
        ""
        if safe
        else f"make sure that {handler} drops those of processes whose limit is 0, or sysctl kernel.core_pattern=core"
    )
    yield Finding("core dumps", GOOD if safe else LACKING, found, advice)
    swaps = Path("/proc/swaps")
    areas = [line.split()[0] for line in swaps.read_text().splitlines()[1:]] if swaps.exists() else []
    advice = "shares and keys may be swapped out: encrypt the swap, or swapoff -a" if areas else ""
    yield Finding("swap", LACKING if areas else GOOD, ", ".join(areas) or "none", advice)


def _first_line(file: str) -> str:
    try:
        return next(iter(Path(file).read_text().splitlines()), "")
    except OSError:
        return ""


def _clock() -> Iterator[Finding]:
    """Deadlines use a clock of their own; the wall clock decides whether a certificate is valid."""
    now = time.gmtime()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", now)
    advice = "certificates are checked against it: run systemd-timesyncd or chrony"
    if now.tm_year < _RELEASED:
        yield Finding("clock", BROKEN, f"{shown} is before this release", f"set the clock; {advice}")
    else:
        kept = _clock_is_kept()
        yield Finding(
            "clock", GOOD if kept else LACKING, shown if kept else f"{shown}, not synchronised", "" if kept else advice
        )


def _clock_is_kept() -> bool:
    """Whether something keeps the clock in step; True where the system does not say."""
    try:
        adjust = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return True
    return adjust(ctypes.create_string_buffer(512)) != _UNSYNCHRONISED  # zeros: nothing is changed


def _network() -> Iterator[Finding]:
    """Whether the kernel can imitate loss and delay between processes; the networks of privml itself need nothing."""
    subject, without = "network emulation", "link=lan and wan work without it"
    if shutil.which("tc") is None or shutil.which("unshare") is None:
        advice = f"apt-get install iproute2 util-linux, to try packet loss; {without}"
        yield Finding(subject, LACKING, "tc or unshare is not installed", advice)
        return
    # In a network namespace of its own, which ends with the command.
    command = ["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"]
    try:
        tried = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
        refusal = next(iter(tried.stderr.splitlines()), "refused") if tried.returncode else ""
    except (OSError, subprocess.SubprocessError) as error:
        refusal = str(error)
    advice = f"needs root and the kernel's sch_netem; {without}" if refusal else ""
    yield Finding(subject, LACKING if refusal else GOOD, refusal or "tc netem", advice)
