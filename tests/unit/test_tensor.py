# SPDX-License-Identifier: Apache-2.0
"""How a SecretTensor behaves as a torch.Tensor: aliasing, writes, parameters, and everything that must refuse."""

import copy
import io
import pickle

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privml
from privml.errors import InvalidInput, SecretLeakError, UnsupportedOperator
from privml.formats import FixedPoint, Owned, Shared

X0 = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])


@pytest.fixture(autouse=True)
def session():
    with privml.local() as opened:
        yield opened


@pytest.fixture
def x():
    return privml.share(X0, owner=0)


def value(t):
    return privml.reveal(t).detach()


def shared(t, owner=1):
    return privml.share(t, owner=0) + privml.share(torch.zeros_like(t), owner=1)


LEAKS = {
    "bool": lambda x: bool(x[0, 0] > 0),
    "if_any": lambda x: 1 if (x > 0).any() else 2,
    "float": lambda x: float(x[0, 0]),
    "int": lambda x: int(x[0, 0]),
    "index": lambda x: [1, 2, 3][x[0, 0].long()],
    "item": lambda x: x[0, 0].item(),
    "numpy": lambda x: x.numpy(),
    "asarray": lambda x: numpy.asarray(x),
    "ufunc": lambda x: numpy.exp(x),
    "reduction": lambda x: numpy.add.reduce(x),
    "write_array": lambda x: numpy.add(x, 1, out=numpy.ones((2, 3))),
    "array_function": lambda x: numpy.concatenate([x, x]),
    "array_mean": lambda x: numpy.mean(x),
    "tolist": lambda x: x.tolist(),
    "equal": lambda x: torch.equal(x, x),
    "allclose": lambda x: torch.allclose(x, x),
    "mask_index": lambda x: x[x > 0],
    "nonzero": lambda x: x.nonzero(),
    "argwhere": lambda x: torch.argwhere(x),
    "where_one_argument": lambda x: torch.where(x > 0),
    "masked_select": lambda x: torch.masked_select(x, x > 0),
    "unique": lambda x: x.unique(),
    "unique_consecutive": lambda x: torch.unique_consecutive(x),
    "bincount": lambda x: torch.bincount(x[0].long()),
    "one_hot": lambda x: F.one_hot(x.long()),
    "format": lambda x: f"{x[0, 0]:.3f}",
    "dlpack": lambda x: numpy.from_dlpack(x),
    "apply": lambda x: x.apply_(abs),
    "pickle": lambda x: pickle.dumps(x),
    "save": lambda x: torch.save({"x": x}, io.BytesIO()),
    "share_memory": lambda x: x.share_memory_(),
    "module_share_memory": lambda x: privml.secret(nn.Linear(2, 2)).share_memory(),
    "write_public": lambda x: torch.ones(2, 3).copy_(x),
    "add_public": lambda x: torch.ones(2, 3).add_(x),
    "setitem_public": lambda x: torch.ones(2, 3).__setitem__(0, x[0]),
    "out_public": lambda x: torch.add(x, x, out=torch.ones(2, 3)),
    "to_device": lambda x: x.to("meta"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_what_would_reveal_refuses(x, name):
    with pytest.raises(SecretLeakError) as error:
        LEAKS[name](x)
    assert "2.0" not in str(error.value) and len(str(error.value)) > 40  # says what to do, holds no value


ARRAY = numpy.array([[1.0, 2.0, 0.5], [4.0, -1.0, 2.0]])
OPERATORS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / (b + 8),
    "matmul": lambda a, b: a @ b.T,
    "less": lambda a, b: a < b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_arrays_are_public_operands_on_either_side(x, name):
    operator, public = OPERATORS[name], torch.tensor(ARRAY)
    for found, expected in (
        (operator(x, ARRAY), operator(X0.double(), public)),
        (operator(ARRAY, x), operator(public, X0.double())),
    ):
        assert isinstance(found, privml.SecretTensor)
        assert found.dtype == expected.dtype and torch.allclose(value(found), expected, atol=1e-4)


def test_sizes_are_public(x):
    assert (numpy.shape(x), numpy.ndim(x), numpy.size(x)) == ((2, 3), 2, 6)


def test_a_refused_function_of_numpy_names_that_of_torch(x):
    with pytest.raises(SecretLeakError, match=r"numpy.exp\(\) .* call torch.exp\(\)"):
        numpy.exp(x)


class Doubled(torch.utils.data.Dataset):
    def __init__(self, x):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index] * self.x[index]


@pytest.mark.parametrize("engine", ["plain", "twopc"])
@pytest.mark.parametrize("make", [torch.utils.data.TensorDataset, Doubled])
def test_workers_of_a_loader_are_refused_at_once(make, engine):
    with privml.local(engine):
        data = make(privml.share(X0, owner=0))
        assert len(list(torch.utils.data.DataLoader(data, 1))) == 2
        workers = torch.utils.data.DataLoader(data, 1, num_workers=1, multiprocessing_context="fork", timeout=60)
        with pytest.raises((SecretLeakError, privml.errors.ConfigError), match="num_workers=0"):
            list(workers)


def test_lbfgs_is_refused_with_what_to_use(x):
    layer = privml.secret(nn.Linear(3, 1))
    with pytest.raises(privml.errors.ConfigError, match="LBFGS .* would reveal the loss .*SGD"):
        torch.optim.LBFGS(layer.parameters()).step(lambda: layer(x).sum())


def test_step_on_a_public_parameter_refuses(x):
    layer = nn.Linear(3, 2)
    layer(x).sum().backward()
    assert isinstance(layer.weight.grad, privml.SecretTensor)
    with pytest.raises(SecretLeakError, match="public tensor"):
        torch.optim.SGD(layer.parameters(), 0.1).step()


def test_repr_shows_no_value(x):
    for text in (repr(x), str(x), f"{x}", repr(nn.Parameter(x))):
        assert "shape=(2, 3)" in text and "float32" in text and "FixedPoint(bits=64, scale=16)" in text
        assert "owned by party 0" in text and "3.0" not in text and "[" not in text
    assert "shared" in repr(shared(X0))


def test_no_memory_is_handed_out(x):
    assert x.data_ptr() == 0
    with pytest.raises(RuntimeError):
        bytes(x.untyped_storage())


# ---- aliasing and writes
def test_views_write_through():
    z = shared(torch.zeros(2, 3))
    z.view(6)[2:4].add_(1)
    z[0].mul_(5)
    z.t()[0] = 7
    assert torch.equal(value(z), torch.tensor([[7.0, 0, 5], [7, 0, 0]]))


def test_a_write_bumps_the_version_autograd_checks():
    weight = nn.Parameter(shared(torch.ones(3)))
    y = weight * 2.0
    z = (y * y).sum()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_writing_a_shared_value_into_part_of_an_owned_tensor_opens_all_aliases():
    owned = privml.share(torch.zeros(4), owner=1, format=FixedPoint(12, 8))
    view = owned[:2]
    view.copy_(shared(torch.tensor([300.0, -1.5])))
    for alias in (owned, view, owned.detach()):
        assert alias.placement == Shared() and alias.format == FixedPoint(64, 8)
    assert torch.equal(value(owned), torch.tensor([300.0, -1.5, 0, 0]))


def test_a_write_forgets_what_was_known_of_the_sign():
    y = torch.relu(shared(X0))
    z = y.view(6)
    assert y.format.nonnegative and z.format.nonnegative
    z[0] = -1.0
    assert not y.format.nonnegative and not z.format.nonnegative
    assert torch.equal(value(torch.relu(y))[0], torch.tensor([0.0, 0, 3]))


def test_a_write_forgets_by_products():
    y = torch.relu(shared(X0))
    assert y.aux is not None and y.detach().aux is not None
    y.view(6)[0] = -1.0
    assert y.aux is None and y.detach().aux is None


def test_copy_keeps_format_and_dtype_of_the_target():
    coarse = privml.share(torch.zeros(3), format=FixedPoint(64, 4))
    coarse.copy_(privml.share(torch.tensor([0.49, -0.51, 1.0])))
    assert coarse.format == FixedPoint(64, 4)
    assert value(coarse).tolist() == [0.5, -0.5, 1.0]
    whole = privml.share(torch.zeros(2, dtype=torch.int64))
    whole.copy_(privml.share(torch.tensor([1.9, -1.9])))
    assert value(whole).tolist() == [1, -1]


def test_indices_asked_for_after_a_write_are_those_of_the_time_of_pooling():
    image = shared(torch.arange(16.0).view(1, 1, 4, 4))
    with torch.no_grad():
        values, indices = F.max_pool2d(image, 2, return_indices=True)
        image.zero_()
    assert value(indices).flatten().tolist() == [5, 7, 13, 15]
    assert value(values).flatten().tolist() == [5.0, 7, 13, 15]


def test_view_after_a_copying_permutation():
    x = shared(torch.arange(6.0).view(2, 3))
    assert torch.equal(value(torch.ops.aten.view(x.t(), [6])), torch.arange(6.0).view(2, 3).t().reshape(6))


def test_metadata_in_place():
    x = shared(torch.arange(6.0).view(2, 3))
    x.t_()
    x.unsqueeze_(0)
    assert x.shape == (1, 3, 2) and torch.equal(value(x), torch.arange(6.0).view(2, 3).t()[None])


def test_in_place_checks_shapes_and_dtypes(x):
    with pytest.raises(RuntimeError, match="does not fit"):
        x[0].clone().add_(x)
    with pytest.raises(RuntimeError, match="cannot be written"):
        privml.share(torch.ones(3, dtype=torch.int64)).add_(x[0])


# ---- as parameters
def test_parameter(x):
    p = nn.Parameter(x.clone())
    assert isinstance(p, nn.Parameter) and isinstance(p, privml.SecretTensor) and p.requires_grad and p.is_leaf
    twin = copy.deepcopy(p)
    assert isinstance(twin, nn.Parameter) and twin.requires_grad and twin.session is p.session
    with torch.no_grad():
        p.mul_(2)
    assert torch.equal(value(p), 2 * X0) and torch.equal(value(twin), X0)


def test_deepcopy_keeps_gradients_and_ties():
    module = privml.secret(nn.Linear(3, 3))
    module.twin = module.weight
    module(shared(X0)).sum().backward()
    clone = copy.deepcopy(module)
    assert clone.twin is clone.weight is not module.weight
    assert torch.equal(value(clone.weight.grad), value(module.weight.grad))


def test_assigning_data_replaces_the_share():
    p = nn.Parameter(shared(X0))
    p.data = privml.share(torch.ones(4), owner=1)
    assert p.shape == (4,) and p.placement == Owned(1) and value(p).tolist() == [1.0] * 4
    p.data = torch.full((2,), 0.5)
    assert value(p).tolist() == [0.5, 0.5]
    p.data.mul_(2)
    assert value(p).tolist() == [1.0, 1.0]


def test_module_conversion_swaps_whole_tensors():
    module = privml.secret(nn.Linear(3, 2))
    weight = value(module.weight)
    module.double()
    assert module.weight.dtype is torch.float64 and isinstance(module.weight, nn.Parameter)
    assert torch.equal(value(module.weight), weight.double())


def test_state_dict_round_trips():
    secret, target, public = privml.secret(nn.Linear(3, 2)), privml.secret(nn.Linear(3, 2)), nn.Linear(3, 2)
    target.load_state_dict(secret.state_dict())
    assert torch.equal(value(target.weight), value(secret.weight))
    target.load_state_dict(public.state_dict())
    assert (value(target.weight) - public.weight).abs().max() <= 2**-17
    with pytest.raises(RuntimeError, match="public tensor"):
        public.load_state_dict(secret.state_dict())
    public.load_state_dict(secret.state_dict(), assign=True)
    assert isinstance(public.weight, nn.Parameter) and isinstance(public.weight, privml.SecretTensor)


def test_tracers_are_refused(x):
    with pytest.raises(UnsupportedOperator, match=r"privml\.compile_step"):
        x.__tensor_flatten__()


# ---- made after a secret
def test_created_tensors_are_secret_and_take_secrets(x):
    for made in (torch.zeros_like(x), x.new_zeros(2, 3), torch.empty_like(x), x.new_empty((2, 3))):
        made.copy_(x)
        assert isinstance(made, privml.SecretTensor) and torch.equal(value(made), X0)
    assert value(torch.full_like(x, 0.25)).eq(0.25).all() and value(x.new_ones(2)).eq(1).all()
    assert x.new_zeros(2, dtype=torch.bool).dtype is torch.bool


def test_labels_of_precision_do_not_change_the_value(x):
    assert value(x.double()).dtype is torch.float64 and value(x.half()).dtype is torch.float16
    assert torch.equal(value(x.double().float()), X0)


def test_modes(x):
    module = nn.Sequential(nn.Conv1d(2, 2, 2), nn.Flatten(0), nn.Linear(4, 2))
    expected = module(X0).detach()
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            assert (value(module(x)) - expected).abs().max() < 1e-4
            assert (value(privml.secret(copy.deepcopy(module))(x)) - expected).abs().max() < 1e-4


def test_reductions_refuse_what_torch_refuses(session):
    x = privml.share(torch.arange(6.0).reshape(2, 3), owner=1)
    for reduce in (torch.sum, torch.amax, torch.mean, torch.var):
        for dim in (2, -3):
            with pytest.raises(IndexError, match="out of range"):
                reduce(x, dim=dim)
        with pytest.raises(RuntimeError, match="multiple times"):
            reduce(x, dim=(0, -2))
    with pytest.raises(InvalidInput, match="mean of a torch.int64"):
        torch.mean(privml.share(torch.arange(3), owner=1))
