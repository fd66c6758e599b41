# SPDX-License-Identifier: Apache-2.0
"""One line about an error inside a model: what went wrong, the file and the line of the model's own code."""

from __future__ import annotations

import contextlib
import io
import linecache
import logging
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

_LIBRARY = str(Path(torch.__file__).parent)
_OURS = str(Path(__file__).parents[1])
# How notes on errors begin that name a node of an ONNX file.
IN_NODE = "node"


def place_of(error: BaseException) -> str | None:
    """``FILE:LINE: code`` of the innermost frame that belongs neither to torch nor to privml; None if there is none."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    lines = [line for _, line in traceback.walk_tb(error.__traceback__)]
    for frame, line in reversed(list(zip(frames, lines, strict=True))):
        name = frame.f_code.co_filename
        if name.startswith((_LIBRARY, _OURS, "<")) or "/lib/python" in name and "site-packages" not in name:
            continue
        code = linecache.getline(name, line).strip()
        return f"{name}:{line}: {code}" if code else f"{name}:{line}"
    return None


def _node_of(error: BaseException) -> str | None:
    """The node of an ONNX file in which the error was raised; None outside of one."""
    return next((note for note in getattr(error, "__notes__", ()) if note.startswith(IN_NODE)), None)


def blame(error: BaseException) -> str:
    """``error`` in one line, with its place."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    where = place_of(error) or _node_of(error)
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{what} (at {where})" if where else what


@contextlib.contextmanager
def quiet_torch(debug: bool = False) -> Iterator[None]:
    """Keeps torch's own log lines and warnings to itself, which say in many lines what ``blame`` says in one."""
    if debug:
        yield
        return
    logger = logging.getLogger("torch")
    names = [name for name in logging.root.manager.loggerDict if name.startswith("torch.")]
    loggers = [logger, *(logging.getLogger(name) for name in names)]
    before = [each.disabled for each in loggers]
    for each in loggers:
        each.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, state in zip(loggers, before, strict=True):
            each.disabled = state


@contextlib.contextmanager
def no_output(debug: bool = False) -> Iterator[None]:
    """Discards what is printed within, such as the graphs that torch prints with its errors."""
    if debug:
        yield
        return
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
