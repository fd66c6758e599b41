# SPDX-License-Identifier: Apache-2.0
"""Rings of values that come from tables hold every row, those too that calibration did not choose."""

import pytest
import torch
from torch import nn

import privml
from privml.errors import InvalidInput
from privml.ops.choices import SELECT_OF_EACH

LENGTH, WIDTH, SEEN = 5, 8, 20
WAYS = {
    "sum": lambda rows, places: rows + places,
    "difference": lambda rows, places: places - rows,
    "scaled difference": lambda rows, places: torch.sub(places, rows, alpha=3),
    "several tables": lambda rows, places: rows + places + places + rows,
    "factor": lambda rows, places: rows * 8.0 + places,
    "rounded factor": lambda rows, places: places - rows * 3.3,
    "quotient": lambda rows, places: rows / 0.3 + places,
    "negative": lambda rows, places: places + -rows,
    "total": lambda rows, places: rows.sum(1) + places[0],
    "mean": lambda rows, places: rows.mean(1) + places[0],
    "part": lambda rows, places: (rows.transpose(0, 1) - places.unsqueeze(1))[1:],
    "joined": lambda rows, places: torch.cat([rows, places.expand_as(rows)], 1) * 8.0,
    "rectified": lambda rows, places: torch.relu(rows - places) + places,
}


class Rows(nn.Module):
    def __init__(self, count: int, way: str):
        super().__init__()
        self.words, self.places, self.norm = (
            nn.Embedding(count, WIDTH),
            nn.Embedding(LENGTH, WIDTH),
            nn.LayerNorm(WIDTH),
        )
        self.way = WAYS[way]

    def forward(self, ids):
        return self.norm(self.way(self.words(ids), self.places(torch.arange(LENGTH))))


def model_with_large_rows(count: int, way: str) -> Rows:
    """Its rows from 20 on are 30 times as large as the others, and two are at either end everywhere."""
    torch.manual_seed(1)
    model = Rows(count, way).eval()
    table = model.words.weight.data
    table[SEEN:] *= 30
    end = table.abs().max()
    table[SEEN + 1], table[SEEN + 2] = end, -end
    table[SEEN + 1 : SEEN + 3, 0] = 0  # a norm of equal numbers says nothing
    return model


def answer(program, ids, engine="plain"):
    with privml.local(program, engine=engine):
        return program(ids)


IDS = torch.tensor([[SEEN, SEEN + 1, SEEN + 2, 19, 0], [SEEN + 2] * LENGTH, [SEEN + 1] * LENGTH])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("count", [23, 400])
def test_values_of_rows_that_calibration_did_not_choose_fit(count, way):
    model = model_with_large_rows(count, way)
    program = privml.convert(model, calibration=torch.randint(0, SEEN, (16, LENGTH)))
    assert any(node.target is SELECT_OF_EACH for node in program.graph.nodes) == (count == 400)
    with torch.no_grad():
        torch.testing.assert_close(answer(program, IDS), model(IDS), atol=0.05, rtol=0)
    assert torch.equal(answer(program, IDS, "twopc"), answer(program, IDS))


@pytest.mark.parametrize("way", ["sum", "difference", "several tables", "factor", "total"])
def test_values_of_other_weights_fit_or_are_refused(way):
    """The weights of a program may be replaced by others that their formats hold."""
    model, calibration = Rows(23, way).eval(), torch.randint(0, SEEN, (16, LENGTH))
    signs = torch.tensor([-1.0, 1.0]).repeat(23 * WIDTH // 2).view(23, WIDTH)
    model.words.weight.data = signs * torch.where(torch.arange(23) < SEEN, 0.04, 1.04).unsqueeze(1)
    model.places.weight.data = -signs[:LENGTH] * 0.9
    program = privml.convert(model, calibration=calibration)
    words, places = (next(name for name in program.weights if name.startswith(each)) for each in ("words", "places"))
    model.places.weight.data = program.weights[places] = -signs[:LENGTH] * 0.95
    model.words.weight.data = program.weights[words] = signs * 1.9
    with torch.no_grad():
        torch.testing.assert_close(answer(program, IDS), model(IDS), atol=0.05, rtol=0)
    program.weights[words] = signs * 2.1
    with pytest.raises(InvalidInput, match=r"weight 'words.*': values must lie in \[-2, 2\)"):
        answer(program, IDS)
