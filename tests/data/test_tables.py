"""Tables become ranking data or comparisons, or the column and row at fault are named."""

import gzip
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

import concordant as cc
from concordant.data.io import from_frame, read_comparisons, read_table
from concordant.data.io.roles import OUTCOMES
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    GradeError,
    LabelError,
    MalformedLineError,
    NonFiniteError,
    NotNumericError,
    OutcomeWarning,
    ParameterError,
    SimilarNamesWarning,
    UnknownNameError,
)
from concordant.scale import scan_parquet, write_parquet

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


@pytest.mark.slow
def test_real_comparisons(shared_data):
    crowd = read_comparisons(shared_data / "llmfao" / "crowd-comparisons.csv.xz", outcome="winner")
    assert np.unique(crowd.outcome, return_counts=True)[1].tolist() == [2_911, 3_471, 2_549]
    assert len(crowd.items) == 59
    with pytest.warns(SimilarNamesWarning, match="'McGowan,D' and 'Mcgowan,D'"):
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


def test_columns_that_look_alike_or_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "twice.csv").write_text("qid,grade,a,a\n1,1,1,2\n")
    (tmp_path / "latin.csv").write_bytes("qid,grade,\xe9\n1,1,1\n".encode("latin-1"))
    for name in ("twice.csv", "latin.csv"):
        with pytest.raises(ConcordantError, match="cannot be used"):
            read_table(tmp_path / name)
    assert from_frame(pd.DataFrame({"qid": [1], "grade": [1], 0: [2.0]})).X.tolist() == [[2.0]]


def test_ids_that_are_numbers_on_one_side_only_stay_text():
    mixed = pa.table({"left": ["1", "2"], "right": ["1", "x"], "outcome": [0, -1]})
    assert read_comparisons(mixed).items.tolist() == ["1", "2", "x"]
    whole = pa.table({"left": ["1", "2"], "right": ["1", "10"], "outcome": [0, -1]})
    assert read_comparisons(whole).items.tolist() == [1, 2, 10]


@pytest.mark.parametrize("ids", [["a\0", "a"], [b"a\0", b"a"], [b"caf\xe9", b"caf\xe8"]], ids=repr)
def test_ids_that_would_become_equal_are_refused(tmp_path, ids):
    frame = pa.table({"qid": ids, "y": [0, 1], "a": [1.0, 2.0]})
    parquet.write_table(frame, tmp_path / "a.parquet")
    for read in (from_frame, lambda _: read_table(tmp_path / "a.parquet")):
        with pytest.raises(LabelError, match=r"'qid' .* row 0"):
            read(frame)
    with pytest.raises(LabelError, match=r"a\.parquet, row group 0: .*'qid' .* row 0"):
        scan_parquet(tmp_path / "a.parquet")
    with pytest.raises(LabelError, match=r"'docid' .* row 0"):
        from_frame(frame.rename_columns(["docid", "y", "a"]).append_column("qid", [[1, 1]]))
    with pytest.raises(LabelError, match=r"left .* row 0"):
        read_comparisons(pa.table({"left": ids, "right": ["b", "c"], "outcome": [0, 1]}))


def test_bytes_are_read_as_text():
    frame = pa.table({"qid": ["é".encode(), b"b"], "y": [0, 1], "a": [1.0, 2.0]})
    assert from_frame(frame).qid.tolist() == ["é", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("qid,y,a\n1,1,10\n1,0,0x10\n", "line 3: .*0x10"),
        ("qid,y,a\n1,0X1,10\n", "line 2: .*0X1"),
        ("qid,y,a\n1,1,1_000\n", "'a' .*row 0 is '1_000'"),
        ("qid,y,a\n1,1,\u0661\n", "'a' .*row 0 is '\u0661'"),
        ('qid,y,a\n1,1,"1,5"\n', "'a' .*row 0 is '1,5'"),
        ("qid,y,a\n1,1,1e400\n", "'a' is inf at row 0"),
        ("qid,y,a\n1,1,infinity\n", "'a' is inf at row 0"),
        ("qid,y,a\n1,1,nan\n", "'a' .*row 0 is None"),
        ("qid,y,a\n1,1,1\0\n", "'a' .*row 0"),
        ("qid,y,a\n,1,1\n", "'qid' has no id at row 0"),
        ("qid,y,a,a\n1,1,1,2\n", "'a' 2 times"),
        ("qid,y,label,a\n1,1,0,2\n", "'y' and 'label' may both be the grade"),
        (",qid,y,a\n0,1,1,2\n", "a column is called ''"),
        ("Unnamed: 0,qid,y,a\n0,1,1,2\n", "a column is called 'Unnamed: 0'"),
        ("qid,y,a\n1,1\n", "line 2: .*Expected 3 columns, got 2"),
        ("qid,y,a\r1,1,2\r", "CR only"),
    ],
)
def test_what_a_text_table_cannot_mean_is_refused(tmp_path, text, words):
    (tmp_path / "a.csv").write_bytes(text.encode())
    with pytest.raises(ConcordantError, match=words):
        read_table(tmp_path / "a.csv")


def test_what_is_refused_can_be_chosen(tmp_path):
    (tmp_path / "a.csv").write_text("Unnamed: 0,qid,y,label,a,docid\n5,0x1,1,0,2,0x10\n")
    data = read_table(tmp_path / "a.csv", grade="label", features=["a", "Unnamed: 0"])
    assert (data.X.tolist(), data.y.tolist()) == ([[2.0, 5.0]], [0.0])
    assert (data.qid.tolist(), data.docid.tolist()) == (["0x1"], ["0x10"])


@pytest.mark.parametrize(
    "one_each",
    [
        pl.Series([[1.0], [2.0]], dtype=pl.Array(pl.Float64, 1)),
        pl.Series([{"v": 1.0}, {"v": 2.0}]),
        pl.Series([[1.0], [2.0]]),
        pl.Series([1.0, 2.0]).to_numpy().reshape(2, 1),
    ],
    ids=["array", "struct", "list", "numpy"],
)
@pytest.mark.parametrize("name", ["qid", "y", "a"])
def test_lists_of_one_number_are_no_numbers(one_each, name):
    frame = pl.DataFrame({"qid": [1, 1], "y": [1, 0], "a": [1, 2]} | {name: one_each})
    with pytest.raises((LabelError, NotNumericError), match=rf"column '{name}' .*\[1\.?0?\]"):
        from_frame(frame)
    table = frame.to_arrow()
    with pytest.raises((LabelError, NotNumericError), match=rf"column '{name}'"):
        from_frame(table)


def test_lists_of_one_number_are_refused_in_any_version_of_numpy():
    class Convertible(list):  # numpy < 2.4 turns arrays of one number into numbers
        def __float__(self):
            return 1.0

    values = np.empty(1, dtype=object)
    values[0] = Convertible([1.0])
    with pytest.raises(NotNumericError, match="row 0"):
        from_frame(pd.DataFrame({"qid": [1], "y": [1], "a": values}))


def test_an_outcome_has_one_meaning():
    votes = pa.table({"left": ["a"], "right": ["b"], "outcome": ["x"]})
    with pytest.raises(ParameterError, match="Case and surrounding blanks"):
        read_comparisons(votes, outcomes={"X": 1, " x": -1})


@pytest.mark.parametrize("text", ["a,,1\n", ",b,1\n"])
def test_a_comparison_has_two_items(tmp_path, text):
    (tmp_path / "a.csv").write_text(f"left,right,outcome\na,b,0\n{text}")
    with pytest.raises(LabelError, match=r"(left|right) has no id at row 1"):
        read_comparisons(tmp_path / "a.csv")


def test_outcomes_of_two_numbers_are_noticed():
    votes = {"left": ["a", "b"], "right": ["b", "a"]}
    with pytest.warns(OutcomeWarning, match=r"0 was read as a tie .* 1 - 2 \* y"):
        assert read_comparisons(pa.table(votes | {"outcome": [0, 1]})).outcome.tolist() == [0, 1]
    for outcome in ([0, -1], ["tie", "right"], [1, 1], [0.0, 0.0]):  # an error would be raised
        read_comparisons(pa.table(votes | {"outcome": outcome}))
    for outcomes, signs in (("score", [1, -1]), ({0: 0, 1: 1}, [0, 1])):
        pairs = read_comparisons(pa.table(votes | {"outcome": [0, 1]}), outcomes=outcomes)
        assert pairs.outcome.tolist() == signs


@pytest.mark.parametrize(
    ("rows", "location"),
    [
        ('a,b,1,"good\nb,a,1,x\n', "line 3, column 7"),  # to the end of the file
        ('a,b,1,"good\nb,a,1,"so-so"\na,b,-1,y\n', "line 3, column 7"),  # to the next quote
        ('a,b,1,"x\ny" z\n', "line 3, column 7"),
    ],
)
def test_a_quote_does_not_swallow_lines(tmp_path, rows, location):
    (tmp_path / "a.csv").write_text(
        f'left,right,outcome,note\na,b,-1,"fine, ""really""\nso"\n{rows}'.replace("\nso", "")
    )
    with pytest.raises(MalformedLineError, match=f"{location}: the quote that opens this cell is not closed"):
        read_comparisons(tmp_path / "a.csv")


def test_quotes_that_are_fine(tmp_path):
    cells = ['"two\nlines"', '""', '"a ""b"" c"', '5" disk', '"odd" one', '"last\r\n"']
    text = "left,right,outcome,note\n" + "".join(f"a,b,-1,{cell}\n" for cell in cells)
    (tmp_path / "a.csv").write_text(text.rstrip("\n"))
    assert len(read_comparisons(tmp_path / "a.csv")) == len(cells)


# --- memory

UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
import concordant as cc
from concordant._base.files import available_memory
folder = Path(sys.argv[1])
for reader, name in ((cc.read_table, "ones.parquet"), (cc.read_letor, "zeros.gz")):
    reader(folder / ("small" + Path(name).suffix))  # all that is loaded and compiled
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**27, -1))
    assert 2**26 < available_memory() <= 2**27
    try:
        reader(folder / name)
    except cc.ConcordantError as error:
        print(type(error).__name__, isinstance(error, MemoryError), str(error).splitlines()[0])
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_what_does_not_fit_in_memory_is_refused_by_name(tmp_path):
    schema = pa.schema({name: pa.float64() for name in ("qid", "grade", "x")})
    columns = [np.ones(10**6)] * 3
    with parquet.ParquetWriter(tmp_path / "ones.parquet", schema) as writer:
        for _ in range(10):
            writer.write_table(pa.table(columns, schema=schema))
    parquet.write_table(pa.table([[1.0]] * 3, schema=schema), tmp_path / "small.parquet")
    (tmp_path / "small.gz").write_bytes(gzip.compress(b"1 1:1\n"))
    (tmp_path / "zeros.gz").write_bytes(gzip.compress(b"0" * 2**20, 1) * 2**8)
    command = [sys.executable, "-c", UNDER_A_LIMIT, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert [line.startswith("OutOfMemoryError True ") for line in lines] == [True] * 2
    assert f"{tmp_path / 'ones.parquet'}: it takes 0.2 GiB of memory, and 0.1 GiB are available" in lines[0]
    assert str(tmp_path / "zeros.gz") in lines[1]


def test_any_lack_of_memory_is_named(tmp_path, monkeypatch):
    def run_out(*_, **__):
        raise MemoryError("Unable to allocate 7 EiB")

    for name, reader in (
        ("a.parquet", read_table),
        ("a.txt", cc.read_letor),
        ("a.qrels", cc.read_qrels),
        ("a.run", cc.read_run),
        ("a.soc", cc.read_preflib),
        ("b.parquet", read_comparisons),
    ):
        (tmp_path / name).write_bytes(b"1 2 3 4\n")
        with monkeypatch.context() as patch:
            patch.setattr("concordant.data.io.tables._read_arrow", run_out)
            patch.setattr("concordant._base.files.os.fstat", run_out)
            with pytest.raises(cc.exceptions.OutOfMemoryError, match=rf"{name}: memory ran out \(Unable"):
                reader(tmp_path / name)


@pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="needs Linux's /proc")
def test_limits_of_control_groups_count(tmp_path, monkeypatch):
    from concordant._base import files as text

    monkeypatch.setattr(text, "CGROUPS", tmp_path)
    (tmp_path / "memory").mkdir()
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        (tmp_path / name).write_text("1000000000\n")
    assert text.available_memory() < 10**9
    with pytest.raises(cc.exceptions.OutOfMemoryError, match=r"features: it takes 74\.5 GiB"):
        text.require_memory("features", 8e10)


@pytest.mark.parametrize(
    ("features", "words"), [(["a", "a"], "'a' is given twice"), (["a", "y"], "'y' is a feature and a label")]
)
def test_features_are_each_one_column_and_no_label(features, words):
    table = pa.table({"qid": [1, 1], "y": [0, 1], "a": [0.5, 2.0]})
    with pytest.raises(LabelError, match=words):
        from_frame(table, features=features)


def test_columns_of_several_levels_are_refused_by_name():
    columns = pd.MultiIndex.from_tuples([("a", "b"), ("c", "d")])
    with pytest.raises(UnknownNameError, match="unknown column"):
        from_frame(pd.DataFrame(np.zeros((2, 2)), columns=columns))


# --- ranges of features, and text without a header


def test_a_range_is_the_columns_between_two_in_the_order_of_the_table():
    frame = pd.DataFrame([[1, 0, 5.0, 6.0, 7.0, 8.0]], columns=["qid", "y", "a", "b", "c-d", "e"])
    assert from_frame(frame, features=["a-b", "e"]).X.tolist() == [[5.0, 6.0, 8.0]]
    assert from_frame(frame, features=["qid-b"]).X.tolist() == [[5.0, 6.0]], "ids and labels are left out"
    assert from_frame(frame, features=["c-d"]).X.tolist() == [[7.0]], "a column of that name comes first"
    assert from_frame(frame, features=["b-c-d"]).X.tolist() == [[6.0, 7.0]]
    with pytest.raises(LabelError, match="'a' stands before 'b'"):
        from_frame(frame, features=["b-a"])
    with pytest.raises(UnknownNameError, match="a-z"):
        from_frame(frame, features=["a-z"])


def test_a_range_of_several_readings_is_refused():
    frame = pd.DataFrame([[1, 0, 5, 6, 7, 8]], columns=["qid", "y", "a", "b-c", "a-b", "c"])
    with pytest.raises(LabelError, match="several readings"):
        from_frame(frame, features=["a-b-c"])


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
def test_text_without_a_header(tmp_path, suffix, delimiter):
    path = tmp_path / f"a{suffix}"
    path.write_text("2,7,-0.5\n0,7,1e3\n".replace(",", delimiter))
    data = read_table(path, grade="1", qid="2")
    assert (data.y.tolist(), data.qid.tolist(), data.X.tolist()) == ([2.0, 0.0], [7, 7], [[-0.5], [1000.0]])
    scan = cc.write_parquet([path], tmp_path / "a.parquet", grade="1", qid="2")
    assert (scan.n_rows, scan.feature_names) == (2, ("3",))


@pytest.mark.parametrize("line", ["0,1,2", "1,2,3"])
def test_a_first_line_that_may_be_a_header_or_a_row_is_refused(tmp_path, line):
    (tmp_path / "a.csv").write_text(f"{line}\n0,7,1.0\n")
    with pytest.raises(ConcordantError, match="may be a header or a row"):
        read_table(tmp_path / "a.csv", grade=line[0], qid=line[2])
    with pytest.raises(ConcordantError, match="may be a header or a row"):
        cc.write_parquet([tmp_path / "a.csv"], tmp_path / "a.parquet", grade=line[0], qid=line[2])


@pytest.mark.parametrize(
    "first",
    [b"2,7,0.5,\n", b"2,7,0.5,nan\n", b"2,7,0.5,NA\n", b"\n2,7,0.5,1\n", b"\xef\xbb\xbf2,7,0.5,1\n"],
    ids=["empty cell", "nan", "NA", "empty line", "byte order mark"],
)
def test_numbers_may_be_missing_in_a_first_line_without_names(tmp_path, first):
    path = tmp_path / "a.csv"
    path.write_bytes(first + b"1,7,0.25,0.5\n0,7,0.75,0.5\n")
    roles = {"grade": "1", "qid": "2", "features": ["3"]}
    assert read_table(path, **roles).y.tolist() == [2.0, 1.0, 0.0]
    assert cc.write_parquet([path], tmp_path / "a.parquet", **roles).n_rows == 3


@pytest.mark.parametrize("line", ['"10","20","30"', ",10,20"])
def test_quotes_or_an_empty_first_cell_make_a_header(tmp_path, line):
    (tmp_path / "a.csv").write_text(f"{line}\n2,1,0.5\n")
    with pytest.raises(ConcordantError, match="10"):
        read_table(tmp_path / "a.csv", qid="1", grade="2", features=["3"])


def test_a_range_without_features_is_refused():
    with pytest.raises(LabelError, match="holds no feature"):
        from_frame(pd.DataFrame({"qid": [1], "y": [1], "f": [0.5]}), features="qid-y")


def test_one_name_makes_a_header(tmp_path):
    (tmp_path / "a.csv").write_text("qid,grade,7\n1,0,5.0\n")
    assert read_table(tmp_path / "a.csv").X.tolist() == [[5.0]]
