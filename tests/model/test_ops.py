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


def check_claims(x, ring):
    """What the format says of sign and size is true."""
    fmt = x.format
    if not isinstance(fmt, Boolean) and ring.numel():
        assert not fmt.nonnegative or int(ring.min()) >= 0
        assert fmt.bound is None or -fmt.bound <= int(ring.min()) <= int(ring.max()) < fmt.bound


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


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_operator(case, placement, open_session, open_oracle):
    with open_session():
        result = run(case, placement)
        value, ring = privml.reveal(result), ring_of(result)
        check_claims(result, ring)
        expected_dtype = case.function(*case.inputs)
    assert value.dtype is expected_dtype.dtype and value.shape == expected_dtype.shape
    exact = exact_result(case)
    assert (value.double() - exact).abs().max() <= case.tolerance * 2.0**-16 + 1e-6 * exact.abs().max()
    with open_oracle():
        oracle = run(case, placement)
    assert (result.format, result.placement) == (oracle.format, oracle.placement)
    if case.deterministic:
        assert torch.equal(ring, ring_of(oracle))


def test_case_names_are_unique():
    assert len({c.name for c in CASES}) == len(CASES)
