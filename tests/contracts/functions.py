"""Functions of labels and scores, each with sound arguments."""

from functools import partial

import numpy as np

import concordant as cc
from concordant import evaluation
from tests.contracts.models import PAIRS, QUERIES, graded, paired, voted
from tests.contracts.subject import OF_GRADES, Subject

METRICS = ("ndcg@3", "dcg", "err", "ap", "p@2", "rr", "eru(v=0.5)", "auc", "pd", "wpd")


def of_metrics():
    """Each metric called, its per-query values, its standardization."""
    data = graded()
    arguments = {"y": data["y"], "scores": data["X"][:, 0], "qid": data["qid"], "weights": np.ones(QUERIES)}
    roles = {"y": "grades", "scores": "scores", "qid": "ids", "weights": "weights"}
    patterns = {"y": OF_GRADES, "scores": r"scores|\by\b"}
    for name in METRICS:
        yield Subject(f"metric({name!r})", cc.metric(name), arguments, roles, patterns)
        labels = {"y": data["y"], "qid": data["qid"]}
        kinds = {"y": "grades", "qid": "ids"}
        if name not in ("err", "ap", "rr", "pd"):  # these have none, of three grades
            yield Subject(f"standardize({name!r})", standardized(name), labels, kinds, patterns)
    explained = {key: arguments[key] for key in ("y", "scores", "qid", "weights")}
    yield Subject("explain", lambda **a: cc.metrics.explain("ndcg@3", **a).rows, explained, roles, patterns)
    votes = {"y": paired()["y"], "scores": np.linspace(-2.0, 2.0, PAIRS)}
    kinds = {"y": "outcome", "scores": "scores"}
    for name in ("comparison_auc", "comparison_error"):
        yield Subject(f"metric({name!r})", cc.metric(name), votes, kinds, patterns)


def standardized(name):
    """`standardize` of one metric."""
    return lambda **arguments: cc.standardize(name, **arguments)


def of_decoders():
    """Every decoder."""
    rng = np.random.default_rng(3)
    u = rng.random(6)
    discounts = 1.0 / np.arange(1, 7)
    yield Subject("decoders.sort", cc.decoders.sort, {"u": u, "discounts": discounts},
                  {"u": "scores", "discounts": "weights"})  # fmt: skip
    yield Subject("decoders.top", lambda u: cc.decoders.top(u, 2), {"u": u}, {"u": "scores"})
    qid = np.repeat([0, 1], 3)
    yield Subject("decoders.positions", cc.decoders.positions, {"scores": u, "qid": qid},
                  {"scores": "scores", "qid": "ids"}, {"qid": "qid"})  # fmt: skip
    square = rng.random((5, 5))
    for name in ("feedback_arc", "average_precision", "reinforced"):
        call = getattr(cc.decoders, name)
        yield Subject(
            f"decoders.{name}", call, {"u": (square + square.T) / 2}, {"u": "square"}, {"u": "u|matrix"}
        )


def of_supervision():
    """Labels, pairs of items, and queries."""
    data = graded()
    roles = {"X": "features", "y": "scores", "qid": "ids"}
    patterns = {"X": r"X|\by\b", "y": r"\by\b|X"}
    yield Subject("pair_items", lambda **a: cc.pair_items(**a).pairs, data, roles, patterns)
    yield Subject(
        "Queries.from_ids", lambda qid: cc.Queries.from_ids(qid).offsets, {"qid": data["qid"]}, {"qid": "ids"}
    )
    yield Subject(
        "Grades", lambda y: cc.Grades(y).values, {"y": data["y"]}, {"y": "grades"}, {"y": OF_GRADES}
    )
    votes = voted()
    sides = {"left": "ids", "right": "ids", "outcome": "outcome"}
    patterns = {"left": "left|ids", "right": "right|left|ids"}
    yield Subject("Comparisons", lambda **a: cc.Comparisons(**a).left_codes, votes, sides, patterns)
    yield Subject("Permutations", lambda positions: cc.Permutations(positions).positions,
                  {"positions": np.array([2, 1, 3])}, {"positions": "grades"})  # fmt: skip
    preferences = {"better": np.array([0, 1, 2]), "worse": np.array([1, 2, 3]), "weights": np.ones(3)}
    yield Subject("Preferences", lambda **a: cc.Preferences(n_rows=4, **a).weights, preferences,
                  {"better": "grades", "worse": "grades", "weights": "weights"},
                  {"better": "better", "worse": "worse|better", "weights": "weights|better"})  # fmt: skip
    orders = {"votes": np.array([[0, 2, 1], [1, 0, 2], [2, 1, 0]])}
    patterns = {"votes": "votes|order|item"}
    yield Subject("aggregate", lambda votes: cc.aggregate(votes).order, orders, {"votes": "orders"}, patterns)


def of_evaluation():
    """Tests and measures."""
    rng = np.random.default_rng(4)
    a, b = rng.random(8), rng.random(8)
    two = {"a": "scores", "b": "scores"}
    yield Subject("evaluation.paired", evaluation.paired, {"a": a, "b": b}, two, {"a": "a|b", "b": "a|b"})
    yield Subject("evaluation.holm", evaluation.holm, {"p_values": a}, {"p_values": "probabilities"})
    y, decision = paired()["y"], np.linspace(-2.0, 2.0, PAIRS)
    shares = rng.dirichlet([1.0, 1.0, 1.0], PAIRS)
    roles = {"y": "outcome", "decision": "scores", "probabilities": "probabilities"}
    patterns = {
        "decision": r"decision|\by\b",
        "probabilities": r"probabilit|\by\b",
        "y": r"\by\b|outcome|decision|probabilit",
    }
    full = {"y": y, "decision": decision, "probabilities": shares}
    yield Subject("evaluation.evaluate_outcomes", evaluation.evaluate_outcomes, full, roles, patterns)
    some = {"y": y, "probabilities": shares}
    for name in ("log_loss", "calibration_table"):
        kinds = {key: roles[key] for key in some}
        yield Subject(f"evaluation.{name}", getattr(evaluation, name), some, kinds, patterns)
    three = {"y": y, "decision_a": decision, "decision_b": decision[::-1].copy()}
    roles = {"y": "outcome", "decision_a": "scores", "decision_b": "scores"}
    patterns = dict.fromkeys(roles, r"\by\b|outcome|decision")
    call = partial(evaluation.paired_auc, n_resamples=20)
    yield Subject("evaluation.paired_auc", call, three, roles, patterns)
