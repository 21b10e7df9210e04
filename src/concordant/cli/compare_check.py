"""How well a model of `compare` predicts pairs that it has not seen, and parameters chosen by that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.cli.compare_models import fit_on, foretell, part_of
from concordant.exceptions import ConcordantError

if TYPE_CHECKING:
    from concordant.cli.compare_inputs import PairTable
    from concordant.types import BoolArray, FloatArray, IntArray

__all__ = ["HeldOut", "held_out", "loss_of", "share_of", "splits", "tuned"]

WEAKEST = 1e-3  # alpha of folds, which may not be connected
LATE = 0.2  # share of the pairs that are held out, of those in time
FEWEST = 10  # pairs, each as often as it counts, that are worth a check
COSTS, GAMMAS = tuple(10.0**power for power in range(-3, 4)), tuple(4.0**power for power in range(-4, 2))


@dataclass(frozen=True)
class HeldOut:
    """Predictions of pairs that the model had not seen, beside those of the commonest outcome.

    Attributes
    ----------
    how
        In words.
    pairs, unknown
        Pairs predicted, and those left out: an item of theirs occurs in no other.
    error, baseline_error
        Share predicted wrong, by the model and by always saying what was commonest; pairs weigh as in the
        table, here and below.
    log_loss, baseline_log_loss
        Mean of -log(probability of the outcome), by the model and by the shares of the outcomes.
    """

    how: str
    pairs: int
    unknown: int
    error: float
    baseline_error: float
    log_loss: float
    baseline_log_loss: float


def weights_of(data: PairTable, rows: IntArray | slice = slice(None)) -> FloatArray | None:
    """Give how often each of these pairs counts; None: once."""
    return None if data.weight is None else data.weight[rows]


def share_of(true: BoolArray, weight: FloatArray | None) -> float:
    """Give the share of the pairs, each as often as it counts, of which this is true; NaN if none counts."""
    if weight is None:
        return float(np.mean(true))
    return float(weight[true].sum() / weight.sum()) if weight.any() else float("nan")


def loss_of(outcome: IntArray, told: FloatArray, weight: FloatArray | None) -> float:
    """Give the log-loss, each pair as often as it counts."""
    from concordant.evaluation.outcomes import FLOOR, log_loss

    if weight is None:
        return log_loss(outcome, told)
    own = np.maximum(told[np.arange(len(outcome)), outcome + 1], FLOOR)
    return float(-np.log(own) @ weight / weight.sum()) if weight.any() else float("nan")


def splits(model: Any, data: PairTable, folds: int) -> tuple[str, list[tuple[IntArray, IntArray]]]:
    """Give how pairs are held out: the last ones where time matters, else folds in turn."""
    from concordant.comparer.calibration import folds as drawn
    from concordant.evaluation.splits import TimeShares
    from concordant.ratings.sequential import SequentialModel

    if data.time is not None or isinstance(model, SequentialModel):
        order = "by time" if data.time is not None else "in the order of the file"
        parts = list(TimeShares((1.0 - LATE,), data.time).split(data.outcome))
        return f"the last {LATE:.0%} of the pairs, {order}", parts
    parts = drawn(part_of(data.outcome, slice(None)) == 0, folds, 0)  # no more than there are rows
    return f"{len(parts)} folds, each predicted from the others", parts


def held_out(model: Any, data: PairTable, folds: int, tell: Callable[[str], None]) -> HeldOut | str:
    """Fit to some pairs and predict others; where that is not possible, say why."""
    votes = data.n if data.weight is None else data.weight.sum()
    if data.outcome is None or votes < FEWEST:
        return f"no held-out check: {votes:,.6g} pairs are too few"
    try:
        how, parts = splits(model, data, folds)
        found = [one for one in foretold(model, data, parts, tell) if len(one[0])]
        if not found:
            return "no held-out check: every pair has an item that occurs in no other"
    except ConcordantError as error:
        return f"no held-out check: {str(error).partition(chr(10))[0]}"
    return measured(how, data, found, data_left_out(parts, found))


def data_left_out(parts: list[Any], found: list[Any]) -> int:
    """Count the pairs without a forecast."""
    return sum(len(test) for _, test in parts) - sum(len(rows) for rows, *_ in found)


Fold = tuple["IntArray", "IntArray", "FloatArray", "FloatArray"]  # rows, predicted, probabilities, shares


def foretold(
    model: Any, data: PairTable, parts: list[tuple[IntArray, IntArray]], tell: Callable[[str], None]
) -> list[Fold]:
    """Give what is predicted of each part from the rest, and the shares of outcomes in the rest."""
    from sklearn.base import clone

    decisions: list[FloatArray] = []
    found: list[Fold] = []
    for train, test in parts:
        one = clone(model).set_params(**fold_parameters(model, several=len(parts) > 1))
        fit_on(one, data, train)
        said = foretell(one, data, test)
        rows = test[said.known]
        weight = weights_of(data, train)
        shares = np.bincount(part_of(data.outcome, train) + 1, weights=weight, minlength=3) + 1.0
        told = np.full((len(rows), 3), np.nan) if said.probabilities is None else said.probabilities
        found.append((rows, said.outcome, told, shares / shares.sum()))
        decisions.append(said.decision)
        tell("Predicting held-out pairs")
    return (
        found if len(parts) == 1 or type(model).__name__ != "Comparer" else calibrated(found, decisions, data)
    )


def fold_parameters(model: Any, *, several: bool) -> dict[str, Any]:
    """Give what a fit to a part does otherwise: no calibration of its own; ratings that are always finite."""
    if type(model).__name__ == "Comparer":
        return {"calibration": 0} if several else {}
    return {"alpha": max(model.alpha, WEAKEST)} if "alpha" in model.get_params() else {}


def calibrated(found: list[Fold], decisions: list[FloatArray], data: PairTable) -> list[Fold]:
    """Give probabilities of each fold by a curve that was fitted to the decisions on the others."""
    from concordant.comparer.calibration import fit_curve

    result = []
    for place, (rows, predicted, _, shares) in enumerate(found):
        others = [k for k in range(len(found)) if k != place]
        decided = np.concatenate([decisions[k] for k in others])
        seen = np.concatenate([found[k][0] for k in others])
        curve = fit_curve(decided, part_of(data.outcome, seen), weights_of(data, seen))
        result.append((rows, predicted, curve(decisions[place]), shares))
    return result


def measured(how: str, data: PairTable, found: list[Fold], unknown: int) -> HeldOut:
    """Give errors and log-losses over all parts."""
    rows, predicted, told = (np.concatenate([one[k] for one in found]) for k in range(3))
    outcome, weight = part_of(data.outcome, rows), weights_of(data, rows)
    shares = np.concatenate([np.tile(one[3], (len(one[0]), 1)) for one in found])
    commonest = np.argmax(shares, axis=1) - 1
    return HeldOut(
        how,
        len(rows),
        unknown,
        share_of(predicted != outcome, weight),
        share_of(commonest != outcome, weight),
        loss_of(outcome, told, weight) if not np.isnan(told).any() else float("nan"),
        loss_of(outcome, shares, weight),
    )


def candidates(model: Any) -> Iterator[dict[str, float]]:
    """Give the grid of a Comparer: C, and gamma of the rbf kernel."""
    if model.kernel == "linear":
        yield from ({"C": cost} for cost in COSTS)
    else:
        yield from ({"C": cost, "gamma": gamma} for cost, gamma in product(COSTS, GAMMAS))


def tuned(model: Any, data: PairTable, folds: int, tell: Callable[[str], None]) -> dict[str, float]:
    """Give the parameters of least held-out error; of equals the first, which is the smoothest."""
    from sklearn.base import clone

    _, parts = splits(model, data, folds)
    weight = np.ones(data.n) if data.weight is None else data.weight
    best, least = {}, np.inf
    for chosen in candidates(model):
        wrong = 0.0
        for train, test in parts:
            one = clone(model).set_params(**chosen, calibration=0)
            fit_on(one, data, train)
            missed = foretell(one, data, test).outcome != part_of(data.outcome, test)
            wrong += float(weight[test][missed].sum())
        if wrong < least:
            best, least = chosen, wrong
        tell(", ".join(f"{name}={value:g}" for name, value in chosen.items()))
    return best
