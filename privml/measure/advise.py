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
from privml.measure.answers import Reader, agreeing, labels, plain_outputs
from privml.measure.predict import Times, cost_of
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
    ``measured``: by the plain engine; else by the conversion, of its calibration data."""

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
    """One way to run the model; ``times`` is None if they cannot be predicted."""

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
    """A model to advise on. ``inputs``: samples for the risk, with the clear model's ``expected`` outputs if known.
    ``read``: labels of outputs."""

    model: Any
    calibration: torch.Tensor
    inputs: torch.Tensor | None
    expected: torch.Tensor | None
    read: Reader = labels


Step = Callable[[int, int, str], None]
# The seconds of a query, None if they cannot be predicted.
Timer = Callable[[Program, Sequence[Sequence[int]], SessionSpec], Times | None]


@dataclass(frozen=True, slots=True)
class Hooks:
    """``step``: gets (done, total, what is next). ``on_choice``: gets the best choice of each engine and format as
    soon as it is known."""

    step: Step = lambda done, total, label: None
    on_choice: Callable[[Choice], None] = lambda choice: None


def advise(
    subject: Subject,
    wish: Wish,
    numerics: Mapping[str, Mapping[str, Any]],
    timer: Timer | None,
    hooks: Hooks = Hooks(),
) -> Advice:
    """``numerics``: settings of the number formats, by name. ``timer``: predicts seconds; None: no times. Choices
    without times come behind those with, ranked by their bytes."""
    advice = Advice()
    engines = [each for each in backends() if each.remote and _fits(each, wish, advice)]
    total = len(numerics) * (len(engines) + 1)
    for index, (name, settings) in enumerate(numerics.items()):
        first = index * (len(engines) + 1)
        hooks.step(first, total, f"convert to {name}")
        try:
            program = _converted(subject, settings)
        except PrivmlError as error:
            advice.refused += [(each.name, name, _reason(error)) for each in engines]
            continue
        for place, each in enumerate(engines):
            hooks.step(first + 1 + place, total, f"{each.name} with {name}")
            try:
                ways = _ways(program, each, name, wish, risk_of(program, subject, each))
                ways = [_timed(way, program, wish, timer) for way in ways]
                advice.choices += ways
                hooks.on_choice(min(ways, key=_rank))
            except (ConfigError, ValueError) as error:
                advice.refused.append((each.name, name, _reason(error)))
    advice.choices.sort(key=_rank)
    hooks.step(total, total, "done")
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


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


# ---- accuracy
def risk_of(program: Program, subject: Subject, backend: Backend) -> Risk:
    """Measured on the sample inputs, as that engine rounds."""
    judged = Risk(program.choice.error, None, len(subject.calibration), measured=False)
    if subject.inputs is None or subject.expected is None:
        return judged
    try:
        with torch.no_grad():
            found = plain_outputs(program, subject.inputs, like=backend.name)[0]
    except (OverflowDetected, InvalidInput) as error:  # of a value within, or of an input
        return Risk(float("inf"), None, len(subject.inputs), overflow=_reason(error))
    expected = subject.expected
    if found.shape != expected.shape:
        return judged
    found, clear = found.to(torch.float64), expected.to(torch.float64)
    error = (found - clear).abs().max().item() / max(clear.abs().max().item(), 1e-30)
    same = agreeing(subject.read([found.to(expected.dtype)]), subject.read([expected]))
    flips = 1 - same.float().mean().item()
    return Risk(error, flips, len(same))


# ---- cost and time
def _ways(program: Program, backend: Backend, name: str, wish: Wish, risk: Risk) -> list[Choice]:
    """One per provider of transfers, if there is a choice; all are counted before any is timed."""
    specs = [spec_of(backend, wish, ot) for ot in (PROVIDERS if backend.transfers else PROVIDERS[:1])]
    shapes = program.shapes(wish.batch)
    costs = [cost_of(program, shapes, spec, INPUT_OWNER).snapshot() for spec in specs]
    return [Choice(name, spec, cost, risk, None) for spec, cost in zip(specs, costs, strict=True)]


def _timed(choice: Choice, program: Program, wish: Wish, timer: Timer | None) -> Choice:
    return choice if timer is None else replace(choice, times=timer(program, program.shapes(wish.batch), choice.spec))


def spec_of(backend: Backend, wish: Wish, ot: OtChoice) -> SessionSpec:
    """What of the wish concerns the engine."""
    known = {field.name for field in fields(backend.Config)}
    own = backend.config(**({"truncation": wish.truncation} if "truncation" in known else {}))
    security = backend.security or ot.security
    threads = wish.threads if backend.lanes else 1
    return SessionSpec(own, replace(ot, security=security), threads=threads, link=wish.link)
