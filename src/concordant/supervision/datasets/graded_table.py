"""The graded sets of the table: LETOR, MSLR, Yahoo, Istella and smaller ones."""

from __future__ import annotations

from concordant.supervision.datasets import loaders
from concordant.supervision.datasets.checksums import CHECKSUMS
from concordant.supervision.datasets.dataset import Dataset, Layout, whole

__all__ = ["GRADED", "SUSHI", "SUSHI_FOLDERS", "SUSHI_TERMS"]

LETOR = "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
LETOR_TERMS = "Microsoft LETOR agreement: research use, no redistribution"
MSLR = "https://www.microsoft.com/en-us/research/project/mslr/"
YAHOO = "https://webscope.sandbox.yahoo.com/catalog.php?datatype=c (C14B)"
YAHOO_TERMS = "Yahoo Webscope agreement: academic research use"
ISTELLA = "http://quickrank.isti.cnr.it/istella-dataset/"
ISTELLA_TERMS = "Istella LETOR licence agreement: non-commercial use"
SUSHI = "https://www.kamishima.net/sushi/"
SUSHI_TERMS = "any research purpose, no redistribution without permission; cite Kamishima, KDD 2003"
SUSHI_FOLDERS = ("sushi", "sushi3-2016", "sushi3")


def splits(train: str, validation: str, test: str, folder: str = "") -> Layout:
    """Give one file per split; an empty name: the owner gives no such split."""
    named = (("train", train), ("validation", validation), ("test", test))
    return {split: (folder + name,) for split, name in named if name}


FOLDS = splits("train.txt", "vali.txt", "test.txt", folder="Fold{0}/")
OHSUMED_FOLDS = splits("trainingset.txt", "validationset.txt", "testset.txt", folder="Data/Fold{0}/")
PARTS: Layout = {
    "train": ("S{0}.txt", "S{1}.txt", "S{2}.txt"),
    "validation": ("S{3}.txt",),
    "test": ("S{4}.txt",),
}


def graded(
    name: str,
    title: str,
    source: str,
    licence: str,
    folders: tuple[str, ...],
    layouts: tuple[Layout, ...],
    size: tuple[int, int, int],
    grades: str,
    folds: int,
) -> Dataset:
    """Give an entry in LETOR format; `size` is queries, documents, features."""
    queries, documents, features = size
    return Dataset(
        name,
        title,
        "grades",
        source,
        licence,
        folders,
        layouts,
        loaders.read_letor_files,
        queries,
        documents,
        features,
        grades,
        folds,
        CHECKSUMS.get(name, {}),
    )


GRADED = (
    graded(
        "mq2007",
        "LETOR 4.0 MQ2007, supervised, query-level normalised",
        LETOR,
        LETOR_TERMS,
        ("MQ2007", "mq2007"),
        (FOLDS, PARTS),
        (1692, 69_623, 46),
        "0..2",
        5,
    ),
    graded(
        "mq2007-partial",
        "85.2 % of the documents of MQ2007: not comparable with published numbers",
        LETOR,
        LETOR_TERMS,
        ("mq2007-partial",),
        (PARTS,),
        (1692, 59_290, 46),
        "0..2",
        5,
    ),
    graded(
        "mq2008",
        "LETOR 4.0 MQ2008, supervised, query-level normalised",
        LETOR,
        LETOR_TERMS,
        ("MQ2008", "mq2008"),
        (FOLDS, PARTS),
        (784, 15_211, 46),
        "0..2",
        5,
    ),
    graded(
        "ohsumed",
        "LETOR 2.0 OHSUMED, features not normalised",
        LETOR,
        LETOR_TERMS,
        ("OHSUMED", "ohsumed"),
        (OHSUMED_FOLDS, PARTS),
        (106, 16_140, 25),
        "0..2",
        5,
    ),
    graded(
        "mslr-web10k",
        "MSLR-WEB10K: web search, a random third of MSLR-WEB30K",
        MSLR,
        "Microsoft Research licence: research use",
        ("MSLR-WEB10K", "mslr-web10k"),
        (FOLDS,),
        (10_000, 1_200_192, 136),
        "0..4",
        5,
    ),
    graded(
        "mslr-web30k",
        "MSLR-WEB30K: web search",
        MSLR,
        "Microsoft Research licence: research use",
        ("MSLR-WEB30K", "mslr-web30k"),
        (FOLDS,),
        (31_531, 3_771_125, 136),
        "0..4",
        5,
    ),
    *(
        graded(
            f"yahoo-set{number}",
            f"Yahoo! Learning to Rank Challenge, set {number}: features numbered up to 700 over both sets",
            YAHOO,
            YAHOO_TERMS,
            ("ltrc_yahoo", "yahoo"),
            (splits("train.txt", "valid.txt", "test.txt", folder=f"set{number}."),),
            (queries, documents, 700),
            "0..4",
            1,
        )
        for number, queries, documents in ((1, 29_921, 709_877), (2, 6330, 172_870))
    ),
    graded(
        "istella",
        "Istella LETOR, full: web search; train and test, no validation",
        ISTELLA,
        ISTELLA_TERMS,
        ("istella-letor", "istella"),
        (splits("train.txt", "", "test.txt", folder="full/"), splits("train.txt", "", "test.txt")),
        (33_018, 10_454_629, 220),
        "0..4",
        1,
    ),
    graded(
        "istella-s",
        "Istella-S LETOR: irrelevant documents sampled, about 103 documents a query",
        ISTELLA,
        ISTELLA_TERMS,
        ("istella-s-letor", "istella-s"),
        (
            splits("train.txt", "vali.txt", "test.txt", folder="sample/"),
            splits("train.txt", "vali.txt", "test.txt"),
        ),
        (33_018, 3_408_630, 220),
        "0..4",
        1,
    ),
    graded(
        "istella-x",
        "Istella-X LETOR, extended: about 2,700 documents a query",
        ISTELLA,
        ISTELLA_TERMS,
        ("istella-x-letor", "istella-x", "istella-X"),
        (splits("train.txt", "vali.txt", "test.txt"),),
        (10_000, 26_791_447, 220),
        "0..4",
        1,
    ),
    Dataset(
        name="lightgbm-lambdarank",
        title="LightGBM's lambdarank example: sparse features, no validation",
        kind="grades",
        source="GitHub microsoft/LightGBM examples/lambdarank at bae0b7ba953341a32b2a9c5c5c437a1b976f576f",
        licence="MIT",
        folders=("lightgbm-lambdarank", "lambdarank"),
        layouts=({"train": ("rank.train", "rank.train.query"), "test": ("rank.test", "rank.test.query")},),
        read=loaders.read_grouped,
        queries=251,
        documents=3773,
        features=300,
        grades="0..4",
        folds=1,
        checksums=CHECKSUMS["lightgbm-lambdarank"],
    ),
    Dataset(
        name="sushi",
        title="SUSHI set B scores: 10 of 100 items scored by each of 5,000 users, 4 is best",
        kind="grades",
        source=SUSHI,
        licence=SUSHI_TERMS,
        folders=SUSHI_FOLDERS,
        layouts=whole("sushi3b.5000.10.score", "sushi3.idata", "sushi3.udata"),
        read=loaders.read_sushi_scores,
        queries=5000,
        documents=50_000,
        features=17,
        grades="0..4",
        checksums=CHECKSUMS["sushi"],
    ),
)
