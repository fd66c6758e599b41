# SPDX-License-Identifier: Apache-2.0
"""What the commands print: brackets, errors, warnings, logs and progress."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings

import numpy as np
import pytest
import torch
from rich.console import Console

import privml
from privml.cli import console
from privml.cli.fields import WrongCall
from privml.encoding import encode_input
from privml.errors import ConfigError, InvalidInput, PrivmlError
from privml.formats import FixedPoint, Integer
from privml.service.events import Events, text_lines
from privml.service.inputs import checked_input
from privml.service.options import Addresses, addresses_of
from privml.session.identity import check_addresses


@pytest.fixture
def stderr(monkeypatch):
    """What goes to standard error, as on a terminal that is no terminal."""
    stream = io.StringIO()
    made = console.make_console(stderr=True)
    monkeypatch.setattr(console, "err", Console(file=stream, highlight=False, markup=made._markup, width=made.width))
    return stream


def test_extras_in_brackets_are_shown():
    for stream in (console.out, console.err):
        with stream.capture() as shown:
            stream.print("pip install 'privml[experiments]'")
            stream.print(console.table("a[b]", ["c[d]"], [["e[service]"]]))
        assert all(text in shown.get() for text in ("'privml[experiments]'", "a[b]", "c[d]", "e[service]"))


@pytest.mark.parametrize("names, lines", [(["", ""], 3), (["a", "b"], 5)])
def test_columns_without_names_have_no_header(names, lines):
    text = io.StringIO()
    Console(file=text, width=40).print(console.table("", names, [["x", "y"]]))
    assert len(text.getvalue().strip("\n").splitlines()) == lines


@pytest.mark.parametrize(
    "error, status, shown",
    [
        (WrongCall("there is no setting x"), 2, "privml query: there is no setting x"),
        (ConfigError("pip install 'privml[sklearn]'"), 1, "ConfigError: pip install 'privml[sklearn]'"),
        (ConfigError("python", command_line="terminal"), 1, "ConfigError: terminal"),
        (FileNotFoundError(2, "No such file or directory", "a/program"), 1, "a/program: no such file or directory"),
        (KeyError("inner"), 1, "KeyError: 'inner' ("),
    ],
)
def test_an_error_is_one_line_and_a_status(error, status, shown, stderr):
    with pytest.raises(SystemExit) as ended, console.clean_errors("query"):
        raise error
    assert ended.value.code == status
    first, *more = stderr.getvalue().splitlines()
    assert shown in first and (not more or isinstance(error, KeyError))


def test_a_warning_is_one_line_without_its_source(stderr):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        console.plain_warnings()
        warnings.warn("no TLS\n  to [host]", stacklevel=1)
    assert stderr.getvalue() == "warning: no TLS to [host]\n"


def test_progress_in_a_pipe_is_a_line_every_few_seconds(capsys):
    now = [100.0]
    lines = console.Lines("query", lambda: now[0])
    for done in range(40):
        now[0] += 0.5
        lines(done, 40, f"layer{done}")
    shown = capsys.readouterr().err.splitlines()
    assert shown == ["query: 9/40 layer9", "query: 19/40 layer19", "query: 29/40 layer29", "query: 39/40 layer39"]


def test_the_bar_of_a_terminal_moves_by_layers(monkeypatch):
    stream = io.StringIO()
    terminal = Console(file=stream, force_terminal=True, width=120, highlight=False, markup=False)
    monkeypatch.setattr(console, "err", terminal)
    with console.progress("query", quiet=False, first="agreeing on keys") as step:
        for done in range(3):
            step(done, 3, f"layer[{done}]")
    shown = stream.getvalue()
    assert "agreeing on keys" in shown and "?" not in re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", shown)
    assert all(f"{done}/3" in shown and f"layer[{done}]" in shown for done in range(3))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_goes_on_while_what_others_print_is_kept_back(monkeypatch):
    """As ``convert`` keeps back what torch prints while it traces."""
    terminal, kept = Terminal(), io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "err", console.make_console(stderr=True))
    with console.progress("convert", quiet=False) as step, contextlib.redirect_stderr(kept):
        print("a graph of torch", file=sys.stderr)
        step(1, 9, "trace")
        assert "1/9" in terminal.getvalue() and kept.getvalue() == "a graph of torch\n"
    monkeypatch.setattr(sys, "stderr", other := Terminal())
    console.err.print("afterwards")
    assert "afterwards" in other.getvalue() and "afterwards" not in terminal.getvalue()


def test_of_many_steps_the_part_is_told(capsys, monkeypatch):
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
    lines = console.Lines("query")
    for done, total in ((3, 999), (3, 1000), (2_500_000, 10_000_000)):
        lines(done, total, "layer")
    assert capsys.readouterr().err.splitlines() == ["query: 3/999 layer", "query: 0% layer", "query: 25% layer"]


def test_a_log_line_has_the_time_and_ends_with_who_it_is_about(capsys):
    events = Events(text_lines(console.log_lines(quiet=False)))
    events.emit("answered", text="query 1: input [2, 4]", peer="hospital-b", address="10.0.0.7:40112")
    events.emit("refused", text="a connection was refused", peer="", address="[::1]:9")
    events.emit("listening", text="listening on port 9000", port=9000)
    shown = capsys.readouterr().out.splitlines()
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", line) for line in shown)
    assert [line[20:] for line in shown] == [
        "query 1: input [2, 4] (hospital-b at 10.0.0.7:40112)",
        "a connection was refused ([::1]:9)",
        "listening on port 9000",
    ]


@pytest.mark.parametrize(
    "fmt, value, words",
    [
        (FixedPoint(13, 7), [[0.0, 32.0]], r"values must lie in \[-32, 32\), and input index \(0, 1\) is not"),
        (FixedPoint(13, 7, nonnegative=True), [-1.0], r"values must lie in \[0, 32\)"),
        (Integer(8), [200], r"values must lie in \[-128, 128\)"),
    ],
)
def test_ranges_are_told_as_numbers(fmt, value, words):
    with pytest.raises(InvalidInput, match=words) as error:
        encode_input(torch.tensor(value), fmt)
    assert "FixedPoint" not in str(error.value) and "Integer" not in str(error.value)


def test_an_empty_input_is_not_a_wrong_shape():
    with pytest.raises(InvalidInput, match=r"x: shape \(0, 30\) has no elements"):
        checked_input(np.zeros((0, 30)), (None, 30), FixedPoint(), "x")


@pytest.mark.parametrize(
    "host, words",
    [
        ("0.0.0.0", "every address of this machine"),
        ("[::]", "every address of this machine"),
        ("192.168.1.5", "an address that other machines reach"),
        ("hospital-b.example", "an address that other machines reach"),
    ],
)
def test_addresses_that_need_certificates_are_told_as_they_are(host, words):
    with pytest.raises(ConfigError) as error:
        check_addresses(privml.SessionSpec(), f"{host}:9000")
    in_python, on_command_line = str(error.value), console.message_of(error.value)
    assert words in in_python and words in on_command_line
    assert "insecure=True" in in_python and "identity." not in in_python
    assert "identity.insecure=true" in on_command_line and "Tls(" not in on_command_line
    check_addresses(privml.SessionSpec(), "127.0.0.1:9000", "localhost:9000", "[::1]:9000")


def test_a_missing_dealer_is_asked_for_by_the_name_of_the_setting():
    spec = privml.SessionSpec.of("threepc")
    with pytest.raises(ConfigError, match=r"Addresses\(server, dealer\)$") as error:
        addresses_of(Addresses("127.0.0.1:9000"), spec)
    assert console.message_of(error.value).endswith("dealer=host:port")


@pytest.mark.parametrize("kind", PrivmlError.__subclasses__())
def test_every_error_may_have_another_text_for_the_command_line(kind):
    assert console.message_of(kind("python", command_line="terminal") if kind.__init__ is PrivmlError.__init__ else
                              kind("terminal")) == "terminal"  # fmt: skip
    assert console.message_of(kind("both")) == "both"
