# SPDX-License-Identifier: Apache-2.0
"""Pictures of the report of ``privml evaluate zoo`` in headless Chromium, light and dark, wide and narrow.

``python scripts/picture_report.py build/zoo.html build/pictures`` to look at it; ``--top`` takes the top of the wide
page alone, as docs/images has it. Needs the package playwright, and a Chromium on the PATH.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {"wide": 1400, "narrow": 420}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--top", action="store_true", help="the first 1500 pixels of the wide page")
    options = parser.parse_args()
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit("no Chromium on this machine: apt-get install chromium")
    options.out.mkdir(parents=True, exist_ok=True)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            for name, width in WIDTHS.items():
                if options.top and name != "wide":
                    continue
                size = {"width": width, "height": 1500 if options.top else 900}
                tab = browser.new_page(viewport=size, color_scheme=scheme)
                tab.goto(options.report.resolve().as_uri())
                file = options.out / (f"zoo-{scheme}.png" if options.top else f"zoo-{scheme}-{name}.png")
                tab.screenshot(path=file, full_page=not options.top)
                print(file)
        browser.close()


if __name__ == "__main__":
    main()
