# SPDX-License-Identifier: Apache-2.0
"""What type checkers know of the public API; `make lint` checks this file, nothing runs it."""

from typing import Any, assert_type

import torch

import privml
from privml import _core
from privml.formats import FixedPoint


def inference(module: torch.nn.Module, x: torch.Tensor) -> None:
    program = privml.convert(module, calibration=x)
    assert_type(program, privml.Program)
    with privml.local(program, engine="twopc") as session:
        assert_type(session, privml.Session)
        assert_type(program(x), Any)
    assert_type(program.inputs[0].shape, tuple[int | None, ...])
    assert_type(program.cost([(1, 4)]).snapshot().total.bytes, int)


def tensors(x: torch.Tensor) -> None:
    secret = privml.share(x, owner=1)
    assert_type(secret, privml.SecretTensor)
    assert_type(secret.format, FixedPoint | privml.formats.Integer | privml.formats.Boolean | privml.formats.Float)
    assert_type(privml.reveal(secret), torch.Tensor)
    assert_type(privml.reveal(secret, to=1), torch.Tensor | None)
    assert_type(privml.secret(torch.nn.Linear(2, 1)), torch.nn.Linear)


def parties() -> None:
    spec = privml.SessionSpec.of("twopc", threads=2)
    assert_type(privml.connect(0, spec, listen="127.0.0.1:9000"), privml.Session)
    first, second = _core.memory_pair()
    first.set_deadline(1.0)
    second.close()


def refused(x: torch.Tensor) -> None:
    privml.share(x, owner="1")  # type: ignore[arg-type]
    privml.nothing  # type: ignore[attr-defined]  # noqa: B018
    _core.nothing  # type: ignore[attr-defined]  # noqa: B018
