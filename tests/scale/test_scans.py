"""Scans of Parquet files and LETOR text hold what reading everything at once gives; faults are named."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from concordant.data.io import read_letor, read_table
from concordant.evaluation.evaluated import evaluate
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
from concordant.scale import scan_letor, scan_pairs, scan_parquet, write_parquet
from concordant.scale.scan import letor_scan
from concordant.scale.scan import letor_scan as letor
from concordant.scale.scan import parquet as scans_parquet
from concordant.scale.scan.scan import IN_FLIGHT
from tests.helpers.scan_checks import check_scan, ranking_rows, wrong_scans


def frame_of(columns, rows=slice(None)):
    features = {f"x{number}": columns["X"][rows, number] for number in range(columns["X"].shape[1])}
    others = {name: columns[name][rows] for name in ("qid", "docid", "sample_weight")}
    return pa.table({**others, "grade": columns["y"][rows], **features})


def write_groups(path, tables, **options):
    """One row group a table, empty ones too."""
    with parquet.ParquetWriter(path, tables[0].schema, **options) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(1, len(table)))


def grouped(columns, draw):
    """Rows in an order in which queries follow one another in any order; and where each begins."""
    ids = columns["qid"]
    queries = draw(st.permutations(sorted(set(ids.tolist()))))
    rows = [np.flatnonzero(ids == query) for query in queries]
    return np.concatenate(rows), np.cumsum([0, *map(len, rows)]).tolist()


@settings(max_examples=60)
@given(ranking_rows(), st.data(), st.sampled_from([1, 40, 1 << 20]))
def test_any_parquet_holds_what_it_holds(tmp_path_factory, columns, data, part_bytes):
    """Any files, any row groups of whole queries, some of them empty, rows of a part in any order."""
    folder = tmp_path_factory.mktemp("scan")
    order, starts = grouped(columns, data.draw)
    cuts = sorted({0, len(order), *data.draw(st.lists(st.sampled_from(starts), max_size=6))})
    groups = [frame_of(columns, order[first:last]) for first, last in pairwise(cuts)]
    if data.draw(st.booleans()):
        groups = [piece for group in groups for piece in (group, group.slice(0, 0))]
    split = data.draw(st.integers(0, len(groups)))
    for number, file_groups in enumerate((groups[:split], groups[split:])):
        if file_groups:
            write_groups(folder / f"{number}.parquet", file_groups)
    (folder / "_ignored.parquet").write_bytes(b"")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scans_parquet, "PART_BYTES", part_bytes)
        scan = scan_parquet(folder, sample_weight="sample_weight")
    check_scan(scan, columns)
    assert [rows.y.tolist() for rows in scan] == [part.read().y.tolist() for part in scan.parts]
    assert pickle.loads(pickle.dumps(scan.parts)) == scan.parts  # noqa: S301
    assert scan.weighted
    assert scan.feature_names == tuple(f"x{feature}" for feature in range(columns["X"].shape[1]))


@pytest.fixture
def small(tmp_path):
    """Two row groups of two queries each, and their columns."""
    columns = {
        "qid": np.array([2, 2, 1, 3, 3, 3, 9]),
        "y": np.array([0.0, 1, 2, 0, 1, 2, 3]),
        "X": np.linspace(0.1, 1.4, 14).reshape(7, 2),
        "docid": np.array(list("abcdefg")),
        "sample_weight": np.ones(7),
    }
    write_groups(tmp_path / "a.parquet", [frame_of(columns, slice(0, 3)), frame_of(columns, slice(3, 7))])
    return tmp_path / "a.parquet", columns


def scan_apart(path, **options):
    """Scan without joining row groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scans_parquet, "PART_BYTES", 1)
        return scan_parquet(path, **options)


def test_row_groups_are_read_together_as_far_as_is_asked(small, tmp_path):
    path, columns = small
    assert [len(scan_parquet(path, part=part).parts) for part in (1, "1 MiB", None)] == [2, 1, 1]
    single = write_parquet(path, tmp_path / "own.parquet", row_group=1)
    assert [
        len(source.parts) for source in (single, scan_parquet(tmp_path / "own.parquet", part="1 MiB"))
    ] == [4, 1]
    check_scan(scan_parquet(path, part="1 MiB", sample_weight="sample_weight"), columns)
    with pytest.raises(ParameterError, match="part must be a number of bytes"):
        scan_parquet(path, part="many")


def test_the_check_rejects_wrong_scans(small):
    path, columns = small
    scan = scan_apart(path, sample_weight="sample_weight")
    check_scan(scan, columns)
    for wrong in wrong_scans(scan):
        with pytest.raises((AssertionError, IndexError)):
            check_scan(wrong, columns)


def test_a_scan_has_the_rows_of_the_table(small):
    path, _ = small
    data, scan = read_table(path, features=["x0", "x1"]), scan_parquet(path, features=["x0", "x1"])
    rows = next(iter(scan))
    order = np.argsort(data.qid, kind="stable")
    assert rows.X.tolist() == data.X[order].tolist()
    assert rows.docid.tolist() == data.docid[order].tolist()
    assert rows.moved.tolist() == order.tolist()
    assert repr(scan) == "Scan(n_rows=7, n_features=2, n_queries=4, n_parts=1, memory=1 GiB)"


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["float32", "float16", "int8", "bool"], np.float32),
        (["uint16", "int16", "uint8"], np.float32),
        (["float32", "int32"], np.float64),
        (["float32", "float64"], np.float64),
    ],
)
def test_single_precision_where_it_is_exact(tmp_path, kinds, expected):
    columns = {f"x{kind}": np.array([0, 1, 1], dtype=kind) for kind in kinds}
    parquet.write_table(pa.table({"qid": [1, 1, 2], "y": [0, 1, 2], **columns}), tmp_path / "a.parquet")
    X = next(iter(scan_parquet(tmp_path / "a.parquet"))).X
    assert X.dtype == expected
    assert X.tolist() == [[0] * len(kinds), [1] * len(kinds), [1] * len(kinds)]


def spoil(path, column, row, value, groups=(3, 4)):
    """Write the table with one value replaced."""
    frame = parquet.read_table(path).to_pandas().astype({column: object})
    frame.loc[row, column] = value
    table = pa.Table.from_pandas(frame, preserve_index=False)
    position = table.column_names.index(column)
    table = table.set_column(position, column, table.column(position).cast(KINDS.get(column, pa.float64())))
    edges = np.cumsum([0, *groups]).tolist()
    write_groups(path, [table.slice(first, last - first) for first, last in pairwise(edges)])


KINDS = {"qid": pa.int64(), "docid": pa.string()}


@pytest.mark.parametrize(
    ("column", "row", "value", "error", "words"),
    [
        (
            "x1",
            5,
            np.nan,
            NonFiniteError,
            "row group 1: column 'x1' is nan at row 2 (1 such value(s) in all).",
        ),
        ("x1", 5, None, NonFiniteError, "row group 1: column 'x1' is nan at row 2 (1 such"),
        ("x0", 1, np.inf, NonFiniteError, "row group 0: column 'x0' is inf at row 1 (1 such"),
        ("grade", 3, -1.0, GradeError, "row group 1: grade -1 at row 0 is negative."),
        ("grade", 6, np.nan, NonFiniteError, "row group 1: column 'grade' is nan at row 3"),
        ("sample_weight", 4, -2.0, NonFiniteError, "row group 1: column 'sample_weight' is -2.0 at row 1"),
        ("docid", 4, None, LabelError, "row group 1: column 'docid' has no id at row 1."),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_a_bad_row_is_named_by_file_row_group_and_row(small, column, row, value, error, words, together):
    path, _ = small
    spoil(path, column, row, value)
    scan = (scan_parquet if together else scan_apart)(path, sample_weight="sample_weight")
    assert len(scan.parts) == 2 - together
    with pytest.raises(error) as caught:
        list(scan)
    assert str(caught.value).startswith(f"{path}, {words}")


def test_a_bad_id_or_query_weight_is_named_when_scanning(small):
    path, _ = small
    spoil(path, "qid", 5, None)
    with pytest.raises(LabelError, match=r"a\.parquet, row group 1: column 'qid' has no id at row 2"):
        scan_parquet(path)


@pytest.mark.parametrize(
    ("weights", "error", "words"),
    [
        ([1, 1, 1, 2, 2, 3, 1], LabelError, "row group 1: query_weight of query 3 is both 2 and 3"),
        ([1, 1, 1, 2, 2, -2, 1], NonFiniteError, "row group 1: column 'w' is -2.0 at row 2"),
        ([0] * 7, ParameterError, "query_weight is zero for every query"),
    ],
)
def test_query_weights_are_checked(small, weights, error, words):
    path, _ = small
    table = parquet.read_table(path).append_column("w", [np.array(weights, dtype=float)])
    write_groups(path, [table.slice(0, 3), table.slice(3)])
    with pytest.raises(error) as caught:
        scan_parquet(path, query_weight="w")
    assert words in str(caught.value)


def test_query_weights_belong_to_queries(small):
    path, _ = small
    table = parquet.read_table(path).append_column("w", [np.array([5.0, 5, 4, 3, 3, 3, 2])])
    write_groups(path, [table.slice(0, 3), table.slice(3)])
    scan = scan_apart(path, query_weight="w")
    weights = dict(zip(scan.index.ids.tolist(), scan.index.weights.tolist(), strict=True))
    assert weights == {1: 4, 2: 5, 3: 3, 9: 2}
    assert [rows.query_weight.tolist() for rows in scan] == [[4, 5, 5], [3, 3, 3, 2]]


def test_a_cut_query_is_refused(small):
    path, columns = small
    write_groups(path, [frame_of(columns, slice(0, 4)), frame_of(columns, slice(4, 7))])
    with pytest.raises(LabelError, match=r"query 3 is cut: it has rows in .*row group 0 and .*row group 1"):
        scan_apart(path)
    assert scan_parquet(path).n_queries == 4  # in one part, they stand together
    with pytest.raises(LabelError, match="query 1 is cut"):
        scan_parquet([path, path])


def test_files_have_the_same_columns(small, tmp_path):
    path, columns = small
    other = tmp_path / "b.parquet"
    table = frame_of(columns).set_column(0, "qid", [columns["qid"] + 100])
    parquet.write_table(table.drop_columns("x1"), other)
    with pytest.raises(LabelError, match=r"b\.parquet has no column 'x1', and .*a\.parquet has one"):
        scan_parquet(tmp_path)
    with pytest.raises(LabelError, match=r"b\.parquet has no column 'x1', and .*a\.parquet has one"):
        scan_parquet([other, path])
    assert scan_parquet(tmp_path, features=["x0"]).n_rows == 14
    parquet.write_table(table.select(reversed(table.column_names)), other)  # the order does not matter
    assert [rows.X.shape for rows in scan_parquet(tmp_path)] == [(7, 3), (7, 3)]


def test_columns_that_cannot_be_features(small):
    path, columns = small
    with pytest.raises(
        UnknownNameError, match=r"unknown column 'sample_weigth'\. Did you mean 'sample_weight'"
    ):
        scan_parquet(path, features=["x0", "sample_weigth"])
    with pytest.raises(NotNumericError, match=r"column 'docid' must be numeric, but it holds string"):
        scan_parquet(path, docid="qid")
    with pytest.raises(LabelError, match="no column is left for features"):
        scan_parquet(path, features=[])
    double = frame_of(columns).append_column("x0", [columns["y"]])
    parquet.write_table(double, path)
    with pytest.raises(LabelError, match="two columns are called 'x0'"):
        scan_parquet(path)


def test_a_part_must_fit_in_memory_several_times(small):
    path, _ = small
    least = IN_FLIGHT * 7 * (3 * 8 + 8 + 40)  # features, grade, and what works on them
    assert scan_parquet(path, memory=least).n_rows == 7
    with pytest.raises(ParameterError, match=r"at least 3 KiB, 6 times .*row groups 0 to 1"):
        scan_parquet(path, memory=least - 1)
    with pytest.raises(ParameterError, match="got 'lots'"):
        scan_parquet(path, memory="lots")


def test_document_ids_are_read_where_they_are_asked_for(small):
    path, _ = small
    spoil(path, "docid", 4, None)
    scan = scan_parquet(path)
    assert scan.parts[0].read().docid is None  # so a fit reads it
    for asked in (lambda: list(scan), lambda: evaluate(len, scan, metrics="ndcg[trec_eval]")):
        with pytest.raises(LabelError, match="row group 1: column 'docid' has no id at row 1"):
            asked()
    assert evaluate(lambda X: X[:, 0], scan).ids.tolist() == [1, 2, 3, 9]


def test_nothing_to_read(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(EmptyDataError, match="empty has no rows"):
        scan_parquet(tmp_path / "empty")
    parquet.write_table(pa.table({"qid": [1], "y": [1], "x": [1.0]}).slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(EmptyDataError, match=r"none\.parquet"):
        scan_parquet(tmp_path / "none.parquet")
    with pytest.raises(EmptyDataError, match=r"^\S*none\.parquet has no rows"):
        scan_parquet(path for path in [tmp_path / "none.parquet"])
    with pytest.raises(EmptyDataError, match=r"^\S*none\.parquet has no rows"):
        write_parquet(tmp_path / "none.parquet", tmp_path / "o.parquet")
    with pytest.raises(FileNotFoundError):
        scan_parquet(tmp_path / "absent.parquet")


def test_damaged_files_are_named(small):
    path, _ = small
    contents = path.read_bytes()
    path.write_bytes(contents[:-6])
    with pytest.raises(ConcordantError, match=r"a\.parquet: cannot be read as \.parquet"):
        scan_parquet(path)
    path.write_bytes(contents)
    scan = scan_parquet(path)
    path.write_bytes(contents[:4] + b"\xff" * 400 + contents[404:])
    with pytest.raises(ConcordantError, match=r"a\.parquet"):
        list(scan)


def test_a_file_that_changed_is_named(small):
    path, columns = small
    scan = scan_apart(path)
    for number, groups, words in [
        (1, [slice(0, 3)], "row group 1: it changed since it was scanned: row group 1 is gone"),
        (0, [slice(0, 2), slice(2, 7)], "row group 0: it changed since it was scanned: row group 0 has 2"),
    ]:
        write_groups(path, [frame_of(columns, rows) for rows in groups])
        with pytest.raises(ConcordantError, match=words):
            scan.parts[number].read()
    write_groups(path, [frame_of(columns, rows).drop_columns("x1") for rows in HALVES])
    with pytest.raises(ConcordantError, match="column 'x1' is gone"):
        list(scan)
    other = {**columns, "X": -columns["X"]}
    write_groups(path, [frame_of(other, rows) for rows in HALVES])
    with pytest.raises(ConcordantError, match=r"row group 0: it changed .*: it has other contents"):
        list(scan)


HALVES = (slice(0, 3), slice(3, 7))


def test_other_queries_are_seen_where_the_footer_is_the_same(small):
    path, columns = small
    options = {"write_statistics": False, "use_dictionary": False, "compression": "none"}
    write_groups(path, [frame_of(columns, rows) for rows in HALVES], **options)
    scan = scan_apart(path)
    write_groups(path, [frame_of({**columns, "qid": columns["qid"] + 1}, rows) for rows in HALVES], **options)
    with pytest.raises(ConcordantError, match=r"it changed since it was scanned: it has other queries"):
        list(scan)


def test_rows_are_located_in_their_row_group(small):
    part = scan_parquet(small[0]).parts[0]
    assert [part.where(row)[1] for row in range(7)] == [0, 1, 2, 0, 1, 2, 3]
    assert [part.where(row)[0][-1] for row in range(7)] == list("0001111")


def test_pandas_categories_are_ids_by_their_text(tmp_path):
    frame = pd.DataFrame(
        {"qid": pd.Categorical(["b", "a", "b"], ["b", "a"]), "y": [0, 1, 2], "x": [1.0, 2, 3]}
    )
    frame.to_parquet(tmp_path / "a.parquet")
    scan = scan_parquet(tmp_path / "a.parquet")
    assert scan.index.ids.tolist() == ["a", "b"]
    assert next(iter(scan)).y.tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(list("bba"), pa.string_view()),
        pa.array([b"b", b"b", b"a"], pa.binary_view()),
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"b" * 16] * 2 + [b"a" * 16], pa.binary(16))),
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_any_type_are_those_that_write_parquet_writes(tmp_path, ids):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"qid": ids, "y": [0, 1, 2], "x": [1.0, 2, 3]}), path)
    scan, written = scan_parquet(path), write_parquet(path, tmp_path / "b.parquet")
    assert scan.index.ids.tolist() == written.index.ids.tolist()
    assert scan.index.sizes.tolist() == [1, 2]
    assert next(iter(scan)).y.tolist() == [2, 0, 1]


NO_FILES = [None, 7, {"qid": [1]}, ["a.parquet", 7]]


@pytest.mark.parametrize("scanned", [scan_parquet, scan_letor, scan_pairs])
@pytest.mark.parametrize("source", [*NO_FILES, [None], pd.DataFrame({"qid": [1]})])
def test_what_names_no_file_is_refused(scanned, source):
    with pytest.raises(
        ParameterError, match=r"(path|files) must be a file name or a list of file names, got \w+"
    ):
        scanned(source)


@pytest.mark.parametrize("source", NO_FILES)
def test_what_is_no_source_is_refused(tmp_path, source):
    with pytest.raises(ParameterError, match=r"source must be .*, got \w+"):
        write_parquet(source, tmp_path / "o.parquet")


def test_folders_that_are_called_as_files_are_read(small, tmp_path):
    path, _ = small
    (tmp_path / "spark.parquet").mkdir()
    path.rename(tmp_path / "spark.parquet" / "part-0.parquet")
    (tmp_path / "spark.parquet" / "_SUCCESS").touch()
    assert scan_parquet(tmp_path).n_rows == write_parquet(tmp_path, tmp_path / "_o.parquet").n_rows == 7


@pytest.mark.parametrize("name", ["b.pq", "b.PARQUET"])
def test_a_folder_is_read_whole(small, tmp_path, name):
    path, _ = small
    (tmp_path / name).write_bytes(path.read_bytes())
    with pytest.raises(ConcordantError, match="query"):  # the same ids again: it was read
        scan_parquet(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / "qid=1").mkdir()
    (tmp_path / "qid=1" / "notes.txt").touch()
    assert scan_parquet(tmp_path).n_rows == 7
    (tmp_path / "qid=1" / name).write_bytes(path.read_bytes())
    with pytest.raises(ParameterError, match=r"subfolder '.*qid=1'. Pass a list"):
        scan_parquet(tmp_path)


def test_queries_need_a_column(small):
    path, _ = small
    for read in (scan_parquet, read_table, lambda path, qid: write_parquet(path, path, qid=qid)):
        with pytest.raises(ParameterError, match="qid must be the name of a column, got None"):
            read(path, qid=None)


@pytest.mark.parametrize("read", [scan_parquet, lambda files: write_parquet(files, files[0])])
@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["4", "x"], r"b\.parquet, row group 0.* text"),
        ([0.5, 1.0], "an id is 9007199254740993, others are doubles, which cannot hold it exactly"),
    ],
)
def test_ids_of_files_must_go_together(tmp_path, read, ids, words):
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, file_ids in zip(files, ([2**53 + 1, 2], ids), strict=True):
        parquet.write_table(pa.table({"qid": file_ids, "y": [0, 1], "x": [1.0, 2]}), file)
    with pytest.raises(LabelError, match=words) as caught:
        read(files)
    assert "item" not in str(caught.value)


# LETOR text


@st.composite
def letor_lines(draw):
    """Lines of text, with what may stand between them."""
    columns = draw(ranking_rows(single=False))
    ids = np.abs(np.unique(columns["qid"], return_inverse=True)[1])
    odd = st.sampled_from(["", "# a remark", "  ", "\t"])
    lines = []
    for row in np.argsort(ids, kind="stable"):
        lines += draw(st.lists(odd, max_size=2))
        features = "".join(
            f" {index + 1}:{value!r}" for index, value in enumerate(columns["X"][row].tolist()) if value
        )
        comment = draw(st.sampled_from(["", " # docid = d%d" % row, " # words"]))  # noqa: UP031
        lines.append(f"{columns['y'][row]:g} qid:{ids[row]}{features}{comment}")
    return lines


def write_text(path, lines, end="\n", mark=b"", last=True):
    path.write_bytes(mark + (end.join(lines) + (end if last else "")).encode())


@settings(max_examples=40)
@given(
    letor_lines(),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.booleans(),
    st.sampled_from([1, 30, 1 << 20]),
    st.sampled_from([1, 50, 1 << 20]),
    st.sampled_from(["float64", np.float32]),
)
def test_any_text_scans_as_it_reads(tmp_path_factory, lines, end, mark, last, part, piece, dtype):
    path = tmp_path_factory.mktemp("letor") / "a.txt"
    write_text(path, lines, end, mark, last)
    data = read_letor(path, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(letor, "PART_BYTES", part)
        patch.setattr(letor_scan.text_pieces, "__defaults__", (piece,))
        scan = scan_letor(path, dtype=dtype)
    docid = data.docid
    assert scan.feature_names is None
    if not data.X.shape[1]:
        return  # no features at all: nothing to compare
    check_scan(scan, {"qid": data.qid, "y": data.y, "X": data.X, "docid": docid})
    if part == 1:
        assert len(scan.parts) == scan.n_queries
    assert pickle.loads(pickle.dumps(scan.parts)) == scan.parts  # noqa: S301


def test_the_check_rejects_wrong_text_scans(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "PART_BYTES", 1)
    write_text(tmp_path / "a.txt", ["1 qid:1 1:0.1 # a", "2 qid:1 1:0.2 # b", "0 qid:2 1:0.3 # c"])
    data, scan = read_letor(tmp_path / "a.txt"), scan_letor(tmp_path / "a.txt")
    columns = {"qid": data.qid, "y": data.y, "X": data.X, "docid": data.docid}
    check_scan(scan, columns)
    for wrong in wrong_scans(scan):
        with pytest.raises((AssertionError, IndexError)):
            check_scan(wrong, columns)


@pytest.mark.parametrize(
    "line",
    ["x qid:3 1:1", "1 qid:3 1:nan", "1 1:2", "1 qid:3 0:1", "1 qid:3 2:1 1:1", "1 qid:-3", "-1 qid:3"],
)
@pytest.mark.parametrize("piece", [1, 40, 1 << 20])
def test_malformed_lines_are_named_as_when_all_is_read(tmp_path, monkeypatch, line, piece):
    path = tmp_path / "a.txt"
    write_text(path, ["# head", *[f"1 qid:{row // 3} 1:{row}" for row in range(9)], line, "1 qid:4 1:1"])
    monkeypatch.setattr(letor_scan.text_pieces, "__defaults__", (piece,))
    with pytest.raises(MalformedLineError) as all_at_once:
        read_letor(path)
    with pytest.raises(MalformedLineError) as scanned:
        scan_letor(path)
    assert str(scanned.value) == str(all_at_once.value)
    assert scanned.value.line == 11


def test_several_texts_are_one_set(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    write_text(first, ["1 qid:1 1:1", "0 qid:1 3:1"])
    write_text(second, ["1 qid:2 2:1"], last=False)
    data, scan = read_letor([first, second]), scan_letor([first, second])
    check_scan(scan, {"qid": data.qid, "y": data.y, "X": data.X})
    assert [part.name for part in scan.parts] == [f"{first}, lines 1 to 2", f"{second}, lines 1 to 1"]
    with pytest.raises(LabelError, match=r"query 1 is cut: it has rows in .*a\.txt, lines 1 to 2 and"):
        scan_letor([first, first])
    assert scan_letor([first, second], n_features=7).n_features == 7
    with pytest.raises(MalformedLineError, match="beyond n_features"):
        scan_letor([first, second], n_features=2)


def test_text_that_cannot_be_scanned(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(ParameterError, match=r"cc\.write_parquet\(files"):
        scan_letor(tmp_path / "a.txt.gz")
    with pytest.raises(FileNotFoundError):
        scan_letor(path)
    write_text(path, ["# nothing", ""])
    with pytest.raises(EmptyDataError, match=r"a\.txt has no rows"):
        scan_letor(path)
    with pytest.raises(EmptyDataError, match="the list of files has no rows"):
        scan_letor([])
    write_text(path, ["1 qid:1 1:1", "0 qid:1 1:2"], end="\r")
    with pytest.raises(MalformedLineError, match="CR only"):
        scan_letor(path)
    write_text(path, ["1 qid:1 1:1", "0 qid:1 999999999:2"])
    with pytest.raises(
        MalformedLineError, match=r"line 2, column 9: feature 999999999 makes every row 7\.5 GiB long"
    ):
        scan_letor(path)
    with pytest.raises(ParameterError, match="dtype"):
        scan_letor(path, dtype="int8")


@pytest.mark.parametrize("sparse", [False, True])
def test_a_value_beyond_single_precision_is_named_by_its_line(tmp_path, monkeypatch, sparse):
    path = tmp_path / "a.txt"
    write_text(path, ["# remark", "1 qid:1 1:1 2:1", "", "0 qid:1 1:2 3:1e39", "0 qid:1 1:1e39"])
    words = r"^\S*a\.txt, line 4: X in float32 is inf at the value 1e\+39 \(2 such"
    monkeypatch.setattr(letor_scan, "DENSER", -1 if sparse else 8)
    for read in (
        lambda: read_letor(path, dtype="float32", sparse=sparse),
        lambda: list(scan_letor(path, dtype="float32")),
        lambda: write_parquet(path, tmp_path / "a.parquet", dtype="float32"),
    ):
        with pytest.raises(NonFiniteError, match=words):
            read()


def test_a_line_that_broke_since_it_was_scanned_is_named_once(tmp_path):
    write_text(tmp_path / "a.txt", ["1 qid:1 1:1", "0 qid:1 1:2"])
    scan = scan_letor(tmp_path / "a.txt")
    write_text(tmp_path / "a.txt", ["1 qid:1 1:1", "0 qid:1 1:x"])
    with pytest.raises(MalformedLineError, match=r"^\S*a\.txt, line 2, column 11: the value 'x'") as caught:
        list(scan)
    assert "fill" not in str(caught.value)


def test_texts_without_query_ids_are_one_query(tmp_path):
    write_text(tmp_path / "a.txt", ["1 1:1", "0 1:2"])
    scan = scan_letor(tmp_path / "a.txt", zero_based=True)
    assert scan.index.ids.tolist() == [0]
    assert next(iter(scan)).X.tolist() == [[0, 1], [0, 2]]
    assert scan.parts[0].where(1) == (scan.parts[0].name, 1)


def test_text_that_changed_is_named(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, ["1 qid:1 1:1", "0 qid:2 1:2"])
    scan = scan_letor(path)
    for lines in (["1 qid:1 1:1"], ["1 qid:1 1:1", "0 qid:3 1:2"]):
        write_text(path, lines)
        with pytest.raises(ConcordantError, match=r"a\.txt, lines 1 to 2: it changed since it was scanned"):
            list(scan)
