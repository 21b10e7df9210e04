"""The sets and figures of the paper of `buffoni`, and the conventions closest to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from concordant.metrics import DCG, ERR, NDCG, Convention, Metric
from concordant.types import FloatArray, IntArray

PAPER_NDCG = "ndcg[empty=0.5]"


@dataclass(frozen=True)
class Published:
    """A figure of the paper; `significant`: marked there as significantly worse than the best."""

    value: float
    significant: bool = False


def _read_table(*rows: str) -> dict[str, dict[str, Published]]:
    """Read rows "method err dcg ndcg" as the paper prints them; v is its down arrow."""
    figures: dict[str, dict[str, Published]] = {}
    for row in rows:
        method, *values = row.split()
        read = [Published(float(value.removesuffix("v")), value.endswith("v")) for value in values]
        figures[method] = dict(zip(("err", "dcg", PAPER_NDCG), read, strict=True))
    return figures


@dataclass(frozen=True)
class Data:
    """A set of the experiment.

    Attributes
    ----------
    names
        Datasets that will do, the best first.
    highest
        The highest grade there can be.
    scaled
        Whether features are divided by their spread within queries; validation queries decided (see the
        documentation).
    published
        The paper's figures: method -> metric -> figure.
    dtype
        How features are kept.
    """

    names: tuple[str, ...]
    highest: int
    scaled: bool = False
    published: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    dtype: type[np.floating] = np.float64


DATA: Mapping[str, Data] = {
    "mq2007": Data(
        ("mq2007", "mq2007-partial"),
        highest=2,
        published=_read_table(
            "preorder             0.31392  1.7678   0.66696",
            "consistent-dcg       0.316    1.76806  0.66714",
            "consistent-ndcg      0.3134   1.76566  0.66858",
            "preorder-norm        0.31278  1.76412  0.66794",
            "preorder-norm+dcg    0.31776  1.77058  0.6714",
            "consistent-norm+dcg  0.31746  1.77124  0.67032",
        ),
    ),
    "mq2008": Data(("mq2008",), highest=2),
    "ohsumed": Data(("ohsumed",), highest=2, scaled=True),
    "yahoo": Data(
        ("yahoo-set1",),
        highest=4,
        published=_read_table(
            "preorder             0.4392v  1.6894v  0.8332v",
            "consistent-dcg       0.4469   1.7025   0.8349v",
            "consistent-ndcg      0.4472   1.7021   0.8374",
            "preorder-norm        0.4458v  1.6988v  0.8370",
            "preorder-norm+dcg    0.4499   1.7072   0.8376",
            "consistent-norm+dcg  0.4511   1.7082   0.8370",
        ),
        dtype=np.float32,
    ),
}


def _relative_gain(highest: int) -> Callable[[FloatArray], FloatArray]:
    """(2^y - 1) / 2^highest, the probability of stopping in ERR, as a gain."""

    def gain(grades: FloatArray) -> FloatArray:
        scaled: FloatArray = (np.exp2(grades) - 1.0) / 2.0**highest
        return scaled

    return gain


def _natural_discount(places: IntArray) -> FloatArray:
    """1 / ln(1 + place)."""
    discounts: FloatArray = 1.0 / np.log1p(places)
    return discounts


def metrics_of(data: Data) -> dict[str, Metric]:
    """Return the metrics of the tables, with the conventions that come closest to the paper's figures.

    These are those of the evaluation script of Yahoo's challenge: ERR and DCG of gains (2^y - 1) / 2^highest,
    natural logarithms, 0 for a query without a relevant document, whose NDCG is 0.5. That NDCG is given where
    there are figures to compare with, beside the library's own, which skips such queries.
    """
    ours = Convention(empty=0.0, max_grade=data.highest)
    metrics: dict[str, Metric] = {
        "err": ERR(convention=ours),
        "dcg": DCG(convention=ours.replace(gain=_relative_gain(data.highest), discount=_natural_discount)),
        PAPER_NDCG: NDCG(convention=Convention(empty=0.5)),
        "ndcg": NDCG(),
        "ndcg@10": NDCG(k=10),
    }
    if not data.published:
        del metrics[PAPER_NDCG]
    return metrics


def conventions_of(data: Data) -> dict[str, str]:
    """Describe the conventions of `metrics_of` that their names leave open."""
    gain = f"(2^y - 1)/2^{data.highest}"
    words = {
        "err": f"stops at a document with probability {gain}; 0 where nothing is relevant",
        "dcg": f"gain {gain}, discount 1/ln(1 + place); 0 where nothing is relevant",
        PAPER_NDCG: "0.5 where nothing is relevant, as in the script of Yahoo's challenge",
        "ndcg": "queries where nothing is relevant are skipped",
    }
    if not data.published:
        del words[PAPER_NDCG]
        return words
    tried = "gains 2^y - 1 and y, logarithms of base 2, and 0, 1 or no value where nothing is relevant"
    return words | {"tried, and further from the paper's figures": tried}
