# SPDX-License-Identifier: Apache-2.0
"""The parameters of lattice-based products hold what the core states."""

import importlib.util
import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("lattice_security", ROOT / "scripts" / "lattice_security.py")
lattice_security = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lattice_security)


def sets_of_the_core():
    """(n, log q) -> (gates, core-SVP) as the headers state them."""
    names = "parameters", "wide_parameters", "slot_parameters"
    headers = [(ROOT / "csrc" / "lattice" / f"{name}.h").read_text() for name in names]
    rows = re.findall(r"\{(\d+), (\d+), \{([\d.]+), ([\d.]+)\}\}", "".join(headers))
    return {(int(n), int(log_q)): (float(gates), float(core_svp)) for n, log_q, gates, core_svp in rows}


def test_sets_are_those_of_the_core():
    assert set(sets_of_the_core()) == {(s.n, s.log_q) for s in lattice_security.LIBRARY}


@pytest.mark.parametrize("parameters", lattice_security.LIBRARY, ids=lambda s: f"{s.n}-{s.log_q}")
def test_every_set_is_as_hard_as_stated(parameters):
    estimate = lattice_security.primal(parameters)
    stated = sets_of_the_core()[parameters.n, parameters.log_q]
    assert estimate.gates == pytest.approx(stated[0], abs=0.1)
    assert estimate.core_svp == pytest.approx(stated[1], abs=0.1)
    assert min(estimate.gates, estimate.core_svp) >= lattice_security.REQUIRED_BITS
    assert parameters.log_q <= lattice_security.STANDARD_MODULUS_BITS[parameters.n]


@pytest.mark.parametrize(
    ("n", "log_q", "block"), [(4096, 84, 475), (4096, 106, 341), (8192, 163, 493), (2048, 53, 346)]
)
def test_block_sizes_are_those_of_the_public_estimator(n, log_q, block):
    # The lattice estimator's usvp for a dense ternary secret and centred binomial errors.
    assert abs(lattice_security.primal(lattice_security.Set(n, log_q)).block - block) <= 1


def test_weak_parameters_are_seen_as_weak():
    assert lattice_security.primal(lattice_security.Set(1024, 72)).core_svp < 64


def test_moduli_are_products_of_the_largest_primes_that_transforms_need():
    header = (ROOT / "csrc" / "lattice" / "wide_parameters.h").read_text()
    rows = re.findall(r"\{\{(\d+), (\d+), \{[\d., ]+\}\}, (\d), \{([\d, ]+)\}, \d+\}", header)
    assert len(rows) == 4
    for n, log_q, count, listed in rows:
        primes = [int(p) for p in listed.split(",")][: int(count)]
        bits = int(log_q) // int(count)
        candidates = range((1 << bits) + 1 - (1 << 14), 0, -(1 << 14))
        assert primes == list(itertools.islice(filter(is_prime, candidates), int(count)))
        assert all(p % (2 * int(n)) == 1 for p in primes)


def test_primes_of_places_are_the_largest_of_their_bits():
    header = (ROOT / "csrc" / "lattice" / "slot_parameters.h").read_text()
    rows = re.findall(r"\{\{(\d+), (\d+), \{[\d., ]+\}\},\s*\{([\d, ]+)\},\s*\{([\d, ]+)\}\}", header)
    assert len(rows) == 2
    for n, log_q, *listed in rows:
        messages, others = ([int(p) for p in primes.split(",")] for primes in listed)
        bits = [primes[0].bit_length() for primes in (messages, others)]
        assert int(log_q) == bits[0] + 2 * bits[1]
        for length, primes in zip(bits, (messages, others), strict=True):
            step = 2 * int(n)
            candidates = range((1 << length) + 1 - step, 0, -step)
            assert primes == list(itertools.islice(filter(is_prime, candidates), 2))


def is_prime(n):
    """Miller and Rabin's test, which is certain below 2^64 with these bases."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(
        x in (1, n - 1) or any(pow(x, 1 << i, n) == n - 1 for i in range(1, twos))
        for x in (pow(base, odd, n) for base in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37))
    )
