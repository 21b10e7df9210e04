"""Golden numbers: what estimators learn from fixed data, what is certified, and what files hold."""

import json
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app
from concordant.exceptions import NoRiskBoundError
from concordant.store.export.export_sources import read_model
from concordant.store.export.golden import _synthetic_batches as synthetic_batches

TOY = cc.synthetic.grades(n_queries=25, n_items=(1, 9), n_features=5, seed=0)
X, y, qid = TOY.X, TOY.y, TOY.qid
BINARY = (y > 0) * 1.0
WEIGHTS = 1.0 + np.arange(len(y)) % 3
VOTES = cc.synthetic.preferences(n_queries=12, n_items=4, n_features=3, seed=1)
ORDERS = cc.synthetic.permutations(n_queries=12, n_items=4, n_features=3, seed=1)
PAIRS = cc.synthetic.comparisons(n=60, norm="l2", tie_share=0.4, seed=1)
NAMES = np.array(["ann", "bob", "cat", "dan"])
GAMES = NAMES[[0, 1, 2, 3, 0, 1, 2, 0, 3, 1]], NAMES[[1, 2, 0, 0, 2, 3, 3, 3, 1, 0]]
RESULTS = np.array([-1, -1, 1, 1, 0, -1, 0, -1, 1, 0])

TIGHT = {"solver": "newton", "tol": 1e-11}
TREES = {"n_estimators": 7, "n_jobs": 1, "min_samples_leaf": 3}
NEEDS = {
    "xgboost": "xgboost",
    "catboost": "catboost",
    "lightgbm": "lightgbm",
    "neural": "torch",
    "torch": "torch",
}


def rows(labels=y, **other):
    """The arguments of a fit on the toy data."""
    return X, labels, {"qid": qid, **other}


def supervised(data):
    """The arguments of a fit on other supervision than grades."""
    return data.X, data.y, {"qid": data.qid}


MODELS = {  # name -> estimator, arguments of fit
    "linear": (cc.LinearRanker("ndcg@5", tol=1e-11), rows()),
    "linear newton": (cc.LinearRanker("dcg", "pairwise", **TIGHT), rows()),
    "linear squared": (cc.LinearRanker("p@3", "squared", alpha=0.01, **TIGHT), rows(BINARY)),
    "linear duchi": (cc.LinearRanker("eru", "duchi", **TIGHT), rows()),
    "linear preorder": (cc.LinearRanker("ndcg", cc.surrogates.Preorder("pairs"), **TIGHT), rows()),
    "linear ap": (cc.LinearRanker("ap", assume="P_reinforce", **TIGHT), rows(BINARY)),
    "linear auc": (cc.LinearRanker("auc", cc.surrogates.Pairwise("logistic"), **TIGHT), rows(BINARY)),
    "linear err": (cc.LinearRanker("err", **TIGHT), rows()),
    "linear convention": (cc.LinearRanker("ndcg@3[lightgbm]", fit_scale=False, **TIGHT), rows()),
    "linear weights": (cc.LinearRanker("dcg", **TIGHT), rows(sample_weight=WEIGHTS)),
    "linear query weights": (cc.LinearRanker("ndcg", **TIGHT), rows(query_weight=1.0 + qid % 3)),
    "linear bundle": (cc.LinearRanker("dcg", "position_hinge", solver="bundle", tol=1e-3), rows()),
    "linear sgd": (cc.LinearRanker("dcg", solver="sgd", max_iter=5, tol=1e-12), rows()),
    "linear pd": (cc.LinearRanker("pd", assume="low_noise", **TIGHT), supervised(VOTES)),
    "linear wpd": (cc.LinearRanker("wpd", **TIGHT), supervised(VOTES)),
    "linear zero_one": (cc.LinearRanker("zero_one", "plackett_luce", **TIGHT), supervised(ORDERS)),
    "linear torch": (cc.LinearRanker("dcg", "pairwise", device="cpu", tol=1e-9), rows()),
    "linear cv": (cc.LinearRankerCV("ndcg@5", alphas=[1.0, 0.1], cv=2, tol=1e-11), rows()),
    "maxmargin": (cc.MaxMarginRanker("ndcg@5", tol=1e-3), rows()),
    "maxmargin pairwise": (cc.MaxMarginRanker("ap", "pairwise", tol=1e-3), rows(BINARY)),
    "pairs ap": (cc.PairRanker("ap"), rows(BINARY)),
    "pairs pd": (cc.PairRanker("pd"), rows()),
    "lightgbm": (cc.BoostedRanker("ndcg@5", **TREES), rows()),
    "lightgbm pairwise": (cc.BoostedRanker("dcg", "pairwise", **TREES), rows()),
    "xgboost": (cc.BoostedRanker("ndcg@5", booster="xgboost", **TREES), rows()),
    "catboost": (cc.BoostedRanker("ndcg@5", booster="catboost", **TREES), rows()),
    "neural": (cc.NeuralRanker("ndcg@5", hidden=(4,), max_epochs=3, device="cpu"), rows()),
    "comparer": (cc.Comparer(C=2.0, loss="squared_hinge"), (PAIRS.pairs, PAIRS.y, {})),
    "comparer hinge": (cc.Comparer(C=2.0, loss="hinge", calibration=0), (PAIRS.pairs, PAIRS.y, {})),
    "comparer logistic": (cc.Comparer(loss="logistic", calibration=0), (PAIRS.pairs, PAIRS.y, {})),
    "comparer rbf": (cc.Comparer("rbf", C=10.0, gamma=0.1, calibration=0), (PAIRS.pairs, PAIRS.y, {})),
    "comparer lp": (cc.Comparer(formulation="lp", calibration=0), (PAIRS.pairs, PAIRS.y, {})),
    "comparer poly": (cc.Comparer("poly", C=0.5, gamma=0.5, degree=2), (PAIRS.pairs, PAIRS.y, {})),
    "comparer nystroem": (
        cc.Comparer("rbf", C=5.0, approximation="nystroem", n_components=20, calibration=0),
        (PAIRS.pairs, PAIRS.y, {}),
    ),
    "bradley-terry": (cc.ratings.BradleyTerry(alpha=0.1), (*GAMES, {"y": RESULTS})),
    "davidson": (cc.ratings.Davidson(), (*GAMES, {"y": RESULTS})),
    "rao-kupper": (cc.ratings.RaoKupper(), (*GAMES, {"y": RESULTS})),
    "elo": (cc.ratings.Elo(), (*GAMES, {"y": RESULTS})),
    "glicko": (cc.ratings.Glicko(), (*GAMES, {"y": RESULTS})),
}
LOOSE = {"neural": 1e-5, "linear torch": 1e-7}  # single precision; sums in another order
N_PREDICTED = {"lightgbm": 40, "lightgbm pairwise": 40, "xgboost": 40, "catboost": 40, "neural": 40}


def missing(name):
    """The library that a model needs and that is not installed; None: it can be fitted."""
    return next((lib for word, lib in NEEDS.items() if word in name and find_spec(lib) is None), None)


def fitted(name):
    """A model, fitted anew."""
    estimator, (first, second, rest) = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in {"bradley-terry", "davidson", "rao-kupper", "elo", "glicko"}:
            return estimator.fit(first, second, rest["y"])
        return estimator.fit(first, second, **rest)


def learned(name, model):
    """Numbers that say what a model has learned."""
    estimator, (first, *_) = MODELS[name]
    if hasattr(model, "ratings_"):
        return {"ratings": listed(model.ratings_)} | rating_numbers(model)
    if isinstance(estimator, cc.Comparer):
        return {
            "decisions": listed(model.decision_function(first[:12])),
            "predictions": listed(model.predict(first)),
            "threshold": listed([model.threshold_]),
        } | machine_numbers(model, first)
    if isinstance(estimator, cc.PairRanker):
        scores = np.concatenate([np.ravel(block) for block in model.predict_pairs(first[:9], qid=qid[:9])])
        coefficients = {
            "coef": listed(np.append(model.coef_, model.intercept_)),
            "diagonal": listed(np.append(model.diagonal_coef_, model.diagonal_intercept_)),
        }
        return {"pair scores": listed(scores), "ranks": listed(model.rank(first, qid=qid))} | coefficients
    values = {"predictions": listed(model.predict(first[: N_PREDICTED.get(name, 12)]))}
    return (
        values | ({"coef": listed(model.coef_)} if hasattr(model, "coef_") else {}) | risk_bound(name, model)
    )


def rating_numbers(model):
    """What ratings say besides themselves: parameters, probabilities, intervals, ranks."""
    names = ("elo_", "nu_", "theta_", "value_", "advantage_", "deviations_")
    parameters = {name: listed(getattr(model, name)) for name in names if hasattr(model, name)}
    uncertainty = {"intervals": listed(model.interval()), "rank bounds": listed(model.rank_bounds())}
    return parameters | {"probabilities": listed(model.predict_proba(*GAMES)[:4])} | uncertainty


def machine_numbers(model, pairs):
    """Coefficients of a comparison machine, of features or of the first support items, and probabilities.

    Without the coefficients of landmarks, which are only as accurate as nearly equal landmarks allow.
    """
    scorer, numbers = model.machine_.scorer, {"bias": [model.machine_.bias], "value": [model.machine_.value]}
    if model.machine_.solver != "nystroem":
        numbers["coef"] = listed(scorer.coef[:30] if hasattr(scorer, "coef") else model.coef_)
    if model.calibration:
        numbers["probabilities"] = listed(model.predict_proba(pairs[:5]))
    return numbers


def risk_bound(name, model):
    """The risk bound on the training queries, where there is one."""
    _, (features, labels, rest) = MODELS[name]
    try:
        bound = model.risk_bound(features, labels, qid=rest["qid"])
    except NoRiskBoundError:
        return {}
    return {"risk bound": listed([bound.value, bound.excess, bound.empirical, bound.length])}


def listed(values):
    """Plain numbers."""
    return np.asarray(values, dtype=float).ravel().tolist()


def plainly(value):
    """The value as JSON holds it."""
    return json.loads(json.dumps(value, default=str))


def certificate(model):
    """The certificate, less what was measured of the solver's path."""
    if not hasattr(model, "certificate_"):
        return None
    fields = plainly(model.certificate_.to_dict())
    return {key: value for key, value in fields.items() if key != "optimality"}


CERTIFIED = [
    (metric, surrogate)
    for metric in ("dcg", "ndcg@10", "err", "ap", "p@5", "rr", "eru", "pd", "wpd", "auc", "zero_one")
    for surrogate in (
        "auto",
        "squared",
        "softmax",
        "pairwise",
        "preorder",
        "duchi(cosh)",
        "pairs",
        "plackett_luce",
    )
]


def certified():
    """What `certify` says without a search; None: they do not fit together."""
    certificates = {}
    for metric, surrogate in CERTIFIED:
        try:
            certificates[f"{metric} {surrogate}"] = plainly(cc.certify(metric, surrogate).to_dict())
        except cc.ConcordantError as error:
            certificates[f"{metric} {surrogate}"] = type(error).__name__
    return certificates


def matrix():
    """`concordant certify --matrix --json`."""
    result = CliRunner().invoke(app, ["certify", "--matrix", "--json", "--quiet"])
    return json.loads(result.stdout)


def file_name(name):
    """What the model file of a model is called."""
    return f"{name.replace(' ', '-')}.concordant"


def written(name, model, folder):
    """Write the model file of a model."""
    path = Path(folder) / file_name(name)
    cc.save(model, path)
    return path


def digest(path):
    """The digest of a model file."""
    return cc.digest_of(path)


FEATURES = [f"f{column}" for column in range(X.shape[1])]
SUFFIXES = {"onnx": ".onnx", "lightgbm": ".txt", "xgboost": ".ubj", "catboost": ".cbm"}  # others: .json
EXPORTS = {  # name of a model -> formats, ONNX with the type of its numbers
    "linear": ("json", "elasticsearch", "opensearch", "onnx float32", "onnx float64"),
    "linear convention": ("json",),
    "comparer hinge": ("json", "onnx float64"),
    "davidson": ("json",),
    "lightgbm": ("elasticsearch", "lightgbm"),
    "xgboost": ("xgboost",),
    "catboost": ("catboost",),
    "neural": ("onnx float32",),
}
EXPORTED = [(name, kind) for name, kinds in EXPORTS.items() for kind in kinds]
LOOSE_EXPORTS = {"onnx float32": 1e-5}  # single precision
EXPORT_LIBRARIES = {"onnx": ("onnx", "onnxruntime"), "xgboost": ("xgboost",), "catboost": ("catboost",)}


def missing_for_export(kind):
    """The library that a format needs and that is not installed; None: it can be written."""
    libraries = EXPORT_LIBRARIES.get(kind.partition(" ")[0], ())
    return next((library for library in libraries if find_spec(library) is None), None)


def exported(name, kind, model):
    """What `export` writes: a text with its numbers, or the scores that its reader gives to fixed rows."""
    kind, _, dtype = kind.partition(" ")
    options = {"dtype": dtype} if dtype else {}
    if kind in {"elasticsearch", "opensearch"}:
        options = {"name": "golden", "features": FEATURES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model{SUFFIXES.get(kind, '.json')}"
        result = cc.export(model, path, kind, **options)
        if kind not in READERS:
            return {"file": unfolded(json.loads(path.read_text())), "golden": golden_of(result)}
        return {"scores": listed(READERS[kind](path, scored_rows(name))), "golden": golden_of(result)}


def scored_rows(name):
    """Fixed rows that exported models score; of a comparer the left sides."""
    return PAIRS.pairs[:12, 0] if name.startswith("comparer") else X[:20]


def onnx_scores(path, rows):
    """Scores of an ONNX file."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (entry,) = session.get_inputs()
    numbers = rows.astype(np.float32 if entry.type == "tensor(float)" else np.float64)
    return session.run(None, {entry.name: numbers})[0]


def lightgbm_scores(path, rows):
    """Scores of a file of LightGBM."""
    import lightgbm

    return lightgbm.Booster(model_file=path).predict(rows)


def xgboost_scores(path, rows):
    """Scores of a file of XGBoost."""
    import xgboost

    return xgboost.Booster(model_file=path).predict(xgboost.DMatrix(rows), output_margin=True)


def catboost_scores(path, rows):
    """Scores of a file of CatBoost."""
    import catboost

    return catboost.CatBoost().load_model(str(path)).predict(rows)


READERS = {
    "onnx": onnx_scores,
    "lightgbm": lightgbm_scores,
    "xgboost": xgboost_scores,
    "catboost": catboost_scores,
}


def export_rows(name, model):
    """The rows on which `export` tries a file, batch by batch: how many, the first, sums of columns."""
    batches = synthetic_batches(read_model(model, "model", None if name.startswith("comparer") else FEATURES))
    return [
        {"count": len(rows), "first": rows[0].tolist(), "sums": np.nansum(rows, axis=0).tolist()}
        for rows in batches
    ]


def unfolded(value):
    """The value, with JSON that stands in its strings as values: their numbers are compared as numbers."""
    if isinstance(value, dict):
        return {key: unfolded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [unfolded(inner) for inner in value]
    return unfolded(json.loads(value)) if isinstance(value, str) and value[:1] in {"[", "{"} else value


def golden_of(result):
    """What is said of the rows on which the file was tried."""
    return {key: value for key, value in plainly(vars(result)).items() if key not in {"path", "size"}}
