# SPDX-License-Identifier: Apache-2.0
"""Parties in network namespaces of their own, with packets lost and late between them."""

from __future__ import annotations

import numpy as np
import pytest
from fault_parties import Spawner, assert_clean_error
from fault_scenarios import Network
from fault_service import GONE_UNDER_TLS
from lossy_link import ADDRESSES, LossyLink, missing, netem_missing

needs_namespaces = pytest.mark.skipif(missing() is not None, reason=str(missing()))


class Pair:
    """A server and clients at both ends of a lossy link, under TLS as everywhere beyond one machine."""

    def __init__(self, spawner: Spawner, link: LossyLink, folder, network: Network, certificates, deadline) -> None:
        self._spawner, self._link, self._folder, self._certificates = spawner, link, folder, certificates
        self._network, program = network, network.folder / "twopc"
        self._common = [f"program={program}/program", f"deadline={deadline}"]
        np.save(folder / "input.npy", network.value)
        words = ["serve", *self._common, f"weights={program}/weights.safetensors", f"listen={ADDRESSES[0]}:0"]
        self.server = spawner.start([*words, *certificates["server"]], folder, namespace=link.namespaces[0])
        self._address = f"{ADDRESSES[0]}:{self.server.port().split(':')[1]}"
        self._count = 0

    def ask(self):
        self._count += 1
        words = ["query", *self._common, f"server={self._address}", "input=input.npy", f"out=out-{self._count}.npy"]
        return self._spawner.start(
            [*words, *self._certificates["client"]], self._folder, namespace=self._link.namespaces[1]
        )

    def assert_answers(self):
        client = self.ask()
        assert client.wait(240) == 0, client.errors[-3000:]
        found = np.load(self._folder / f"out-{self._count}.npy")
        assert np.abs(found - self._network.expected).max() < self._network.tolerance


@pytest.fixture
def pair(spawner, certificates, tmp_path):
    made = []

    def pair(link, network, deadline=60.0):
        made.append(Pair(spawner, link, tmp_path, network, certificates, deadline))
        return made[-1]

    yield pair
    for each in made:
        each.server.end()


@needs_namespaces
def test_packets_are_lost_for_a_while_and_then_all(pair, small):
    with LossyLink(0.01) as link:
        both = pair(link, small, deadline=3.0)
        both.assert_answers()
        held = both.server.holds()
        link.change(1.0)
        client = both.ask()
        assert client.wait() == 1
        assert_clean_error(client, *GONE_UNDER_TLS)
        both.server.assert_holds(held)
        link.change(0.0)
        both.assert_answers()


@needs_namespaces
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("loss", "jitter_ms"), [(0.01, 0.0), (0.1, 0.0), (0.0, 200.0), (0.01, 200.0)],
    ids=["1 % lost", "10 % lost", "200 ms of jitter", "1 % lost and 200 ms of jitter"],
)  # fmt: skip
def test_lenet_over_a_lossy_network(pair, lenet, loss, jitter_ms):
    with LossyLink(loss, jitter_ms) as link:
        both = pair(link, lenet)
        for _ in range(3):
            both.assert_answers()


@pytest.mark.skipif(netem_missing() is not None, reason=str(netem_missing()))
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("loss", "jitter_ms"), [(0.01, 0.0), (0.1, 0.0), (0.0, 200.0)])
def test_lenet_over_a_lossy_network_of_the_kernel(pair, lenet, loss, jitter_ms):
    with LossyLink(loss, jitter_ms, netem=True) as link:
        pair(link, lenet).assert_answers()


@needs_namespaces
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_network_that_falls_silent_in_the_middle(pair, lenet):
    """No packet gets through any more, not even the end of a connection: both sides notice by their deadlines."""
    with LossyLink(0.0) as link:
        both = pair(link, lenet, deadline=4.0)
        both.assert_answers()
        both.server.mark()
        held = both.server.holds()
        client = both.ask()
        while "query: 3/" not in client.errors:
            assert client.status is None
        link.change(1.0)
        assert client.wait() == 1
        assert_clean_error(client, *GONE_UNDER_TLS)
        both.server.line("a connection ended without an answer: PeerDisconnected")
        both.server.assert_holds(held)
        link.change(0.0)
        both.assert_answers()
