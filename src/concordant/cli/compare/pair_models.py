"""Models of `compare`: choose one, fit it to pairs, predict pairs, check and tune it on held-out pairs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from concordant.cli.runs.toml_files import plain_number, split_setting
from concordant.cli.shared.output import warning_messages
from concordant.exceptions import ConcordantError, OutcomeWarning, ParameterError, UnknownNameError

if TYPE_CHECKING:
    from concordant.cli.compare.pair_tables import PairTable
    from concordant.types import BoolArray, FloatArray, IntArray


MODELS: Mapping[str, str] = {
    "comparer": "Comparer",
    "davidson": "Davidson",
    "rao-kupper": "RaoKupper",
    "bradley-terry": "BradleyTerry",
    "elo": "Elo",
    "glicko": "Glicko",
}


def make_model(name: str | None, data: PairTable, parameters: Mapping[str, Any]) -> Any:
    """Create the model, unfitted: features call for a Comparer, ids alone for ratings."""
    import concordant as cc
    from concordant.comparisons import ratings

    if name is None:
        tied = data.outcome is not None and bool((data.outcome == 0).any())
        name = "comparer" if data.features else "davidson" if tied else "bradley-terry"
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    if name == "comparer" and not data.features:
        raise ParameterError.because(
            "--model comparer needs features, but the pairs have only ids. Give features by --items FILE, or "
            "in columns of both sides."
        )
    if name != "comparer" and data.left is None:
        raise ParameterError.because(
            f"--model {name} needs ids of items. Name their columns by --left and --right."
        )
    model_class = cc.Comparer if name == "comparer" else getattr(ratings, MODELS[name])
    defaults = model_class().get_params()
    for key in parameters:
        if key not in defaults:
            raise UnknownNameError(f"parameter of {name}", key, defaults)
        _check_kind(name, key, parameters[key], defaults[key])
    return model_class(**parameters)


def _check_kind(model: str, name: str, value: Any, default: Any) -> None:
    """Raise if a boolean was given for a number or text: it would count as 1 or 0."""
    if not isinstance(value, bool) or isinstance(default, bool):
        return
    if name == "advantage":
        raise ParameterError(
            name, value, f"a number of points for {model}", hint="For example --set advantage=35."
        )
    raise ParameterError(name, value, "text" if isinstance(default, str) else "a number")


def read_json_setting(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE: numbers, true, false and null as in JSON, everything else is text, lists included.

    >>> read_json_setting("degree=2"), read_json_setting("loss=logistic"), read_json_setting("C=inf")
    (('degree', 2), ('loss', 'logistic'), ('C', inf))
    """
    name, value = split_setting(text, "--set", "degree=2")
    try:
        read = json.loads(value)
    except ValueError:
        return name, plain_number(value)
    return name, read if isinstance(read, (int, float, bool, type(None))) else value


def fit_pairs(model: Any, data: PairTable) -> list[str]:
    """Fit the model to the pairs and return the warnings of the library."""
    from concordant import Comparer
    from concordant.comparisons.ratings.sequential import SequentialModel

    weight = data.weight
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", OutcomeWarning)  # the notes of the data state it
        if isinstance(model, Comparer):
            model.fit(data.pairs, data.outcome, sample_weight=weight)
            model.feature_names_in_ = np.array(data.features, dtype=object)
        else:
            timed = {"time": data.time} if isinstance(model, SequentialModel) else {}
            model.fit(data.left, data.right, data.outcome, sample_weight=weight, **timed)
    return warning_messages(caught)


@dataclass(frozen=True, eq=False)
class Forecast:
    """Predictions of pairs; pairs with unknown items, for which `has_forecast` is False, have none."""

    outcome: IntArray
    decision: FloatArray
    probabilities: FloatArray | None
    has_forecast: BoolArray


def forecast_pairs(model: Any, data: PairTable) -> Forecast:
    """Predict pairs; the decision is r(right) - r(left), for ratings too."""
    from concordant import Comparer

    if isinstance(model, Comparer):
        pairs: Any = data.pairs
        probabilities = None if model.curve_ is None else model.predict_proba(pairs)
        return Forecast(
            model.predict(pairs), model.decision_function(pairs), probabilities, np.ones(data.n, bool)
        )
    left, right = np.asarray(data.left), np.asarray(data.right)
    item_numbers = [model.known_.find(ids) for ids in (left, right)]
    has_forecast = (item_numbers[0] >= 0) & (item_numbers[1] >= 0)
    decision = model.ratings_[item_numbers[1][has_forecast]] - model.ratings_[item_numbers[0][has_forecast]]
    if not has_forecast.any():
        return Forecast(np.zeros(0, np.int64), decision, np.zeros((0, 3)), has_forecast)
    sides = left[has_forecast], right[has_forecast]
    return Forecast(model.predict(*sides), decision, model.predict_proba(*sides), has_forecast)


# The held-out check: how well a model of `compare` predicts pairs it was not fitted to, and the search by it.

WEAKEST = 1e-3  # alpha of folds, which may not be connected
LATE = 0.2  # share of the pairs that is held out if they are ordered in time
FEWEST = 10  # votes that are worth a check
MOST_VOTES = 5_000_000  # split one by one; of more, several together
COSTS, GAMMAS = tuple(10.0**power for power in range(-3, 4)), tuple(4.0**power for power in range(-4, 2))


@dataclass(frozen=True)
class HeldOutCheck:
    """Errors on held-out pairs, beside those of always predicting the commonest outcome.

    Attributes
    ----------
    how
        The split, in words.
    pairs, unknown
        Votes predicted, and votes left out since an item of theirs occurs in no other. A pair of weight 10
        counts as ten.
    error, baseline_error
        Weighted share of wrong predictions, of the model and of the commonest outcome.
    log_loss, baseline_log_loss
        Weighted mean of -log(probability of the outcome), of the model and of the shares of the outcomes.
    """

    how: str
    pairs: float
    unknown: float
    error: float
    baseline_error: float
    log_loss: float
    baseline_log_loss: float


def _count_votes(data: PairTable) -> float:
    """Count votes: pairs by their weight."""
    return data.n if data.weight is None else float(data.weight.sum())


def select_pairs(data: PairTable, rows: IntArray) -> PairTable:
    """Return some rows of a table."""
    columns = {name: getattr(data, name) for name in ("left", "right", "outcome", "pairs", "time", "weight")}
    taken = {name: column[rows] for name, column in columns.items() if column is not None}
    return replace(data, n=len(rows), **taken)


def weighted_share(true: BoolArray, weight: FloatArray | None) -> float:
    """Weighted share of the pairs for which this is true; NaN if all weights are 0."""
    if weight is None:
        return float(np.mean(true))
    return float(weight[true].sum() / weight.sum()) if weight.any() else float("nan")


def weighted_log_loss(outcome: IntArray, probabilities: FloatArray, weight: FloatArray | None) -> float:
    """Weighted mean of the log-loss."""
    from concordant.evaluation.outcomes import FLOOR, log_loss

    if weight is None:
        return log_loss(outcome, probabilities)
    outcome_probability = np.maximum(probabilities[np.arange(len(outcome)), outcome + 1], FLOOR)
    return float(-np.log(outcome_probability) @ weight / weight.sum()) if weight.any() else float("nan")


def split_pairs(model: Any, data: PairTable, folds: int) -> tuple[str, list[tuple[PairTable, PairTable]]]:
    """Split votes for the held-out check: the last ones where time matters, else folds.

    A row of weight 10 is ten votes, which are split as ten rows would be: some are held out, others not.
    """
    from concordant.comparisons.calibration import folds as draw_folds
    from concordant.comparisons.ratings.sequential import SequentialModel
    from concordant.evaluation.splits import TimeShares

    weight = np.ones(data.n) if data.weight is None else data.weight
    times = np.ceil(weight / max(1.0, weight.sum() / MOST_VOTES)).astype(np.int64)
    row = np.repeat(np.arange(data.n), times)  # of each vote
    if data.time is not None or isinstance(model, SequentialModel):
        order = "by time" if data.time is not None else "in the order of the file"
        how = f"the last {LATE:.0%} of the pairs, {order}"
        parts = list(TimeShares((1.0 - LATE,), row if data.time is None else data.time[row]).split(row))
    else:
        parts = draw_folds(np.asarray(data.outcome)[row] == 0, folds, 0)  # no more than there are votes
        how = f"{len(parts)} folds, each predicted from the others"

    def rows_at(votes: IntArray) -> PairTable:
        rows, counts = np.unique(row[votes], return_counts=True)
        row_weight = None if data.weight is None else weight[rows] * counts / times[rows]
        return replace(select_pairs(data, rows), weight=row_weight)

    return how, [(rows_at(train), rows_at(test)) for train, test in parts]


def check_held_out(
    model: Any, data: PairTable, folds: int, tell: Callable[[str], None]
) -> HeldOutCheck | str:
    """Fit to some pairs and predict the others; return the reason where that is impossible."""
    if data.outcome is None or _count_votes(data) < FEWEST:
        return f"no held-out check: {_count_votes(data):,.6g} pairs are too few"
    try:
        how, parts = split_pairs(model, data, folds)
        forecasts = [forecast for forecast in _forecast_folds(model, parts, tell) if forecast[0].n]
        if not forecasts:
            return "no held-out check: every pair has an item that occurs in no other"
    except ConcordantError as error:
        return f"no held-out check: {str(error).partition(chr(10))[0]}"
    n_known = sum(_count_votes(test) for test, *_ in forecasts)
    return _measure_forecasts(how, forecasts, n_known, sum(_count_votes(test) for _, test in parts) - n_known)


Fold = tuple["PairTable", "IntArray", "FloatArray", "FloatArray"]  # pairs, predicted, probabilities, shares


def _forecast_folds(
    model: Any, parts: list[tuple[PairTable, PairTable]], tell: Callable[[str], None]
) -> list[Fold]:
    """Predict each fold from the others, with the shares of the outcomes in the others."""
    from sklearn.base import clone

    decisions: list[FloatArray] = []
    forecasts: list[Fold] = []
    for train, test in parts:
        fold_model = clone(model).set_params(**_fold_parameters(model, several=len(parts) > 1))
        fit_pairs(fold_model, train)
        forecast = forecast_pairs(fold_model, test)
        known_pairs = select_pairs(test, np.flatnonzero(forecast.has_forecast))
        shares = np.bincount(np.asarray(train.outcome) + 1, weights=train.weight, minlength=3) + 1.0
        probabilities = (
            np.full((known_pairs.n, 3), np.nan) if forecast.probabilities is None else forecast.probabilities
        )
        forecasts.append((known_pairs, forecast.outcome, probabilities, shares / shares.sum()))
        decisions.append(forecast.decision)
        tell("Predicting held-out pairs")
    return (
        forecasts
        if len(parts) == 1 or type(model).__name__ != "Comparer"
        else calibrate_folds(forecasts, decisions)
    )


def _fold_parameters(model: Any, *, several: bool) -> dict[str, Any]:
    """Return the parameters that change for folds: no inner calibration, and always finite ratings."""
    if type(model).__name__ == "Comparer":
        return {"calibration": 0} if several else {}
    return {"alpha": max(model.alpha, WEAKEST)} if "alpha" in model.get_params() else {}


def _join_outcomes(tables: Iterable[PairTable]) -> tuple[IntArray, FloatArray | None]:
    """Concatenate the outcomes and the weights of several tables; weights may be None."""
    columns = [(np.asarray(table.outcome), table.weight) for table in tables]
    weights = [weight for _, weight in columns if weight is not None]
    return np.concatenate([outcome for outcome, _ in columns]), np.concatenate(weights) if weights else None


def calibrate_folds(forecasts: list[Fold], decisions: list[FloatArray]) -> list[Fold]:
    """Compute the probabilities of each fold by a curve fitted to the decisions on the other folds."""
    from concordant.comparisons.calibration import fit_curve

    result = []
    for fold, (test, predicted, _, shares) in enumerate(forecasts):
        others = [k for k in range(len(forecasts)) if k != fold]
        decided = np.concatenate([decisions[k] for k in others])
        curve = fit_curve(decided, *_join_outcomes(forecasts[k][0] for k in others))
        result.append((test, predicted, curve(decisions[fold]), shares))
    return result


def _measure_forecasts(how: str, forecasts: list[Fold], n_known: float, n_unknown: float) -> HeldOutCheck:
    predicted, probabilities = (
        np.concatenate([forecast[1] for forecast in forecasts]),
        np.concatenate([forecast[2] for forecast in forecasts]),
    )
    outcome, weight = _join_outcomes(forecast[0] for forecast in forecasts)
    shares = np.concatenate([np.tile(forecast[3], (forecast[0].n, 1)) for forecast in forecasts])
    commonest = np.argmax(shares, axis=1) - 1
    return HeldOutCheck(
        how,
        n_known,
        n_unknown,
        weighted_share(predicted != outcome, weight),
        weighted_share(commonest != outcome, weight),
        weighted_log_loss(outcome, probabilities, weight)
        if not np.isnan(probabilities).any()
        else float("nan"),
        weighted_log_loss(outcome, shares, weight),
    )


def parameter_grid(model: Any) -> Iterator[dict[str, float]]:
    """Yield the grid of a Comparer: C, and gamma of the rbf kernel."""
    if model.kernel == "linear":
        yield from ({"C": cost} for cost in COSTS)
    else:
        yield from ({"C": cost, "gamma": gamma} for cost, gamma in product(COSTS, GAMMAS))


def search_parameters(
    model: Any, data: PairTable, folds: int, tell: Callable[[str], None]
) -> dict[str, float]:
    """Return the parameters of least held-out error; on ties the first, which are the smoothest."""
    from sklearn.base import clone

    _, parts = split_pairs(model, data, folds)
    best, least = {}, np.inf
    for parameters in parameter_grid(model):
        wrong = 0.0
        for train, test in parts:
            fold_model = clone(model).set_params(**parameters, calibration=0)
            fit_pairs(fold_model, train)
            missed = forecast_pairs(fold_model, test).outcome != test.outcome
            wrong += float(missed.sum() if test.weight is None else test.weight[missed].sum())
        if wrong < least:
            best, least = parameters, wrong
        tell(", ".join(f"{name}={value:g}" for name, value in parameters.items()))
    return best
