"""Pages in Debian's own Chromium, headless: what it logs, what it asks for, and whether people can read them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

BINARY = "chromium"

# Contrast of every text against its background (WCAG 2.2, 1.4.3): relative luminance, 4.5:1, large text 3:1.
CONTRAST = """() => {
  const numbers = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const found = numbers(getComputedStyle(e).backgroundColor);
      if (found.length >= 3 && (found.length < 4 || found[3] > 0)) return found;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!walker.currentNode.textContent.trim() || ["SCRIPT", "STYLE", "TITLE", "title"].includes(element.tagName)) continue;
    if (style.visibility === "hidden" || style.display === "none") continue;
    const colour = numbers(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(colour), light(ground(element))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) bad.push(walker.currentNode.textContent.trim().slice(0, 40));
  }
  return bad;
}"""


class Page:
    """A page with what Chromium had to say about it."""

    def __init__(self, page):
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def unreadable(self) -> list[str]:
        """Texts whose contrast is too low (AA)."""
        return self.page.evaluate(CONTRAST)

    def too_wide(self) -> int:
        """Pixels by which the page is wider than its window."""
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def reached_by_tab(self, presses: int) -> list[str]:
        """What the keyboard comes to: the names of regions and links, in order."""
        found = []
        for _ in range(presses):
            self.page.keyboard.press("Tab")
            found.append(
                self.page.evaluate(
                    "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
                )
            )
        return found


@contextmanager
def opened(address: str, dark: bool = False, width: int = 1100) -> Iterator[Page]:
    """`address` in a new browser. Skips the test where there is no Chromium, or nothing to drive it with."""
    playwright = pytest.importorskip("playwright.sync_api")
    binary = shutil.which(BINARY)
    if binary is None:
        pytest.skip(f"needs {BINARY} (Debian: {BINARY})")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        try:
            context = browser.new_context(
                color_scheme="dark" if dark else "light",
                viewport={"width": width, "height": 900},
                accept_downloads=True,
            )
            page = Page(context.new_page())
            page.page.goto(address)
            yield page
        finally:
            browser.close()
