# SPDX-License-Identifier: Apache-2.0
"""A converted program is called like a model, in a session that takes its formats."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from ports import reserved

import privml
from privml.errors import ConfigError, InvalidInput

X = torch.linspace(-1, 1, 12).view(3, 4)


@pytest.fixture(scope="module")
def module():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)).eval()


@pytest.fixture(scope="module")
def program(module):
    found = privml.convert(module, calibration=torch.rand(20, 4) * 2 - 1, numerics={"bits": 32, "scale": 9})
    assert found.numerics != privml.Numerics()
    return found


@pytest.mark.parametrize("engine", ["plain", "twopc", "threepc", "active"])
def test_a_program_is_called_like_a_model(program, module, engine):
    with privml.local(program, engine=engine) as session:
        assert session.numerics == program.numerics
        found = program(X)
    assert type(found) is torch.Tensor and not hasattr(found, "share")
    assert (found - module(X).detach()).abs().max() < 0.05


def test_an_array_and_a_secret_are_inputs_too(program):
    with privml.local(program, engine="twopc"):
        assert torch.equal(program(X.numpy()), program(privml.share(X, owner=1, format=program.inputs[0].format)))


@pytest.mark.parametrize("engine", ["plain", "twopc"])
def test_an_input_of_no_rows_or_of_other_sizes_is_named(program, engine):
    with privml.local(program, engine=engine):
        with pytest.raises(InvalidInput, match=r"shape \(0, 4\) has no elements; give at least one row"):
            program(X[:0])
        with pytest.raises(InvalidInput, match=r"shape \(3, 2\), but the program expects \(any, 4\)"):
            program(X[:, :2])


def test_ids_of_no_rows_are_named_before_the_client_looks_them_up():
    ids = torch.randint(0, 23, (6, 5))
    program = privml.convert(torch.nn.Sequential(torch.nn.Embedding(23, 3), torch.nn.Linear(3, 2)), calibration=ids)
    with privml.local(program), pytest.raises(InvalidInput, match=r"shape \(0, 5\) has no elements"):
        program(ids[:0])


def test_several_outputs_are_a_tuple(module):
    class Two(torch.nn.Module):
        def forward(self, x):
            return x + 1, x * 2

    program = privml.convert(Two(), calibration=X)
    with privml.local(program):
        first, second = program(X)
    assert torch.allclose(first, X + 1, atol=0.05) and torch.allclose(second, X * 2, atol=0.05)


def test_a_session_of_other_formats_is_refused_before_anything_is_sent(program):
    with privml.local("twopc") as session:
        before = session.ledger.snapshot().total.bytes
        with pytest.raises(ConfigError, match=r"privml.local\(program, engine=...\)"):
            program(X)
        assert session.ledger.snapshot().total.bytes == before


def test_what_contradicts_is_refused(program):
    with pytest.raises(ConfigError, match="has its own formats; leave out bits"):
        privml.local(program, bits=64)
    with pytest.raises(ConfigError, match="two engines"):
        privml.local("plain", engine="twopc")
    with pytest.raises(ConfigError, match="no session is open"):
        program(X)
    with privml.local(program), pytest.raises(InvalidInput, match="expects"):
        program(X[:, :2])


def test_between_two_parties_the_client_learns_the_outputs(program, module):
    def party(rank, address):
        side = {"listen": address} if rank == 0 else {"connect": address}
        with privml.connect(rank, program=program, **side):
            return program(X if rank == 1 else tuple(X.shape))

    with reserved(1) as (address,), ThreadPoolExecutor(2) as executor:
        server, client = executor.map(party, range(2), [address] * 2)
    assert server is None and (client - module(X).detach()).abs().max() < 0.05
