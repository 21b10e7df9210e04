"""The estimators that take pairs, as cases of the contract; and which checks they fail, and why."""

import numpy as np

import concordant as cc
from concordant.comparisons import ratings
from tests.contracts.contract import Case

VALUES = 64.0  # numbers are multiples of 1/64: exact in single precision


def pairs(seed=1, n=30):
    """Pairs with ties."""
    rng = np.random.default_rng(seed)
    table = np.round(rng.normal(size=(n, 2, 3)) * VALUES) / VALUES
    gap = table[:, 1, 0] - table[:, 0, 0] + 0.5 * rng.normal(size=n)
    return {"pairs": table, "y": (np.sign(gap) * (np.abs(gap) > 0.5)).astype(int)}


def votes(seed=2):
    """Votes among six items."""
    rng = np.random.default_rng(seed)
    left, right = np.triu_indices(6, 1)
    both = np.concatenate((left, right)), np.concatenate((right, left))
    return {"left": both[0], "right": both[1], "outcome": rng.integers(-1, 2, 30)}


def decisions(model, data):
    return np.append(model.decision_function(np.asarray(data["pairs"])), model.threshold_)


def strengths(model, data):
    shares = model.predict_proba(np.asarray(data["left"]), np.asarray(data["right"]))
    return np.append(model.ratings_, shares)


def turned_pairs(data):
    return {**data, "pairs": np.asarray(data["pairs"])[:, ::-1], "y": -np.asarray(data["y"])}


def turned_votes(data):
    return {**data, "left": data["right"], "right": data["left"], "outcome": -np.asarray(data["outcome"])}


def of_pairs(name, model, tolerance=1e-3):
    """A case that takes features of both sides."""
    return Case(
        name, model, pairs(), ("pairs", "y"), {"predict": ("pairs",), "decision_function": ("pairs",)},
        decisions, turned_pairs, tolerance, "pairs", pairs(7, 20),
    )  # fmt: skip


def of_votes(name, model, tolerance=1e-6):
    """A case that takes ids of both sides."""
    asked = {"predict": ("left", "right"), "predict_proba": ("left", "right")}
    return Case(
        name, model, votes(), ("left", "right", "outcome"), asked, strengths, turned_votes, tolerance,
        different=votes(8),
    )  # fmt: skip


def cases():
    """All of them."""
    return [
        of_pairs("Comparer", cc.Comparer(calibration=0, tol=1e-10)),
        of_pairs("Comparer(calibrated)", cc.Comparer(calibration=2, tol=1e-10)),
        of_pairs("Comparer(rank)", cc.Comparer(method="rank", calibration=0, tol=1e-10)),
        of_pairs("Comparer(rbf)", cc.Comparer("rbf", calibration=0, tol=1e-8)),
        of_pairs("Comparer(squared)", cc.Comparer(loss="squared_hinge", calibration=0, tol=1e-10)),
        of_pairs("Comparer(lp)", cc.Comparer(formulation="lp", calibration=0)),
        of_pairs("Comparer(nystroem)", cc.Comparer(
            "rbf", loss="logistic", approximation="nystroem", n_components=60, calibration=0, tol=1e-10
        )),
        of_pairs("Comparer(sgd)", cc.Comparer(loss="logistic", solver="sgd", calibration=0)),
        of_votes("BradleyTerry", ratings.BradleyTerry(alpha=0.1)),
        of_votes("Davidson", ratings.Davidson(alpha=0.1)),
        of_votes("RaoKupper", ratings.RaoKupper(alpha=0.1)),
        of_votes("Elo", ratings.Elo()),
        of_votes("Glicko", ratings.Glicko()),
    ]  # fmt: skip


STEPS = "its votes are steps, one after the other: that is what a sequential rating is"
EXPECTED = {
    ("Comparer(sgd)", "check_order_of_rows"): "few passes over the pairs, in an order drawn for their number",
    (
        "Comparer(sgd)",
        "check_weight_is_number",
    ): "few passes over the pairs, in an order drawn for their number",
    ("Elo", "check_order_of_rows"): STEPS,
    (
        "Elo",
        "check_weight_is_number",
    ): "a weight multiplies one step, whose length a second vote would change",
    ("Glicko", "check_order_of_rows"): STEPS,
    ("Glicko", "check_weight_is_number"): "a second vote is a second period: variances have grown before it",
    ("Glicko", "check_weight_of_nothing"): "a vote of weight 0 is a period that passes: variances grow in it",
}
"""(case, check) -> why it fails."""
