"""What a reader of the tables of `reproduce boosting` should know: the remarks below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from concordant.cli.output import plural, significance

if TYPE_CHECKING:
    from concordant.evaluation.reproduction.boosting_contrasts import Contrast
    from concordant.evaluation.reproduction.boosting_results import Reproduction, Study

__all__ = ["LEVEL", "losses", "remarks_of", "standings", "terms", "words"]

LEVEL = 0.05


def terms(study: Study) -> list[str]:
    """Say on what terms the two sides are compared."""
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


def words(study: Study, n_rows: int) -> list[str]:
    """Say what the columns of contrasts are."""
    families = plural(len(study.metrics), "family", "families")
    return [
        "difference: first less second, mean over test queries; its interval; above 0 the first is better",
        *([by_set(study)] if len(study.sets) > 1 else []),
        "wins, ties, losses: queries on which the first is better, equal, worse",
        f"Holm's correction: over the {n_rows} rows of one metric in this table; {families} of tests in it",
    ]


def by_set(study: Study) -> str:
    """Say how the sets weigh."""
    largest = max(study.sets, key=lambda one: one.n_queries)
    share = largest.n_queries / sum(one.n_queries for one in study.sets)
    over = f"all sets: mean over queries, {100 * share:.0f} % of which are of {largest.data}"
    return f"{over}; by set: mean over sets, which weigh the same"


def standings(study: Study) -> list[str]:
    """Say what the means are taken over, and what the last columns count."""
    from concordant.evaluation.significance import against_best

    told = [own for metric in study.metrics for own in against_best(study.column(metric)).values()]
    cells = len(study.sets) * len(study.metrics)
    tied = "tied: in how many it is the best or not significantly worse"
    best = f"best: in how many of the {cells} sets and metrics"
    return [significance(told, len(study.sets[0].rows[study.metrics[0]])), by_set(study), f"{best}; {tied}"]


def remarks_of(study: Study, one: Reproduction) -> list[str]:
    """Give what a reader of a set's table should know."""
    from concordant.evaluation.significance import against_best

    told = [own for metric in study.metrics for own in against_best(one.column(metric)).values()]
    chosen = [choice for metric in study.metrics for folds in one.chosen[metric].values() for choice in folds]
    shapes = " or ".join(str(shape) for shape in study.shapes)
    lines = [
        significance(told, len(one.rows[study.metrics[0]])),
        f"{shapes}, up to {study.plan.trees} trees of rate 0.05: validation queries choose, for each metric",
        f"and fold; {sum(choice.last for choice in chosen)} of {len(chosen)} choices are at the last stage",
        f"trees: median over the folds that chose trees of the number chosen for {study.metrics[0]}",
    ]
    lines += [picked(study, one, row.name) for row in one.rows[study.metrics[0]] if not row.single]
    if one.data == "mq2007-partial":
        lines.append("85 % of the documents of MQ2007: compare methods, not levels")
    return [*lines, "one fold and few trees: a look, not a result"] if study.quick else lines


def picked(study: Study, one: Reproduction, name: str) -> str:
    """Say what validation picked, and how often."""
    counts = Counter(
        choice.method.partition(" for ")[0] for metric in study.metrics for choice in one.chosen[metric][name]
    )
    n_methods = len(next(row for row in one.rows[study.metrics[0]] if row.name == name).methods)
    told = ", ".join(f"{method} {count}" for method, count in counts.most_common())
    return f"{name}: of {n_methods} methods, on validation queries: {told}"


def losses(study: Study) -> list[str]:
    """Say how often a peer is ahead, and how often significantly."""
    sides = {
        "ours is ahead": [one for one in study.cells if one.test.difference > 0.0],
        "others are ahead": study.behind(),
    }
    told = []
    for who, found in sides.items():
        alone, corrected = (sum(p < LEVEL for p in ps) for ps in p_values(found))
        told.append(
            f"{who} in {len(found)} of {len(study.cells)}, at 5 % in {alone} (*), {corrected} of which"
        )
        told[-1] += " after Holm's correction over the table, one family (**)"
    return ["mean over test queries; below 0 the other is ahead; stars: paired t-test", *told]


def p_values(found: Sequence[Contrast]) -> tuple[list[float], list[float]]:
    """Give the p-values of contrasts, alone and corrected."""
    return [one.test.t_test for one in found], [one.adjusted for one in found]
