"""`python -m benchmarks.page` writes docs/benchmarks.md from the results that are there.

The first table has a sentence a row; its numbers are looked up in the JSON of the suites. Below it stand the tables of all
suites as they were written.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["HEADLINES", "Headline", "page"]

HERE = Path(__file__).parent
TARGET = HERE.parent / "docs" / "benchmarks.md"

HEAD = """# Benchmarks

How many times longer the peer takes, in the same run on the same machine. This page is written by `python -m benchmarks.page` from the files in `benchmarks/results`, which
`make bench` writes; each suite by itself: `python -m benchmarks SUITE`. Nothing here is asserted by a test: numbers depend on the machine, and the load average before and after stands with each suite.

```text
make bench
python -m benchmarks metrics
python -m benchmarks.page
```

| what is timed, ours against | the peer takes | suite |
|---|---:|---|
"""

FOOT = """
Below 1 the peer is faster. What else is to be known:

- Goals that were set before, and whether they were reached (`reached`), stand in the tables: most are, not all.
- On lists of 120 items numpy's sort takes less time than our pairwise loss and gradient on one thread; on short evaluations LightGBM's and XGBoost's own metrics are quicker than ours, which pay for a call from Python.
- Elections of PrefLib with 20 to 100 alternatives are all solved with proof within hundredths of a second; matrices of pure noise are not, beyond 30 items.
- The speed of a loss says nothing of how well it ranks: see [boosted trees on data](boosting-study.md) and [reproduction](reproduction.md), where most differences may be chance, and some are against us.
"""


@dataclass(frozen=True)
class Headline:
    """A sentence, and where its number is: a column of the rows of a table that match."""

    about: str
    suite: str
    table: str
    column: str
    where: dict = field(default_factory=dict)
    inverse: bool = False

    def values(self) -> list[float]:
        """The numbers, lowest first; a row that is not there is an error."""
        tables = json.loads((HERE / "results" / f"{self.suite}.json").read_text(encoding="utf-8"))["tables"]
        (rows,) = [table["rows"] for table in tables if table["title"] == self.table]
        found = [row[self.column] for row in rows if all(row[key] in want for key, want in self.where.items())]
        numbers = sorted(1 / value if self.inverse else value for value in found if value is not None)
        if not numbers:
            raise LookupError(self)
        return numbers

    def line(self) -> str:
        """The row of the page."""
        low, high = times(self.values()[0]), times(self.values()[-1])
        name = self.suite.removeprefix("h200/")
        link = f"[{self.suite}](#{anchor(self.suite)})" if name == self.suite else f"[{name}, H200](#{anchor(self.suite)})"
        return f"| {self.about} | {low if low == high else f'{low} to {high}'} | {link} |"


def times(ratio: float) -> str:
    """Two digits, or whole numbers."""
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.2g}x" if ratio < 1 else f"{ratio:.1f}x"


def anchor(suite: str) -> str:
    """What a heading of the page is called in a link."""
    return "suite-" + suite.replace("/", "-").replace("_", "-")


NDCG, LIST, KEMENY = "NDCG@10 against the peers", "One list of 10,000 items: value and gradient", "Kemeny's order: other packages on the same votes"
OWN, RATED, TIMED = "Against the libraries' own objectives", "Ratings by the same model: evalica", "Ratings that follow time: Elo and Glicko"
LARGE = {"documents": ["200,000 x 136"]}
OURS = ["ours, squared", "ours, softmax", "ours, pairwise"]

HEADLINES = (
    Headline("NDCG@10 over 10,000 queries of 20 to 200 documents: ranx", "metrics", NDCG, "/ ids", {"tool": ["ranx"]}),
    Headline("... pytrec_eval", "metrics", NDCG, "/ ids", {"tool": ["pytrec_eval"]}),
    Headline("... CatBoost's own evaluation", "metrics", NDCG, "/ ids", {"tool": ["CatBoost"]}),
    Headline("... XGBoost's own evaluation", "metrics", NDCG, "/ ids", {"tool": ["XGBoost"]}),
    Headline("... LightGBM's own evaluation", "metrics", NDCG, "/ ids", {"tool": ["LightGBM"]}),
    Headline("... sorting each list with numpy", "metrics", NDCG, "/ ids", {"tool": ["np.sort"]}),
    Headline("reading a LETOR file: scikit-learn", "reading", "Reading: MSLR-like text", "/ ours", {"reader": ["scikit-learn"]}),
    Headline("... XGBoost", "reading", "Reading: MSLR-like text", "/ ours", {"reader": ["xgboost"]}),
    Headline("pairwise loss and gradient of one list of 10,000 items: rax", "surrogates", LIST, "/ new loss", {"tool": ["rax"]}),
    Headline("... ours that computes rax's own loss", "surrogates", LIST, "/ same loss", {"tool": ["rax"]}),
    Headline("... allRank's lambdaLoss", "surrogates", LIST, "/ new loss", {"tool": ["allRank"]}),
    Headline("... ours that computes allRank's own loss, a double loop too", "surrogates", LIST, "/ same loss", {"tool": ["allRank"]}),
    Headline("... a compiled double loop", "surrogates", LIST, "/ new loss", {"tool": ["double loop"]}),
    Headline("... our own vectorised double loop", "surrogates", LIST, "/ new loss", {"tool": ["double loop, vectorised"]}),
    Headline("the same loss in PyTorch, forward and backward, 10,000 items on the CPU: rax", "torch_losses", "One list on the CPU", "rax / ours", {"items": [10000]}),
    Headline("... allRank", "torch_losses", "One list on the CPU", "allRank / ours", {"items": [10000]}),
    Headline("... on an H200, n x n tensors, 10,000 items", "h200/torch_losses", "One list on the GPU", "n x n / ours", {"items": [10000]}),
    Headline("... on an H200, n x n tensors, 40,000 items", "h200/torch_losses", "One list on the GPU", "n x n / ours", {"items": [40000]}),
    Headline("30 trees at 200,000 x 136, three losses of ours: LightGBM's lambdarank", "boosting", OWN, "/ first", LARGE | {"library": ["lightgbm"], "objective": OURS}, inverse=True),
    Headline("... XGBoost's rank:ndcg", "boosting", OWN, "/ first", LARGE | {"library": ["xgboost"], "objective": OURS}, inverse=True),
    Headline("training a linear ranker on 723,000 x 136: 20 trees of LightGBM, another model, Dataset built before", "training", "Against LightGBM", "/ LinearRanker.fit", {"model": ["LightGBM"]}),
    Headline("training on 69,623 x 46 to 1e-4 of the optimum: scikit-learn's LinearSVC on the pairs", "training", "Against LinearSVC on pairs", "LinearSVC / ours"),
    Headline("one gradient at 723,000 x 136: `X @ w` and `X.T @ g` alone, by BLAS", "training", "One gradient", "/ X @ w, X.T @ g", inverse=True),
    Headline("gradients to a certified gap of 1e-4, max-margin losses, penalty 1e-3: SVMstruct's cutting planes, median", "maxmargin", "Gradients to a certified gap: ratios to ours", "to 0.0001", {"alpha": [0.001], "against": ["one-slack"]}),
    Headline("worst order of a list of 1,000 items for AP: SVMmap's search, compiled", "maxmargin", "The worst order of a list", "peer / ours, one call", {"metric": ["ap"], "items": [1000]}),
    Headline("... of 120 items for NDCG@10: scipy's assignment", "maxmargin", "The worst order of a list", "peer / ours, one call", {"metric": ["ndcg@10"], "items": [120]}),
    Headline("Kemeny order of 11 voters and 30 items, proven: corankco", "decoders", KEMENY, "/ ours", {"items": [30], "tool": ["corankco"]}),
    Headline("... scipy's `milp` with all triangle inequalities", "decoders", KEMENY, "/ ours", {"items": [30], "tool": ["scipy's milp"]}),
    Headline("minimising the expected loss of 400 label distributions: scipy's L-BFGS, one by one", "certificates", "Minimisers of expected surrogates", "scipy / ours"),
    Headline("linear comparison machine on 100,000 pairs with ties, hinge, C = 1: LinearSVC on the flipped pairs", "comparer", "Linear machines", "LinearSVC / solver", {"loss": ["hinge"], "C": [1.0]}),
    Headline("... C = 0.01", "comparer", "Linear machines", "LinearSVC / solver", {"loss": ["hinge"], "C": [0.01]}),
    Headline("... squared hinge, any C", "comparer", "Linear machines", "LinearSVC / solver", {"loss": ["squared_hinge"]}),
    Headline("... `Comparer.fit` as a whole, any loss and C", "comparer", "Linear machines", "LinearSVC / estimator"),
    Headline("ratings from a million indexed votes on 50 or 200 items: evalica's Bradley-Terry and Newman", "ratings", RATED, "ratio", {"items": [50, 200], "given": ["indexed"]}),
    Headline("... its compiled core alone", "ratings", RATED, "ratio", {"items": [50, 200], "given": ["core"]}),
    Headline("... on 1,000 items", "ratings", RATED, "ratio", {"items": [1000], "given": ["indexed"]}),
    Headline("... Elo", "ratings", TIMED, "ratio", {"model": ["Elo"], "given": ["indexed"]}),
    Headline("... without ties: choix's ilsr_pairwise and opt_pairwise", "ratings", "Ratings without ties: choix", "ratio"),
)  # fmt: skip


def page() -> str:
    """The whole page."""
    paths = sorted((HERE / "results").glob("*.md")) + sorted((HERE / "results").glob("*/*.md"))
    lines = "\n".join(headline.line() for headline in HEADLINES)
    return "\n".join([HEAD + lines, FOOT, *(section(path) for path in paths)])


def section(path: Path) -> str:
    """A suite's own page, its headings two levels down."""
    suite = path.relative_to(HERE / "results").with_suffix("").as_posix()
    _, _, text = path.read_text(encoding="utf-8").partition("\n")
    text = re.sub(r"^## ", "### ", text.strip(), flags=re.MULTILINE)
    return f"({anchor(suite)})=\n## {suite}\n\n{text}\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print("written:", TARGET.relative_to(HERE.parent))
