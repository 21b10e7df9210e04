"""In words: what each field of a convention says of the metrics that read it, and what is guaranteed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from concordant.metrics.convention import Convention, written
from concordant.metrics.metric import Metric

__all__ = ["PLAIN", "convention_words", "order_of_ties"]

EVERY = ("ties", "empty")
READS: Mapping[str, tuple[str, ...]] = {  # fields, by metric; others read all
    "ndcg": ("gain", "discount", *EVERY, "short_list"),
    "dcg": ("gain", "discount", *EVERY),
    "eru": EVERY,
    "p": (*EVERY, "precision_denominator", "relevant_from"),
    "ap": (*EVERY, "empty_ap", "ap_denominator", "relevant_from"),
    "rr": (*EVERY, "relevant_from"),
    "err": (*EVERY, "max_grade"),
    "auc": (*EVERY, "relevant_from"),
    "pd": EVERY,
    "wpd": ("gain", *EVERY),
}
OF_PAIRS = ("auc", "pd", "wpd")  # nothing is relevant to them where no two documents differ
FIELDS = (
    "gain", "discount", "ties", "empty", "empty_ap", "ap_denominator", "precision_denominator",
    "relevant_from", "max_grade", "short_list",
)  # fmt: skip
WORDS: Mapping[tuple[str, object], str] = {
    ("gain", "exp2"): "A document of grade y is worth 2^y - 1.",
    ("gain", "linear"): "A document of grade y is worth y.",
    ("discount", "log2"): "At place i it counts 1/log2(1 + i) of its worth.",
    ("discount", "mslr"): "At places 1 and 2 it counts in full, at a later place i 1/log2(i) of its worth.",
    ("ties", "expected"): "Equal scores: the value is the mean over all their orders.",
    ("ties", "input"): "Equal scores: rows stand in the order of the input, which may favour a ranker that "
    "cannot tell them apart.",
    ("ties", "worst"): "Equal scores: the lowest grade stands first, the worst case.",
    ("ties", "best"): "Equal scores: the highest grade stands first, which flatters the ranker.",
    ("ties", "id_descending"): "Equal scores: the greater document id stands first.",
    ("empty", "skip"): "A query in which nothing is relevant is left out of the mean, and counted.",
    ("empty", "nan"): "A query in which nothing is relevant makes the mean undefined.",
    ("empty_ap", "skip"): "AP leaves a query out in which nothing is relevant.",
    ("empty_ap", "nan"): "AP is undefined where nothing is relevant.",
    ("ap_denominator", "relevant"): "AP@k divides by the number of relevant documents.",
    ("ap_denominator", "min"): "AP@k divides by the number of relevant documents, or by k if that is less.",
    ("ap_denominator", "found"): "AP@k divides by the relevant documents found in the first k.",
    ("ap_denominator", "uncut"): "AP@k ignores k.",
    ("precision_denominator", "k"): "P@k divides by k, even where the list is shorter.",
    ("precision_denominator", "min"): "P@k divides by k, or by the length of the list if that is less.",
    ("max_grade", "data"): "ERR takes the highest grade of the data for the highest there is.",
    ("max_grade", "probability"): "ERR takes a grade for the probability to stop there.",
    ("short_list", "zero"): "NDCG@k of a list shorter than k is 0.",
}
PLAIN: Mapping[str, str] = {  # what the status of a certificate means
    "proven": "With enough queries, and features that can express it, this loss leads to the best order for "
    "{metric}, whatever the labels are like.",
    "conditional": "Under a condition on the labels this loss leads to the best order for {metric}; beyond "
    "it nobody knows.",
    "refuted": "There are labels on which this loss leads to a wrong order for {metric}, however many "
    "queries it learns from.",
    "open": "Nobody knows whether this loss leads to the best order for {metric}.",
}
ORDERS: Mapping[str, str] = {
    "expected": "the mean over all orders of a query's rows: what chance would give",
    "input": "the rows in the order of the input",
    "worst": "the worst order of all",
    "best": "the best order of all",
    "id_descending": "the rows by descending document id",
    "random": "one random order",
}


def convention_words(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Give a sentence for each field that one of these metrics reads, by the first one's convention.

    >>> from concordant.metrics import metric
    >>> convention_words([metric("rr")])[2]
    'A document is relevant from grade 1 on.'
    """
    chosen = list(metrics)
    read = {field for one in chosen for field in READS.get(one.name, FIELDS)}
    rules = chosen[0].convention
    pairs = " and ".join(dict.fromkeys(one.name.upper() for one in chosen if one.name in OF_PAIRS))
    said = {field: sentence(rules, field) for field in FIELDS if field in read}
    if pairs:
        said["empty"] += f" For {pairs} that is one in which no two documents are of different worth."
    return tuple(filter(None, said.values()))


def sentence(rules: Convention, field: str) -> str:
    """Give what a field says; nothing where it says what is said elsewhere."""
    value = getattr(rules, field)
    if isinstance(value, str) and (field, value) in WORDS:
        return WORDS[field, value]
    text = written(value)
    said = {
        "gain": f"A document of grade y is worth {text}(y).",
        "discount": f"At place i it counts {text}(i) of its worth.",
        "ties": f"Equal scores: one random order, by seed {rules.seed}.",
        "empty": f"A query in which nothing is relevant counts as {text} where a metric is 0/0 there.",
        "empty_ap": "" if value is None else f"AP counts {text} where nothing is relevant.",
        "relevant_from": f"A document is relevant from grade {text} on.",
        "max_grade": f"ERR takes {text} for the highest grade.",
    }
    return said.get(field, "")


def order_of_ties(rules: Convention) -> str:
    """Give what a ranker gets that gives all rows the same score."""
    return ORDERS[rules.ties]
