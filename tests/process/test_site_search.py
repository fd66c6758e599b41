# SPDX-License-Identifier: Apache-2.0
"""The script by which the site's search runs when a page is opened from disk, in a real browser."""

import shutil
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "assets" / "iframe-worker.js"
PAGE = """<!doctype html><script src="frame.js"></script><body><script>
var worker = new Worker("worker.js");
worker.addEventListener("message", event => { document.title = event.data });
worker.postMessage("share");
</script></body>"""
WORKER = """addEventListener("message", async event => {
  await importScripts("first.js", "second.js");
  postMessage(first + event.data + second);
});"""


def test_a_page_from_disk_has_a_worker(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    files = {"page.html": PAGE, "worker.js": WORKER, "frame.js": SCRIPT.read_text()}
    files |= {"first.js": "var first = 'se'", "second.js": "var second = 's'"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto((tmp_path / "page.html").as_uri())
        page.wait_for_function("document.title === 'seshares'")
        page.evaluate("worker.terminate()")
        assert not page.query_selector("iframe")
        browser.close()
