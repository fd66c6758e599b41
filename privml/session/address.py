# SPDX-License-Identifier: Apache-2.0
"""``host:port`` as users write it."""

from __future__ import annotations

from privml.errors import ConfigError


def parse_address(text: str) -> tuple[str, int]:
    """("127.0.0.1", 9000) from "127.0.0.1:9000" or "[::1]:9000"; port 0 lets the system choose.

    Raises ConfigError naming the text.
    """
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"'{text}' is not an address; write host:port, for example 127.0.0.1:9000")
    return host, int(port)
