# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding with a cache that is state: the clear model's own ids, at the cost foretold for every step."""

import functools
import sys
import warnings
from pathlib import Path

import pytest
import torch

import privml
from privml.errors import ConfigError, InvalidInput
from privml.generation import greedy
from privml.program import Program

transformers = pytest.importorskip("transformers")
sys.path.append(str(Path(__file__).parents[1] / "protocol"))
import services  # noqa: E402 - needs the library
from serving import ENGINES, serving  # noqa: E402 - lies beside other tests

VOCABULARY, WIDTH, HEADS, MOST, COUNT = 100, 128, 2, 24, 5
# Of the kinds of steps, what depends on how much was processed before.
ATTENTION = ("attn", "attention", "sdpa", "softmax", "matmul", "cat")


def gpt2():
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=2, n_head=HEADS, n_positions=32, bos_token_id=0, eos_token_id=1,
        initializer_range=0.2,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def llama():
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS,
        num_key_value_heads=1, intermediate_size=256, max_position_embeddings=32, initializer_range=0.2,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


@functools.cache
def built(family):
    """A model, its program, a prompt, and the ids that the clear model goes on with."""
    torch.manual_seed(2 if family is gpt2 else 0)
    model = family().eval()
    prompt = torch.randint(3, VOCABULARY, (6,))
    ids = torch.randint(3, VOCABULARY, (8, 10), generator=torch.Generator().manual_seed(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "formats have room for texts of 10 ids")
        program = privml.convert(model, calibration=ids, generate=MOST, token_ids="client")
    whole = model.generate(prompt[None], max_new_tokens=COUNT, do_sample=False, pad_token_id=0, eos_token_id=None)
    return model, program, prompt, whole[0, len(prompt) :].tolist()


def test_calibration_rows_that_are_shorter_than_texts_are_told():
    assert any("formats have room for texts of 10 ids" in note for note in built(gpt2)[1].notes)


def fresh(program):
    """A program of its own with the same body."""
    made = Program(program.body, program.weights)
    made.tables = program.tables
    return made


@pytest.mark.parametrize(
    ("family", "engine", "options"),
    [
        (gpt2, "plain", {}), (gpt2, "threepc", {"truncation": "exact"}), (gpt2, "twopc", {"ot": "ideal"}),
        pytest.param(llama, "plain", {}, marks=pytest.mark.slow),
        pytest.param(llama, "threepc", {"truncation": "exact"}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_ids_are_those_of_the_clear_model(family, engine, options):
    _, program, prompt, expected = built(family)
    assert [spec.name for spec in program.inputs] == ["input_ids"] and not program.public_inputs
    assert len(program.outputs) == 1 and program.outputs[0].dtype is torch.int64
    with privml.local(program, engine=engine, **options) as step:
        assert list(greedy(step, prompt, COUNT)) == expected
        state = program.held(step)
        assert state.steps == COUNT and state.length == len(prompt) + COUNT - 1


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_every_step_costs_what_was_foretold(engine):
    _, program, prompt, expected = built(gpt2)
    program = fresh(program)
    own = {key: value for key, value in ENGINES[engine].items() if key == "truncation"}
    queries = [[(1, len(prompt))], *[[(1, 1)]] * (COUNT - 1)]
    with (
        serving(program, engine) as (server, settings),
        services.client(program, server.address, **settings) as client,
        client.session() as session,
    ):
        answers = [session.step(prompt[None])]
        while len(answers) < COUNT:
            answers.append(session.step(answers[-1].outputs[0].reshape(1, 1)))
        assert [int(answer.outputs[0]) for answer in answers] == expected
        for rank, told in ((0, server.answers(COUNT)), (1, answers)):
            predicted = program.session_cost(queries, privml.SessionSpec.of(engine, **own), rank=rank)
            predicted = [ledger.snapshot().total for ledger, _ in predicted]
            spent = [each.ledger.snapshot().total for each in told]
            assert [(each.bytes, each.depth) for each in spent] == [(each.bytes, each.depth) for each in predicted]


@pytest.mark.parametrize("engine", ["twopc", "threepc"])
def test_only_attention_grows(engine):
    _, program, prompt, _ = built(gpt2)
    queries = [[(1, len(prompt))], *[[(1, 1)]] * 8]
    told = program.session_cost(queries, privml.SessionSpec.of(engine))[2:]  # the first id sends keys for one row
    bytes = [{name: each.cost.online.bytes for name, each in ledger.records.items()} for ledger, _ in told]
    grown = [name for name in bytes[0] if len({step[name] for step in bytes}) > 1]
    assert grown and all(any(word in name for word in ATTENTION) for name in grown)
    first, *_, last = (sum(step.values()) for step in bytes)
    assert first < last < 1.25 * first


def test_a_prompt_in_parts_is_the_prompt():
    _, program, prompt, expected = built(gpt2)
    with privml.local(program, engine="plain") as step:
        step(prompt[None, :2])
        step(prompt[None, 2:3])
        assert list(greedy(step, prompt[3:], COUNT)) == expected


def test_a_text_has_an_end():
    _, program, prompt, expected = built(gpt2)
    with privml.local(program, engine="plain") as step:
        long = torch.randint(3, VOCABULARY, (1, MOST))
        with pytest.raises(InvalidInput, match=f"holds 0 of at most {MOST}: {MOST + 1} more do not fit"):
            step(torch.cat([long, long[:, :1]], 1))
        step(long[:, 1:])
        step(long[:, :1])
        with pytest.raises(InvalidInput, match=f"holds {MOST} of at most {MOST}: 1 more"):
            step(long[:, :1])
    with privml.local(program, engine="plain") as step:
        assert list(greedy(step, prompt, COUNT, end=(expected[1],))) == expected[: expected.index(expected[1]) + 1]


def test_a_server_refuses_a_text_that_is_too_long():
    """Of a client that does not look."""
    from privml.service.negotiation import checked_shapes
    from privml.service.options import LARGEST_QUERY

    _, program, _, _ = built(gpt2)
    asked = {"inputs": [[1, MOST + 1]], "step": 0, "state": [[1, HEADS, 0, 64]] * 4}
    with pytest.raises(InvalidInput, match="do not fit"):
        checked_shapes(asked, program, LARGEST_QUERY)
    assert checked_shapes({**asked, "inputs": [[1, 4]]}, program, LARGEST_QUERY)[1:] == ((1, HEADS, 0, 64),) * 4
    with pytest.raises(InvalidInput, match="another step"):
        checked_shapes({**asked, "inputs": [[1, 4]], "state": [[1, HEADS, 3, 64]] * 4}, program, LARGEST_QUERY)


def test_files_hold_it_all(tmp_path):
    _, program, prompt, expected = built(gpt2)
    program.save(tmp_path)
    loaded = privml.load(tmp_path / "program", tmp_path / "weights.safetensors")
    assert loaded.state == program.state and loaded.state[0].most == MOST and loaded.state[0].grows == 2
    with privml.local(loaded, engine="plain") as step:
        assert list(greedy(step, prompt, COUNT)) == expected


def test_what_is_refused():
    model, _, prompt, _ = built(gpt2)
    ids = prompt[None]
    for given, message in (
        ({"generate": 1}, "from 2 to 32"), ({"generate": 33}, "from 2 to 32"), ({"generate": 4}, "longer than"),
        ({"generate": 8, "state": {"h": ("h", 1)}}, "its own state"),
    ):  # fmt: skip
        with pytest.raises((ConfigError, InvalidInput), match=message):
            privml.convert(model, calibration=ids, **given)
    with pytest.raises(ConfigError, match="causal language models"):
        privml.convert(torch.nn.Linear(2, 2), calibration=ids, generate=8)
    with pytest.raises(InvalidInput, match="are ids"):
        privml.convert(model, calibration={"input_ids": ids, "attention_mask": torch.ones_like(ids)}, generate=8)
    for wrong in (ids, torch.tensor([]), torch.tensor([0.5])):
        with pytest.raises(InvalidInput, match="a prompt is one row of ids"):
            next(greedy(lambda x: x, wrong, 1))
