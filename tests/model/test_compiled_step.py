# SPDX-License-Identifier: Apache-2.0
"""Training steps as one graph: the numbers of eager training, fewer rounds, no more bytes, costs told exactly."""

import copy
import threading

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, grad_and_value

import privml
from models.lenet.model import LeNet
from models.motions.model import Motions
from privml.context import Session
from privml.engines.threepc.backend import meter as meter_of_three
from privml.formats import Numerics
from privml.graph import batched
from privml.session.ledger import Ledger, Snapshot
from privml.spec import SessionSpec

RATE, MOMENTUM = 0.125, 0.9


class Pooled(nn.Module):
    """A LeNet in small."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 3, 3, padding=1), nn.Conv2d(3, 4, 2)
        self.hidden, self.last = nn.Linear(36, 8), nn.Linear(8, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.first(x)), 2)
        x = F.max_pool2d(F.relu(self.second(x)), 2, ceil_mode=True)
        return self.last(F.relu(self.hidden(x.flatten(1))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.last = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.gru(x)[1][-1])


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        return self.last(F.gelu(self.norm(torch.sigmoid(self.first(x)).mean(1))))


MODELS = {"pooled": (Pooled, (8, 1, 12, 12)), "recurrent": (Recurrent, (8, 5, 3)), "smooth": (Smooth, (8, 3, 3))}


def case(name):
    torch.manual_seed(4)
    make, shape = MODELS[name]
    labels = F.one_hot(torch.arange(shape[0]) % 4, 4).float()
    return make(), torch.randn(shape), labels


def stepping(net, with_loss=True):
    def step(parameters, momentum, x, y):
        def loss(p):
            return F.cross_entropy(functional_call(net, p, (x,)), y)

        gradients, value = grad_and_value(loss)(parameters)
        momentum = {n: momentum[n] * MOMENTUM + g for n, g in gradients.items()}
        parameters = {n: p + momentum[n] * -RATE for n, p in parameters.items()}
        return (parameters, momentum, value) if with_loss else (parameters, momentum)

    return step


def arguments(net, x, y):
    weights = {n: p.detach() for n, p in net.named_parameters()}
    shared = {n: privml.share(p, owner=0) for n, p in weights.items()}
    zeros = {n: privml.share(torch.zeros_like(p), owner=0) for n, p in weights.items()}
    return shared, zeros, privml.share(x, owner=1), privml.share(y, owner=1)


def eager(net, x, y, steps):
    """Revealed weights and losses of the ordinary loop."""
    model, losses = privml.secret(copy.deepcopy(net), owner=0), []
    optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM)
    x, y = privml.share(x, owner=1), privml.share(y, owner=1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(privml.reveal(loss.detach()))
    return {n: privml.reveal(p.detach()) for n, p in model.named_parameters()}, torch.stack(losses)


@pytest.mark.parametrize("name", MODELS)
def test_a_compiled_step_gives_the_bits_of_eager_training(name, open_session):
    net, x, y = case(name)
    with open_session():
        expected, expected_losses = eager(net, x, y, 2)
    with open_session():
        parameters, momentum, xs, ys = arguments(net, x, y)
        step = privml.compile_step(stepping(net), parameters, momentum, xs, ys)
        losses = []
        for _ in range(2):
            parameters, momentum, loss = step(parameters, momentum, xs, ys)
            losses.append(privml.reveal(loss))
        assert torch.equal(torch.stack(losses), expected_losses) and losses[0] != losses[1]
        for n, value in expected.items():
            assert torch.equal(privml.reveal(parameters[n]), value), n


def eager_cost(meter, net, x, y):
    session = Session(meter, Numerics())
    session.ledger = Ledger(lambda: Snapshot.of(meter.counters()))
    with session:
        model = privml.secret(copy.deepcopy(net), owner=0)
        optimizer = torch.optim.SGD(model.parameters(), RATE, momentum=MOMENTUM)
        xs, ys = privml.share(x, owner=1), privml.share(y, owner=1)
        for _ in range(2):  # the second step has shared weights and momentum
            before = session.ledger.snapshot()
            optimizer.zero_grad()
            F.cross_entropy(model(xs), ys).backward()
            optimizer.step()
    return session.ledger.snapshot() - before


SPEC = SessionSpec.of(engine="twopc", ot="softspoken")
METERS = {"threepc": meter_of_three, "twopc": lambda: SPEC.backend.meter(SPEC)}
SETTINGS = {"threepc": {}, "twopc": {"ot": "softspoken"}}


@pytest.mark.parametrize("engine", METERS)
@pytest.mark.parametrize("name", ["pooled", "recurrent"])
def test_the_cost_is_predicted_exactly_and_lower_than_eager(name, engine):
    net, x, y = case(name)
    before = eager_cost(METERS[engine](), net, x, y)
    with privml.local(engine, **SETTINGS[engine]) as session:
        parameters, momentum, xs, ys = arguments(net, x, y)
        step = privml.compile_step(stepping(net), parameters, momentum, xs, ys)
        start, meter = session.ledger.snapshot(), METERS[engine]()
        first = step.cost(meter, parameters, momentum, xs, ys)
        parameters, momentum, _ = step(parameters, momentum, xs, ys)
        middle = session.ledger.snapshot()
        second = step.cost(meter, parameters, momentum, xs, ys)
        step(parameters, momentum, xs, ys)
        for told, real in ((first, middle - start), (second, session.ledger.snapshot() - middle)):
            assert real.online.bytes == told.online.bytes
            assert abs(real.online.depth - told.online.depth) <= 1  # a round may begin at either party
    assert second.online.depth < before.online.depth
    assert second.online.bytes <= before.online.bytes
    assert second.preprocess.bytes <= before.preprocess.bytes


@pytest.mark.parametrize("name", ["lenet", "motions"])
def test_rounds_of_networks(name):
    """Three parties, a batch of 32."""
    make, shape = {"lenet": (LeNet, (1, 28, 28)), "motions": (Motions, (25, 24))}[name]
    net, x = make(), torch.zeros(32, *shape)
    y = torch.zeros_like(net(x))
    before = eager_cost(meter_of_three(), net, x, y)
    session = Session(meter_of_three(), Numerics())
    with session:
        given = arguments(net, x, y)
        step = privml.compile_step(stepping(net), *given)
        parameters, momentum, _ = step(*given)
    after = step.cost(meter_of_three(), parameters, momentum, *given[2:])
    assert after.online.depth <= 0.8 * before.online.depth
    assert after.online.bytes <= before.online.bytes and after.preprocess.bytes <= before.preprocess.bytes


def test_a_loss_that_nobody_asks_for_takes_no_logarithm():
    net, x, y = case("pooled")
    with privml.local("plain") as session:
        given = arguments(net, x, y)
        asked = []
        compute = session.engine.function
        session.engine.function = lambda name, *args: asked.append(name) or compute(name, *args)
        for with_loss in (True, False):
            privml.compile_step(stepping(net, with_loss), *given)(*given)
            assert ("log" in asked) == with_loss
            asked.clear()


def test_public_constants_are_rounded_once():
    """The mean's factor of six samples is public here; eager training shares it, rounded to 16 fractional bits, and
    multiplies the labels by that: units of the last place of gradients where labels are no zeros and ones."""
    net, x, y = case("pooled")
    for labels, units in ((y[:6], 0), (torch.softmax(torch.randn(6, 4), 1), 4)):
        with privml.local("plain"):
            expected, _ = eager(net, x[:6], labels, 1)
            given = arguments(net, x[:6], labels)
            parameters, _, _ = privml.compile_step(stepping(net), *given)(*given)
            worst = max((privml.reveal(parameters[n]) - v).abs().max() for n, v in expected.items())
        assert worst <= units * 2.0**-16


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.lstm(x)[0][:, -1])


def test_gradients_of_an_lstm_differ_by_units_per_time_step():
    torch.manual_seed(0)
    net, x, y = Gated(), torch.randn(8, 3, 3), F.one_hot(torch.arange(8) % 4, 4).float()
    with privml.local("plain"):
        model = privml.secret(copy.deepcopy(net), owner=0)
        F.cross_entropy(model(privml.share(x, owner=1)), privml.share(y, owner=1)).backward()
        weights, _, xs, ys = arguments(net, x, y)
        step = privml.compile_step(
            lambda w, x, y: grad(lambda p: F.cross_entropy(functional_call(net, p, (x,)), y))(w), weights, xs, ys
        )
        found = step(weights, xs, ys)
        for name, parameter in model.named_parameters():
            difference = (privml.reveal(found[name]) - privml.reveal(parameter.grad)).abs().max()
            assert difference <= (3 * 2.0**-16 if name == "lstm.weight_hh_l0" else 0), name


def test_where_a_pooled_zero_sends_its_gradient():
    """A window's largest value is exactly zero: compiled steps send the gradient to it, eager ones to the window's
    first place, whose own ReLU may stop it."""
    image = torch.tensor([[-1.0, 0.0], [-1.0, -2.0]]).view(1, 1, 2, 2)

    def gradient(x):
        return grad_and_value(lambda v: F.max_pool2d(F.relu(v), 2).sum())(x)

    with privml.local("plain"):
        x = privml.share(image)
        found, value = privml.compile_step(gradient, x)(x)
        assert privml.reveal(found).flatten().tolist() == [0, 1, 0, 0] and privml.reveal(value) == 0
        x = privml.share(image.clone().requires_grad_())
        F.max_pool2d(F.relu(x * 1.0), 2).sum().backward()
        assert privml.reveal(x.grad).flatten().tolist() == [0, 0, 0, 0]


def test_public_arguments_stay_public():
    def step(w, x, rate):
        return w - rate * grad(lambda v: ((x * v) ** 2).mean())(w)

    with privml.local("plain"):
        w, x = privml.share(torch.tensor([1.0, -2.0])), privml.share(torch.tensor([0.5, 0.25]), owner=1)
        compiled = privml.compile_step(step, w, x, torch.tensor(0.5))
        for rate in (0.5, 0.25):
            expected = step(torch.tensor([1.0, -2.0]), torch.tensor([0.5, 0.25]), torch.tensor(rate))
            assert (privml.reveal(compiled(w, x, torch.tensor(rate))) - expected).abs().max() < 1e-3


def test_a_compiled_step_runs_in_clear_too():
    net, x, y = case("pooled")
    weights = {n: p.detach() for n, p in net.named_parameters()}
    zeros = {n: torch.zeros_like(p) for n, p in weights.items()}
    step = privml.compile_step(stepping(net), weights, zeros, x, y)
    pairs = zip(step(weights, zeros, x, y)[0].values(), stepping(net)(weights, zeros, x, y)[0].values(), strict=True)
    for mine, theirs in pairs:
        assert (mine - theirs).abs().max() < 1e-6


def test_wrong_steps_and_arguments_are_refused():
    with privml.local("plain"):
        x = privml.share(torch.ones(3))
        step = privml.compile_step(lambda v: v * v, x)
        with pytest.raises(privml.errors.InvalidInput, match="compile it again"):
            step(privml.share(torch.ones(4)))
        with pytest.raises(privml.errors.InvalidInput, match="branch on no tensor's value"):
            privml.compile_step(lambda v: v if v.sum() > 0 else -v, x)
        with pytest.raises(privml.errors.InvalidInput, match="takes tensors"):
            privml.compile_step(lambda v, n: v * n, x, 3)
        with pytest.raises(privml.errors.UnsupportedOperator, match="digamma"):
            privml.compile_step(torch.digamma, x)


def test_nodes_beyond_the_threads_that_there_may_be_begin_later(monkeypatch):
    def step(x):
        return [x * x, x.exp(), x.tanh(), (x * 2).sigmoid()]

    with privml.local("plain") as session:
        x = privml.share(torch.linspace(-1, 1, 5)) + privml.share(torch.zeros(5), owner=1)
        found, open_nodes = [], []
        compiled, function = privml.compile_step(step, x), session.engine.function

        def counting(*args):
            open_nodes[-1].add(sum(thread.name.startswith("node") for thread in threading.enumerate()))
            return function(*args)

        session.engine.function = counting
        for most in (1024, 2, 1):
            monkeypatch.setattr(batched, "_MOST_OPEN", most)
            open_nodes.append(set())
            found.append(torch.stack([privml.reveal(value) for value in compiled(x)]))
        assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
        assert max(open_nodes[0]) > 2 and max(open_nodes[1]) == 2 and open_nodes[2] == {1}


def test_an_error_within_a_step_names_its_node():
    with privml.local("plain") as session:
        x = privml.share(torch.ones(3))
        step = privml.compile_step(lambda v: v.tanh(), x)
        session.engine.function = lambda *args: (_ for _ in ()).throw(ValueError("no such function"))
        with pytest.raises(ValueError, match="no such function") as raised:
            step(x)
        assert raised.value.__notes__ == ["in layer 'tanh' (aten.tanh.default)"]


def test_an_error_within_a_step_ends_all_that_waits():
    with privml.local("plain") as session:
        x = privml.share(torch.ones(3))
        step = privml.compile_step(lambda v: (v * v, v.exp(), v.tanh()), x)
        session.engine.function = lambda *args: (_ for _ in ()).throw(ValueError("no such function"))
        with pytest.raises(ValueError, match="no such function"):
            step(x)
