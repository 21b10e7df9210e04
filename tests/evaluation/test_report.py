"""Reports: every number is that of a definition or of another function, every page is whole and safe."""

import itertools
import json
import math
import re
import time
from collections import Counter
from dataclasses import astuple
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import concordant as cc
from concordant.evaluation.effects import mean_intervals
from concordant.evaluation.report.build import ReportRequest, assemble_report
from concordant.evaluation.report.facts import convention_words, fit_to_rows
from concordant.evaluation.report.scored import ScoredRows, Trust, calibrate_grades, thin, with_missed
from concordant.exceptions import (
    EmptyDataError,
    LabelError,
    LengthMismatchError,
    MissingExtraError,
    ParameterError,
    ShapeError,
)
from concordant.metrics.convention import ALLOWED
from concordant.rankers.folds import FitRows

pytestmark = pytest.mark.once

pytest.importorskip("plotly")
HOSTILE = "</script><script>window.hostile='ran'</script><img src=x onerror=alert(1)>&amp;\"'"
SECTIONS = (
    "judged", "metrics", "conventions", "distribution", "gains", "learning", "calibration", "certificate",
    "weights", "worst", "counts",
)  # fmt: skip


@pytest.fixture(autouse=True)
def short_library(monkeypatch):
    """Most pages need not have the whole of plotly to be looked through."""
    monkeypatch.setattr("plotly.offline.get_plotlyjs", lambda: "var Plotly;")


@pytest.fixture(scope="module")
def toy():
    """Queries of one to nine rows, some with nothing relevant; some features repeat."""
    return cc.synthetic.grades(n_queries=60, n_items=(1, 9), seed=3)


@pytest.fixture(scope="module")
def rows(toy):
    """Scores with ties, of a model and of a baseline, and labels."""
    rng = np.random.default_rng(0)
    y = toy.y.copy()
    y[np.isin(toy.qid, [2, 5, 7])] = 0.0
    scores, other = rng.integers(0, 6, (2, len(y))).astype(np.float64)
    scores[toy.qid == 9] = -np.inf
    scores[::11] = -np.inf
    return y, scores, other


@pytest.fixture(scope="module")
def report(toy, rows):
    y, scores, other = rows
    return cc.report(scores, None, y, qid=toy.qid, baseline=other, metrics=["ndcg@5", "ap", "pd"], n_boot=299)


@pytest.fixture(scope="module")
def linear(toy):
    return cc.LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid)


def naive_gains(metric, y, model_scores, other, qid):
    """Gain of each query where both count, one query at a time."""
    gains = {}
    for q in np.unique(qid):
        mine, theirs = (float(metric(y[qid == q], scores[qid == q])) for scores in (model_scores, other))
        if not math.isnan(mine - theirs):
            gains[str(q)] = mine - theirs
    return gains


def naive_tie_counts(y, scores, qid):
    """Pair by pair."""
    counts = Counter()
    for q in np.unique(qid):
        grades, query_scores = y[qid == q], scores[qid == q]
        pairs = list(itertools.combinations(range(len(query_scores)), 2))
        tied = [
            (i, j) for i, j in pairs if query_scores[i] == query_scores[j] and np.isfinite(query_scores[i])
        ]
        counts["n_pairs"] += len(pairs)
        counts["n_tied_pairs"] += len(tied)
        counts["n_tied_queries"] += bool(tied)
        counts["n_decided_ties"] += sum(grades[i] != grades[j] for i, j in tied)
        counts["n_one_row"] += len(query_scores) == 1
        counts["n_nothing_relevant"] += not any(grades > 0)
        counts["n_same_grade"] += len(set(grades)) == 1
        counts["n_not_ranked"] += sum(np.isneginf(query_scores))
    return dict(counts)


class Page(HTMLParser):
    """What a page holds: ids, links, labels, tables, scripts, and everything that it would load."""

    VOID = ("meta", "img", "br", "link", "input")

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.open, self.unlabelled, self.tags = [], [], [], [], []
        self.loaded, self.captions, self.scripts, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.links += [attributes["href"]] if tag == "a" else []
        self.loaded += [
            attributes[name] for name in ("src", "srcset", "data", "action") if name in attributes
        ]
        self.loaded += [attributes["href"]] if tag == "link" else []
        if attributes.get("class") == "plot" and not (
            attributes.get("role") == "img" and attributes.get("aria-label")
        ):
            self.unlabelled.append(attributes.get("id"))
        if tag == "script":
            self.scripts.append(attributes)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


def faults(text):
    """Everything that is wrong with a page, as far as it can be told without a browser."""
    page = Page(text)
    head = text[: text.index("</head>")]
    return [
        *(f"{tag} is not closed" for tag in page.open),
        *(f"loads {name}" for name in page.loaded),
        *(f"links to {link}" for link in page.links if not link.startswith("#")),
        *(f"no place {link}" for link in page.links if link[1:] not in page.ids),
        *(f"two {name}" for name in set(page.ids) if page.ids.count(name) > 1),
        *(f"plot {name} says nothing" for name in page.unlabelled),
        *([f"{len(page.scripts)} scripts"] if len(page.scripts) not in (0, 3) else []),
        *([] if "default-src 'none'" in head else ["may load anything"]),
        *([] if page.tags.count("h1") == 1 else ["has no one title"]),
        *([] if page.tags.count("table") == page.tags.count("caption") else ["a table without caption"]),
        *(f"shows {word}" for word in ("nan", "inf") if re.search(rf"\b{word}\b", " ".join(page.text))),
    ]


def check_whole(report):
    """The page has every section and no fault, and the values go through JSON."""
    text = report.to_html()
    assert faults(text) == []
    assert [name for name in SECTIONS if f'<section id="{name}"' not in text] == []
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["title"] == report.title
    return text


# --- numbers, against definitions


def test_means_are_those_of_the_metric(report, toy, rows):
    y, model_scores, other = rows
    for row in report.metrics:
        metric = cc.metric(row.metric)
        mine, theirs = (metric(y, scores, qid=toy.qid) for scores in (model_scores, other))
        assert (row.model.value, row.baseline.value) == (float(mine), float(theirs))
        assert row.n_skipped == mine.n_skipped
        assert row.n_counted == mine.n_queries - mine.n_skipped
    assert [row.metric for row in report.metrics] == ["ndcg@5", "ap", "pd"]
    assert [row.greater_is_better for row in report.metrics] == [True, True, False]


def test_intervals_and_p_values_are_those_of_evaluation(report, toy, rows):
    y, model_scores, other = rows
    for row in report.metrics:
        a, b = (cc.metric(row.metric).per_query(y, scores, qid=toy.qid) for scores in (model_scores, other))
        low, high = mean_intervals(np.column_stack([a, b, a - b]), 0.95, 299, 0)
        intervals = [(estimate.low, estimate.high) for estimate in (row.model, row.baseline, row.difference)]
        assert np.allclose(intervals, np.column_stack([low, high]), rtol=1e-12, atol=0.0)
        assert row.p_value == cc.evaluation.paired(a, b, seed=0).permutation
        assert row.difference.value == pytest.approx(np.nanmean(a - b), abs=1e-15)


def test_confidence_widens_the_intervals(toy, rows):
    y, scores, _ = rows
    narrow, wide = (
        cc.report(scores, None, y, qid=toy.qid, metrics="ndcg", confidence=share).metrics[0].model
        for share in (0.8, 0.99)
    )
    assert wide.low < narrow.low < narrow.high < wide.high


def test_gains_are_counted_query_by_query(report, toy, rows):
    y, scores, other = rows
    expected = naive_gains(cc.metric("ndcg@5"), y, scores, other, toy.qid)
    assert dict(zip(report.gains.qid, report.gains.differences, strict=True)) == pytest.approx(expected)
    assert list(report.gains.differences) == sorted(report.gains.differences, reverse=True)
    values = np.array(list(expected.values()))
    counts = [(values > 1e-12).sum(), (abs(values) <= 1e-12).sum(), (values < -1e-12).sum()]
    assert [report.gains.wins, report.gains.ties, report.gains.losses] == counts
    assert report.gains.n_queries == len(expected)


def test_a_loss_gains_where_it_falls(toy, rows):
    y, model_scores, other = rows
    fallen = cc.report(model_scores, None, y, qid=toy.qid, baseline=other, metrics="pd")
    per_query = [cc.metric("pd").per_query(y, scores, qid=toy.qid) for scores in (other, model_scores)]
    assert fallen.gains.wins == int((per_query[0] - per_query[1] > 1e-12).sum())
    values = [query.value for query in fallen.worst]
    assert values == sorted(values, reverse=True)


def test_the_distribution_holds_every_query(report, toy, rows):
    y, scores, _ = rows
    values = cc.metric("ndcg@5").per_query(y, scores, qid=toy.qid)
    defined = values[~np.isnan(values)]
    assert sum(report.distribution.model) == len(defined)
    first = sum(value < report.distribution.edges[1] for value in defined)
    assert report.distribution.model[0] == first
    assert report.distribution.quartiles == tuple(np.quantile(defined, (0, 0.25, 0.5, 0.75, 1)).tolist())


def test_ties_and_empty_queries_are_counted_one_by_one(report, toy, rows):
    y, scores, _ = rows
    counts = report.counts
    expected = naive_tie_counts(y, scores, toy.qid)
    assert {name: getattr(counts, name) for name in expected} == expected
    assert counts.n_skipped == report.metrics[0].n_skipped > 0
    assert counts.n_decided_ties > 0  # else nothing was tested
    assert counts.n_not_ranked > 0


def test_queries_without_rows_are_counted():
    queries = cc.Queries.from_sizes([2, 0, 1])
    report = cc.report([1.0, 0.0, 3.0], None, [0, 1, 2], qid=queries)
    assert (report.counts.n_without_rows, report.counts.n_one_row) == (1, 1)
    check_whole(report)


def test_the_worst_queries_are_the_worst_and_stand_in_their_order(report, toy, rows):
    y, scores, other = rows
    values = cc.metric("ndcg@5").per_query(y, scores, qid=toy.qid)
    assert [query.value for query in report.worst] == sorted(values[~np.isnan(values)])[:10]
    for query in report.worst:
        mine = np.flatnonzero(toy.qid == int(query.qid))
        places = cc.decoders.sorting.positions(scores[mine])
        baseline = cc.decoders.sorting.positions(other[mine])
        for row in query.rows:
            at = mine[places == row.rank].item()
            assert (row.docid, row.grade, row.score) == (f"row {at}", y[at], scores[at])
            assert row.baseline_rank == baseline[mine == at]
            assert row.tied == (np.isfinite(scores[at]) and (scores[mine] == scores[at]).sum() > 1)


def test_rows_that_were_missed_stand_below_the_head():
    grades = np.r_[np.ones(10), 0, 3, 1, 2, np.full(5, 4), 0]
    shown = with_missed(np.arange(20), grades)
    assert shown.tolist() == [*range(10), *range(14, 19)]
    assert with_missed(np.arange(3), np.zeros(3)).tolist() == [0, 1, 2]
    assert with_missed(np.arange(20), np.zeros(20)).tolist() == list(range(10))


def test_calibration_holds_every_row_once(report, rows):
    y, scores, _ = rows
    ranked = np.isfinite(scores)
    assert sum(group.n_rows for group in report.calibration.bins) == ranked.sum()
    assert report.calibration.n_left_out == (~ranked).sum()
    for group in report.calibration.bins:
        inside = ranked & (scores >= group.lowest) & (scores <= group.highest)
        assert group.n_rows == inside.sum()
        assert group.grade == pytest.approx(y[inside].mean())
        assert group.score == pytest.approx(scores[inside].mean())
    ends = [(group.lowest, group.highest) for group in report.calibration.bins]
    assert all(left[1] < right[0] for left, right in itertools.pairwise(ends))


def test_calibration_intervals_cover_the_mean_as_often_as_they_say():
    rng, covered, n_seen = np.random.default_rng(0), 0, 0
    queries = cc.Queries.from_ids(np.repeat(np.arange(60), 5))
    for _ in range(100):
        level = np.repeat(rng.normal(size=60), 5)  # rows of a query are alike: rows are no observations
        y, scores = 10.0 + level + 0.3 * rng.normal(size=300), rng.normal(size=300)
        for group in calibrate_grades(ScoredRows("", y, scores, queries), 0.9).bins:
            covered, n_seen = covered + (group.low <= 10.0 <= group.high), n_seen + 1
    assert 0.86 < covered / n_seen < 0.93  # 0.9, less what few queries cost


def test_presets_are_those_of_explain(report, toy, rows):
    y, scores, _ = rows
    for row in report.conventions.presets:
        value = cc.metric("ndcg@5", convention=row.preset)(y, scores, qid=toy.qid)
        assert row.value == pytest.approx(float(value))
        assert row.change == pytest.approx(float(value) - report.metrics[0].model.value)
    assert {row.preset for row in report.conventions.presets} == set(cc.metrics.PRESETS) - {"concordant"}


OTHER_RULES = {
    **ALLOWED,
    "relevant_from": (1.0, 2.0),
    "empty": ("skip", "nan", 0.5),
    "empty_ap": (None, 0.5),
    "max_grade": (4.0, 5.0),
}


def test_every_rule_has_its_words():
    for field, values in OTHER_RULES.items():
        for value in values:
            said = convention_words([cc.metric("ap@3", convention=cc.Convention(**{field: value}))])
            assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in said)
    assert "For PD that is" in convention_words([cc.metric("pd")])[1]


def test_a_baseline_that_was_not_given_is_chance(toy, rows):
    y, scores, _ = rows
    report = cc.report(scores, None, y, qid=toy.qid, metrics="ap")
    equal = np.where(np.isinf(scores), -np.inf, 0.0)
    value = report.metrics[0].baseline.value
    assert value == float(cc.metric("ap")(y, equal, qid=toy.qid))
    assert value < float(cc.metric("ap")(y, np.zeros(len(y)), qid=toy.qid))  # what is not ranked stays so
    assert "mean over all orders" in report.judged.against


def test_what_was_judged(report, toy, rows):
    y = rows[0]
    sizes = np.unique(toy.qid, return_counts=True)[1]
    judged = report.judged
    assert (judged.n_rows, judged.n_queries, judged.shortest, judged.longest) == (
        len(y),
        60,
        sizes.min(),
        sizes.max(),
    )
    assert dict(judged.grades) == {grade: (y == grade).sum() for grade in np.unique(y)}
    assert (judged.n_features, judged.version) == (None, cc.__version__)


def test_a_baseline_of_its_own_rows_is_matched_by_query():
    queries = [
        cc.Queries.from_ids(ids) for ids in (["a", "a", "b", "b", "c", "c"], ["c", "c", "a", "a", "a"])
    ]
    model_rows = ScoredRows("own", np.array([1.0, 0, 2, 0, 0, 1]), np.array([2.0, 1, 1, 2, 1, 2]), queries[0])
    other = ScoredRows("other", np.array([1.0, 0, 0, 0, 1]), np.array([0.0, 1, 3, 2, 1]), queries[1])
    report = assemble_report(
        model_rows, other, [cc.metric("rr")], ReportRequest(noticed=["one thing"]), Trust(n_boot=9)
    )
    assert report.metrics[0].baseline.value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert dict(zip(report.gains.qid, report.gains.differences, strict=True)) == pytest.approx(
        {"a": 2 / 3, "c": 1 / 2}
    )
    assert math.isnan(report.worst[0].baseline)  # b, which the baseline does not have
    assert report.worst[0].rows[0].baseline_rank is None
    assert "<li>one thing</li>" in check_whole(report)


# --- models


def test_weights_are_what_the_score_moves_by(toy, linear):
    report = cc.report(linear, toy.X, toy.y, qid=toy.qid)
    centred = np.concatenate(
        [toy.X[toy.qid == q] - toy.X[toy.qid == q].mean(axis=0) for q in np.unique(toy.qid)]
    )
    expected = linear.coef_ * np.sqrt((centred**2).mean(axis=0))
    weights = {
        int(name.split()[1]): value
        for name, value in zip(report.weights.names, report.weights.values, strict=True)
    }
    assert [weights[i] for i in range(len(expected))] == pytest.approx(expected.tolist())
    assert list(map(abs, report.weights.values)) == sorted(map(abs, report.weights.values), reverse=True)


def test_a_pipeline_tells_what_its_ranker_does(toy):
    import pandas as pd

    names = [f"f{i}" for i in range(toy.X.shape[1])]
    frame = pd.DataFrame(100.0 * toy.X + 3.0, columns=names)
    pipe = make_pipeline(StandardScaler(), cc.LinearRanker("ndcg@5"))
    with sklearn.config_context(enable_metadata_routing=True):
        pipe.fit(frame, toy.y, qid=toy.qid)
    report = cc.report(pipe, frame, toy.y, qid=toy.qid)
    assert report.certificate is not None
    assert set(report.weights.names) == set(names)
    assert report.judged.model == "LinearRanker"
    plain = pipe[-1].predict(pipe[:-1].transform(frame))
    assert report.metrics[0].model.value == float(cc.metric("ndcg@5")(toy.y, plain, qid=toy.qid))
    check_whole(report)


def test_a_search_tells_of_its_best(toy):
    from sklearn.model_selection import GridSearchCV, GroupKFold

    search = GridSearchCV(cc.LinearRanker("ndcg@5"), {"alpha": [0.1, 1.0]}, cv=GroupKFold(2))
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(toy.X, toy.y, groups=toy.qid, qid=toy.qid)
    report = cc.report(search, toy.X, toy.y, qid=toy.qid)
    assert (report.judged.model, report.weights.kind) == ("LinearRanker", "weights")
    assert report.metrics[0].model.value == search.best_estimator_.score(toy.X, toy.y, qid=toy.qid)


class OnlyFirst:
    """Reads feature 0 and says nothing."""

    def predict(self, X):
        return np.asarray(X)[:, 0]


def test_shuffling_finds_the_only_feature_that_counts(toy):
    X = np.column_stack([toy.y, toy.X[:, :2], np.ones(len(toy.y))])
    report = cc.report(OnlyFirst(), X, toy.y, qid=toy.qid, metrics="ndcg@3")
    kind, names, (first, *others), *_ = astuple(report.weights)
    assert (kind, names[0], others) == ("drops", "column 0 (LETOR 1)", [0.0, 0.0, 0.0])
    assert first > 0.05
    fallen = cc.report(OnlyFirst(), X, toy.y, qid=toy.qid, metrics="pd")
    assert astuple(fallen.weights)[2][0] > 0.0  # a loss that rises is a drop, too


class Summed(OnlyFirst):
    """Adds the features up."""

    def predict(self, X):
        return np.asarray(X).sum(axis=1)


def test_what_is_the_same_for_a_whole_query_loses_nothing(toy):
    X = np.column_stack([toy.y, 100.0 * toy.qid])
    report = cc.report(Summed(), X, toy.y, qid=toy.qid, metrics="ndcg@3")
    assert dict(zip(*astuple(report.weights)[1:3], strict=True))["column 1 (LETOR 2)"] == 0.0
    assert astuple(report.weights)[2][0] > 0.05


class Trees(OnlyFirst):
    feature_importances_ = np.array([3.0, 0.0])


def test_importances_of_other_libraries_are_not_called_shares(toy):
    report = cc.report(Trees(), toy.X[:, :2], toy.y, qid=toy.qid)
    assert astuple(report.weights)[:3] == (
        "foreign",
        ("column 0 (LETOR 1)", "column 1 (LETOR 2)"),
        (3.0, 0.0),
    )
    assert "as the model gives them" in check_whole(report)


MODELS = {
    "linear": lambda: cc.LinearRanker("ndcg@5"),
    "refuted": lambda: cc.LinearRanker("ndcg@5", "preorder"),
    "cv": lambda: cc.LinearRankerCV("ndcg@5", alphas=(0.1, 1.0), cv=2),
    "maxmargin": lambda: cc.MaxMarginRanker("ap"),
    "pairs of ap": lambda: cc.PairRanker("ap"),
    "pairs of pd": lambda: cc.PairRanker("pd"),
    "lightgbm": lambda: cc.BoostedRanker("ndcg@5", n_estimators=5, early_stopping=2, n_jobs=1),
    "xgboost": lambda: cc.BoostedRanker("ndcg@5", booster="xgboost", n_estimators=3, n_jobs=1),
    "catboost": lambda: cc.BoostedRanker("ndcg@5", booster="catboost", n_estimators=3, n_jobs=1),
    "neural": lambda: cc.NeuralRanker("ndcg@5", max_epochs=2),
}
NEEDS = {"lightgbm": "lightgbm", "xgboost": "xgboost", "catboost": "catboost", "neural": "torch"}
KINDS = {
    "pairs of ap": "none", "pairs of pd": "none", "lightgbm": "importances", "xgboost": "importances",
    "catboost": "importances", "neural": "drops",
}  # fmt: skip
CURVES = {"cv": ["penalty alpha"], "lightgbm": ["trees"], "neural": ["epoch", "epoch"]}


def test_a_guarantee_is_qualified_if_the_model_ranks_badly(toy):
    model = cc.LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid)
    data = toy.X, toy.y
    good = cc.report(model, *data, qid=toy.qid, n_boot=9)
    assert not good.certificate.caution
    assert '<strong class="proven">' in good.to_html()
    behind = cc.report(
        model, *data, qid=toy.qid, n_boot=9, baseline=toy.y.astype(float), baseline_name="oracle"
    )
    model.coef_ = np.zeros_like(model.coef_)
    flat = cc.report(model, *data, qid=toy.qid, n_boot=9)
    assert behind.certificate.caution == "on these queries this model is worse than oracle"
    assert flat.certificate.caution == "this model learned nothing: all its scores are equal"
    for report in (behind, flat):
        text = " ".join(report.to_html().split())
        assert 'class="proven"' not in text
        assert 'class="status proven"' not in text
        assert f"whatever the labels are like. But {report.certificate.caution}." in text


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning", "ignore::UserWarning")
def test_every_estimator_has_a_whole_report(name, toy):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    model = MODELS[name]().fit(toy.X, toy.y, qid=toy.qid)
    report = cc.report(model, toy.X, toy.y, qid=toy.qid, n_boot=99)
    text = check_whole(report)
    assert report.certificate.status == model.certificate_.status
    assert f'class="status {report.certificate.status}"' in text
    assert report.weights.kind == KINDS.get(name, "weights")
    assert bool(report.weights.names) != bool(report.weights.about)
    assert [curve.x_name for curve in report.learning.curves] == CURVES.get(name, [])
    assert report.learning.curves or report.learning.about
    sign = 1.0 if report.metrics[0].greater_is_better else -1.0
    assert sign * report.metrics[0].model.value == pytest.approx(model.score(toy.X, toy.y, qid=toy.qid))


def test_the_learning_curve_is_that_of_parts_of_the_training_queries(toy, linear):
    report = cc.report(linear, toy.X, toy.y, qid=toy.qid, learning_curve=(toy.X, toy.y, toy.qid))
    (curve,) = report.learning.curves
    assert curve.x == (4.0, 8.0, 15.0, 30.0, 60.0)
    assert curve.y[-1] == pytest.approx(report.metrics[0].model.value)  # all of them: the same model
    assert curve.y[0] != curve.y[-1]


class Wary(cc.LinearRanker):
    """Refuses fewer than 20 queries."""

    def fit(self, X, y, *, qid=None):
        if len(set(qid)) < 20:
            raise EmptyDataError("qid")
        return super().fit(X, y, qid=qid)


def test_parts_that_a_model_refuses_are_left_out_of_the_curve(toy):
    model = Wary("ndcg@5").fit(toy.X, toy.y, qid=toy.qid)
    report = cc.report(model, toy.X, toy.y, qid=toy.qid, learning_curve=(toy.X, toy.y, toy.qid))
    assert report.learning.curves[0].x == (30.0, 60.0)
    few = np.isin(toy.qid, range(5))
    with pytest.raises(EmptyDataError):  # all of them are refused
        cc.report(model, toy.X, toy.y, qid=toy.qid, learning_curve=(toy.X[few], toy.y[few], toy.qid[few]))


class BySizes(BaseEstimator):
    """Remembers the sizes of its queries."""

    def fit(self, X, y, group):
        assert len(X) == len(y) == sum(group)
        self.sizes_ = group
        return self

    def predict(self, X):
        return X[:, len(self.sizes_) % 2]


def test_models_of_other_libraries_are_fitted_again_too(toy):
    from sklearn.linear_model import Ridge

    mixed = np.random.default_rng(0).permutation(len(toy.y))
    X, y, qid = toy.X[mixed], toy.y[mixed], toy.qid[mixed]
    sizes = np.unique(qid, return_counts=True)[1]
    for model in (Ridge().fit(X, y), BySizes().fit(X, y, sizes)):
        report = cc.report(model, X, y, qid=qid, learning_curve=(X, y, qid))
        assert report.learning.curves[0].x == (4.0, 8.0, 15.0, 30.0, 60.0)
        assert report.learning.curves[0].y[-1] == pytest.approx(report.metrics[0].model.value)
    again = fit_to_rows(
        BySizes(), FitRows.from_columns(X, y, qid, None, None), cc.Queries.from_ids(qid).rows(range(60))
    )
    assert again.sizes_.tolist() == sizes.tolist()


def test_a_pipeline_is_fitted_again_too(toy, tmp_path):
    pipe = make_pipeline(StandardScaler(), cc.LinearRanker("ndcg@5", checkpoint=tmp_path))
    with sklearn.config_context(enable_metadata_routing=True):
        pipe.fit(toy.X, toy.y, qid=toy.qid)
    report = cc.report(pipe, toy.X, toy.y, qid=toy.qid, learning_curve=(toy.X, toy.y, toy.qid))
    assert report.learning.curves[0].x == (4.0, 8.0, 15.0, 30.0, 60.0)
    assert report.learning.curves[0].y[-1] == pytest.approx(report.metrics[0].model.value)


def test_a_transformed_feature_is_no_column_of_x(toy):
    pipe = make_pipeline(FunctionTransformer(lambda X: X[:, ::-1]), cc.LinearRanker("ndcg@5"))
    with sklearn.config_context(enable_metadata_routing=True):
        pipe.fit(toy.X, toy.y, qid=toy.qid)
    names = cc.report(pipe, toy.X, toy.y, qid=toy.qid).weights.names
    assert sorted(names) == [f"transformed column {number}" for number in range(toy.X.shape[1])]


def test_features_are_called_as_the_caller_does(toy):
    model = cc.LinearRanker("ndcg@5").fit(toy.X, toy.y, qid=toy.qid)
    names = [f"<f{number}>" for number in range(1, toy.X.shape[1] + 1)]
    plain, named = (
        cc.report(model, toy.X, toy.y, qid=toy.qid, features=features).weights.names
        for features in (None, names)
    )
    assert [names[int(name.split()[1])] for name in plain] == list(named)
    for wrong in (names[1:], "f", []):
        with pytest.raises(ShapeError, match="one name for each"):
            cc.report(model, toy.X, toy.y, qid=toy.qid, features=wrong)


@pytest.mark.parametrize("n_grades", [9, 10, 11])
def test_ten_grades_are_counted_and_more_are_mentioned(n_grades):
    page = cc.report(np.zeros(n_grades), None, np.arange(n_grades)).to_html()
    assert ("and higher ones" in page) == (n_grades > 10)


def test_a_history_that_is_handed_over_is_drawn(toy, rows):
    y, scores, _ = rows
    report = cc.report(scores, None, y, qid=toy.qid, validation_history={"dev": [0.1, math.nan, 0.3]})
    (curve,) = report.learning.curves
    assert (curve.name, curve.x, curve.y) == ("dev", (1.0, 3.0), (0.1, 0.3))


# --- nasty input


@pytest.mark.parametrize(
    ("y", "scores", "qid"),
    [
        ([1.0, 0.0, 2.0], [3.0, 2.0, 1.0], None),
        ([1.0], [0.0], None),
        ([0.0], [5.0], None),
        ([1, 0, 2, 0], [0, 0, 0, 0], [1, 1, 2, 2]),
        ([0, 0, 0, 0], [1, 2, 3, 4], [1, 1, 2, 2]),
        ([2, 2, 2, 2], [1, 2, 3, 4], [1, 1, 2, 2]),
        ([1, 0, 2, 0], [-np.inf] * 4, [1, 1, 2, 2]),
        ([1, 0, 2, 0], [1e308, -1e308, 1e-308, 0], [1, 1, 2, 2]),
        ([1, 0, 2, 0], [1e308, 1e308, 1e308, 0], [1, 1, 2, 2]),
        ([1, 0, 2, 0], [1e300, 1e300, 1.0, np.nextafter(1.0, 2.0)], [1, 1, 2, 2]),
        ([1.5, 0.25, 2, 4], [1, 2, 3, 4], ["b", "a", "b", "a"]),
    ],
    ids=["one query", "one row", "one irrelevant row", "all ties", "all empty", "all grades equal",
         "nothing ranked", "huge scores", "a huge tie", "huge ties", "broken grades, mixed ids"],
)  # fmt: skip
def test_nasty_little_data_has_a_whole_report(y, scores, qid):
    check_whole(cc.report(scores, None, y, qid=qid))
    check_whole(cc.report(scores, None, y, qid=qid, baseline=scores[::-1], metrics=["p@5", "pd"], n_boot=9))


def test_weights_that_are_all_0_are_drawn(toy, linear):
    from copy import copy

    flat = copy(linear)
    flat.coef_ = np.zeros_like(linear.coef_)
    report = cc.report(flat, toy.X, toy.y, qid=toy.qid)
    assert set(report.weights.values) == {0.0}
    check_whole(report)


def test_what_users_wrote_is_shown_and_not_run(toy):
    import pandas as pd

    frame = pd.DataFrame(toy.X, columns=[f"{HOSTILE}{i}" for i in range(toy.X.shape[1])])
    model = cc.LinearRanker("ndcg@5").fit(frame, toy.y, qid=toy.qid)
    ids = [f"{HOSTILE}{query}" for query in toy.qid]
    report = cc.report(
        model, frame, toy.y, qid=ids, docid=[f"{HOSTILE}{i}" for i in range(len(ids))], title=HOSTILE,
        name=HOSTILE, baseline=toy.X[:, 0], baseline_name=HOSTILE, fingerprint=HOSTILE, date=HOSTILE,
        validation_history={HOSTILE: [1.0, 2.0]},
    )  # fmt: skip
    text = check_whole(report)
    assert "<img" not in text
    assert "<script>window.hostile" not in text
    assert HOSTILE in "".join(Page(text).text)


def test_many_queries_give_a_page_of_bounded_size():
    rng = np.random.default_rng(0)
    n, size = 10_000, 12
    y, scores = rng.integers(0, 3, n * size), rng.normal(size=n * size)
    few = cc.report(
        scores[: 600 * size], None, y[: 600 * size], qid=np.repeat(np.arange(600), size), n_boot=99
    )
    started = time.perf_counter()
    report = cc.report(scores, None, y, qid=np.repeat(np.arange(n), size), n_boot=199)
    assert time.perf_counter() - started < 20.0  # it takes about 2
    assert len(report.gains.differences) == 400
    assert report.gains.n_queries == report.gains.wins + report.gains.ties + report.gains.losses
    assert len(report.to_html()) < len(few.to_html()) + 20_000


def test_what_is_drawn_of_many_is_spread_evenly():
    assert thin(5, 10).tolist() == [0, 1, 2, 3, 4]
    assert thin(1000, 3).tolist() == [0, 500, 999]
    assert thin(0, 3).tolist() == []


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"y": cc.Preferences([0], [1], n_rows=6)}, LabelError, "one grade per row"),
        ({"qid": [1, 1]}, LengthMismatchError, "qid"),
        ({"docid": ["a"]}, LengthMismatchError, "docid"),
        ({"baseline": [1.0]}, LengthMismatchError, "scores"),
        ({"metrics": []}, ParameterError, "at least one metric"),
        ({"confidence": 95}, ParameterError, "> 0 and < 1"),
        ({"n_boot": 0}, ParameterError, "n_boot"),
        ({"baseline": OnlyFirst()}, ParameterError, "a model needs features"),
        ({"learning_curve": ([[1.0]], [1.0], [1])}, ParameterError, "learning_curve"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_wrong_input_is_named(changes, error, words):
    arguments = {"y": [1, 0, 2, 0, 1, 0], "qid": [1, 1, 1, 2, 2, 2], **changes}
    with pytest.raises(error, match=words):
        cc.report(np.arange(6.0), None, **arguments)


# --- the page


def test_a_page_is_whole_and_asks_for_nothing(report, monkeypatch):
    monkeypatch.undo()
    text = check_whole(report)
    assert 4_000_000 < len(text) < 6_000_000  # plotly is nearly all of it
    assert text.count("<script") == 3
    numbers = text[text.index("<body") : text.index('id="figures"')]
    for row in report.metrics:
        assert f"{row.model.value:.4f}" in numbers
    assert f"<strong>{report.gains.wins:,}</strong> better" in numbers


@pytest.mark.parametrize("package", ["plotly", "jinja2"])
def test_a_page_without_its_libraries_is_refused(report, monkeypatch, package):
    plots = "concordant.evaluation.outcome_plots"
    monkeypatch.setattr(f"{plots}.find_spec", lambda name: None if name == package else 1)
    with pytest.raises(MissingExtraError, match=f"needs {package}, which is not installed"):
        report.to_html()
    assert report.to_dict()["title"] == report.title


def test_every_plot_has_its_numbers_in_a_table(report):
    text = report.to_html()
    page = Page(text)
    plots = [name for name in page.ids if name.startswith("plot-")]
    assert len(plots) == text.count("<summary>Numbers</summary>") >= 3


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (lambda text: text.replace("<body>", '<body><img src="https://example.org/a.png">'), "loads"),
        (lambda text: text.replace("</head>", '<link href="https://example.org/a.css"></head>'), "loads"),
        (lambda text: text.replace('href="#gains"', 'href="#nowhere"'), "no place"),
        (lambda text: text.replace('role="img" aria-label', "title"), "says nothing"),
        (lambda text: text.replace("default-src 'none'", "default-src *"), "may load anything"),
        (lambda text: text.replace("<main>", "<main><script>1</script>"), "scripts"),
        (lambda text: text.replace("<main>", "<main><p>nan</p>"), "shows nan"),
        (lambda text: text.replace("<h1>", "<h1></h1><h1>"), "title"),
        (lambda text: re.sub("<caption>.*?</caption>", "", text, count=1), "caption"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_broken_page_is_found_out(report, broken, fault):
    assert any(fault in text for text in faults(broken(report.to_html())))


def test_equal_reports_give_equal_pages(toy, rows, report):
    y, scores, other = rows
    again = cc.report(
        scores, None, y, qid=toy.qid, baseline=other, metrics=["ndcg@5", "ap", "pd"], n_boot=299
    )
    assert again.to_html() == report.to_html()
    assert again.to_dict() == report.to_dict()


def full_disk(*_):
    raise OSError("full")


def test_a_page_is_written_whole_or_not_at_all(report, tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(ParameterError, match="ends in"):
        report.write(tmp_path / "page.pdf")
    with pytest.raises(ParameterError, match="a folder that exists"):
        report.write(tmp_path / "none" / "page.html")
    with monkeypatch.context() as broken:
        broken.setattr("os.replace", full_disk)
        broken.setattr("pathlib.Path.replace", full_disk)
        with pytest.raises(OSError, match="full"):
            report.write(path)
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    report.write(path)
    assert path.read_text() == report.to_html()


def test_the_report_says_what_it_is(report):
    assert repr(report).startswith("Report('Report on the scores': ndcg@5 0.")
