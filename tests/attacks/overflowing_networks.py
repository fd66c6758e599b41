# SPDX-License-Identifier: Apache-2.0
"""Small networks whose legal inputs leave the rings that calibration chose."""

from __future__ import annotations

import warnings

import torch
import torch.nn.functional as F
from torch import nn

import privml

ROWS, TIMES = 12, 10


class Composed(nn.Module):
    """``function`` of the input and of linear layers with large weights."""

    def __init__(self, function, *sizes):
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in sizes)

    def forward(self, x):
        return self.function(x, *self.layers)


class Attention(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.query, self.key, self.value, self.out = (nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        scores = F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=self.causal)
        return self.out(scores.mean(1))


def _image(pool, features):
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), pool, nn.Flatten(), nn.Linear(features, 4)), (1, 8, 8)


def _vector(function, *sizes):
    return Composed(function, (6, 8), *(sizes or [(8, 3)])), (6,)


NETWORKS = {
    "average pool": lambda: _image(nn.AvgPool2d(2), 27),
    "average pool of nine": lambda: _image(nn.AvgPool2d(3), 12),
    "padded average pool": lambda: _image(nn.AvgPool2d(3, 2, 1), 27),
    "padded maximum pool": lambda: _image(nn.MaxPool2d(3, 2, 1), 27),
    "mean of an image": lambda: _image(nn.AdaptiveAvgPool2d(1), 3),
    "relu": lambda: (nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)), (6,)),
    "square": lambda: _vector(lambda x, a, b: b(a(x) ** 2)),
    "residual product": lambda: _vector(
        lambda x, a, b, c: c(torch.relu(a(x)) * torch.relu(b(x)) + torch.relu(a(x))), (6, 8), (8, 3)
    ),
    "division": lambda: _vector(lambda x, a, b: b((lambda z: z / (z.sum(1, keepdim=True) + 1))(torch.relu(a(x))))),
    "product with a mean": lambda: _vector(
        lambda x, a, b: b((lambda z: z * z.mean(1, keepdim=True))(torch.relu(a(x))))
    ),
    "product of matrices": lambda: _vector(
        lambda x, a, b: b((torch.relu(a(x)).unsqueeze(2) @ torch.relu(a(x)).unsqueeze(1)).mean(1))
    ),
    "softmax": lambda: _vector(lambda x, a, b: b(torch.softmax(a(x), 1))),
    "log softmax": lambda: _vector(lambda x, a, b: F.log_softmax(b(a(x)), 1)),
    "gelu": lambda: _vector(lambda x, a, b: b(F.gelu(a(x)))),
    "elu": lambda: _vector(lambda x, a, b: b(F.elu(a(x)))),
    "clamp": lambda: _vector(lambda x, a, b: b(F.relu6(a(x)) * a(x))),
    "choice": lambda: _vector(lambda x, a, b: b(torch.where(a(x) > 0.3, a(x), a(x).abs()))),
    "deviation": lambda: _vector(lambda x, a, b: b(a(x).reshape(-1, 4, 2).std(2)), (4, 3)),
    "layer norm": lambda: (nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)), (6,)),
    "norm of a sum": lambda: _vector(lambda x, a, b: b(F.layer_norm(a(x) + torch.cat([x, x[:, :2]], 1), (8,)))),
    "attention": lambda: (Attention(False), (5, 4)),
    "causal attention": lambda: (Attention(True), (5, 4)),
}


def overflowing(name, **numerics):
    """A program, and legal inputs that overflow in it: ``ROWS`` different ones, each ``TIMES`` times in a row."""
    torch.manual_seed(1)
    module, shape = NETWORKS[name]()
    for weight in module.parameters():
        if weight.dim() > 1:
            weight.data.mul_(4)
    generator = torch.Generator().manual_seed(5)
    seen = (torch.rand(64, *shape, generator=generator) * 2 - 1) * 0.02
    flat = seen.view(64, -1)
    for row in range(64):  # one large number each, so that inputs may be large and sums are not
        flat[row, row % flat.shape[1]] = -1.0 if row % 3 == 0 else 1.0
    coarse = {"margin": 1.0, "scale": 8, "weight_bits": 10, "accept": 0.05}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = privml.convert(module.eval(), calibration=seen, numerics={**coarse, **numerics})
    fmt = program.inputs[0].format
    top = (2 ** (fmt.bits - 1) - 1) / 2**fmt.scale
    x = (torch.rand(ROWS, *shape, generator=generator) * 2 - 1).sign() * top
    x[::2] *= torch.rand(ROWS // 2, *shape, generator=generator)
    return program, x.repeat_interleave(TIMES, 0)


def answers(program, x, engine, **settings):
    numerics = program.numerics
    with privml.local(engine, bits=numerics.bits, scale=numerics.scale, exp=numerics.exp, **settings) as session:
        return privml.reveal(program.run(session, x))
