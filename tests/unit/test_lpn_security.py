# SPDX-License-Identifier: Apache-2.0
"""The parameters of silent OT hold what the documentation promises."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("lpn_security", ROOT / "scripts" / "lpn_security.py")
lpn_security = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lpn_security)


def test_sets_are_those_of_the_core():
    header = (ROOT / "csrc" / "ot" / "lpn.h").read_text()
    in_core = {
        name.lower(): tuple(map(int, numbers.split(",")))
        for name, numbers in re.findall(r"LpnParameters kLpn(\w+)\{([\d, ]+)\}", header)
    }
    assert in_core == {s.name: (s.secret, s.trees, s.depth) for s in lpn_security.LIBRARY}


@pytest.mark.parametrize("parameters", lpn_security.LIBRARY, ids=lambda s: s.name)
def test_every_attack_costs_enough(parameters):
    costs = lpn_security.security(parameters)
    assert set(costs) == {attack.__name__ for attack in lpn_security.ATTACKS}
    assert min(costs.values()) >= lpn_security.REQUIRED_BITS, costs


def test_estimates_grow_with_the_secret_and_fall_with_longer_blocks():
    small, large, longer = (lpn_security.Set("", k, 346, depth) for k, depth in ((30720, 9), (38912, 9), (38912, 10)))
    for attack in lpn_security.ATTACKS:
        assert attack(small) < attack(large)
        assert attack(longer) < attack(large)


def test_weak_parameters_are_seen_as_weak():
    assert min(lpn_security.security(lpn_security.Set("", 4096, 346, 9)).values()) < 60


def test_regular_noise_costs_about_what_unstructured_noise_does():
    """Trials of pooled Gauss by the formula of the literature, C(n, t) / C(n - k, t) for t errors anywhere."""
    n, k, t = 2**20, 32768, 1024
    trials = lpn_security.log2_choose(n, t) - lpn_security.log2_choose(n - k, t)
    regular = lpn_security.pooled_gauss(lpn_security.Set("", k, t, 10))
    # A block's sum is an equation without error, which saves a little.
    assert trials + 2.8 * 15 - 3 < regular < trials + 2.8 * 15
