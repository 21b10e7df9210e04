"""The folder tree is the data flow: imports point one way, and heavy ones wait for their use."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import concordant as cc

ROOT = Path(__file__).resolve().parents[2] / "src" / "concordant"
LAYERS = [  # lowest first
    {"exceptions", "types", "_base"},
    {"data"},
    {"metrics", "surrogates", "decoders"},
    {"solvers", "theory", "torch"},
    {"scale"},
    {"rankers", "comparisons", "objectives"},
    {"evaluation", "store"},
    {"cli", "__main__", "_internals"},
]
LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}
STRANGERS = LAYERS[2]  # meet only in higher layers


def imported_units(source, module):
    """Units of the package that this source imports, wherever in the file; `module` is its dotted name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "concordant" else [base]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("concordant."))


def wrong_imports(source, module):
    """Imports that point up, or between strangers."""
    unit = module.split(".")[1]
    for other in imported_units(source, module):
        # A public name of the package itself may come from anywhere: only the top layer may use those.
        up = LEVEL.get(other, len(LAYERS) - 1) > LEVEL[unit]
        strange = other != unit and {other, unit} <= STRANGERS
        if up or strange:
            yield f"{module} imports {other}"


MODULES = {
    ".".join(["concordant", *path.relative_to(ROOT).with_suffix("").parts]): path
    for path in sorted(ROOT.rglob("*.py"))
    if path != ROOT / "__init__.py"  # it lists the public names of all layers
}


def test_imports_point_down():
    assert [module for module in MODULES if module.split(".")[1] not in LEVEL] == []
    assert [wrong for module in MODULES for wrong in wrong_imports(MODULES[module].read_text(), module)] == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("from concordant.metrics import NDCG", "concordant.data.queries"),
        ("import concordant.surrogates", "concordant.metrics.metric"),
        ("def f():\n    from ..theory import regret", "concordant.metrics.metric"),
        ("from concordant import cli", "concordant.theory.regret"),
        ("from concordant import read_letor", "concordant.theory.regret"),
    ],
)
def test_the_check_sees_wrong_imports(source, module):
    assert list(wrong_imports(source, module))


def asserts(source):
    """Lines on which something is asserted."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]


@pytest.mark.slow
def test_input_is_never_checked_by_assert():
    lines_by_module = {module: asserts(path.read_text()) for module, path in MODULES.items()}
    assert {module: lines for module, lines in lines_by_module.items() if lines} == {}
    assert asserts("def f(x):\n    assert x") == [2]  # the check can fail


HEAVY = (
    "numba",
    "scipy",
    "sklearn",
    "pyarrow",
    "pandas",
    "polars",
    "torch",
    "lightgbm",
    "xgboost",
    "rich",
    "typer",
)


def loaded_by(statement):
    """Heavy modules that a fresh interpreter has loaded after this statement."""
    code = f"import sys\n{statement}\nprint(*[m for m in {HEAVY} if m in sys.modules])"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()


def test_import_is_light():
    assert loaded_by("import concordant") == []
    assert loaded_by("import concordant as cc; cc.metric('ndcg@10'); cc.Queries.from_ids([1, 1])") == []
    assert loaded_by("import scipy") == ["scipy"]  # the check can fail


SLOW = ("pandas", "scipy.stats", "scipy.optimize", "sklearn.model_selection", "rich.progress")


def test_load_and_predict_import_little(tmp_path):
    X, y = np.arange(12.0).reshape(6, 2) % 5, [0, 1, 2, 0, 1, 2]
    cc.save(cc.LinearRanker("ndcg").fit(X, y, qid=[1, 1, 1, 2, 2, 2]), tmp_path / "model")
    code = f"""
import concordant as cc, numpy as np
cc.load({str(tmp_path / "model")!r}).predict(np.ones((2, 2)))
for name in {SLOW}:
    assert name not in sys.modules, name
import pandas, sklearn.utils.fixes
assert sklearn.utils.fixes.pd.DataFrame is pandas.DataFrame
"""
    assert "sklearn" in loaded_by(code)


def test_evaluate_imports_little(tmp_path):
    (tmp_path / "qrels").write_text("1 0 a 1\n1 0 b 0\n")
    (tmp_path / "run").write_text("1 Q0 a 1 2.0 x\n1 Q0 b 2 1.0 x\n")
    code = f"""
import concordant as cc
judged = cc.join(cc.read_qrels({str(tmp_path / "qrels")!r}), cc.read_run({str(tmp_path / "run")!r}))
cc.metric("ndcg")(judged.y, judged.scores, qid=judged.qid)
"""
    assert not {"sklearn", "pandas", "pyarrow"} & set(loaded_by(code))


def test_every_public_name_loads():
    import concordant

    for name in concordant.__all__:
        assert getattr(concordant, name) is not None


def test_parsing_and_targets_need_no_numba():
    """The torch losses use them where numba is absent."""
    code = """
import sys; sys.modules["numba"] = None
import concordant as cc
for name in ("dcg", "ndcg@3", "p@2", "eru", "auc", "wpd", "pd"):
    cc.metric(name).targets([1, 0, 1], qid=[1, 1, 2])
cc.standardize("ap", [1, 0, 1], qid=[1, 1, 2], assume="P_reinforce")
votes = cc.Preferences([0, 2], [1, 1], 3)
for condition in ("low_noise", "P_f"):
    cc.standardize("pd", votes, assume=condition)
cc.standardize("pd", votes, assume="P_f", f=lambda better, worse, weights, n_items: range(n_items))
cc.standardize("zero_one", cc.Permutations([2, 1, 3]), assume="order_preserving")
from concordant.metrics.standardization import usable_targets
for name in ("err", "rr", "pd"):
    metric = cc.metric(name)
    usable_targets(metric, metric.read_labels([0, 1, 2]), cc.Queries.from_sizes([3]))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
