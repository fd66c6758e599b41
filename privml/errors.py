# SPDX-License-Identifier: Apache-2.0
"""The exception tree: every error privml raises on purpose says what happened, where, and what to do."""


class PrivmlError(Exception):
    """Base of all errors raised by privml. ``command_line``: the message with the keys of the command line in place of
    Python's names, where they differ."""

    def __init__(self, *args: object, command_line: str | None = None) -> None:
        super().__init__(*args)
        self.command_line = command_line


class ConfigError(PrivmlError, ValueError):
    """A setting is missing, misspelt or contradicts another."""


class UnsupportedOperator(PrivmlError, NotImplementedError):
    """A model uses an operator that has no secure implementation; names operator, node and what is near it."""


class SecretLeakError(PrivmlError, RuntimeError):
    """An operation would reveal a secret (``float(x)``, ``x.numpy()``, a data-dependent shape, ...)."""


class OverflowDetected(PrivmlError, OverflowError):
    """The plain engine met a value outside its format's range; names the layer and the value's size."""


class InvalidInput(PrivmlError, ValueError):
    """An input has a wrong shape or dtype, or holds NaN, infinity or a value too large for its format."""


class CorruptFile(PrivmlError, ValueError):
    """A program, weights or store file is truncated, altered or not of privml."""


class StoreError(PrivmlError, RuntimeError):
    """A store of correlations is in use elsewhere, used up, of another party or program, or its disk is full."""


class HandshakeMismatch(PrivmlError, RuntimeError):
    """The parties disagree; names the field and both values."""


class ProgramsDiffer(PrivmlError, RuntimeError):
    """The parties compute different things; names the first operation that differs at each. The session is over."""


class PeerDisconnected(PrivmlError, ConnectionError):
    """The other party closed the connection, died, or did not answer within the deadline."""


class ProtocolError(PrivmlError, RuntimeError):
    """The other party sent bytes that the protocol does not allow."""


class IdentityError(PrivmlError, ConnectionError):
    """A party's certificate is missing, expired, of another authority or for another name; both sides are told."""


class SecurityAbort(PrivmlError, RuntimeError):
    """A consistency or MAC check failed: the session is dead and its keys are wiped."""


class ServiceBusy(PrivmlError, ConnectionError):
    """The server or the dealer takes no further session now; ``retry_after``: seconds after which to come again."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServiceMoved(PrivmlError, ConnectionError):
    """The server, which has proved ``name`` (empty without TLS), sends its clients on to ``address`` ("host:port")."""

    def __init__(self, message: str, address: str = "", name: str = "") -> None:
        super().__init__(message)
        self.address, self.name = address, name
