"""Studies import public names and those of `concordant._internals`; the package imports no study."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import concordant
from concordant import _internals

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "studies").rglob("*.py"))
PUBLIC = {  # modules from which studies may import what `__all__` has
    "concordant",
    "concordant._internals",
    "concordant.decoders",
    "concordant.evaluation",
    "concordant.exceptions",
    "concordant.metrics",
    "concordant.objectives",
    "concordant.comparisons.ratings",
    "concordant.solvers",
    "concordant.surrogates",
    "concordant.theory.bounds",
    "concordant.theory.regret",
    "concordant.types",
}
SUBMODULES = {"concordant.theory"}  # modules whose public names are public modules


def imported(source):
    """Module and name of each import from the package; a module that is imported whole has no name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def wrong_imports(source):
    """Imports from the package that studies may not have."""
    for module, name in imported(source):
        if module.partition(".")[0] != "concordant":
            continue
        allowed = PUBLIC | SUBMODULES if name else PUBLIC
        is_public = module in allowed and (name is None or name in public_names(module))
        if not is_public:
            yield f"{module}.{name}" if name else module


def public_names(module):
    """The names of `__all__`, without modules except where they are public themselves."""
    package = importlib.import_module(module)
    names = set(package.__all__)
    if module in ("concordant", *SUBMODULES):
        return names
    return {name for name in names if not inspect.ismodule(getattr(package, name))}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_studies_import_public_names_and_the_listed_ones(path):
    assert list(wrong_imports(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "source",
    [
        "from concordant.rankers.guarantee import knowingly",
        "def f():\n    import concordant.comparisons.machines.primal_newton",
        "from concordant.evaluation import outcome_plots",
        "from concordant._internals import n_rows",
        "from concordant.data import datasets",
        "from concordant.theory.regret import ROUNDING",
        "from concordant import cli",
    ],
)
def test_a_wrong_import_is_noticed(source):
    assert list(wrong_imports(source))


def test_every_listed_name_loads_and_is_used():
    used = {
        name
        for path in FILES
        for module, name in imported(path.read_text(encoding="utf-8"))
        if module == "concordant._internals"
    }
    assert used == set(_internals.__all__)
    for name in used:
        assert getattr(_internals, name) is not None


def test_the_package_knows_nothing_of_studies():
    for path in Path(concordant.__file__).parent.rglob("*.py"):
        modules = {module for module, _ in imported(path.read_text(encoding="utf-8"))}
        assert not modules & {"concordant._internals"}, path
        assert not any(module.partition(".")[0] == "studies" for module in modules), path
