"""Choice of the surrogate for a metric, and its training labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from concordant._base.segments import segment_reduce
from concordant._base.validate import check_lengths, check_number
from concordant.data.labels import Grades, Permutations
from concordant.data.queries import Queries
from concordant.exceptions import LabelError, ParameterError
from concordant.metrics.comparison import ComparisonMetric, ranking_metric_error
from concordant.metrics.convention import FUNCTIONS, Convention
from concordant.metrics.metric import Family, Metric
from concordant.metrics.parse import metric as read_metric
from concordant.metrics.standardization import usable_targets
from concordant.rankers.guarantee import Guarantee, label_space, look_up_guarantee
from concordant.solvers.checkpoint import digest, parameter_text
from concordant.surrogates import ListwiseHinge, Pairwise, Softmax, Squared, Surrogate, surrogate
from concordant.types import FloatArray, IntArray

# Measured: `python -m studies choice` trains every surrogate for every metric on the LETOR sets, with the
# penalty chosen on validation queries; studies/defaults/results/choice.md has its tables, on test queries.
# The differences are small: within two percent, and on synthetic preferences and orders below the noise.
AUTO: Mapping[str, Surrogate] = {
    "dcg": Softmax(),
    "ndcg": Softmax(),
    "err": Squared(),
    "ap": Softmax(),
    "p": Softmax(),
    "rr": Squared(),
    "eru": Softmax(),
    "auc": Pairwise(),
    "pd": Pairwise(),
    "wpd": Softmax(),
    "zero_one": Squared(),
}
OTHERWISE = Softmax()
# Surrogate of boosted trees, and the lift of its targets. Measured on validation queries of LETOR sets:
# `python -m studies tree_choice`, with tables in studies/defaults/results/tree_choice.md, and `python -m
# studies boosting`. Squared and lifted softmax are ahead there; but for ap the differences between the two
# are below the noise. A linear function hardly overfits single queries, trees do: the lift restrains them.
TREES: Mapping[str, tuple[Surrogate, float]] = {
    "dcg": (Squared(), 0.0),
    "p": (Squared(), 0.0),
    "err": (Squared(), 0.0),
    "rr": (Squared(), 0.0),
    "auc": (Pairwise(), 0.0),
    "pd": (Pairwise(), 0.0),
    "zero_one": (Squared(), 0.0),
}
OTHERWISE_TREES = Softmax(), 1.0

HIGHEST = 1e6  # of a lift: far above it targets are equal in single precision


def listwise_hinge(metric: str | Metric, mode: str = "max", temperature: float = 1.0) -> ListwiseHinge:
    """Build the listwise hinge of a metric, or of its name: `concordant.surrogates.ListwiseHinge`.

    >>> listwise_hinge("ndcg@10").mode
    'max'
    """
    return ListwiseHinge(read_metric(metric), mode, temperature)


def choose_surrogate(name: str | Surrogate, metric: Metric) -> Surrogate:
    """Return the surrogate; for "auto", the one that measured best for the metric."""
    if isinstance(metric, ComparisonMetric):
        raise ranking_metric_error(metric)
    if isinstance(name, str) and name == "auto":
        return AUTO.get(metric.name, OTHERWISE)
    return surrogate(name)


def choose_for_trees(name: str | Surrogate, lift: float | str, metric: Metric) -> tuple[Surrogate, float]:
    """Return the surrogate and the lift for boosted trees; for "auto", those of `TREES`.

    >>> from concordant import metric
    >>> choose_for_trees("auto", "auto", metric("ap")), choose_for_trees("pairwise", "auto", metric("ap"))[1]
    ((Softmax(), 1.0), 0.0)
    """
    loss = choose_surrogate(name, metric)
    best, height = TREES.get(metric.name, OTHERWISE_TREES)
    loss = best if isinstance(name, str) and name == "auto" else loss
    if not (isinstance(lift, str) and lift == "auto"):
        return loss, _check_lift(lift, loss)
    return loss, height if loss == best else 1.0 * isinstance(loss, Softmax)


def _check_lift(lift: Any, loss: Surrogate) -> float:
    height = check_number("lift", lift, least=0.0, most=HIGHEST, also="'auto'")
    if height and loss.reads != "targets":
        raise ParameterError("lift", lift, f"0 for {loss.name}, which reads {loss.reads} instead of targets")
    return height


def lift_targets(targets: FloatArray, offsets: IntArray, lift: float) -> FloatArray:
    """Add `lift` times the highest target of each query to all of its targets.

    Differences of expected targets stay the same: every item of a query gets the same lift. So a loss that
    follows expected targets is consistent with lifted targets, too, and softmax then never sends a score to
    minus infinity.

    >>> lift_targets(np.array([1.0, 0.0, 2.0]), np.array([0, 2, 3]), 0.5).tolist()
    [1.5, 0.5, 3.0]
    """
    highest = segment_reduce(np.maximum, targets, offsets)
    return targets + lift * np.repeat(np.maximum(highest, 0.0), np.diff(offsets)) if lift else targets


def training_labels(
    metric: Metric,
    loss: Surrogate,
    y: Any,
    queries: Queries,
    assume: str | None,
    f: Family | None = None,
    *,
    every: bool = True,
) -> tuple[FloatArray, Guarantee]:
    """Return what the surrogate reads, by sorted row, and what is guaranteed of training on it.

    `every` is that of `usable_targets`.
    """
    readers: Mapping[str, Callable[..., Any]] = {"grades": _as_grades, "positions": _as_permutations}
    read_as = readers.get(loss.reads)
    labels = metric.read_labels(y) if read_as is None else read_as(y, loss)
    check_lengths("X", queries.n_rows, y=labels)
    if f is not None and read_as is not None:
        raise ParameterError.because(
            f"f was given, but {loss.name} reads the labels without standardization. Leave f out."
        )
    guarantee = look_up_guarantee(metric, loss, "sort", label_space(metric, loss, labels, queries), assume)
    if loss.reads == "grades":
        order = isinstance(labels, Permutations)
        return labels.grades(queries) if order else queries.gather(labels.values), guarantee
    if loss.reads == "positions":
        return labels.grouped(queries).astype(float), guarantee
    return usable_targets(metric, labels, queries, assume, f, every=every)[0], guarantee


def _as_grades(y: Any, loss: Surrogate) -> Grades | Permutations:
    """Return grades, for the surrogates that compare them; or an order, if only that counts."""
    if loss.ordinal and isinstance(y, Permutations):
        return y
    if type(y).__name__ in ("Preferences", "Permutations"):
        raise LabelError(f"{loss.name} reads grades, not {type(y).__name__}", "pass one grade per row.")
    return y if isinstance(y, Grades) else Grades.passing(y)


def _as_permutations(y: Any, loss: Surrogate) -> Permutations:
    if not isinstance(y, Permutations):
        hint = "wrap positions (1 is best): Permutations(positions)."
        raise LabelError(f"{loss.name} reads Permutations, not {type(y).__name__}", hint)
    return y


# Fingerprints of metric and surrogate for checkpoints: the name, and values of user-supplied functions.

POINTS = {"gain": np.arange(65.0), "discount": np.arange(1, 1025)}  # at which rules are compared


def metric_fingerprint(metric: Metric) -> str:
    """Fingerprint a metric for checkpoints: two functions of the same name may return other values.

    >>> from concordant.metrics.parse import metric
    >>> metric_fingerprint(metric("dcg@5"))
    'dcg@5'
    """
    functions = {name: getattr(metric.convention, name) for name in FUNCTIONS}
    functions = {name: rule for name, rule in functions.items() if callable(rule)}
    if not functions:
        return str(metric)
    defaults = {name: getattr(Convention(), name) for name in functions}
    named = replace(metric, convention=metric.convention.replace(**defaults))
    texts = [str(named)]
    for name, rule in functions.items():
        texts.append(f"{name}={parameter_text(rule)} {digest(_rule_values(name, rule))}")
    return " ".join(texts)


def surrogate_fingerprint(surrogate: Surrogate) -> str:
    """Fingerprint a surrogate for checkpoints, with the metric that it may hold.

    >>> from concordant.surrogates import Softmax
    >>> surrogate_fingerprint(Softmax())
    'Softmax()'
    """
    metric = getattr(surrogate, "metric", None)
    text = repr(surrogate)
    return text.replace(repr(metric), metric_fingerprint(metric)) if isinstance(metric, Metric) else text


def _rule_values(name: str, rule: Callable[[Any], Any]) -> FloatArray:
    """Evaluate a rule at the first grades or ranks, as far as it is defined: a table ends somewhere."""
    for size in range(len(POINTS[name]), 0, -1):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                return np.asarray(rule(POINTS[name][:size].copy()), dtype=np.float64)
        except Exception:  # noqa: BLE001, S112  whatever it is: rows that need the value will raise it
            continue
    return np.empty(0)
