# SPDX-License-Identifier: Apache-2.0
"""What the commands print: progress, tables of the ledger, and errors in one line."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from privml.errors import PrivmlError

WIDTH_WITHOUT_TERMINAL = 120


def make_console(stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, highlight=False, width=WIDTH_WITHOUT_TERMINAL)


out = make_console(stderr=False)
err = make_console(stderr=True)


@contextlib.contextmanager
def clean_errors() -> Iterator[None]:
    """Expected errors end the command with one readable message; PRIVML_TRACEBACK=1 shows where they came from."""
    try:
        yield
    except (PrivmlError, ValueError, OSError) as error:
        if os.environ.get("PRIVML_TRACEBACK"):
            traceback.print_exc()
        err.print(f"[bold red]{type(error).__name__}[/]: ", end="")
        err.print(str(error), markup=False, soft_wrap=True)  # one line, however long: for those who search logs
        sys.exit(1)
    except KeyboardInterrupt:
        err.print("interrupted")
        sys.exit(130)


@contextlib.contextmanager
def progress(title: str, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A function ``(done, total, label)``: a bar on a terminal, plain lines elsewhere, nothing when quiet."""
    if quiet:
        yield lambda done, total, label: None
    elif not err.is_terminal:
        yield lambda done, total, label: print(f"{title}: {done}/{total} {label}", file=sys.stderr, flush=True)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[label]}"),
        )
        with Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task(title, total=None, label="")
            yield lambda done, total, label: bar.update(task, completed=done, total=total, label=label)


def teller(quiet: bool) -> Callable[[str], None]:
    """Prints lines at once, also where nobody looks on; nothing when quiet."""
    return (lambda text: None) if quiet else (lambda text: print(text, flush=True))


def size(count: float) -> str:
    """Bytes for people: 1.23 MB (powers of ten)."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.2f} {unit}"
        count /= 1000
    raise AssertionError


def table(title: str, columns: list[str], rows: list[list[str]], footer: list[str] | None = None) -> Table:
    """First column left, the others right; the footer stands out."""
    result = Table(title=title, title_justify="left", show_footer=footer is not None, header_style="bold")
    for index, name in enumerate(columns):
        result.add_column(name, footer=footer[index] if footer else "", justify="left" if index == 0 else "right")
    for row in rows:
        result.add_row(*row)
    return result
