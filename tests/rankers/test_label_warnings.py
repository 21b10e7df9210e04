"""Labels under which nothing, or everything, is relevant: fit, score, evaluate and the command say why."""

import re
import warnings

import numpy as np
import pytest

import concordant as cc
from concordant.exceptions import LabelError, LabelWarning
from tests.helpers.cli_calls import call
from tests.rankers.test_missing_qid import RANKERS

DATA = cc.synthetic.grades(n_queries=30, n_items=6, seed=0)
X, qid = DATA.X, DATA.qid
FRACTIONS = np.round(0.8 * DATA.y / DATA.y.max(), 2)
STARS = DATA.y + 1.0
pytestmark = [
    pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Nothing was learned"),
    pytest.mark.filterwarnings("ignore:No split was found"),
    pytest.mark.filterwarnings("ignore:The metric is undefined on all held-out queries"),
]


def test_the_metric_that_is_named_tells_the_labels_apart():
    for name in ("ap@5", "rr", "p@3", "auc", "ap[lightgbm]"):
        for y in (FRACTIONS / 2.0, STARS, np.full(len(STARS), 0.3)):
            text = cc.metric(name).label_problem(y)
            better = cc.metric(re.search(r"Use (\S+), or a metric of grades", text)[1])
            assert better.name == cc.metric(name).name
            assert (y >= better.convention.relevant_from).any()
            assert not better.label_problem(y)


@pytest.mark.parametrize("name", ["ndcg@5", "dcg", "err", "pd", "eru"])
def test_metrics_of_grades_take_any_labels(name):
    assert not cc.metric(name).label_problem(FRACTIONS)


@pytest.mark.parametrize("y", [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
def test_labels_that_are_no_mistake(y):
    assert not cc.metric("ap").label_problem(np.array(y))


@pytest.mark.parametrize("name", [name for name in RANKERS if name != "pairs"])
def test_fit_score_and_evaluate(name):
    model = RANKERS[name]().set_params(metric="ap")
    with pytest.warns(
        LabelWarning, match=r"no label reaches relevant_from=1.*the largest label is 0\.8"
    ) as caught:
        model.fit(X, FRACTIONS, qid=qid)
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(LabelWarning, match="no label reaches"):
        model.score(X, FRACTIONS, qid=qid)
    with pytest.warns(LabelWarning, match="every label reaches relevant_from=1.*the smallest label is 1"):
        cc.evaluate(model, X, STARS, qid=qid, metrics=["ndcg", "ap"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", LabelWarning)
        model.set_params(metric="ap[relevant_from=0.4]").fit(X, FRACTIONS, qid=qid)
        cc.evaluate(model, X, DATA.y, qid=qid, metrics=["ap"])


def test_held_out_labels():
    model = cc.BoostedRanker("ap", n_estimators=2, n_jobs=1)
    with pytest.raises(LabelError, match="no label reaches relevant_from=1"):
        model.fit(X, DATA.y, qid=qid, eval_set=(X, FRACTIONS, qid))


def test_the_command_says_why(tmp_path):
    cc.write_letor(tmp_path / "fractions.txt", X, FRACTIONS, qid)
    (tmp_path / "scores.txt").write_text("\n".join(map(str, X[:, 0])) + "\n")
    files = "--letor", tmp_path / "fractions.txt", "--scores", tmp_path / "scores.txt"
    result = call("evaluate", *files, "-m", "ap")
    assert "no label reaches relevant_from=1" in " ".join(result.output.split())
