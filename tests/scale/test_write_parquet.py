"""What becomes Parquet keeps its rows; queries are whole, memory is bounded, and failures leave nothing."""

import bz2
import errno
import gzip
import lzma
import os
import re
import signal
import subprocess
import sys
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet
from scipy.sparse import coo_array, csc_array, csr_array

from concordant.data.io import read_letor, read_table, write_letor
from concordant.data.labels import RankingData
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    GradeError,
    LabelError,
    MalformedLineError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
)
from concordant.scale import scan_letor, scan_parquet, write_parquet
from concordant.scale.convert import layout, row_sources, source_kinds
from concordant.scale.convert import write_parquet as sorting
from concordant.scale.scan import letor_scan, row_groups
from concordant.scale.scan.scan import IN_FLIGHT
from tests.helpers.scan_checks import check_scan, ranking_rows, whole

pytestmark = pytest.mark.once


def frame_of(columns, rows=slice(None)):
    features = {f"f{number + 1}": columns["X"][rows, number] for number in range(columns["X"].shape[1])}
    return {
        "qid": columns["qid"][rows],
        "grade": columns["y"][rows],
        "docid": columns["docid"][rows],
        **features,
    }


def data_of(columns, rows=slice(None)):
    return RankingData(columns["X"][rows], columns["y"][rows], columns["qid"][rows], columns["docid"][rows])


def write_csv(columns, path, delimiter=","):
    pd.DataFrame(frame_of(columns)).to_csv(path, sep=delimiter, index=False)
    return path


def write_many(columns, path):
    """Row groups that cut queries."""
    parquet.write_table(pa.table(frame_of(columns)), path, row_group_size=2)
    return path


def write_feather(columns, path):
    feather.write_feather(pa.table(frame_of(columns)), path, chunksize=3)
    return path


def folder_of(columns, folder):
    table, cut = pa.table(frame_of(columns)), len(columns["y"]) // 2
    folder.mkdir()
    parquet.write_table(table.slice(0, cut), folder / "0.parquet")
    parquet.write_table(table.slice(cut), folder / "1.parquet")
    return folder


def pieces(columns, make):
    """Pieces of three rows and fewer, given once only."""
    return (make(columns, slice(first, first + 3)) for first in range(0, len(columns["y"]), 3))


SOURCES = {
    "ranking data": lambda columns, _: data_of(columns),
    "pandas": lambda columns, _: pd.DataFrame(frame_of(columns)),
    "polars, lazy": lambda columns, _: pl.DataFrame(frame_of(columns)).lazy(),
    "pyarrow": lambda columns, _: pa.table(frame_of(columns)),
    "parquet": lambda columns, folder: write_many(columns, folder / "a.parquet"),
    "folder": lambda columns, folder: folder_of(columns, folder / "parts"),
    "feather": lambda columns, folder: write_feather(columns, folder / "a.feather"),
    "pieces": lambda columns, _: pieces(columns, data_of),
    "frames": lambda columns, _: pieces(columns, lambda *arguments: pa.table(frame_of(*arguments))),
    "batches": lambda columns, _: pa.table(frame_of(columns)).to_batches(max_chunksize=2),
}


def together(ids):
    """Whether the rows of each query stand together."""
    runs = [query for query, before in zip(ids, [None, *ids], strict=False) if query != before]
    return len(runs) == len(set(ids))


def check_file(path, columns, most):
    """Row groups are whole queries, as many as fit; rows are in their old order, or by query."""
    opened = parquet.ParquetFile(path)
    groups = [opened.read_row_group(number) for number in range(opened.num_row_groups)]
    ids_by_group = [group.column("qid").to_pylist() for group in groups]
    for ids, coming in pairwise([*ids_by_group, []]):
        assert together(ids)
        assert len(ids) * columns["X"].strides[0] <= most or len(set(ids)) == 1
        if coming:
            more = len(ids) + coming.count(coming[0])
            assert more * columns["X"].strides[0] > most  # the next query would not have fitted
            assert not set(ids) & set(coming)
    qid = whole(columns["qid"]).tolist()
    order = range(len(qid)) if together(qid) else sorted(range(len(qid)), key=lambda row: (qid[row], row))
    assert [query for ids in ids_by_group for query in ids] == [qid[row] for row in order]
    written = [docid for group in groups for docid in group.column("docid").to_pylist()]
    assert written == [str(columns["docid"][row]) for row in order]


def small_steps(patch, chunk=48, spills=4, merged=2):
    """Everything happens in little steps, so that little sets go all the ways that large ones go."""
    patch.setattr(row_sources, "CHUNK_BYTES", chunk)
    patch.setattr(sorting, "MOST_SPILLS", spills)
    patch.setattr(layout, "MERGED_AT_ONCE", merged)
    patch.setattr(source_kinds, "PIECE", 50)


def without_documents(patch):
    """Of document ids nobody counts the bytes, so that as many rows fit whatever is known of them."""
    patch.setattr(row_groups, "CHARACTER", 0)
    patch.setattr(layout, "UNKNOWN_DOCID", 0)


@settings(max_examples=60)
@given(ranking_rows(), st.sampled_from(list(SOURCES)), st.sampled_from([1, 60, 1 << 20]), st.booleans())
def test_any_source_keeps_its_rows(tmp_path_factory, columns, source, row_group, tight):
    folder = tmp_path_factory.mktemp("convert")
    columns = {**columns, "sample_weight": None}
    longest, width = np.unique(columns["qid"], return_counts=True)[1].max(), columns["X"].strides[0]
    memory = IN_FLIGHT * int(longest) * (width + 48) if tight else 1 << 30
    with pytest.MonkeyPatch.context() as patch:
        small_steps(patch)
        without_documents(patch)
        given_source = SOURCES[source](columns, folder)
        scan = write_parquet(given_source, folder / "out.parquet", row_group=row_group, memory=memory)
        check_scan(scan, columns)
    check_file(folder / "out.parquet", columns, min(row_group, memory // IN_FLIGHT // (width + 48) * width))
    names = {"a.parquet", "a.feather", "parts", "out.parquet"}
    assert {path.name for path in folder.iterdir()} <= names  # no file is left beside it


def test_the_checks_reject_a_wrong_file(tmp_path):
    columns = {
        "qid": np.array([2, 1, 2, 3]),
        "y": np.arange(4.0),
        "X": np.arange(4.0)[:, None],
        "docid": np.array(list("abcd")),
    }
    path = tmp_path / "a.parquet"
    for order, rows in [
        ([1, 0, 2, 3], (2, 2)),  # query 2 is cut
        ([1, 0, 2, 3], (1, 2, 1)),  # the first two row groups would have fitted into one
        ([1, 2, 0, 3], (3, 1)),  # the rows of query 2 have changed places
        ([0, 1, 2, 3], (4,)),  # as it was, though not together
    ]:
        table, edges = pa.table(frame_of(columns, order)), np.cumsum([0, *rows])
        with parquet.ParquetWriter(path, table.schema) as writer:
            for first, last in pairwise(edges.tolist()):
                writer.write_table(table.slice(first, last - first))
        with pytest.raises(AssertionError):
            check_file(path, columns, 24)


def test_text_in_all_its_forms(tmp_path):
    rng = np.random.default_rng(0)
    columns = {
        "qid": rng.integers(0, 9, 60),
        "y": rng.integers(0, 5, 60).astype(float),
        "X": rng.normal(size=(60, 3)) * (rng.random((60, 3)) < 0.7),
        "docid": np.array([f"d{row}" for row in range(60)]),
    }
    columns["X"][0, 2] = 1.0
    write_letor(tmp_path / "a.txt", columns["X"], columns["y"], columns["qid"], docid=columns["docid"])
    text = (tmp_path / "a.txt").read_bytes()
    for suffix, pack in [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]:
        (tmp_path / f"a.txt{suffix}").write_bytes(pack(text))
    with pytest.MonkeyPatch.context() as patch:
        small_steps(patch)
        for suffix in ("", ".gz", ".xz", ".bz2"):
            check_scan(write_parquet(tmp_path / f"a.txt{suffix}", tmp_path / "o.parquet"), columns)
    scan = write_parquet([tmp_path / "a.txt", tmp_path / "a.txt.gz"], tmp_path / "o.parquet", dtype="float32")
    both = {name: np.concatenate([values, values]) for name, values in columns.items()}
    check_scan(scan, {**both, "X": both["X"].astype(np.float32)})
    assert scan.feature_names == ("f1", "f2", "f3")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz"])
def test_text_tables(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(row_sources, "CHUNK_BYTES", 48)
    columns = {
        "qid": np.array(["007", "7", "007", "x,y"]),
        "y": np.array([1.0, 0, 2, 1]),
        "X": np.array([[1, 0.1], [2, 1e300], [3, -4], [4, 5]]),
        "docid": np.array(["1", "01", "a b", "c"]),
    }
    path = write_csv(columns, tmp_path / f"a{suffix}", "\t" if suffix == ".tsv" else ",")
    check_scan(write_parquet(path, tmp_path / "o.parquet"), columns)
    data = read_table(path)
    check_scan(scan_parquet(tmp_path / "o.parquet"), {**columns, "X": data.X, "qid": data.qid})
    numbers = {**columns, "qid": np.array(["10", "9", "10", "8"])}
    scan = write_parquet(write_csv(numbers, tmp_path / "n.csv"), tmp_path / "o.parquet")
    assert parquet.read_schema(tmp_path / "o.parquet").field("qid").type == pa.int64()
    check_scan(scan, numbers)


def test_whole_numbers_may_become_fractions_far_down(tmp_path, monkeypatch):
    """The first block of a text table does not say what the others hold."""

    monkeypatch.setattr(source_kinds, "BLOCK", 1 << 10)
    rows = [f"{row // 10},1,{row},true" for row in range(400)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["qid,grade,x,yes", *rows, "40,2,0.5,false", ""]))
    X = np.concatenate([rows.X for rows in write_parquet(path, tmp_path / "o.parquet")])
    assert X[-1].tolist() == [0.5, 0.0]
    assert X[7].tolist() == [7.0, 1.0]
    path.write_text("\n".join(["qid,grade,x,yes", *rows, "40,2,much,false", ""]))
    with pytest.raises(MalformedLineError, match=r"a\.csv, line 402: .*'much'"):
        write_parquet(path, tmp_path / "o.parquet")
    path.write_text("\n".join(["qid,grade,x,yes", *rows, "40,2,,false", ""]))
    with pytest.raises(NonFiniteError, match=r"a\.csv: column 'x' is nan at row 400 "):
        write_parquet(path, tmp_path / "o.parquet")


def test_a_scan_is_a_source(tmp_path, monkeypatch):
    monkeypatch.setattr(row_sources, "CHUNK_BYTES", 16)
    lines = ["1 qid:1 1:0.1 3:2 # a", "2 qid:1 1:0.2", "0 qid:2 2:0.3 # c"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    data = read_letor(tmp_path / "a.txt")
    columns = {"qid": data.qid, "y": data.y, "X": data.X, "docid": data.docid}
    text = write_parquet(scan_letor(tmp_path / "a.txt"), tmp_path / "a.parquet")
    check_scan(text, columns)
    again = write_parquet(text, tmp_path / "b.parquet", row_group=1, dtype="float32")
    assert len(again.parts) == 2
    check_scan(again, {**columns, "X": columns["X"].astype(np.float32)})
    with pytest.raises(ParameterError, match="grade was given, but a scan already names its columns"):
        write_parquet(text, tmp_path / "b.parquet", grade="y")


def test_names_and_weights_stay(tmp_path):
    table = pa.table(
        {
            "q": ["b", "a", "b"],
            "rel": [1, 0, 2],
            "w": [1.0, 2, 3],
            "v": [5, 4, 5],
            "x": [0.5, 1, 2],
            "name": list("xyz"),
        }
    )
    roles = {"qid": "q", "docid": "name", "sample_weight": "w", "query_weight": "v"}
    scan = write_parquet(table, tmp_path / "a.parquet", **roles)
    assert parquet.read_schema(tmp_path / "a.parquet").names == ["q", "rel", "name", "w", "v", "x"]
    rows = next(iter(scan))
    assert rows.docid.tolist() == ["y", "x", "z"]
    assert rows.sample_weight.tolist() == [2, 1, 3]
    assert scan.index.weights.tolist() == [4, 5]
    twice = write_parquet(scan, tmp_path / "b.parquet")
    assert parquet.read_table(tmp_path / "b.parquet").equals(parquet.read_table(tmp_path / "a.parquet"))
    assert twice.weighted
    named = write_parquet(
        data_of(DATA), tmp_path / "c.parquet", qid="q", grade="rel", features=["bm25", "age"]
    )
    assert parquet.read_schema(tmp_path / "c.parquet").names == ["q", "rel", "docid", "bm25", "age"]
    assert named.feature_names == ("bm25", "age")


DATA = {
    "qid": np.array([2, 1, 2]),
    "y": np.array([1.0, 0, 2]),
    "X": np.array([[1.0, 2], [3, 4], [5, 6]]),
    "docid": np.array(list("abc")),
}


def with_value(name, row, value):
    table = pa.table(frame_of(DATA)).to_pandas().astype({name: object})
    table.loc[row, name] = value
    return table


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"features": ["qid", "b"]}, "qid"),
        ({"features": ["a", "a"]}, "a"),
        ({"qid": "f1"}, "f1"),
        ({"grade": "f2"}, "f2"),
        ({"qid": "grade"}, "grade"),
        ({"docid": "qid"}, "qid"),
    ],
)
@pytest.mark.parametrize("kind", ["data", "text", "pieces"])
def test_columns_of_a_source_without_names_get_different_ones(tmp_path, options, name, kind):
    source = data_of(DATA) if kind == "data" else iter([data_of(DATA)])
    if kind == "text":
        source = tmp_path / "a.txt"
        source.write_text("1 qid:5 1:2 2:7 # a\n0 qid:5 1:3 # b\n")
    with pytest.raises(LabelError, match=f"two columns would be called '{name}'"):
        write_parquet(source, tmp_path / "a.parquet", **options)
    assert not (tmp_path / "a.parquet").exists()


@pytest.mark.parametrize(
    ("name", "header"),
    [("a.csv", "qid,grade,a,a"), ("b.csv", "qid,qid,grade,a"), ("c.feather", "qid,grade,a,a")],
)
def test_columns_that_are_ambiguous_or_unreadable_are_refused(tmp_path, name, header):
    names = header.split(",")
    if name.endswith("csv"):
        (tmp_path / name).write_text(f"{header}\n1,0,2,3\n")
    else:
        feather.write_feather(pa.table([pa.array([1.0])] * 4, names=names), tmp_path / name)
    with pytest.raises(LabelError, match=f"{name}: two columns are called '{max(names, key=names.count)}'"):
        write_parquet(tmp_path / name, tmp_path / "o.parquet")
    (tmp_path / "d.csv").write_bytes("qid,grade,\u00e9\n1,0,1\n".encode("latin1"))
    with pytest.raises(ConcordantError, match=r"d\.csv: cannot be read as a table: .*utf-8"):
        write_parquet(tmp_path / "d.csv", tmp_path / "o.parquet")


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (lambda: with_value("f1", 2, np.nan), NonFiniteError, "column 'f1' is nan at row 2 (1"),
        (lambda: with_value("f1", 2, "x"), NotNumericError, "column 'f1' must be numeric"),
        (lambda: with_value("grade", 1, -1), GradeError, "grade -1 at row 1 is negative"),
        (lambda: with_value("qid", 1, None), LabelError, "column 'qid' has no id at row 0"),
        (
            lambda: [data_of(DATA), with_value("f2", 1, np.inf)],
            NonFiniteError,
            "piece 1: column 'f2' is inf at row 1 (",
        ),
        (
            lambda: [data_of(DATA), pa.table(frame_of(DATA)).drop_columns("f2")],
            LabelError,
            "piece 1 has other columns",
        ),
        (
            lambda: [data_of({**DATA, "qid": DATA["docid"]}), data_of(DATA)],
            LabelError,
            "piece 1: query ids are int64",
        ),
        (list, EmptyDataError, "the source has no rows"),
        (lambda: pa.table(frame_of(DATA)).slice(0, 0), EmptyDataError, "has no rows"),
        (lambda: 7, ParameterError, "or several frames, got int"),
        (lambda: [1, 2], NotNumericError, "piece 0: frame must be numeric, but it is a int"),
        (lambda: data_of({**DATA, "y": np.zeros(2)}), ConcordantError, "grade has 2 entries, X has 3 rows"),
        (lambda: data_of({**DATA, "X": np.zeros((3, 0))}), LabelError, "the source has no features"),
        (lambda: ["a.csv", "a.parquet"], LabelError, "a.csv and a.parquet are of different kinds"),
        (lambda: "a.parquet.gz", ParameterError, "compress themselves"),
    ],
)
def test_bad_sources_are_refused_and_leave_nothing(tmp_path, monkeypatch, source, error, words):
    monkeypatch.setattr(row_sources, "CHUNK_BYTES", 16)  # a row at a time: rows are counted on
    with pytest.raises(error) as caught:
        write_parquet(source(), tmp_path / "a.parquet")
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"compression": "rar"}, "compression must be 'snappy'"),
        ({"dtype": "int8"}, "'float32', 'float64' or None"),
        ({"row_group": 0}, "row_group must be a number of bytes > 0, got 0"),
        ({"verbose": "yes"}, "got 'yes'"),
        ({"zero_based": True}, "applies to LETOR text only"),
        ({"n_features": 3}, "applies to LETOR text only"),
        ({"sample_weight": "w"}, "None for a source without that column"),
        ({"features": ["one"]}, "2 names"),
        ({"memory": IN_FLIGHT * 31}, "2 rows"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, words):
    with pytest.raises(ParameterError) as caught:
        write_parquet(data_of(DATA), tmp_path / "a.parquet", **options)
    assert words in str(caught.value)
    with pytest.raises(ParameterError, match=r"ends in \.parquet"):
        write_parquet(data_of(DATA), tmp_path / "a.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_is_too_long_is_named(tmp_path, monkeypatch):
    """Two rows of two doubles, a grade, and 40 bytes to work on each."""
    without_documents(monkeypatch)
    with pytest.raises(ParameterError, match=r"times the largest query.* Query 2 has 2 rows"):
        write_parquet(data_of(DATA), tmp_path / "a.parquet", memory=IN_FLIGHT * 127)
    assert write_parquet(data_of(DATA), tmp_path / "a.parquet", memory=IN_FLIGHT * 128).n_rows == 3


@pytest.mark.parametrize("weights", [[1, 1, 2], [0, 0, 0], [1, 1, -1]])
def test_query_weights_are_checked_before_the_file_appears(tmp_path, weights):
    table = pa.table({**frame_of(DATA), "w": np.array(weights, dtype=float)})
    with pytest.raises(ConcordantError):
        write_parquet(table, tmp_path / "a.parquet", query_weight="w")
    assert list(tmp_path.iterdir()) == []
    if weights == [1, 1, 2]:
        parquet.write_table(table, tmp_path / "b.parquet")
        with pytest.raises(LabelError, match=r"b\.parquet: query_weight of query 2 is both 1 and 2"):
            write_parquet(tmp_path / "b.parquet", tmp_path / "a.parquet", query_weight="w")


def test_precision(tmp_path):
    single = {**DATA, "X": DATA["X"].astype(np.float32)}
    path = tmp_path / "a.parquet"
    assert next(iter(write_parquet(data_of(single), path))).X.dtype == np.float32
    assert next(iter(write_parquet(data_of(single), path, dtype=np.float64))).X.dtype == np.float64
    exact = write_parquet([data_of(single), data_of(DATA)], path)  # later doubles that are exact in it
    assert next(iter(exact)).X.dtype == np.float32
    with pytest.raises(
        NonFiniteError, match=r"piece 1: column 'f1' is 0\.1 at row 0 .*\n.*dtype='float64', or"
    ):
        write_parquet([data_of(single), data_of({**DATA, "X": np.full((3, 2), 0.1)})], path)
    with pytest.raises(NonFiniteError, match=r"column 'f2' is 1e\+300 at row 1 .*\n.*give dtype='float64'\."):
        write_parquet(data_of({**DATA, "X": np.array([[0.1, 1], [1, 1e300], [1, 1]])}), path, dtype="float32")
    rounded = write_parquet(data_of({**DATA, "X": np.full((3, 2), 0.1)}), path, dtype="float32")
    assert next(iter(rounded)).X[0, 0] == np.float32(0.1)


@pytest.mark.parametrize("kind", [coo_array, csc_array])
def test_sparse_matrices_of_any_kind(tmp_path, kind):
    data = RankingData(kind(DATA["X"]), DATA["y"], DATA["qid"])
    check_scan(write_parquet(data, tmp_path / "a.parquet"), {**DATA, "docid": None})


def test_pieces_may_be_empty_and_have_ids_of_several_widths(tmp_path):
    frame = pd.DataFrame(frame_of(DATA))
    narrow = frame.astype({"qid": np.int16})
    frames = [frame[:0], narrow[:1], frame[:0], frame[1:].astype({"qid": np.uint64})]
    check_scan(write_parquet(frames, tmp_path / "a.parquet"), DATA)
    with pytest.raises(EmptyDataError):
        write_parquet([frame[:0]], tmp_path / "a.parquet")
    with pytest.raises(LabelError, match=r"piece 1: query ids are double, and int64 in the pieces before"):
        write_parquet([frame, frame.astype({"qid": float})], tmp_path / "a.parquet")


def test_a_target_that_cannot_be_is_refused_before_any_work(tmp_path):
    def source():
        raise RuntimeError("nobody may ask")
        yield

    (tmp_path / "a.parquet").mkdir()
    with pytest.raises(IsADirectoryError, match=r"'\S*a\.parquet'"):
        write_parquet(source(), tmp_path / "a.parquet")
    with pytest.raises(FileNotFoundError, match=r"its folder is not there: '\S*absent/o\.parquet'"):
        write_parquet(source(), tmp_path / "absent" / "o.parquet")


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(row_sources.Spill, "write", full)
    with pytest.raises(OSError, match=r"No space left on device; there must be room .*: '\S*o\.parquet'"):
        write_parquet(iter([data_of(DATA)]), tmp_path / "o.parquet")


def test_sparse_rows_become_dense_some_at_a_time(tmp_path, monkeypatch):
    X = np.diag(np.arange(1.0, 41))
    data = RankingData(csr_array(X), np.zeros(40), np.arange(40) // 2)
    columns = {"qid": data.qid, "y": data.y, "X": X}
    check_scan(write_parquet(data, tmp_path / "a.parquet"), columns)
    write_letor(tmp_path / "a.txt", csr_array(X), data.y, data.qid)
    monkeypatch.setattr(letor_scan, "DENSER", 0)
    check_scan(write_parquet(tmp_path / "a.txt", tmp_path / "b.parquet"), columns)


def test_a_flipped_bit_is_found_wherever_the_file_is_read(tmp_path):
    """Half way through the file are features, which any bits would be."""
    path, rng = tmp_path / "a.parquet", np.random.default_rng(0)
    data = RankingData(rng.normal(size=(500, 2)), np.zeros(500), np.arange(500) // 5)
    scan = write_parquet(data, path, row_group=4000)
    contents = bytearray(path.read_bytes())
    contents[len(contents) // 2] ^= 1
    path.write_bytes(contents)
    with pytest.raises(ConcordantError, match=r"a\.parquet, row group 1: cannot be read .*checksum"):
        list(scan)
    for read in (read_table, lambda path: write_parquet(path, tmp_path / "b.parquet")):
        with pytest.raises(ConcordantError, match=r"a\.parquet: cannot be read .*checksum"):
            read(path)


def test_other_contents_of_the_same_size_are_seen(tmp_path):
    """Doubles that cannot be compressed take the same bytes, whatever they are; the footer has their sum."""
    path, rng = tmp_path / "a.parquet", np.random.default_rng(0)
    scans, sizes = [], []
    for _ in range(2):
        data = RankingData(rng.normal(size=(500, 2)), np.zeros(500), np.arange(500) // 5)
        scans.append(write_parquet(data, path))
        sizes.append(path.stat().st_size)
    assert sizes[0] == sizes[1]
    assert next(iter(scans[1])).X.shape == (500, 2)
    with pytest.raises(ConcordantError, match="it changed since it was scanned: it has other contents"):
        list(scans[0])


def test_damaged_files_are_named(tmp_path):
    write_letor(tmp_path / "a.txt.gz", DATA["X"], DATA["y"], DATA["qid"])
    whole_file = (tmp_path / "a.txt.gz").read_bytes()
    (tmp_path / "a.txt.gz").write_bytes(whole_file[:-9])
    with pytest.raises(OSError, match=r"a\.txt\.gz: cannot be decompressed"):
        write_parquet(tmp_path / "a.txt.gz", tmp_path / "o.parquet")
    packed = gzip.compress(b"qid,grade,x\n" + b"1,1,0.123456789\n" * 1000)
    (tmp_path / "a.csv.gz").write_bytes(packed[:-9])
    with pytest.raises(OSError, match=r"a\.csv\.gz: cannot be decompressed"):
        write_parquet(tmp_path / "a.csv.gz", tmp_path / "o.parquet")
    for name in ("a.parquet", "a.feather"):
        (tmp_path / name).write_bytes(b"nothing of the kind, of some length")
        with pytest.raises(ConcordantError, match=rf"{name}: cannot be read as"):
            write_parquet(tmp_path / name, tmp_path / "o.parquet")
    (tmp_path / "a.csv").write_bytes(b"")
    with pytest.raises(EmptyDataError, match=r"a\.csv"):
        write_parquet(tmp_path / "a.csv", tmp_path / "o.parquet")
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n1 qid:1 1:x\n")
    with pytest.raises(MalformedLineError, match=r"a\.txt, line 2, column 11"):
        write_parquet(tmp_path / "a.txt", tmp_path / "o.parquet")
    for name in ("b.txt", "b.txt.zst", "b.parquet", "b.csv", "b.feather"):
        with pytest.raises(FileNotFoundError):
            write_parquet(tmp_path / name, tmp_path / "o.parquet")
    assert not (tmp_path / "o.parquet").exists()


@pytest.mark.parametrize("reason", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("step", ["reading", "sorting", "writing"])
def test_an_interrupted_conversion_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, reason, step):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"old")

    def failing(*_arguments, **_options):
        raise reason("stopped")

    def source():
        for number in range(4):
            if step == "reading" and number == 3:
                failing()
            yield data_of({**DATA, "qid": DATA["qid"] + number})

    if step == "sorting":
        monkeypatch.setattr(sorting, "concatenate_sorted", failing)
    if step == "writing":
        monkeypatch.setattr(sorting.ParquetForm, "largest_weight", failing)
    with pytest.raises(reason):
        write_parquet(source(), path, memory=IN_FLIGHT * 1000)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


KILLED = """
import sys, time
import numpy as np
import pyarrow as pa
from concordant.scale import write_parquet
from concordant.scale.convert import write_parquet as writing
def slow(*arguments):
    print("slow", flush=True)
    time.sleep(60)
if sys.argv[2] == "sorting":
    writing.concatenate_sorted = slow
else:
    writing.ParquetForm.largest_weight = slow
ids = np.arange(1000) % 100
write_parquet(pa.table({"qid": ids, "grade": ids, "x": ids * 1.0}), sys.argv[1], memory=6000)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="files without a name are of POSIX systems")
@pytest.mark.parametrize("step", ["sorting", "writing"])
def test_a_killed_conversion_leaves_no_rows_that_are_read(tmp_path, step):
    """Temporary files have no name; what was to become the file has one that no scan of the folder reads."""
    command = [sys.executable, "-c", KILLED, str(tmp_path / "a.parquet"), step]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "slow\n"
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    left = [path.name for path in tmp_path.iterdir()]
    assert len(left) == (step == "writing")
    assert all(re.fullmatch(r"\.a\.[0-9a-f]{8}\.tmp\.parquet", name) for name in left)
    with pytest.raises(EmptyDataError):
        scan_parquet(tmp_path)


def test_rows_go_to_files_many_at_a_time(tmp_path, monkeypatch):
    """They go there several times in so little memory; as they came, few would be written at a time."""
    rows, write = [], row_sources.Spill.write
    monkeypatch.setattr(
        row_sources.Spill, "write", lambda spill, table: rows.append(len(table)) or write(spill, table)
    )
    ids = np.random.default_rng(0).integers(0, 500, 10_000)
    table = pa.table({"qid": ids, "grade": ids * 0, "x": ids * 1.0})
    write_parquet(table, tmp_path / "a.parquet", memory=IN_FLIGHT * 56 * 100)
    assert sum(rows) > 2 * len(ids)
    assert np.mean(rows) > sorting.SCATTERED / 2


POOLS = []  # kept: Arrow's threads free some buffers after the call, and would do so in a pool that is gone


def peak_of(job):
    """Most bytes alive at a time: of Arrow by a pool that counts, of numpy and Python by tracemalloc."""
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        job()
        return pool.max_memory() + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


@pytest.mark.parametrize("width", [1, 20])
def test_memory_is_bounded_where_features_are_few_and_document_ids_long(tmp_path, width):
    """The budget is what rows take in all; when features alone were counted, one was exceeded ten times."""
    n_rows, path = 100_000, tmp_path / "a.parquet"
    docid = [f"https://example.com/documents/{row:010d}" for row in range(n_rows)]
    columns = {f"f{k}": np.zeros(n_rows, dtype=np.float32) for k in range(width)}
    ids = np.arange(n_rows) // 20
    write_parquet(pa.table({"qid": ids, "grade": ids * 0, "docid": docid, **columns}), path, memory="8 MiB")
    scan = scan_parquet(path, memory="8 MiB")
    assert len(scan.parts) > 9
    least = IN_FLIGHT * max(part.nbytes for part in scan.with_docid().parts)
    assert 0.3 * least < peak_of(lambda: [rows.X.sum() for rows in scan]) < least
    assert IN_FLIGHT * max(part.nbytes for part in scan.parts) < 0.6 * least  # what a fit reads
    with pytest.raises(ParameterError, match="memory"):
        list(scan_parquet(path, memory=least - 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "pieces", "text"])
def test_memory_is_bounded(tmp_path, monkeypatch, kind):
    """Rows of three times the budget, in the worst order; with a budget for all the same check fails."""
    n_rows, width, memory = 200_000, 8, 4 << 20
    monkeypatch.setattr(layout, "MERGED_AT_ONCE", 1 << 14)
    write_letor(tmp_path / "a.txt", DATA["X"], DATA["y"], DATA["qid"])
    write_parquet(tmp_path / "a.txt", tmp_path / "a.parquet")  # what is imported and compiled does not count
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.arange(n_rows) // 100)

    def frames():
        for first in range(0, n_rows, 5000):
            X = rng.integers(0, 9, (5000, width)).astype(np.float64)
            yield RankingData(X, np.zeros(5000), ids[first : first + 5000])

    source = frames()
    if kind == "parquet":
        table = pa.table({"qid": ids, "grade": ids * 0.0, **dict.fromkeys(map(str, range(width)), ids * 1.0)})
        source = tmp_path / "given.parquet"
        parquet.write_table(table, source, data_page_size=1024)
        del table
    if kind == "text":
        source = tmp_path / "given.txt"
        lines = "".join(f" {number + 1}:1" for number in range(width))
        source.write_text("".join(f"0 qid:{query}{lines}\n" for query in ids.tolist()))
    allowed, options = 1.5 * memory, {"row_group": "256 KiB"}
    assert peak_of(lambda: write_parquet(source, tmp_path / "a.parquet", memory=memory, **options)) < allowed
    if kind == "parquet":
        more = {"memory": 100 * memory, **options}
        assert peak_of(lambda: write_parquet(source, tmp_path / "b.parquet", **more)) > allowed
        assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_progress_is_shown_on_standard_error(tmp_path, capsys):
    write_parquet(data_of(DATA), tmp_path / "a.parquet")
    assert capsys.readouterr().err == ""
    write_parquet(data_of(DATA), tmp_path / "a.parquet", verbose=1)
    shown = capsys.readouterr()
    assert shown.out == ""
    for title in ("counting", "sorting", "writing"):
        assert title in shown.err


def test_a_file_can_be_rewritten_in_place(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table(frame_of(DATA)), path)
    check_scan(write_parquet(path, path), DATA)
    check_scan(write_parquet(scan_parquet(path), path), DATA)


def test_counting(monkeypatch):
    monkeypatch.setattr(layout, "MERGED_AT_ONCE", 3)
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 50, 400)
    counts = layout.count_rows(np.split(ids, [0, 7, 90, 91, 300]))
    expected = np.unique(ids, return_counts=True)
    assert counts.ids.tolist() == expected[0].tolist()
    assert counts.sizes.tolist() == expected[1].tolist()
    assert not counts.together
    assert layout.count_rows(np.split(np.sort(ids), [7, 90, 300])).together
    assert layout.count_rows([]) is None
