"""`studies buffoni`: the experiment is what it says, on made-up files in the layouts of the real sets."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import concordant as cc
from concordant.data.datasets import Fold
from concordant.evaluation import paired
from concordant.exceptions import DatasetNotFoundError, EmptyDataError, UnknownNameError
from concordant.rankers.guarantee import knowingly
from studies.__main__ import app
from studies.buffoni import study as buffoni
from studies.buffoni.published import DATA, PAPER_NDCG, metrics_of
from studies.shared import linear_paths

pytestmark = pytest.mark.slow

NAMES = [method.name for method in buffoni.METHODS]
METRICS = ["err", "dcg", "ndcg", "ndcg@10"]


def part(rng, first, *, n_queries=8, highest=2):
    """Lines of some queries: two features that tell, two that do not, and now and then nothing relevant."""
    lines = []
    for query in range(first, first + n_queries):
        X = rng.random((rng.integers(4, 12), 4))
        noise = 0.3 * rng.normal(size=len(X))
        y = np.clip(np.round(highest * (X[:, 0] - X[:, 1] + noise)), 0, highest) * (query % 7 != 0)
        for grade, row in zip(y, X, strict=True):
            features = " ".join(f"{column + 1}:{value:.6f}" for column, value in enumerate(row))
            lines.append(f"{grade:.0f} qid:{query} {features}\n")
    return "".join(lines)


def five_parts(folder, *, seed=0, **options):
    rng = np.random.default_rng(seed)
    folder.mkdir()
    for number in range(1, 6):
        (folder / f"S{number}.txt").write_text(part(rng, 100 * number, **options))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A data folder with MQ2008, the part of MQ2007, OHSUMED and Yahoo, all made up."""
    root = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("mq2008", "mq2007-partial", "ohsumed")):
        five_parts(root / name, seed=seed)
    (root / "yahoo").mkdir()
    rng = np.random.default_rng(3)
    for number, split in enumerate(("train", "valid", "test"), start=1):
        (root / "yahoo" / f"set1.{split}.txt").write_text(part(rng, 100 * number, highest=4))
    return root


@pytest.fixture(scope="module")
def result(root):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buffoni, "GRID", linear_paths.decades(2, -3, steps=2))
        return buffoni.reproduce("mq2008", folder=root)


def call(*arguments):
    return CliRunner().invoke(app, ["buffoni", *map(str, arguments)])


def by_hand(grades, scores, *, highest, rule):
    """The formulas of the paper, for one query without ties."""
    ranked = [grades[i] for i in np.argsort(-scores)]
    gains = [(2**y - 1) / 2**highest for y in ranked]
    if rule == "err":
        passing, total = 1.0, 0.0
        for position, stop in enumerate(gains, start=1):
            total, passing = total + passing * stop / position, passing * (1 - stop)
        return total
    dcg = sum(gain / math.log(1 + position) for position, gain in enumerate(gains, start=1))
    if rule == "dcg":
        return dcg
    best = sum(gain / math.log(1 + position) for position, gain in enumerate(sorted(gains)[::-1], start=1))
    return dcg / best if best else 0.5


# --- the experiment


def test_every_method_metric_and_query_is_there(result, root):
    assert [(cell.metric, cell.method) for cell in result.cells] == [(m, n) for m in METRICS for n in NAMES]
    assert (result.data, result.n_folds, result.n_queries) == ("mq2008", 5, 40)
    whole = cc.datasets.load("mq2008", folder=root)
    empty = sum(not whole.y[whole.qid == query].any() for query in np.unique(whole.qid))
    assert empty
    for cell in result.cells:
        assert len(cell.folds) == 5
        assert np.isnan(cell.per_query).sum() == (empty if cell.metric.startswith("ndcg") else 0)
        assert cell.comparison.mean == pytest.approx(np.nanmean(cell.per_query))


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_ranker_at_the_chosen_penalty(result, root, name):
    """A cold fit at the penalty told, on the fold told, gives the numbers told."""
    method = next(method for method in buffoni.METHODS if method.name == name)
    fold = cc.datasets.load("mq2008", fold=2, folder=root)
    for metric in METRICS:
        choice = result.column(metric)[name].folds[1]
        ranker = cc.LinearRanker(
            method.metric, method.surrogate, alpha=choice.alpha, fit_scale=False, tol=1e-10
        )
        with knowingly():
            ranker.fit(fold.train.X, fold.train.y, qid=fold.train.qid)
        values = result.metrics[metric].per_query(fold.test.y, ranker.predict(fold.test.X), qid=fold.test.qid)
        np.testing.assert_allclose(choice.per_query, values, atol=1e-9)


def test_penalties_are_shares_of_the_loss_at_zero(result, root):
    fold = cc.datasets.load("mq2008", fold=1, folder=root)
    targets = cc.standardize("ndcg", fold.train.y, qid=fold.train.qid)
    pairs = {name: result.column("ndcg")[name].folds[0] for name in ("preorder", "consistent-ndcg")}
    queries = cc.Queries.from_ids(fold.train.qid)
    grades, shares = queries.gather(fold.train.y), queries.gather(targets)
    preorder = consistent = 0.0  # at equal scores the margin is 1 for every pair
    for start, stop in zip(queries.offsets, queries.offsets[1:], strict=False):
        y, r = grades[start:stop], shares[start:stop]
        preorder += (y[:, None] > y).sum() / queries.n_queries
        consistent += r.sum() * len(r) / queries.n_queries  # with itself, too: a constant
    for name, unit in (("preorder", preorder), ("consistent-ndcg", consistent)):
        assert pairs[name].alpha == pytest.approx(pairs[name].share * unit, rel=1e-9)


def test_the_penalty_is_the_best_on_validation_queries(result, root):
    fold = cc.datasets.load("mq2008", fold=3, folder=root)
    method = buffoni.METHODS[0]
    path = linear_paths.fit_path(method, fold.train, result.shares, scaled=False)
    validation = fold.validation
    for name, metric in result.metrics.items():
        means = [float(metric(validation.y, validation.X @ coef, qid=validation.qid)) for coef in path.coefs]
        choice = result.column(name)[method.name].folds[2]
        assert choice.validation == max(means)
        assert choice.share == result.shares[int(np.argmax(means))]
        assert choice.at_edge == (choice.share in (result.shares[0], result.shares[-1]))


def test_all_methods_share_one_grid(result):
    assert {fold.share for cell in result.cells for fold in cell.folds} <= set(result.shares.tolist())
    np.testing.assert_allclose(np.diff(np.log10(result.shares)), -0.5)


@pytest.mark.parametrize("data", ["mq2007", "yahoo"])
def test_metrics_are_the_formulas_of_the_paper(data):
    highest, rng = DATA[data].highest, np.random.default_rng(0)
    for y in ([0, 0, 0], rng.integers(0, highest + 1, 9), [highest], [1, 0, highest, 0]):
        scores = rng.normal(size=len(y))
        for name, metric in metrics_of(DATA[data]).items():
            rule = name.partition("@")[0].partition("[")[0]
            expected = by_hand(y, scores, highest=highest, rule=rule)
            value = metric.per_query(y, scores)[0]
            if name in ("ndcg", "ndcg@10") and not np.any(y):
                assert np.isnan(value)
            else:
                assert value == pytest.approx(expected, abs=1e-12), name


def test_names_of_metrics_are_understood():
    assert cc.metric(PAPER_NDCG) == metrics_of(DATA["mq2007"])[PAPER_NDCG]


def test_published_figures_belong_to_methods_and_metrics():
    for data in DATA.values():
        for method, figures in data.published.items():
            assert method in NAMES[:6]
            assert set(figures) == {"err", "dcg", PAPER_NDCG} <= set(metrics_of(data))
    assert DATA["yahoo"].published["preorder"]["ndcg[empty=0.5]"].significant
    assert not DATA["yahoo"].published["consistent-ndcg"]["err"].significant


def test_mq2007_takes_what_is_there(root, tmp_path):
    part_only = buffoni.reproduce("mq2007", folder=root, quick=True)
    assert part_only.data == "mq2007-partial"
    assert any("order of methods, not levels" in note for note in part_only.notes)
    for name in ("mq2007", "mq2007-partial"):
        five_parts(tmp_path / name)
    full = buffoni.reproduce("mq2007", folder=tmp_path, quick=True)
    assert full.data == "mq2007"
    assert not any("not levels" in note for note in full.notes)


def test_agreement_with_the_paper_is_about_order(root):
    result = buffoni.reproduce("mq2007", folder=root, quick=True)

    def moved(cell, factor):
        mean = factor * cell.published.value if cell.published else 0.0
        return replace(cell, comparison=replace(cell.comparison, mean=mean))

    for factor, tau in ((1.0, 1.0), (2.0, 1.0), (-1.0, -1.0)):
        other = replace(result, cells=tuple(moved(cell, factor) for cell in result.cells))
        assert other.agreement("dcg") == pytest.approx(tau)
        assert any(f"dcg {tau:.2f}" in note for note in other.notes)
    assert math.isnan(result.agreement("ndcg@10"))


def test_yahoo_has_one_split(root):
    steps = []
    result = buffoni.reproduce("yahoo", folder=root, quick=True, step=steps.append)
    assert (result.data, result.n_folds, result.n_queries) == ("yahoo-set1", 1, 8)
    assert len(steps) == buffoni.n_steps("yahoo", folder=root) == len(NAMES)
    assert result.column("err")["preorder"].published.value == 0.4392


def test_scaling_is_the_sets_own_or_the_callers(root):
    assert buffoni.reproduce("ohsumed", folder=root, quick=True).scaled
    plain = buffoni.reproduce("ohsumed", folder=root, quick=True, scaled=False)
    assert not plain.scaled
    assert not buffoni.reproduce("mq2008", folder=root, quick=True).scaled


def test_scaling_makes_the_units_of_features_irrelevant(root):
    fold = cc.datasets.load("ohsumed", fold=1, folder=root)
    method, shares = buffoni.METHODS[2], linear_paths.decades(0, -2)
    units = np.ones(fold.train.X.shape[1])
    units[:4] = [1.0, 1e3, 1e-3, 7.0]
    other = cc.RankingData(fold.train.X * units, fold.train.y, fold.train.qid)
    for scaled in (True, False):
        coefs = [
            linear_paths.fit_path(method, data, shares, scaled=scaled).coefs * factor
            for data, factor in ((fold.train, 1.0), (other, units))
        ]
        assert np.allclose(*coefs, rtol=1e-3, atol=1e-3) == scaled


def test_a_fold_without_validation_queries_is_refused(root):
    fold = cc.datasets.load("mq2008", fold=1, folder=root)
    path = linear_paths.fit_path(buffoni.METHODS[0], fold.train, linear_paths.decades(0, -1), scaled=False)
    with pytest.raises(EmptyDataError, match="validation"):
        linear_paths.choose(path, Fold(fold.train, None, fold.test), {"ndcg": cc.metric("ndcg")})


# --- significance


@pytest.fixture
def worse(monkeypatch):
    """Let the preorder rank upside down: it must be marked."""
    real = linear_paths.fit_path

    def upside_down(method, *arguments, **options):
        path = real(method, *arguments, **options)
        sign = -1.0 if method.name == "preorder" else 1.0
        return linear_paths.Path(path.shares, path.unit, sign * path.coefs)

    monkeypatch.setattr(buffoni, "fit_path", upside_down)
    monkeypatch.setattr(buffoni, "GRID", linear_paths.decades(0, -2))


@pytest.mark.usefixtures("worse")
def test_a_deliberately_worse_method_is_marked(root, tmp_path):
    result = buffoni.reproduce("mq2008", folder=root)
    for metric in METRICS:
        column = result.column(metric)
        (best,) = (cell for cell in column.values() if cell.comparison.best)
        bad = column["preorder"]
        assert bad.comparison.significant
        assert bad.comparison.test == paired(best.per_query, bad.per_query)
        assert best.comparison.mean == max(cell.comparison.mean for cell in column.values())
    shown = call("--data", "mq2008", "--folder", root, "--csv", tmp_path / "all.csv").stdout
    rows = {line.split()[0]: line for line in shown.splitlines() if line.split()}
    assert rows["preorder"].count("↓") == len(METRICS)
    assert rows["↓"].startswith("↓ is significantly worse than the best of its column")
    with (tmp_path / "all.csv").open() as stream:
        marks = {(row["method"], row["metric"]): row["significant"] for row in csv.DictReader(stream)}
    assert all(marks["preorder", metric] == "true" for metric in METRICS)
    assert set(marks.values()) == {"true", "false"}


# --- the command


def test_quick_table_json_and_csv_agree(root, tmp_path):
    expected = buffoni.reproduce("mq2007", folder=root, quick=True)
    options = ("--data", "mq2007", "--folder", root, "--quick")
    done = call(*options, "--json", "--csv", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["data"], report["n_folds"], report["quick"]) == ("mq2007-partial", 1, True)
    assert report["grid"] == expected.shares.tolist()
    assert [entry["value"] for entry in report["results"]] == [
        cell.comparison.mean for cell in expected.cells
    ]
    with (tmp_path / "out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    for row, entry, cell in zip(rows, report["results"], expected.cells, strict=True):
        assert (row["data"], row["method"], row["metric"]) == ("mq2007-partial", cell.method, cell.metric)
        assert float(row["value"]) == entry["value"]
        assert [float(alpha) for alpha in row["alpha"].split(";")] == pytest.approx(entry["alpha"], rel=1e-5)
        assert [float(c) for c in row["c"].split(";")] == entry["c"]
        if cell.comparison.best:
            assert row["p_value"] == row["p_permutation"] == row["p_adjusted"] == ""
            assert entry["p_value"] is None
        else:
            assert float(row["p_value"]) == entry["p_value"] == cell.comparison.test.t_test
            assert float(row["p_permutation"]) == cell.comparison.test.permutation
            assert float(row["p_adjusted"]) == cell.comparison.adjusted
        paper = cell.published.value if cell.published else None
        assert entry["paper"] == paper
        assert (float(row["paper"]) if row["paper"] else None) == paper
    shown = call(*options).stdout.splitlines()
    assert shown[1].split() == [
        "method",
        "err",
        "paper",
        "dcg",
        "paper",
        PAPER_NDCG,
        "paper",
        "ndcg",
        "ndcg@10",
    ]
    first = next(line for line in shown if line.startswith("preorder "))
    figures = [word.rstrip("↓") for word in first.split()[1:]]
    assert figures[:2] == [f"{expected.cells[0].comparison.mean:.4f}", "0.3139"]
    assert "1/ln(1 + place)" in "".join(shown)
    assert "a look, not a result" in "".join(shown)


def test_without_marks_the_remark_says_so(root):
    output = call("--data", "ohsumed", "--folder", root, "--quick")
    marked = any(
        cell.comparison.significant for cell in buffoni.reproduce("ohsumed", folder=root, quick=True).cells
    )
    assert ("no method is significantly worse" in output.stdout) != marked
    assert ("↓" in output.stdout) == marked


def test_quiet_shows_the_table_only(root):
    shown = call("--data", "ohsumed", "--folder", root, "--quick", "--quiet").stdout
    assert "Holm" not in shown
    assert all(name in shown for name in NAMES)


def test_the_environment_names_the_folder(root, monkeypatch):
    monkeypatch.setenv("CONCORDANT_DATA", str(root))
    done = call("--data", "mq2008", "--quick", "--scale", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["scaled"] is True


def test_unknown_and_absent_data(tmp_path):
    with pytest.raises(UnknownNameError):
        buffoni.reproduce("mq2009", folder=tmp_path)
    with pytest.raises(DatasetNotFoundError, match="'mq2007'"):
        buffoni.reproduce("mq2007", folder=tmp_path)
    done = call("--data", "mq2009", "--folder", tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "unknown data 'mq2009'" in done.stderr
    done = call("--data", "yahoo", "--folder", tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "webscope" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_cannot_be_written_is_refused_before_the_work(root, tmp_path, monkeypatch):
    monkeypatch.setattr(buffoni, "reproduce", lambda *_, **__: pytest.fail("it began to work"))
    done = call("--data", "mq2008", "--folder", root, "--csv", tmp_path / "no" / "such.csv")
    assert done.exit_code == 2
    assert f"error: {tmp_path / 'no'}: No such file or directory" in done.stderr
    done = call("--data", "mq2008", "--folder", root, "--csv", tmp_path)
    assert done.exit_code == 2
    assert f"error: {tmp_path}: Is a directory" in done.stderr


def test_ctrl_c_during_a_fit_ends_the_command(root, tmp_path, monkeypatch):
    """A ranker answers Ctrl-C with its best weights; the experiment must not go on with those."""
    from concordant.solvers import LinearObjective

    real, calls = LinearObjective.value_and_grad, []

    def stop(self, w):
        calls.append(w)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return real(self, w)

    monkeypatch.setattr(LinearObjective, "value_and_grad", stop)
    out = tmp_path / "out.csv"
    done = call("--data", "mq2008", "--folder", root, "--quick", "--csv", out)
    assert (done.exit_code, done.stdout) == (130, "")
    assert len(calls) == 20
    assert not out.exists()
    assert list(tmp_path.iterdir()) == []


def test_help_has_an_example():
    shown = call("--help").stdout
    assert "python -m studies buffoni --data mq2008" in shown.partition("Examples")[2]
    group = CliRunner().invoke(app, [])
    assert "buffoni" in group.output


# --- real data


def test_the_consistent_loss_is_no_worse_on_mq2008(shared_data):
    """NDCG over all folds, as in the documentation: 0.7485 against 0.7419."""
    metrics = {"ndcg": cc.metric("ndcg")}
    values = {"preorder": [], "consistent-ndcg": []}
    for number in range(1, 6):
        fold = cc.datasets.load("mq2008", fold=number, folder=shared_data)
        for method in buffoni.METHODS:
            if method.name in values:
                path = linear_paths.fit_path(method, fold.train, buffoni.GRID, scaled=False)
                values[method.name].append(linear_paths.choose(path, fold, metrics)["ndcg"].per_query)
    means = {name: np.nanmean(np.concatenate(folds)) for name, folds in values.items()}
    assert means["consistent-ndcg"] >= means["preorder"]
    assert means["preorder"] == pytest.approx(0.7419, abs=0.002)
    assert means["consistent-ndcg"] == pytest.approx(0.7485, abs=0.002)
