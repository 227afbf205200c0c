"""Screenshots of pages, and the audit of photographs: `python -m docs.pictures` (`make pictures`). Needs Chromium.

docs/page.png         first screen of the demo's report
docs/audit.png        first screen of the audit of photographs
docs/fruit-audit.html that page itself: `unskew audit fruit --out audit`
"""

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import unskew
from unskew.verbs.demo import demo

HERE = Path(__file__).parent
SIZE = {"width": 1280, "height": 860}


def main(work: Path) -> None:
    """Make the pages in `work`, unless they are there, and look at them."""
    report, audited = work / "demo" / "report.html", work / "audit"
    if not report.is_file():
        demo(work / "demo", 0)
    page = unskew.audit("fruit", out=audited, command="unskew audit fruit --out audit").page
    shutil.copyfile(page, HERE / "fruit-audit.html")
    with sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        for source, name in ((report, "page.png"), (page, "audit.png")):
            tab = browser.new_page(viewport=SIZE)
            tab.goto(source.absolute().as_uri())
            tab.screenshot(path=HERE / name)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()))
