# SPDX-License-Identifier: Apache-2.0
"""
The compiled core: channels, sessions, the two-party protocols (submodule twopc), fixed-point functions (submodule fixmath), floating-point numbers (submodule secfloat), local products (submodule linear), three-party kernels (submodule threepc), actively secure protocols (submodule spdz2k).
"""

from __future__ import annotations
import collections.abc
import numpy
import numpy.typing
import typing
from . import linear
from . import twopc
from . import fixmath
from . import secfloat
from . import threepc
from . import spdz2k

__all__: list[str] = [
    "Account",
    "ActiveSession",
    "Channel",
    "Seal",
    "SealedMessages",
    "Stock",
    "TcpListener",
    "TlsIdentity",
    "TracedChannel",
    "TwoPartySession",
    "active_bytes",
    "common_key",
    "connect_tcp",
    "fixmath",
    "key_pair",
    "linear",
    "memory_pair",
    "ot_granularity",
    "pack",
    "seal_active",
    "seal_correlations",
    "seal_offset",
    "secfloat",
    "spdz2k",
    "stored_active_session",
    "stored_session",
    "threepc",
    "transfer_kernels",
    "twopc",
    "unpack",
    "unpack_bytes",
    "unseal_active",
]

class Account:
    """
    What a party has computed lately, one line for each step, which its peer receives if the two differ.
    """
    def __init__(self, rank: int, peer: int) -> None: ...
    def add(self, line: str) -> None:
        """
        At most 256 bytes; the oldest lines give way.
        """
    def text(self) -> str: ...

class Channel:
    """
    One ordered byte stream to one peer.
    """
    def close(self) -> None: ...
    def depth(self) -> int:
        """
        The depth clock, which `traffic` has too.
        """
    def differ(self) -> None:
        """
        Tells the peer that the two differ, and raises ProgramsDiffer with what it answers.
        """
    def flush(self) -> None: ...
    def read(self, count: int) -> bytes:
        """
        Exactly `count` bytes; raises PeerDisconnected after the deadline.
        """
    def read_array(self, count: int) -> numpy.typing.NDArray[numpy.uint8]:
        """
        Exactly `count` bytes as a uint8 array.
        """
    def report(self, cause: str, seconds: float) -> None:
        """
        Tells the peer in one line why this party ends, and waits so long at most until the peer has read it.
        """
    def set_account(self, account: Account, peer_reads: bool = True) -> None:
        """
        Frames carry tags from here on; both ends say so at the same place of the stream. `peer_reads`: whether the peer ever reads from this channel.
        """
    def set_deadline(self, seconds: float) -> None:
        """
        The longest time one read may wait.
        """
    def set_depth(self, depth: int) -> None:
        """
        Sends what is queued and sets the depth clock, for sessions of several channels.
        """
    def set_tag(self, tag: int) -> None:
        """
        Sends what is queued; what comes next belongs to the computation of this tag. Reading a frame of another one raises ProgramsDiffer.
        """
    def stalled(self) -> None:
        """
        After a wait until the deadline: asks the peer whether it waits, too, and raises ProgramsDiffer when it answers.
        """
    def traffic(self) -> dict: ...
    def write(self, data: bytes) -> None:
        """
        Queues bytes; they leave at the next flush or read.
        """
    def write_array(self, array: numpy.ndarray) -> None:
        """
        Queues the bytes of a uint8 array without a copy in Python.
        """
    @property
    def names(self) -> tuple[list[str], list[str]]:
        """
        (own, peer's): all names in the certificates of both sides, once something was read or sent; two empty lists without TLS.
        """
    @property
    def peer_address(self) -> str:
        """
        "host:port" of the peer's end; empty where there is no network.
        """
    @property
    def peer_closed(self) -> bool:
        """
        Whether the peer is known to send no more, without a wait; what it sent before may still be there to be read.
        """
    @property
    def peer_name(self) -> str:
        """
        The name that the peer has proved by a certificate, once something was read or sent; empty without TLS.
        """

class TracedChannel(Channel):
    """
    A channel that keeps what somebody on the network sees of it.
    """
    def __init__(self, channel: Channel, keep_bytes: bool = False) -> None: ...
    def passages(self) -> list:
        """
        (whether it was sent, bytes) of every message and read, in order; once the session has ended.
        """
    def sent(self) -> bytes:
        """
        All bytes sent, where they are kept.
        """

class SealedMessages:
    """
    Messages of one direction of a channel, encrypted and authenticated.
    """

    piece_bytes: typing.ClassVar[int] = 65520
    tag_bytes: typing.ClassVar[int] = 16
    def __init__(self, channel: Channel, key: bytes) -> None:
        """
        32 bytes, for this direction of this channel alone.
        """
    def receive(self, count: int) -> numpy.typing.NDArray[numpy.uint8]:
        """
        The next message, of `count` bytes; SecurityAbort when the peer has sent another one.
        """
    def send(self, message: numpy.ndarray) -> None:
        """
        Sends a uint8 array.
        """

class TlsIdentity:
    """
    A party's certificate, and the names of its peers under TLS 1.3.
    """
    def __init__(self, authority: str, certificate: str, key: str, peers: collections.abc.Sequence[str]) -> None:
        """
        PEM files; names that a peer may prove (none: any). ValueError naming a wrong file.
        """
    def expecting(self, peers: collections.abc.Sequence[str]) -> TlsIdentity:
        """
        The same with other peers.
        """
    @property
    def peers(self) -> list[str]: ...

class TcpListener:
    """
    A listening socket; port 0 takes any free port. ValueError if it cannot.
    """
    def __init__(self, host: str, port: int) -> None: ...
    def accept(
        self, deadline: float, delay_ms: float = 0.0, bandwidth_mbps: float = 0.0, identity: TlsIdentity | None = None
    ) -> Channel: ...
    def close(self) -> None: ...
    @property
    def port(self) -> int: ...

class TwoPartySession:
    """
    One party's two-party session on connected channels, one per lane; setup runs in the constructor.
    """
    @staticmethod
    def meter(
        rank: int = 0,
        provider: str = "softspoken",
        k: int = 4,
        security: str = "semi_honest",
        lanes: int = 1,
        refill: bool = False,
        counts_only: bool = False,
    ) -> TwoPartySession:
        """
        Protocols on a meter return zeros and book their exact cost. `counts_only`: the caller looks at no values.
        """
    def __init__(
        self,
        channel: Channel,
        rank: int,
        provider: str = "softspoken",
        k: int = 4,
        security: str = "semi_honest",
        test_seed: int | None = None,
        further: collections.abc.Sequence[Channel] = [],
        refills: collections.abc.Sequence[Channel] = [],
    ) -> None: ...
    def advance(self, at_least: tuple[int, int, int, int, float, float]) -> None:
        """
        What comes next on these lanes depends on what had that clock.
        """
    def clock(self) -> tuple[int, int, int, int, float, float]:
        """
        The longest path so far on these lanes, for `advance`.
        """
    def close(self) -> None: ...
    def compute(self, seconds: float) -> None:
        """
        Both parties of a meter compute for so long.
        """
    def counters(self) -> dict:
        """
        Per phase seconds, sent, received, depth; and the correlations drawn.
        """
    def draw_and_discard(self, sender: int, count: int) -> None:
        """
        Makes and drops `count` correlations of one direction, piece by piece (for measurements).
        """
    def lane(self, index: int) -> TwoPartySession:
        """
        One lane as a session of its own, for protocols that run beside those of other lanes.
        """
    def reserve(self, as_sender: int, as_receiver: int) -> None:
        """
        Makes correlations of the first lane ahead of time; the peer calls it with the numbers swapped.
        """
    def reserve_lanes(self, stocks: collections.abc.Sequence[tuple[int, int]]) -> None:
        """
        reserve(as_sender, as_receiver) on each lane, side by side. Where refills make the correlations, it returns at once and they are made while protocols run.
        """
    def set_account(self, account: Account) -> None:
        """
        What the peer receives about this party if the two differ, on all of these lanes.
        """
    def set_link(self, delay: float, seconds_per_byte: float, seconds_per_correlation: float = 0.0) -> None:
        """
        A meter's messages take time from here on; `clock` tells it after the depths, by rank.
        """
    def set_planning(self, chunk_factor: int, ciphertexts: bool) -> None:
        """
        Protocols work on chunks that are so many times (1..64) as long: fewer messages for long tensors, more memory. With `ciphertexts` functions may make products by lattice ciphertexts where these cost less. Both parties alike, before any protocol.
        """
    def set_tag(self, tag: int) -> None:
        """
        The tag of what these lanes compute from here on.
        """
    def twin(self) -> TwoPartySession:
        """
        A meter of one lane that plans like this session, from party 0's side, for counts only.
        """
    @property
    def counts_only(self) -> bool: ...
    @property
    def lanes(self) -> int: ...
    @property
    def metering(self) -> bool: ...
    @property
    def ot(self) -> tuple[str, int, str]: ...
    @property
    def rank(self) -> int: ...

class Seal:
    """
    Authenticated encryption with a key derived for a salt.
    """

    overhead: typing.ClassVar[int] = 40
    def __init__(self, key: bytes, salt: bytes) -> None: ...
    def open(self, sealed: bytes, context: bytes) -> bytes | None:
        """
        The plain bytes; None if anything differs.
        """
    def seal(self, plain: bytes, context: bytes) -> bytes: ...

class Stock:
    """
    Correlations of one direction, between a store and sessions.
    """
    def __init__(self) -> None: ...
    def add(self, seal: Seal, sealed: bytes, context: bytes) -> bool:
        """
        False when the bytes were altered or belong elsewhere.
        """
    def give(self, session: TwoPartySession, as_sender: bool, count: int) -> None:
        """
        Moves the next `count` into the pool of a session's first lane, behind its stock.
        """
    @property
    def count(self) -> int: ...

class ActiveSession:
    """
    One party's actively secure session; setup runs in the constructor.
    """
    @staticmethod
    def meter(rank: int = 0, ring: int = 64, provider: str = "softspoken", k: int = 4) -> ActiveSession:
        """
        Protocols on a meter return zeros and book their exact cost.
        """
    def __init__(
        self,
        channel: Channel,
        rank: int,
        ring: int = 64,
        provider: str = "softspoken",
        k: int = 4,
        test_seed: int | None = None,
    ) -> None: ...
    def abort(self, cause: str) -> None:
        """
        Ends the session, wipes its keys and raises SecurityAbort, as every later call does.
        """
    def check(self) -> None:
        """
        The MAC check of everything opened since the last one.
        """
    def close(self) -> None: ...
    def counters(self) -> dict:
        """
        Per phase seconds, sent, received, depth; and the transfers drawn.
        """
    def drawn(self) -> dict:
        """
        Numbers of correlations drawn so far, by kind.
        """
    def reserve(self, numbers: dict) -> None:
        """
        Makes what is missing of these numbers of correlations now.
        """
    def retire(self) -> None:
        """
        Wipes key and correlations and leaves the channel to another session.
        """
    def set_account(self, account: Account) -> None:
        """
        What the peer receives about this party if the two differ.
        """
    def set_tag(self, tag: int) -> None:
        """
        The tag of what is computed from here on.
        """
    @property
    def components(self) -> int: ...
    @property
    def metering(self) -> bool: ...
    @property
    def rank(self) -> int: ...
    @property
    def ring(self) -> int: ...

def active_bytes(ring: int, name: str) -> int:
    """
    Of one of a kind, not sealed.
    """

def common_key(secret: str, first: str, second: str, second_is_theirs: bool) -> bytes:
    """
    The 32 bytes that the owners of two public keys have in common, both naming the public keys in one order; ProtocolError for a public key that no secret key has.
    """

def connect_tcp(
    host: str,
    port: int,
    deadline: float,
    on_wait: collections.abc.Callable[[], None] | None = None,
    delay_ms: float = 0.0,
    bandwidth_mbps: float = 0.0,
    identity: TlsIdentity | None = None,
) -> Channel:
    """
    Tries until the deadline; on_wait is called if nobody is there yet.
    """

def key_pair() -> tuple:
    """
    A fresh (secret key, public key), 32 bytes each.
    """

def memory_pair(delay_ms: float = 0.0, bandwidth_mbps: float = 0.0) -> tuple[Channel, Channel]:
    """
    Two connected channels in this process.
    """

def ot_granularity(provider: str, k: int, security: str) -> int:
    """
    Correlations come in multiples of this number.
    """

def pack(values: numpy.ndarray, width: int) -> numpy.ndarray:
    """
    The low `width` bits of each element (int64 or uint8), without gaps, as a uint8 array.
    """

def seal_active(session: ActiveSession, seal: Seal, name: str, count: int, context: bytes) -> bytes:
    """
    Takes `count` correlations of a kind out of the session's stock, for good: triples, squares, bits, bit_triples, randoms, `masks OWNER`, `edabits WIDTH`, `matrices ROWSxINNERxCOLUMNS`. Or a copy of `key`, this party's part of the MAC key, under which they are worth something.
    """

def seal_correlations(session: TwoPartySession, seal: Seal, as_sender: bool, count: int, context: bytes) -> bytes:
    """
    Takes `count` out of the pool of a session's first lane, for good.
    """

def seal_offset(session: TwoPartySession, seal: Seal, context: bytes) -> bytes: ...
def stored_active_session(
    channel: Channel, rank: int, ring: int, seal: Seal, sealed_key: bytes, context: bytes
) -> ActiveSession:
    """
    A session that makes no correlations, under a key of an earlier one; None when the bytes were altered or belong elsewhere.
    """

def stored_session(
    channels: collections.abc.Sequence[Channel],
    rank: int,
    seal: Seal,
    sealed_offset: bytes,
    context: bytes,
    provider: str,
    k: int,
    security: str,
    test_seed: int | None = None,
) -> TwoPartySession:
    """
    A session that makes no correlations: a Stock gives it those of its offset.
    """

def transfer_kernels() -> dict:
    """
    The instruction sets that oblivious transfers use here, by task. PRIVML_CPU limits them.
    """

def unpack(bytes: numpy.ndarray, count: int, width: int) -> numpy.ndarray:
    """
    The int64 array of pack().
    """

def unpack_bytes(bytes: numpy.ndarray, count: int, width: int) -> numpy.ndarray:
    """
    The uint8 array of pack(), width at most 8.
    """

def unseal_active(session: ActiveSession, seal: Seal, name: str, count: int, sealed: bytes, context: bytes) -> bool:
    """
    Puts them into a stored session's stock; False when the bytes were altered or belong elsewhere.
    """
