"""Tables become ranking data or comparisons, or the column and row at fault are named."""

import gzip
import lzma

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    GradeError,
    LabelError,
    MalformedLineError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    UnknownNameError,
)
from concordant.supervision.readers import from_frame, read_comparisons, read_table
from concordant.supervision.readers.tables import OUTCOMES
from concordant.supervision.scans import scan_parquet, write_parquet

COLUMNS = {
    "qid": ["q1", "q1", "q2"],
    "grade": [2, 0, 1],
    "docid": ["a", "b", "c"],
    "f1": [0.1, 2.0, -3.0],
    "f2": [1, 2, 3],
}
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table, lambda columns: pl.DataFrame(columns).lazy()]
FRAME_NAMES = ["pandas", "polars", "pyarrow", "lazy"]


def check_ranking(data):
    assert data.X.tolist() == [[0.1, 1.0], [2.0, 2.0], [-3.0, 3.0]]
    assert data.y.tolist() == [2.0, 0.0, 1.0]
    assert data.qid.tolist() == ["q1", "q1", "q2"]
    assert data.docid.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("frame", FRAMES, ids=FRAME_NAMES)
def test_frames(frame):
    check_ranking(from_frame(frame(COLUMNS)))
    assert from_frame(frame(COLUMNS), features=["f2"], docid="qid").X.tolist() == [[1.0], [2.0], [3.0]]


@pytest.mark.parametrize(
    "suffix", [".parquet", ".pq", ".feather", ".arrow", ".csv", ".csv.gz", ".csv.xz", ".tsv"]
)
def test_files(tmp_path, suffix):
    path, table = tmp_path / f"a{suffix}", pd.DataFrame(COLUMNS)
    if suffix in (".parquet", ".pq"):
        parquet.write_table(pa.table(COLUMNS), path)
    elif suffix in (".feather", ".arrow"):
        feather.write_feather(pa.table(COLUMNS), path)
    else:
        text = table.to_csv(index=False, sep="\t" if suffix == ".tsv" else ",").encode()
        pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
        path.write_bytes(pack(text))
    check_ranking(read_table(path))
    check_ranking(read_table(str(path)))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_csv_values_are_exact(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    path.write_text("qid,y,a\n" + "".join(f"1,0,{value!r}\n" for value in values))
    got = read_table(path).X[:, 0]
    assert got.tolist() == values


def with_column(**changes):
    return COLUMNS | changes


@pytest.mark.parametrize("frame", FRAMES, ids=FRAME_NAMES)
@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        (with_column(f1=["1", "x", "2"]), NotNumericError, "column 'f1' .* row 0 is '1'"),
        (with_column(f1=[1.0, None, 2.0]), NonFiniteError, r"column 'f1' is nan at row 1 \(1 "),
        (with_column(f1=[1.0, 2.0, float("inf")]), NonFiniteError, "column 'f1' is inf at row 2"),
        (with_column(grade=[1, None, 2]), NonFiniteError, "column 'grade' is nan at row 1"),
        (with_column(grade=["good", "bad", "bad"]), NotNumericError, "column 'grade'"),
        (with_column(grade=[0, 0, -1]), GradeError, "row 2"),
        (with_column(qid=["a", None, "b"]), LabelError, "column 'qid' has no id at row 1"),
        ({"query": [1], "grade": [1], "f": [1.0]}, UnknownNameError, "unknown column 'qid'.*f, grade, query"),
        ({"qid": [1], "f": [1.0]}, UnknownNameError, "unknown column 'grade'"),
    ],
)
def test_faults_name_column_and_row(frame, columns, error, words):
    with pytest.raises(error, match=f"(?s){words}"):
        from_frame(frame(columns))


@pytest.mark.parametrize("name", [None, "label of the row"])
def test_an_index_of_pandas_is_no_feature(tmp_path, name):
    frame = pd.DataFrame(COLUMNS).iloc[[0, 2]].set_axis([7, 3]).rename_axis(name)
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    assert read_table(path).X.tolist() == from_frame(pa.Table.from_pandas(frame)).X.tolist()
    assert read_table(path).X.tolist() == [[0.1, 1.0], [-3.0, 3.0]]
    for scan in (scan_parquet(path), write_parquet(path, tmp_path / "b.parquet")):
        assert scan.feature_names == ("f1", "f2")
    frame.reset_index(drop=True).set_index("qid").to_parquet(path)  # what is named is read
    assert read_table(path).qid.tolist() == scan_parquet(path).index.ids.tolist() == ["q1", "q2"]


def test_categories_are_read_by_their_text():
    data = from_frame(pd.DataFrame(COLUMNS).astype({"qid": "category"}))
    assert data.qid.tolist() == ["q1", "q1", "q2"]


def test_unreadable_files(tmp_path):
    (tmp_path / "a.csv").write_text("qid,grade,f\n1,2,3\n1,2\n")
    with pytest.raises(MalformedLineError) as caught:
        read_table(tmp_path / "a.csv")
    assert caught.value.line == 3
    (tmp_path / "b.csv").write_text("")
    with pytest.raises(EmptyDataError):
        read_table(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text("qid,grade,f\n")
    with pytest.raises(EmptyDataError):
        read_table(tmp_path / "c.csv")
    with pytest.raises(UnknownNameError, match="parquet"):
        read_table(tmp_path / "a.xls")
    with pytest.raises(ParameterError, match="uncompressed"):
        read_table(tmp_path / "a.parquet.gz")
    with pytest.raises(NotNumericError, match="not a table"):
        from_frame([1, 2])


def comparisons(outcome, **options):
    table = pa.table({"left": ["a"] * len(outcome), "right": ["b"] * len(outcome), "outcome": outcome})
    return read_comparisons(table, **options).outcome.tolist()


def test_outcomes():
    assert comparisons(list(OUTCOMES)) == list(OUTCOMES.values())
    assert comparisons([" Left ", "TIE", "model_b", "1/2-1/2"]) == [-1, 0, 1, 0]
    assert comparisons([-1, 0, 1]) == [-1, 0, 1]
    assert comparisons([-1.0, 0.0, 1.0]) == [-1, 0, 1]
    assert comparisons([1, 0.5, 0], outcomes="score") == [-1, 0, 1]
    assert comparisons(["1", "0.5", "0"], outcomes="score") == [-1, 0, 1]
    assert comparisons(["W", "L"], outcomes={"w": -1, "L": 1}) == [-1, 1]
    assert comparisons([2, 7], outcomes={2: -1, 7: 0}) == [-1, 0]


def test_unknown_outcomes_name_row_value_and_table():
    with pytest.raises(LabelError, match=r"(?s)'0.5' at row 1.*score.*model_a"):
        comparisons([1.0, 0.5, 0.0])
    with pytest.raises(LabelError, match="'none' at row 1"):
        comparisons(["left", None])
    with pytest.raises(UnknownNameError, match="score"):
        comparisons(["left"], outcomes="elo")
    with pytest.raises(ParameterError, match="outcomes"):
        comparisons(["left"], outcomes={"left": 2})
    with pytest.raises(UnknownNameError, match="'winner'"):
        read_comparisons(pa.table({"left": ["a"], "right": ["b"]}), outcome="winner")


def test_real_comparisons(shared_data):
    crowd = read_comparisons(shared_data / "llmfao" / "crowd-comparisons.csv.xz", outcome="winner")
    assert np.unique(crowd.outcome, return_counts=True)[1].tolist() == [2_911, 3_471, 2_549]
    assert len(crowd.items) == 59
    chess = read_comparisons(
        shared_data / "chess-twic" / "games-1999-2006.csv.xz",
        left="white",
        right="black",
        outcome="white_score",
        outcomes="score",
    )
    assert np.unique(chess.outcome, return_counts=True)[1].tolist() == [159_910, 160_235, 121_015]


def test_ids_of_text_files_keep_every_character(tmp_path):
    (tmp_path / "a.csv").write_text("qid,grade,docid,a\n007,1,0010,1\n7,0,1.10,2\n")
    data = read_table(tmp_path / "a.csv")
    assert (data.qid.tolist(), data.docid.tolist()) == (["007", "7"], ["0010", "1.10"])
    (tmp_path / "b.csv").write_text("qid,grade,a\n10,1,1\n9,0,2\n")
    assert read_table(tmp_path / "b.csv").qid.tolist() == [10, 9]
    (tmp_path / "c.csv").write_text("qid,grade,a\n,1,1\n9,0,2\n")
    with pytest.raises(LabelError, match="no id at row 0"):
        read_table(tmp_path / "c.csv")


def test_damaged_tables_name_the_file(tmp_path):
    for suffix in (".parquet", ".feather"):
        path = tmp_path / f"bad{suffix}"
        path.write_bytes(b"nonsense")
        with pytest.raises(ConcordantError, match=r"bad\..*cannot be read"):
            read_table(path)


def test_columns_that_cannot_be_told_apart_or_read_are_refused(tmp_path):
    (tmp_path / "twice.csv").write_text("qid,grade,a,a\n1,1,1,2\n")
    (tmp_path / "latin.csv").write_bytes("qid,grade,\xe9\n1,1,1\n".encode("latin-1"))
    for name in ("twice.csv", "latin.csv"):
        with pytest.raises(ConcordantError, match="cannot be used"):
            read_table(tmp_path / name)
    assert from_frame(pd.DataFrame({"qid": [1], "grade": [1], 0: [2.0]})).X.tolist() == [[2.0]]


def test_ids_that_are_numbers_on_one_side_only_stay_text():
    mixed = pa.table({"left": ["1", "2"], "right": ["1", "x"], "outcome": [0, 1]})
    assert read_comparisons(mixed).items.tolist() == ["1", "2", "x"]
    whole = pa.table({"left": ["1", "2"], "right": ["1", "10"], "outcome": [0, 1]})
    assert read_comparisons(whole).items.tolist() == [1, 2, 10]
