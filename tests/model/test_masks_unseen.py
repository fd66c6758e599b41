# SPDX-License-Identifier: Apache-2.0
"""Secret masks that hide nothing in any row of the calibration data, but in queries."""

import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from test_secret_masks import FORMS, LEAST, Attention, cases
from torch import nn

import privml
from privml.errors import UnsupportedOperator
from privml.graph.export import export
from privml.graph.passes import bound_masks

ENGINES = {"plain": {}, "twopc": {"ot": "ideal"}, "threepc": {"truncation": "exact"}}


def off(mask, dtype):
    return 1.0 - mask.to(dtype)


# More forms: the number is changed on its way, or stands elsewhere.
MORE = {
    "scaled afterwards": lambda a, m: (a + off(m, a.dtype) * LEAST) / 16,
    "chosen, then scaled": lambda a, m: torch.where(m > 0, a * 16, float("-inf")) * 0.0625,
    "half of it": lambda a, m: a + off(m, a.dtype) * 0.5 * -1e9,
    "positive": lambda a, m: a + (m.to(a.dtype) - 1.0) * 1e9,
    "subtracted": lambda a, m: a - off(m, a.dtype) * 1e9,
    "a factor of the sum": lambda a, m: torch.add(a, off(m, a.dtype), alpha=-1e9),
    "divided": lambda a, m: a + off(m, a.dtype) / -1e-9,
    "of two masks": lambda a, m: torch.where(m * m.transpose(-1, -2) > 0, a, -1e9),
    "twice": lambda a, m: a + off(m, a.dtype) * LEAST + off(m, a.dtype) * LEAST,
    "millions": lambda a, m: a + off(m, a.dtype) * -1e6,
    "a hundred": lambda a, m: torch.where(m > 0, a, -100.0),
    "logarithm": lambda a, m: a + torch.log(m.to(a.dtype) + 1e-9),
    "hidden by what is hidden": lambda a, m: torch.where(off(m, a.dtype) * LEAST == 0, a, -1e9),
    "filter": lambda a, m: torch.where(a >= a.amax(-1, keepdim=True) - 0.5, a, float("-inf")),
}


# Forms of which a calibration that hides nothing sees no number: what hides is worked out, or smaller than HIDING.
WORKED_OUT = {
    "whole numbers": lambda a, m: a + ((1 - m) * -10000).to(a.dtype),
    "hundreds": lambda a, m: a + off(m, a.dtype) * -900.0,
    "a product of small ones": lambda a, m: a - off(m, a.dtype) * 50 * 50,
    "exponential": lambda a, m: a - torch.exp(off(m, a.dtype) * 12) + 1,
    "quotient": lambda a, m: a - (1.0 / (m.to(a.dtype) + 1e-5) - 1),
    "from a table": lambda a, m: torch.addcmul(a, off(m, a.dtype), torch.tensor(-1e4)),
    "product of matrices": lambda a, m: a + off(m, a.dtype) @ (-1e4 * torch.eye(m.shape[-1])),
}


class Formed(Attention):
    def forward(self, x, mask):
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.q(x).chunk(3, -1))
        scores = {**MORE, **WORKED_OUT}[self.form](q @ k.transpose(-1, -2) / 2, mask[:, None, None, :])
        return (torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


def answers(program, *inputs):
    for engine, options in ENGINES.items():
        with privml.local(engine, bits=program.numerics.bits, scale=program.numerics.scale, **options) as session:
            yield engine, privml.reveal(program.run(session, *inputs))


def agree(module, x, mask, expected=None, tolerance=2 / 128):
    """A program of a calibration that hides nothing answers as the clear model does where ``mask`` hides."""
    if expected is None:
        with torch.no_grad():
            expected = module(x, mask)
    program = privml.convert(module, calibration=[x, torch.ones_like(mask)])
    for engine, found in answers(program, x[:3], mask[:3]):
        error = (found - expected[:3]).abs().max() / expected.abs().max()
        assert error <= tolerance, f"{engine}: {error:.2%}"
    return program


QUICK = ("where", "product", "sdpa", "with a public one")


@pytest.mark.parametrize(
    "form",
    [
        f if f in QUICK else pytest.param(f, marks=pytest.mark.slow)
        for f in (*FORMS, "sdpa", "sdpa, causal too", "sdpa, sum")
    ],
)
def test_usual_forms(form):
    assert not agree(Attention(form).eval(), *cases()).choice.floats


@pytest.mark.parametrize("form", MORE)
def test_other_forms(form):
    agree(Formed(form).eval(), *cases(), tolerance=(4 if form == "logarithm" else 2) / 128)


@pytest.mark.parametrize("form", WORKED_OUT)
def test_forms_whose_number_is_worked_out(form):
    agree(Formed(form).eval(), *cases())


@pytest.mark.parametrize("dtype", [torch.bool, torch.float32])
def test_types_of_masks(dtype):
    x, mask = cases()
    agree(Attention("where").eval(), x, mask.to(dtype))


def test_calibration_that_hides_nearly_everything():
    """How large the scores are that queries show is told by what they are if nothing is hidden."""
    module, (x, mask) = Attention("where", 4.0).eval(), cases()
    shown = torch.ones_like(mask)
    few = torch.zeros_like(mask)
    few[:, 0] = 1
    with torch.no_grad():
        expected = module(x, mask)
    program = privml.convert(module, calibration=[x, few], numerics={"scale": 10})  # one element tells no error
    for _, found in answers(program, x[:3], mask[:3]):
        assert (found - expected[:3]).abs().max() <= 2 / 128 * expected.abs().max()
    numbers = []
    for seen in (few, shown):
        graph = bound_masks(export(module, (x[:1], mask[:1])), [x, seen], 2.0)
        numbers.append([a for n in graph.graph.nodes for a in n.args if isinstance(a, float) and a < -20])
    assert numbers[0] == numbers[1] != []


def test_what_is_hidden_has_no_effect_however_it_is_scaled():
    module, (x, mask) = Formed("chosen, then scaled").eval(), cases()
    program = privml.convert(module, calibration=[x, torch.ones_like(mask)])
    other = torch.where(mask[:, :, None] > 0, x, x.roll(1, 0).roll(1, 1).flip(2))
    first, second = (next(answers(program, v, mask))[1] for v in (x, other))
    assert torch.equal(first[mask > 0], second[mask > 0]) and not torch.equal(other, x)


@pytest.mark.parametrize("form", ["where", "product", "hundreds"])
def test_masks_of_token_ids(form):
    """The mask is computed from ids of which no row of the calibration is padded."""

    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.table, self.inner = nn.Embedding(20, 8), (Formed if form in WORKED_OUT else Attention)(form)

        def forward(self, ids):
            return self.inner(self.table(ids), (ids != 0).long())

    module = Tokens().eval()
    ids = torch.randint(1, 20, (16, 6), generator=torch.Generator().manual_seed(1))
    padded = ids[:4].clone()
    padded[0, 3:], padded[1, 1:], padded[2, :2] = 0, 0, 0
    with torch.no_grad():
        expected = module(padded)
    for way in ("secret", "client", "public"):
        program = privml.convert(module, calibration=[ids], token_ids=way)
        for engine, found in answers(program, padded):
            error = (found - expected).abs().max() / expected.abs().max()
            assert error <= 2 / 128, f"{way}, {engine}: {error:.2%}"


class Pooled(nn.Module):
    def __init__(self, pool):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.pool = nn.Linear(8, 4), pool

    def forward(self, x, mask):
        return self.pool(self.layer(x), mask[..., None])


@pytest.mark.parametrize(
    "pool",
    [
        lambda h, m: torch.where(m > 0, h, float("-inf")).amax(1),
        lambda h, m: torch.where(m > 0, h, float("inf")).amin(1),
        lambda h, m: (h * m).sum(1) / m.sum(1).to(h.dtype),
        lambda h, m: torch.where(m > 0, h, 0.0).sum(1),
        lambda h, m: (h * m).sum(1) * torch.reciprocal(m.to(h.dtype).sum(1)),
        lambda h, m: h * (1 + 20 * off(m, h.dtype)),
        lambda h, m: h + 300 * off(m, h.dtype),
    ],
)
def test_pooling(pool):
    agree(Pooled(pool).eval(), *cases())


@pytest.mark.parametrize(
    "pool, text",
    [
        (lambda h, m: torch.where(m > 0, h, LEAST), "an output holds infinity"),
        (lambda h, m: torch.log_softmax(torch.where(m > 0, h, float("-inf")), 1), "an output holds infinity"),
        (lambda h, m: torch.softmax(h + torch.log(m.to(h.dtype)), 1), "takes the logarithm of a secret mask"),
        (
            lambda h, m: torch.softmax(torch.where(off(m, h.dtype) * LEAST < -1e4, -1e9, h), 1),
            "compares what a secret mask hides with 10000",
        ),
        (
            lambda h, m: torch.softmax(torch.where(off(m, h.dtype) * LEAST == torch.tensor(LEAST), -1e9, h), 1),
            "compares what a secret mask hides",
        ),
    ],
)
def test_what_no_number_can_stand_for_is_refused(pool, text):
    x, mask = cases()
    with pytest.raises(UnsupportedOperator, match=text):
        privml.convert(Pooled(pool).eval(), calibration=[x, torch.ones_like(mask)])


def test_a_large_number_that_is_no_mask_is_left_alone():
    """A step function; its number decides how steep it is."""
    module = Pooled(lambda h, m: torch.clamp((h - 0.3) * 100.0, 0, 1) * m).eval()
    x, mask = cases()
    graph = bound_masks(export(module, (x[:1], mask[:1])), [x, mask], 2.0)
    assert [a for n in graph.graph.nodes for a in n.args if isinstance(a, float)] == [0.3, 100.0]


# ---- from ONNX
def onnx_attention(form):
    """Scores [n, 5, 5] of x [n, 5, 8] hidden where mask [n, 5] is 0, and what attention takes from x."""
    constants = {"one": [1.0], "least": [LEAST], "low": [-10000.0], "zero": [0.0], "half": [0.5], "axes": [1]}
    tensors = [
        numpy_helper.from_array(torch.tensor(v, dtype=torch.int64 if k == "axes" else torch.float32).numpy(), k)
        for k, v in constants.items()
    ]
    nodes = [helper.make_node("Unsqueeze", ["mask", "axes"], ["wide"])]
    if form.startswith("Where"):
        nodes += [helper.make_node("Cast", ["wide"], ["shown"], to=TensorProto.BOOL)]
    else:
        nodes += [
            helper.make_node("Cast", ["wide"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["one", "real"], ["rest"]),
            helper.make_node("Mul", ["rest", "low" if "low" in form else "least"], ["bias"]),
        ]
    nodes += [
        helper.make_node("Transpose", ["x"], ["turned"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "turned"], ["product"]),
        helper.make_node("Mul", ["product", "half"], ["scores"]),
    ]
    if form == "Where":
        nodes += [helper.make_node("Where", ["shown", "scores", "least"], ["hidden"])]
    else:
        if form == "Where, Add":
            nodes += [helper.make_node("Where", ["shown", "zero", "least"], ["bias"])]
        nodes += [helper.make_node("Add", ["scores", "bias"], ["hidden"])]
    nodes += [
        helper.make_node("Softmax", ["hidden"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "x"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ("n", 5, 8)),
        helper.make_tensor_value_info("mask", TensorProto.INT64, ("n", 5)),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", 5, 8))]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("form", ["Where", "Where, Add", "Mul, Add", "Mul, Add, low"])
def test_onnx(form):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, (x, mask) = onnx_attention(form), cases()
    clear = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = torch.from_numpy(clear.run(None, {"x": x.numpy(), "mask": mask.numpy()})[0])
    agree(model, x, mask, expected)
