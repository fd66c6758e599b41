# SPDX-License-Identifier: Apache-2.0
"""A service's log as lines of JSON, one an event, for whatever collects logs."""

from __future__ import annotations

from typing import TextIO

from privml.errors import ConfigError
from privml.service.events import Event, Watch

FORMATS = ("text", "json")


def json_lines(stream: TextIO) -> Watch:
    """Writes every event to ``stream``: ``timestamp`` (UTC), ``level``, ``event``, ``session`` where it belongs to one,
    and the event's fields. ConfigError where structlog is missing."""
    try:
        import structlog
    except ImportError:
        raise ConfigError("log=json needs structlog: pip install 'privml[service]'") from None
    logger = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(ensure_ascii=True),
        ],
        wrapper_class=structlog.BoundLogger,
    )

    def watch(event: Event) -> None:
        named = {"session": event.session} if event.session else {}
        getattr(logger, event.severity)(event.kind, **named, **event.fields)

    return watch
