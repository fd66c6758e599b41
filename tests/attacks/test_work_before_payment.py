# SPDX-License-Identifier: Apache-2.0
"""What a client makes a server or a dealer do by the shape that it announces, before it has sent anything else."""

from functools import partial

import pytest
import services
import torch
from running import IDEAL, Running
from services import deal, query, serve
from serving import ENGINES, serving
from small_network import converted

from privml.errors import ConfigError, InvalidInput
from privml.service.dealer import DEALER_CAPACITY
from privml.service.options import Capacity


@pytest.fixture(scope="module")
def program():
    return converted()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_server_tells_how_many_rows_it_takes(program, engine):
    with serving(program, engine) as (server, settings), services.client(program, server.address, **settings) as client:
        with pytest.raises(InvalidInput, match="at most 256 rows.*query_rows"):
            client.query(torch.zeros(257, 4))
        assert client.query(torch.zeros(2, 4)).outputs[0].shape == (2, 3)


def test_a_server_counts_nothing_for_a_query_that_is_too_large(program, monkeypatch):
    counted = []
    metered = type(program).metered
    monkeypatch.setattr(type(program), "metered", lambda *args, **more: counted.append(args) or metered(*args, **more))
    capacity = Capacity(query_rows=100_000, query_elements=400)
    with serving(program, capacity=capacity) as (server, settings), pytest.raises(InvalidInput, match="query_elements"):
        query(program, server.address, torch.zeros(101, 4), **settings)
    assert not counted


def test_the_smallest_query_of_a_program_always_fits(program):
    with serving(program, capacity=Capacity(query_rows=1, query_elements=1)) as (server, settings):
        assert query(program, server.address, torch.zeros(1, 4), **settings).outputs[0].shape == (1, 3)


def test_a_dealer_has_a_limit_of_its_own(program):
    dealing = partial(deal, program, "127.0.0.1:0", capacity=Capacity(**{**_plain(DEALER_CAPACITY), "query_rows": 2}))
    with (
        Running(dealing) as dealer,
        Running(partial(serve, program, "127.0.0.1:0"), ot=IDEAL, dealer=dealer.address) as server,
    ):
        with pytest.raises(InvalidInput, match="query_rows"):
            query(program, server.address, torch.zeros(3, 4), dealer=dealer.address)
        with services.client(program, server.address, dealer=dealer.address) as client:
            client.query(torch.zeros(2, 4))
            with pytest.raises(InvalidInput, match="query_rows"):
                client.query(torch.zeros(3, 4))


def _plain(capacity):
    return {name: getattr(capacity, name) for name in capacity.__dataclass_fields__}


@pytest.mark.parametrize(
    "wrong",
    [
        {"query_rows": 0},
        {"query_elements": 0},
        {"query_rows": 1.5},
        {"query_rows": 1 << 25},
    ],
)
def test_limits_have_a_range(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Capacity(**wrong)
