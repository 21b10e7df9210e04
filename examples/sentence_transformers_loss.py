"""Drops OrderPreservingLoss into the training loop of sentence-transformers: CrossEncoderTrainer.

All that is needed is `RankingLoss` below: a module that scores the pairs of a batch, query after query, and
hands scores, grades and offsets to the loss of concordant. The rest makes the example run anywhere: a corpus
with known grades, and a small BERT with random weights and a vocabulary of its own, so that nothing is
downloaded. With a trained checkpoint, write `CrossEncoder("...", num_labels=1)` instead of `small_bert`.

    pip install "sentence-transformers[train]"  # written for version 6; [train] adds datasets and accelerate
    python examples/sentence_transformers_loss.py

The trainer needs datasets and accelerate; where one is missing, or with --plain, a loop of a few lines takes
its place, with the same module as the loss.
"""  # noqa: INP001

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch import Tensor, nn

from concordant.torch import OrderPreservingLoss, metric

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read by the next imports
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from sentence_transformers.cross_encoder import CrossEncoder
from sentence_transformers.util import batch_to_device
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

TOPICS, WORDS = 12, 3  # words per topic
BATCH = 16  # queries per step

Row = dict[str, Any]  # query, documents, labels


class RankingLoss(nn.Module):
    """The loss of concordant for rows of a query, its documents and their grades; lists of any length.

    Parameters
    ----------
    model
        A cross-encoder of one output.
    metric
        What to optimise, as `concordant.metric` reads it.
    """

    def __init__(self, model: CrossEncoder, metric: str = "ndcg@10") -> None:
        super().__init__()
        self.model, self.loss, self.metric = model, OrderPreservingLoss(metric=metric), metric

    def forward(
        self,
        inputs: list[list],
        labels: list[Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> Tensor:
        """Mean loss over the queries of the batch."""
        queries, documents = inputs
        pairs = [(query, text) for query, texts in zip(queries, documents, strict=True) for text in texts]
        tokens = batch_to_device(self.model.preprocess(pairs, prompt=prompt, task=task), self.model.device)
        scores = self.model(tokens)["scores"].view(-1).float()
        offsets = [0, *accumulate(len(texts) for texts in documents)]
        return self.loss(scores, torch.cat(list(labels)).to(scores.device), offsets=offsets)

    def get_config_dict(self) -> dict[str, str]:
        """What the model card says of the loss."""
        return {"metric": self.metric}


def make_corpus(n_queries: int, seed: int) -> list[Row]:
    """Rows of a query, its documents and their grades; a grade counts the topics of the query in the text."""
    rng = np.random.default_rng(seed)
    rows = []
    for size in rng.integers(8, 17, n_queries):
        topics = rng.choice(TOPICS, 2, replace=False)
        about = [
            np.where(rng.random(6) < 0.5 * rng.random(), rng.choice(topics, 6), rng.integers(0, TOPICS, 6))
            for _ in range(size)
        ]
        grades = [float(np.isin(topics, some).sum()) for some in about]
        documents = [text(some, rng) for some in about]
        rows.append({"query": text(topics, rng), "documents": documents, "labels": grades})
    return rows


def text(topics: np.ndarray, rng: np.random.Generator) -> str:
    """One word of each topic named."""
    return " ".join(f"topic{topic}word{rng.integers(WORDS)}" for topic in topics)


def small_bert(folder: Path, device: str | None) -> CrossEncoder:
    """A cross-encoder of two layers with random weights; one token per word of the corpus."""
    words = [f"topic{topic}word{word}" for topic in range(TOPICS) for word in range(WORDS)]
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP")}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.15,  # wide enough for so small a model to learn quickly
        num_labels=1,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return CrossEncoder(str(folder), num_labels=1, device=device)


def quality(model: CrossEncoder, rows: list[Row]) -> float:
    """NDCG@10, computed where the scores are."""
    pairs = [(row["query"], document) for row in rows for document in row["documents"]]
    scores = model.predict(
        pairs, batch_size=256, activation_fn=nn.Identity(), convert_to_tensor=True, show_progress_bar=False
    )
    grades = torch.tensor([grade for row in rows for grade in row["labels"]], device=scores.device)
    offsets = [0, *accumulate(len(row["labels"]) for row in rows)]
    return float(metric("ndcg@10")(scores, grades, offsets=offsets))


def train_by_trainer(model: CrossEncoder, rows: list[Row], epochs: int, rate: float, folder: str) -> None:
    """Train in the loop of sentence-transformers."""
    from datasets import Dataset
    from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments

    arguments = CrossEncoderTrainingArguments(
        output_dir=folder,
        num_train_epochs=epochs,
        per_device_train_batch_size=BATCH,
        learning_rate=rate,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        use_cpu=model.device.type == "cpu",
        seed=0,
    )
    CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=Dataset.from_list(rows), loss=RankingLoss(model)
    ).train()


def train_by_hand(model: CrossEncoder, rows: list[Row], epochs: int, rate: float) -> None:
    """Train in a plain loop, with the trainer's optimiser and falling rate."""
    loss, rng = RankingLoss(model), np.random.default_rng(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    steps = epochs * math.ceil(len(rows) / BATCH)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.0, total_iters=steps)
    model.train()
    for _ in range(epochs):
        order = rng.permutation(len(rows))
        for first in range(0, len(rows), BATCH):
            batch = [rows[i] for i in order[first : first + BATCH]]
            inputs = [[row["query"] for row in batch], [row["documents"] for row in batch]]
            optimiser.zero_grad()
            loss(inputs, [torch.tensor(row["labels"]) for row in batch]).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
    model.eval()


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default=None, help="default: a GPU where there is one")
    parser.add_argument("--queries", type=int, default=400, help="training queries")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate")
    parser.add_argument("--plain", action="store_true", help="a plain loop instead of CrossEncoderTrainer")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> tuple[float, float]:
    """Train; give NDCG@10 on test queries before and after."""
    options, console = read_options(arguments), Console()
    missing = [name for name in ("datasets", "accelerate") if find_spec(name) is None]
    if missing:
        console.print(f"CrossEncoderTrainer needs {' and '.join(missing)}: training in a plain loop")
    torch.manual_seed(0)
    corpus, test = make_corpus(options.queries, seed=0), make_corpus(max(options.queries // 4, 1), seed=1)
    with tempfile.TemporaryDirectory() as folder:
        model = small_bert(Path(folder) / "model", options.device)
        before = quality(model, test)
        if missing or options.plain:
            train_by_hand(model, corpus, options.epochs, options.rate)
        else:
            train_by_trainer(model, corpus, options.epochs, options.rate, str(Path(folder) / "out"))
        after = quality(model, test)
    console.print(f"NDCG@10 on {len(test)} test queries: {before:.4f} before, {after:.4f} after training")
    return before, after


if __name__ == "__main__":
    main()
