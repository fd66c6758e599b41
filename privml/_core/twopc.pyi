# SPDX-License-Identifier: Apache-2.0
"""
Protocols: the first argument is a TwoPartySession, both parties call alike.
"""

from __future__ import annotations
import collections.abc
import numpy
import numpy.typing
import privml._core
import typing

__all__: list[str] = [
    "Convolution",
    "PackingKeys",
    "PreparedProduct",
    "ProductHalves",
    "WideKeys",
    "addition_formula",
    "and_bits",
    "argmax_last",
    "bits_to_ring",
    "conv2d",
    "cross_term",
    "digits",
    "divide_bounded",
    "equal",
    "equal_zero",
    "extend_bounded",
    "extend_nonnegative",
    "lattice_choice",
    "lattice_convolve",
    "lattice_encrypt",
    "lattice_fingerprint",
    "lattice_halves",
    "lattice_matmul",
    "lattice_multiply",
    "lattice_online",
    "lattice_online_convolution",
    "lattice_packed",
    "lattice_packed_choice",
    "lattice_prepare",
    "lattice_prepare_convolution",
    "lattice_transform",
    "lookup",
    "matmul",
    "maximum",
    "maximum_last",
    "maximum_last_one_hot",
    "millionaires",
    "most_significant_bit",
    "most_significant_nonzero_bit",
    "multiplex",
    "multiply",
    "multiply_owned",
    "multiply_rows",
    "open_bits",
    "open_ring",
    "or_bits",
    "rectified_maximum_last",
    "relu",
    "round_bounded",
    "round_nonnegative",
    "sign_extend",
    "signed_wrap",
    "square",
    "switching_sets",
    "transfer_one_of_n",
    "truncate_arithmetic",
    "truncate_bounded",
    "truncate_nonnegative",
    "truncate_rectified",
    "truncate_reduce",
    "wide_matmul",
    "wide_plan",
    "wrap",
    "zero_extend",
]

class PreparedProduct:
    """
    A party's half of shares of r @ weights, for random rows r; each row serves once.
    """
    @staticmethod
    def open(seal: privml._core.Seal, sealed: bytes, context: bytes) -> PreparedProduct | None:
        """
        None when the bytes were altered or belong elsewhere.
        """
    def seal(self, seal: privml._core.Seal, context: bytes) -> bytes:
        """
        All rows, which are gone here.
        """
    def take(self, rows: int) -> PreparedProduct:
        """
        The last rows, which are gone here.
        """
    @property
    def columns(self) -> int: ...
    @property
    def ell(self) -> int: ...
    @property
    def inner(self) -> int: ...
    @property
    def owner(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def sealed_bytes(self) -> int:
        """
        Of what `seal` gives: by shape and side alone.
        """
    @property
    def weights(self) -> bytes:
        """
        The weights' fingerprint at their owner, else zeros.
        """

class ProductHalves:
    """
    What a party keeps for products with one matrix of weights: the first batch of rows makes it, and further ones cost less.
    """
    @property
    def batch_bytes(self) -> int:
        """
        Bytes of ciphertexts up of a full batch, whose answers are not sent, without dropping the noise.
        """
    @property
    def batches(self) -> int: ...
    @property
    def beginning_bytes(self) -> typing.Annotated[list[int], "FixedSize(2)"]:
        """
        Bytes up and down of what the first batch takes besides.
        """
    @property
    def columns(self) -> int: ...
    @property
    def ell(self) -> int: ...
    @property
    def inner(self) -> int: ...
    @property
    def owner(self) -> int: ...
    @property
    def stored_bytes(self) -> int:
        """
        Of memory that it takes at the client since the first batch.
        """

class PackingKeys:
    """
    What a party keeps for packed products with weights of one owner: the first one makes it. `threads`: that the owner answers with.
    """
    def __init__(self, owner: int, set: int = 0, threads: int = 1) -> None: ...
    @property
    def beginning_bytes(self) -> int:
        """
        Bytes up that the first product takes besides, and each 4096th one.
        """
    @property
    def owner(self) -> int: ...
    @property
    def products(self) -> int: ...

class Convolution:
    """
    What both parties know of a convolution of x [n, c, h, w] with a kernel [o, c / groups, kh, kw] that one of them owns.
    """
    def __init__(
        self,
        x_shape: collections.abc.Sequence[int],
        w_shape: collections.abc.Sequence[int],
        stride: collections.abc.Sequence[int],
        padding: collections.abc.Sequence[int],
        dilation: collections.abc.Sequence[int],
        groups: int,
        kernel_format: tuple[int, int, bool],
        ell: int,
    ) -> None:
        """
        padding is (top, bottom, left, right)
        """
    def choice(self, keys: PackingKeys) -> typing.Any:
        """
        How such keys make it: bytes up and down besides the keys, what the owner computes; None where no parameters serve.
        """
    def fingerprint(self, kernel: numpy.ndarray) -> bytes:
        """
        32 bytes by which prepared convolutions know their kernel.
        """
    def of(self, images: int) -> Convolution:
        """
        The same convolution of so many images.
        """
    def over(self, nanoseconds: int) -> Convolution:
        """
        The same convolution over a link on which a byte takes so long (else 8): what its layout weighs work against.
        """
    @property
    def images(self) -> int: ...

class WideKeys:
    """
    What a party keeps for products of shared matrices of any shape: the first ones make the keys. One for each channel, used alike by both. `threads`: that this party answers with.
    """
    def __init__(self, threads: int = 1) -> None: ...

def addition_formula(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray,
    number: tuple[int, int],
    value: tuple[int, bool],
    ring: tuple[int, int],
    entries: numpy.ndarray,
    factors: numpy.ndarray,
    terms: collections.abc.Sequence[tuple[int, bool, bool, int]],
) -> numpy.typing.NDArray[numpy.int64]:
    """
    sum over the terms of f(u) (constant +- g(b)); number (bits, place_bits), value (bits, nonnegative), ring (bits, dropped), a term's factor (bits, signed, negative, constant)
    """

def and_bits(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray
) -> numpy.typing.NDArray[numpy.uint8]: ...
def argmax_last(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x [..., n] to the place of the first maximum, in Z_2^bits
    """

def bits_to_ring(
    session: privml._core.TwoPartySession, bits: numpy.ndarray, width: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def conv2d(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    w: numpy.ndarray | None,
    w_format: tuple[int, int, bool],
    x_shape: collections.abc.Sequence[int],
    w_shape: collections.abc.Sequence[int],
    stride: collections.abc.Sequence[int],
    padding: collections.abc.Sequence[int],
    dilation: collections.abc.Sequence[int],
    groups: int,
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x [n, c, h, w], w [o, c / groups, kh, kw]; padding is (top, bottom, left, right)
    """

def cross_term(
    session: privml._core.TwoPartySession,
    left_holder: int,
    mine: numpy.ndarray,
    left: tuple[int, bool],
    right: tuple[int, bool],
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x of party left_holder times y of the other party; formats are (bits, signed)
    """

def digits(
    session: privml._core.TwoPartySession, x: numpy.ndarray, ell: int, digit_bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    [digits, ...], least significant first
    """

def divide_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, divisor: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    floor(x / divisor)
    """

def equal(session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int) -> numpy.typing.NDArray[numpy.uint8]:
    """
    [x of party 0 = x of party 1]
    """

def equal_zero(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.uint8]: ...
def extend_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def extend_nonnegative(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def lattice_choice(inner: int, weight_bits: int, weight_signed: bool, ell: int, noise: str = "tail") -> typing.Any:
    """
    The parameters of such products; None where no set serves.
    """

def lattice_convolve(
    session: privml._core.TwoPartySession,
    keys: PackingKeys,
    convolution: Convolution,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    kernel: numpy.ndarray | None,
) -> numpy.ndarray:
    """
    The convolution, with nothing prepared but the keys.
    """

def lattice_encrypt(inner: int, weight_bits: int, ell: int, count: int) -> None:
    """
    Encrypts so many full polynomials for products of these formats, for benchmarks.
    """

def lattice_fingerprint(
    weights: numpy.ndarray, weights_format: tuple[int, int, bool], inner: int, columns: int
) -> bytes: ...
def lattice_halves(
    session: privml._core.TwoPartySession,
    weights: numpy.ndarray | None,
    weights_format: tuple[int, int, bool],
    sizes: collections.abc.Sequence[int],
    ell: int,
    label: bytes = b"",
    noise: str = "tail",
    digest: bytes | None = None,
    threads: int = 1,
) -> ProductHalves:
    """
    For products x @ weights; sizes are inner, columns. Sends nothing. `digest` is the fingerprint of the weights where it is known already; `threads`: that this party computes with.
    """

def lattice_matmul(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    y: numpy.ndarray | None,
    y_format: tuple[int, int, bool],
    rows: int,
    inner: int,
    columns: int,
    ell: int,
    noise: str = "tail",
    threads: int = 1,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    As matmul, by lattice-based encryption; one operand is owned by a party, the other one not by the same. `threads`: that this party computes with.
    """

def lattice_multiply(
    session: privml._core.TwoPartySession,
    halves: ProductHalves,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    weights: numpy.ndarray | None,
    weights_format: tuple[int, int, bool],
    rows: int,
    digest: bytes | None = None,
) -> numpy.ndarray:
    """
    x @ weights with nothing prepared but the halves.
    """

def lattice_online(
    session: privml._core.TwoPartySession,
    prepared: PreparedProduct,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    weights: numpy.ndarray | None,
    weights_format: tuple[int, int, bool],
    rows: int,
    digest: bytes | None = None,
) -> numpy.ndarray:
    """
    x @ weights with the last rows of what was prepared.
    """

def lattice_online_convolution(
    session: privml._core.TwoPartySession,
    prepared: PreparedProduct,
    convolution: Convolution,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    kernel: numpy.ndarray | None,
    digest: bytes | None = None,
) -> numpy.ndarray:
    """
    The convolution with the last images of what was prepared.
    """

def lattice_packed(
    session: privml._core.TwoPartySession,
    keys: PackingKeys,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    weights: numpy.ndarray | None,
    weights_format: tuple[int, int, bool],
    sizes: collections.abc.Sequence[int],
    ell: int,
) -> numpy.ndarray:
    """
    x @ weights for few rows, with nothing prepared but the keys; sizes are rows, inner, columns.
    """

def lattice_packed_choice(
    sizes: collections.abc.Sequence[int], weight_bits: int, weight_signed: bool, ell: int, set: int = 0
) -> typing.Any:
    """
    The parameters of a packed product of rows, inner, columns with the switching keys of that number, how many digits are switched and how many words multiplied; None where none serve.
    """

def lattice_prepare(
    session: privml._core.TwoPartySession,
    halves: ProductHalves,
    weights: numpy.ndarray | None,
    weights_format: tuple[int, int, bool],
    rows: int,
    digest: bytes | None = None,
) -> PreparedProduct:
    """
    Rows of x @ weights before x is there.
    """

def lattice_prepare_convolution(
    session: privml._core.TwoPartySession,
    keys: PackingKeys,
    convolution: Convolution,
    kernel: numpy.ndarray | None,
    digest: bytes | None = None,
) -> PreparedProduct:
    """
    What its images need beside x: the rows of a prepared product.
    """

def lattice_transform(n: int, count: int) -> None:
    """
    Transforms so many polynomials of n coefficients, modulo both primes, for benchmarks.
    """

def lookup(
    session: privml._core.TwoPartySession, table: numpy.ndarray, index: numpy.ndarray, index_bits: int, width: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def matmul(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    y: numpy.ndarray | None,
    y_format: tuple[int, int, bool],
    rows: int,
    inner: int,
    columns: int,
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]: ...
def maximum(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def maximum_last(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    x [..., n] to its maxima [...]
    """

def maximum_last_one_hot(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8]]:
    """
    (maxima [...], bits [..., n] at the first maximum)
    """

def millionaires(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    [x of party 0 > x of party 1], unsigned
    """

def most_significant_bit(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> numpy.typing.NDArray[numpy.uint8]: ...
def most_significant_nonzero_bit(
    session: privml._core.TwoPartySession, x: numpy.ndarray, ell: int
) -> numpy.typing.NDArray[numpy.uint8]:
    """
    one-hot bits [..., ell]
    """

def multiplex(
    session: privml._core.TwoPartySession, bits: numpy.ndarray, values: numpy.ndarray, width: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def multiply(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray,
    x_format: tuple[int, bool, bool, bool],
    y: numpy.ndarray,
    y_format: tuple[int, bool, bool, bool],
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    shared x shared; formats are (bits, signed, nonnegative, bounded: within 2^(bits-2)), max(m, n) <= ell <= m + n, less for bounded ones
    """

def multiply_owned(
    session: privml._core.TwoPartySession,
    owner: int,
    x: numpy.ndarray,
    x_format: tuple[int, bool, bool, bool],
    y: numpy.ndarray | None,
    y_format: tuple[int, bool],
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    shared x times y known to party `owner`; y_format is (bits, signed)
    """

def multiply_rows(
    session: privml._core.TwoPartySession,
    x: numpy.ndarray,
    x_format: tuple[int, bool, bool, bool],
    y: numpy.ndarray,
    y_bits: int,
    ell: int,
) -> numpy.typing.NDArray[numpy.int64]:
    """
    rows of x times one number each, known not to be negative; x's format as in multiply
    """

def open_bits(session: privml._core.TwoPartySession, x: numpy.ndarray, to: int = -1) -> typing.Any: ...
def open_ring(session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to: int = -1) -> typing.Any:
    """
    the signed value at party `to` (-1: both), None elsewhere
    """

def or_bits(
    session: privml._core.TwoPartySession, a: numpy.ndarray, b: numpy.ndarray
) -> numpy.typing.NDArray[numpy.uint8]: ...
def rectified_maximum_last(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int, out_bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    floor(max(0, x [..., n]) / 2^shift) in Z_2^out_bits, of the largest along the last dimension
    """

def relu(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int
) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.uint8]]:
    """
    (max(x, 0), [x >= 0])
    """

def round_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def round_nonnegative(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def sign_extend(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def signed_wrap(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, width: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    MW(x) in Z_2^width: x0 + x1 - 2^bits MW(x) is the signed x, -bound <= x < bound
    """

def square(
    session: privml._core.TwoPartySession, x: numpy.ndarray, x_format: tuple[int, bool, bool, bool], ell: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    squares; the format as in multiply, m <= ell <= 2 m, less for a bounded one
    """

def transfer_one_of_n(
    session: privml._core.TwoPartySession, sender: int, mine: numpy.ndarray, index_bits: int, width: int
) -> typing.Any:
    """
    mine: messages [count * 2^index_bits] at the sender, uint8 choices [count] at the other
    """

def truncate_arithmetic(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def truncate_bounded(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, bound: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def truncate_nonnegative(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def truncate_rectified(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int, out_bits: int
) -> numpy.typing.NDArray[numpy.int64]:
    """
    floor(max(x, 0) / 2^shift) in Z_2^out_bits
    """

def truncate_reduce(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, shift: int
) -> numpy.typing.NDArray[numpy.int64]: ...
def wide_matmul(
    session: privml._core.TwoPartySession,
    keys: WideKeys,
    x: numpy.ndarray | None,
    x_format: tuple[int, int, bool],
    y: numpy.ndarray | None,
    y_format: tuple[int, int, bool],
    sizes: collections.abc.Sequence[int],
    ell: int,
    keeps_last_bit: bool = False,
    byte_price: int | None = 1000,
) -> numpy.ndarray:
    """
    x @ y [batch, rows, columns] mod 2^ell by ciphertexts, both factors shared or known to a party, at any width; `keeps_last_bit`: twice that, or one more, mod 2^(ell + 1), which must not be opened before an exact truncation has dropped that bit.
    """

def wide_plan(
    keys: WideKeys,
    sizes: collections.abc.Sequence[int],
    x_format: tuple[int, int, bool],
    y_format: tuple[int, int, bool],
    ell: int,
    keeps_last_bit: bool = False,
    byte_price: int | None = 1000,
) -> typing.Any:
    """
    Who encrypts what in x @ y for batch, rows, inner, columns, and what it costs; None where no parameters serve. A byte weighs as much as byte_price nanoseconds of work; None: bytes count alone.
    """

def wrap(session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int) -> numpy.typing.NDArray[numpy.uint8]: ...
def zero_extend(
    session: privml._core.TwoPartySession, x: numpy.ndarray, bits: int, to_bits: int
) -> numpy.typing.NDArray[numpy.int64]: ...

switching_sets: int = 13
