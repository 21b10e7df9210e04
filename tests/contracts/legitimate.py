"""What looks like a defect and is none: cells of the matrix that are accepted, and why."""

import re

ONE = ("one row fewer", "one row more")
LEGITIMATE = (  # subjects, argument, defects, reason
    (r".*\.(predict|rank_score)", "X|items|pairs", ONE, "it asks for no number of rows"),
    (r"Queries.from_ids|Grades|Permutations|decoders.top|evaluation.holm", ".*", ONE, "it has one argument"),
    (r"evaluation.holm", "p_values", ("empty",), "no hypotheses are none to correct"),
    (r"BoostedRanker.*", "X", ("nan", "none"), "trees take missing values"),
    (r"BoostedRanker.(lightgbm|catboost).*|NeuralRanker.*", "X", ("too large",), "they cut or squash it"),
    (r"(?!Pair).*Ranker.*\.(score|rank|predict)", "X", ("too large",), "the scores are finite"),
    (r"pair_items", "X", ("too large", "no features"), "pairs are built, and nothing is squared"),
    (r"evaluation.paired", "a|b", ("nan",), "a query that was skipped"),
    (r"evaluation.(evaluate_outcomes|paired_auc)", "decision.*", ("inf", "-inf"), "only their order counts"),
    (r"metric.*|explain|decoders.positions", "scores", ("-inf",), "an item that is not in the ranking"),
    (r".*\.update|Elo.*\.fit|Glicko\.fit", "sample_weight", ("all zero",), "nothing happened"),
    (r"Preferences", "weights", ("all zero",), "preferences that do not count"),
    (r"decoders.sort", "discounts", ("all zero",), "every order is worth 0"),
    (r".*", "y", ("huge",), "grades are compared, or are gains themselves: 5000 is a number"),
)
HUGE = r"LinearRanker\(sgd\).*|PairRanker.*|(metric|standardize)\('(ap|p@2|rr|eru|auc|pd).*|Grades"


def reason(cell):
    """Why a cell may be accepted; empty where it must be refused."""
    for subject, argument, defects, why in LEGITIMATE:
        named = re.fullmatch(subject, cell.subject.name) and re.fullmatch(argument, cell.argument)
        if named and cell.defect in defects:
            huge = cell.defect == "huge" and not re.fullmatch(HUGE, cell.subject.name)
            return "" if huge else why
    return ""
