"""Names: one class, one file for each idea; identifiers are nouns that can be searched for."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def sources(tree):
    """Text of each file of a tree, by its path in the tree."""
    files = sorted((ROOT / tree).rglob("*.py"))
    return {path.relative_to(ROOT / tree).as_posix(): path.read_text("utf-8") for path in files}


SOURCES = sources("src/concordant")
TREES = {tree: sources(tree) for tree in ("studies", "benchmarks", "examples")} | {"src/concordant": SOURCES}
NAMED = TREES | {"tests": sources("tests"), ".": {"conftest.py": (ROOT / "conftest.py").read_text("utf-8")}}

SAME_ROLE = {  # files that share their name, each the same thing in its room
    "aggregate.py",  # the function, and its command
    "certify.py",
    "explain.py",
    "parse.py",  # names to metrics, names to surrogates
}
UNSEARCHABLE = {  # pronouns and participles: which one is meant?
    "told", "own", "one", "found", "given", "known", "chosen", "kept",
    "seen", "place", "made", "of", "wanted", "held", "counted", "joined",
}  # fmt: skip
STORED = {  # fields whose names stand in model files
    ("comparisons/ratings/rating_model.py", "known_"),
    ("comparisons/ratings/sequential.py", "known_"),
    ("comparisons/training_pairs.py", "kept"),
    ("rankers/fitted_certificate.py", "chosen"),
}
EMPTY_BEGINNINGS = {"Give", "Tell", "Say", "Refuse", "Whether"}


def several(names):
    """Those of (name, file) pairs that stand in several files."""
    files = defaultdict(set)
    for name, file in names:
        files[name].add(file)
    return {name: sorted(where) for name, where in files.items() if len(where) > 1}


def classes(source):
    """Names of the classes of a file, however deep."""
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("tree", TREES)
def test_no_class_name_stands_in_two_files(tree):
    assert several((name, file) for file, source in TREES[tree].items() for name in classes(source)) == {}
    assert several([("Part", "a.py"), ("Part", "b.py"), ("Scan", "a.py")]) == {"Part": ["a.py", "b.py"]}


def test_files_of_one_name_have_one_role():
    names = [(Path(file).name, file) for file in SOURCES if not file.endswith("__init__.py")]
    assert set(several(names)) <= SAME_ROLE


def assigned(source):
    """Variables, parameters, fields, attributes, functions, classes and aliases of a file, by line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def unsearchable(source):
    """Lines and names that are a pronoun or participle only, or contain "told"."""
    for name, line in assigned(source):
        if name.strip("_") in UNSEARCHABLE or "told" in name.split("_"):
            yield line, name


@pytest.mark.parametrize("tree", NAMED)
def test_names_can_be_searched_for(tree):
    stored = STORED if tree == "src/concordant" else ()
    bad = {
        file: [(line, name) for line, name in unsearchable(source) if (file, name) not in stored]
        for file, source in NAMED[tree].items()
    }
    assert {file: lines for file, lines in bad.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(given):\n    pass",
        "def told(x):\n    pass",
        "told_metric = 2",
        "class A:\n    kept: int",
        "def f(self):\n    self.seen = 1",
        "[one for one in range(3)]",
        "lambda own: own",
        "import numpy as one",
        "from concordant.theory import certify as known",
        "try:\n    pass\nexcept ValueError as told:\n    pass",
    ],
)
def test_the_check_sees_pronouns(source):
    assert list(unsearchable(source))
    assert not list(unsearchable("best_split = 1"))


def empty_beginnings(source):
    """Lines of docstrings whose first word says nothing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            words = (ast.get_docstring(node) or "").split()
            if words and words[0].strip(".,:;") in EMPTY_BEGINNINGS:
                yield getattr(node, "lineno", 1), words[0]


@pytest.mark.parametrize("tree", TREES)
def test_docstrings_begin_with_what_is_done(tree):
    bad = {file: list(empty_beginnings(source)) for file, source in TREES[tree].items()}
    assert {file: lines for file, lines in bad.items() if lines} == {}
    assert list(empty_beginnings('def f():\n    """Give it."""'))  # the check can fail


def functions_and_mentions(source):
    """Public functions at the top of a file; names that it imports, reads as attributes, or has in texts."""
    tree, names = ast.parse(source), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            names.add(node.name.rpartition(".")[2])
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update(re.findall(r"\w+", node.value))
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [name for name in functions if not name.startswith("_")], names


def unshared_functions(modules, others):
    """Public functions that neither another module mentions nor another file has as a word."""
    by_file = {file: functions_and_mentions(source) for file, source in modules.items()}
    users = Counter(name for _, names in by_file.values() for name in names)
    words = {word for source in others for word in re.findall(r"\w+", source)}
    for file, (functions, names) in by_file.items():
        if not file.endswith("__init__.py"):
            yield from (
                (file, name) for name in functions if name not in words and users[name] == (name in names)
            )


def test_a_helper_of_one_module_begins_with_an_underscore():
    package = ROOT / "src/concordant"
    others = [path.read_text("utf-8") for kind in ("pyi", "toml") for path in package.rglob(f"*.{kind}")]
    for tree in ("studies", "benchmarks", "examples", "tests"):
        others += sources(tree).values()
    assert list(unshared_functions(SOURCES, others)) == []


def test_the_check_sees_public_helpers():
    module = {"a.py": "def fit():\n    return helper()\ndef helper():\n    return _rest()\ndef _rest(): ..."}
    user = {"b.py": "from a import fit\nhelper = 1"}
    assert list(unshared_functions(module | user, [])) == [("a.py", "helper")]
    assert list(unshared_functions(module | user, ["reader = 'helper'"])) == []
    assert list(unshared_functions(module | {"b.py": "a.fit, a.helper"}, [])) == []
