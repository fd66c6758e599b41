# SPDX-License-Identifier: Apache-2.0
"""``privml advise``: what it ranks, what it leaves out and why."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

import pytest
import torch
from commands import run as privml

from privml.conversion import convert
from privml.engines.interface import MALICIOUS, SEMI_HONEST, backend, backends
from privml.measure import advise as advice
from privml.measure.advise import Hooks, Subject, Timer, Wish, advise, risk_of
from privml.measure.calibration import Calibration
from privml.measure.predict import times_of
from privml.spec import LinkProfile

OFFERS = {each.name: each for each in backends() if each.remote}
NUMERICS = {"fixed32": {"bits": 32}, "float32": {"floating": "float32"}}


class Known(dict):
    """Every call takes a millisecond, and a query's other parts do too."""

    def __missing__(self, name: str) -> float:
        return 1e-3

    def __contains__(self, name: object) -> bool:
        return True


@pytest.fixture(scope="module")
def subject() -> Subject:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3)).eval()
    inputs = torch.rand(16, 6)
    return Subject(module, torch.rand(32, 6), inputs, module(inputs).detach())


@pytest.fixture
def known(tmp_path: Path) -> Timer:
    return partial(times_of, calibration=Calibration(tmp_path / "known.json", Known()))


def test_choices_are_ranked_by_predicted_time(subject: Subject, known: Timer) -> None:
    found = advise(subject, Wish(SEMI_HONEST, None, LinkProfile(40, 100)), NUMERICS, known)
    timed = found.choices
    assert all(choice.times is not None for choice in timed)
    seconds = [choice.seconds for choice in timed]
    assert seconds == sorted(seconds)
    formats = {name: 2 if offer.floats else 1 for name, offer in OFFERS.items()}
    ways = {name: len(advice.PROVIDERS) if offer.transfers else 1 for name, offer in OFFERS.items()}
    assert len(seconds) == sum(formats[name] * ways[name] for name in OFFERS)
    best = found.choices[0]
    assert best.engine == "threepc" and best.numerics == "fixed32"  # the fewest messages in sequence
    without_floats = {(name, "float32") for name, offer in OFFERS.items() if not offer.floats}
    assert {(engine, name) for engine, name, _ in found.refused} == without_floats
    assert all("floating point" in why for _, _, why in found.refused)
    shown = found.best()
    assert shown[0] is best and len({(choice.engine, choice.numerics) for choice in shown}) == len(shown) < len(timed)
    for choice in found.choices:
        assert choice.cost.online.bytes > 0 and choice.cost.online.depth > 0 and not choice.risk.high


def test_choices_are_told_as_they_come(subject: Subject, known: Timer) -> None:
    """Each is known before the next engine is looked at."""
    heard: list[str] = []
    hooks = Hooks(
        lambda done, total, label: heard.append(label), lambda choice: heard.append(str(choice.times is not None))
    )
    found = advise(subject, Wish(SEMI_HONEST, None, LinkProfile()), {"fixed32": {"bits": 32}}, known, hooks)
    engines = [f"{name} with fixed32" for name in OFFERS]
    assert heard == ["convert to fixed32", *(each for name in engines for each in (name, "True")), "done"]
    assert len(found.best()) == len(OFFERS)


def test_a_malicious_threat_leaves_only_what_withstands_it(
    subject: Subject, known: Timer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wish = Wish(MALICIOUS, None, LinkProfile())
    semi_honest = {name: offer for name, offer in OFFERS.items() if offer.threat == SEMI_HONEST}
    found = advise(subject, wish, NUMERICS, known)
    assert {choice.engine for choice in found.choices} == {"active"}
    assert all(choice.spec.ot.security == "malicious" for choice in found.choices)
    assert {engine for engine, name, _ in found.refused if name == "all"} == set(semi_honest)
    monkeypatch.setattr(type(OFFERS["twopc"]), "threat", MALICIOUS)
    assert {choice.engine for choice in advise(subject, wish, NUMERICS, known).choices} >= {"twopc"}


def test_the_number_of_parties_is_kept(subject: Subject, known: Timer) -> None:
    found = advise(subject, Wish(SEMI_HONEST, 3, LinkProfile()), {"fixed32": {"bits": 32}}, known)
    assert {choice.engine for choice in found.choices} == {"threepc"}
    assert ("twopc", "all", "has 2 parties") in found.refused


def test_without_times_bytes_rank(subject: Subject) -> None:
    found = advise(subject, Wish(SEMI_HONEST, 2, LinkProfile()), {"fixed32": {"bits": 32}}, None)
    totals = [choice.cost.total.bytes for choice in found.choices]
    assert totals == sorted(totals) and all(choice.times is None for choice in found.choices)


def test_a_format_that_changes_labels_comes_last(subject: Subject, known: Timer) -> None:
    numerics = {"coarse": {"bits": 16, "scale": 2, "weight_bits": 4, "accept": 9.0}, "fixed32": {"bits": 32}}
    found = advise(subject, Wish(SEMI_HONEST, 2, LinkProfile()), numerics, known)
    assert [choice.risk.high for choice in found.choices] == sorted(choice.risk.high for choice in found.choices)
    assert found.choices[-1].numerics == "coarse" and found.choices[-1].risk.high


def test_the_risk_is_measured_where_there_are_samples(subject: Subject) -> None:
    program = convert(subject.model, calibration=subject.calibration, numerics={"bits": 32})
    risk = risk_of(program, subject, backend("twopc"))
    assert risk.measured and risk.samples == 16 and risk.flips is not None and 0 < risk.error < 0.05
    blind = risk_of(program, dataclasses.replace(subject, inputs=None, expected=None), backend("twopc"))
    assert not blind.measured and blind.error == program.choice.error and blind.flips is None
    far = risk_of(program, dataclasses.replace(subject, inputs=1e6 * subject.inputs), backend("twopc"))
    assert far.high and "out of range" in str(far)


def test_the_command_prints_choices_and_reasons(tmp_path: Path) -> None:
    done = privml("advise", "model=mlp", "link=lan", "calibrate=none", "~formats.bfloat16", "count=8", cwd=tmp_path)
    told, table = done.stdout.split("the best choice first")
    assert "twopc | fixed32 | " in told and "twopc" in table  # rows at once, and in the end the ranks
    assert "twopc assumes: both parties follow the protocol" in done.stdout
    assert "no two of them work together" in done.stdout
    assert "not threepc with numerics float32" in done.stdout and "mixed" in done.stdout
    assert "no times without figures or measurements (calibrate=quick or missing)" in done.stdout
    done = privml("advise", "model=mlp", "threat=rude", cwd=tmp_path, check=False)
    assert done.returncode == 2 and "semi_honest, malicious" in done.stderr
