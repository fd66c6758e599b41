# SPDX-License-Identifier: Apache-2.0
"""The three-party engine where something is empty, has no dimensions, is shifted out, or is refused."""

import gc
import queue
import threading
import weakref

import pytest
import services
import torch

import privml
from privml import _core
from privml.engines.base import Operand
from privml.engines.shares import Promise
from privml.engines.threepc import backend as threepc
from privml.engines.threepc.links import DEALER, Links, Message
from privml.errors import PeerDisconnected
from privml.service.options import Capacity
from privml.session.dealer import reach_dealer

FUNCTIONS = {
    "sigmoid": torch.sigmoid,
    "exp": torch.exp,
    "reciprocal": lambda x: torch.reciprocal(x * x + 1),
    "sqrt": lambda x: torch.sqrt(x * x + 1),
    "log": lambda x: torch.log(x * x + 1),
}


@pytest.fixture(scope="module")
def session():
    with privml.local("threepc", deadline=20.0) as opened:
        yield opened


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_functions_of_one_number_and_of_none(session, name, shape):
    x = torch.full(shape, 0.75)
    found = privml.reveal(FUNCTIONS[name](privml.share(x, owner=1)))
    assert found.shape == shape
    torch.testing.assert_close(found, FUNCTIONS[name](x), atol=1e-3, rtol=0)


@pytest.mark.parametrize("truncation", ["exact", "faithful"])
@pytest.mark.parametrize("bits", [8, 32, 63, 64])
def test_shifts_by_all_bits_leave_the_sign(truncation, bits):
    most = 1 << (bits - 3)
    x = torch.tensor([-1, -5, 3, 0, -most, most])
    made = threepc.create(threepc.Config(truncation), deadline=20.0)
    a = made.input(x, x.shape, 1, bits)
    for shift in (bits - 3, bits - 2, bits - 1, bits + 5):
        found = made.reveal(made.truncate(a, bits, shift, Promise(bound=most + 1)), bits)
        above = found - (x >> min(shift, 63))
        assert not above.any() if truncation == "exact" else ((above == 0) | (above == 1)).all(), shift
    made.close()


@pytest.mark.parametrize("truncation", ["exact", "faithful", "auto"])
def test_quotients_by_powers_of_two_are_exact(truncation):
    x = torch.arange(-64, 64)
    made = threepc.create(threepc.Config(truncation), deadline=20.0)
    a = made.input(x, x.shape, 0, 64)
    for divisor in (1, 2, 16, 6):
        wanted = torch.div(x, divisor, rounding_mode="floor")
        assert torch.equal(made.reveal(made.divide_public(a, 64, divisor), 64), wanted)
    made.close()


@pytest.mark.parametrize("owner", [0, 1])
def test_products_with_a_share_that_stays(owner):
    """As with any other; the party that has no part of its mask knows that, of views too, and of nothing else."""
    made = threepc.create(deadline=20.0)
    x, w = torch.randint(-100, 100, (2, 5)), torch.randint(-100, 100, (3, 5))
    a, b = made.input(x, x.shape, 1 - owner, 32), made.input(w, w.shape, owner, 32)
    made.keep(b)
    turned, party = tuple(c.t() for c in b), made.engines[1 - owner].party
    of_mask = 2 * (1 - owner) + 1
    assert party.is_unmasked(turned[of_mask])
    assert not any(party.is_unmasked(c) for c in (*a, b[of_mask - 1], b[of_mask].clone()))
    for left, right, wanted in ((a, turned, x @ w.t()), (b, tuple(c.t() for c in a), w @ x.t())):
        found = made.matmul(Operand(left, 32), Operand(right, 32), 32)
        assert torch.equal(made.reveal(found, 32), wanted)
    del b, turned, left, right
    gc.collect()
    others = [torch.zeros(3, 5, dtype=torch.int64) for _ in range(100)]
    assert not any(party.is_unmasked(each) for each in others)
    made.close()


def test_products_with_shares_that_were_written_to(session):
    x, y = (privml.share(torch.randn(4, 4), owner=1) for _ in range(2))
    written = [privml.share(torch.randn(4, 4), owner=0) for _ in range(3)]
    written[0].copy_(y)
    written[1].t().sub_(y)
    written[2][1].mul_(y[0])
    for w in written:
        torch.testing.assert_close(privml.reveal(x @ w), privml.reveal(x) @ privml.reveal(w), atol=1e-3, rtol=0)


def test_a_refused_comparison_leaves_the_streams_together():
    made = threepc.create(deadline=20.0)
    x = torch.randint(-(2**20), 2**20, (300,))
    a = made.input(x, x.shape, 1, 32)
    for bits in (1, 65):
        with pytest.raises(ValueError, match="2 to 64 bits"):
            made.less_than_zero(a, bits)
    assert torch.equal(made.reveal_bits(made.less_than_zero(a, 32)), (x < 0).to(torch.uint8))
    made.close()


def test_a_session_that_failed_at_the_dealer_goes_at_once():
    made = threepc.create(deadline=20.0)
    dealer = made.engines[2].party

    def fail():
        raise PeerDisconnected("gone")

    gc.disable()
    try:
        dealer.in_order(fail)
        watch = weakref.ref(dealer)
        dealer._worker.shutdown()
        made.close()
        del made, dealer
        assert watch() is None
    finally:
        gc.enable()


def test_links_that_fail_go_at_once():
    """An error refers to the frames it passed through; if one of them kept the error, sockets would stay open."""
    ends = [_core.memory_pair() for _ in range(2)]
    gc.disable()
    try:
        links = Links(0, {1: ends[0][0], DEALER: ends[1][0]}, None)
        ends[0][1].close()
        with pytest.raises(PeerDisconnected):
            links.round([Message(1, 0, 4)], {})
        watch = weakref.ref(links)
        del links
        assert watch() is None
    finally:
        gc.enable()


def test_half_a_session_is_given_up_though_nobody_else_comes():
    program = privml.convert(torch.nn.Linear(2, 2), calibration=torch.randn(8, 2))
    ports, lines, begun = queue.Queue(), queue.Queue(), threading.Event()

    def watch(event):
        if event.kind == "started":
            begun.set()

    settings = {"log": lines.put, "on_listening": ports.put, "sessions": 1, "capacity": Capacity(hello_seconds=1.0)}
    settings["on_event"] = watch
    thread = threading.Thread(target=services.deal, args=(program, "127.0.0.1:0"), kwargs=settings)
    thread.start()
    port = ports.get(timeout=20)

    def reach(token, rank):
        return reach_dealer(lambda seconds: _core.connect_tcp("127.0.0.1", port, 5.0), token, rank, 5.0)

    alone = reach(b"t" * 32, 1)
    assert lines.get(timeout=20).startswith("dealing on port")
    assert lines.get(timeout=20) == "a session was dropped after 1 seconds: only party [1] connected"
    alone[0].set_deadline(10.0)
    with pytest.raises(PeerDisconnected, match="closed"):
        alone[0].read(1)
    waiting = reach(b"v" * 32, 0) + reach(b"v" * 32, 1)  # a name serves one session at a time
    assert begun.wait(20)
    again = reach(b"v" * 32, 0) + reach(b"v" * 32, 1)
    refused = "a connection was refused: ProtocolError: a session of its name is running"
    assert lines.get(timeout=20).startswith(refused)
    for channel in waiting + again:
        channel.close()
    thread.join(20)  # a whole session, which ends at once, ends the service
    assert not thread.is_alive()
