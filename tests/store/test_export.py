"""Exported files: read by others, they score as the model does; what does not is refused, and not written."""

import dataclasses
import gzip
import json
import math
import re
import warnings
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import concordant as cc
from concordant.comparisons.ratings import BradleyTerry, Elo, Glicko
from concordant.exceptions import (
    ExportError,
    MissingExtraError,
    NonFiniteError,
    ParameterError,
    ShapeError,
    UnknownNameError,
)
from concordant.store.export import FORMATS, Exported, export
from concordant.store.export import export_file as files
from concordant.store.export.export_sources import read_model
from concordant.store.export.golden import Draft, check_draft

pytestmark = pytest.mark.once

DATA = cc.synthetic.grades(n_queries=40, n_items=(5, 12), n_features=6, seed=1)
GAMES = cc.synthetic.comparisons(n=100, norm="l2", tie_share=0.4, seed=1)
NAMES = [f"feature {number}" for number in range(6)]
TORCH = find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")
TREES = {"n_estimators": 8, "min_samples_leaf": 3, "n_jobs": 1}
NET = {"hidden": (8, 4), "max_epochs": 1, "early_stopping": None, "device": "cpu"}
GRID = np.round(DATA.X, 1)  # values that many rows have


def fitted(model, X=DATA.X):
    with warnings.catch_warnings(action="ignore", category=cc.GuaranteeWarning):
        return model.fit(X, DATA.y, qid=DATA.qid)


def piped(*steps, X=DATA.X):
    pipe = make_pipeline(*steps)
    return pipe.fit(X, DATA.y, **{f"{pipe.steps[-1][0]}__qid": DATA.qid})


MODELS = {
    "linear": lambda: fitted(cc.LinearRanker("ndcg@5")),
    "linear cv": lambda: fitted(cc.LinearRankerCV("ndcg", alphas=(1.0, 0.1), cv=2)),
    "max margin": lambda: fitted(cc.MaxMarginRanker("ap", tol=0.01)),
    "standard": lambda: piped(StandardScaler(), cc.LinearRanker("ndcg"), X=100.0 * DATA.X + 300.0),
    "all scalers": lambda: piped(
        MaxAbsScaler(), RobustScaler(), "passthrough", MinMaxScaler(), cc.LinearRanker("dcg")
    ),
    "comparer": lambda: cc.Comparer().fit(GAMES.pairs, GAMES.y),
    "comparer sgd": lambda: cc.Comparer(loss="logistic", solver="sgd", calibration=0).fit(
        GAMES.pairs, GAMES.y
    ),
    "rbf": lambda: cc.Comparer("rbf", calibration=0).fit(GAMES.pairs, GAMES.y),
    "pairs": lambda: fitted(cc.PairRanker("pd")),
    "elo": lambda: Elo().fit(["a", "b"], ["b", "c"], [-1, 0]),
    "glicko": lambda: Glicko().fit([1, 2], [2, 3], [-1, 0]),
    "lightgbm": lambda: fitted(cc.BoostedRanker(**TREES)),
    "xgboost": lambda: fitted(cc.BoostedRanker(booster="xgboost", **TREES)),
    "catboost": lambda: fitted(cc.BoostedRanker(booster="catboost", **TREES)),
    "network": lambda: fitted(cc.NeuralRanker(**NET)),
    "quantiles": lambda: fitted(cc.NeuralRanker(transforms="quantile", **NET), GRID),
    "log quantiles": lambda: fitted(cc.NeuralRanker(transforms=("log1p", "quantile"), **NET), GRID),
    "scaled quantiles": lambda: fitted(cc.NeuralRanker(transforms=("standard", "quantile"), **NET), GRID),
    "context": lambda: fitted(cc.NeuralRanker(context=True, **NET)),
    "no transforms": lambda: fitted(cc.NeuralRanker(transforms=None, **NET | {"hidden": ()})),
    "scaled network": lambda: piped(StandardScaler(), cc.NeuralRanker(**NET), X=DATA.X + 5.0),
}
NETWORKS = (
    "network",
    "log quantiles",
    "scaled quantiles",
    "quantiles",
    "context",
    "no transforms",
    "scaled network",
)
LINEAR = ("linear", "linear cv", "max margin", "standard", "all scalers", "comparer", "comparer sgd")
SEARCH = ("elasticsearch", "opensearch")
WORKS = {
    **dict.fromkeys(LINEAR, ("onnx", "json", *SEARCH)),
    **dict.fromkeys(NETWORKS, ("onnx", "json")),
    **dict.fromkeys(("elo", "glicko"), ("json",)),
    "lightgbm": ("lightgbm", *SEARCH),
    "xgboost": ("xgboost", *SEARCH),
    "catboost": ("catboost",),
}


@cache
def model_of(name):
    if name in NETWORKS and not TORCH:
        pytest.skip("torch is not installed")
    return MODELS[name]()


def names_for(model, form):
    n_features = getattr(model, "n_features_in_", 0)
    return [f"feature {number}" for number in range(n_features)] if form in SEARCH and n_features else None


def exported(kind, path, form=None, **options):
    model = model_of(kind)
    if "quantiles" in kind and form == "onnx":
        options = {"dtype": "float64"} | options
    return export(model, path, form, features=names_for(model, form), **options)


def own_scores(model, X):
    return model.rank_score(X) if isinstance(model, cc.Comparer) else model.predict(X)


def some_rows(model):
    return DATA.X if model.n_features_in_ == 6 else GAMES.pairs.reshape(-1, 2)


def within(scores, expected, tolerance=1e-6):
    """Whether scores are the same, to a share of how large they are."""
    return np.abs(scores - expected).max() <= tolerance * (np.abs(expected).max() + 1e-300)


# --- every model in every format


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_each_works_or_is_refused_by_name(name, form, tmp_path):
    path = tmp_path / "model.out"
    if form in WORKS.get(name, ()):
        done = exported(name, path, form)
        assert done == Exported(path, form, done.n_golden, done.difference, done.notes)
        assert done.n_golden >= 3
        assert done.difference < 1e-6
        assert path.stat().st_size > 0
    else:
        with pytest.raises(ExportError, match=r"Hint: .") as error:
            exported(name, path, form)
        assert error.value.path == str(path)
        assert list(tmp_path.iterdir()) == []


def test_formats_by_suffix(tmp_path):
    for name, suffix in [("linear", ".onnx"), ("linear", ".json"), ("lightgbm", ".txt"), ("xgboost", ".ubj")]:
        done = exported(name, tmp_path / f"a{suffix}")
        assert FORMATS[done.format].suffix == suffix
    assert exported("catboost", tmp_path / "b.CBM").format == "catboost"
    with pytest.raises(ExportError, match=r"suffix '.bin'(.|\n)*one of onnx, json"):
        exported("linear", tmp_path / "a.bin")
    with pytest.raises(UnknownNameError, match="Did you mean 'elasticsearch'"):
        exported("linear", tmp_path / "a.json", "elasticsearhc")


def test_compressed_by_suffix(tmp_path):
    exported("linear", tmp_path / "a.json")
    assert exported("linear", tmp_path / "a.json.gz").format == "json"
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.json").read_bytes()
    assert packed[3:8] == bytes(5)  # neither a name nor a time: equal models give equal files


def test_equal_models_give_equal_files(tmp_path):
    for name, form in [("linear", "onnx"), ("standard", "elasticsearch"), ("catboost", "catboost")]:
        exported(name, tmp_path / "a", form)
        exported(name, tmp_path / "b", form)
        assert (tmp_path / "a").read_bytes().replace(b'"a"', b"") == (tmp_path / "b").read_bytes().replace(
            b'"b"', b""
        )


# --- read by others


def run_onnx(path, rows):
    import onnxruntime as ort

    session = ort.InferenceSession(str(path))
    (features,), (output,) = session.get_inputs(), session.get_outputs()
    assert (features.name, output.name, features.shape, output.shape) == (
        "features",
        "scores",
        ["rows", rows.shape[1]],
        ["rows"],
    )
    return session.run(["scores"], {"features": rows})[0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*LINEAR, *NETWORKS])
def test_onnx_runtime_scores_as_the_model(name, dtype, tmp_path):
    model, path = model_of(name), tmp_path / "model.onnx"
    golden = None
    if "quantiles" in name and dtype == "float32":  # of values that float32 holds
        golden = np.round(4 * DATA.X) / 4
    exported(name, path, "onnx", dtype=dtype, golden=golden)
    rows = some_rows(model).astype(dtype) if golden is None else golden.astype(dtype)
    rows = 100.0 * rows + 300.0 if name == "standard" else rows
    scores = run_onnx(path, rows)
    assert scores.dtype == dtype
    assert within(scores, own_scores(model, rows.astype(float)), 1e-6)
    if name != "context":
        assert within(run_onnx(path, rows[:1]), scores[:1])
        assert run_onnx(path, rows[:0]).shape == (0,)


def test_what_stands_in_an_onnx_file(tmp_path):
    import onnx

    model = fitted(cc.LinearRanker("ndcg@5"), pd.DataFrame(DATA.X, columns=["ä", 'b"', "c", "d", "e", "f"]))
    export(model, tmp_path / "a.onnx")
    stored_model = onnx.load(tmp_path / "a.onnx")
    onnx.checker.check_model(stored_model, full_check=True)
    properties = {entry.key: entry.value for entry in stored_model.metadata_props}
    assert json.loads(properties.pop("feature_names")) == ["ä", 'b"', "c", "d", "e", "f"]
    assert properties == {"model": "LinearRanker", "metric": "ndcg@5"}
    assert [opset.version for opset in stored_model.opset_import] == [13]


@needs_torch
def test_a_network_that_reads_the_context_scores_query_by_query(tmp_path):
    model, path = model_of("context"), tmp_path / "a.onnx"
    done = exported("context", path, golden=DATA, dtype="float64")
    assert done.n_golden == len(DATA.y)
    assert "one query" in done.notes[0]
    expected = model.predict(DATA.X, qid=DATA.qid)
    for query in np.unique(DATA.qid)[:5]:
        rows = DATA.X[DATA.qid == query]
        assert within(run_onnx(path, rows), expected[DATA.qid == query])
    together = run_onnx(path, DATA.X)
    assert not within(together, expected, 1e-3)  # the check can fail


def test_small_logarithms_keep_their_digits(tmp_path):
    """log(1 + x) would give 0 for them."""
    if not TORCH:
        pytest.skip("torch is not installed")
    X = 1e-18 * DATA.X
    model = fitted(cc.NeuralRanker(**NET), X)
    assert export(model, tmp_path / "a.onnx", dtype="float64").difference < 1e-6
    assert within(run_onnx(tmp_path / "a.onnx", X), model.predict(X))


def test_the_boosters_read_their_own_files(tmp_path):
    import catboost
    import lightgbm
    import xgboost

    exported("lightgbm", tmp_path / "a.txt")
    scores = lightgbm.Booster(model_file=tmp_path / "a.txt").predict(DATA.X, raw_score=True)
    assert np.array_equal(scores, model_of("lightgbm").predict(DATA.X))
    for path in (tmp_path / "a.ubj", tmp_path / "a.json"):
        exported("xgboost", path, "xgboost")
        booster = xgboost.Booster()
        booster.load_model(path)
        scores = booster.predict(xgboost.DMatrix(DATA.X), output_margin=True)
        assert np.array_equal(scores, model_of("xgboost").predict(DATA.X))
    assert json.loads(path.read_text())["learner"]
    exported("catboost", tmp_path / "a.cbm")
    scores = catboost.CatBoost().load_model(str(tmp_path / "a.cbm")).predict(DATA.X)
    assert np.array_equal(scores, model_of("catboost").predict(DATA.X))


def test_xgboost_reads_by_the_name_of_the_file(tmp_path, monkeypatch):
    """Bytes of one kind under the name of the other are refused, though XGBoost reads either as bytes."""
    from concordant.store.export import export_file

    monkeypatch.setattr(export_file, "serialize_trees", lambda model, *_: bytes(model.save_raw("json")))
    exported("xgboost", tmp_path / "a.json", "xgboost")
    with pytest.raises(ExportError, match="cannot read the file"):
        exported("xgboost", tmp_path / "a.ubj")
    assert not (tmp_path / "a.ubj").exists()


def request_of(path):
    body = json.loads(path.read_text(encoding="utf-8"))
    assert list(body) == ["model"]
    assert list(body["model"]) == ["name", "model"]
    assert list(body["model"]["model"]) == ["type", "definition"]
    return (
        body["model"]["name"],
        body["model"]["model"]["type"],
        json.loads(body["model"]["model"]["definition"]),
    )


@pytest.mark.parametrize("name", LINEAR)
def test_a_search_engine_ranks_as_the_model(name, tmp_path):
    model = model_of(name)
    exported(name, tmp_path / "shop.v2.json", "opensearch")
    called, kind, weights = request_of(tmp_path / "shop.v2.json")
    assert (called, kind, list(weights)) == ("shop", "model/linear", names_for(model, "opensearch"))
    rows = some_rows(model).astype(np.float32)
    rows = 100 * rows + 300 if name == "standard" else rows
    scores = [sum(np.float32(w) * x for w, x in zip(weights.values(), row, strict=True)) for row in rows]
    expected = own_scores(model, rows.astype(float))
    order = np.argsort(expected)
    steps = np.diff(expected[order])
    assert (np.diff(np.asarray(scores)[order]) > 0)[steps > 1e-4 * np.ptp(expected)].all()
    assert name == "comparer" or within(np.ptp(scores), np.ptp(expected), 1e-4)


def leaf(node, document):
    """One document through one tree, as the plugins' sources say it."""
    while "leaf" not in node:
        value = np.float32(document[node["split"]])
        goes_left = np.float32(node["split_condition"]) > value
        child = node["missing"] if np.isnan(value) else node["yes"] if goes_left else node["no"]
        (node,) = [branch for branch in node["children"] if branch["nodeid"] == child]
    return np.float32(node["leaf"])


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_trees_in_a_search_engine(name, tmp_path):
    done = exported(name, tmp_path / "a.json", "elasticsearch", name="shop")
    called, kind, trees = request_of(tmp_path / "a.json")
    assert (called, kind, len(trees)) == ("shop", "model/xgboost+json", 8)
    assert "lacks a feature" in done.notes[0]
    rows = DATA.X[:60].astype(np.float32).astype(float)
    scores = [sum(leaf(tree, dict(zip(NAMES, row, strict=True))) for tree in trees) for row in rows]
    assert within(np.array(scores), model_of(name).predict(rows), 1e-6)
    keys = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
    assert all(set(tree) in (keys, {"nodeid", "leaf"}) for tree in trees)


def naive_shares(x, marks, same):
    below = sum(mark < x - same * abs(x) for mark in marks)
    until = sum(mark <= x + same * abs(x) for mark in marks)
    if below == 0:
        return 0.0
    if until == len(marks):
        return 1.0
    if until > below:
        return (below + until - 1) / 2 / (len(marks) - 1)
    i = below - 1
    return (i + (x - marks[i]) / (marks[i + 1] - marks[i])) / (len(marks) - 1)


def naive_network(network, rows):
    """What the formulas of the file say, number by number."""
    tables = []
    for row in rows:
        x = (
            [s * v + t for s, v, t in zip(network["scale"], row, network["shift"], strict=True)]
            if "scale" in network
            else row
        )
        for step in network["transforms"]:
            if step["name"] == "log1p":
                x = [math.copysign(math.log1p(abs(v)), v) for v in x]
            elif step["name"] == "standard":
                parts = zip(x, step["mean"], step["spread"], strict=True)
                x = [0.0 if spread is None else (v - mean) / spread for v, mean, spread in parts]
            else:
                x = [
                    naive_shares(v, marks, step["same"])
                    for v, marks in zip(x, step["landmarks"], strict=True)
                ]
        tables.append([min(max(v, -network["limit"]), network["limit"]) for v in x])
    if network["context"]:
        means = [sum(column) / len(tables) for column in zip(*tables, strict=True)]
        tables = [[*row, *(v - mean for v, mean in zip(row, means, strict=True))] for row in tables]
    return [naive_layers(network["layers"], row) for row in tables]


def naive_layers(layers, x):
    for depth, layer in enumerate(layers):
        x = [max(v, 0.0) for v in x] if depth else x
        bias = layer["bias"] or [0.0] * len(layer["weights"])
        x = [
            sum(w * v for w, v in zip(row, x, strict=True)) + b
            for row, b in zip(layer["weights"], bias, strict=True)
        ]
    return x[0]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_formulas_of_plain_json_are_true(name, tmp_path):
    model, X = model_of(name), GRID if "quantiles" in name else DATA.X
    exported(name, tmp_path / "a.json")
    network = json.loads((tmp_path / "a.json").read_text())
    assert network["kind"] == "network"
    assert all(step["formula"] for step in network["transforms"])
    assert within(np.array(naive_network(network, X[:25])), model.predict(X[:25]), 1e-6)


@pytest.mark.parametrize("name", LINEAR)
def test_plain_json_of_linear_models(name, tmp_path):
    model = model_of(name)
    exported(name, tmp_path / "a.json")
    contents = json.loads((tmp_path / "a.json").read_text())
    rows = 100.0 * some_rows(model) + 300.0 if name == "standard" else some_rows(model)
    scores = np.array(
        [math.fsum([contents["constant"], *np.multiply(contents["weights"], row)]) for row in rows]
    )
    assert within(scores, own_scores(model, rows), 1e-12)
    assert contents["formula"].startswith("score = constant + sum over features of weight * feature")
    if isinstance(model, cc.Comparer):
        apart = np.diff(scores.reshape(-1, 2), axis=1)[:, 0]
        assert np.array_equal(
            np.sign(apart) * (np.abs(apart) > contents["threshold"]), model.predict(GAMES.pairs)
        )


def test_ratings_keep_their_items(tmp_path):
    model = BradleyTerry(alpha=0.1).fit(["a", "b", "a"], ["b", "ü", "ü"], [-1, 1, -1])
    export(model, tmp_path / "a.json")
    contents = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert contents["items"] == ["a", "b", "ü"]
    assert contents["ratings"] == model.ratings_.tolist()
    with pytest.raises(ParameterError, match="no features"):
        export(model, tmp_path / "a.json", golden=DATA.X)


# --- normalisation is folded in


def scaled_ranker(weights, scaler):
    """A pipeline of these weights, fitted to nothing."""
    ranker = fitted(cc.LinearRanker("ndcg"), DATA.X[:, : len(weights)])
    ranker.coef_, ranker.scale_ = np.array(weights), np.ones(len(weights))
    return Pipeline([("scaler", scaler), ("ranker", ranker)])


def standard(mean, scale):
    scaler = StandardScaler().fit(np.zeros((2, len(mean))))
    scaler.mean_, scaler.scale_ = np.array(mean), np.array(scale)
    return scaler


def reals(least, most):
    signed = st.tuples(st.sampled_from((-1.0, 1.0)), st.floats(math.log(least), math.log(most)))
    return signed.map(lambda drawn: drawn[0] * math.exp(drawn[1])) | st.just(0.0)


PROBLEMS = st.integers(1, 4).flatmap(
    lambda n: st.tuples(
        st.lists(reals(1e-6, 1e6), min_size=n, max_size=n),
        st.lists(reals(1e-6, 1e9), min_size=n, max_size=n),
        st.lists(reals(1e-9, 1e9).map(lambda number: abs(number) or 1.0), min_size=n, max_size=n),
        st.integers(0, 2**32 - 1),
    )
)


def exact_scores(weights, mean, scale, rows):
    """In fractions, from the definition."""
    parts = [[Fraction(number) for number in values] for values in (weights, mean, scale)]
    terms = [[w * (Fraction(x) - m) / s for w, m, s, x in zip(*parts, row, strict=True)] for row in rows]
    return terms, [sum(row) for row in terms]


@settings(max_examples=60)
@given(PROBLEMS)
@example(([0.0, -math.e, -math.e], [0.0, -math.e, math.e], [1.0] * 3, 0))  # parts of the constant cancel
@example(([-1.0], [-65659969.0], [6e-6], 0))  # a constant of 1e13: doubles lose what tells rows apart
def test_folded_weights_are_those_of_the_pipeline(tmp_path_factory, problem):
    weights, mean, scale, seed = problem
    model, path = scaled_ranker(weights, standard(mean, scale)), tmp_path_factory.mktemp("fold") / "a.json"
    refusal = ""
    try:
        export(model, path)
    except ExportError as error:
        refusal = str(error)
    if refusal:
        assert "lose digits" in refusal
        largest = max(abs(w * m / s) for w, m, s in zip(weights, mean, scale, strict=True))
        assert largest * np.finfo(float).eps > 1e-5 * np.hypot.reduce(weights)
        assert not path.exists()
        return
    contents = json.loads(path.read_text())
    rows = np.array(mean) + np.array(scale) * np.random.default_rng(seed).normal(size=(4, len(mean)))
    _, expected = exact_scores(weights, mean, scale, rows)
    for row, score in zip(rows, expected, strict=True):
        parts = [contents["constant"], *(w * x for w, x in zip(contents["weights"], row, strict=True))]
        size = sum(map(abs, parts))
        assert abs(math.fsum(parts) - float(score)) <= 1e-14 * size + 1e-300


@settings(max_examples=60)
@given(PROBLEMS)
def test_a_search_engine_keeps_the_order_or_nothing_is_written(tmp_path_factory, problem):
    weights, mean, scale, seed = problem
    path = tmp_path_factory.mktemp("order") / "a.json"
    names = [f"x{number}" for number in range(len(weights))]
    model, refused = scaled_ranker(weights, standard(mean, scale)), ""
    try:
        export(model, path, "elasticsearch", features=names)
    except ExportError as error:
        refused = str(error)
    assert path.exists() == (not refused)
    if refused:
        assert re.search(r"lose digits|float32 cannot|beyond its numbers", refused)
        return
    assume(any(weights))
    _, _, stored_weights = request_of(path)
    rows = np.array(mean) + np.array(scale) * np.random.default_rng(seed).normal(size=(20, len(mean)))
    _, exact = exact_scores(weights, mean, scale, rows)
    expected, scores = np.array(exact, dtype=float), np.zeros(20, dtype=np.float32)
    for column, name in enumerate(names):
        scores += np.float32(stored_weights[name]) * rows[:, column].astype(np.float32)
    order, clear = np.argsort(expected), 0.02 * expected.std()
    steps = np.subtract.outer(expected[order], expected[order])
    got = np.subtract.outer(scores[order].astype(float), scores[order].astype(float))
    assert (got[steps > clear] > 0).all()


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        MinMaxScaler((-2.0, 5.0)),
        MaxAbsScaler(),
        RobustScaler(),
        RobustScaler(with_centering=False, quantile_range=(10.0, 90.0)),
        RobustScaler(with_scaling=False),
    ],
    ids=str,
)
def test_each_scaler_is_folded(scaler, tmp_path):
    X = 7.0 * DATA.X + 20.0
    X[:, 2] = 3.0  # constant: a scale of 0, which scalers make 1
    model = piped(scaler, cc.LinearRanker("ndcg"), X=X)
    export(model, tmp_path / "a.json")
    contents = json.loads((tmp_path / "a.json").read_text())
    assert within(X @ contents["weights"] + contents["constant"], model.predict(X), 1e-12)
    assert not within(X @ model[-1].coef_, model.predict(X), 1e-3) or str(scaler).startswith("passthrough")


def test_steps_that_cannot_be_folded(tmp_path):
    path = tmp_path / "a.json"
    for step, words in [
        (PolynomialFeatures(1), "PolynomialFeatures cannot"),
        (MinMaxScaler(clip=True), "clip=True"),
    ]:
        with pytest.raises(ExportError, match=words):
            export(piped(step, cc.LinearRanker("ndcg")), path)
    with pytest.raises(ExportError, match="trees do not need scaling"):
        export(piped(StandardScaler(), cc.BoostedRanker(**TREES)), path)
    bad = scaled_ranker([1.0, 2.0], standard([0.0, np.nan], [1.0, 1.0]))
    with pytest.raises(ExportError, match="feature 1"):
        export(bad, path)
    if TORCH:
        with pytest.raises(ExportError, match="quantiles do not need scaling"):
            export(piped(StandardScaler(), cc.NeuralRanker(transforms="quantile", **NET)), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::concordant.exceptions.QueryWarning")
def test_models_that_have_no_file(tmp_path):
    search = GridSearchCV(cc.LinearRanker("ndcg"), {"alpha": [1.0]}, cv=2).fit(DATA.X, DATA.y)
    with pytest.raises(ExportError, match=r"GridSearchCV(.|\n)*best_estimator_"):
        export(search, tmp_path / "a.json")
    export(search.best_estimator_, tmp_path / "a.json")
    for odd in (None, 3, StandardScaler().fit(DATA.X), Pipeline([("nothing", "passthrough")])):
        with pytest.raises(ExportError, match="no format holds"):
            export(odd, tmp_path / "b.json")
    for raw in (cc.LinearRanker(), cc.BoostedRanker(), cc.Comparer(), Elo()):
        with pytest.raises(NotFittedError):
            export(raw, tmp_path / "b.json", "json")
    assert not (tmp_path / "b.json").exists()


# --- digits


@pytest.mark.parametrize(("form", "dtype"), [("elasticsearch", None), ("onnx", "float32")])
def test_features_far_from_zero_are_refused_in_single_precision(form, dtype, tmp_path):
    X = DATA.X.copy()
    X[:, 0] = 1.7e9 + 3e3 * X[:, 0]  # seconds since 1970
    model = piped(StandardScaler(), cc.LinearRanker("ndcg"), X=X)
    names = NAMES if form == "elasticsearch" else None
    with pytest.raises(ExportError, match="far from 0") as error:
        export(model, tmp_path / "a", form, features=names, dtype=dtype)
    assert ("dtype='float64'" in str(error.value)) == (form == "onnx")
    assert list(tmp_path.iterdir()) == []
    for done in (export(model, tmp_path / "a.json"), export(model, tmp_path / "a.onnx", dtype="float64")):
        assert done.difference < 1e-9


@pytest.mark.parametrize("size", [1e-50, 1e-20, 1e20, 1e50, 1e150])
def test_huge_and_small_scales(size, tmp_path):
    model = piped(StandardScaler(), cc.LinearRanker("ndcg"), X=size * DATA.X)
    assert export(model, tmp_path / "a.json").difference < 1e-9
    assert export(model, tmp_path / "a.onnx", dtype="float64").difference < 1e-9
    if 1e-30 < size < 1e30:
        assert export(model, tmp_path / "b.onnx").difference < 1e-6
        assert export(model, tmp_path / "c.json", "elasticsearch", features=NAMES).difference < 1e-6
    else:
        for path, form in [(tmp_path / "b.onnx", None), (tmp_path / "c.json", "elasticsearch")]:
            with pytest.raises(ExportError, match=r"float32|lose digits|beyond its numbers"):
                export(model, path, form, features=NAMES if form else None)
            assert not path.exists()


def test_a_model_that_does_not_know_where_its_features_lie_says_so(tmp_path):
    X = DATA.X + 1e6
    model, near = fitted(cc.LinearRanker("ndcg"), X), "golden rows were made near 0"
    assert near in export(model, tmp_path / "a.onnx").notes[0]
    with pytest.raises(ExportError, match="lose digits"):
        export(model, tmp_path / "b.onnx", golden=X)
    for done in (
        export(model, tmp_path / "a.onnx", dtype="float64"),
        export(model_of("linear"), tmp_path / "a.onnx", golden=DATA),
        exported("standard", tmp_path / "a.json", "opensearch"),
        exported("comparer", tmp_path / "a.onnx"),
    ):
        assert not any(near in note for note in done.notes)


@needs_torch
@pytest.mark.parametrize("context", [False, True])
def test_what_the_network_itself_rounds_is_not_lost(context, tmp_path):
    """Scores far from 0 beside how far they are apart: the model gives them in float32, too."""
    import torch

    model = fitted(cc.NeuralRanker(context=context, **NET))
    *_, before, _, _, last = model.scorer_.layers
    with torch.no_grad():
        before.bias[0], last.weight[0, 0] = 3e4, 1.0
    for path, options in [("a.json", {}), ("a.onnx", {}), ("b.onnx", {"dtype": "float64"})]:
        for golden in (None, DATA):
            assert export(model, tmp_path / path, golden=golden, **options).difference < 1e-6


def test_values_of_many_rows_off_by_rounding_are_refused(tmp_path):
    """0.1 in float32 is not 0.1: quantiles of a value that many rows have would be others."""
    for name in ("quantiles", "log quantiles", "scaled quantiles"):
        with pytest.raises(ExportError, match="dtype='float64'"):
            exported(name, tmp_path / "a.onnx", "onnx", dtype="float32")
    assert list(tmp_path.iterdir()) == []


def test_weights_of_zero(tmp_path):
    model = fitted(cc.LinearRanker("ndcg"))
    for weights in (np.zeros(6), np.eye(6)[2]):
        model.coef_ = weights
        for path, form in [
            (tmp_path / "a.onnx", None),
            (tmp_path / "a.json", None),
            (tmp_path / "b.json", SEARCH[0]),
        ]:
            assert export(model, path, form, features=NAMES).difference == 0.0
        assert list(request_of(tmp_path / "b.json")[2].values()) == weights.tolist()


def test_weights_that_are_no_numbers(tmp_path):
    model = fitted(cc.LinearRanker("ndcg"))
    model.coef_ = np.array([np.nan, 1.0, 1.0, np.inf, 1.0, 1.0])
    for form in ("json", "onnx", "elasticsearch"):
        with pytest.raises(ExportError):
            export(model, tmp_path / "a", form, features=NAMES)
    assert list(tmp_path.iterdir()) == []


def test_many_features(tmp_path):
    model = fitted(cc.LinearRanker("ndcg"))
    rng = np.random.default_rng(0)
    model.coef_, model.n_features_in_ = rng.normal(size=50_000), 50_000
    model.scale_ = np.ones(50_000)
    assert export(model, tmp_path / "a.json").n_golden > 50


# --- names


def test_names_of_features(tmp_path):
    names = ['a "quoted" one', "größe", "日本", "back\\slash", "tab\t", "{}"]
    export(model_of("linear"), tmp_path / "a.json", "elasticsearch", features=names)
    assert list(request_of(tmp_path / "a.json")[2]) == names
    named = fitted(cc.LinearRanker("ndcg"), pd.DataFrame(DATA.X, columns=names))
    export(named, tmp_path / "b.json", "elasticsearch")
    assert list(request_of(tmp_path / "b.json")[2]) == names
    export(named, tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["features"] == names
    export(model_of("lightgbm"), tmp_path / "d.json", "elasticsearch", features=names)
    assert request_of(tmp_path / "d.json")[2][0]["split"] in names


def test_bad_names_of_features(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(ExportError, match="have no names"):
        export(model_of("linear"), path, "elasticsearch")
    with pytest.raises(ShapeError, match="features has shape"):
        export(model_of("linear"), path, features=["a", "b"])
    for names in (["a"] * 6, "abcdef", ["", *"abcde"], [1, 2, 3, 4, 5, 6], 5, True, np.array("a")):
        with pytest.raises(ParameterError, match="features"):
            export(model_of("linear"), path, "elasticsearch", features=names)
    model = fitted(cc.LinearRanker("ndcg"))
    model.feature_names_in_ = np.array(["a", "b", "a", "c", "d", "e"], dtype=object)
    with pytest.raises(ExportError, match="several features are called 'a'"):
        export(model, path, "elasticsearch")
    assert not path.exists()


def test_options_that_a_format_has_not(tmp_path):
    for options in ({"name": "a"}, {"dtype": "float64"}):
        with pytest.raises(ParameterError, match="has no effect on format 'json'"):
            export(model_of("linear"), tmp_path / "a.json", **options)
    with pytest.raises(ParameterError, match="has no effect on format 'lightgbm'"):
        export(model_of("lightgbm"), tmp_path / "a.txt", features=NAMES)
    for dtype in ("float16", "nothing", 3, "", []):
        with pytest.raises(ParameterError, match=r"dtype must be 'float32' or 'float64'"):
            export(model_of("linear"), tmp_path / "a.onnx", dtype=dtype)
    assert export(model_of("linear"), tmp_path / "a.onnx", dtype=np.float64).difference < 1e-12
    for form in ([], 3, "ONNX", ""):
        with pytest.raises(UnknownNameError, match="format"):
            export(model_of("linear"), tmp_path / "a.onnx", form)
    with pytest.raises(ParameterError, match=r"name must be .*got ''"):
        export(model_of("linear"), tmp_path / "a.json", "opensearch", features=NAMES, name="")


# --- trees


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost"])
def test_only_the_trees_that_count(booster, tmp_path):
    import catboost
    import lightgbm
    import xgboost

    options = TREES | {"n_estimators": 60, "learning_rate": 0.5}
    model = cc.BoostedRanker("ndcg", booster=booster, early_stopping=3, **options)
    validation = cc.synthetic.grades(n_queries=30, n_features=6, seed=2)
    model.fit(DATA.X, DATA.y, qid=DATA.qid, eval_set=validation)
    assert model.stopped_by_ == "early_stopping"
    path = tmp_path / "a.ubj"
    assert export(model, path, booster).difference == 0.0
    read = {
        "lightgbm": lambda: lightgbm.Booster(model_file=path).num_trees(),
        "xgboost": lambda: xgboost.Booster(model_file=path).num_boosted_rounds(),
        "catboost": lambda: catboost.CatBoost().load_model(str(path)).tree_count_,
    }
    assert read[booster]() == model.n_estimators_ == int(model.history_.argmax()) + 1
    if booster != "catboost":
        export(model, path, "elasticsearch", features=NAMES)
        assert len(request_of(path)[2]) == model.n_estimators_


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost", "catboost"])
def test_categories_are_codes(booster, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"price": DATA.X[:, 0], "brand": rng.choice(["b", "ä", "c", "d"], len(DATA.y))})
    table.loc[::7, "price"] = np.nan
    table["brand"] = table["brand"].astype("category")
    y = DATA.y + 2.0 * (table["brand"] == "b")
    model = cc.BoostedRanker("dcg", booster=booster, monotonic_cst={"price": 1}, **TREES).fit(
        table, y, qid=DATA.qid
    )
    for golden in (None, table):
        done = export(model, tmp_path / "a", booster, golden=golden)
        assert done.difference == 0.0
    absent = "-1" if booster == "catboost" else "missing"
    codes = "0 for 'b', 1 for 'c', 2 for 'd'; categories_ of the model lists all"
    assert done.notes == (f"the feature brand is given as codes, {codes}; unknown ones are {absent}",)
    with pytest.raises(ExportError, match=r"brand is categorical|these are of catboost"):
        export(model, tmp_path / "b.json", "elasticsearch")


def test_trees_that_never_split(tmp_path):
    X = np.zeros((12, 2))
    for booster in ("lightgbm", "xgboost", "catboost"):
        with warnings.catch_warnings(action="ignore"):
            model = cc.BoostedRanker("ndcg", booster=booster, **TREES).fit(X, [0, 1] * 6)
        assert export(model, tmp_path / "a", booster).difference == 0.0


@pytest.mark.parametrize("name", ["zero_as_missing", "linear_tree"])
def test_what_only_lightgbm_has(name, tmp_path):
    X = np.where(DATA.X > 0.0, DATA.X, 0.0)
    model = fitted(cc.BoostedRanker(params={name: True}, **TREES), X)
    assert export(model, tmp_path / "a.txt").difference == 0.0
    with pytest.raises(ExportError, match=f"do not support {name}"):
        export(model, tmp_path / "a.json", "elasticsearch", features=NAMES)


def test_trees_that_are_too_deep(tmp_path, monkeypatch):
    from concordant.store.export import elasticsearch

    def deep(model, names):
        return deep(model, names)

    monkeypatch.setitem(elasticsearch.TREES, "lightgbm", deep)
    with pytest.raises(ExportError, match=r"too deep(.|\n)*max_depth"):
        export(model_of("lightgbm"), tmp_path / "a.json", "elasticsearch", features=NAMES)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_names_that_a_library_does_not_take(booster, tmp_path):
    names = ["a[m]", 'b"c', "<d", "größe", "e,f", "g:h"]
    model = fitted(cc.BoostedRanker(booster=booster, **TREES), pd.DataFrame(DATA.X, columns=names))
    export(model, tmp_path / "a.ubj", booster)
    export(model, tmp_path / "a.json", "elasticsearch")
    trees = request_of(tmp_path / "a.json")[2]
    rows = DATA.X[:20].astype(np.float32).astype(float)
    scores = [sum(leaf(tree, dict(zip(names, row, strict=True))) for tree in trees) for row in rows]
    assert within(np.array(scores), model.predict(pd.DataFrame(rows, columns=names)))


@settings(max_examples=200)
@given(st.floats(-1e30, 1e30), st.floats(-(2.0**99), 2.0**99, width=32))
def test_thresholds_part_the_same_numbers(threshold, value):
    from concordant.store.export.elasticsearch import just_above

    above = just_above(threshold)
    for number in (
        value,
        float(np.float32(threshold)),
        np.nextafter(np.float32(threshold), np.float32(np.inf)),
    ):
        assert (float(number) <= threshold) == (np.float32(number) < np.float32(above))


# --- golden rows


@pytest.mark.parametrize(
    ("golden", "error", "words"),
    [
        (DATA.X[:, :3], ShapeError, "as many features as fitted"),
        (DATA.X[0], ShapeError, "two dimensions"),
        (np.full((2, 6), np.nan), NonFiniteError, "golden"),
        (np.full((2, 6), "x"), cc.ConcordantError, "golden"),
        (DATA.X[:0], cc.ConcordantError, "golden"),
    ],
    ids=["width", "one row", "nan", "text", "empty"],
)
def test_bad_golden_rows(golden, error, words, tmp_path):
    with pytest.raises(error, match=words):
        exported("linear", tmp_path / "a.json", golden=golden)
    assert list(tmp_path.iterdir()) == []


def test_golden_rows_of_the_caller(tmp_path):
    assert exported("linear", tmp_path / "a.json", golden=DATA).n_golden == len(DATA.y)
    assert exported("linear", tmp_path / "a.json", golden=DATA.X[:3].tolist()).n_golden == 3
    assert exported("comparer", tmp_path / "a.json", golden=GAMES.pairs).n_golden == 200
    frame = pd.DataFrame(DATA.X, columns=NAMES)
    named = fitted(cc.LinearRanker("ndcg"), frame)
    assert export(named, tmp_path / "a.json", golden=frame[:5]).n_golden == 5
    assert export(named, tmp_path / "a.json", features=list("abcdef"), golden=frame[:5]).n_golden == 5
    with pytest.raises(ParameterError, match="in the order of the fit"):  # weights would change places
        export(named, tmp_path / "a.json", features=NAMES[::-1])
    with pytest.raises(ParameterError, match="in their order"):
        export(named, tmp_path / "a.json", golden=frame[NAMES[::-1]])
    far = np.vstack([DATA.X, 1e38 * DATA.X[:1]])
    with pytest.raises(ExportError, match=r"golden row .* float32 cannot add"):
        exported("linear", tmp_path / "b.json", "elasticsearch", golden=far)


def drafted(name, form):
    """A draft, and what it is a draft of."""
    source = read_model(model_of(name), "a", names_for(model_of(name), form))
    options = {"elasticsearch": {"name": "a"}, "onnx": {"dtype": "float64"}}.get(form, {})
    return source, FORMATS[form].draft(source, Path("a"), **options)


def changed(draft, change):
    """The same draft, its JSON changed."""
    contents = json.loads(draft.contents)
    definition = contents.get("model", {}).get("model", {}) if isinstance(contents.get("model"), dict) else {}
    if definition:
        inner = json.loads(definition["definition"])
        change(inner)
        definition["definition"] = json.dumps(inner)
    else:
        change(contents)
    return dataclasses.replace(draft, contents=json.dumps(contents).encode())


def one_weight(contents):
    contents["weights"][3] *= 1.0 + 1e-6


def one_weight_of_a_search_engine(weights):
    weights["feature 3"] *= 1.0 + 1e-4


def two_weights(contents):
    contents["weights"][:2] = contents["weights"][1::-1]


def no_constant(contents):
    contents["constant"] = 0.0


def one_leaf(trees):
    node = trees[-1]
    while "leaf" not in node:
        node = node["children"][1]
    node["leaf"] += 1e-3


def one_threshold(trees):
    trees[0]["split_condition"] = float(
        np.nextafter(np.float32(trees[0]["split_condition"]), np.float32(np.inf))
    )


def one_tree(trees):
    trees.pop()


def other_side(trees):
    for tree in trees:
        tree["missing"] = tree["no"] if tree["missing"] == tree["yes"] else tree["yes"]


def one_bias(network):
    network["layers"][0]["bias"] = None


def no_transform(network):
    network["transforms"].pop()


def no_scaler(network):
    network["scale"], network["shift"] = [1.0] * 6, [0.0] * 6


def never_equal(network):
    network["transforms"][-1]["same"] = -1e-14


def no_context(network):
    for layer in network["layers"][:1]:
        layer["weights"] = [[*row[:6], *[0.0] * 6] for row in layer["weights"]]


def one_rating(contents):
    contents["ratings"].reverse()


WRONG = [
    ("linear", "json", one_weight),
    ("linear", "json", two_weights),
    ("standard", "json", no_constant),
    ("comparer", "json", no_constant),
    ("linear", "elasticsearch", one_weight_of_a_search_engine),
    *((name, "elasticsearch", change) for name in ("lightgbm", "xgboost")
      for change in (one_leaf, one_threshold, one_tree, other_side)),
    ("network", "json", one_bias),
    ("network", "json", no_transform),
    ("scaled network", "json", no_scaler),
    ("quantiles", "json", never_equal),
    ("log quantiles", "json", never_equal),
    ("context", "json", no_context),
    ("elo", "json", one_rating),
]  # fmt: skip


@pytest.mark.parametrize(("name", "form", "change"), WRONG)
def test_golden_rows_find_what_is_wrong(name, form, change):
    source, draft = drafted(name, form)
    check_draft(source, changed(draft, lambda _: None), "a", None)
    with pytest.raises(ExportError, match=r"differently from the model|is off by"):
        check_draft(source, changed(draft, change), "a", None)


def test_a_forgotten_scaler_is_found():
    """The weights of the ranker itself, as if it had read the features."""
    source, _ = drafted("standard", "json")
    plain, draft = drafted("linear", "json")
    bare = dataclasses.replace(plain, model=model_of("standard")[-1], last=model_of("standard")[-1])
    contents = FORMATS["json"].draft(bare, Path("a")).contents
    with pytest.raises(ExportError, match=r"otherwise|off by"):
        check_draft(source, dataclasses.replace(draft, contents=contents), "a", None)


def test_another_model_is_found():
    for name, other in [("lightgbm", "lightgbm"), ("xgboost", "xgboost"), ("catboost", "catboost")]:
        source, draft = drafted(name, other)
        fewer = fitted(cc.BoostedRanker(booster=other, **TREES | {"n_estimators": 7}))
        wrong = FORMATS[other].draft(read_model(fewer, "a"), Path("a"))
        with pytest.raises(ExportError, match="differently from the model"):
            check_draft(source, dataclasses.replace(draft, contents=wrong.contents), "a", None)
    source, draft = drafted("linear", "onnx")
    wrong = drafted("linear cv", "onnx")[1]
    with pytest.raises(ExportError, match=r"differently from the model|is off by"):
        check_draft(source, dataclasses.replace(draft, contents=wrong.contents), "a", None)


def test_scores_that_are_no_numbers_are_found():
    source, draft = drafted("linear", "json")
    for bad in (np.nan, np.inf):
        broken = Draft(draft.contents, lambda _, rows, bad=bad: np.full(len(rows), bad))
        with pytest.raises(ExportError, match=f"golden row 0 as {bad}"):
            check_draft(source, broken, "a", None)


def test_nothing_is_written_by_a_wrong_draft(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("before")
    right = FORMATS["json"]

    def wrong(source, path):
        return changed(right.draft(source, path), one_weight)

    monkeypatch.setattr(files, "FORMATS", {**FORMATS, "json": right._replace(draft=wrong)})
    with pytest.raises(ExportError, match="nothing was written"):
        export(model_of("linear"), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_missing_libraries_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("concordant.store.export.onnx.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"concordant\[export\]"):
        exported("linear", tmp_path / "a.onnx")
    assert exported("linear", tmp_path / "a.json").format == "json"
