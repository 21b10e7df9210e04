"""Each preset equals the real tool; each fixture measured on the real tools holds."""

import numpy as np
import pytest

import concordant.metrics as cm
from concordant.exceptions import ParameterError, UnknownNameError

# The peers' own deprecation warnings; ours stay errors.
pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore", r"error:::concordant\.", r"error:::numpy\."),
]

SEEDS = range(6)


def ragged(seed, *, ties=True, binary=False, n_queries=40):
    """Ragged queries with ties, empty queries and one-item queries; scores exact in float32."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, n_queries)
    sizes[:4] = 1
    qid = np.repeat(np.arange(n_queries), sizes)
    y = rng.choice(5, len(qid), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    y[np.isin(qid, [1, 5, 6, 7])] = 0
    y = (y > 0).astype(int) if binary else y
    s = rng.integers(0, 12, len(qid)) / 8 if ties else rng.permutation(len(qid)) / 8
    return y, s.astype(float), qid, sizes


def lightgbm_value(name, y, s, qid, sizes):
    lgb = pytest.importorskip("lightgbm")
    del qid
    metric, k = name.split("@")
    data = lgb.Dataset(np.zeros((len(y), 1)), y, group=sizes, init_score=s)
    history = {}
    parameters = {"objective": "lambdarank", "metric": {"ap": "map"}.get(metric, metric), "eval_at": int(k)}
    callbacks = [lgb.record_evaluation(history)]
    quiet = {"verbose": -1, "num_threads": 1}
    lgb.train(parameters | quiet, data, 1, valid_sets=[data], valid_names=["v"], callbacks=callbacks)
    return next(iter(history["v"].values()))[0]


def xgboost_value(name, y, s, qid, sizes):
    xgb = pytest.importorskip("xgboost")
    del qid
    metric, k = name.removesuffix("[empty]").split("@")
    k += "-" * name.endswith("[empty]")
    data = xgb.DMatrix(np.zeros((len(y), 1)), label=y, group=sizes, base_margin=s)
    metric = {"ap": "map", "p": "pre"}.get(metric, metric)
    parameters = {"objective": "rank:pairwise", "eval_metric": f"{metric}@{k}", "eta": 0.0, "nthread": 1}
    history = {}
    xgb.train(parameters, data, 1, evals=[(data, "v")], evals_result=history, verbose_eval=False)
    return next(iter(history["v"].values()))[0]


def catboost_value(name, y, s, qid, sizes):
    utils = pytest.importorskip("catboost.utils")
    del sizes
    metric, k = name.split("[")[0].split("@")
    names = {"ndcg": "NDCG", "dcg": "DCG", "ap": "MAP", "p": "PrecisionAt", "rr": "MRR", "err": "ERR"}
    kind = ";type=Exp" if "exp2" in name else ""
    return utils.eval_metric(y, s, f"{names[metric]}:top={k}{kind}", group_id=qid)[0]


def sklearn_value(name, y, s, qid, sizes):
    from sklearn.metrics import dcg_score, ndcg_score

    del sizes
    metric, _, k = name.partition("@")
    score = {"ndcg": ndcg_score, "dcg": dcg_score}[metric]
    queries = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    return np.mean([score([y[rows]], [s[rows]], k=int(k) if k else None) for rows in queries])


def as_trec(y, s, qid):
    """Queries and documents as text; ids have equal length, so that text order is number order."""
    qrels, run = {}, {}
    for row, (grade, score, q) in enumerate(zip(y, s, qid, strict=True)):
        qrels.setdefault(f"q{q:03d}", {})[f"d{row:05d}"] = int(grade)
        run.setdefault(f"q{q:03d}", {})[f"d{row:05d}"] = float(score)
    return qrels, run


def trec_value(name, y, s, qid, sizes):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    del sizes
    metric, _, k = name.partition("@")
    names = (
        {"ndcg": "ndcg_cut", "ap": "map_cut", "p": "P"}
        if k
        else {"ndcg": "ndcg", "ap": "map", "rr": "recip_rank"}
    )
    measure = names[metric] + (f".{k}" if k else "")
    qrels, run = as_trec(y, s, qid)
    rows = pytrec_eval.RelevanceEvaluator(qrels, {measure}).evaluate(run)
    return np.mean([row[measure.replace(".", "_")] for row in rows.values()])


def ranx_value(name, y, s, qid, sizes):
    ranx = pytest.importorskip("ranx")
    del sizes
    qrels, run = as_trec(y, s, qid)
    metric, _, k = name.split("[")[0].partition("@")
    names = {"ap": "map", "p": "precision", "rr": "mrr", "ndcg": "ndcg_burges" if "exp2" in name else "ndcg"}
    measure = names[metric] + (f"@{k}" if k else "")
    return ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), measure)


PEERS = [
    # preset, metric, value by the real tool, data
    ("lightgbm", "ndcg@3", lightgbm_value, {}),
    ("lightgbm", "ndcg@10", lightgbm_value, {}),
    ("lightgbm", "ap@3", lightgbm_value, {}),
    ("lightgbm", "ap@10", lightgbm_value, {}),
    ("xgboost", "ndcg@3", xgboost_value, {}),
    ("xgboost", "ndcg@10", xgboost_value, {}),
    ("xgboost,empty=0", "ndcg@3", xgboost_value, {}),  # its "ndcg@3-"
    ("xgboost", "ap@3", xgboost_value, {"binary": True}),
    ("xgboost", "p@3", xgboost_value, {"binary": True}),
    ("catboost", "ndcg@3", catboost_value, {}),
    ("catboost", "ndcg@10", catboost_value, {}),
    ("catboost,gain=exp2", "ndcg@3", catboost_value, {}),
    ("catboost", "dcg@3", catboost_value, {}),
    ("catboost", "ap@3", catboost_value, {}),
    ("catboost", "p@3", catboost_value, {}),
    ("catboost", "rr@5", catboost_value, {}),
    ("catboost", "err@5", catboost_value, {"binary": True}),
    ("sklearn", "ndcg@3", sklearn_value, {}),
    ("sklearn", "ndcg", sklearn_value, {}),
    ("sklearn", "dcg@10", sklearn_value, {}),
    ("trec_eval", "ndcg@3", trec_value, {}),
    ("trec_eval", "ndcg@10", trec_value, {}),
    ("trec_eval", "ndcg", trec_value, {}),
    ("trec_eval", "ap", trec_value, {}),
    ("trec_eval", "ap@3", trec_value, {}),
    ("trec_eval", "p@5", trec_value, {}),
    ("trec_eval", "rr", trec_value, {}),
    ("ranx", "ndcg@3", ranx_value, {"ties": False}),  # its order under ties is not defined
    ("ranx", "ndcg", ranx_value, {"ties": False}),
    ("ranx,gain=exp2", "ndcg@3", ranx_value, {"ties": False}),
    ("ranx", "ap", ranx_value, {"ties": False}),
    ("ranx", "ap@3", ranx_value, {"ties": False}),
    ("ranx", "p@5", ranx_value, {"ties": False}),
    ("ranx", "rr", ranx_value, {"ties": False}),
]


def check_preset(preset, name, peer, data):
    """The preset equals the real tool to 1e-9."""
    y, s, qid, sizes = data
    if preset == "sklearn":  # it refuses lists of one item
        keep = np.isin(qid, np.flatnonzero(sizes > 1))
        y, s, qid, sizes = y[keep], s[keep], qid[keep], sizes[sizes > 1]
    asked = name + "[exp2]" * ("gain" in preset) + "[empty]" * ("empty" in preset)
    assert float(cm.metric(name, convention=preset)(y, s, qid=qid)) == pytest.approx(
        peer(asked, y, s, qid, sizes), rel=1e-9, abs=1e-9
    ), (preset, name)


@pytest.mark.parametrize(
    ("preset", "name", "peer", "kind"),
    [
        pytest.param(*row, marks=pytest.mark.slow) if row[2] is ranx_value else row for row in PEERS
    ],  # it compiles
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_preset_equals_the_tool(preset, name, peer, kind):
    for seed in SEEDS:
        check_preset(preset, name, peer, ragged(seed, **kind))


@pytest.mark.parametrize("wrong", ["concordant", "lightgbm", "rax"])
def test_the_check_rejects_a_wrong_preset(wrong):
    with pytest.raises(AssertionError):
        check_preset(wrong, "ndcg@3", trec_value, ragged(0))


def test_catboost_err_reads_probabilities():
    y, s, qid, sizes = ragged(3)
    check_preset("catboost", "err@5", catboost_value, (y / 4, s, qid, sizes))


def test_unweighted_means_agree_with_weights_of_one_and_weights_select_queries():
    y, s, qid, sizes = ragged(1)
    metric = cm.metric("ndcg@5")
    assert float(metric(y, s, qid=qid, weights=np.full(len(sizes), 3.0))) == pytest.approx(
        float(metric(y, s, qid=qid))
    )
    one_hot = np.zeros(len(sizes))
    one_hot[10] = 2.0
    assert float(metric(y, s, qid=qid, weights=one_hot)) == pytest.approx(metric.per_query(y, s, qid=qid)[10])


def test_weighted_mean_equals_lightgbm_without_empty_queries():
    """With empty queries LightGBM adds an unweighted 1 but divides by the weights: not copied."""
    lgb = pytest.importorskip("lightgbm")
    y, s, qid, sizes = ragged(2)
    y[np.r_[0, np.cumsum(sizes)[:-1]]] = 1  # no empty query
    weights = np.random.default_rng(0).uniform(0.5, 2, len(sizes))
    data = lgb.Dataset(np.zeros((len(y), 1)), y, group=sizes, init_score=s, weight=np.repeat(weights, sizes))
    history = {}
    parameters = {"objective": "lambdarank", "metric": "ndcg", "eval_at": 5, "verbose": -1, "num_threads": 1}
    lgb.train(
        parameters, data, 1, valid_sets=[data], valid_names=["v"], callbacks=[lgb.record_evaluation(history)]
    )
    ours = cm.metric("ndcg@5", convention="lightgbm")(y, s, qid=qid, weights=weights.astype(np.float32))
    assert float(ours) == pytest.approx(history["v"]["ndcg@5"][0], rel=1e-6)  # its weights are float32


LISTS = {
    "A": ([3, 0, 1, 2, 0], [0.1, 0.9, 0.5, 0.5, 0.2]),
    "A'": ([0, 2, 1, 0, 3], [0.2, 0.5, 0.5, 0.9, 0.1]),
    "B": ([0, 0, 0], [0.3, 0.2, 0.1]),
    "C": ([2], [0.5]),
    "D": ([0, 1], [0.9, 0.4]),
    "E": ([0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5]),
}
FIXTURES = [
    ("lightgbm", "ndcg@3", [0.2269, 0.2547, 1, 1, 0.6309, 0.3066]),
    ("xgboost", "ndcg@3", [0.2269, 0.2547, 1, 1, 0.6309, 0.3066]),
    ("rax", "ndcg@3", [0.2269, 0.2547, 0, 1, 0.6309, 0.3066]),
    ("catboost", "ndcg@3", [0.3425, 0.3425, 1, 1, 0.6309, 0.3066]),
    ("catboost,gain=exp2", "ndcg@3", [0.2269, 0.2269, 1, 1, 0.6309, 0.3066]),
    ("ranx", "ndcg@3", [0.3425, 0.3700, 0, 1, 0.6309, 0.3066]),
    ("trec_eval", "ndcg@3", [0.3700, 0.3425, 0, 1, 0.6309, 1.0]),
    ("sklearn", "ndcg@3", [0.3562, 0.3562, 0, None, 0.6309, 0.6533]),
    ("sklearn,gain=exp2", "ndcg@3", [0.2408, 0.2408, 0, None, 0.6309, 0.6533]),
    ("lightgbm", "ap@3", [0.3889, 0.3889, 1, 1, 0.5, 0.1667]),
    ("xgboost", "ap@3", [0.3889, 0.3889, 1, 1, 0.5, 0.1667]),
    ("catboost", "ap@3", [0.3889, 0.3889, 0, 1, 0.5, 0.1667]),
    ("trec_eval", "ap@3", [0.3889, 0.3889, 0, 1, 0.5, 1.0]),
    ("ranx", "ap@3", [0.3889, 0.3889, 0, 1, 0.5, 0.1667]),
    ("rax", "ap@3", [0.3889, 0.3889, 0, 1, 0.5, 0.1667]),
]


@pytest.mark.parametrize(("preset", "name", "values"), FIXTURES)
def test_fixture(preset, name, values):
    for (y, s), value in zip(LISTS.values(), values, strict=True):
        if value is not None:
            assert float(cm.metric(name, convention=preset)(y, s)) == pytest.approx(value, abs=5e-5), (y, s)


@pytest.mark.parametrize(
    ("preset", "value"),
    [
        ("lightgbm", 0.5),
        ("xgboost", 0.5),
        ("catboost", 0.5),
        ("trec_eval", 1 / 3),
        ("ranx", 1 / 3),
        ("rax", 1 / 3),
    ],
)
def test_ap_at_2_divides_by_what_the_tool_divides_by(preset, value):
    assert float(cm.metric("ap@2", convention=preset)([1, 0, 1, 1], [4, 3, 2, 1])) == pytest.approx(value)


def test_mslr_script():
    """Discounts 1, 1, 1/log2(place); a list shorter than k scores 0; relevance starts at grade 2."""
    y, s = [0, 2, 1, 3], [4.0, 3.0, 2.0, 1.0]
    dcg = 3 + 1 / np.log2(3) + 7 / 2
    best = 7 + 3 + 1 / np.log2(3)
    assert float(cm.metric("ndcg@4", convention="mslr")(y, s)) == pytest.approx(dcg / best)
    assert float(cm.metric("ndcg@5", convention="mslr")(y, s)) == 0.0
    assert float(cm.metric("ap", convention="mslr")(y, s)) == pytest.approx((1 / 2 + 2 / 4) / 2)


def test_ranklib_map_ignores_the_cutoff():
    y, s = [0, 1, 0, 1], [4.0, 3.0, 2.0, 1.0]
    assert float(cm.metric("ap@1", convention="ranklib")(y, s)) == pytest.approx((1 / 2 + 2 / 4) / 2)


def test_empty_queries_are_skipped_and_counted_by_default():
    value = cm.metric("ndcg@10")([0, 0, 1, 0], [1, 2, 1, 2], qid=[1, 1, 2, 2])
    assert (value.n_queries, value.n_skipped) == (2, 1)
    assert float(value) == pytest.approx(1 / np.log2(3))
    assert np.isnan(float(cm.metric("ndcg@10")([0, 0], [1, 2])))


@pytest.mark.parametrize(
    ("rule", "value"), [("skip", 1.0), ("0", 0.5), ("1", 1.0), ("0.5", 0.75), ("nan", np.nan)]
)
def test_empty_rules(rule, value):
    got = cm.metric("ndcg", convention=f"empty={rule}")([0, 1], [1, 1], qid=[1, 2])
    assert float(got) == pytest.approx(value, nan_ok=True)


def test_a_number_for_empty_queries_replaces_only_what_is_undefined():
    for name in ("dcg@5", "p@5", "rr", "err", "eru"):
        assert float(cm.metric(name, convention="lightgbm")([0, 0], [1, 2])) == 0.0, name


@pytest.mark.parametrize(
    "changes",
    [
        {"gain": "cube"},
        {"ties": "any"},
        {"empty": "one"},
        {"empty": float("inf")},
        {"ap_denominator": "k"},
        {"max_grade": "x"},
    ],
)
def test_a_field_refuses_what_its_table_does_not_list(changes):
    with pytest.raises(ParameterError):
        cm.Convention(**changes)


def test_unknown_names_list_the_table():
    with pytest.raises(UnknownNameError, match="Did you mean 'lightgbm'"):
        cm.convention("lightgmb")
    with pytest.raises(UnknownNameError, match="ap_denominator"):
        cm.convention("tie=worst")


def test_a_gain_may_be_a_function():
    y, s = [3, 1, 0], [1.0, 2.0, 3.0]
    squares = cm.Convention(gain=lambda grades: grades**2)
    got = float(cm.metric("dcg", convention=squares)(y, s))
    assert got == pytest.approx(1 / np.log2(3) + 9 / 2)


@pytest.mark.parametrize(
    "name", ["ndcg[ties=best,ties=worst]", "ndcg[lightgbm,empty=0,empty=1]", "eru(v=1,v=2)"]
)
def test_a_field_given_twice_is_refused(name):
    with pytest.raises(ParameterError, match=r"each field at most once|given twice"):
        cm.metric(name)


# ---------------------------------------------------------------- the fields that a metric reads

OTHER_VALUES = {
    "gain": ["linear"], "discount": ["mslr"], "ties": ["worst"], "empty": [0.5], "empty_ap": [0.25],
    "ap_denominator": ["min", "found", "uncut"], "precision_denominator": ["min"], "relevant_from": [2.0],
    "max_grade": [5], "short_list": ["zero"],
}  # fmt: skip
FIELD_METRICS = ["dcg@3", "ndcg@3", "eru(v=0,w=2)@3", "err@3", "ap@3", "p@3", "rr@3", "auc", "pd", "wpd"]


def fields_that_matter(name):
    """The fields of the convention that change the metric of some query."""
    y, s, qid, _ = ragged(0)
    before = cm.metric(name).per_query(y, s, qid=qid)
    changed = set()
    for field, values in OTHER_VALUES.items():
        for value in values:
            other = cm.metric(name, convention=cm.Convention().replace(**{field: value}))
            if not np.array_equal(before, other.per_query(y, s, qid=qid), equal_nan=True):
                changed.add(field)
    return changed


@pytest.mark.parametrize("name", FIELD_METRICS)
def test_a_metric_states_the_fields_that_change_it(name):
    assert fields_that_matter(name) == set(cm.metric(name).convention_fields)


def test_every_metric_of_grades_is_asked_for_its_fields():
    graded = {name for name, metric in cm.METRICS.items() if metric.label_spaces} - {"zero_one"}
    assert {cm.metric(name).name for name in FIELD_METRICS} == graded


def test_a_field_that_changes_nothing_is_noticed():
    assert fields_that_matter("dcg@3") != {*cm.metric("dcg@3").convention_fields, "short_list"}


def exceeds_1(name):
    """True if the metric is above 1 on some query."""
    y, s, qid, _ = ragged(0)
    return bool(np.nanmax(cm.metric(name).per_query(y, s, qid=qid)) > 1.0)


@pytest.mark.parametrize("name", FIELD_METRICS)
def test_a_metric_states_whether_it_is_bounded(name):
    assert cm.metric(name).bounded != exceeds_1(name)
