# SPDX-License-Identifier: Apache-2.0
"""Security of the parameter sets of lattice-based products (csrc/lattice/parameters.h, wide_parameters.h and
slot_parameters.h).

Prints, for each set, the block size that the primal attack needs, its core-SVP exponent, its number of operations
(BDGL's count), and the largest modulus that the homomorphic encryption standard allows for 128 bits.

    python scripts/lattice_security.py             the sets of the library
    python scripts/lattice_security.py 4096 72     another set: dimension n, log2 of the modulus

Secrets are uniform ternary, errors centred binomial with eta = 21, samples as many as the attack wants up to 2 n.

Sources: Alkim, Ducas, Poeppelmann, Schwabe: Post-quantum key exchange (USENIX Security 2016), section 6.3, for the
attack's condition; Bai, Galbraith: Lattice decoding attacks on binary LWE (ACISP 2014) for short secrets; Becker,
Ducas, Gama, Laarhoven (SODA 2016) and Albrecht et al. (eprint 2015/046) for the cost 8 d 2^(0.292 b + 16.4); Albrecht
et al.: Homomorphic Encryption Standard (2018), table 1.
"""

import math
import sys
from typing import NamedTuple

REQUIRED_BITS = 128
STANDARD_MODULUS_BITS = {2048: 54, 4096: 109, 8192: 218}
ERROR = math.sqrt(21 / 2)
SECRET = math.sqrt(2 / 3)


class Set(NamedTuple):
    """A parameter set: dimension n, log2 of the modulus."""

    n: int
    log_q: int


LIBRARY = (
    Set(4096, 64), Set(4096, 72), Set(4096, 76), Set(4096, 80), Set(4096, 87), Set(4096, 88), Set(8192, 107),
    Set(8192, 111), Set(8192, 144),
)  # fmt: skip


class Estimate(NamedTuple):
    """Block size, lattice dimension, and the two exponents that follow from them."""

    block: int
    dimension: int

    @property
    def core_svp(self) -> float:
        """log2 of one shortest-vector search without polynomial factors."""
        return 0.292 * self.block

    @property
    def gates(self) -> float:
        """log2 of the operations of the whole reduction."""
        return 0.292 * self.block + 16.4 + math.log2(8 * self.dimension)


def log_root_hermite(block: int) -> float:
    """log2 of the root Hermite factor of block reduction, asymptotic in the block size (at least 50)."""
    return math.log2(block / (2 * math.pi * math.e) * (math.pi * block) ** (1 / block)) / (2 * (block - 1))


def primal(s: Set) -> Estimate:
    """The smallest block with which the primal attack finds the secret, over all numbers of samples."""
    low, high = 60, 2000
    while low < high:
        middle = (low + high) // 2
        if _dimension(s, middle) is None:
            low = middle + 1
        else:
            high = middle
    dimension = _dimension(s, low)
    if dimension is None:
        raise ValueError(f"no block size below {high} breaks n = {s.n}, log q = {s.log_q}")
    return Estimate(low, dimension)


def _dimension(s: Set, block: int) -> int | None:
    """The smallest lattice in which the projected secret is the shortest vector of a block, if there is one."""
    root, target = log_root_hermite(block), math.log2(ERROR * math.sqrt(block))
    for samples in range(64, 2 * s.n + 1, 16):
        d = s.n + samples + 1
        volume = (samples * s.log_q + s.n * math.log2(ERROR / SECRET)) / d
        if target <= root * (2 * block - d - 1) + volume:
            return d
    return None


def main() -> None:
    """Prints the table."""
    sets = (Set(int(sys.argv[1]), int(sys.argv[2])),) if len(sys.argv) == 3 else LIBRARY
    print("   n  log q  block  core-SVP  operations  largest log q at 128 bits")
    for s in sets:
        estimate = primal(s)
        allowed = STANDARD_MODULUS_BITS.get(s.n, 0)
        print(
            f"{s.n:5d}  {s.log_q:5d}  {estimate.block:5d}  {estimate.core_svp:8.1f}  {estimate.gates:10.1f}  {allowed}"
        )


if __name__ == "__main__":
    main()
