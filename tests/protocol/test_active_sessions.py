# SPDX-License-Identifier: Apache-2.0
"""Actively secure sessions between two ends of a socket: what must agree, what is refused, queries."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from ports import reserved
from services import query, serve

import privml
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError, HandshakeMismatch, ProtocolError, SecurityAbort
from privml.measure.predict import cost_of
from privml.service.choose_ot import choice_in, forecasts
from privml.spec import LinkProfile, SessionSpec

IDEAL = OtChoice("ideal")


@pytest.fixture
def address():
    with reserved(1) as (address,):
        yield address


def run(address, first, second):
    def party(rank, settings):
        side = {"listen": address} if rank == 0 else {"connect": address}
        spec = privml.SessionSpec.of("active", deadline=20.0, **{"ot": "ideal", **settings})
        with privml.connect(rank, spec, **side) as session:
            x = privml.share(torch.tensor([1.5, -2.0, 3.0]) if rank == 1 else None, owner=1, shape=(3,))
            w = privml.share(torch.tensor([2.0, 5.0, -1.0]) if rank == 0 else None, owner=0, shape=(3,))
            return privml.reveal(torch.relu(x * w), to=1), session

    with ThreadPoolExecutor(2) as executor:
        return [executor.submit(party, rank, settings) for rank, settings in enumerate((first, second))]


@pytest.mark.parametrize("settings", [{}, {"ring": 32, "numerics": privml.Numerics(bits=32, scale=8)}])
def test_both_parties_run_one_program(address, settings):
    server, client = (f.result() for f in run(address, settings, settings))
    assert server[0] is None and client[0].tolist() == [3.0, 0.0, 0.0]
    ours, theirs = (s.ledger.snapshot() for s in (server[1], client[1]))
    assert ours.online.sent == theirs.online.received > 0


@pytest.mark.parametrize(("other", "named"), [
    ({"ring": 32, "numerics": privml.Numerics(bits=32, scale=16)}, "numerics"), ({"truncation": "exact"}, "truncation"),
])  # fmt: skip
def test_settings_must_agree(address, other, named):
    for future in run(address, {}, other):
        with pytest.raises(HandshakeMismatch, match=f"{named} is "):
            future.result()


def test_rings_must_agree(address):
    numerics = privml.Numerics(bits=32, scale=8)
    for future in run(address, {"numerics": numerics}, {"ring": 32, "numerics": numerics}):
        with pytest.raises(HandshakeMismatch, match=r"ring is (64|32) here and (64|32) at the peer"):
            future.result()


@pytest.mark.parametrize(("settings", "why"), [
    ({"ring": 16}, "ring"), ({"ring": 32, "numerics": privml.Numerics()}, "do not fit"), ({"threads": 2}, "one lane"),
    ({"ot": "ideal"}, "loopback"), ({"refill": "background"}, "one lane"),
])  # fmt: skip
def test_settings_that_are_refused(settings, why):
    with pytest.raises(ConfigError, match=why):
        privml.connect(0, privml.SessionSpec.of("active", **settings), listen="0.0.0.0:0")


def test_a_failed_proof_ends_the_session_as_a_failed_check_does(address):
    def party(rank, side):
        with privml.connect(rank, privml.SessionSpec.of("active", ot="ideal", deadline=20.0), **side) as session:
            engine = session.engine
            engine.assert_zero(engine.public(torch.zeros(3, dtype=torch.int64), 64), 64)
            for _ in range(2):
                with pytest.raises(SecurityAbort, match="had to prove"):
                    engine.assert_zero(engine.public(torch.tensor([0, 1, 0]), 64), 64)
            with pytest.raises(SecurityAbort, match="had to prove"):
                engine.reveal(engine.public(torch.tensor([1]), 64), 64)

    with ThreadPoolExecutor(2) as executor:
        for future in [executor.submit(party, 0, {"listen": address}), executor.submit(party, 1, {"connect": address})]:
            future.result(60)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 6), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    module = Model().eval()
    return module, privml.convert(module, calibration=torch.randn(20, 4), numerics={"bits": 64, "narrow": False})


def auto(link):
    return SessionSpec("active", OtChoice("auto", security="malicious"), link=link)


def test_the_plan_of_a_query_makes_everything_ahead(model):
    _, program = model
    ot = OtChoice(security="malicious")
    planned = cost_of(program, [(2, 4)], SessionSpec("active", ot), 1).snapshot()
    assert planned == program.cost([(2, 4)], SessionSpec("active", ot)).snapshot() and planned.preprocess.sent > 100_000


def test_transfers_are_chosen_by_their_predicted_cost(model):
    _, program = model
    link = LinkProfile(40, 10)
    for each in forecasts(program, ((2, 4),), auto(link)):
        cost = program.cost([(2, 4)], SessionSpec("active", each.ot)).snapshot()
        assert each.link == pytest.approx(sum(map(link.seconds, (cost.setup, cost.preprocess, cost.online))))
        assert each.ot.security == "malicious" and each.ot.decided
    best = [forecasts(program, ((1, 4),), auto(each))[0].ot.provider for each in (LinkProfile(), link)]
    assert best == ["softspoken", "silent"]
    assert choice_in({"ot": ["silent", 0]}, auto(link))[0] == OtChoice("silent", 0, "malicious")
    with pytest.raises(ProtocolError):
        choice_in({"ot": ["ideal", 0]}, auto(link))


@pytest.mark.parametrize("ot", [IDEAL, OtChoice(), OtChoice("auto")], ids=str)
def test_a_query_is_answered_at_the_predicted_cost(model, ot):
    module, program = model
    x = torch.randn(2, 4)
    ports, listening = [], threading.Event()

    def on_listening(port):
        ports.append(port)
        listening.set()

    served = []
    server = threading.Thread(
        target=serve, args=(program, "127.0.0.1:0"),
        kwargs={"ot": ot, "ring": 64, "queries": 1, "log": lambda text: None, "on_listening": on_listening,
                "on_answer": served.append},
    )  # fmt: skip
    server.start()
    assert listening.wait(20)
    answer = query(program, f"127.0.0.1:{ports[0]}", x, ot=ot, ring=64)
    server.join(20)
    assert (answer.outputs[0] - module(x)).abs().max() < 1e-2 and "(malicious)" in served[0].source
    choice = OtChoice(ot.provider, ot.k, "malicious")
    if not ot.decided:
        choice = forecasts(program, ((2, 4),), auto(LinkProfile()))[0].ot
        assert served[0].source == answer.source and "ot=auto: predicted" in answer.source
    predicted = program.cost([(2, 4)], SessionSpec("active", choice)).snapshot()
    measured = answer.ledger.snapshot()
    for phase in ("setup", "preprocess", "online"):
        one, other = getattr(measured, phase), getattr(predicted, phase)
        assert (one.sent, one.received, one.depth) == (other.sent, other.received, other.depth)
    assert (measured.cots_as_sender, measured.cots_as_receiver) == (
        predicted.cots_as_sender,
        predicted.cots_as_receiver,
    )
    with privml.local("active", ot="ideal", bits=64, scale=program.numerics.scale) as session:
        program.run(session, x)
        assert (
            session.engine.engines[0].drawn()["triples"]
            == program.demand([(2, 4)], SessionSpec("active"))["triples"]
            > 0
        )
