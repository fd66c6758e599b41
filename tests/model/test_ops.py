# SPDX-License-Identifier: Apache-2.0
"""Every operator case on every engine, against float64 within its bound and against ``plain`` bit for bit."""

import pytest
import torch
from function_cases import CASES

import privml
from privml.formats import Boolean, Shared

PLACEMENTS = ("shared", "two owners", "one owner")


def secret_inputs(inputs, placement):
    """The inputs as secrets; "shared" goes through a sum with zeros of the other party."""
    secrets = []
    for i, value in enumerate(inputs):
        owner = i % 2 if placement == "two owners" else 1
        x = privml.share(value, owner=owner)
        if placement == "shared" and x.placement != Shared():
            zeros = privml.share(torch.zeros_like(value), owner=0)
            x = x ^ zeros if value.dtype is torch.bool else x + zeros
            assert x.placement == Shared()
        secrets.append(x)
    return secrets


def ring_of(x):
    """The revealed ring elements or bits."""
    engine = x.session.engine
    boolean = isinstance(x.format, Boolean)
    return engine.reveal_bits(x.share) if boolean else engine.reveal(x.share, x.format.bits)


def check_claims(x, ring, placement):
    """What the format says of sign and size is true."""
    fmt = x.format
    if not isinstance(fmt, Boolean) and ring.numel():
        assert not fmt.nonnegative or int(ring.min()) >= 0, placement
        assert fmt.bound is None or -fmt.bound <= int(ring.min()) <= int(ring.max()) < fmt.bound, placement


def run(case, placement):
    with torch.no_grad():
        return case.function(*secret_inputs(case.inputs, placement))


def exact_result(case):
    """The case in float64, constants included."""
    torch.set_default_dtype(torch.float64)
    try:
        return case.function(*(v.double() if v.is_floating_point() else v for v in case.inputs)).double()
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operator(case, open_session, open_oracle):
    """At every placement of its inputs."""
    with open_session():
        results = [run(case, placement) for placement in PLACEMENTS]
        revealed = [(privml.reveal(result), ring_of(result)) for result in results]
        clear = case.function(*case.inputs)
    with open_oracle():
        oracles = [run(case, placement) for placement in PLACEMENTS]
    exact = exact_result(case)
    bound = case.tolerance * 2.0**-16 + 1e-6 * exact.abs().max()
    for placement, result, (value, ring), oracle in zip(PLACEMENTS, results, revealed, oracles, strict=True):
        check_claims(result, ring, placement)
        assert value.dtype is clear.dtype and value.shape == clear.shape, placement
        assert (value.double() - exact).abs().max() <= bound, placement
        assert (result.format, result.placement) == (oracle.format, oracle.placement), placement
        assert not case.deterministic or torch.equal(ring, ring_of(oracle)), placement


def test_case_names_are_unique():
    assert len({c.name for c in CASES}) == len(CASES)
