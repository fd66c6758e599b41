# SPDX-License-Identifier: Apache-2.0
"""What programs, secret tensors and reports show in a notebook and when printed: formats and costs, never values."""

import sys
from types import SimpleNamespace

import pytest
import torch

import privml
from privml.formats import Boolean, FixedPoint, Float, Integer, format_text
from privml.tables import Table, notebook_bar, size_text

# Neither these digits nor their ring elements may be shown.
VALUE = 1234.5678


@pytest.fixture(scope="module")
def program():
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)).eval()
    return privml.convert(module, calibration=torch.rand(20, 4) * 2 - 1)


def test_a_program_shows_layers_formats_and_exact_costs(program):
    table = program.summary([(5, 4)])
    assert [row[0] for row in table.rows] == list(program.layers)
    ledger = program.cost([(5, 4)])
    for row in table.rows:
        online = ledger.records[row[0]].cost.online
        assert row[3:] == (size_text(online.bytes), str(online.depth))
    total = ledger.snapshot().total
    assert f"{size_text(total.bytes)} in both directions" in str(table) and "(5, 4)" in str(table)
    for text in (str(table), program._repr_html_()):
        assert "bits" in text and "engine=twopc" in text


def test_a_program_shows_what_it_costs_on_another_engine(program):
    spec = privml.SessionSpec("threepc")
    assert size_text(program.cost([(1, 4)], spec).snapshot().total.bytes) in str(program.summary(spec=spec))


def test_shapes_that_are_none_are_refused(program):
    with pytest.raises(ValueError, match="shapes are one for each input"):
        program.summary(5)


@pytest.mark.parametrize("engine", ["plain", "twopc", "threepc"])
def test_a_secret_shows_what_all_know_and_no_value(engine):
    with privml.local(engine):
        x = privml.share(torch.full((2, 3), VALUE), owner=1)
        shown = x._repr_html_() + str(x.summary()) + repr(x)
        for component in x.share:
            element = int(component.flatten()[0])
            assert not element or str(element) not in shown
        assert "1234" not in shown and "(2, 3)" in shown and "torch.float32" in shown
        mixed = x + privml.share(torch.ones(2, 3), owner=0)
        known = "no party" if engine == "threepc" else "party 1 alone"
        assert known in str(x.summary()) and "no party" in str(mixed.summary())


def test_costs_of_a_session_and_of_a_choice_of_formats(program):
    with privml.local(program, engine="twopc") as session:
        program(torch.rand(1, 4))
        table = session.ledger.summary()
    assert [row[0] for row in table.rows[:3]] == list(program.layers)[:3] and table.rows[-1][0] == "total"
    assert table.rows[-1][1] == size_text(session.ledger.snapshot().total.bytes)
    assert "<table>" in session.ledger._repr_html_() and "largest error" in program.choice._repr_html_()


@pytest.mark.parametrize(
    "settings, numbers",
    [({"bits": 32, "scale": 10}, "32 bits, 10 of them fractional, in"), ({"floating": "bfloat16"}, "float, 8 bits of")],
)
def test_a_session_shows_engine_parties_and_numbers(settings, numbers):
    with privml.local("plain", **settings) as session:
        assert repr(session).startswith(f"Session(engine=plain, all parties; real numbers: {numbers}")


def test_names_are_escaped():
    html = Table("a & b", ("<script>", "value"), (("x<y", "1"),), ("n > 1",))._repr_html_()
    assert "<script>" not in html and "x&lt;y" in html and "a &amp; b" in html and "n &gt; 1" in html
    assert str(Table("empty", ("a",), ())) == "empty"


FORMATS = {
    "9 bits, 8 of them fractional, in [0, 1)": FixedPoint(9, 8, nonnegative=True),
    "32 bits, 4 of them fractional, in [-8, 8)": FixedPoint(32, 4, bound=128),
    "8 bits, whole numbers, in [-128, 128)": Integer(8),
    "bit": Boolean(),
    "float, 8 bits of exponent, 23 of mantissa": Float(),
}


@pytest.mark.parametrize("text", FORMATS)
def test_formats_in_words(text):
    assert format_text(FORMATS[text]) == text


def test_a_bar_moves_in_notebooks_alone(monkeypatch):
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    def pretend(shell):
        module = SimpleNamespace(get_ipython=lambda: shell)
        monkeypatch.setitem(sys.modules, "IPython", module)
        display = SimpleNamespace(HTML=str, display=lambda *_, **__: Handle())
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    pretend(None)
    notebook_bar("convert")(1, 3, "load")
    pretend(SimpleNamespace())
    notebook_bar("convert")(1, 3, "load")
    assert not shown
    pretend(SimpleNamespace(kernel=True))
    bar = notebook_bar("convert")
    bar(1, 3, "load<")
    bar(2, 3, "soon after, which is left out")
    bar(3, 3, "done")
    assert len(shown) == 2 and 'value="1" max="3"' in shown[0] and "load&lt;" in shown[0] and shown[1] == ""


@pytest.mark.parametrize("counted", [False, True])
def test_the_bar_of_a_query_moves_by_predicted_bytes_where_these_are_counted(program, monkeypatch, counted):
    shown = []
    monkeypatch.setattr("privml.program.notebook_bar", lambda title: lambda *step: shown.append((title, *step)))
    x = torch.rand(6 + counted, 4)
    if counted:
        program.cost([tuple(x.shape)])
    sizes = [program.layer_bytes([x.shape]).get(layer, 1) for layer in program.layers]
    assert (max(sizes) > 1) == counted
    with privml.local(program, engine="plain") as query:
        query({program.inputs[0].name: x})
    starts = [("query", sum(sizes[:i]), sum(sizes), layer) for i, layer in enumerate(program.layers)]
    assert shown == [*starts, ("query", sum(sizes), sum(sizes), "done"), ("query", 1, 1, "")]
    with pytest.raises(privml.errors.InvalidInput), privml.local(program, engine="plain") as query:
        query([[1, 2], [3]], "no input")
