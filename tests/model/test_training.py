# SPDX-License-Identifier: Apache-2.0
"""Gradients and optimizers on secret tensors, on every engine, against float64."""

import copy

import pytest
import torch
import torch.nn.functional as F
from op_cases import real, whole
from torch import nn

import privml


def gradient_case(function, *inputs, tolerance=2e-3):
    return function, inputs, tolerance


GRADIENTS = {
    "linear": gradient_case(lambda x, w, b: F.linear(x, w, b), real(3, 4), real(2, 4), real(2)),
    "mul": gradient_case(lambda x, y: x * y, real(3, 4), real(3, 4)),
    "broadcast": gradient_case(lambda x, y: x * y + y, real(3, 4), real(4)),
    "matmul": gradient_case(lambda x, y: torch.bmm(x, y), real(2, 3, 4), real(2, 4, 2)),
    "conv2d": gradient_case(lambda x, w, b: F.conv2d(x, w, b), real(2, 3, 5, 6), real(4, 3, 3, 2), real(4)),
    "conv2d_stride": gradient_case(
        lambda x, w: F.conv2d(x, w, stride=2, padding=1), real(2, 3, 6, 5), real(4, 3, 3, 3)
    ),
    "conv2d_dilation": gradient_case(
        lambda x, w: F.conv2d(x, w, dilation=2, padding=(1, 2)), real(2, 3, 6, 5), real(4, 3, 2, 2)
    ),
    "conv2d_groups": gradient_case(
        lambda x, w, b: F.conv2d(x, w, b, groups=2, stride=(2, 1)), real(2, 4, 6, 5), real(6, 2, 3, 2), real(6)
    ),
    "conv1d": gradient_case(lambda x, w: F.conv1d(x, w, stride=2, padding=1), real(2, 3, 7), real(4, 3, 3)),
    "relu": gradient_case(torch.relu, real(9) + 2**-10),
    "relu_in_place": gradient_case(lambda x: F.relu(x * 2, inplace=True), real(9) + 2**-10),
    "leaky_relu": gradient_case(lambda x: F.leaky_relu(x, 0.1), real(9) + 2**-10),
    "relu6": gradient_case(F.relu6, real(9, size=9.0) + 2**-10),
    "hardsigmoid": gradient_case(F.hardsigmoid, real(9, size=5.0) + 2**-10),
    "hardswish": gradient_case(F.hardswish, real(9, size=5.0) + 2**-10),
    "abs": gradient_case(torch.abs, real(9) + 2**-10),
    "clamp": gradient_case(lambda x: x.clamp(-1, 2), real(9)),
    "where": gradient_case(lambda x, y: torch.where(x > y, x * 2, y), real(9), real(9)),
    "max_pool2d": gradient_case(lambda x: F.max_pool2d(x, 2), real(2, 3, 6, 4)),
    "max_pool2d_overlap": gradient_case(lambda x: F.max_pool2d(x, 3, 2, 1), real(2, 3, 7, 6)),
    "avg_pool2d": gradient_case(lambda x: F.avg_pool2d(x, 2), real(2, 3, 6, 4)),
    "avg_pool2d_padding": gradient_case(lambda x: F.avg_pool2d(x, 3, 2, 1), real(2, 3, 7, 6)),
    "adaptive_avg_pool2d": gradient_case(lambda x: F.adaptive_avg_pool2d(x, (2, 3)), real(2, 3, 5, 7)),
    "avg_pool3d": gradient_case(lambda x: F.avg_pool3d(x, 2, 1, 1, count_include_pad=False), real(1, 2, 3, 4, 3)),
    "interpolate": gradient_case(lambda x: F.interpolate(x, size=(5, 7), mode="bilinear"), real(1, 2, 3, 4)),
    "interpolate_corners": gradient_case(
        lambda x: F.interpolate(x, size=7, mode="linear", align_corners=True), real(1, 2, 4)
    ),
    "mean_and_slices": gradient_case(lambda x: x[:, 1:].mean(1) + x[0, 0], real(3, 4)),
    "cat_and_stack": gradient_case(lambda x, y: torch.stack([torch.cat([x, y]), torch.cat([y, x])]), real(3), real(3)),
    "embedding": gradient_case(lambda w: F.embedding(torch.tensor([2, 0, 2]), w), real(3, 4)),
    "index": gradient_case(lambda x: x[torch.tensor([2, 0, 2])], real(3, 4)),
    "prelu": gradient_case(lambda x, w: F.prelu(x, w), real(2, 3, 4) + 2**-10, real(3)),
    "mse_loss": gradient_case(F.mse_loss, real(3, 4), real(3, 4)),
    "huber_loss": gradient_case(F.huber_loss, real(3, 4), real(3, 4)),
    "pow": gradient_case(lambda x: x**3, real(5, size=2.0)),
    "exp": gradient_case(torch.exp, real(5, size=2.0)),
    "log": gradient_case(torch.log, real(5).abs() + 0.5),
    "sqrt": gradient_case(torch.sqrt, real(5).abs() + 0.5),
    "rsqrt": gradient_case(torch.rsqrt, real(5).abs() + 0.5),
    "div": gradient_case(lambda x, y: x / y, real(5), real(5).abs() + 0.5),
    "reciprocal": gradient_case(torch.reciprocal, real(5).abs() + 0.5),
    "pow_half": gradient_case(lambda x: x**1.5, real(5).abs() + 0.5),
    "sigmoid": gradient_case(torch.sigmoid, real(9)),
    "tanh": gradient_case(torch.tanh, real(9)),
    "erf": gradient_case(torch.erf, real(9)),
    "sin": gradient_case(torch.sin, real(9)),
    "tan": gradient_case(torch.tan, real(9, size=1.25)),
    "sinh": gradient_case(torch.sinh, real(9, size=2.0)),
    "cosh": gradient_case(torch.cosh, real(9, size=2.0)),
    "silu": gradient_case(F.silu, real(9)),
    "gelu": gradient_case(F.gelu, real(9)),
    "gelu_tanh": gradient_case(lambda x: F.gelu(x, approximate="tanh"), real(9)),
    "softplus": gradient_case(F.softplus, real(9)),
    "logsigmoid": gradient_case(F.logsigmoid, real(9)),
    "elu": gradient_case(F.elu, real(9) + 2**-10),
    "elu_in_place": gradient_case(lambda x: F.elu(x * 1.5, 0.5, inplace=True), real(9) + 2**-10),
    "mish": gradient_case(F.mish, real(9)),
    "softmax": gradient_case(lambda x: x.softmax(1), real(3, 4)),
    "log_softmax": gradient_case(lambda x: x.log_softmax(1), real(3, 4)),
    "logsumexp": gradient_case(lambda x: x.logsumexp(1), real(3, 4)),
    "cross_entropy": gradient_case(lambda x: F.cross_entropy(x, torch.tensor([1, 0, 3])), real(3, 4)),
    "binary_cross_entropy": gradient_case(
        lambda x: F.binary_cross_entropy_with_logits(x, torch.tensor([0.0, 1.0, 0.25])), real(3)
    ),
    "attention_masked": gradient_case(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, attn_mask=torch.ones(3, 3).tril().bool()),
        real(1, 3, 4),
        real(1, 3, 4),
    ),
    "attention_grouped": gradient_case(
        lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True),
        real(1, 4, 3, 2),
        real(1, 2, 3, 2),
    ),
    "rotary": gradient_case(
        lambda x: x * torch.tensor([0.5, 0.25]) + torch.cat([-x[:, 1:], x[:, :1]], 1) * torch.tensor([0.75, 1.5]),
        real(3, 2),
    ),
    "attention": gradient_case(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v), real(1, 3, 4), real(1, 3, 4), real(1, 3, 4)
    ),
    "layer_norm": gradient_case(
        lambda x, w, b: F.layer_norm(x, (4,), w, b), real(3, 4), real(4), real(4), tolerance=5e-3
    ),
    "group_norm": gradient_case(
        lambda x, w, b: F.group_norm(x, 2, w, b), real(2, 4, 3), real(4), real(4), tolerance=5e-3
    ),
    "batch_norm": gradient_case(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True), real(4, 3, 2), real(3), real(3), tolerance=5e-3
    ),
    "rms_norm": gradient_case(lambda x, w: F.rms_norm(x, (4,), w), real(3, 4), real(4), tolerance=5e-3),
    "normalize": gradient_case(lambda x: F.normalize(x, dim=1), real(3, 4), tolerance=5e-3),
    "std": gradient_case(lambda x: x.std(1), real(3, 4)),
    "dropout": gradient_case(lambda x: F.dropout(x * 1.0, 0.5, training=False), real(5)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient(name, open_session):
    function, inputs, tolerance = GRADIENTS[name]
    leaves = [v.double().requires_grad_() for v in inputs]
    out = function(*leaves)
    probe = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).view(out.shape)
    probe = (probe * 64).round() / 64
    (out * probe).sum().backward()
    with open_session():
        secrets = [privml.share(v.clone().requires_grad_(), owner=i % 2) for i, v in enumerate(inputs)]
        (function(*secrets) * probe.float()).sum().backward()
        for secret, leaf in zip(secrets, leaves, strict=True):
            assert secret.grad.shape == leaf.shape
            assert (privml.reveal(secret.grad).double() - leaf.grad).abs().max() < tolerance


def small_net():
    torch.manual_seed(5)
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 8), nn.LeakyReLU(),
        nn.Linear(8, 4),
    )  # fmt: skip


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-2),
    "nesterov": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, nesterov=True),
    "foreach": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, foreach=True),
    "dampening": lambda p: torch.optim.SGD(p, 0.05, momentum=0.5, dampening=0.25, maximize=False),
}


def train(net, optimizer, wrap, steps=5):
    generator = torch.Generator().manual_seed(1)
    optimizer = OPTIMIZERS[optimizer](net.parameters())
    losses = []
    for _ in range(steps):
        x, y = torch.randn(6, 1, 8, 8, generator=generator), torch.randn(6, 4, generator=generator)
        optimizer.zero_grad()
        loss = F.mse_loss(net(wrap(x)), wrap(y))
        loss.backward()
        optimizer.step()
        losses.append((privml.reveal(loss) if isinstance(loss, privml.SecretTensor) else loss).item())
    return torch.tensor(losses)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_follows_float(optimizer, open_session):
    clear = small_net()
    expected = train(clear, optimizer, lambda v: v)
    with open_session():
        secret = privml.secret(small_net(), owner=0)
        losses = train(secret, optimizer, lambda v: privml.share(v, owner=1))
        assert (losses - expected).abs().max() < 5e-3 and losses[-1] != losses[0]
        for mine, theirs in zip(secret.parameters(), clear.parameters(), strict=True):
            assert isinstance(mine, nn.Parameter)
            assert (privml.reveal(mine) - theirs).abs().max() < 5e-3


def test_clipping_and_accumulation(open_session):
    net = small_net()
    x, y = torch.randn(4, 1, 8, 8), torch.randn(4, 4)
    with open_session():
        secret = privml.secret(copy.deepcopy(net))
        for module, wrap in ((net, lambda v: v), (secret, privml.share)):
            for _ in range(2):
                F.mse_loss(module(wrap(x)), wrap(y)).backward()
            nn.utils.clip_grad_value_(module.parameters(), 0.05)
        for mine, theirs in zip(secret.parameters(), net.parameters(), strict=True):
            assert (privml.reveal(mine.grad) - theirs.grad).abs().max() < 1e-3
        secret.zero_grad(set_to_none=False)
        assert all(privml.reveal(p.grad).eq(0).all() for p in secret.parameters())


def test_the_backward_of_relu_and_pooling_compares_nothing(open_session):
    """Their by-products survive autograd's saving, and stand in for a second comparison."""
    with open_session() as session:
        x = privml.share(real(1, 1, 4, 4).requires_grad_())
        y = F.max_pool2d(torch.relu(x * 1.5), 2).sum()
        compared = []
        for name in ("less_than_zero", "max_last", "relu"):
            engine = session.engine_for(x.placement)
            setattr(engine, name, lambda *a, n=name: compared.append(n))
        y.backward()
        assert compared == [] and isinstance(x.grad, privml.SecretTensor)


@pytest.mark.parametrize("form", ["function", "module", "operator"])
def test_dropout_masks_are_what_all_parties_draw(form, open_session):
    x0 = whole(200).float() + 0.5
    apply = {
        "function": lambda x: F.dropout(x, 0.5),
        "module": nn.Dropout(0.5),
        "operator": lambda x: torch.ops.aten.native_dropout(x, 0.5, True)[0],
    }[form]
    results = []
    for _ in range(2):
        with open_session() as session:
            session.common_seed = 11
            x = privml.share(x0.clone().requires_grad_())
            y = apply(x)
            y.sum().backward()
            results.append(privml.reveal(y).detach())
            kept = results[-1] != 0
            assert torch.equal(privml.reveal(x.grad), 2.0 * kept) and torch.equal(results[-1][kept], 2 * x0[kept])
    assert torch.equal(*results) and 0.3 < kept.float().mean() < 0.7


def test_dropout_of_channels(open_session):
    with open_session():
        y = privml.reveal(F.dropout2d(privml.share(torch.ones(8, 16, 3, 3)), 0.25))
    assert (y.amax((2, 3)) == y.amin((2, 3))).all() and 0.5 < (y != 0).float().mean() < 0.95


LOSSES = {
    "cross_entropy": (F.cross_entropy, F.one_hot(torch.arange(6) % 4, 4).float()),
    "class_numbers": (F.cross_entropy, torch.arange(6) % 4),
    "mse": (F.mse_loss, F.one_hot(torch.arange(6) % 4, 4).float()),
    "binary": (F.binary_cross_entropy_with_logits, F.one_hot(torch.arange(6) % 4, 4).float()),
}


def dense_net():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 4))


def fit(net, loss, x, y, make, schedule, steps=4):
    optimizer = make(net.parameters())
    scheduler = schedule(optimizer)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(net(x), y)
        value.backward()
        optimizer.step()
        scheduler.step()
        losses.append(float(privml.reveal(value.detach()) if isinstance(value, privml.SecretTensor) else value))
    return losses


SCHEDULES = {
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 4),
    "one_cycle": lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=5),
}


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_schedules_follow_clear_training(name, schedule, open_session):
    """Model of one party, features of both, labels of the other: three owners' values in one loss."""
    loss, y = LOSSES[name]
    x = torch.randn(6, 3, generator=torch.Generator().manual_seed(1))
    clear = dense_net()

    def make(parameters):
        return torch.optim.SGD(parameters, 0.2, momentum=0.9, weight_decay=1e-2)

    expected = fit(clear, loss, x, y, make, SCHEDULES[schedule])
    with open_session():
        model = privml.secret(dense_net(), owner=0)
        features = torch.cat([privml.share(x[:, :1], owner=0), privml.share(x[:, 1:], owner=1)], 1)
        losses = fit(model, loss, features, privml.share(y, owner=1), make, SCHEDULES[schedule])
        assert max(abs(a - b) for a, b in zip(losses, expected, strict=True)) < 5e-3 and losses[-1] != losses[0]
        for mine, theirs in zip(model.parameters(), clear.parameters(), strict=True):
            assert (privml.reveal(mine.detach()) - theirs).abs().max() < 5e-3


def no_schedule(optimizer):
    return torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)


def test_adam_of_torch_as_it_is_learns_in_floating_point():
    x, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(1)), torch.arange(6) % 4
    expected = fit(dense_net(), F.cross_entropy, x, y, lambda p: torch.optim.Adam(p, 0.05), no_schedule, 6)
    with privml.local("plain", floating="float32"):
        model = privml.secret(dense_net(), owner=0)
        targets = privml.share(F.one_hot(y, 4).float(), owner=1)
        losses = fit(
            model,
            F.cross_entropy,
            privml.share(x, owner=1),
            targets,
            lambda p: torch.optim.Adam(p, 0.05),
            no_schedule,
            6,
        )
    assert max(abs(a - b) for a, b in zip(losses, expected, strict=True)) < 1e-3
