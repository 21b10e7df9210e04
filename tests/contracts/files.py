"""Every reader of files, each with small files that it reads."""

import io
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import concordant as cc
from tests.contracts.models import graded, paired
from tests.contracts.outcomes import unsound

LETOR = (
    b"2 qid:7 1:0.5 3:1 # docid = a\n0 qid:7 2:-1e-05 # docid = b inc = 1\n# so\n\n1 qid:9 1:3 2:4 3:5\n",
    b"\xef\xbb\xbf0 1:0.25 2:1e300\r\n4 1:-.5\t2:+7.\r\n3 2:0.1",
)
QRELS = (b"301 0 FR-1 2\n301 0 FR-2 -1\n302\t0  x  0\n", b"1 0 \xc3\xa9 1\r\n1 0 d2 0")
RUN = (b"301 Q0 FR-1 1 0.75 bm25\n301 Q0 FR-2 2 -1e-3 bm25\n302 Q0 x 1 7 bm25\n",)
TABLE = (
    b"qid,grade,bm25,docid\nq1,2,0.5,a\nq1,0,1.5,b\nq2,1,-3e-2,c\n",
    b'qid,y,"a ""b""",c\n1,0,1,2\n1,1,3.5,4\n',
)
VOTES = (b"left,right,outcome\na,b,left\nb,c,tie\nc,a,right\n", b"left,right,outcome\n1,2,-1\n2,3,0\n3,1,1\n")
ORDERS = (
    (
        b"# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n"
        b"# ALTERNATIVE NAME 3: c\n5: 1,2,3\n2: 3,1,2\n"
    ),
)
TIED = (ORDERS[0].replace(b"2: 3,1,2", b"2: 3,{1,2}"),)
GRAPH = (ORDERS[0].partition(b"5:")[0] + b"1,2,3.5\n2,3,1\n",)
SCORES = (b"0.5\n-1e-3\n7\n-inf\n", b"1\r\n2")
VALUES = (b"ranking,metric,convention,query,value\na,rr,,1,0.5\na,rr,,2,\nb,rr,,1,1\nb,rr,,2,0\n",)
CONFIG = (b'[data]\ntrain = "a"\ntest = "b"\n\n[model]\nkind = "linear"\nmetric = "ap"\nalpha = 0.1\n',)


@dataclass(frozen=True, eq=False)
class Reader:
    """A reader; `suffix` is that of its files, `seeds` are such files, `sound` judges what it gives."""

    name: str
    suffix: str
    read: Callable[[Path], Any]
    seeds: tuple[bytes, ...]
    sound: Callable[[Any], str] = unsound


def no_fault(_result):
    """Nothing is asked of it: NaN and infinity mean something there."""
    return ""


def aligned(data):
    """What is wrong with rows of several columns."""
    lengths = {len(column) for column in vars(data).values() if column is not None and np.ndim(column)}
    return f"columns of {lengths} rows" if len(lengths) > 1 else unsound(data)


def sparse_rows(path):
    """LETOR, compressed."""
    data = cc.read_letor(path, sparse=True)
    return data.X.data, data.X.indices, data.y


def config(path):
    """A configuration, and what it comes to."""
    from concordant.cli.runs.config import read_config, resolve_config

    return str(resolve_config(read_config(path)))


def scores(path):
    """A file of scores."""
    from concordant.cli.shared.judged_rankings import read_scores

    return read_scores(path)


def values(path):
    """A table that `evaluate -o` writes."""
    from concordant.cli.compare_models import read_values

    return read_values([path], None)


def votes(path):
    """Votes that `aggregate` reads."""
    from concordant.comparisons.aggregation.preference_matrix import read_votes

    return read_votes(path)


def binary_table(suffix):
    """A small Parquet or Feather file."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    table = pa.table({"qid": ["a", "a", "b"], "grade": [0, 1, 2], "x": [0.5, 1.5, -2.0], "z": [1, 2, 3]})
    stream = io.BytesIO()
    (parquet.write_table if suffix == ".parquet" else feather.write_feather)(table, stream)
    return stream.getvalue()


@cache
def small_models():
    """Small models, and what they were fitted to."""
    data, games = graded(), paired()
    return [
        (cc.LinearRanker("ndcg@3").fit(**data), data),
        (cc.Comparer(calibration=0).fit(**games), games),
    ]


def saved(model):
    """The bytes of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        cc.save(model, Path(folder, "m.concordant"))
        return Path(folder, "m.concordant").read_bytes()


def loaded(path):
    """What a model predicts."""
    model = cc.load(path)
    return model.predict(paired()["pairs"] if isinstance(model, cc.Comparer) else graded()["X"])


@cache
def model_predictions():
    """What the models of the files predict."""
    return [model.predict(data.get("X", data.get("pairs"))) for model, data in small_models()]


def as_before(predictions):
    """Where a changed file is read at all, the change was of no account."""
    return (
        ""
        if any(np.array_equal(predictions, expected) for expected in model_predictions())
        else "it predicts otherwise"
    )


def text_readers():
    """Readers of text."""
    return [
        Reader("read_letor", ".txt", cc.read_letor, LETOR, aligned),
        Reader("read_letor(sparse)", ".txt", sparse_rows, LETOR),
        Reader("read_qrels", ".qrels", cc.read_qrels, QRELS, aligned),
        Reader("read_run", ".run", cc.read_run, RUN, aligned),
        Reader("read_table(csv)", ".csv", cc.read_table, TABLE, aligned),
        Reader("read_comparisons", ".csv", cc.read_comparisons, VOTES),
        Reader("read_preflib(soc)", ".soc", cc.read_preflib, ORDERS),
        Reader("read_preflib(toi)", ".toi", cc.read_preflib, TIED),
        Reader("read_preflib(wmd)", ".wmd", cc.read_preflib, GRAPH),
        Reader("aggregate votes", ".csv", votes, VOTES, no_fault),
        Reader("scores", ".txt", scores, SCORES, no_fault),
        Reader("evaluate -o table", ".csv", values, VALUES, no_fault),
        Reader("configuration", ".toml", config, CONFIG, no_fault),
    ]


def binary_readers():
    """Readers of bytes: compressed text, tables, models."""
    import gzip

    return [
        Reader("read_letor(gz)", ".txt.gz", cc.read_letor, tuple(map(gzip.compress, LETOR)), aligned),
        Reader("read_table(parquet)", ".parquet", cc.read_table, (binary_table(".parquet"),), aligned),
        Reader("read_table(feather)", ".feather", cc.read_table, (binary_table(".feather"),), aligned),
        Reader("load", ".concordant", loaded, tuple(saved(model) for model, _ in small_models()), as_before),
    ]
