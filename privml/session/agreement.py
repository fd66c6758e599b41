# SPDX-License-Identifier: Apache-2.0
"""What the parties negotiate in clear between handshake and set-up: each sends a request, each accepts or refuses.

Wire layout: 4 bytes little-endian length (at most 4096), then JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from privml.errors import InvalidInput, PrivmlError, ProtocolError, StoreError
from privml.session.handshake import ByteChannel

LENGTH_LIMIT = 4096
_PATH = re.compile(r"(?:/[^/\s:'\"]+)+")
# Errors of the peer that are raised here too; any other one becomes InvalidInput.
_SHARED_ERRORS = {StoreError.__name__: StoreError}
Result = TypeVar("Result")
Fields = dict[str, Any]


def agree(
    channel: ByteChannel, ours: Fields, check: Callable[[Fields], tuple[Result, Fields]], refusal: str
) -> tuple[Result, Fields]:
    """Exchanges ``ours`` for the peer's request. ``check`` turns the peer's request into a result and a reply; returns
    the result and the peer's reply.

    If ``check`` raises, the peer gets a refusal and the error is raised here. If the peer refuses, InvalidInput, or
    StoreError if its store is what failed, gives ``refusal`` and its reason. Raises ProtocolError for a malformed
    message.
    """
    theirs = _exchange(channel, ours)
    try:
        result, further = check(theirs)
    except PrivmlError as error:
        # The peer's reply is read too: a connection that is closed over unread bytes could lose ours.
        _exchange(channel, _refusal(error))
        raise
    verdict = _exchange(channel, {"accepted": True, **further})
    _expect_accepted(verdict, refusal)
    return result, verdict


def confirm(channel: ByteChannel, action: Callable[[], Result]) -> Result:
    """``action()``, which this party alone can do; the peer, in ``expect_confirmation``, learns if it succeeded."""
    try:
        result = action()
    except PrivmlError as error:
        _send(channel, _refusal(error))
        raise
    _send(channel, {"accepted": True})
    return result


def expect_confirmation(channel: ByteChannel, refusal: str) -> None:
    """The peer's side of ``confirm``: raises as ``agree`` does when it refuses."""
    _expect_accepted(_receive(channel), refusal)


def _refusal(error: PrivmlError) -> Fields:
    reason = _PATH.sub(lambda path: path[0].rsplit("/", 1)[1], str(error))  # not its folders
    return {"accepted": False, "error": type(error).__name__, "reason": reason[:500]}


def _expect_accepted(verdict: Fields, refusal: str) -> None:
    if verdict.get("accepted") is not True:
        kind = _SHARED_ERRORS.get(str(verdict.get("error")), InvalidInput)
        raise kind(f"{refusal}: {str(verdict.get('reason'))[:300]!r}")


def _exchange(channel: ByteChannel, message: Fields) -> Fields:
    _send(channel, message)
    return _receive(channel)


def _send(channel: ByteChannel, message: Fields) -> None:
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > LENGTH_LIMIT:
        raise InvalidInput("the inputs have too many dimensions")
    channel.write(len(body).to_bytes(4, "little") + body)
    channel.flush()


def _receive(channel: ByteChannel) -> Fields:
    length = int.from_bytes(channel.read(4), "little")
    if length > LENGTH_LIMIT:
        raise ProtocolError(f"the peer announces {length} bytes, at most {LENGTH_LIMIT} are allowed")
    try:
        answer = json.loads(channel.read(length).decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError("the peer's message is not JSON") from error
    if not isinstance(answer, dict):
        raise ProtocolError("the peer's message is not an object")
    return answer
