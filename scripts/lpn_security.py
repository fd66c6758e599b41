# SPDX-License-Identifier: Apache-2.0
"""Attack costs on LPN with regular noise for the parameter sets of silent OT (csrc/ot/lpn.h).

Prints, for each set, the base-2 logarithm of the bit operations of the best published attacks, minimised over their own
parameters. Where the literature offers several ways of counting an attack's cost, the cheapest for the attacker is
taken, often one that no known algorithm reaches; memory is free.

    python scripts/lpn_security.py            the sets of the library and those of the literature
    python scripts/lpn_security.py 163840 1170 11      another set: secret length, trees, depth

Notation: secret of k bits, t blocks of B = 2^depth samples with one error each, n = t * B samples.

Sources: Esser, Kuebler, May: LPN Decoded (Crypto 2017); Liu, Wang, Yang, Yu: The Hardness of LPN over Any Integer Ring
and Field for PCG Applications (eprint 2022/712); Briaud, Oygarden: A New Algebraic Approach to the Regular Syndrome
Decoding Problem (eprint 2023/176); Esser, Santini: Not Just Regular Decoding (eprint 2023/1568); the hybrid of guessing
and linearisation (eprint 2025/1284).
"""

import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

REQUIRED_BITS = 128


class Set(NamedTuple):
    """A parameter set: name, secret length k in bits, number of trees t, depth of a tree."""

    name: str
    secret: int
    trees: int
    depth: int


LIBRARY = (Set("main", 163840, 1170, 11), Set("setup", 38912, 346, 9))
LITERATURE = (Set("2^17, 1170, 11", 2**17, 1170, 11), Set("2^19, 1900, 13", 2**19, 1900, 13))


def log2_choose(n: float, r: float) -> float:
    """log2 of the binomial coefficient."""
    return (math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1)) / math.log(2)


def log2_sum(*terms: float) -> float:
    """log2 of the sum of powers of two."""
    top = max(terms)
    return top + math.log2(sum(2.0 ** (term - top) for term in terms))


def guesses(s: Set, positions: float, blocks: float | None = None) -> float:
    """log2 of the expected number of trials until `positions` samples, spread over the blocks, have no error."""
    blocks = s.trees if blocks is None else blocks
    share = positions / blocks / 2**s.depth
    return math.inf if share >= 1 else -blocks * math.log2(1 - share)


def pooled_gauss(s: Set) -> float:
    """Guess k error-free samples and solve. Each block's sum gives one equation without error: k - t remain."""
    unknown = s.secret - s.trees
    return guesses(s, unknown) + 2.8 * math.log2(unknown)


def information_set(s: Set) -> float:
    """Regular ISD by enumeration: p errors are left among the chosen samples and found by a collision search.

    Linear algebra is charged with one pass over a k x k matrix, less than any known elimination; each list element with
    the bits it is compared on.
    """
    unknown = s.secret - s.trees
    return min(cost for p in range(0, 21, 2) for cost in _enumeration(s, unknown, p))


def _enumeration(s: Set, unknown: int, p: int) -> Iterator[float]:
    half = s.trees / 2
    for window in range(0, 121):
        each = (unknown + window) / s.trees
        share = each / 2**s.depth
        if share >= 1:
            return
        found = 2 * log2_choose(half, p / 2) + p * math.log2(share) + (s.trees - p) * math.log2(1 - share)
        entries = log2_choose(half, p / 2) + p / 2 * math.log2(each)
        lists = log2_sum(1 + entries, 2 * entries - window) + math.log2(window + 1)
        yield log2_sum(2 * math.log2(unknown), lists) - found


def statistical_decoding(s: Set) -> float:
    """Distinguishing with parity checks of weight k + 1, of which none lighter is found cheaply."""
    n = s.trees * 2**s.depth
    return math.log2(s.secret + 1) + 2 * s.trees * math.log2((n - s.trees + 1) / (n - s.secret - s.trees))


def algebraic(s: Set) -> float:
    """Macaulay matrices of degree 2 to 4 after guessing u zeros in each of f blocks; sparse linear algebra."""
    block, checks = 2**s.depth, s.trees * 2**s.depth - s.secret
    best = math.inf
    for f in sorted({round(s.trees * i / 60) for i in range(61)}):
        for u in sorted({round((block - 2) * i / 200) for i in range(200)}):
            if f * u > s.secret:
                break
            series = _power_series((block - u - 1, f), (block - 1, s.trees - f))
            left = _times(series, [(-1) ** d * math.comb(checks + d - 1, d) for d in range(5)])
            degree = next((d for d in (2, 3, 4) if sum(left[2 : d + 1]) < 1), None)
            if degree is None:
                continue
            monomials = math.log2(sum(series[1 : degree + 1]))
            best = min(best, 2 * monomials + math.log2(3 * (s.secret + 1 - f * u)) - f * math.log2(1 - u / block))
    return best


def _power_series(*factors: tuple[int, int]) -> list[int]:
    """Product of (1 + a z)^m up to degree 4."""
    product = [1, 0, 0, 0, 0]
    for a, m in factors:
        product = _times(product, [math.comb(m, d) * a**d for d in range(5)])
    return product


def _times(a: list[int], b: list[int]) -> list[int]:
    return [sum(a[i] * b[d - i] for i in range(d + 1)) for d in range(5)]


def linearisation(s: Set) -> float:
    """Guess u zeros per block, then solve the products of two variables of one block, which vanish, by linearisation.

    g blocks are left aside and searched through at the end. The system of v^2 / 2 monomials is charged as the cheaper
    of elimination and of iterative solving that multiplies by the equations' factors.
    """
    block = 2**s.depth
    best = math.inf
    for g in range(0, 41):
        blocks, aside = s.trees - g, g * (block - 1)
        for step in range(1, 4 * block):
            u = step / 4
            if u >= block - 2:
                break
            unknown = max(s.secret - s.trees - blocks * u, 1)
            v = max(unknown - aside, 1)
            if v > math.sqrt(blocks) * (block - u - 2) - 2:
                continue
            monomials = max(2 * math.log2(v) - 1, 1)
            dense = 4 * math.log2(v) + 2 * math.log2(unknown) - 3 - math.log2(max(monomials, 2))
            factored = 1 + monomials + math.log2(blocks * (block - u)) + 2 * math.log2(v)
            tail = log2_sum(1 + 2 * math.log2(v) + math.log2(aside + 1), 3 * math.log2(2.5 * v)) + g * s.depth
            best = min(best, guesses(s, blocks * u, blocks) + log2_sum(min(dense, factored), tail))
            break  # more guesses cost more than the smaller system saves
    return best


ATTACKS = (pooled_gauss, information_set, statistical_decoding, algebraic, linearisation)


def security(s: Set) -> dict[str, float]:
    """log2 of the bit operations of each attack."""
    return {attack.__name__: attack(s) for attack in ATTACKS}


def main(arguments: list[str]) -> int:
    """Prints the table; 1 if a set of the library falls short."""
    sets = (Set("given", *map(int, arguments)),) if arguments else LIBRARY + LITERATURE
    print(f"{'set':16}{'k':>8}{'t':>6}{'depth':>7}" + "".join(f"{attack.__name__:>22}" for attack in ATTACKS))
    short = False
    for s in sets:
        costs = security(s)
        row = "".join(f"{bits:22.1f}" for bits in costs.values())
        print(f"{s.name:16}{s.secret:8}{s.trees:6}{s.depth:7}{row}")
        short |= s in LIBRARY and min(costs.values()) < REQUIRED_BITS
    return int(short)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
