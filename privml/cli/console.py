# SPDX-License-Identifier: Apache-2.0
"""What the commands print: progress, tables of the ledger, and errors in one line."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from privml.cli.fields import WrongCall
from privml.errors import PrivmlError
from privml.tables import size_text as size  # noqa: F401

WIDTH_WITHOUT_TERMINAL = 120
# Without a terminal progress is printed this often at most.
SECONDS_BETWEEN_LINES = 5.0
# Of more a part is printed.
_FEW_STEPS = 999


def make_console(stderr: bool) -> Console:
    """Without markup: what stands in brackets is shown as it is."""
    console = Console(stderr=stderr, highlight=False, markup=False)
    if console.is_terminal:
        return console
    return Console(stderr=stderr, highlight=False, markup=False, width=WIDTH_WITHOUT_TERMINAL)


out = make_console(stderr=False)
err = make_console(stderr=True)


@contextlib.contextmanager
def clean_errors(verb: str = "") -> Iterator[None]:
    """Expected errors end the command with one readable message, wrong calls with exit status 2, others with 1;
    PRIVML_TRACEBACK=1 shows where they came from."""
    try:
        yield
    except BrokenPipeError:
        raise  # `privml.cli.main` ends without words
    except (PrivmlError, ValueError, OSError) as error:
        if os.environ.get("PRIVML_TRACEBACK"):
            traceback.print_exc()
        wrong = isinstance(error, WrongCall)
        err.print(f"privml {verb}" if wrong and verb else type(error).__name__, style="bold red", end=": ")
        err.print(message_of(error), soft_wrap=True)  # one line, however long: for those who search logs
        sys.exit(2 if wrong else 1)
    except KeyboardInterrupt:
        err.print("interrupted")
        sys.exit(130)
    except Exception as error:
        if os.environ.get("PRIVML_TRACEBACK"):
            traceback.print_exc()
        last = traceback.extract_tb(error.__traceback__)[-1]
        err.print(f"{type(error).__name__}", style="bold red", end=": ")
        err.print(f"{error} ({last.filename}, line {last.lineno})", soft_wrap=True)
        err.print("This is unexpected: PRIVML_TRACEBACK=1 shows where it came from; please report it.")
        sys.exit(1)


def plain_warnings() -> None:
    """Warnings take one line, without the source that they came from."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        err.print("warning", style="yellow", end=": ")
        err.print(" ".join(str(message).split()), soft_wrap=True)

    warnings.showwarning = show


def message_of(error: BaseException) -> str:
    """The text of an error, with the keys of the command line; a file that cannot be read or written comes first,
    its reason after it."""
    if getattr(error, "command_line", None):
        return error.command_line  # type: ignore[attr-defined]
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


@contextlib.contextmanager
def progress(title: str, quiet: bool, first: str = "") -> Iterator[Callable[[int, int, str], None]]:
    """A function ``(done, total, label)``: a bar on a terminal, now and then a line elsewhere, nothing when quiet.
    ``first``: the label before it is called; until then the amount of work is unknown, and the bar pulses."""
    if quiet:
        yield lambda done, total, label: None
    elif not err.is_terminal:
        yield Lines(title)
    else:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[label]}", markup=False),
        )
        with _held(err), Progress(*columns, console=err, transient=True) as bar:
            task = bar.add_task(title, total=None, label=first, count="")

            def step(done: int, total: int, label: str) -> None:
                bar.update(task, completed=done, total=total, count=_part(done, total), label=label, refresh=True)

            yield step


@contextlib.contextmanager
def _held(console: Console) -> Iterator[None]:
    """``console`` writes where it does now, also while what others print is kept back."""
    file = console.file
    default = file is getattr(sys.stderr, "rich_proxied_file", sys.stderr)
    console.file = file
    try:
        yield
    finally:
        console.file = None if default else file  # type: ignore[assignment]  # None: that of the moment


def _part(done: int, total: int) -> str:
    """Of few steps their number, of many, such as bytes, the part."""
    return f"{done}/{total}" if total <= _FEW_STEPS else f"{done / total:.0%}"


class Lines:
    """Progress as lines of text, one every ``SECONDS_BETWEEN_LINES`` at most, and none for what is done sooner."""

    def __init__(self, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._title, self._clock = title, clock
        self._last = clock()

    def __call__(self, done: int, total: int, label: str) -> None:
        if self._clock() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = self._clock()
            print(f"{self._title}: {_part(done, total)} {label}", file=sys.stderr, flush=True)


def printer(quiet: bool) -> Callable[[str], None]:
    """Prints lines at once, also without a terminal; nothing when quiet."""
    return (lambda text: None) if quiet else (lambda text: print(text, flush=True))


def log_lines(quiet: bool) -> Callable[[str], None]:
    """As ``printer``, with the local time before each line."""
    show = printer(quiet)
    return lambda text: show(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}")


def table(title: str, columns: list[str], rows: list[list[str]], footer: list[str] | None = None) -> Table:
    """First column left, the others right; the footer stands out. Columns without names have no header."""
    result = Table(title=title, title_justify="left", show_footer=footer is not None, header_style="bold")
    result.show_header = any(columns)
    for index, name in enumerate(columns):
        result.add_column(name, footer=footer[index] if footer else "", justify="left" if index == 0 else "right")
    for row in rows:
        result.add_row(*row)
    return result
