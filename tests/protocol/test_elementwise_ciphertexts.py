# SPDX-License-Identifier: Apache-2.0
"""Functions of many elements make products by ciphertexts where a session may: results are those of the plain engine,
and bytes are fewer than those of transfers."""

import pytest
import torch

import privml

SHAPE = 128, 512


def numbers():
    return 1.5 * torch.randn(SHAPE, generator=torch.Generator().manual_seed(2))


def squares(x):
    return x * x


@pytest.mark.parametrize("function", [lambda x: x.softmax(-1), squares], ids=["softmax", "squares"])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_are_those_of_the_plain_engine_for_fewer_bytes(function, threads):
    results, sent = {}, {}
    for name, settings in {"plain": {}, "ot": {"linear": "ot"}, "auto": {}, "proved": {"noise": "proved"}}.items():
        engine = "plain" if name == "plain" else "twopc"
        further = {"threads": threads, "ot": "silent"} if engine == "twopc" else {}
        with privml.local(engine, bits=32, scale=12, **settings, **further) as session:
            x = privml.share(numbers(), owner=1) + privml.share(torch.zeros(SHAPE), owner=0)
            results[name] = privml.reveal(function(x))
            sent[name] = session.ledger.snapshot().online.bytes
    for name in ("ot", "auto", "proved"):
        assert torch.equal(results[name], results["plain"]), name
    assert sent["auto"] < 0.9 * sent["ot"]
    assert sent["proved"] == pytest.approx(sent["ot"], rel=0.2)
