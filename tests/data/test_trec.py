"""TREC judgements and runs: columns, faults, and the join against dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.data.io import (
    Qrels,
    Run,
    join,
    read_qrels,
    read_run,
    trec,
    write_qrels,
    write_run,
)
from concordant.exceptions import (
    EmptyDataError,
    GradeError,
    LabelError,
    LengthMismatchError,
    MalformedLineError,
    NonFiniteError,
    ParameterError,
)
from concordant.metrics import metric


def write(tmp_path, text):
    path = tmp_path / "file"
    path.write_bytes(text.encode())
    return path


def test_qrels(tmp_path):
    qrels = read_qrels(write(tmp_path, "\ufeff301 0 FR-1 2\r\n\n 301\t0  b\u00fc -1 \r\n7 0 FR-1 0"))
    assert qrels.qid.tolist() == ["301", "301", "7"]
    assert qrels.docid.tolist() == ["FR-1", "b\u00fc", "FR-1"]
    assert qrels.grade.tolist() == [2, -1, 0]


def test_run_ignores_the_rank(tmp_path):
    run = read_run(write(tmp_path, "1 Q0 a 9 0.1 bm25\n1 Q0 b 9 1e-320 other\n"))
    assert run.docid.tolist() == ["a", "b"]
    assert run.score.tolist() == [0.1, 1e-320]
    assert run.tag == "bm25"


@pytest.mark.parametrize(
    ("reader", "text", "line", "column", "words"),
    [
        (read_qrels, "1 0 a 1\n1 0 b\n", 2, 1, "expected 4 columns, got 3"),
        (read_qrels, "1 0 a 1\n\n 1 0 b 1 x\n", 3, 2, "expected 4 columns, got 5"),
        (read_qrels, "1 0 a 0.5\n", 1, 7, "'0.5' is not an integer"),
        (read_qrels, "1 0 a 1\n1 0 b -\n", 2, 7, "'-' is not an integer"),
        (read_qrels, "1 0 a 9223372036854775808\n", 1, 7, "integer"),
        (read_qrels, "1 0 a 1\n2 0 a 1\n1 0 a 0\n", 3, 5, "'a' is given twice for query 1"),
        (read_run, "1 Q0 a 1 0.5\n", 1, 1, "expected 6 columns, got 5"),
        (read_run, "1 Q0 a 1 nan t\n", 1, 10, "'nan' is not a finite number"),
        (read_run, "1 Q0 a 1 1 t\n1 Q0 b 1 -inf t\n", 2, 10, "finite"),
        (read_run, "1 Q0 a 1 1e999 t\n", 1, 10, "finite"),
        (read_run, "1 Q0 a 1 1.7976931348623158079372897140530341507994e308 t\n", 1, 10, "finite"),
        (read_run, "1 Q0 a 1 0.5x t\n", 1, 10, "finite"),
        (read_run, "1 Q0 a 1 1 t\n1 Q0 a 2 0 t\n", 2, 6, "given twice"),
    ],
)
def test_faults_name_line_and_column(tmp_path, reader, text, line, column, words):
    with pytest.raises(MalformedLineError, match=words) as caught:
        reader(write(tmp_path, text))
    assert (caught.value.line, caught.value.column) == (line, column)


def test_files_that_hold_nothing(tmp_path):
    for reader in (read_qrels, read_run):
        with pytest.raises(EmptyDataError):
            reader(write(tmp_path, "\n \n"))


ids = st.sampled_from(["1", "2", "10", "q"])
documents = st.sampled_from(["a", "b", "c", "d\u00e9"])
judgements = st.dictionaries(st.tuples(ids, documents), st.integers(-2, 3), min_size=1)
retrieved = st.dictionaries(st.tuples(ids, documents), st.floats(-10, 10), min_size=1)


def check_join(data, grades, scores, *, all_queries):
    """Every row is what the two dictionaries say, and none is missing."""
    scored = {query for query, _ in scores}
    judged = {query for query, _ in grades}
    queries = judged if all_queries else judged & scored
    keys = {key for key in grades.keys() | scores.keys() if key[0] in queries}
    rows = list(zip(data.qid.tolist(), data.docid.tolist(), strict=True))
    assert len(rows) == len(keys)
    assert set(rows) == keys
    assert data.y.tolist() == [max(grades.get(key, 0), 0) for key in rows]
    assert data.scores.tolist() == [scores.get(key, -np.inf) for key in rows]
    assert data.n_unjudged == sum(key not in grades for key in keys)
    assert data.n_missing == sum(key not in scores for key in keys)
    assert data.n_negative == sum(grades.get(key, 0) < 0 for key in keys)
    assert data.n_dropped == sum(query not in judged for query, _ in scores)
    changes = sum(query != other for query, other in zip(data.qid, data.qid[1:], strict=False))
    assert changes == max(len(queries) - 1, 0)  # the rows of a query are adjacent


def as_columns(pairs):
    return np.array([query for query, _ in pairs]), np.array([document for _, document in pairs])


@given(judgements, retrieved, st.booleans())
def test_join(grades, scores, all_queries):
    qrels = Qrels(*as_columns(grades), np.array(list(grades.values())))
    run = Run(*as_columns(scores), np.array(list(scores.values())), "t")
    check_join(join(qrels, run, all_queries=all_queries), grades, scores, all_queries=all_queries)


def test_the_check_rejects_a_join_without_the_judged_documents_that_were_not_retrieved():
    qrels = Qrels(np.array(["1", "1"]), np.array(["a", "b"]), np.array([1, 1]))
    run = Run(np.array(["1"]), np.array(["a"]), np.array([0.5]), "t")
    inner = join(Qrels(qrels.qid[:1], qrels.docid[:1], qrels.grade[:1]), run)
    with pytest.raises(AssertionError):
        check_join(inner, {("1", "a"): 1, ("1", "b"): 1}, {("1", "a"): 0.5}, all_queries=False)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_what_is_written_is_read(tmp_path, suffix):
    write_qrels(tmp_path / f"q{suffix}", [1, 1], ["a", "b"], [2, -1])
    assert read_qrels(tmp_path / f"q{suffix}").grade.tolist() == [2, -1]
    scores = [0.1, 1 / 3, -np.inf, 0.1, 5e-324]
    write_run(tmp_path / f"r{suffix}", ["2", "1", "2", "2", "1"], ["a", "b", "c", "d", "e"], scores)
    run = read_run(tmp_path / f"r{suffix}")
    assert run.qid.tolist() == ["2", "2", "1", "1"]
    assert run.docid.tolist() == ["d", "a", "b", "e"]
    assert run.score.tolist() == [0.1, 0.1, 1 / 3, 5e-324]
    assert run.tag == "concordant"


def test_ranks_restart_with_each_query(tmp_path):
    write_run(tmp_path / "r", ["2", "1", "2"], ["a", "b", "c"], [1.0, 2.0, 3.0], tag="t")
    assert (tmp_path / "r").read_text() == "2 Q0 c 1 3.0 t\n2 Q0 a 2 1.0 t\n1 Q0 b 1 2.0 t\n"
    write_run(tmp_path / "none", ["2"], ["a"], [-np.inf])
    assert (tmp_path / "none").read_text() == ""


def test_what_the_columns_cannot_hold_is_refused(tmp_path):
    with pytest.raises(NonFiniteError, match="row 1"):
        write_run(tmp_path / "r", ["1", "1"], ["a", "b"], [0.0, np.nan])
    with pytest.raises(ParameterError, match="without blanks"):
        write_run(tmp_path / "r", ["1"], ["a b"], [0.0])
    with pytest.raises(ParameterError, match="tag"):
        write_run(tmp_path / "r", ["1"], ["a"], [0.0], tag="")
    with pytest.raises(LengthMismatchError, match="qid"):
        write_qrels(tmp_path / "r", ["1", "2"], ["a"], [0])
    with pytest.raises(GradeError, match="is not an integer"):
        write_qrels(tmp_path / "r", ["1"], ["a"], [0.5])
    with pytest.raises(GradeError, match="is not an integer"):
        write_qrels(tmp_path / "r", ["1"], ["a"], [1e30])
    with pytest.raises(LabelError, match="again"):
        write_run(tmp_path / "r", ["1", "1"], ["a", "a"], [0.0, 1.0])
    assert not list(tmp_path.iterdir())


def test_a_large_run(tmp_path):
    n = 200_000
    lines = [f"{row // 1000} Q0 doc-{row * 7919 % n} {row % 1000} {row * 0.37} t\n" for row in range(n)]
    path = write(tmp_path, "".join(lines))
    run = read_run(path)
    assert run.score.tolist() == [row * 0.37 for row in range(n)]


def test_joined_rows_keep_the_order_of_the_run(tmp_path):
    """A judged document that ties with an unjudged one is not moved above it: `ties=input` is fair."""
    (tmp_path / "qrels").write_text("1 0 good 1\n")
    (tmp_path / "run").write_text("1 Q0 other 1 0.5 t\n1 Q0 good 2 0.5 t\n")
    judged = join(read_qrels(tmp_path / "qrels"), read_run(tmp_path / "run"))
    assert judged.docid.tolist() == ["other", "good"]
    assert float(metric("rr[ties=input]")(judged.y, judged.scores, qid=judged.qid)) == 0.5


@pytest.mark.parametrize(
    ("read", "text", "column"),
    [
        (read_qrels, b"1 0 caf%c 1", 8),
        (read_qrels, b"%c 0 a 1", 1),
        (read_run, b"1 Q0 caf%c 1 0.5 t", 9),
        (read_run, b"1 Q0 a 1 0.5 %c", 14),
    ],
)
@pytest.mark.parametrize("byte", [0xE9, 0x00])
def test_ids_that_would_become_equal_are_refused(tmp_path, read, text, column, byte):
    good = text % ord("x")
    (tmp_path / "a").write_bytes(text % byte + b"\n" + good)
    with pytest.raises(MalformedLineError, match=rf"line 1, column {column}: .*(0xe9 is not UTF-8|NUL)"):
        read(tmp_path / "a")


def test_comments_and_words_after_the_tag_are_ignored(tmp_path):
    """As trec_eval 10 reads them."""
    run = "# a comment\n 1 Q0 a 1 0.5 tag and more\n  # 1 Q0 x 1 9 t\n#\n1 Q0 b#1 2 0.25 tag\n"
    assert read_run(write(tmp_path, run)).docid.tolist() == ["a", "b#1"]
    assert read_run(write(tmp_path, run)).tag == "tag"
    qrels = read_qrels(write(tmp_path, "1 0 a 1\n# 1 0 x 1\n\n#1 0 y 1\n1 # #b 0 \n#"))
    assert (qrels.docid.tolist(), qrels.grade.tolist()) == (["a", "#b"], [1, 0])
    with pytest.raises(MalformedLineError, match="line 2, column 1: expected 4 columns, got 6"):
        read_qrels(write(tmp_path, "# c\n1 0 a 1 # c"))
    with pytest.raises(EmptyDataError):
        read_run(write(tmp_path, "# 1 Q0 x 1 9 t\n"))


def test_a_query_that_would_read_as_a_comment_is_not_written(tmp_path):
    with pytest.raises(ParameterError, match=r"qid must be .*leading #, got '#1'"):
        write_run(tmp_path / "r", ["#1"], ["a"], [1.0])
    with pytest.raises(ParameterError, match=r"qid must be .*leading #, got '#1'"):
        write_qrels(tmp_path / "q", ["#1"], ["#a"], [1])


def test_ids_that_are_numbers_meet_their_texts():
    qrels = Qrels(np.array([1, 1]), np.array(["a", "b"]), np.array([2, 1]))
    run = Run(np.array(["1", "1"]), np.array(["a", "c"]), np.array([3.0, 1.0]), "t")
    assert len(join(qrels, run).y) == 3


@given(st.lists(st.lists(st.text("ab\u00e9", max_size=3), max_size=5), min_size=1, max_size=3))
def test_ids_are_encoded_alike_on_few_and_many_rows(columns):
    arrays = [np.array(column, dtype=np.str_) for column in columns]
    few = trec._encode_texts(*arrays)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec, "DICTIONARY_ROWS", 0)
        many = trec._encode_texts(*arrays)
    assert [codes.tolist() for codes in few] == [codes.tolist() for codes in many]
