# SPDX-License-Identifier: Apache-2.0
"""Embeddings of secret ids: the ways to look them up, on every engine, and what they say and refuse."""

import math

import pytest
import torch
from torch import nn

import privml
from privml.errors import ConfigError, InvalidInput, UnsupportedOperator
from privml.graph.token_ids import WAYS, _groups
from privml.ops.choices import SELECT_OF_EACH, SELECT_ROWS
from privml.program import TABLES, Program

ROWS, WIDTH = 23, 3


class Bag(nn.Module):
    """Positions depend on the ids, as in RoBERTa: they are counted where there is no padding."""

    def __init__(self, rows=ROWS, width=WIDTH):
        super().__init__()
        self.words, self.places = nn.Embedding(rows, width), nn.Embedding(8, width)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        there = ids.ne(0).int()
        return self.head(self.words(ids) + self.places(torch.cumsum(there, 1) * there))


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Bag().eval()


@pytest.fixture(scope="module")
def ids():
    return torch.randint(0, ROWS, (6, 5), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def programs(model, ids):
    return {way: privml.convert(model, calibration=ids, token_ids=way) for way in WAYS}


def answer(program, ids, engine, **settings):
    numbers = {"bits": program.numerics.bits, "scale": program.numerics.scale}
    with privml.local(engine, **numbers, **settings) as session:
        return privml.reveal(program.run(session, ids))


@pytest.mark.parametrize("way", WAYS)
def test_answers_are_those_of_the_model(programs, model, ids, way):
    with torch.no_grad():
        torch.testing.assert_close(answer(programs[way], ids, "plain"), model(ids), atol=0.02, rtol=0)


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
@pytest.mark.parametrize("way", WAYS)
def test_engines_agree_with_the_plain_one(programs, ids, way, engine):
    settings = {"truncation": "exact"} if engine == "threepc" else {}
    assert torch.equal(answer(programs[way], ids[:2], engine, **settings), answer(programs[way], ids[:2], "plain"))


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
@pytest.mark.parametrize("way", WAYS)
def test_cost_does_not_depend_on_the_way_by_surprise(programs, way, engine):
    """Tables at the client and public ids cost nothing at the look-up."""
    spec = privml.SessionSpec.of(engine=engine)
    shapes = [(2, 5)]
    costs = {each: programs[each].cost(shapes, spec).snapshot().total.bytes for each in WAYS}
    assert costs["public"] < costs["secret"] and costs["client"] < costs["secret"], way


def test_two_steps_for_large_tables(ids):
    rows, width = 200, 2
    assert _groups(rows, width) > 1
    torch.manual_seed(0)
    model = Bag(rows, width).eval()
    ids = torch.randint(0, rows, (4, 5), generator=torch.Generator().manual_seed(1))
    program = privml.convert(model, calibration=ids)
    assert "two products" in program.notes[0]
    with torch.no_grad():
        torch.testing.assert_close(answer(program, ids, "plain"), model(ids), atol=0.02, rtol=0)
    assert torch.equal(answer(program, ids[:1], "twopc"), answer(program, ids[:1], "plain"))
    assert torch.equal(answer(program, ids[:1], "threepc", truncation="exact"), answer(program, ids[:1], "plain"))


def test_many_ids_are_looked_up_by_a_product_of_what_each_side_knows():
    """With a transfer for each bit of each id there would be 100 MB for these."""
    torch.manual_seed(0)
    model, ids = nn.Sequential(nn.Embedding(3000, 64), nn.Linear(64, 3)).eval(), torch.randint(0, 3000, (4, 32))
    program = privml.convert(model, calibration=ids)
    assert "two products" in program.notes[0]
    spec = privml.SessionSpec.of(engine="twopc", linear="lattice")
    assert program.cost([(4, 32)], spec).snapshot().total.bytes < 5e6
    assert torch.equal(answer(program, ids, "twopc", linear="lattice"), answer(program, ids, "plain"))


def test_both_steps_compute_in_a_ring_that_the_table_needs():
    torch.manual_seed(0)
    model, ids = nn.Embedding(200, 2).eval(), torch.randint(0, 200, (4, 5))
    program = privml.convert(nn.Sequential(model, nn.Linear(2, 3)).eval(), calibration=ids)
    steps = [node for node in program.graph.nodes if node.target in (SELECT_ROWS, SELECT_OF_EACH)]
    largest = model.weight.abs().max().item()
    assert len(steps) == 2
    for node in steps:
        fmt = node.meta["format"]
        assert fmt.bits <= fmt.scale + math.ceil(math.log2(largest)) + 3 < program.numerics.bits


class Places(nn.Module):
    """Adds rows of a second table at public places, as models do for positions."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(ROWS, 8), nn.Embedding(5, 8), nn.LayerNorm(8)

    def forward(self, ids):
        return self.norm(self.words(ids) + self.places(torch.arange(5)))


@pytest.mark.parametrize("way", ["secret", "public"])
def test_rows_at_public_places_keep_the_sum_narrow(way):
    torch.manual_seed(0)
    model, ids = Places().eval(), torch.randint(0, ROWS, (4, 5))
    program = privml.convert(model, calibration=ids, token_ids=way)
    (total,) = (node for node in program.graph.nodes if node.target is torch.ops.aten.add.Tensor)
    fmt = total.meta["format"]
    largest = model.words.weight.abs().max() + model.places.weight.abs().max()
    assert 2.0 ** (fmt.bits - 1 - fmt.scale) <= 8 * largest and fmt.bits < program.numerics.bits
    with torch.no_grad():
        torch.testing.assert_close(answer(program, ids, "plain"), model(ids), atol=0.05, rtol=0)
    for engine, settings in (("twopc", {}), ("threepc", {"truncation": "exact"})):
        assert torch.equal(answer(program, ids[:1], engine, **settings), answer(program, ids[:1], "plain"))


def test_rows_that_calibration_did_not_choose_fit():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(200, 2), nn.Linear(2, 3)).eval()
    model[0].weight.data[150] *= 40
    program = privml.convert(model, calibration=torch.randint(0, 150, (4, 5)))
    (chosen,) = (node for node in program.graph.nodes if node.target is SELECT_OF_EACH)
    fmt = chosen.meta["format"]
    assert model[0].weight.abs().max() < 2.0 ** (fmt.bits - 1 - fmt.scale)


def test_sums_of_rows_that_calibration_did_not_choose_fit():
    torch.manual_seed(0)
    model = Places().eval()
    model.words.weight.data[20] *= 30
    program = privml.convert(model, calibration=torch.randint(0, 20, (4, 5)))
    (total,) = (node for node in program.graph.nodes if node.target is torch.ops.aten.add.Tensor)
    fmt = total.meta["format"]
    assert model.words.weight.abs().max() + model.places.weight.abs().max() < 2.0 ** (fmt.bits - 1 - fmt.scale)


def test_the_program_says_who_learns_what(programs):
    assert programs["public"].public_inputs == ("ids",)
    assert not programs["secret"].public_inputs and not programs["client"].public_inputs
    assert "all parties learn" in programs["public"].notes[0]
    assert "the client, which learns the table" in programs["client"].notes[0]
    assert f"{ROWS} bits are shared per id" in programs["secret"].notes[0]
    assert not any(spec.name.startswith("words") for spec in programs["client"].weight_specs)


@pytest.mark.parametrize("way", WAYS)
def test_files_hold_everything(programs, ids, way, tmp_path):
    programs[way].save(tmp_path)
    assert (tmp_path / TABLES).exists() == (way == "client")
    loaded = Program.load(tmp_path / "program", tmp_path / "weights.safetensors")
    assert loaded.hash == programs[way].hash and loaded.public_inputs == programs[way].public_inputs
    assert torch.equal(answer(loaded, ids, "plain"), answer(programs[way], ids, "plain"))


def test_without_its_tables_the_client_cannot_look_up(programs, ids, tmp_path):
    programs["client"].save(tmp_path)
    (tmp_path / TABLES).unlink()
    loaded = Program.load(tmp_path / "program", tmp_path / "weights.safetensors")
    with pytest.raises(ConfigError, match="load the tables"):
        answer(loaded, ids, "plain")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wrong", [-1, ROWS])
def test_ids_outside_the_table_are_refused(programs, ids, way, wrong):
    bad = ids.clone()
    bad[2, 3] = wrong
    with pytest.raises((InvalidInput, IndexError), match="index"):
        answer(programs[way], bad, "plain")


def test_settings_that_fit_nothing_are_refused(model, ids):
    with pytest.raises(ConfigError, match="must be one of secret, public, client"):
        privml.convert(model, calibration=ids, token_ids="hidden")
    with pytest.raises(ConfigError, match="no input 'tokens'; there are ids"):
        privml.convert(model, calibration=ids, token_ids={"tokens": "public"})


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.offset = nn.Embedding(5, 3), nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.table((x * self.offset).argmax(1))


class Counted(Chosen):
    def forward(self, x):
        return self.table((x * self.offset).sum(1).abs().long() % 5)


def test_places_that_depend_on_weights_are_found_by_the_model_or_refused():
    model, x = Chosen().eval(), torch.randn(32, 5)
    program = privml.convert(model, calibration=x)
    with privml.local(program, engine="plain"):
        assert (program(x[:6]) - model(x[:6])).abs().max() < 0.05
    assert not program.notes
    with pytest.raises(UnsupportedOperator, match="places that depend on weights"):
        privml.convert(Counted().eval(), calibration=torch.randn(4, 5))


def test_notes_are_parts_of_the_program_and_notices_before_anything_is_sent(tmp_path, logged):
    model, ids = torch.nn.Sequential(torch.nn.Embedding(6, 4), torch.nn.Linear(4, 3)), torch.randint(0, 6, (16, 2))
    program = privml.convert(model, calibration=ids, token_ids="public")
    program.save(tmp_path)
    loaded = Program.load(tmp_path / "program")
    assert loaded.notes == program.notes and "all parties learn" in loaded.notes[0]
    assert loaded.notices(dealt=True)[0].startswith("all parties, the dealer too, learn these inputs of the program: ")
    with pytest.raises(AttributeError, match="Program.notices"):
        loaded.told()
    privml.Client(loaded, "127.0.0.1:9").close()
    assert [record.getMessage() for record in logged] == list(loaded.notices())


def test_an_accepted_loss_is_a_note():
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Sigmoid(), torch.nn.Linear(8, 3)), torch.randn(64, 8)
    with pytest.warns(UserWarning, match="allows it"):
        program = privml.convert(model, calibration=x, numerics={"bits": 16, "scale": 3, "accept": 0.9})
    assert any("more than the tolerance" in note for note in program.notices())
    assert program.choice.measured.startswith("largest error on the 64 rows that the formats were chosen by: ")
    assert "16 of them were not used for ranges" in program.choice.measured
