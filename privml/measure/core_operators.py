# SPDX-License-Identifier: Apache-2.0
"""The operators that suites name: each prepares random inputs and returns the call to be timed.

The inputs are uniform shares, so every protocol runs on typical data; numpy and the core are all this needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from privml.engines.twopc.linear import Linear, byte_price, layout_price

Action = Callable[[], Any]
Params = Mapping[str, Any]


class Inputs:
    """Uniform ring elements, bits and tables of one party."""

    def __init__(self, rank: int) -> None:
        self.random = np.random.default_rng(rank + 1)

    def ring(self, bits: int, *shape: int) -> np.ndarray:
        high = np.iinfo(np.uint64).max if bits == 64 else 2**bits - 1
        return self.random.integers(0, high, size=shape, dtype=np.uint64, endpoint=True)

    def bits(self, *shape: int) -> np.ndarray:
        return self.random.integers(0, 2, size=shape, dtype=np.uint8)

    def public(self, bits: int, *shape: int) -> np.ndarray:
        return np.random.default_rng(0).integers(0, 2**bits, size=shape, dtype=np.uint64)


def prepare(name: str, core: Any, session: Any, rank: int, n: int, params: Params) -> Action:
    """The call of operator ``name`` on ``n`` instances; raises KeyError for an unknown name. ``params``: those of the
    suite's row, ``seconds_per_byte`` of the link, by which products by ciphertexts are planned as in the engine, and
    ``linear`` of the engine."""
    libraries = {"function": core.fixmath, "float_function": core.secfloat, "softmax": core}
    library = libraries.get(name, core.twopc)
    return OPERATORS[name](library, session, rank, Inputs(rank), n, params)


def unary(function: str, *names: str) -> Callable[..., Action]:
    """function(session, x of params['bits'] bits, *params)."""

    def build(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
        x = inputs.ring(params["bits"], n)
        arguments = [params[name] for name in ("bits", *names)]
        return lambda: getattr(core, function)(session, x, *arguments)

    return build


def and_bits(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    a, b = inputs.bits(n), inputs.bits(n)
    return lambda: core.and_bits(session, a, b)


def multiplex(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    bit, x = inputs.bits(n), inputs.ring(params["bits"], n)
    return lambda: core.multiplex(session, bit, x, params["bits"])


def bits_to_ring(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    bit = inputs.bits(n)
    return lambda: core.bits_to_ring(session, bit, params["bits"])


def maximum_windows(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    x = inputs.ring(params["bits"] - 2, n, params["window"])
    return lambda: core.maximum_last(session, x, params["bits"])


def multiply(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    bits = params["bits"]
    x, y, form = inputs.ring(bits, n), inputs.ring(bits, n), (bits, True, False, False)
    return lambda: core.multiply(session, x, form, y, form, params["out_bits"])


def lookup(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    table = inputs.public(params["out_bits"], 2 ** params["bits"])
    index = inputs.ring(params["bits"], n)
    return lambda: core.lookup(session, table, index, params["bits"], params["out_bits"])


def transfer(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    bits, width = params["bits"], params["out_bits"]
    mine = inputs.ring(width, n << bits) if rank == 0 else inputs.ring(bits, n).astype(np.uint8)
    return lambda: core.transfer_one_of_n(session, 0, mine, bits, width)


def matmul(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    rows, inner, columns = params["rows"], params["inner"], params["columns"]
    x = inputs.ring(params["out_bits"], rows * inner)
    w = inputs.ring(params["bits"], inner * columns) if rank == 0 else None
    shared, owned = (-1, params["out_bits"], True), (0, params["bits"], True)
    return lambda: core.matmul(session, x, shared, w, owned, rows, inner, columns, params["out_bits"])


def lattice_matmul(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """``matmul`` by lattice ciphertexts, nothing prepared."""
    sizes, bits = (params["rows"], params["inner"], params["columns"]), params["out_bits"]
    x, weights = inputs.ring(bits, sizes[0] * sizes[1]), _weights(inputs, rank, params)
    return lambda: core.lattice_matmul(session, x, (-1, bits, True), weights, _owned(params), *sizes, bits)


def lattice_packed(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """``lattice_matmul`` with packed answers, after a first one has made the keys."""
    sizes, bits = (params["rows"], params["inner"], params["columns"]), params["out_bits"]
    x, weights = inputs.ring(bits, sizes[0] * sizes[1]), _weights(inputs, rank, params)
    keys = core.PackingKeys(0, params["keys"])

    def multiply() -> np.ndarray:
        return core.lattice_packed(session, keys, x, (-1, bits, True), weights, _owned(params), sizes, bits)

    multiply()
    return multiply


def wide_matmul(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """A batch of products by ciphertexts of any factors, shared ones or, with ``bits``, weights of party 0, after one
    that makes the keys."""
    sizes, bits = (params["batch"], params["rows"], params["inner"], params["columns"]), params["out_bits"]
    left, right = sizes[:3], (sizes[0], *sizes[2:])
    shared, keys, price = (-1, bits, True), core.WideKeys(), byte_price(_planned(params))
    x = inputs.ring(bits, math.prod(left)).reshape(left)
    form, y_bits = (_owned(params), params["bits"]) if "bits" in params else (shared, bits)
    y = inputs.ring(y_bits, math.prod(right)).reshape(right) if form == shared or rank == 0 else None

    def multiply() -> np.ndarray:
        return core.wide_matmul(session, keys, x, shared, y, form, sizes, bits, False, price)

    multiply()
    return multiply


def lattice_transform(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """Number-theoretic transforms of polynomials of ``degree`` coefficients; nothing is sent."""
    return lambda: core.lattice_transform(params["degree"], n)


def lattice_encrypt(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """Ciphertexts of full polynomials for products with these weights; nothing is sent."""
    formats = params["inner"], params["bits"], params["out_bits"]
    return lambda: core.lattice_encrypt(*formats, n)


def lattice_prepare(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """What ``queries`` products need beside their inputs, together, with what new halves take."""
    rows, sizes, bits = params["queries"] * params["rows"], (params["inner"], params["columns"]), params["out_bits"]
    weights, owned = _weights(inputs, rank, params), _owned(params)

    def prepare() -> Any:
        halves = core.lattice_halves(session, weights, owned, sizes, bits)
        return core.lattice_prepare(session, halves, weights, owned, rows)

    return prepare


def lattice_online(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """A product with what was prepared for it, ``queries`` at most."""
    rows, bits = params["rows"], params["out_bits"]
    weights, x = _weights(inputs, rank, params), inputs.ring(bits, rows, params["inner"])
    prepared = lattice_prepare(core, session, rank, Inputs(rank), n, params)()  # the same weights
    known = core.lattice_fingerprint(weights, _owned(params), params["inner"], params["columns"]) if rank == 0 else None
    formats = (-1, bits, True), weights, _owned(params)
    return lambda: core.lattice_online(session, prepared, x, *formats, rows, known)


def lattice_convolve(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """A convolution of one image by lattice ciphertexts, after a first one has made the keys."""
    task, kernel = _convolution(core, params), _kernel(inputs, rank, params)
    x, bits, keys = inputs.ring(params["out_bits"], *_image(params)), params["out_bits"], core.PackingKeys(0, 1)

    def convolve() -> np.ndarray:
        return core.lattice_convolve(session, keys, task, x, (-1, bits, True), kernel)

    convolve()
    return convolve


def lattice_online_convolution(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """A convolution of one image of ``queries`` that were prepared together."""
    task, kernel, bits = _convolution(core, params), _kernel(inputs, rank, params), params["out_bits"]
    x, known = inputs.ring(bits, *_image(params)), bytes(32) if rank != 0 else task.fingerprint(kernel)
    prepared = core.lattice_prepare_convolution(
        session, core.PackingKeys(0, 1), task.of(params["queries"]), kernel, known
    )
    return lambda: core.lattice_online_convolution(session, prepared, task, x, (-1, bits, True), kernel, known)


def _image(params: Params) -> tuple[int, ...]:
    return 1, params["channels"], params["size"], params["size"]


def _convolution(core: Any, params: Params) -> Any:
    """With a kernel of 3 x 3 and padding of 1."""
    outputs, groups, stride = params["outputs"], params.get("groups", 1), params.get("stride", 1)
    shapes = _image(params), (outputs, params["channels"] // groups, 3, 3)
    place = (stride, stride), (1, 1, 1, 1), (1, 1), groups
    return core.Convolution(*shapes, *place, _owned(params), params["out_bits"]).over(layout_price(_planned(params)))


def _planned(params: Params) -> Linear:
    """What plans of products by ciphertexts depend on, as the engine has it unless it is told otherwise."""
    return Linear("auto", seconds_per_byte=params["seconds_per_byte"])


def _kernel(inputs: Inputs, rank: int, params: Params) -> np.ndarray | None:
    inner = params["channels"] // params.get("groups", 1)
    return inputs.ring(params["bits"], params["outputs"] * inner * 9) if rank == 0 else None


def _weights(inputs: Inputs, rank: int, params: Params) -> np.ndarray | None:
    return inputs.ring(params["bits"], params["inner"] * params["columns"]) if rank == 0 else None


def _owned(params: Params) -> tuple[int, int, bool]:
    return 0, params["bits"], True


def function(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """A fixed-point function; ``sign`` -1, 1 or 0: negative, positive or all inputs (the mask is the same at both)."""
    bits, scale, sign = params["bits"], params["scale"], params["sign"]
    out_bits = params.get("out_bits", bits)
    shared = np.random.default_rng(0)
    low, high = (-(2 ** (bits - 1)) if sign <= 0 else 1), (2 ** (bits - 1) if sign >= 0 else 0)
    x = shared.integers(low, high, size=n, dtype=np.int64)
    mask = shared.integers(0, 2**bits, size=n, dtype=np.int64)
    share = mask if rank == 0 else (x - mask) & (2**bits - 1)
    run = getattr(core, params["function"])
    return lambda: run(session, share, bits, scale, out_bits, scale)


def bound_of(params: Params) -> int:
    """``bound``: a part of the half of a ring of ``bits`` bits."""
    return max(int(params["bound"] * 2 ** (params["bits"] - 1)), 1)


def bounded(params: Params, rank: int, n: int) -> np.ndarray:
    """Shares of numbers within the bound (the mask is the same at both)."""
    shared, most = np.random.default_rng(0), bound_of(params)
    mask = shared.integers(0, 2 ** params["bits"], size=n, dtype=np.int64)
    x = shared.integers(-most, most, size=n, dtype=np.int64)
    return mask if rank == 0 else (x - mask) & (2 ** params["bits"] - 1)


def signed_wrap(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    x, bound = bounded(params, rank, n), bound_of(params)
    return lambda: core.signed_wrap(session, x, params["bits"], bound, params["out_bits"])


def divide(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    x, bound = bounded(params, rank, n), bound_of(params)
    return lambda: core.divide_bounded(session, x, params["bits"], bound, params["divisor"])


def softmax(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """Of ``n`` rows of ``length`` numbers, in the steps and formats of privml/ops/softmax.py. With linear "lattice"
    rows are multiplied by ciphertexts, as the engine does where bytes alone count."""
    bits, scale, length = params["bits"], params["scale"], params["length"]
    x = bounded({"bits": bits, "bound": 2.0 ** (scale + 4 - bits)}, rank, n * length).reshape(n, length)
    more = (length - 1).bit_length()
    fine = min(scale + 2 + (more + 1) // 2, 30 - more)
    exponential, two = getattr(core.fixmath, params["function"]), core.twopc
    keys, ring = two.WideKeys(1), fine + scale + 4

    def quotient(powers: np.ndarray, inverse: np.ndarray) -> np.ndarray:
        if params["linear"] != "lattice":
            made = two.multiply_rows(session, powers, (fine + 2, True, True, False), inverse, scale + 4, ring)
            return two.truncate_reduce(session, made, ring, fine + 2)
        wide = two.extend_nonnegative(session, powers, fine + 2, ring).reshape(n, 1, length)
        ones = two.extend_nonnegative(session, inverse, scale + 4, ring).reshape(n, 1, 1)
        price = layout_price(Linear("lattice"))
        both = (-1, ring, True), (-1, ring, True)
        made = two.wide_matmul(session, keys, ones, both[0], wide, both[1], (n, 1, 1, length), ring, True, price)
        return two.truncate_reduce(session, made.reshape(n, length), ring + 1, fine + 3)

    def run() -> Any:
        below = (x - two.maximum_last(session, x, bits).reshape(n, 1)) & (2**bits - 1)
        powers = exponential(session, below, bits, scale, fine + more + 2, fine)
        row = powers.sum(1) & (2 ** (fine + more + 2) - 1)
        inverse = core.fixmath.reciprocal(session, row, fine + more + 2, fine, scale + 4, scale + 2)
        powers &= 2 ** (fine + 2) - 1
        return two.extend_nonnegative(session, quotient(powers, inverse), scale + 2, bits)

    return run


def float_function(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """A floating-point operation of ``operands`` float32 words; random exponents of -``span`` .. ``span``."""
    shared = np.random.default_rng(0)
    shares = []
    for _ in range(params["operands"]):
        exponent = shared.integers(127 - params["span"], 127 + params["span"], size=n, dtype=np.uint64)
        sign = shared.integers(0, 2, size=n, dtype=np.uint64) * params["signed"]
        mantissa = shared.integers(2**23, 2**24, size=n, dtype=np.uint64)
        one = np.uint64(1)
        random = {bits: shared.integers(0, 2**bits, size=n, dtype=np.uint64) for bits in (24, 10, 2)}
        if rank == 1:
            mantissa = (mantissa - random[24]) & np.uint64(2**24 - 1)
            exponent = (exponent - random[10]) & np.uint64(2**10 - 1)
            flags = (sign | one << one) ^ random[2]
        else:
            mantissa, exponent, flags = random[24], random[10], random[2]
        shares.append(mantissa | exponent << np.uint64(24) | flags << np.uint64(34))
    run = getattr(core, params["function"])
    return lambda: run(session, *shares, 8, 23)


def correlated_transfer(core: Any, session: Any, rank: int, inputs: Inputs, n: int, params: Params) -> Action:
    """Random correlated transfers alone, one direction (party 0 sends)."""
    return lambda: session.draw_and_discard(0, n)


OPERATORS: dict[str, Callable[..., Action]] = {
    "relu": unary("relu"),
    "compare": unary("millionaires"),
    "equal": unary("equal"),
    "truncate": unary("truncate_arithmetic", "shift"),
    "truncate_reduce": unary("truncate_reduce", "shift"),
    "extend": unary("sign_extend", "out_bits"),
    "nonzero_bit": unary("most_significant_nonzero_bit"),
    "digits": unary("digits", "digit_bits"),
    "and": and_bits,
    "multiplex": multiplex,
    "bits_to_ring": bits_to_ring,
    "maximum_windows": maximum_windows,
    "multiply": multiply,
    "lookup": lookup,
    "transfer": transfer,
    "matmul": matmul,
    "lattice_matmul": lattice_matmul,
    "lattice_packed": lattice_packed,
    "wide_matmul": wide_matmul,
    "lattice_transform": lattice_transform,
    "lattice_encrypt": lattice_encrypt,
    "lattice_prepare": lattice_prepare,
    "lattice_online": lattice_online,
    "lattice_convolve": lattice_convolve,
    "lattice_online_convolution": lattice_online_convolution,
    "signed_wrap": signed_wrap,
    "divide": divide,
    "softmax": softmax,
    "correlated_transfer": correlated_transfer,
    "function": function,
    "float_function": float_function,
}


# ---- the actively secure session
ACTIVE_SHIFT = 16
NOTHING = {"masks": (0, 0), "randoms": 0, "triples": 0, "squares": 0, "bits": 0, "bit_triples": 0, "edabits": {}}
# Operations that are correlations alone.
CORRELATIONS = {"triple": "triples", "bit_triple": "bit_triples", "random_bit": "bits"}


def prepare_active(core: Any, session: Any, rank: int, task: Mapping[str, Any]) -> Callable[[], None]:
    """The operation on n numbers that are shared already, and the check of all that it opened; raises KeyError for an
    unknown name."""
    protocols, ring, n = core.spdz2k, session.ring, task["n"]
    bits = min(int(task["params"].get("bits", ring)), ring)
    values = np.random.default_rng(7).integers(-(2**30), 2**30, n) if rank == 0 else None
    x, y = (protocols.input(session, values, [n], 0) for _ in range(2))
    bit = protocols.less_than_zero(session, x, bits) if task["operator"] == "select" else None
    session.check()
    operations: dict[str, Callable[[], Any]] = {
        "multiply": lambda: protocols.multiply(session, x, y),
        "equal": lambda: protocols.equal_zero(session, x, bits),
        "less_than": lambda: protocols.less_than_zero(session, x, bits),
        "truncate": lambda: protocols.truncate(session, x, bits, ACTIVE_SHIFT, "exact"),
        "select": lambda: protocols.multiply(session, protocols.bits_to_ring(session, bit), x),
    }
    operation = operations[task["operator"]]

    def action() -> None:
        operation()
        session.check()

    return action


def active_demand(core: Any, task: Mapping[str, Any]) -> dict[str, Any]:
    """What n operations draw."""
    if task["operator"] in CORRELATIONS:
        return {**NOTHING, CORRELATIONS[task["operator"]]: task["n"]}
    meter = core.ActiveSession.meter(0, task["ring"], "ideal")
    action = prepare_active(core, meter, 1, task)
    before = meter.drawn()
    action()
    return difference_of(meter.drawn(), before)


def difference_of(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    result = {name: after[name] - before[name] for name in after if isinstance(after[name], int)}
    result["masks"] = tuple(a - b for a, b in zip(after["masks"], before["masks"], strict=True))
    for kind in ("edabits", "matrices"):
        result[kind] = {key: c - before[kind].get(key, 0) for key, c in after[kind].items()}
    return result
