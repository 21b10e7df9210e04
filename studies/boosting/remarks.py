"""Remarks below the tables of `studies boosting`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from concordant._internals import plural
from studies.shared.contrasts import LEVEL
from studies.shared.significance import significance

if TYPE_CHECKING:
    from studies.boosting.contrasts import RowContrast
    from studies.boosting.results import BoostingSet, BoostingStudy


def terms(study: BoostingStudy) -> list[str]:
    """Explain the terms on which the two sides are compared."""
    first, second = (len(row.methods) for row in study.sets[0].rows[study.metrics[0]] if not row.single)
    who = f"the best of our {first} rankers, or of the peers' {second},"
    return [
        f"chosen: {who} on the validation queries of the fold, for each metric and fold",
        "(default): chosen on these sets, by queries of all folds, these test queries among them: flattered,",
        "as is what our candidates share: the lift of softmax and the loss of the linear one, chosen so, too",
        "ours are trained for the metric of the column, peers for what their authors offer: rank:map for ap,",
        "the others for ndcg or by a loss of their own",
        "trees: same number, leaves and rate; each library has its regularisation, ours BoostedRanker's",
        "one seed",
    ]


def words(study: BoostingStudy, n_rows: int) -> list[str]:
    """Explain the columns of the tables of contrasts."""
    families = plural(len(study.metrics), "family", "families")
    return [
        "difference: first less second, mean over test queries; its interval; above 0 the first is better",
        *([_by_set_remark(study)] if len(study.sets) > 1 else []),
        "wins, ties, losses: queries on which the first is better, equal, worse",
        f"Holm's correction: over the {n_rows} rows of one metric in this table; {families} of tests in it",
    ]


def _by_set_remark(study: BoostingStudy) -> str:
    largest = max(study.sets, key=lambda data_set: data_set.n_queries)
    share = largest.n_queries / sum(data_set.n_queries for data_set in study.sets)
    over = f"all sets: mean over queries, {100 * share:.0f} % of which are of {largest.data}"
    return f"{over}; by set: mean over sets, which weigh the same"


def standings(study: BoostingStudy) -> list[str]:
    """Explain the means, and what the last columns count."""
    from concordant.evaluation import against_best

    comparisons = [
        comparison for metric in study.metrics for comparison in against_best(study.column(metric)).values()
    ]
    cells = len(study.sets) * len(study.metrics)
    tied = "tied: in how many it is the best or not significantly worse"
    best = f"best: in how many of the {cells} sets and metrics"
    return [
        significance(comparisons, len(study.sets[0].rows[study.metrics[0]])),
        _by_set_remark(study),
        f"{best}; {tied}",
    ]


def set_remarks(study: BoostingStudy, data_set: BoostingSet) -> list[str]:
    """Explain the table of a set."""
    from concordant.evaluation import against_best

    comparisons = [
        comparison
        for metric in study.metrics
        for comparison in against_best(data_set.column(metric)).values()
    ]
    choices = [
        choice
        for metric in study.metrics
        for folds in data_set.choices_by_row[metric].values()
        for choice in folds
    ]
    shapes = " or ".join(str(shape) for shape in study.shapes)
    lines = [
        significance(comparisons, len(data_set.rows[study.metrics[0]])),
        f"{shapes}, up to {study.plan.trees} trees of rate 0.05: validation queries choose, for each metric",
        f"and fold; {sum(choice.last for choice in choices)} of {len(choices)} choices are at the last stage",
        f"trees: median over the folds that chose trees of the number chosen for {study.metrics[0]}",
    ]
    lines += [
        _picks_remark(study, data_set, row.name) for row in data_set.rows[study.metrics[0]] if not row.single
    ]
    if data_set.data == "mq2007-partial":
        lines.append("85 % of the documents of MQ2007: compare methods, not levels")
    return [*lines, "one fold and few trees: a look, not a result"] if study.quick else lines


def _picks_remark(study: BoostingStudy, data_set: BoostingSet, name: str) -> str:
    counts = Counter(
        choice.method.partition(" for ")[0]
        for metric in study.metrics
        for choice in data_set.choices_by_row[metric][name]
    )
    n_methods = len(next(row for row in data_set.rows[study.metrics[0]] if row.name == name).methods)
    picks = ", ".join(f"{method} {count}" for method, count in counts.most_common())
    return f"{name}: of {n_methods} methods, on validation queries: {picks}"


def losses(study: BoostingStudy) -> list[str]:
    """Count how often a peer is ahead, and how often significantly."""
    sides = {
        "ours is ahead": [cell for cell in study.cells if cell.test.difference > 0.0],
        "others are ahead": study.behind(),
    }
    lines = []
    for who, contrasts in sides.items():
        alone, corrected = (sum(p < LEVEL for p in ps) for ps in _p_values(contrasts))
        lines.append(
            f"{who} in {len(contrasts)} of {len(study.cells)}, at 5 % in {alone} (*), {corrected} of which"
        )
        lines[-1] += " after Holm's correction over the table, one family (**)"
    return ["mean over test queries; below 0 the other is ahead; stars: paired t-test", *lines]


def _p_values(contrasts: Sequence[RowContrast]) -> tuple[list[float], list[float]]:
    """p-values of contrasts, as they are and corrected."""
    return [pair.test.t_test for pair in contrasts], [pair.adjusted for pair in contrasts]
