# SPDX-License-Identifier: Apache-2.0
"""ot=auto: predictions, and the choice that server and client make together."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from services import order, preprocess, query, serve

import privml
from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError, HandshakeMismatch, PrivmlError, ProtocolError
from privml.service.choose_ot import candidates, choice_fields, choice_in, forecasts, reason
from privml.session.preprocessing import StoreHalf
from privml.spec import LOOPBACK_MBPS, LinkProfile, SessionSpec

AUTO = OtChoice("auto")
WAN, LOOPBACK = LinkProfile(40, 100), LinkProfile()


def auto(security="semi_honest", link=LOOPBACK):
    return SessionSpec(ot=OtChoice("auto", security=security), link=link)


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(4)
    net = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).eval()
    return convert(net, torch.randn(1, 4), calibration=torch.randn(64, 4) * 2)


def test_nothing_without_security_is_ever_chosen():
    for security in ("semi_honest", "malicious"):
        named = candidates(auto(security))
        assert OtChoice(security=security) in named
        assert all(ot.provider != "ideal" and ot.decided and ot.security == security for ot in named)
    assert OtChoice("silent") in candidates(auto())
    with pytest.raises(ConfigError, match="none"):
        candidates(auto("none"))


def test_predictions_are_those_of_the_exact_cost(program):
    shapes = ((8, 4),)
    for each in forecasts(program, shapes, auto(link=WAN)):
        cost = program.cost(shapes, SessionSpec(ot=each.ot, link=WAN)).snapshot()
        phases = (cost.setup, cost.preprocess, cost.online)
        messages = sum(p.depth * 0.040 + max(p.sent, p.received) * 8 / 100e6 for p in phases)
        assert each.link == pytest.approx(messages)
        assert each.compute > 0 and each.seconds == each.link + each.compute


def test_slow_links_get_few_bytes_and_fast_ones_little_work(program):
    def per_correlation(link, rows):
        best = forecasts(program, ((rows, 4),), auto(link=link))[0].ot
        return {"silent": 0.1}.get(best.provider, 16 / max(best.k, 1))

    large = 40_000
    assert per_correlation(LinkProfile(40, 10), large) == 0.1, "silent"
    assert per_correlation(LOOPBACK, large) > 1, "SoftSpoken"
    assert per_correlation(WAN, 1) > 1, "one small query does not pay for silent transfers' set-up"
    speeds = [1, 10, 100, 1000, 10_000, LOOPBACK_MBPS]
    bytes_spent = [per_correlation(LinkProfile(1, speed), large) for speed in speeds]
    assert bytes_spent == sorted(bytes_spent), "more bandwidth never buys fewer bytes"


def test_many_queries_share_an_iteration(program):
    link, shapes = LinkProfile(1, 10), ((8, 4),)
    one = {f.ot: f for f in forecasts(program, shapes, auto(link=link))}
    many = {f.ot: f for f in forecasts(program, shapes, auto(link=link), queries=500)}
    softspoken, silent = OtChoice(), OtChoice("silent")
    assert many[softspoken].seconds > 100 * (one[softspoken].seconds - 0.1)
    assert many[softspoken].link / one[softspoken].link > many[silent].link / one[silent].link


def test_the_reason_names_choice_and_link(program):
    ranked = forecasts(program, ((8, 4),), auto(link=WAN))
    assert [f.seconds for f in ranked] == sorted(f.seconds for f in ranked)
    text = reason(ranked, WAN)
    assert "100 Mbit/s, 40 ms" in text and f"{ranked[0].seconds:.2f} s" in text
    assert all(str(each.ot) in text for each in ranked[1:])


def test_a_peer_can_name_candidates_only():
    choice = OtChoice("softspoken", 8)
    assert choice_in(choice_fields(choice, "why"), auto()) == (choice, "why")
    for ot in (["ideal", 0], ["softspoken", 3.5], ["auto", 0], "silent", None, [], ["silent"]):
        with pytest.raises(ProtocolError):
            choice_in({"ot": ot}, auto())
    assert choice_in({"ot": ["silent", 0], "why": "a\x1b[31m\nb" + "x" * 999}, auto())[1].startswith("a[31mb")


def test_links_that_cannot_be():
    for delay, bandwidth in ((-1, 0), (0, -1), (float("nan"), 0), (0, float("inf"))):
        with pytest.raises(ConfigError):
            LinkProfile(delay, bandwidth)


def both(server, client):
    ports = queue.Queue()

    def outcome(call, argument):
        try:
            return call(argument)
        except PrivmlError as error:
            ports.put(None)
            return error

    with ThreadPoolExecutor(2) as executor:
        first = executor.submit(outcome, server, ports.put)
        address = f"127.0.0.1:{ports.get(timeout=60)}"
        return executor.submit(outcome, client, address).result(120), first


def ask(program, rows, server_ot, client_ot, link, **options):
    """(answer or error of the client, what the server answered or logged)"""
    told, value = [], torch.ones(rows, 4)

    def log(text):
        if "without an answer" in text:
            told.append(text)
            raise ProtocolError(text)

    def server(on_listening):
        serve(
            program,
            "127.0.0.1:0",
            ot=server_ot,
            queries=1,
            log=log,
            on_listening=on_listening,
            on_answer=told.append,
            link_profile=link,
            **options.get("server", {}),
        )

    def client(address):
        return query(program, address, value, ot=client_ot, deadline=20.0, **options.get("client", {}))

    got, serving = both(server, client)
    serving.result(120)
    return got, told[0]


@pytest.mark.parametrize("security", ["semi_honest", "malicious"])
@pytest.mark.parametrize("link", [LOOPBACK, LinkProfile(40, 1)], ids=str)
def test_server_chooses_and_the_client_follows(program, link, security):
    choice = OtChoice("auto", security=security)
    got, told = ask(program, 64, choice, choice, link)
    best = forecasts(program, ((64, 4),), auto(security, link))[0].ot
    assert best.security == security
    assert got.source == told.source and f"made by {best} (ot=auto: predicted" in got.source
    real, predicted = got.ledger.snapshot(), program.cost([(64, 4)], SessionSpec(ot=best, link=link)).snapshot()
    for phase in ("setup", "preprocess", "online"):
        mine, theirs = getattr(real, phase), getattr(predicted, phase)
        assert (mine.sent, mine.received, mine.depth) == (theirs.sent, theirs.received, theirs.depth), phase


def test_both_must_leave_the_choice(program):
    got, told = ask(program, 2, AUTO, OtChoice(), WAN)
    assert isinstance(got, HandshakeMismatch) and "ot is 'softspoken' here and 'auto'" in str(got)
    assert "HandshakeMismatch" in told


def test_stores_too(program, tmp_path):
    def half(rank):
        key = tmp_path / f"key{rank}"
        return order(program, tmp_path / str(rank), 2, 2, key, ot=AUTO, link_profile=LinkProfile(1, 1))

    made, serving = both(
        lambda told: preprocess(half(0), listen="127.0.0.1:0", on_listening=told),
        lambda address: preprocess(half(1), server=address, deadline=20.0),
    )
    best = forecasts(program, ((2, 4),), auto(link=LinkProfile(1, 1)), queries=2)[0].ot
    assert serving.result(60).ot == made.ot == best
    halves = [StoreHalf(tmp_path / str(r), r, program.hash, tmp_path / f"key{r}") for r in (0, 1)]
    with halves[0], halves[1]:
        options = {name: {"preprocessing": half} for name, half in zip(("server", "client"), halves, strict=True)}
        got, told = ask(program, 2, AUTO, AUTO, WAN, **options)
        assert got.source.startswith("from store") and got.ledger.snapshot().preprocess.bytes == 0


def test_elsewhere_there_is_nothing_to_choose_for():
    with pytest.raises(ConfigError):
        privml.local("twopc", ot="auto")
