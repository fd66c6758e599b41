# SPDX-License-Identifier: Apache-2.0
"""Functions that a user writes as addition formulas, on shares and in the clear."""

import numpy as np
import pytest
import torch

import privml
from privml.engines.formulas import Formula, Term
from privml.errors import ConfigError, InvalidInput
from privml.ops.formulas import evaluate_formula

COSH = Formula(
    (Term(np.cosh, np.cosh), Term(np.sinh, np.sinh)),
    bits=14, scale=12, place_bits=10, scale_of_terms=18, out_scale=12, most=8,
)  # fmt: skip
WAVE = Formula(
    (
        Term(lambda u: np.sin(2 * np.pi * u), lambda b: np.cos(2 * np.pi * b)),
        Term(lambda u: np.cos(2 * np.pi * u), lambda b: np.sin(2 * np.pi * b)),
    ),
    bits=12, scale=12, place_bits=8, scale_of_terms=18, out_scale=12, periodic=True,
)  # fmt: skip
SQUARE = Formula(
    (Term(np.square, constant=1.0), Term(lambda u: 2 * u, lambda b: b), Term(np.ones_like, np.square)),
    bits=15, scale=12, place_bits=11, scale_of_terms=16, out_scale=12, most=16,
)  # fmt: skip
X = torch.rand(4, 50, generator=torch.Generator().manual_seed(5)) * 1.9


def on(engine: str, formula: Formula, x: torch.Tensor, **settings) -> torch.Tensor:
    with privml.local(engine, bits=32, scale=12, **settings):
        return privml.reveal(evaluate_formula(privml.share(x / 2, 0) + privml.share(x / 2, 1), formula))


@pytest.mark.parametrize(
    ("formula", "x", "exact"),
    [
        (COSH, X, torch.cosh(X)),
        (SQUARE, X, X * X),
        (WAVE, X * 40 - 30, torch.sin(2 * torch.pi * (X * 40 - 30))),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_formulas_are_their_functions(formula, x, exact, threads):
    plain, secure = on("plain", formula, x), on("twopc", formula, x, threads=threads)
    slope = 7 if formula is WAVE else 4  # of an argument that is off by a unit
    assert (plain - exact).abs().max() <= (slope + 1) / 4096
    assert (plain - secure).abs().max() <= 2 / 4096


def test_formulas_are_refused_where_they_have_no_meaning():
    with pytest.raises(ConfigError, match="place_bits"):
        Formula((Term(np.cosh),), bits=20, scale=12, place_bits=10, scale_of_terms=16, out_scale=12)
    with pytest.raises(ConfigError, match="out_scale"):
        Formula((Term(np.cosh),), bits=14, scale=12, place_bits=10, scale_of_terms=4, out_scale=12)
    with pytest.raises(ConfigError, match="64"):
        Formula((Term(np.cosh),), bits=14, scale=12, place_bits=10, scale_of_terms=50, out_scale=50, most=2.0**12)
    with privml.local("plain", bits=32, scale=12), pytest.raises(InvalidInput, match="owner"):
        evaluate_formula(privml.share(X), COSH)
    with privml.local("threepc") as session, pytest.raises(ConfigError, match="addition formulas"):
        session.engine.formula((torch.zeros(3, dtype=torch.int64),), COSH)
