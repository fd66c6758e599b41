# SPDX-License-Identifier: Apache-2.0
"""Which engine, numbers and transfers to choose for a model, a link and a threat."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch

from privml.conversion import convert
from privml.engines.correlations import OtChoice
from privml.engines.interface import MALICIOUS, Backend, backends
from privml.errors import ConfigError, InvalidInput, OverflowDetected, PrivmlError
from privml.measure.answers import labels, plain_outputs
from privml.measure.calibration import Calibration, prefix
from privml.measure.calls import Call
from privml.measure.predict import Times, calls_of, cost_of, demand_of, times_of
from privml.measure.reference import calibrate, calibrate_planning
from privml.program import INPUT_OWNER, Program
from privml.session.ledger import Snapshot
from privml.spec import LinkProfile, SessionSpec

# What counts as a high risk: part of the sample inputs whose label changes, error as a part of the largest output.
MOST_FLIPS, MOST_ERROR = 0.02, 0.05
PROVIDERS = (OtChoice(k=2), OtChoice(k=4), OtChoice(k=8), OtChoice("silent"))


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for. ``parties`` None: any number."""

    threat: str
    parties: int | None
    link: LinkProfile
    batch: int = 1
    threads: int = 1
    truncation: str = "auto"


@dataclass(frozen=True, slots=True)
class Risk:
    """What the formats cost in accuracy, on ``samples`` inputs: the largest error as a part of the largest output, and
    the part of changed labels (None: not known). ``overflow``: the place at which a value left its range, if one did.
    ``measured``: by the plain engine; else told by the conversion, of its calibration data."""

    error: float
    flips: float | None
    samples: int
    overflow: str = ""
    measured: bool = True

    @property
    def high(self) -> bool:
        return bool(self.overflow) or (self.error > MOST_ERROR if self.flips is None else self.flips > MOST_FLIPS)

    def __str__(self) -> str:
        if self.overflow:
            return f"out of range: {self.overflow}"
        flips = "" if self.flips is None else f", {self.flips:.1%} labels change"
        return f"{self.error:.2%}{flips}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to run the model; ``times`` is None if nothing was measured on this machine."""

    numerics: str
    spec: SessionSpec
    cost: Snapshot
    risk: Risk
    times: Times | None

    @property
    def backend(self) -> Backend:
        return self.spec.backend

    @property
    def engine(self) -> str:
        return self.backend.name

    @property
    def seconds(self) -> float:
        """Of a query, or at least of its messages."""
        return float("nan") if self.times is None else self.times.seconds


@dataclass(slots=True)
class Advice:
    """Choices, the best one first, and what was left out with the reason: (engine, numerics, why)."""

    choices: list[Choice] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)

    def best(self) -> list[Choice]:
        """Of each engine and format the best transfers alone."""
        found: dict[tuple[str, str], Choice] = {}
        for choice in self.choices:
            found.setdefault((choice.engine, choice.numerics), choice)
        return list(found.values())


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to advise on. ``inputs``: samples for the risk, with the clear model's ``expected`` outputs if known."""

    model: Any
    calibration: torch.Tensor
    inputs: torch.Tensor | None
    expected: torch.Tensor | None


Step = Callable[[int, int, str], None]


def advise(
    subject: Subject,
    wish: Wish,
    numerics: Mapping[str, Mapping[str, Any]],
    calibration: Calibration | None,
    step: Step = lambda done, total, label: None,
) -> Advice:
    """``numerics``: settings of the number formats, by name. ``calibration``: what is known of this machine, which is
    completed; None: no times, the choices are ranked by their bytes."""
    advice, found = Advice(), []
    engines = [each for each in backends() if each.remote and _fits(each, wish, advice)]
    for index, (name, settings) in enumerate(numerics.items()):
        step(index, len(numerics) + 1, name)
        try:
            program = _converted(subject, settings)
        except PrivmlError as error:
            advice.refused += [(each.name, name, _told(error)) for each in engines]
            continue
        for each in engines:
            try:
                found += _ways(program, each, name, wish, risk_of(program, subject, each))
            except (ConfigError, ValueError) as error:
                advice.refused.append((each.name, name, _told(error)))
    step(len(numerics), len(numerics) + 1, "times on this machine")
    if calibration is not None:
        _complete(calibration, found)
    advice.choices = [_timed(way, calibration) for way in found]
    advice.choices.sort(key=_rank)
    step(len(numerics) + 1, len(numerics) + 1, "done")
    return advice


def _rank(choice: Choice) -> tuple[bool, bool, float, int]:
    timed = choice.times is not None
    return choice.risk.high, not timed, choice.seconds if timed else 0.0, choice.cost.total.bytes


def _fits(backend: Backend, wish: Wish, advice: Advice) -> bool:
    why = ""
    if wish.threat == MALICIOUS and not backend.actively_secure:
        why = "withstands parties that follow the protocol, not malicious ones"
    elif wish.parties not in (None, backend.parties):
        why = f"has {backend.parties} parties"
    if why:
        advice.refused.append((backend.name, "all", why))
    return not why


def _converted(subject: Subject, settings: Mapping[str, Any]) -> Program:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the risk says as much
        return convert(subject.model, calibration=subject.calibration, numerics=settings)


def _told(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


# ---- accuracy
def risk_of(program: Program, subject: Subject, backend: Backend) -> Risk:
    """Measured on the sample inputs, as that engine rounds."""
    told = Risk(program.choice.error, None, len(subject.calibration), measured=False)
    if subject.inputs is None or subject.expected is None:
        return told
    try:
        with torch.no_grad():
            found = plain_outputs(program, subject.inputs, like=backend.name)[0]
    except (OverflowDetected, InvalidInput) as error:  # of a value within, or of an input
        return Risk(float("inf"), None, len(subject.inputs), overflow=_told(error))
    expected = subject.expected
    if found.shape != expected.shape:
        return told
    found, clear = found.to(torch.float64), expected.to(torch.float64)
    error = (found - clear).abs().max().item() / max(clear.abs().max().item(), 1e-30)
    flips = (labels([found.to(expected.dtype)]) != labels([expected])).float().mean().item()
    return Risk(error, flips, len(expected))


# ---- cost and time
@dataclass(frozen=True, slots=True)
class _Way:
    numerics: str
    program: Program
    shapes: tuple[tuple[int, ...], ...]
    spec: SessionSpec
    cost: Snapshot
    calls: list[Call]
    risk: Risk


def _ways(program: Program, backend: Backend, name: str, wish: Wish, risk: Risk) -> list[_Way]:
    """One per provider of transfers, if there is a choice."""
    shapes, made = program.shapes(wish.batch), []
    for ot in PROVIDERS if backend.transfers else PROVIDERS[:1]:
        spec = spec_of(backend, wish, ot)
        cost = cost_of(program, shapes, spec, INPUT_OWNER).snapshot()
        calls = made[0].calls if made else calls_of(program, shapes, spec)
        made.append(_Way(name, program, shapes, spec, cost, calls, risk))
    return made


def spec_of(backend: Backend, wish: Wish, ot: OtChoice) -> SessionSpec:
    """What of the wish concerns the engine."""
    known = {field.name for field in fields(backend.Config)}
    own = backend.config(**({"truncation": wish.truncation} if "truncation" in known else {}))
    security = backend.security or ot.security
    threads = wish.threads if backend.lanes else 1
    return SessionSpec(own, replace(ot, security=security), threads=threads, link=wish.link)


def _complete(calibration: Calibration, ways: Sequence[_Way]) -> None:
    """All calls of an engine together, once; then what is each one's own."""
    for spec in {way.spec: None for way in ways}:
        calls = [call for way in ways if prefix(way.spec) == prefix(spec) for call in way.calls]
        calibrate(calibration, spec, calls)
    for way in ways:
        calibrate(calibration, way.spec, (), demand_of(way.program, way.shapes, way.spec))
        calibrate_planning(calibration, way.spec, way.program, way.shapes)


def _timed(way: _Way, calibration: Calibration | None) -> Choice:
    times = None if calibration is None else times_of(way.program, way.shapes, way.spec, calibration)
    return Choice(way.numerics, way.spec, way.cost, way.risk, times)
