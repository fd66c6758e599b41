# SPDX-License-Identifier: Apache-2.0
"""The party's key: 32 random bytes in a file that only its owner can read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
from pathlib import Path

from privml.errors import ConfigError, CorruptFile
from privml.store.durable import sync_folder, write_new, writing

KEY_BYTES = 32


def default_key_file() -> Path:
    """``privml/store.key`` in the user's configuration folder."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "privml" / "store.key"


def key_in(path: Path) -> bytes:
    """The key in the file, as ``read_key`` reads it; if there is none, a new one in a new file of mode 0600. Processes
    that ask for it at the same moment get the same key."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with writing(path):
            _make(path)
            sync_folder(path.parent)
    return read_key(path)


def _make(path: Path) -> None:
    """The name appears with its whole contents, or not at all if another process was first."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        write_new(fresh, os.urandom(KEY_BYTES))
        with contextlib.suppress(FileExistsError):
            try:
                os.link(fresh, path)
            except PermissionError:  # of a file system without links
                write_new(path, os.urandom(KEY_BYTES))
    finally:
        fresh.unlink(missing_ok=True)


def read_key(path: Path) -> bytes:
    """Raises ConfigError when the file is missing or others may read it, CorruptFile for another size."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no key there; name the key file that the store was made with") from None
    with os.fdopen(handle, "rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise ConfigError(f"{path}: others may read or change this key (mode {mode:04o}); run chmod 600 {path}")
        key = file.read(KEY_BYTES + 1)
    if len(key) != KEY_BYTES:
        raise CorruptFile(f"{path}: a key has {KEY_BYTES} bytes, but this file has {len(key)}")
    return key


def key_id(key: bytes) -> str:
    """Tells keys apart and says nothing else about them."""
    return hashlib.blake2b(key=key, digest_size=8, person=b"privml key id").hexdigest()


def tag_of(key: bytes, salt: str, digest: bytes) -> str:
    """Shows a holder of the key whether a value has this digest, and nothing else."""
    return hashlib.blake2b(
        digest, key=key, salt=bytes.fromhex(salt), digest_size=16, person=b"privml values"
    ).hexdigest()
