# SPDX-License-Identifier: Apache-2.0
"""How a product with weights that one party knows is made: by oblivious transfer, by lattice ciphertexts at once (whose
answers are packed, or not), or with what was prepared before the query.

Both parties make the same choice, from public numbers alone: shapes, widths, the transfers and a link on which they
agree. The predicted time of a form is that of its messages, from the exact cost functions, and that of its computing,
from rates of one machine; only the ratios of these rates to the link matter. ``auto`` takes the form of the least
``price``: of least time, where a form that is faster by a second may send no more than half a gigabyte for it;
``lattice`` takes the one of ciphertexts with the fewest bytes.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

import privml._core as _core
from privml.engines.correlations import OtChoice, making_seconds
from privml.errors import ConfigError
from privml.formats import Node, current_node

if TYPE_CHECKING:
    from privml.engines.twopc.convolutions import Convolution

MODES = ("auto", "ot", "lattice")
NOISES = ("tail", "proved")
# The forms, as reports name them.
TRANSFERS, LATTICE, PACKED, WIDE, PREPARED = "ot", "lattice", "packed", "wide", "prepared"

# Seconds of one core: to hash, pack and copy a byte of a product made of transfers or of what drops the noise; to
# multiply a word of a ciphertext by a weight and add it up; to encrypt, re-randomise or decrypt a polynomial; to switch
# a digit of a packed polynomial. The own time of a process with both parties, over products of 128 x 768 x 768,
# 1 x 2048 x 1000 and smaller ones, on a two-core x86-64 server (AVX-512).
_BYTE, WORD_PRODUCT, POLYNOMIAL, DIGIT = 0.45e-9, 0.08e-9, 4.5e-5, 2e-5
# Kinds of keys that pack answers, see csrc/lattice/parameters.h.
_KINDS_OF_KEYS = range(_core.twopc.switching_sets)
# Seconds that a byte is worth beside its time on the link, as it also takes memory of both parties and its part of what
# other sessions share. Without it loopback would make products of one row, of which a weight is used once, of transfers
# that send hundreds of times as much and take nearly as long.
_WORTH = 2e-9
# Seconds of work that a byte is worth where WIDE ciphertexts choose how many columns are multiplied at once: beside its
# time on the link.
_BYTE_OF_UPLOADS = 3e-8
# Correlations whose bytes are spread over each of them.
_MANY = 1 << 22
# Seconds that the messages of a chunk may take at usual length, as computing it takes some 0.1 s; and how many times
# as long a chunk may be, in memory of a gigabyte at most.
_SHORT_DELAY, _LONGEST_CHUNKS = 0.002, 8


@dataclass(frozen=True, slots=True)
class Linear:
    """``mode``: one of ``MODES``, "auto" for the form of the least price, "lattice" for ciphertexts of the fewest
    bytes; ``noise``: what bounds the noise of ciphertexts, "tail" a probability below 2^-100 for each value, "proved"
    its largest value; ``delay``: seconds of a message one way, and ``seconds_per_byte``, of the link that "auto"
    reckons with (the delay says how long chunks are, too); ``prepared``: the places of the products that were prepared
    (see ``Places``). Both parties have all of it alike. Raises ConfigError."""

    mode: str = "ot"
    noise: str = "tail"
    delay: float = 0.0
    seconds_per_byte: float = 0.0
    prepared: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        checked(self.mode, self.noise)


def chunk_factor(delay: float) -> int:
    """How many times as long the chunks of protocols are if a message takes ``delay`` seconds one way. Each chunk takes
    a protocol's whole depth, and as many bytes in memory as its length asks for."""
    factor = 1
    while factor < _LONGEST_CHUNKS and delay > factor * _SHORT_DELAY:
        factor *= 2
    return factor


def checked(mode: str, noise: str) -> None:
    """ConfigError for settings that do not exist or contradict each other."""
    if mode not in MODES:
        raise ConfigError(f"linear={mode} must be one of {', '.join(MODES)}")
    if noise not in NOISES:
        raise ConfigError(f"noise={noise} must be one of {', '.join(NOISES)}")
    if mode == "ot" and noise != "tail":
        raise ConfigError(f"noise={noise} is for lattice ciphertexts, and linear=ot makes none: leave out one of them")


BY_TRANSFERS = Linear()


@dataclass(frozen=True, slots=True)
class Product:
    """x [rows, inner] times weights [inner, columns] mod 2^bits. ``owner``: who knows the weights, of ``weight_bits``;
    ``x_owner``: the other party if that knows x, else None."""

    rows: int
    inner: int
    columns: int
    bits: int
    owner: int
    weight_bits: int
    weight_signed: bool
    x_owner: int | None = None
    x_bits: int = 64
    x_signed: bool = True

    @property
    def x_format(self) -> tuple[int, int, bool]:
        return (-1, self.bits, True) if self.x_owner is None else (self.x_owner, self.x_bits, self.x_signed)

    @property
    def weight_format(self) -> tuple[int, int, bool]:
        return self.owner, self.weight_bits, self.weight_signed


@dataclass(frozen=True, slots=True)
class Form:
    """One of TRANSFERS, LATTICE, PACKED, WIDE and PREPARED; ``why``: what kept ciphertexts from being used where they
    were asked for, or ""; ``keys``: the kind of keys that PACKED takes; ``computing``: as of ``Predicted``."""

    name: str
    why: str = ""
    keys: int = -1
    computing: float = field(default=0.0, compare=False)

    def __str__(self) -> str:
        return f"{self.name} ({self.why})" if self.why else self.name


@dataclass(frozen=True, slots=True)
class ByTransfers:
    """A call of the core that makes a product of transfers: ``name``, then of both factors shape and format, as an
    operand (owner, bits, signed), then further ``settings``."""

    name: str
    left: tuple[tuple[int, ...], tuple[int, int, bool]]
    right: tuple[tuple[int, ...], tuple[int, int, bool]]
    settings: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What both parties have kept in a session for a product: ``halves`` of answers of its weights, and the kinds of
    ``keys`` with its owner that pack answers."""

    halves: bool = False
    keys: frozenset[int] = frozenset()


NOTHING = Kept()


def form_of(
    product: Product,
    places: Sequence[str],
    ot: tuple[str, int, str],
    linear: Linear,
    otherwise: ByTransfers,
    kept: Kept = NOTHING,
    further: Sequence[tuple[Form, Predicted]] = (),
) -> Form:
    """How products of one shape are made, each at its place, in a session with the transfers ``ot``; ``otherwise``: how
    transfers would make all of them; ``kept``: what ciphertexts have left in this session; ``further``: other forms of
    ciphertexts that serve."""
    if linear.prepared.issuperset(places):
        return Form(PREPARED, computing=len(places) * _online_seconds(product))
    if linear.mode == "ot" or 0 in (product.rows, product.inner, product.columns):
        return Form(TRANSFERS)
    if not further and not fits(product, linear.noise):
        return Form(TRANSFERS, f"no lattice parameters fit {product.weight_bits}-bit weights and {product.bits} bits")
    return computed(at_once(product, len(places), ot, linear, otherwise, kept, further))


def at_once(
    product: Product,
    count: int,
    ot: tuple[str, int, str],
    linear: Linear,
    otherwise: ByTransfers,
    kept: Kept = NOTHING,
    further: Sequence[tuple[Form, Predicted]] = (),
) -> tuple[Form, Predicted]:
    """How ``count`` products that ``fits``, or for which there are ``further`` forms, are made with nothing prepared,
    and what is predicted of them."""
    forms = list(further)
    fitting = fits(product, linear.noise)
    if fitting:
        forms.append((Form(LATTICE), by_lattice(product, ot, linear, kept.halves).times(count)))
    for kind in _KINDS_OF_KEYS if fitting and linear.noise == "tail" else ():
        later = by_packing(product, kind, ot, linear, True)
        if later is not None:
            first = later if kind in kept.keys else by_packing(product, kind, ot, linear, False)
            forms.append((Form(PACKED, keys=kind), first.plus(later.times(count - 1))))
    if linear.mode != "lattice":
        forms.append((Form(TRANSFERS), by_transfers(otherwise, ot, linear)))
    return min(forms, key=lambda form: form[1].weight(linear))


def fits(product: Product, noise: str) -> bool:
    """Whether a parameter set of ciphertexts holds the product exactly."""
    choice = _choice(product.inner, product.weight_bits, product.weight_signed, product.bits, noise)
    return choice is not None


@lru_cache(maxsize=4096)
def _choice(inner: int, weight_bits: int, weight_signed: bool, bits: int, noise: str) -> Mapping[str, Any] | None:
    return _core.twopc.lattice_choice(inner, weight_bits, weight_signed, bits, noise)


@dataclass(frozen=True, slots=True)
class Predicted:
    """Of a product made in one form, with its correlations: ``seconds``, and ``bytes`` in both directions; of the
    seconds, those of ``computing`` on ciphertexts, of one core at each party."""

    seconds: float
    bytes: float
    computing: float = 0.0

    @property
    def price(self) -> float:
        """What "auto" makes small: the seconds, and what bytes are worth beside them."""
        return self.seconds + self.bytes * _WORTH

    def weight(self, linear: Linear) -> float:
        """What a choice among forms of ciphertexts makes small: the bytes with mode "lattice", else the price."""
        return self.bytes if linear.mode == "lattice" else self.price

    def times(self, count: int) -> Predicted:
        return Predicted(self.seconds * count, self.bytes * count, self.computing * count)

    def plus(self, other: Predicted) -> Predicted:
        return Predicted(self.seconds + other.seconds, self.bytes + other.bytes, self.computing + other.computing)


def byte_price(linear: Linear) -> int | None:
    """Nanoseconds of work that a byte is worth where WIDE ciphertexts take their parameters; None with mode "lattice",
    where bytes count alone."""
    return None if linear.mode == "lattice" else round(1e9 * (linear.seconds_per_byte + _BYTE_OF_UPLOADS))


def layout_price(linear: Linear) -> int:
    """Nanoseconds of work that a byte is worth where convolutions by ciphertexts take their layout."""
    return 1000 if linear.mode == "lattice" else round(1e9 * linear.seconds_per_byte)


def computed(choice: tuple[Form, Predicted]) -> Form:
    """The form, with its computing."""
    form, predicted = choice
    return replace(form, computing=predicted.computing)


@lru_cache(maxsize=4096)
def by_transfers(call: ByTransfers, ot: tuple[str, int, str], linear: Linear) -> Predicted:
    """What both parties predict of transfers."""
    meter = _core.TwoPartySession.meter(0, "ideal", 0, "semi_honest", 1, False, True)
    factors = [part for shape, form in (call.left, call.right) for part in (zeros(shape, form), form)]
    getattr(_core.twopc, call.name)(meter, *factors, *call.settings)
    return predicted(meter, ot, linear, 0.0)


@lru_cache(maxsize=4096)
def by_lattice(product: Product, ot: tuple[str, int, str], linear: Linear, begun: bool = False) -> Predicted:
    """What both parties predict of ciphertexts that are made at once; ``begun``: of a further product with weights of
    which both have kept their halves."""
    meter, halves = new_meter(), halves_of(new_meter(), product, None, b"", linear.noise)
    if begun:
        multiply(new_meter(), halves, product, _zeros_of_x(product), None)
    multiply(meter, halves, product, _zeros_of_x(product), None)
    return predicted(meter, ot, linear, _of_polynomials(product, linear.noise, begun))


@lru_cache(maxsize=1 << 14)
def by_packing(product: Product, kind: int, ot: tuple[str, int, str], linear: Linear, begun: bool) -> Predicted | None:
    """What both parties predict of ciphertexts whose answers are packed, with keys of that kind; None where these do
    not serve the product; ``begun``: with keys that are there already."""
    sizes = product.rows, product.inner, product.columns
    choice = _core.twopc.lattice_packed_choice(sizes, product.weight_bits, product.weight_signed, product.bits, kind)
    if choice is None:
        return None
    meter, keys = new_meter(), _core.twopc.PackingKeys(product.owner, kind)
    if begun:
        pack(new_meter(), keys, product, _zeros_of_x(product), None)
    pack(meter, keys, product, _zeros_of_x(product), None)
    gap = choice["gap"]
    polynomials = -(-product.inner // gap) + 2 * -(-product.columns // gap)
    computing = choice["word_products"] * WORD_PRODUCT + polynomials * POLYNOMIAL + choice["digits"] * DIGIT
    return predicted(meter, ot, linear, computing)


def new_meter() -> _core.TwoPartySession:
    """Party 0's, whose transfers cost nothing."""
    return _core.TwoPartySession.meter(0, "ideal", 0, "semi_honest", 1, False, True)


@lru_cache(maxsize=4096)
def by_preparation(product: Product, queries: int, ot: tuple[str, int, str], linear: Linear) -> Predicted:
    """What both parties predict of one query's product out of ``queries`` that are prepared together."""
    together, meter = replace(product, rows=queries * product.rows), new_meter()
    prepared = prepare(meter, halves_of(meter, product, None, b"", linear.noise), product, None, together.rows)
    ahead = predicted(meter, ot, linear, _of_polynomials(together, linear.noise, False))
    meter = new_meter()
    multiply(meter, prepared, product, _zeros_of_x(product), None)
    online = predicted(meter, ot, linear, _online_seconds(product))
    return Predicted(ahead.seconds / queries + online.seconds, ahead.bytes / queries + online.bytes)


def kept_bytes(product: Product, noise: str) -> int:
    """Memory that halves for these weights take at the client."""
    choice = _choice(product.inner, product.weight_bits, product.weight_signed, product.bits, noise)
    return 0 if choice is None else product.columns * choice["n"] * choice["answer_bits"] // 8


# ---- calls of the core; only the owner passes the weights
def halves_of(
    session: _core.TwoPartySession,
    product: Product,
    weights: np.ndarray | None,
    label: bytes,
    noise: str,
    threads: int = 1,
) -> Any:
    """What both keep for products with these weights: ``ProductHalves``. Nothing is sent. ``threads``: that this party
    computes with."""
    mine, digest = _known(session, product, weights)
    formats = product.weight_format, (product.inner, product.columns), product.bits
    return _core.twopc.lattice_halves(session, mine, *formats, label, noise, digest, threads)


def multiply(
    session: _core.TwoPartySession, kept: Any, product: Product, x: np.ndarray | None, weights: np.ndarray | None
) -> np.ndarray:
    """x times the weights, with their halves, or with what was prepared, which is used up."""
    core = _core.twopc
    call = core.lattice_online if isinstance(kept, core.PreparedProduct) else core.lattice_multiply
    mine, digest = _known(session, product, weights)
    return call(session, kept, x, product.x_format, mine, product.weight_format, product.rows, digest)


def pack(
    session: _core.TwoPartySession, keys: Any, product: Product, x: np.ndarray | None, weights: np.ndarray | None
) -> np.ndarray:
    """x times the weights at once, of which nothing is kept, with keys that pack the answers."""
    sizes, mine = (product.rows, product.inner, product.columns), _known(session, product, weights)[0]
    formats = x, product.x_format, mine, product.weight_format
    return _core.twopc.lattice_packed(session, keys, *formats, sizes, product.bits)


def prepare(
    session: _core.TwoPartySession, halves: Any, product: Product, weights: np.ndarray | None, rows: int
) -> Any:
    """What so many rows times the weights need beside x: a ``PreparedProduct``."""
    mine, digest = _known(session, product, weights)
    return _core.twopc.lattice_prepare(session, halves, mine, product.weight_format, rows, digest)


def _known(
    session: _core.TwoPartySession, product: Product, weights: np.ndarray | None
) -> tuple[np.ndarray | None, bytes | None]:
    """The weights as this party passes them, and on a meter zeros as their fingerprint."""
    if session.rank != product.owner:
        return None, bytes(32) if session.metering else None
    if session.metering:
        return np.zeros((product.inner, product.columns), np.int64), bytes(32)
    return weights, None


def zeros(shape: tuple[int, ...], form: tuple[int, int, bool]) -> np.ndarray | None:
    """What party 0 passes on a meter."""
    return None if form[0] == 1 else np.zeros(shape, np.int64)


def _zeros_of_x(product: Product) -> np.ndarray | None:
    return zeros((product.rows, product.inner), product.x_format)


def predicted(meter: _core.TwoPartySession, ot: tuple[str, int, str], linear: Linear, computing: float) -> Predicted:
    """Of what a meter without transfers of its own has booked; ``computing``: seconds on ciphertexts."""
    counters = meter.counters()
    online, drawn = counters["online"], counters["cots_as_sender"] + counters["cots_as_receiver"]
    sent, received, made = online["sent"], online["received"], drawn * bytes_per_correlation(ot)
    carried = max(sent, received) + made / 2
    seconds = online["depth"] * linear.delay + carried * linear.seconds_per_byte
    seconds += computing + (sent + received) * _BYTE + drawn * making_seconds(OtChoice(*ot))
    return Predicted(seconds, sent + received + made, computing)


def _online_seconds(product: Product) -> float:
    """Of the owner's work with what was prepared."""
    return product.rows * product.inner * product.columns * WORD_PRODUCT


def _of_polynomials(product: Product, noise: str, begun: bool) -> float:
    """Seconds of both parties' work on ciphertexts."""
    choice = _choice(product.inner, product.weight_bits, product.weight_signed, product.bits, noise)
    n = choice["n"] if choice is not None else 1
    # Of a row of weights: the first halves, as far as they are in use, and once the second ones.
    words = product.rows + (0 if begun else n)
    polynomials = -(-product.rows // n) * (product.inner + 2 * product.columns)
    return words * product.inner * product.columns * WORD_PRODUCT + polynomials * POLYNOMIAL


@lru_cache(maxsize=64)
def bytes_per_correlation(ot: tuple[str, int, str]) -> float:
    """In both directions, of many that are made together."""
    meter = _core.TwoPartySession.meter(0, *ot, 1, False, True)
    before = meter.counters()["preprocess"]
    meter.reserve(_MANY, 0)
    after = meter.counters()["preprocess"]
    return sum(after[way] - before[way] for way in ("sent", "received")) / _MANY


@dataclass(slots=True)
class Places:
    """Names the products that one thread makes, alike at both parties: by the graph's node and by their order in it;
    "" outside of graphs."""

    _node: Node | None = None
    _turn: int = 0

    def next(self) -> str:
        node = current_node()
        self._turn = self._turn + 1 if node is self._node else 0
        self._node = node
        return f"{node.place} {self._turn}" if node.place else ""


# Memory that a client spends on halves of all weights of a session together, and on those of one place: what does not
# fit is made without any, every time.
MOST_KEPT, LARGEST_KEPT = 1 << 28, 1 << 25


@dataclass(slots=True)
class Lane:
    """What the products of one lane have in common, which both parties make in one order: ``keys``, by owner and kind,
    the memory for further ``halves``, in bytes, and the keys of ``wide`` products; ``threads``: that this party
    computes on ciphertexts with; ``computing``: predicted seconds on them."""

    halves: int
    threads: int
    keys: dict[tuple[int, int], Any] = field(default_factory=dict)
    wide: Any = field(init=False)
    computing: float = 0.0

    def __post_init__(self) -> None:
        self.wide = _core.twopc.WideKeys(self.threads)

    def packing(self, owner: int, kind: int) -> Any:
        """The keys of that kind for products with weights of ``owner``."""
        return self.keys.setdefault((owner, kind), _core.twopc.PackingKeys(owner, kind, self.threads))

    def kinds(self, owner: int) -> frozenset[int]:
        """Of the keys that are there."""
        return frozenset(kind for whose, kind in self.keys if whose == owner)


@dataclass(slots=True)
class Record:
    """What the lanes of a session have in common: how its products are made, what both parties keep for those of a
    place, how products were made, by lane, and what is prepared for its query. ``wanted``: a list that products with
    weights of party 0 are added to, where a meter looks for them; ``lanes``: how many there are; ``given``: the
    transfers that each lane has got from a store so far, by the sender's rank."""

    linear: Linear
    lanes: int = 1
    halves: dict[str, Any] = field(default_factory=dict)
    made: dict[int, Counter[str]] = field(default_factory=dict)
    prepared: dict[str, Any] = field(default_factory=dict)
    wanted: list[Wanted] | None = None
    given: Counter[tuple[int, int]] = field(default_factory=Counter)
    of_lanes: dict[int, Lane] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lane(self, index: int) -> Lane:
        with self._lock:
            return self.of_lanes.setdefault(index, Lane(MOST_KEPT // self.lanes, self.lanes))

    def note(self, lane: int, form: Form) -> None:
        with self._lock:
            self.made.setdefault(lane, Counter())[str(form)] += 1

    def counts(self, lane: int | None) -> dict[str, int]:
        """Of one lane, or of all (None)."""
        with self._lock:
            lanes = self.made.values() if lane is None else [self.made.get(lane, Counter())]
            return dict(sum(lanes, Counter()))

    def take(self, place: str) -> Any:
        """What was prepared for a place, once; ValueError if it is not there."""
        with self._lock:
            if place not in self.prepared:
                raise ValueError(f"nothing is prepared for the product {place}, or it was used before")
            return self.prepared.pop(place)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A product with weights of party 0 in a query: where it is made (see ``Places``), in which layer, how transfers
    would make it and the others of one convolution together (``parts``), the weights [inner, columns] at party 0, and
    whether noise may stay (see ``WideProduct``); or a whole convolution (see ``convolutions``), with its kernel."""

    place: str
    layer: str
    product: Product | Convolution
    otherwise: ByTransfers
    parts: int = 1
    weights: np.ndarray | None = field(default=None, repr=False, compare=False)
    noisy: bool = False
