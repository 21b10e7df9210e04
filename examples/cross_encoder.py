"""Fine-tunes a small cross-encoder for NDCG@10, and the same one by regression, on a corpus of known truth.

A cross-encoder reads a query and a document together and gives one score. The corpus is made up: words belong
to topics, a document's true grade is how many topics of the query its words cover, and an annotator is
sometimes one grade off. The model sees token ids only; that two words share a topic it has to learn.

    python examples/cross_encoder.py
    python examples/cross_encoder.py --device cuda --queries 2000

Both losses get the same model, the same batches of whole queries, the same optimiser and the same number of
epochs, and both stop early by NDCG@10 on validation queries, measured on the device.
"""  # noqa: INP001

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor, nn

from concordant.torch import OrderPreservingLoss, metric

TOPICS, WORDS = 12, 3  # words per topic
QUERY, DOCUMENT = 3, 8  # words of a text
START, SEPARATOR = TOPICS * WORDS, TOPICS * WORDS + 1
SEGMENTS = [0] * (QUERY + 2) + [1] * DOCUMENT

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # scores, grades, offsets


@dataclass(frozen=True, eq=False)
class Corpus:
    """Token ids of (query, document) pairs, with grades; the pairs of a query are adjacent."""

    tokens: Tensor
    grades: Tensor
    truth: Tensor  # grades before the annotator's noise
    offsets: np.ndarray

    def take(self, queries: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens, grades and offsets of these queries: lists of any length, nothing padded."""
        starts, sizes = self.offsets[queries], np.diff(self.offsets)[queries]
        edges = np.r_[0, sizes.cumsum()]
        rows = torch.from_numpy(np.arange(edges[-1]) + np.repeat(starts - edges[:-1], sizes))
        rows = rows.to(self.tokens.device)
        return self.tokens[rows], self.grades[rows], torch.from_numpy(edges).to(rows.device)


def make_corpus(n_queries: int, seed: int, device: str) -> Corpus:
    """Draw queries of 8 to 24 documents."""
    rng = np.random.default_rng(seed)
    tokens, truth, sizes = [], [], rng.integers(8, 25, n_queries)
    for size in sizes:
        topics = rng.choice(TOPICS, QUERY, replace=False)
        query = topics * WORDS + rng.integers(0, WORDS, QUERY)
        for _ in range(size):
            on_topic = rng.random(DOCUMENT) < 0.5 * rng.random()
            about = np.where(on_topic, rng.choice(topics, DOCUMENT), rng.integers(0, TOPICS, DOCUMENT))
            words = about * WORDS + rng.integers(0, WORDS, DOCUMENT)
            tokens.append(np.r_[START, query, SEPARATOR, words])
            truth.append(np.isin(topics, about).sum())
    true = np.array(truth)
    noisy = np.clip(true + rng.choice([-1, 0, 1], len(true), p=[0.1, 0.8, 0.1]), 0, 4)
    columns = [torch.from_numpy(part).to(device) for part in (np.array(tokens), noisy, true)]
    return Corpus(*columns, np.r_[0, sizes.cumsum()])


class CrossEncoder(nn.Module):
    """A transformer over the tokens of a query and a document; one score for the pair."""

    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.words, self.segments = nn.Embedding(SEPARATOR + 1, width), nn.Embedding(2, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        """One score per pair."""
        segments = self.segments(torch.tensor(SEGMENTS, device=tokens.device))
        scores: Tensor = self.head(self.encoder(self.words(tokens) + segments).mean(1))
        return scores[:, 0]


def batches(corpus: Corpus, size: int, rng: np.random.Generator) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Whole queries in random order."""
    order = rng.permutation(len(corpus.offsets) - 1)
    for first in range(0, len(order), size):
        yield corpus.take(order[first : first + size])


@torch.no_grad()
def quality(model: nn.Module, corpus: Corpus) -> float:
    """NDCG@10, computed where the scores are."""
    return float(metric("ndcg@10")(model(corpus.tokens), corpus.grades, offsets=corpus.offsets))


def train(
    model: nn.Module, loss: Loss, corpus: Corpus, held_out: Corpus, options: argparse.Namespace, bar: Progress
) -> None:
    """Minimise the loss; keep the weights of the epoch that was best on the held-out queries."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.rate)
    rng = np.random.default_rng(options.seed)
    best, best_state, since = quality(model, held_out), copy.deepcopy(model.state_dict()), 0
    task = bar.add_task("", total=options.epochs)
    for _ in range(options.epochs):
        for tokens, grades, offsets in batches(corpus, options.batch, rng):
            optimiser.zero_grad()
            loss(model(tokens), grades, offsets).backward()
            optimiser.step()
        value, since = quality(model, held_out), since + 1
        if value > best:
            best, best_state, since = value, copy.deepcopy(model.state_dict()), 0
        bar.update(task, advance=1, description=f"ndcg@10 {value:.4f} (best {best:.4f})")
        if since == options.patience:
            break
    model.load_state_dict(best_state)


def losses(corpus: Corpus) -> dict[str, Loss]:
    """The two losses, by name; regression is spared learning the mean grade."""
    ranking, mean = OrderPreservingLoss(metric="ndcg@10"), corpus.grades.double().mean().float()

    def pointwise(scores: Tensor, grades: Tensor, offsets: Tensor) -> Tensor:
        """Squared error of each pair on its own."""
        del offsets
        return ((scores - (grades - mean)) ** 2).mean()

    return {
        "OrderPreservingLoss": lambda scores, grades, offsets: ranking(scores, grades, offsets=offsets),
        "pointwise regression": pointwise,
    }


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cpu", help="cpu, cuda, cuda:1, ...")
    parser.add_argument("--queries", type=int, default=400, help="training queries")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--patience", type=int, default=5, help="epochs without progress before stopping")
    parser.add_argument("--batch", type=int, default=16, help="queries per step")
    parser.add_argument("--rate", type=float, default=5e-3, help="learning rate")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> dict[str, tuple[float, float]]:
    """Train with each loss; give NDCG@10 on test queries before and after, by loss."""
    options, console = read_options(arguments), Console()
    corpus, held_out, test = (
        make_corpus(size, options.seed + i, options.device)
        for i, size in enumerate(
            (options.queries, max(options.queries // 4, 1), max(options.queries // 2, 1))
        )
    )
    results = {}
    for name, loss in losses(corpus).items():
        torch.manual_seed(options.seed)
        model = CrossEncoder().to(options.device)
        before = quality(model, test)
        with Progress(console=console) as bar:
            train(model, loss, corpus, held_out, options, bar)
        results[name] = before, quality(model, test)
    table = Table("loss", "before", "after", title=f"NDCG@10 of {len(test.offsets) - 1} test queries")
    for name, values in results.items():
        table.add_row(name, *(f"{value:.4f}" for value in values))
    ceiling = float(metric("ndcg@10")(test.truth.double(), test.grades, offsets=test.offsets))
    table.add_row("the true grades themselves", "", f"{ceiling:.4f}")
    console.print(table)
    return results


if __name__ == "__main__":
    main()
