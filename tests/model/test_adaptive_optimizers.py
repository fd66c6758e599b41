# SPDX-License-Identifier: Apache-2.0
"""Adam, AdamW and RMSprop as torch has them follow clear training in fixed point; what cannot is refused."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import privml
from privml.errors import ConfigError

X = torch.randn(32, 6, generator=torch.Generator().manual_seed(1))
Y = torch.sin(X @ torch.randn(6, 1, generator=torch.Generator().manual_seed(2))) * 2 + 0.5


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))


def step(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def curve(kind, steps, options, model, x, y, show=lambda loss: loss):
    optimizer = kind(model.parameters(), **options)
    return torch.stack([show(step(model, optimizer, x, y)) for _ in range(steps)])


def secret_curve(kind, steps, options):
    model = privml.secret(network(), owner=0)
    x, y = privml.share(X, owner=0), privml.share(Y, owner=1)
    return curve(kind, steps, options, model, x, y, privml.reveal)


CASES = {
    "adam": (torch.optim.Adam, {}),
    "adamw": (torch.optim.AdamW, {}),
    "rmsprop": (torch.optim.RMSprop, {"lr": 0.002}),
    "faster": (torch.optim.Adam, {"lr": 0.01}),
    "eps": (torch.optim.Adam, {"lr": 0.01, "eps": 1e-3}),
    "large_eps": (torch.optim.Adam, {"lr": 0.01, "eps": 1.0}),
    "decay": (torch.optim.Adam, {"lr": 0.01, "weight_decay": 0.1, "amsgrad": True}),
    "decoupled": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1, "betas": (0.8, 0.99)}),
    "momentum": (torch.optim.RMSprop, {"lr": 0.001, "momentum": 0.9}),
    "maximize": (torch.optim.Adam, {"lr": 0.001, "maximize": True}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_optimizers_of_torch_follow_clear_training(case):
    kind, options = CASES[case]
    clear = curve(kind, 100, options, network(), X, Y)
    with privml.local("plain"):
        secret = secret_curve(kind, 100, options)
    assert ((secret - clear).abs() / clear).max() < 0.02
    assert (clear[-1] - clear[0]).abs() > 0.05


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
def test_they_do_on_every_engine_as_their_oracle_does(kind, open_session, open_oracle):
    clear = curve(kind, 6, {"lr": 0.005}, network(), X, Y)
    with open_session():
        secret = secret_curve(kind, 6, {"lr": 0.005})
    with open_oracle():
        expected = secret_curve(kind, 6, {"lr": 0.005})
    assert torch.equal(secret, expected)
    assert ((secret - clear).abs() / clear).max() < 0.005


@pytest.mark.parametrize("scale", [16, 20, 24, 28])
def test_every_scale_serves(scale):
    clear = curve(torch.optim.Adam, 50, {"lr": 0.01}, network(), X, Y)
    with privml.local("plain", scale=scale):
        secret = secret_curve(torch.optim.Adam, 50, {"lr": 0.01})
    assert ((secret - clear).abs() / clear).max() < 0.02


def test_changes_below_a_unit_of_the_weights_add_up():
    """A hundred changes of 2^-20 move weights of 16 fractional bits."""
    with privml.local("plain"):
        weight = nn.Parameter(privml.share(torch.zeros(3)))
        optimizer = torch.optim.Adam([weight], lr=2.0**-20)
        for _ in range(128):
            optimizer.zero_grad()
            (weight * torch.tensor([1.0, -2.0, 0.0])).sum().backward()
            optimizer.step()
        moved = privml.reveal(weight.detach())
    assert torch.equal(moved, torch.tensor([-1.0, 1.0, 0.0]) * 2**-13)


def test_a_closure_may_compute_the_gradients():
    with privml.local("plain"):
        results = []
        for closed in (False, True):
            model = privml.secret(network(), owner=0)
            x, y = privml.share(X, owner=0), privml.share(Y, owner=1)
            optimizer = torch.optim.Adam(model.parameters())

            def closure(model=model, optimizer=optimizer, x=x, y=y):
                optimizer.zero_grad()
                loss = F.mse_loss(model(x), y)
                loss.backward()
                return loss

            for _ in range(2):
                optimizer.step(closure) if closed else step(model, optimizer, x, y)
            assert all(p.grad is not None for p in model.parameters())
            results.append(privml.reveal(model[0].weight.detach()))
    assert torch.equal(*results)


def test_hooks_of_the_optimizer_change_gradients_before_the_step():
    def halve(optimizer, args, kwargs):
        for parameter in optimizer.param_groups[0]["params"]:
            parameter.grad.mul_(0.0 if parameter.dim() == 1 else 0.5)

    def biases(model, x, y):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        optimizer.register_step_pre_hook(halve)
        for _ in range(3):
            step(model, optimizer, x, y)
        return model[0].bias.detach()

    with privml.local("plain"):
        found = biases(privml.secret(network(), owner=0), privml.share(X, owner=0), privml.share(Y, owner=1))
        assert (privml.reveal(found) - network()[0].bias).abs().max() < 1e-3
    assert torch.equal(biases(network(), X, Y), network()[0].bias)


def test_state_of_a_training_in_clear_is_refused():
    model = network()
    trained = torch.optim.Adam(model.parameters())
    step(model, trained, X, Y)
    with privml.local("plain"):
        secret = privml.secret(model, owner=0)
        optimizer = torch.optim.Adam(secret.parameters())
        optimizer.load_state_dict(trained.state_dict())
        with pytest.raises(ConfigError, match="exp_avg.*in the clear"):
            step(secret, optimizer, privml.share(X, owner=0), privml.share(Y, owner=1))


def test_training_goes_on_from_a_saved_state_as_if_it_had_not_stopped():
    with privml.local("plain"):
        model, x, y = privml.secret(network(), owner=0), privml.share(X, owner=0), privml.share(Y, owner=1)
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            step(model, optimizer, x, y)
        other = copy.deepcopy(model)
        again = torch.optim.AdamW(other.parameters())
        again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        for m, o in ((model, optimizer), (other, again)):
            for _ in range(3):
                step(m, o, x, y)
        for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.equal(privml.reveal(mine.detach()), privml.reveal(theirs.detach()))


REFUSED = {
    "narrow": (torch.optim.Adam, {}, {"bits": 48}, r"eps=1e-08, scale=16.*bits=48.*bits=64"),
    "coarse": (torch.optim.Adam, {}, {"scale": 8}, r"eps=1e-08.*scale=12 to 28, got scale=8.*scale=16"),
    "fine": (torch.optim.RMSprop, {}, {"scale": 40}, r"eps=1e-08.*scale=12 to 28, got scale=40"),
    "eps": (torch.optim.AdamW, {"eps": 8.0}, {}, r"scale=16: eps=8 must be at most 1; 1e-8 works"),
    "centered": (torch.optim.RMSprop, {"centered": True}, {}, "centered=True"),
    "nadam": (torch.optim.NAdam, {}, {}, r"NAdam with eps=1e-08 .* scale=16 .*scale=24 or more and pass eps=1e-3"),
    "radam": (torch.optim.RAdam, {}, {"scale": 24}, r"RAdam with eps=1e-08 .* scale=24"),
    "adagrad": (torch.optim.Adagrad, {}, {}, r"Adagrad with eps=1e-10"),
    "adadelta": (torch.optim.Adadelta, {}, {}, r"Adadelta with eps=1e-06"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_converge_is_refused_before_anything_is_sent(case, open_session):
    kind, options, numerics, message = REFUSED[case]
    with open_session(**numerics) as session:
        weight = nn.Parameter(privml.share(torch.ones(3)))
        optimizer = kind([weight], **options)
        weight.grad = privml.share(torch.ones(3), owner=1)
        before = session.engine.counters() if hasattr(session.engine, "counters") else None
        with pytest.raises(ConfigError, match=message):
            optimizer.step()
        if before is not None:
            assert session.engine.counters()["online"]["sent"] == before["online"]["sent"]
        assert torch.equal(privml.reveal(weight.detach()), torch.ones(3)) and weight.grad is not None


def test_other_optimizers_learn_with_the_values_that_the_error_names():
    options = {"lr": 0.02, "eps": 1e-3}
    clear = curve(torch.optim.NAdam, 6, options, network(), X, Y)
    with privml.local("plain", scale=24):
        secret = secret_curve(torch.optim.NAdam, 6, options)
    assert ((secret - clear).abs() / clear).max() < 0.01 and clear[-1] < clear[0] - 0.05
