#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Are two points on earth close? Haversine's formula on secret coordinates in float32, after SecFloat, appendix M.

Coordinates are multiples of pi: latitudes psi in [-1/2, 1/2], longitudes phi in [-1, 1]. With

    delta = sin^2(pi (psi_A - psi_B) / 2) + cos(pi psi_A) cos(pi psi_B) sin^2(pi (phi_A - phi_B) / 2)

the distance is 2 R atan(sqrt(delta / (1 - delta))), so it is below a threshold where delta is below a public number.

    known    Alice knows point A, Bob point B. Each takes sines and cosines of its own coordinates in the clear, and
             sin(a - b) = sin a cos b - cos a sin b: six products, three sums and a comparison are secret.
    shared   the coordinates themselves are secret shares: sines and cosines are protocols too.

Prints the mean and the largest error of delta in units in the last place and of the distance in metres, on random
pairs, and what the protocols send on some of them, whose results are those of the clear functions bit for bit.

    python scripts/proximity.py [--pairs 100000] [--secure 1000]
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from privml import _core
from privml.engines.ring import add_words, subtract_words
from privml.float_words import float_values, float_words
from privml.formats import Float

FORMAT = Float(8, 23)
EARTH = 6_371_000.0  # metres
THRESHOLD = 5_000_000.0  # metres

Words = np.ndarray
Operation = Callable[..., Words]  # name, words -> words, or bits of a comparison


def clear(name: str, *operands: Words) -> Words:
    """The function that the protocol `name` equals."""
    return getattr(_core.secfloat, f"clear_{name}")(*operands, FORMAT.exponent, FORMAT.mantissa)


def secure(session: Any) -> Operation:
    """The protocol `name` on shares."""

    def run(name: str, *operands: Words) -> Words:
        return getattr(_core.secfloat, name)(session, *operands, FORMAT.exponent, FORMAT.mantissa)

    return run


def words(x: np.ndarray) -> Words:
    return float_words(torch.from_numpy(np.asarray(x, dtype=np.float32)), FORMAT).numpy()


def values(x: Words) -> np.ndarray:
    return float_values(torch.from_numpy(x), FORMAT, torch.float64).numpy()


def constant(value: float, like: Words, rank: int) -> Words:
    """A public number as shares (rank 0 has it, rank 1 zeros), or in the clear (rank 0)."""
    return np.repeat(words(np.array([value if rank == 0 else 0.0])), len(like))


def threshold() -> float:
    return float(np.sin(THRESHOLD / (2 * EARTH)) ** 2)


# ---------------------------------------------------------------- the two scenarios


def own_factors(psi: np.ndarray, phi: np.ndarray) -> list[np.ndarray]:
    """What a party computes of its own point: sin and cos of psi / 2, and of phi / 2 times sqrt(cos psi)."""
    half_psi, half_phi = np.pi * psi.astype(float) / 2, np.pi * phi.astype(float) / 2
    root = np.sqrt(np.cos(2 * half_psi))
    return [np.sin(half_psi), np.cos(half_psi), root * np.sin(half_phi), root * np.cos(half_phi)]


def delta_of_known(run: Operation, a: list[Words], b: list[Words]) -> Words:
    """From own_factors() of both points, as words or shares."""
    squares = []
    for sine, cosine in ((0, 1), (2, 3)):
        difference = run("subtract", run("multiply", a[sine], b[cosine]), run("multiply", a[cosine], b[sine]))
        squares.append(run("multiply", difference, difference))
    return run("add", *squares)


def delta_of_shared(run: Operation, a: list[Words], b: list[Words], half: Words) -> Words:
    """From psi and phi of both points."""
    squares = []
    for first, second in zip(a, b, strict=True):
        sine = run("sin_pi", run("multiply", run("subtract", first, second), half))
        squares.append(run("multiply", sine, sine))
    cosines = run("multiply", run("cos_pi", a[0]), run("cos_pi", b[0]))
    return run("add", squares[0], run("multiply", cosines, squares[1]))


def exact_delta(points: list[np.ndarray]) -> np.ndarray:
    psi_a, phi_a, psi_b, phi_b = (p.astype(float) for p in points)
    height, width = np.sin(np.pi * (psi_a - psi_b) / 2), np.sin(np.pi * (phi_a - phi_b) / 2)
    return height**2 + np.cos(np.pi * psi_a) * np.cos(np.pi * psi_b) * width**2


def distance(delta: np.ndarray) -> np.ndarray:
    return 2 * EARTH * np.arctan2(np.sqrt(delta), np.sqrt(np.maximum(1 - delta, 0)))


# ---------------------------------------------------------------- runs


def random_points(pairs: int, seed: int = 1) -> list[np.ndarray]:
    """psi and phi of A and B, uniform on the sphere."""
    random = np.random.default_rng(seed)
    coordinates = []
    for _ in range(2):
        coordinates.append((np.arcsin(random.uniform(-1, 1, pairs)) / np.pi).astype(np.float32))
        coordinates.append(random.uniform(-1, 1, pairs).astype(np.float32))
    return coordinates


def operands(scenario: str, points: list[np.ndarray]) -> tuple[list[Words], list[Words]]:
    a, b = points[:2], points[2:]
    if scenario == "known":
        return [words(x) for x in own_factors(*a)], [words(x) for x in own_factors(*b)]
    return [words(x) for x in a], [words(x) for x in b]


def near(scenario: str, run: Operation, a: list[Words], b: list[Words], rank: int) -> tuple[Words, Words]:
    """delta, and whether it is below the threshold."""
    known = scenario == "known"
    delta = delta_of_known(run, a, b) if known else delta_of_shared(run, a, b, constant(0.5, a[0], rank))
    return delta, run("less_than", delta, constant(threshold(), delta, rank))


def share(x: Words, random: np.random.Generator) -> tuple[Words, Words]:
    mask = random.integers(0, 1 << FORMAT.word_bits, x.shape)
    rest = subtract_words(torch.from_numpy(x), torch.from_numpy(mask), FORMAT).numpy()
    return mask, rest


def run_protocols(
    scenario: str, a: list[Words], b: list[Words], ot: str = "softspoken"
) -> tuple[Words, Words, dict[str, int]]:
    """delta and the answers, opened, and what both parties sent; two parties on threads."""
    channels = _core.memory_pair()
    random = np.random.default_rng()
    if scenario == "known":  # a party's own number: the other one's share is zero
        first = [a, [np.zeros_like(x) for x in a]]
        second = [[np.zeros_like(x) for x in b], b]
    else:
        first, second = (list(zip(*(share(x, random) for x in point), strict=True)) for point in (a, b))
    results: list[Any] = [None, None]

    def party(rank: int) -> None:
        session = _core.TwoPartySession(channels[rank], rank, ot, 4)
        delta, below = near(scenario, secure(session), list(first[rank]), list(second[rank]), rank)
        results[rank] = delta, below, session.counters()

    threads = [threading.Thread(target=party, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (delta_0, below_0, counters), (delta_1, below_1, _) = results
    delta = add_words(torch.from_numpy(delta_0), torch.from_numpy(delta_1), FORMAT).numpy()
    phases = [counters["preprocess"], counters["online"]]
    sent = {"bytes": sum(p["sent"] + p["received"] for p in phases), "depth": sum(p["depth"] for p in phases)}
    return delta, below_0 ^ below_1, sent


def errors(delta: Words, points: list[np.ndarray]) -> dict[str, float]:
    """Mean and largest, in units in the last place of delta and in metres."""
    exact = exact_delta(points)
    unit = 2.0 ** (np.floor(np.log2(exact)) - FORMAT.mantissa)
    ulps = np.abs(values(delta) - exact) / unit
    metres = np.abs(distance(values(delta)) - distance(exact))
    return {
        "mean ULP": ulps.mean(),
        "largest ULP": ulps.max(),
        "mean metres": metres.mean(),
        "largest metres": metres.max(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000, help="of which the errors are reported")
    parser.add_argument("--secure", type=int, default=1_000, help="of which the protocols run")
    arguments = parser.parse_args()
    points = random_points(arguments.pairs)
    for scenario in ("known", "shared"):
        a, b = operands(scenario, points)
        delta, below = near(scenario, clear, a, b, 0)
        found = ", ".join(f"{name} {value:.4g}" for name, value in errors(delta, points).items())
        print(f"{scenario:6} {arguments.pairs} pairs: {found}; {below.mean():.1%} are near")
        n = min(arguments.secure, arguments.pairs)
        secret, answers, sent = run_protocols(scenario, [x[:n] for x in a], [x[:n] for x in b])
        if not (np.array_equal(secret, delta[:n]) and np.array_equal(answers, below[:n])):
            print(f"{scenario}: the protocols' results differ from the clear ones")
            return 1
        print(f"{scenario:6} {n} pairs in secret: {sent['bytes'] / n / 1024:.2f} KiB each, depth {sent['depth']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
