# SPDX-License-Identifier: Apache-2.0
"""``privml evaluate zoo`` with real parties, and its page in a real browser."""

import json
import re
import shutil

import pytest

from privml.cli import main
from privml.measure.records import read_all

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def evaluate(folder, *settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        main(["evaluate", "zoo", *settings])


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Two models by every engine, and all that is drawn of them."""
    folder = tmp_path_factory.mktemp("zoo")
    common = ("count=3", "quiet=true", "results=found.jsonl", "report=zoo.html")
    two = "model.name=mlp+tumours"
    evaluate(folder, two, "engine=plain", *common)
    evaluate(folder, two, "engine=twopc", *common)
    evaluate(folder, "model=mlp", "engine=threepc", "link=lan", *common, "markdown=zoo.md")
    return folder


def test_secure_answers_are_the_clear_ones_and_bytes_are_those_predicted(evaluated):
    found = [record for record in read_all(evaluated / "found.jsonl") if record.engine != "plain"]
    assert len(found) == 3
    for record in found:
        assert record.answers.rows == record.answers.same == 3 and record.exact
        assert record.measured.bytes == record.predicted.bytes > 0 and record.measured.seconds > 0
        assert record.engine != "twopc" or record.differing == 0
        assert sum(layer.seconds for layer in record.layers) <= record.measured.seconds
        assert len(record.peak_memory) == (3 if record.engine == "threepc" else 2)


def test_drawing_needs_no_measuring(evaluated):
    before = (evaluated / "zoo.html").read_text()
    evaluate(evaluated, "measure=false", "quiet=true", "results=found.jsonl", "report=again.html")
    assert (evaluated / "again.html").read_text() == before
    assert "| MLP |" in (evaluated / "zoo.md").read_text()


@pytest.mark.parametrize(
    "engine, sections", [("plain", ["answers", "precision"]), ("twopc", ["engines", "layers", "forecasts"])]
)
def test_the_report_of_one_model_has_no_empty_part(evaluated, engine, sections, tmp_path, capsys):
    """Of one evaluation: parts, and links to them, where there is something to show."""
    lines = [json.loads(line) for line in (evaluated / "found.jsonl").read_text().splitlines()]
    (one,) = [line for line in lines if line["engine"] == engine and line["model"] == "mlp"]
    (tmp_path / "found.jsonl").write_text(json.dumps(one) + "\n")
    evaluate(tmp_path, "measure=false", "quiet=true", "results=found.jsonl", "report=one.html")
    assert capsys.readouterr().out.splitlines() == ["one.html: 1 evaluation"]
    text = (tmp_path / "one.html").read_text()
    assert re.findall(r'<section id="(\w+)">', text) == re.findall(r'<a href="#(\w+)">', text) == sections
    assert "<b>1</b><span>model</span>" in text and not re.search(r"\b1 (models|runs|rows)\b", text)
    for legend in re.findall(r'<ul class="legend">(.*?)</ul>', text, re.S):
        assert "<li>" in legend
    for plot in re.findall(r'<div class="plot">(.*?)<div class="corner">', text, re.S):
        assert "mark" in plot and "The switch above" not in text


def test_nothing_to_draw_and_unknown_models_end_in_one_line(tmp_path, capsys):
    for settings, message, status in ((("measure=false",), "no records", 1), (("model.name=alexnet",), "alexnet", 2)):
        with pytest.raises(SystemExit) as ended:
            evaluate(tmp_path, *settings, f"results={tmp_path}/none.jsonl")
        assert ended.value.code == status and message in capsys.readouterr().err


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as started:
        made = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield made
        made.close()


# The contrast of every text with what is painted behind it, as WCAG 2 defines it.
CONTRASTS = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => [r, g, b].map(v => linear(v / 255))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c; }
    return [255, 255, 255]; };
  const found = [];
  for (const e of document.querySelectorAll('h1,h2,h3,h4,p,td,th,li,span,b,label,summary,a,code,text')) {
    if (!e.textContent.trim() || !e.getClientRects().length || e.closest('nav')) continue;
    const style = getComputedStyle(e), color = parse(e.tagName === 'text' ? style.fill : style.color);
    const [a, b] = [light(color), light(behind(e))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), e.tagName + ' ' + e.textContent.slice(0, 40)]);
  }
  return found.sort((x, y) => x[0] - y[0]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1400])
def test_the_page_is_legible_in_a_browser(evaluated, browser, scheme, width, tmp_path):
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked, said = [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: said.append(message.text))
    tab.goto((evaluated / "zoo.html").as_uri())
    assert asked == [(evaluated / "zoo.html").as_uri()] and not said
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    contrasts = tab.evaluate(CONTRASTS)
    assert len(contrasts) > 50 and contrasts[0][0] >= 4.5, contrasts[:5]
    background = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in background[4:-1].split(", "))
    assert brightness > 700 if scheme == "light" else brightness < 100
    picture = tmp_path / "page.png"
    tab.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 50_000
    tab.close()


def test_the_switch_shows_one_network_at_a_time(evaluated, browser):
    tab = browser.new_page(viewport={"width": 1400, "height": 900})
    tab.goto((evaluated / "zoo.html").as_uri())
    for network, other in (("loopback", "lan"), ("lan", "loopback")):
        tab.click(f"label[for=net-{network}]")
        assert tab.locator(f".net-{network}").first.is_visible()
        assert not tab.locator(f".net-{other}").first.is_visible()
    tab.close()
