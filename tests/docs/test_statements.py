"""What pages of the documentation have to say, each check with something wrong that it must reject.

All public names stand in the reference, once; benchmarks are told as they were measured; code and tests that
are named exist; links lead somewhere; the README says what the demo prints.
"""

import importlib
import importlib.util
import json
import pkgutil
import re
import sys
import types
from collections import Counter

import pytest
from typer.testing import CliRunner

import concordant
from concordant.cli import app
from tests.helpers.doc_blocks import FENCE, PAGES, ROOT

# ---------------------------------------------------------------- the reference

DIRECTIVE = re.compile(r"^\.\. (auto\w+|py:data):: (\S+)", re.MULTILINE)


def target(path):
    """The object that a directive names: an attribute, or else a module of that name."""
    value = concordant
    for name in path.removeprefix("concordant.").split("."):
        value = getattr(value, name, None) or importlib.import_module(f"{value.__name__}.{name}")
    return value


def importable(path):
    """True if its module can be imported here: `concordant.torch` needs torch."""
    return not path.startswith("concordant.torch") or importlib.util.find_spec("torch") is not None


def named_in(text):
    """The directives of a page: kind, and name of the object."""
    return [(kind, path) for kind, path in DIRECTIVE.findall(text) if importable(path)]


def documented(text):
    """The objects of a page of the reference."""
    named = [(kind, target(path)) for kind, path in named_in(text)]
    members = [
        getattr(module, name) for kind, module in named if kind == "automodule" for name in module.__all__
    ]
    return [value for _, value in named] + members


def public():
    """Name -> object, of all packages but the command line."""
    modules = pkgutil.walk_packages(
        concordant.__path__, "concordant.", onerror=lambda _: None
    )  # torch is absent
    packages = [module.name for module in modules if module.ispkg]
    for package in ["concordant", *(name for name in packages if not name.startswith("concordant.cli"))]:
        if not importable(package):
            continue
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            if not isinstance(value := getattr(module, name), types.ModuleType):
                yield f"{package}.{name}", value


def undocumented(text):
    """The public names that a reference leaves out."""
    documented_ids = {id(value) for value in documented(text)}
    return [name for name, value in public() if id(value) not in documented_ids]


def repeated(text):
    """What a reference has twice."""
    times = Counter(id(target(path)) for _, path in named_in(text))
    return [path for _, path in named_in(text) if times[id(target(path))] > 1]


def test_every_public_name_is_in_the_reference():
    text = PAGES["api.md"].read_text(encoding="utf-8")
    assert not undocumented(text)
    assert not repeated(text)


def test_a_name_that_is_there_twice_is_noticed():
    assert repeated(".. autofunction:: certify\n\n.. autofunction:: concordant.certify\n") == [
        "certify",
        "concordant.certify",
    ]


@pytest.mark.parametrize(
    "line", [".. autofunction:: certify", ".. autoclass:: concordant.comparisons.ratings.Elo"]
)
def test_a_name_that_is_missing_is_noticed(line):
    text = PAGES["api.md"].read_text(encoding="utf-8")
    (missing,) = {name.rpartition(".")[2] for name in undocumented(text.replace(line + "\n", ""))}
    assert line.endswith(missing)


def test_a_name_that_is_not_there_is_noticed():
    with pytest.raises(ModuleNotFoundError):
        documented(".. autofunction:: concordant.metrics.precisely\n")


# ---------------------------------------------------------------- the page of benchmarks


@pytest.fixture
def benchmarks():
    """The module that writes the page; it imports nothing of the package."""
    spec = importlib.util.spec_from_file_location("benchmarks_page", ROOT / "benchmarks" / "page.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_the_page_of_benchmarks_is_that_of_the_results(benchmarks):
    written = PAGES["benchmarks.md"].read_text(encoding="utf-8")
    assert written == benchmarks.page(), "run: python -m benchmarks.page"


def test_numbers_of_the_page_come_from_the_results(benchmarks, tmp_path, monkeypatch):
    table = {"title": "t", "rows": [{"tool": "a", "/": 0.25}, {"tool": "b", "/": "40.2 (2.0 to 50.1)"}]}
    (tmp_path / "suite.json").write_text(json.dumps({"tables": [table]}))
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path)
    line = benchmarks.Headline("x", "suite", "t", "/").line()
    assert line == "| x | 0.25x to 40x | [suite](#suite-suite) |"
    assert (
        "| 4.0 s |"
        in benchmarks.Headline("x", "suite", "t", "/", {"tool": "a"}, inverse=True, unit=" s").line()
    )
    with pytest.raises(LookupError):
        benchmarks.Headline("x", "suite", "t", "/", {"tool": "c"}).line()


# ---------------------------------------------------------------- what pages point at

CITED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
MODULE = re.compile(r"`(concordant(?:\.\w+)+)`")
LINK = re.compile(r"\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def broken_citations(text):
    """Tests and modules that a page names and that are not there."""
    for file, test in CITED.findall(text):
        path = ROOT / file
        if not path.exists() or (test and f"def {test}(" not in path.read_text(encoding="utf-8")):
            yield f"{file}::{test}"
    for path in MODULE.findall(text):
        try:
            target(path)
        except ImportError:
            yield path


def test_the_theory_points_at_code_and_tests():
    text = PAGES["theory.md"].read_text(encoding="utf-8")
    assert len(CITED.findall(text)) > 40
    assert not list(broken_citations(text))


@pytest.mark.parametrize(
    "wrong",
    ["`tests/docs/test_blocks.py::test_nothing`", "`tests/test_nothing.py`", "`concordant.theory.nothing`"],
)
def test_a_citation_of_nothing_is_noticed(wrong):
    assert list(broken_citations(wrong))


def broken_links(text, folder):
    """Relative links to files that are not there."""
    return [link for link, _ in LINK.findall(text) if not (folder / link).exists()]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    outside = FENCE.sub("", PAGES[page].read_text(encoding="utf-8"))
    assert not broken_links(outside, PAGES[page].parent)


def test_a_link_to_nothing_is_noticed():
    assert broken_links("[a](docs/nothing.md#there) [b](README.md) [c](https://a.b)", ROOT) == [
        "docs/nothing.md"
    ]


def test_the_readme_is_short():
    assert len(PAGES["README.md"].read_text(encoding="utf-8").splitlines()) <= 120


def test_speeds_of_the_readme_are_those_of_the_benchmarks():
    """Each number of times is in the page that is written from the results."""
    assert not unknown_speeds(PAGES["README.md"].read_text(encoding="utf-8"))
    assert unknown_speeds("| NDCG@10: ranx | 54x |") == ["54x"]


def unknown_speeds(text):
    """Numbers of times that the page of benchmarks does not have."""
    page = PAGES["benchmarks.md"].read_text(encoding="utf-8").split("\n## ")[0]
    return [speed for speed in re.findall(r"[\d.,]*\dx\b", text) if f" {speed} " not in page]


@pytest.mark.once
def test_the_readme_tells_what_the_demo_prints(monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.setattr("concordant.cli.demo.write_report", lambda *_: None)
    printed = json.loads(CliRunner().invoke(app, ["demo", "--json"]).stdout)
    text = PAGES["README.md"].read_text(encoding="utf-8")
    values = [f"{ranker['value']:.4f}" for ranker in printed["rankers"]]
    assert len(values) == 5
    assert [value for value in values if value not in text] == []
