"""`studies maxmargin`: the experiment is what it says, on made-up files in the layout of the real sets."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import concordant as cc
from concordant import synthetic
from concordant.exceptions import DatasetNotFoundError, ParameterError, UnknownNameError
from concordant.rankers.guarantee import knowingly
from concordant.theory.bounds import average_precision, listwise, multipartite
from concordant.theory.bounds.empirical import empirical
from studies.__main__ import app
from studies.riezler_debona.maxmargin import guarantees as maxmargin_bounds
from studies.riezler_debona.maxmargin import study as maxmargin
from studies.riezler_debona.maxmargin.guarantees import as_guarantee, paper_bound
from studies.riezler_debona.maxmargin.report import without_weights
from studies.shared import linear_paths

pytestmark = pytest.mark.slow

NAMES = [method.name for method in maxmargin.METHODS]
METRICS = ["map", "ndcg@10", "p@1", "p@5"]
GRID = linear_paths.decades(2, -2)


def five_parts(folder, *, seed=0):
    """Five parts of made-up lists of 6 items, a few of them without anything relevant."""
    folder.mkdir()
    for number in range(1, 6):
        toy = synthetic.grades(n_queries=14, n_items=6, n_features=5, seed=10 * seed + number)
        y = toy.y * (toy.qid % 7 != 0)
        lines = []
        for grade, query, row in zip(y, toy.qid, toy.X, strict=True):
            features = " ".join(f"{column + 1}:{value:.6f}" for column, value in enumerate(row))
            lines.append(f"{grade:.0f} qid:{100 * number + int(query)} {features}\n")
        (folder / f"S{number}.txt").write_text("".join(lines))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(maxmargin.DATA):
        five_parts(root / name, seed=seed)
    return root


@pytest.fixture(scope="module", autouse=True)
def coarse():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maxmargin, "GRID", GRID)
        yield


@pytest.fixture(scope="module")
def result(root):
    return maxmargin.reproduce("mq2008", folder=root)


@pytest.fixture(scope="module")
def second(root):
    """The second fold, as the experiment sees it."""
    return maxmargin.scale_fold(cc.datasets.load("mq2008", fold=2, folder=root))


def call(*arguments):
    return CliRunner().invoke(app, ["maxmargin", *map(str, arguments)])


def cold(name, alpha, fold):
    """The ranker of a method, fitted from weights 0."""
    (method,) = (method for method in maxmargin.METHODS if method.name == name)
    model = maxmargin.ranker(method).set_params(alpha=alpha, tol=1e-9)
    with knowingly():
        return model.fit(fold.train.X, fold.train.y, qid=fold.train.qid)


# --- the experiment


def test_every_method_penalty_and_fold_is_there(result):
    settings = [(point.fold, point.method, point.alpha) for point in result.points]
    assert settings == [(fold, name, alpha) for fold in range(1, 6) for name in NAMES for alpha in GRID]
    assert (result.data, result.n_folds, result.n_train, result.n_queries) == ("mq2008", 5, 42, 70)
    assert list(result.rules) == NAMES
    for name, rules in result.rules.items():
        assert rules == (("union",) if name == "softmax" else ("regulariser", "union"))
        assert [point.fold for point in result.selected_points(name)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_ranker_at_the_chosen_penalty(result, second, name):
    """A cold fit at the penalty told, on the fold told, gives the numbers told."""
    point = result.selected_points(name)[1]
    model = cold(name, point.alpha, second)
    assert not model.fit_scale
    assert point.length == pytest.approx(np.linalg.norm(model.coef_), rel=0.02)
    scores, test = model.predict(second.test.X), second.test
    for metric in METRICS:
        values = cc.metric(metric).per_query(test.y, scores, qid=test.qid)
        assert np.nanmean(point.per_query[metric]) == pytest.approx(np.nanmean(values), abs=0.02)
        np.testing.assert_array_equal(np.isnan(point.per_query[metric]), np.isnan(values))
    for rule, guarantee in point.guarantees.items():
        delta = 0.05 / len(GRID) if rule == "regulariser" else 0.05
        train = second.train.X, second.train.y, second.train.qid
        bound = empirical(model, *train, delta=delta, B=rule, base=maxmargin_bounds.BASE)
        assert (guarantee.B, guarantee.rule) == (bound.B, rule)
        assert guarantee.value == pytest.approx(bound.value, rel=0.01)


@pytest.mark.parametrize(
    ("name", "metric"), [("AP hinge", "ap"), ("NDCG hinge", "ndcg"), ("softmax", "ndcg")]
)
def test_losses_are_means_over_all_queries(result, second, name, metric):
    """One less the metric, and 0 where nothing is relevant; the worst order is that of reversed grades."""
    point, rated = result.selected_points(name)[1], cc.metric(metric)
    model = cold(name, point.alpha, second)
    for part, losses in ((second.train, point.train), (second.test, point.test)):
        lost = 1.0 - rated.per_query(part.y, model.predict(part.X), qid=part.qid)
        worst = 1.0 - rated.per_query(part.y, -part.y, qid=part.qid)
        assert np.isnan(lost).any()
        assert losses.loss == pytest.approx(np.nan_to_num(lost).mean(), abs=0.02)
        assert losses.worst == pytest.approx(np.nan_to_num(worst).mean())
        assert losses.loss <= losses.hinge <= losses.worst + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_the_penalty_is_the_best_on_validation_queries(result, second, name):
    validation, criterion = second.validation, cc.metric("ndcg@10")
    means = [
        criterion(validation.y, cold(name, alpha, second).predict(validation.X), qid=validation.qid)
        for alpha in GRID
    ]
    index = GRID.tolist().index(result.selected_points(name)[1].alpha)
    assert float(means[index]) == pytest.approx(float(max(means)), abs=0.01)


def test_the_regulariser_shares_delta_among_penalties_and_the_union_does_not(result):
    """3 c sqrt(ln(2/delta) / 2n): c = 1 for AP, and delta_k = delta / ((k + 1)(k + 2)) of the union."""
    for point in result.points:
        if point.method != "AP hinge":
            continue
        regulariser, union = point.guarantees["regulariser"], point.guarantees["union"]
        assert pytest.approx(math.sqrt(2.0 / point.alpha)) == regulariser.B
        assert regulariser.confidence == pytest.approx(3.0 * math.sqrt(math.log(2 * len(GRID) / 0.05) / 84))
        k = round(math.log2(union.B * 64))
        assert union.B / 2 < point.length <= union.B or k == 0
        share = 0.05 / ((k + 1) * (k + 2))
        assert union.confidence == pytest.approx(3.0 * math.sqrt(math.log(2 / share) / 84))


def test_bounds_hold_on_the_test_queries_and_smaller_ones_are_caught(result):
    broken, total = result.count(lambda point, bound: point.test.loss > bound.value)
    assert (broken, total) == (0, 5 * len(GRID) * 11)
    caught, _ = result.count(
        lambda point, bound: point.test.loss > bound.value - bound.complexity - bound.confidence - 0.5
    )
    assert caught


def test_the_sharp_bound_stands_beside_the_tight_one(result, second):
    point = next(point for point in result.selected_points("AP hinge") if point.fold == 2)
    model, train = cold("AP hinge", point.alpha, second), second.train
    union = {"B": "union", "base": 1.0 / 64.0, "version": "sharp"}
    sharp = empirical(model, train.X, train.y, train.qid, **union)
    assert point.guarantees["union"].sharp == pytest.approx(sharp.value, rel=1e-3)
    assert all(
        guarantee.sharp > guarantee.value
        for point in result.points
        for guarantee in point.guarantees.values()
    )


def test_queries_needed_bring_the_bound_down_to_the_worst_orders(second):
    model, train = cold("NDCG hinge", 0.1, second), second.train
    bound = empirical(model, train.X, train.y, train.qid)
    needed = as_guarantee(bound).needed
    assert needed > bound.n
    assert bound.empirical + bound.excess * math.sqrt(bound.n / needed) == pytest.approx(bound.worst)
    assert as_guarantee(replace(bound, empirical=bound.worst)).needed == math.inf


def test_the_papers_theorems_are_taken_at_the_same_setting(second):
    queries, train = cc.Queries.from_ids(second.train.qid), second.train
    sizes = [int((train.y[train.qid == query] > 0).sum()) for query in queries.ids]
    rel = max(sizes, key=lambda count: math.comb(6, count))
    assert 1 <= rel <= 5
    expected = {
        "position hinge": lambda *at: multipartite(42, (1,) * 5, *at, reduction="pairs"),
        "plain hinge": lambda *at: multipartite(42, (1, 1), *at, reduction="pairs"),
        "AP hinge": lambda *at: average_precision(42, 6, rel, *at),
        "NDCG hinge": lambda *at: listwise(42, 6, *at),
        "NDCG@10 hinge": lambda *at: listwise(42, 6, *at),
    }
    for name, paper in expected.items():
        model = cold(name, 1.0, second)
        bound = empirical(model, train.X, train.y, queries, delta=0.01)
        theorem = paper_bound(model, train, queries, bound)
        assert theorem.version == "corrected"
        assert theorem.excess == pytest.approx(paper(bound.B, bound.M, 0.01).excess), name


def test_the_smallest_penalty_that_is_not_vacuous_is_found(result):
    """In every fold, and whatever other penalties do."""

    def vacuous_below(least):
        points = []
        for point in result.points:
            vacuous = point.alpha < least[point.fold]
            guarantees = {rule: replace(bound, vacuous=vacuous) for rule, bound in point.guarantees.items()}
            points.append(replace(point, guarantees=guarantees))
        return replace(result, points=tuple(points))

    changed = vacuous_below({1: 0.0, 2: 1.0, 3: 10.0, 4: 0.1, 5: 1.0})
    never = vacuous_below({1: 0.0, 2: 1.0, 3: math.inf, 4: 0.1, 5: 1.0})
    for name, rules in result.rules.items():
        for rule in rules:
            summary = changed.least(name, rule)
            assert (summary.method, summary.rule, summary.alpha, summary.n_vacuous) == (name, rule, 10.0, 0)
            expected = np.concatenate([point.per_query["map"] for point in result.at(name, 10.0)])
            assert summary.metrics["map"] == pytest.approx(np.nanmean(expected))
            assert never.least(name, rule) is None


def test_summaries_are_of_the_chosen_points(result):
    for summary in result.summaries():
        points = result.selected_points(summary.method)
        bounds = [point.guarantees[summary.rule] for point in points]
        assert summary.value == np.median([bound.value for bound in bounds])
        assert summary.test.loss == pytest.approx(np.mean([point.test.loss for point in points]))
        assert summary.n_vacuous == sum(bound.value >= bound.largest for bound in bounds)
        assert summary.metrics["p@5"] == pytest.approx(result.compared()["p@5"][summary.method].mean)


def test_a_deliberately_worse_method_is_marked(result, monkeypatch):
    def turned(point):
        if point.method != "AP hinge":
            return point
        return replace(point, per_query={name: values - 0.5 for name, values in point.per_query.items()})

    worse = replace(result, points=tuple(map(turned, result.points)))
    for column in worse.compared().values():
        assert column["AP hinge"].significant
    monkeypatch.setattr(maxmargin, "reproduce", lambda *_, **__: worse)
    shown = call("--data", "mq2008").stdout
    (row,) = (line for line in shown.splitlines() if line.startswith("AP hinge") and "↓" in line)
    assert row.count("↓") == len(METRICS)


def test_features_of_a_list_have_unit_ranges(root):
    plain = cc.datasets.load("mq2008", fold=1, folder=root).train
    rng = np.random.default_rng(0)
    order = rng.permutation(len(plain.y))
    mixed = cc.RankingData(plain.X[order] * 7.0 - 3.0, plain.y[order], plain.qid[order])
    scaled = maxmargin.scale_lists(plain)
    np.testing.assert_allclose(maxmargin.scale_lists(mixed).X, scaled.X[order], atol=1e-12)
    np.testing.assert_array_equal(maxmargin.scale_lists(scaled).X, scaled.X)
    varies = plain.X.std(axis=0) > 0
    for query in np.unique(plain.qid):
        rows = scaled.X[plain.qid == query][:, varies]
        assert (rows.min(axis=0) == 0).all()
        assert (rows.max(axis=0) == 1).all()
    assert not scaled.X[:, ~varies].any()


def test_weights_of_0_are_reported(result):
    assert list(without_weights(result)) == []
    none = [replace(point, length=0.0) if point.method == "AP hinge" else point for point in result.points]
    (remark,) = without_weights(replace(result, points=tuple(none)))
    assert remark == "AP hinge: weights 0, which rank nothing, are optimal in 25 of 25 fits"


# --- the command


def test_tables_json_and_csv_agree(root, tmp_path):
    expected = maxmargin.reproduce("ohsumed", folder=root, folds=2, delta=0.1)
    options = ("--data", "ohsumed", "--folder", root, "--folds", 2, "--delta", 0.1)
    done = call(*options, "--json", "--csv", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert (report["data"], report["n_folds"], report["delta"]) == ("ohsumed", 2, 0.1)
    assert report["grid"] == GRID.tolist()
    assert [entry["value"] for entry in report["chosen"]] == [
        summary.value for summary in expected.summaries()
    ]
    with (tmp_path / "out.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(report["points"]) == 2 * len(GRID) * 11
    for row, entry in zip(rows, report["points"], strict=True):
        assert (row["data"], row["method"], int(row["fold"])) == ("ohsumed", entry["method"], entry["fold"])
        assert float(row["value"]) == entry["value"]
        assert float(row["test_loss"]) == entry["test_loss"]
    blocks = call(*options).stdout.split("\n\n")
    titles = [block.splitlines()[0] for block in blocks if block]
    assert [title.partition(":")[0] for title in titles] == ["ohsumed"] * 4
    assert all(name in block for name in NAMES for block in blocks[:4])
    first = next(line for line in blocks[0].splitlines() if line.startswith("AP hinge"))
    compared = expected.compared()
    assert [word.rstrip("↓") for word in first.split()[2:]] == [
        f"{compared[metric]['AP hinge'].mean:.4f}" for metric in METRICS
    ]
    assert "of 110 bounds, at all penalties and in all folds, 0 are below the test loss" in blocks[2]


def test_quiet_shows_the_tables_only(root):
    shown = call("--data", "ohsumed", "--folder", root, "--folds", 1, "--quiet").stdout
    assert "Holm" not in shown
    assert shown.count("ohsumed: ") == 4


def test_steps_are_reported(root):
    steps = []
    maxmargin.reproduce("ohsumed", folder=root, folds=1, step=steps.append)
    assert steps == [f"fold 1: {name}" for name in NAMES]
    assert len(steps) == maxmargin.n_steps("ohsumed", 1)


def test_the_tolerance_reaches_the_fits(root):
    rough = maxmargin.reproduce("ohsumed", folder=root, folds=1, tol=0.1)
    fine = maxmargin.reproduce("ohsumed", folder=root, folds=1)
    lengths = [[point.length for point in study.points] for study in (rough, fine)]
    assert not np.allclose(*lengths, rtol=0.01)


def test_unknown_and_absent_data(tmp_path):
    with pytest.raises(UnknownNameError):
        maxmargin.reproduce("mq2007", folder=tmp_path)
    with pytest.raises(DatasetNotFoundError, match="'mq2008'"):
        maxmargin.reproduce("mq2008", folder=tmp_path)
    for wrong in ({"folds": 6}, {"folds": 0}, {"delta": 0.0}, {"delta": 1.0}):
        with pytest.raises(ParameterError):
            maxmargin.reproduce("mq2008", folder=tmp_path, **wrong)
    done = call("--data", "mq2009", "--folder", tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "unknown data 'mq2009'" in done.stderr
    done = call("--data", "mq2008", "--folder", tmp_path)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_a_file_that_cannot_be_written_is_refused_before_the_work(root, tmp_path, monkeypatch):
    monkeypatch.setattr(maxmargin, "reproduce", lambda *_, **__: pytest.fail("it began to work"))
    done = call("--data", "mq2008", "--folder", root, "--csv", tmp_path / "no" / "such.csv")
    assert done.exit_code == 2
    assert f"error: {tmp_path / 'no'}: No such file or directory" in done.stderr


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
    done = call("--data", "mq2008", "--folder", root, "--csv", tmp_path / "out.csv")
    assert (done.exit_code, done.stdout) == (130, "")
    assert len(calls) == 20
    assert list(tmp_path.iterdir()) == []


def test_help_has_an_example():
    shown = call("--help").stdout
    assert "python -m studies maxmargin --data mq2008" in shown.partition("Examples")[2]
    assert "maxmargin" in CliRunner().invoke(app, []).output


# --- real data


def test_on_mq2008_bounds_are_not_vacuous_at_the_penalties_of_the_documentation(shared_data, monkeypatch):
    monkeypatch.setattr(maxmargin, "GRID", np.array([10.0, 0.32]))
    study = maxmargin.reproduce("mq2008", folder=shared_data, folds=1)
    assert study.count(lambda point, bound: point.test.loss > bound.value)[0] == 0
    assert study.least("AP hinge", "regulariser").alpha == 10.0
    assert study.least("AP hinge", "union").alpha == 0.32
    assert study.least("NDCG@10 hinge", "regulariser").alpha == 10.0


def test_on_ohsumed_the_ndcg_at_10_hinge_has_weights_0(shared_data):
    """It asks for no margin where it matters: all pairs count alike in F, and ten places in the metric."""
    fold = maxmargin.scale_fold(cc.datasets.load("ohsumed", fold=1, folder=shared_data))
    with pytest.warns(UserWarning, match="All weights are 0"):
        assert not cold("NDCG@10 hinge", 1e-3, fold).coef_.any()
    assert cold("AP hinge", 1e-3, fold).coef_.any()
