"""What a page must be in a real browser: quiet, drawn, as wide as the screen, readable."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

SCREENS = {"desktop": (1280, 900, False), "phone": (390, 844, True), "narrow": (360, 640, True)}
SCHEMES = ("light", "dark")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)
SMALLEST = 11.0  # pixels of text
SHOTS = "CONCORDANT_SCREENSHOTS"  # a folder: the pages are photographed there

MARKS = """
const marks = (plot) => [...plot.querySelectorAll(
  ".trace path, .trace .point, .points path, .bars path, .lines path"
)].filter(function (mark) {
  const box = mark.getBoundingClientRect();
  return box.width + box.height > 0;
});
"""
WAIT = f"""{MARKS}
const done = arguments[0], end = performance.now() + 2000;  // plotly may draw after the page has loaded
(function wait() {{
  const all = [...document.querySelectorAll(".plot")].every((plot) => marks(plot).length > 0);
  if (all || performance.now() > end) {{ done(); }} else {{ setTimeout(wait, 20); }}
}})();
"""
PROBE = """
const ground = function (one) {
  for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/^rgba\\(.*, 0\\)$/.test(colour)) { return colour; }
  }
  return "rgb(255, 255, 255)";
};
const seen = (one) => one.getClientRects().length > 0 && one.textContent.trim() !== "";
const words = "h1, h2, h3, p, li, td, th, small, strong, dd, dt, a, summary, caption, .status, span";
const written = [...document.querySelectorAll(words)].filter(seen).map(function (one) {
  const style = getComputedStyle(one);
  return [style.color, ground(one), parseFloat(style.fontSize)];
});
const drawn = [...document.querySelectorAll(".plot text")].filter(seen).map(function (one) {
  const style = getComputedStyle(one);
  return [style.fill, ground(one.closest(".plot")), parseFloat(style.fontSize)];
});
const plots = [...document.querySelectorAll(".plot")].map(function (plot) {
  const edge = plot.getBoundingClientRect();
  const cut = [...plot.querySelectorAll("text")].filter(seen).filter(function (one) {
    const box = one.getBoundingClientRect();
    return box.left < edge.left - 1 || box.right > edge.right + 1 || box.bottom > edge.bottom + 1;
  }).map((one) => one.textContent);
  return {id: plot.id, marks: marks(plot).length, label: plot.getAttribute("aria-label"), cut: cut};
});
const wide = [...document.querySelectorAll("body *")].filter(function (one) {
  return !one.closest(".scroll") && !one.closest(".plot") && !one.closest("script")
    && one.getBoundingClientRect().right > screen.width + 1;
}).map((one) => one.tagName.toLowerCase() + "." + one.className);
return {
  plots: plots,
  wide: wide.slice(0, 5),
  width: document.documentElement.scrollWidth,
  screen: screen.width,
  page: getComputedStyle(document.body).backgroundColor,
  texts: [...new Set([...written, ...drawn].map(JSON.stringify))].map(JSON.parse),
  fetched: performance.getEntriesByType("resource").map((one) => one.name),
  tables: [...document.querySelectorAll("table")].filter((one) => !one.closest(".scroll")).length,
  address: document.location.href,
  lang: document.documentElement.lang,
  headings: [...document.querySelectorAll("h1, h2, h3")].map((one) => one.tagName),
  broken: [...document.querySelectorAll("nav a")].filter(
    (one) => !document.getElementById(one.getAttribute("href").slice(1))).length,
  executed: window.hostile === undefined ? "" : String(window.hostile),
};
"""


@contextmanager
def browser():
    """A browser of its own profile; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium here: pip install selenium")
    paths = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in paths.items() if path is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} here: apt-get install chromium chromium-driver")
    with tempfile.TemporaryDirectory(prefix="profile-") as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = paths["chromium"]
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(paths["chromedriver"]))
        try:
            driver.set_page_load_timeout(60)
            yield driver
        finally:
            driver.quit()


def show(driver, path, screen, scheme):
    """Open a file as this screen has it."""
    resize(driver, *SCREENS[screen])
    feature = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    driver.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    driver.get("about:blank")
    driver.get_log("browser")  # what the page before said
    driver.get(Path(path).resolve().as_uri())


def resize(driver, width, height, mobile):
    """Make the screen so large; a phone's page may be wider than its screen, a window's may not."""
    metrics = {"width": width, "height": height, "screenWidth": width, "screenHeight": height}
    metrics |= {"deviceScaleFactor": 1, "mobile": mobile}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def problems(driver, scheme):
    """Everything that is wrong with the page that is open, a line each."""
    driver.execute_async_script(WAIT)
    facts = driver.execute_script(MARKS + PROBE)
    return [
        *(f"console: {entry['message'][:200]}" for entry in driver.get_log("browser")),
        *(f"asks for {name}" for name in facts["fetched"]),
        *(f"plot {plot['id']} shows nothing" for plot in facts["plots"] if plot["marks"] == 0),
        *(f"plot {plot['id']} cuts {text}" for plot in facts["plots"] for text in plot["cut"]),
        *(f"plot {plot['id']} has no label" for plot in facts["plots"] if not plot["label"]),
        *([f"is {facts['width']} wide on {facts['screen']}"] if facts["width"] > facts["screen"] else []),
        *(f"{name} is too wide" for name in facts["wide"]),
        *([f"{facts['tables']} tables do not scroll"] if facts["tables"] else []),
        *([] if facts["address"].startswith("file:") else [f"is not there: {facts['address']}"]),
        *([] if facts["lang"] else ["has no language"]),
        *(
            []
            if facts["headings"].count("H1") == 1 and facts["headings"][0] == "H1"
            else ["has no one title"]
        ),
        *([f"{facts['broken']} links lead nowhere"] if facts["broken"] else []),
        *([f"ran what a user wrote: {facts['executed']}"] if facts["executed"] else []),
        *colour_problems(facts, scheme),
    ]


def colour_problems(facts, scheme):
    """Text that cannot be read, and a page that is not as dark or light as asked."""
    if (scheme == "dark") != (luminance(facts["page"]) < 0.05):
        yield f"background {facts['page']} is not {scheme}"
    for colour, ground, size in facts["texts"]:
        ratio = contrast(luminance(colour), luminance(ground))
        if ratio < 4.5:
            yield f"text {colour} has contrast {ratio:.1f} with {ground}"
        if size < SMALLEST:
            yield f"text of {size} pixels is small"


def luminance(colour):
    """Relative luminance of rgb(r, g, b), as WCAG 2 has it."""
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """Contrast of two luminances."""
    return (max(first, second) + 0.05) / (min(first, second) + 0.05)


def photograph(driver, name):
    """Keep a picture of the whole page, where a folder is named."""
    folder = os.environ.get(SHOTS)
    if not folder:
        return
    import base64

    Path(folder).mkdir(parents=True, exist_ok=True)
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    (Path(folder) / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))
