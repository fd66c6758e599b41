# SPDX-License-Identifier: Apache-2.0
"""One row of ``compare_spu.py`` on SPU: ``spu_rows.py ROW PROTOCOL RUNS``, run by an interpreter that has ``spu``.

All parties are threads of this process, as privml's are; weights belong to party 0, inputs to party 1. Prints the
largest error against float; SPU's own log on the same output tells seconds and bytes.
"""

from __future__ import annotations

import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
from spu import api, libspu
from spu.utils import frontend

RANDOM = np.random.default_rng(0)


def normal(*shape, size=1.0):
    return (RANDOM.standard_normal(shape) * size).astype(np.float32)


def dense(inputs, outputs):
    return normal(inputs, outputs, size=inputs**-0.5)


def kernel(inputs, outputs, size):
    return normal(size, size, inputs, outputs, size=(inputs * size * size) ** -0.5)


# ---- networks: a list of weights and a function of (weights, input)
def layer_norm(x):
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered * centered).mean(-1, keepdims=True) + 1e-5)


def block(weights, x, heads=4):
    length, width = x.shape

    def split(y):
        return y.reshape(length, heads, width // heads).transpose(1, 0, 2)

    q, k, v, out, up, down = weights
    q, k, v = split(x @ q), split(x @ k), split(x @ v)
    scores = jax.nn.softmax(q @ k.transpose(0, 2, 1) * (width // heads) ** -0.5)
    x = layer_norm(x + (scores @ v).transpose(1, 0, 2).reshape(length, width) @ out)
    return layer_norm(x + jax.nn.gelu(x @ up, approximate=True) @ down)


def conv(x, w, stride=1, padding="SAME"):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


LENET = [kernel(1, 6, 5), kernel(6, 16, 5), dense(400, 120), dense(120, 84), dense(84, 10)]


def lenet(weights, x):
    x = pool(jax.nn.relu(conv(x, weights[0])))
    x = pool(jax.nn.relu(conv(x, weights[1], padding="VALID")))
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(jax.nn.relu(x @ weights[2]) @ weights[3])
    return x @ weights[4]


def lenet_step(weights, x, labels):
    def loss(w):
        scores = lenet(w, x)
        return (jax.nn.logsumexp(scores, 1) - (scores * labels).sum(1)).mean()

    return [w - 0.1 * g for w, g in zip(weights, jax.grad(loss)(weights), strict=True)]


def resnet_weights():
    weights, channels = [kernel(3, 64, 3)], 64
    for stage in range(4):
        outputs = 64 << stage
        for index in range(2):
            weights += [kernel(channels, outputs, 3), kernel(outputs, outputs, 3)]
            if stage and not index:
                weights.append(kernel(channels, outputs, 1))
            channels = outputs
    return [*weights, dense(512, 10)]


def resnet(weights, x):
    """Batch norms are folded into the kernels, as privml's conversion does."""
    rest = iter(weights[1:-1])
    x = jax.nn.relu(conv(x, weights[0]))
    for stage in range(4):
        for index in range(2):
            stride = 2 if stage and not index else 1
            y = jax.nn.relu(conv(x, next(rest), stride))
            y = conv(y, next(rest))
            x = jax.nn.relu(y + (conv(x, next(rest), stride) if stride == 2 else x))
    return x.mean((1, 2)) @ weights[-1]


# ---- rows: (function, weights, inputs)
ROWS = {
    "less": lambda: (lambda x: (x < 0).astype(jnp.float32), (), (normal(2**17),)),
    "relu": lambda: (jax.nn.relu, (), (normal(2**17),)),
    "sigmoid": lambda: (jax.nn.sigmoid, (), (normal(2**17, size=2),)),
    "gelu": lambda: (lambda x: jax.nn.gelu(x, approximate=True), (), (normal(2**17, size=2),)),
    "gelu_2pc": lambda: (lambda x: jax.nn.gelu(x, approximate=True), (), (normal(2**15, size=2),)),
    "softmax": lambda: (jax.nn.softmax, (), (normal(128, 768, size=2),)),
    "matmul": lambda: (lambda w, x: x @ w, (dense(768, 768),), (normal(128, 768),)),
    "block": lambda: (
        block,
        ([dense(128, 128), dense(128, 128), dense(128, 128), dense(128, 128), dense(128, 512), dense(512, 128)],),
        (normal(32, 128),),
    ),
    "lenet": lambda: (lenet, (LENET,), (RANDOM.random((1, 28, 28, 1)).astype(np.float32),)),
    "resnet18": lambda: (resnet, (resnet_weights(),), (normal(1, 32, 32, 3),)),
    "lenet_step": lambda: (
        lenet_step,
        (LENET,),
        (RANDOM.random((32, 28, 28, 1)).astype(np.float32), np.eye(10, dtype=np.float32)[np.arange(32) % 10]),
    ),
}
PARTIES = {"CHEETAH": 2, "ABY3": 3}
# The longest that a party waits for another, which may compute for long.
DEADLINE_MS = 600_000


def main(name, protocol, runs):
    function, weights, inputs = ROWS[name]()
    parties = PARTIES[protocol]
    config = libspu.RuntimeConfig(protocol=getattr(libspu.ProtocolKind, protocol), field=libspu.FieldType.FM64)
    config.enable_pphlo_profile = True
    io = api.Io(parties, config)
    flat, _ = jax.tree_util.tree_flatten((*weights, *inputs))
    owned_by_server = len(jax.tree_util.tree_flatten(weights)[0])
    owners = [0 if i < owned_by_server else 1 for i in range(len(flat))]
    secret = libspu.Visibility.VIS_SECRET
    shares = [io.make_shares(np.asarray(x), secret, owner) for x, owner in zip(flat, owners, strict=True)]
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        function,
        (*weights, *inputs),
        {},
        [f"in{i}" for i in range(len(flat))],
        [secret] * len(flat),
        lambda out: [f"out{i}" for i in range(len(out))],
    )
    description = libspu.link.Desc()
    description.recv_timeout_ms = DEADLINE_MS
    for rank in range(parties):
        description.add_party(f"id{rank}", f"thread{rank}")
    results = [[] for _ in range(parties)]

    def party(rank):
        runtime = api.Runtime(libspu.link.create_mem(description, rank), config)
        for name, share in zip(executable.input_names, shares, strict=True):
            runtime.set_var(name, share[rank])
        for _ in range(runs):
            runtime.run(executable)
        results[rank] = [runtime.get_var(name) for name in executable.output_names]

    threads = [threading.Thread(target=party, args=(rank,)) for rank in range(parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [io.reconstruct(list(parts)) for parts in zip(*results, strict=True)]
    clear = jax.tree_util.tree_flatten(jax.jit(function)(*weights, *inputs))[0]
    error = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in zip(found, clear, strict=True))
    print(f"largest error {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
