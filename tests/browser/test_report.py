"""Reports and leaderboards in a real browser: large and small screens, light and dark, without a network."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app
from tests.browser.pages import SCHEMES, browser, photograph, problems, resize, show

pytest.importorskip("plotly")
HOSTILE = "</script><script>window.hostile='ran'</script><img src=x onerror=\"window.hostile='ran'\">"
LONG = "a-name-that-has-no-place-to-break-" * 5
SCREENS = ("desktop", "phone")


@pytest.fixture(scope="module")
def driver():
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def full(folder):
    """A report with every section and every plot, and text that a user might write."""
    import pandas as pd

    log = cc.synthetic.search_log(120, seed=0)
    X = pd.DataFrame(log.X, columns=[HOSTILE, LONG, *log.features[2:]])
    model = cc.LinearRankerCV("ndcg@10", alphas=(1.0, 0.1, 0.01), cv=2).fit(X, log.y, qid=log.qid)
    report = cc.report(
        model,
        X,
        log.y,
        qid=[f"{HOSTILE} {query}" for query in log.qid],
        docid=[f"{LONG}{row}" for row in range(len(log.y))],
        baseline=log.X[:, 1],
        baseline_name=f"by match {HOSTILE}",
        title=f"A ranker {HOSTILE}",
        learning_curve=(X, log.y, log.qid),
        fingerprint=LONG,
    )
    path = folder / "full.html"
    report.write(path)
    return path


@pytest.fixture(scope="module")
def little(folder):
    """Reports of next to nothing."""
    inputs = {
        "one-row": ([1.0], [0.0], None),
        "empty": ([0, 0, 0, 0], [1, 2, 3, 4], [1, 1, 2, 2]),
        "huge": ([1, 0, 2, 0], [1e308, -1e308, 1e-308, 0], [1, 1, 2, 2]),
        "close": ([1, 0, 2, 0], [1.0, np.nextafter(1.0, 2.0), 1e-308, 0], [1, 1, 2, 2]),
    }
    for name, (y, scores, qid) in inputs.items():
        cc.report(scores, None, y, qid=qid).write(folder / f"{name}.html")
    return [folder / f"{name}.html" for name in inputs]


@pytest.fixture(scope="module")
def board(folder):
    """The leaderboard of `concordant compare rank --html`."""
    rng = np.random.default_rng(0)
    names = np.array([HOSTILE, LONG, *(f"player {i}" for i in range(20))])
    pairs = rng.integers(len(names), size=(600, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    wins = np.where(rng.random(len(pairs)) < 1.0 / (1.0 + np.exp(0.2 * (pairs[:, 1] - pairs[:, 0]))), 1, -1)
    votes = folder / "votes.csv"
    lines = [",".join(f'"{names[item].replace(chr(34), chr(34) * 2)}"' for item in pair) for pair in pairs]
    text = "".join(f"{line},{win}\n" for line, win in zip(lines, wins, strict=True))
    votes.write_text(f"left,right,outcome\n{text}")
    call("compare", "fit", votes, "--model", "bradley-terry", "-o", folder / "votes.cmp")
    call("compare", "rank", folder / "votes.cmp", "--html", folder / "board.html")
    return folder / "board.html"


def call(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("screen", SCREENS)
def test_a_report_is_drawn_and_quiet(driver, full, screen, scheme):
    show(driver, full, screen, scheme)
    assert problems(driver, scheme) == []
    photograph(driver, f"report-{screen}-{scheme}")
    assert len(driver.find_elements("css selector", ".plot .main-svg")) >= 6


@pytest.mark.parametrize(("screen", "scheme"), [("desktop", "dark"), ("phone", "light")])
def test_a_leaderboard_is_drawn_and_quiet(driver, board, screen, scheme):
    show(driver, board, screen, scheme)
    assert problems(driver, scheme) == []
    photograph(driver, f"board-{screen}-{scheme}")
    assert len(driver.find_elements("css selector", ".plot .points .point")) == 22


def test_a_page_that_is_not_there_is_found_out(driver, folder):
    show(driver, folder / "nowhere.html", "phone", "light")
    assert any("is not there" in message for message in problems(driver, "light"))


def test_reports_of_next_to_nothing_are_quiet(driver, little):
    for path in little:
        show(driver, path, "narrow", "dark")
        assert (path.name, problems(driver, "dark")) == (path.name, [])
        photograph(driver, path.stem)


def test_links_and_keys_lead_to_the_sections(driver, full):
    from selenium.webdriver.common.keys import Keys

    show(driver, full, "phone", "light")
    for link in driver.find_elements("css selector", "nav a"):
        link.send_keys(Keys.ENTER)
        name = link.get_attribute("href").partition("#")[2]
        top = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
        assert driver.execute_script("return location.hash") == f"#{name}"
        assert -1 <= driver.execute_script(top, name) < 844
    summary = driver.find_element("css selector", "#weights summary")
    shown = "return document.querySelector('#weights details').open"
    assert not driver.execute_script(shown)
    summary.send_keys(Keys.ENTER)
    assert driver.execute_script(shown)
    assert problems(driver, "light") == []  # the opened table has its place, too


def test_a_plot_answers_the_mouse_and_fits_a_screen_that_turns(driver, full):
    from selenium.webdriver.common.action_chains import ActionChains

    show(driver, full, "desktop", "light")
    bar = driver.find_elements("css selector", "#plot-weights .bars path")[0]
    ActionChains(driver).move_to_element(bar).perform()
    labels = driver.find_elements("css selector", "#plot-weights .hovertext")
    assert [label.text for label in labels if label.text]
    resize(driver, 700, 400, mobile=False)
    driver.execute_async_script("setTimeout(arguments[0], 600)")  # plotly waits before it draws again
    assert problems(driver, "light") == []
    width = "return document.querySelector('#plot-gains .main-svg').getBoundingClientRect().width"
    assert 500 < driver.execute_script(width) < 700


def test_a_change_of_theme_needs_no_new_page(driver, full):
    show(driver, full, "phone", "light")
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    assert problems(driver, "dark") == []


def without_policy(text):
    return re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)


BROKEN = {
    "console": lambda text: text.replace("<main>", "<main><script>undefinedFunction()</script>"),
    "asks for": lambda text: without_policy(text).replace(
        "<main>", '<main><img src="http://127.0.0.1:9/a.png">'
    ),
    "shows nothing": lambda text: re.sub(r'"y":\[[^\]]*\]', '"y":[]', text),
    "is 980 wide": lambda text: text.replace('name="viewport"', 'name="none"'),
    "cuts": lambda text: text.replace("weight times spread", "weight times spread" * 5),
    "is too wide": lambda text: text.replace("<main>", '<main><p style="width:600px">wide</p>'),
    "tables do not scroll": lambda text: text.replace('class="scroll"', 'class="roll"'),
    "has contrast": lambda text: text.replace("--dim: #565c64", "--dim: #c0c0c0"),
    "is not dark": lambda text: text.replace("prefers-color-scheme: dark", "prefers-color-scheme: none"),
    "lead nowhere": lambda text: text.replace('href="#gains"', 'href="#none"'),
    "has no label": lambda text: text.replace("aria-label=", "data-label="),
    "is small": lambda text: text.replace(
        "td small { display: block;", "td small { font-size: 8px !important;"
    ),
    "ran what a user wrote": lambda text: without_policy(text).replace(
        "<main>", "<main><script>window.hostile = 1</script>"
    ),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_a_broken_page_is_found_out(driver, full, folder, problem):
    text = full.read_text()
    broken = BROKEN[problem](text)
    assert broken != text
    path = folder / "broken.html"
    path.write_text(broken)
    scheme = "dark" if problem == "is not dark" else "light"
    show(driver, path, "phone", scheme)
    assert any(problem in message for message in problems(driver, scheme))
