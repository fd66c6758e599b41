# SPDX-License-Identifier: Apache-2.0
"""A server that is caught deviating while its client is idle, in correlations made ahead: the client says so with the
next query, with a query that opens another session, and at its end."""

import pytest
import services
import torch
from patience import PATIENCE
from serving import serving
from small_network import converted

import privml
import privml.service.client
from privml.errors import SecurityAbort
from privml.service.negotiation import Allowance

INPUT = torch.tensor([[0.5, -1.0, 0.25, 2.0]])


@pytest.fixture
def caught(monkeypatch):
    """A client whose server was caught after its first query."""

    def abort(session, stock):
        raise SecurityAbort("a check failed")

    monkeypatch.setattr(privml.service.client, "make_ahead", abort)
    program = converted()
    with serving(program, "twopc") as (server, settings):
        client = services.client(program, server.address, ahead=True, **settings)
        client.query(INPUT)
        assert client.ready(PATIENCE)
        yield client


def test_the_next_query_says_so(caught):
    with pytest.raises(SecurityAbort, match="a check failed"):
        caught.query(INPUT)
    caught.close()  # has nothing new to say


def test_so_does_one_that_needs_another_session(caught):
    caught._session._allowance = Allowance(0)
    with pytest.raises(SecurityAbort, match="a check failed"):
        caught.query(INPUT)
    caught.close()


def test_closing_says_so(caught):
    with pytest.raises(SecurityAbort, match="a check failed"):
        caught.close()
    caught.close()
