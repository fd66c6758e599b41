# SPDX-License-Identifier: Apache-2.0
"""Records of evaluations, and the cards, Markdown and page that are drawn of them."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import models
from privml.engines.correlations import OtChoice
from privml.errors import ConfigError
from privml.formats import FixedPoint, Float, Integer
from privml.measure import answers, charts, markdown, page, records, views, words
from privml.measure import zoo as measure
from privml.spec import LinkProfile, SessionSpec

LAN = {"name": "lan", "delay_ms": 0.4, "bandwidth_mbps": 3000}
LOOPBACK = {"name": "loopback", "delay_ms": 0, "bandwidth_mbps": 0}


def settings_of(engine, network=LOOPBACK, ot=None, **settings):
    link = LinkProfile(network["delay_ms"], network["bandwidth_mbps"])
    return measure.Settings(SessionSpec(engine, ot, simulated=link), network["name"], **settings)


def evaluated(name, *args, **settings):
    return measure.evaluate(models.load, name, models.card_of(name).read_text(), settings_of(*args, **settings))


@pytest.fixture(scope="module")
def some():
    """Two models in the clear, and predicted for all engines: nothing is small enough to be run."""
    found = [evaluated(name, "plain") for name in ("mlp", "tumours")]
    for engine, network in (("twopc", LOOPBACK), ("twopc", LAN), ("threepc", LAN)):
        found += [evaluated(name, engine, network, largest=1) for name in ("mlp", "tumours")]
    return found


@pytest.fixture(scope="module")
def all_kinds(some):
    """The same with runs: measured as predicted, and one that is not."""
    run = [
        replace(r, measured=replace(r.predicted, seconds=0.5), exact=True, answers=some[0].answers) for r in some[2:]
    ]
    return [*some[:2], *run[:-1], replace(run[-1], exact=False)]


def test_a_page_of_one_model_has_no_empty_charts_and_counts_in_the_singular(some):
    mlp = [record for record in some if record.model == "mlp"]
    text = page.document(mlp)
    assert page.tiles(views.Zoo(mlp))[0] == ("1", "model") and "1 models" not in text
    assert all(side["rows"] for side in page.sides(views.Zoo(mlp), {record.way: "a" for record in mlp}))
    predicted = [record for record in mlp if record.engine != "plain"]
    text = page.document(predicted)
    for section in ("answers", "forecasts", "precision"):  # nothing was run, so there is nothing to show in them
        assert f'id="{section}"' not in text and f'href="#{section}"' not in text
    assert 'id="layers"' in text and 'class="plot"' not in text.partition('id="engines"')[0]
    random = [replace(record, learned=False) for record in mlp]
    assert page.tiles(views.Zoo(random))[0] == ("1", "model, with random weights")


def test_the_plain_engine_answers_all_shipped_rows(some):
    mlp, tumours = some[:2]
    assert mlp.answers.rows == 100 and mlp.answers.same >= 98 and mlp.answers.right >= 95
    assert tumours.answers.same == 100 and tumours.parameters == 2140
    assert mlp.errors.largest <= mlp.errors.allowed and mlp.errors.total == 1000
    assert mlp.measured.bytes == 0 and mlp.measured.seconds > 0


def test_what_is_too_large_or_slow_is_predicted_but_not_run(some):
    for record in some[2:]:
        assert record.measured is None and record.answers is None and record.exact is None
        assert record.rows == 1 and record.predicted.bytes > 1000 and record.cost is record.predicted
        assert sum(layer.bytes for layer in record.layers) <= record.predicted.online.bytes
    slow = evaluated("tumours", "twopc", {"name": "far", "delay_ms": 1000, "bandwidth_mbps": 0}, patience=5)
    assert slow.measured is None and slow.rows == 10 and slow.messages_seconds > 5


def test_the_record_is_that_of_the_run_of_median_time(monkeypatch):
    taken = iter([0.5, 0.1, 0.9])
    run = lambda *_, **__: SimpleNamespace(client=SimpleNamespace(seconds=next(taken)))  # noqa: E731
    monkeypatch.setattr(measure, "launch", run)
    prepared = SimpleNamespace(program=None, inputs=torch.zeros(1, 1))
    found = measure._median_run(prepared, settings_of("twopc", LAN, repeats=3), 1, None)
    assert found.client.seconds == 0.5


def test_engines_are_named_when_one_is_unknown():
    with pytest.raises(ConfigError, match="threepc"):
        evaluated("mlp", "quantum")


def test_three_parties_and_actively_secure_ones_leave_floats_out():
    assert evaluated("relevance", "threepc") is None and evaluated("relevance", "active") is None


def test_the_actively_secure_engine_takes_malicious_transfers_alone():
    record = evaluated("tumours", "active", largest=1)
    assert record.predicted.bytes > 0 and record.ot == "softspoken-k4-malicious"
    assert words.way(record) == "two parties, malicious security, SoftSpoken OT, k = 4"
    record = evaluated("tumours", "twopc", ot=OtChoice("softspoken", 2, "malicious"), largest=1)
    assert words.way(record) == "two parties, SoftSpoken OT, k = 2, malicious"


def test_a_predicted_time_is_kept_and_drawn(all_kinds):
    told = [replace(r, predicted_seconds=0.45) if r.engine != "plain" else r for r in all_kinds]
    assert page.all_predicted(views.Zoo(told)) and not page.all_predicted(views.Zoo(all_kinds))
    assert "messages alone</text>" in page.document(all_kinds) and "messages alone</text>" not in page.document(told)
    assert "within a quarter for 6 of 6" in markdown.document(told)
    card = models.card_of("tumours").read_text()
    settings = settings_of("threepc", LAN, largest=1)
    made = measure.evaluate(models.load, "tumours", card, settings, forecast=lambda program, rows: 2.0 * rows)
    assert made.predicted_seconds == 2.0


def test_records_come_back_from_their_file(all_kinds, tmp_path):
    file = tmp_path / "zoo.jsonl"
    for record in all_kinds:
        records.save(record, file)
    assert records.read_all(file) == sorted(all_kinds, key=lambda record: record.key)
    records.save(replace(all_kinds[0], rows=7), file)
    assert len(records.read_all(file)) == len(all_kinds)


def test_labels_of_every_kind_of_output():
    assert answers.labels([torch.tensor([3, 1])]).tolist() == [3, 1]
    assert answers.labels([torch.tensor([[0.1, 0.9], [2.0, 1.0]])]).tolist() == [1, 0]
    assert answers.labels([torch.tensor([[0.1], [0.9]])]).tolist() == [0, 1]


def test_errors_are_counted_by_powers_of_two():
    clear = torch.tensor([[1.0, 2.0, 4.0, -8.0]])
    found = clear + torch.tensor([[0.0, 0.25, -0.3, 0.5]])
    precision = SimpleNamespace(precision=SimpleNamespace(tolerance=0.5))
    outputs = [SimpleNamespace(format=Integer()), SimpleNamespace(format=FixedPoint(32, 4))]
    program = SimpleNamespace(outputs=outputs, choice=precision, numerics=SimpleNamespace(floating=None))
    labels = torch.zeros(1, dtype=torch.int64)
    made = answers.errors(program, (labels, found), (labels, clear))
    assert made.counts == {"-2": 1, "-1": 2} and made.exact == 1 and made.total == 4
    assert made.largest == 0.5 and made.unit == 2.0**-4 and made.reach == 8 and made.allowed == 4
    assert answers.unit(Float(8, 23), 1.0) == 2.0**-23 == torch.finfo(torch.float32).eps
    assert answers.errors(SimpleNamespace(outputs=outputs[:1]), (labels,), (labels,)) is None


def test_operators_of_a_family():
    found = {
        name: views.family(f"aten.{name}.default") for name in ("conv2d", "max_pool2d", "_safe_softmax", "avg_pool2d")
    }
    assert list(found.values()) == ["products", "comparisons", "functions", "elementwise"]
    assert views.family("aten.baddbmm.default") == "products" and views.family("reveal") == "other"
    assert views.family("aten.argmax.default") == views.family("aten.max_pool2d.default") == "comparisons"


def test_numbers_for_people():
    assert [words.size(n) for n in (7, 1234, 56_700_000, 2.5e10)] == ["7 B", "1.23 kB", "56.7 MB", "25.0 GB"]
    assert [words.duration(s) for s in (0.0012, 0.5, 3.21, 600)] == ["1.20 ms", "500 ms", "3.21 s", "10.0 min"]
    assert words.tick("10.0 ms") == "10 ms"


def test_axes_hold_what_they_show():
    axis = charts.LogAxis.around([0.02, 3.0])
    assert (axis.low, axis.high) == (-2, 1) and axis.place(0.01) == 0 and axis.place(10) == pytest.approx(100)
    assert [label for _, label in axis.ticks(words.duration)] == ["10 ms", "100 ms", "1 s", "10 s"]


def test_bars_add_up_to_the_query(all_kinds):
    for record in all_kinds[2:]:
        for bar in (views.bytes_bar(record), views.time_bar(record)):
            assert sum(part.share for part in bar) == pytest.approx(100, abs=0.01)


def test_a_card_s_generated_part_is_replaced_and_the_rest_kept(all_kinds, tmp_path):
    card = tmp_path / "README.md"
    card.write_text("# MLP\n\nby hand\n")
    mlp = [record for record in all_kinds if record.model == "mlp"]
    markdown.fill_card(card, mlp)
    first = card.read_text()
    assert first.startswith("# MLP\n\nby hand\n\n" + markdown.BEGIN) and first.endswith(markdown.END + "\n")
    assert "| three parties | lan | 1 |" in first and "exactly" in first
    markdown.fill_card(card, mlp)
    assert card.read_text() == first
    card.write_text(first + "\nmore by hand\n")
    markdown.fill_card(card, mlp[:1])
    assert card.read_text().endswith(markdown.END + "\n\nmore by hand\n") and "lan" not in card.read_text()
    markdown.fill_card(card, [])
    assert "by hand" in card.read_text()


def test_the_markdown_has_every_model_and_engine(all_kinds):
    text = markdown.document(all_kinds)
    assert text.count("| MLP |") >= 4 and "three parties" in text and "In 5 of 6 runs" in text
    widths = {}
    for line in text.splitlines():
        if line.startswith("|"):
            widths.setdefault(line.count("|"), []).append(line)
    assert all(len(rows) >= 3 for rows in widths.values())


RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "zoo.jsonl"
REDRAW = "privml evaluate zoo measure=false cards=true markdown=docs/zoo.md results=benchmarks/results/zoo.jsonl"


def test_documentation_and_cards_are_those_of_the_records(tmp_path):
    found = records.read_all(RESULTS)
    assert (Path(__file__).parents[2] / "docs" / "zoo.md").read_text() == markdown.document(found), REDRAW
    for name in models.names():
        copy = tmp_path / f"{name}.md"
        copy.write_text(models.card_of(name).read_text())
        markdown.fill_card(copy, [record for record in found if record.model == name])
        assert copy.read_text() == models.card_of(name).read_text(), REDRAW


class Balanced(HTMLParser):
    """Fails on tags that do not close, and collects what would be fetched."""

    VOID = {"meta", "input", "br", "line", "circle", "rect"}

    def __init__(self):
        super().__init__()
        self.open, self.fetched = [], []

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in ("src", "data", "srcset")]
        self.fetched += [value for name, value in attrs if name == "href" and not value.startswith("#")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("which", ["some", "all_kinds"])
def test_the_page_is_one_file_and_whole(which, request):
    text = page.document(request.getfixturevalue(which))
    parser = Balanced()
    parser.feed(text)
    assert not parser.open and not parser.fetched
    assert "@import" not in text and "url(" not in text and "<script" not in text
    assert "MLP" in text and "Tumours" in text and "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", text)


def test_what_a_card_says_is_escaped(some):
    text = page.document([replace(record, title="<b>&") for record in some])
    assert "<b>&" not in text and "&lt;b&gt;&amp;" in text
