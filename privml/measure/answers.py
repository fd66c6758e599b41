# SPDX-License-Identifier: Apache-2.0
"""A model's outputs in the clear and in secret, and their difference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import torch

import privml
from privml.errors import ConfigError
from privml.formats import FixedPoint, Float
from privml.measure.records import Answers, Errors
from privml.program import Program
from privml.spec import SessionSpec

Outputs = tuple[torch.Tensor, ...]
Answer = Callable[[torch.Tensor], torch.Tensor]
Reader = Callable[[Sequence[torch.Tensor]], torch.Tensor]


def clear_outputs(module: torch.nn.Module | str, inputs: torch.Tensor) -> Outputs:
    """What the model computes in floating point; an ONNX file needs the package onnxruntime."""
    if isinstance(module, torch.nn.Module):
        with torch.no_grad():
            result = module(inputs)
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)
    try:
        import onnxruntime
    except ImportError:
        raise ConfigError("the clear answers of an ONNX model need onnxruntime: pip install 'privml[onnx]'") from None
    session = onnxruntime.InferenceSession(module, providers=["CPUExecutionProvider"])
    results = session.run(None, {session.get_inputs()[0].name: inputs.numpy()})
    return tuple(torch.as_tensor(result) for result in results)


def plain_outputs(program: Program, inputs: torch.Tensor, **settings: Any) -> Outputs:
    """The same in the program's formats, on the plain engine; OverflowDetected if a value is beyond them."""
    formats = {name: getattr(program.numerics, name) for name in ("bits", "scale", "exp", "floating", "dot")}
    with privml.local("plain", **formats, **settings) as session:
        outputs = program.run(session, inputs)
        return tuple(privml.reveal(x) for x in (outputs if isinstance(outputs, tuple) else (outputs,)))


def local_settings(spec: SessionSpec) -> dict[str, Any]:
    """The same session with all parties in this process, as ``privml.local`` takes it beside formats."""
    chosen, found = spec.backend, asdict(spec.engine)
    if chosen.remote:
        found.update(spec.shape, deadline=spec.deadline)
    if chosen.lanes:
        found["threads"] = spec.threads
    if chosen.transfers:
        found.update(ot=spec.ot.provider, k=spec.ot.k or 4, security=spec.ot.security)
    return found


def by_row(outputs: Sequence[torch.Tensor], dimension: int) -> Outputs:
    """The outputs with their rows, which lie along ``dimension``, in the first one."""
    return tuple(output.movedim(dimension, 0) for output in outputs)


def reader(dimension: int, answer: Answer | None) -> Reader:
    """Labels of a model's outputs whose rows lie along ``dimension``; ``answer`` as in ``labels``."""
    return lambda outputs: labels(by_row(outputs, dimension), answer)


def labels(outputs: Sequence[torch.Tensor], answer: Answer | None = None) -> torch.Tensor:
    """int64 [n] of the first output: labels as they are, the largest of several scores, the sign of a single one about
    one half. ``answer`` says otherwise, perhaps with several labels [n, k] of a row."""
    first = outputs[0]
    if answer is not None:
        return answer(first)
    if not first.dtype.is_floating_point:
        return first.reshape(len(first)).to(torch.int64)
    first = first.reshape(len(first), -1)
    return first.argmax(1) if first.shape[1] > 1 else (first[:, 0] > 0.5).to(torch.int64)


def compared(
    found: Sequence[torch.Tensor], clear: Sequence[torch.Tensor], truth: torch.Tensor, answer: Answer | None = None
) -> Answers:
    """Of the rows of ``found``; ``clear`` and ``truth`` may have more. ``answer`` as in ``labels``."""
    answers, expected = labels(found, answer), labels(clear, answer)
    expected, truth = expected[: len(answers)], truth[: len(answers)]
    right, clear_right, same = (
        int(agreeing(a, b).sum()) for a, b in ((answers, truth), (expected, truth), (answers, expected))
    )
    return Answers(len(answers), right, clear_right, same)


def agreeing(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """bool [n]: which rows have the same labels, all of them."""
    return (a == b).reshape(len(a), -1).all(1)


def errors(program: Program, found: Outputs, clear: Outputs) -> Errors | None:
    """Of the first output of real numbers; None if all are labels."""
    place = next((i for i, spec in enumerate(program.outputs) if isinstance(spec.format, (FixedPoint, Float))), None)
    if place is None:
        return None
    expected = clear[place][: len(found[place])].to(torch.float64)
    distance = (found[place].to(torch.float64).reshape(expected.shape) - expected).abs().flatten()
    reach = float(expected.abs().max())
    counts = Counter(math.frexp(value)[1] - (math.frexp(value)[0] == 0.5) for value in distance.tolist() if value)
    tolerance = 0.0 if program.choice is None or program.numerics.floating else program.choice.precision.tolerance
    return Errors(
        counts={str(exponent): counts[exponent] for exponent in sorted(counts)},
        exact=int((distance == 0).sum()),
        largest=float(distance.max()),
        median=float(distance.median()),
        unit=unit(program.outputs[place].format, reach),
        reach=reach,
        allowed=tolerance * reach,
    )


def unit(number_format: FixedPoint | Float, reach: float) -> float:
    """The unit of the last place, for floats that of a number as large as ``reach``."""
    if isinstance(number_format, FixedPoint):
        return 2.0**-number_format.scale
    return 2.0 ** (math.frexp(reach)[1] - 1 - number_format.mantissa)


def differing(found: Outputs, plain: Outputs) -> int:
    """How many outputs are not those of the plain engine."""
    return sum(int((a != b).sum()) for a, b in zip(found, plain, strict=True))
