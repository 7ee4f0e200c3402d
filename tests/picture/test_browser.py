"""Pages in a real browser: nothing overflows, nothing is logged, and an accessibility engine has nothing to say.

Needs a Chromium (`apt-get install chromium`, or BLUEPRINT_CHROMIUM names one) and the packages playwright and
axe-playwright-python; without them the tests are skipped, and say so.
"""

import os
import shutil

import pytest

from blueprint.picture import blocks, page
from blueprint.picture.draw import KINDS, drawn
from blueprint.picture.handbook import TITLE, handbook
from blueprint.spec.load import load

from .trees import REPOSITORY, queues, reference

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

CHROMIUM = os.environ.get("BLUEPRINT_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium here: apt-get install chromium"),
]
WIDTHS = (360, 820, 1440)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "reference": page.pictures("In pictures", drawn(reference(), KINDS, applications=["chat-70b", "pretrain-13b"])),
        "many": page.pictures("Many queues", drawn(queues(300, 6), ["quota"])),
        **handbooks(),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text)
    return folder


def handbooks():
    platform = load(REPOSITORY).platform
    pictures = drawn(reference(), ("quota", "waves"))
    return {"handbook": blocks.html(TITLE, handbook(platform, pictures))}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["reference", "many", "handbook"])
def test_a_page_opens_without_fault(browser, pages, name, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    tab = context.new_page()
    said = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("requestfailed", lambda request: said.append(request.url))
    tab.goto((pages / f"{name}.html").as_uri())
    assert said == []
    assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    outside = tab.evaluate(
        """() => [...document.querySelectorAll('svg')].flatMap(svg => {
            const box = svg.viewBox.baseVal
            return [...svg.querySelectorAll('text')].filter(text => {
                const at = text.getBBox()
                return at.x < 0 || at.x + at.width > box.width || at.y + at.height > box.height
            }).map(text => text.textContent)
        })"""
    )
    assert outside == []
    found = axe.Axe().run(tab)
    assert found.violations_count == 0, found.generate_report()
    context.close()


def test_every_picture_can_be_reached_and_has_a_name(browser, pages):
    context = browser.new_context(offline=True)
    tab = context.new_page()
    tab.goto((pages / "reference.html").as_uri())
    names = tab.evaluate(
        "[...document.querySelectorAll('svg')].map(svg => document.getElementById("
        "svg.getAttribute('aria-labelledby').split(' ')[0]).textContent)"
    )
    reached = set()
    for _ in range(120):
        tab.keyboard.press("Tab")
        reached.add(tab.evaluate("document.activeElement.getAttribute('aria-label') || ''"))
    assert names and {f"Picture: {name}" for name in names} <= reached
    context.close()
