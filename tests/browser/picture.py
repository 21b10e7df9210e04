"""Photograph a page for the documentation: a window in the light, a phone in the dark beside it.

`concordant demo && python -m tests.browser.picture concordant-demo.html docs/report.png`
"""

import base64
import io
import sys

from tests.browser.pages import browser, resize, show

WINDOW, PHONE, GAP = (1000, 1160), (390, 844), 30
COLOURS = 96  # of the palette: a small file, and nobody sees it
SCROLL = "const one = document.getElementById(arguments[0]); if (one) { one.scrollIntoView(); }"


def photographed(driver, path, size, scheme, section):
    """What the screen shows of the page, from a section on."""
    from PIL import Image  # which comes with matplotlib, of the extra docs

    show(driver, path, "desktop", scheme)
    resize(driver, *size, mobile=False)
    driver.execute_async_script("setTimeout(arguments[0], 800)")  # plotly draws anew
    driver.execute_script(SCROLL, section)
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
    return Image.open(io.BytesIO(base64.b64decode(taken["data"]))).convert("RGB")


def main(page, picture):
    from PIL import Image

    with browser() as driver:
        window = photographed(driver, page, WINDOW, "light", "")
        phone = photographed(driver, page, PHONE, "dark", "gains")
    whole = Image.new("RGB", (window.width + GAP + phone.width, window.height), "white")
    whole.paste(window, (0, 0))
    whole.paste(phone, (window.width + GAP, (window.height - phone.height) // 2))
    whole.quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
