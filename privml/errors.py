# SPDX-License-Identifier: Apache-2.0
"""The exception tree: every error privml raises on purpose says what happened, where, and what to do."""


class PrivmlError(Exception):
    """Base of all errors raised by privml; each kind's docstring ends with its remedy. ``command_line``: the message
    with the keys of the command line in place of Python's names, where they differ."""

    def __init__(self, *args: object, command_line: str | None = None) -> None:
        super().__init__(*args)
        self.command_line = command_line


class ConfigError(PrivmlError, ValueError):
    """A setting is missing, misspelt or contradicts another.

    Remedy: Change the setting that the message names; ``privml VERB --help`` and the page of settings list all.
    """


class UnsupportedOperator(PrivmlError, NotImplementedError):
    """A model uses an operator that has no secure implementation; names operator, node and what is near it.

    Remedy: Use one of the operators that the message or the page of operators names, or add a rule.
    """


class SecretLeakError(PrivmlError, RuntimeError):
    """An operation would reveal a secret (``float(x)``, ``x.numpy()``, a data-dependent shape, ...).

    Remedy: Compute with torch's functions on the secret itself, or reveal it first with ``privml.reveal(x, to=party)``.
    """


class OverflowDetected(PrivmlError, OverflowError):
    """The plain engine found a value outside its format's range; names the layer and the value's size.

    Remedy: Take more bits or a smaller scale, or scale the model; calibrate with data that resemble later inputs.
    """


class PrecisionLost(PrivmlError, ArithmeticError):
    """No number format keeps a model's outputs within the tolerance; names the layers that lose the most.

    Remedy: Scale the model so that its values are neither tiny nor huge, use ``numerics=float32``, or allow for the
    error with ``numerics.accept``.
    """


class InvalidInput(PrivmlError, ValueError):
    """An input has a wrong shape or dtype, or holds NaN, infinity or a value too large for its format.

    Remedy: Correct the input that the message names: its shape, its dtype, or the value at the index given.
    """


class CorruptFile(PrivmlError, ValueError):
    """A program, weights or store file is truncated, altered or not of privml.

    Remedy: Copy the file again from the party that wrote it, or convert the model again.
    """


class StoreError(PrivmlError, RuntimeError):
    """A store of correlations is in use elsewhere, used up, of another party or program, or its disk is full.

    Remedy: Make a new store with ``privml preprocess``; never restore one half from a copy.
    """


class HandshakeMismatch(PrivmlError, RuntimeError):
    """The parties have different settings, programs or releases; names the field and both values.

    Remedy: Give all parties the same release, program, engine and formats; the message names what differs.
    """


class ProgramsDiffer(PrivmlError, RuntimeError):
    """The parties compute different things; names the first operation that differs at each. The session is over.

    Remedy: Compare the lines that the message names; pass the same public values and draws at all parties.
    """


class PeerDisconnected(PrivmlError, ConnectionError):
    """The other party closed the connection, died, or did not answer within the deadline.

    Remedy: Read the other party's log and check the network; raise ``deadline`` if it
    computes for long, and ``session_seconds`` of a server whose queries take hours.
    """


class StateLost(PrivmlError, ConnectionError):
    """A session that keeps state between its calls has ended or failed, and its state is gone; says why.

    Remedy: Begin another session and repeat the steps from the first one; raise ``idle`` or ``session_seconds`` of the
    server if steps are far apart.
    """


class ProtocolError(PrivmlError, RuntimeError):
    """The other party sent bytes that the protocol does not allow.

    Remedy: Check that the other end is a privml party of the same release, with TLS at both ends or at neither.
    """


class IdentityError(PrivmlError, ConnectionError):
    """A party's certificate is missing, expired, of another authority or for another name; both sides get the error.

    Remedy: Issue or renew the certificate (``privml certs issue``), or expect the name that is in it.
    """


class SecurityAbort(PrivmlError, RuntimeError):
    """A consistency or MAC check failed: the session has ended and its keys are wiped.

    Remedy: Do not repeat the run automatically: find out who deviated, and delete stores made with that party.
    """


class ServiceBusy(PrivmlError, ConnectionError):
    """The server or the dealer accepts no further session now; ``retry_after``: seconds after which to retry.

    Remedy: Ask again after ``retry_after`` seconds, or start the server with more ``workers``.
    """

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ServiceMoved(PrivmlError, ConnectionError):
    """The server, which has proved ``name`` (empty without TLS), redirects its clients to ``address`` ("host:port").

    Remedy: Connect to ``address`` and expect ``name`` there; ``privml query`` and ``privml.Client`` do so.
    """

    def __init__(self, message: str, address: str = "", name: str = "") -> None:
        super().__init__(message)
        self.address, self.name = address, name
