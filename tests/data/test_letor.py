"""LETOR text against a plain parser: the same bits, or an error that names the same line."""

import bz2
import gzip
import lzma
import math
import random
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from concordant.data.io import letor, read_letor, write_letor
from concordant.data.io.letor import LetorText
from concordant.exceptions import (
    ConcordantError,
    EmptyDataError,
    GradeError,
    LengthMismatchError,
    MalformedLineError,
    NonFiniteError,
    NotNumericError,
    ParameterError,
    ShapeError,
)
from concordant.scale.scan.letor_scan import text_pieces
from tests.oracles import LetorFault, letor_rows

N_FUZZED = 20_000


def parse(text, **options):
    """`read_letor` of bytes."""
    return letor.parse_letor([LetorText("memory", np.frombuffer(text + b"\n", dtype=np.uint8))], **options)


def bits(values):
    return np.asarray(values, dtype=np.float64).view(np.uint64)


def check_same_bits(reader, tokens):
    """`reader` gives each token the double that Python gives it."""
    expected, got = bits([float(token) for token in tokens]), bits(reader(tokens))
    wrong = np.flatnonzero(expected != got)
    assert not wrong.size, [tokens[index] for index in wrong[:5]]


def read_tokens(tokens):
    text = "\n".join(f"0 1:{token}" for token in tokens)
    return parse(text.encode()).X[:, 0]


def naive_tokens(tokens):
    """Digits times a power of ten: nearly right, and that is not enough."""
    values = []
    for token in tokens:
        mantissa, _, exponent = token.partition("e")
        whole, _, fraction = mantissa.partition(".")
        values.append(float(int(whole + fraction)) * 10.0 ** (int(exponent or 0) - len(fraction)))
    return values


def check_against_oracle(text, **options):
    """Dense and sparse reading agree with the oracle, or all refuse the same line."""
    base = 0 if options.get("zero_based") else 1
    try:
        rows, bad_line = letor_rows(text, base=base, n_features=options.get("n_features")), None
    except LetorFault as fault:
        rows, bad_line = [], fault.args[0]
    if bad_line is not None:
        for stored in (False, True):
            with pytest.raises(MalformedLineError) as caught:
                parse(text, sparse=stored, **options)
            assert caught.value.line == bad_line, text
        return
    if not rows:
        with pytest.raises(EmptyDataError):
            parse(text, **options)
        return
    data = parse(text, sparse=True, **options)
    np.testing.assert_array_equal(bits(data.y), bits([row[0] for row in rows]))
    assert data.qid.tolist() == [row[1] or 0 for row in rows]
    assert (data.docid.tolist() if data.docid is not None else [""] * len(rows)) == [row[3] for row in rows]
    assert data.X.indices.tolist() == [column for row in rows for column in row[2]]
    assert data.X.indptr.tolist() == np.cumsum([0, *(len(row[2]) for row in rows)]).tolist()
    np.testing.assert_array_equal(bits(data.X.data), bits([v for row in rows for v in row[2].values()]))
    if data.X.shape[1] < 10_000:
        check_dense(parse(text, **options), data.X, rows)


def check_dense(dense, stored, rows):
    assert dense.X.shape == stored.shape
    for got, row in zip(dense.X, rows, strict=True):
        expected = np.zeros(len(got))
        expected[list(row[2])] = list(row[2].values())
        np.testing.assert_array_equal(bits(got), bits(expected))


# -- values

FORMATS = ["{!r}", "{:.17g}", "{:.6f}", "{:e}", "{:.25g}", "{:.15g}", "{:+.3E}"]


def random_doubles(n, seed):
    rng = np.random.default_rng(seed)
    anything = rng.integers(0, 2**64, n // 2, dtype=np.uint64).view(np.float64)
    anything = anything[
        np.isfinite(anything) & (np.abs(anything) < 1e308)
    ]  # so that %e does not round to 1e309
    return np.r_[anything, rng.standard_normal(n - len(anything))].tolist()


@pytest.mark.parametrize("form", FORMATS)
def test_values_are_python_floats(form):
    check_same_bits(read_tokens, [form.format(value) for value in random_doubles(200_000 // len(FORMATS), 0)])


def test_hard_values_are_python_floats():
    edges = [2.0**power for power in range(-1074, 1024, 7)]
    halves = [str(2**53 + odd) for odd in (1, 3, 5)] + [
        str((2**54 + 2 * odd) * 2**20 + 2**20) for odd in range(9)
    ]
    near = [f"{value:.{digits}e}" for value in edges for digits in (15, 16, 17, 18, 19, 25, 60)]
    tiny = [
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "1e-400",
    ]
    long = [
        "0" * 50 + "1.5",
        "0." + "0" * 400 + "1",
        "1" * 300,
        "1" + "0" * 400 + "e-400",
        "0e999999999999",
        "-0",
    ]
    large = ["1.7976931348623157e308", "1.7976931348623158e308", "17976931348623157" + "0" * 292]
    short = [
        "1.",
        ".5",
        "+.5e1",
        "1e+05",
        "1E5",
        "-1.e-3",
        "9007199254740993",
        "123456789012345678",
        "1e22",
        "1e23",
    ]
    check_same_bits(read_tokens, halves + near + tiny + long + large + short)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.from_regex(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", fullmatch=True)
    )
)
def test_any_decimal_is_a_python_float(tokens):
    tokens = [token for token in tokens if math.isfinite(float(token))]
    if tokens:
        check_same_bits(read_tokens, tokens)


def test_the_check_rejects_a_naive_parser():
    tokens = [repr(value) for value in random_doubles(200, 1) if 0 < abs(value) < 1e300]
    with pytest.raises(AssertionError):
        check_same_bits(naive_tokens, tokens)


@pytest.mark.parametrize("token", ["1e309", "-1e309", "1.7976931348623159e308", "9" * 400, "1" + "0" * 309])
def test_infinite_values_are_refused(token):
    with pytest.raises(MalformedLineError, match="too large") as caught:
        parse(f"0 1:1\n0 1:2 3:{token}".encode())
    assert (caught.value.line, caught.value.column) == (2, 9)


# -- lines

number = st.floats(allow_nan=False, allow_infinity=False).map(repr)
blank = st.sampled_from([" ", "  ", "\t", " \t "])
comment = st.sampled_from(
    ["", "#", "# docid = a-1 inc = 1", "#docid=b", " # two words ", "# docid = ", "# \u00fc#1"]
)


@st.composite
def letor_text(draw):
    """Well-formed text with everything the format allows."""
    lines, with_qid = [], draw(st.booleans())
    for _ in range(draw(st.integers(1, 6))):
        indices = sorted(draw(st.sets(st.integers(1, 40), max_size=8)))
        grade = draw(st.sampled_from(["0", "1", "4", "0.5", "2.0", "1e-3", "+3"]))
        tokens = [grade, *([f"qid:{draw(st.integers(0, 2**63 - 1))}"] if with_qid else [])]
        tokens += [f"{index}:{draw(number)}" for index in indices]
        line = draw(st.sampled_from(["", " ", "\t"])) + draw(blank).join(tokens) + draw(comment)
        lines += [line, *draw(st.sampled_from([[], [""], ["# a comment"], ["  "]]))]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (
        draw(st.sampled_from(["", "\n", "# head\n"])) + end.join(lines) + draw(st.sampled_from(["", end]))
    ).encode()


@settings(max_examples=150, deadline=None)
@given(letor_text())
def test_well_formed_text_reads_as_the_oracle_says(text):
    check_against_oracle(text)


@settings(max_examples=50, deadline=None)
@given(letor_text())
def test_chunks_do_not_show(text):
    whole, size = parse(text), letor.CHUNK_BYTES
    try:
        letor.CHUNK_BYTES = 7
        cut = parse(text)
        stored = parse(text, sparse=True)
    finally:
        letor.CHUNK_BYTES = size
    np.testing.assert_array_equal(bits(whole.X.ravel()), bits(cut.X.ravel()))
    np.testing.assert_array_equal(
        stored.toarray() if hasattr(stored, "toarray") else stored.X.toarray(), cut.X
    )
    assert whole.qid.tolist() == cut.qid.tolist()
    assert (whole.docid is None) == (cut.docid is None)


TOKENS = [
    "1:2",
    "qid:3",
    "qid:x",
    "nan",
    "inf",
    "1:nan",
    "2:inf",
    "0x1p3",
    "1_0",
    "5:1_0",
    "3:",
    ":4",
    "0:1",
    "-1:2",
]
TOKENS += [
    "99999999999999999999:1",
    "1:1e999",
    "7:0x10",
    "-1",
    "#",
    "qid:9223372036854775808",
    "\u0661:1",
    "1:\u0662",
]
TOKENS += [
    "1:2:3",
    "4:+-1",
    "4:1e",
    "4:e5",
    "4:.",
    "4:1e+",
    "+1:1",
    "1.5:2",
    "2,5",
    "1:5,0",
    "\x00",
    "\x0b",
    "\ufeff",
]


def mutate(rng, line):
    """One to three random injuries."""
    for _ in range(rng.randint(1, 3)):
        kind, position = rng.randrange(6), rng.randrange(len(line) + 1)
        if kind == 0 and position < len(line):
            line = line[:position] + bytes([line[position] ^ (1 << rng.randrange(8))]) + line[position + 1 :]
        elif kind == 1:
            line = (
                line[:position]
                + bytes([rng.choice(b" \t\r:#.eE+-0123456789qid\x00\xff\n")])
                + line[position:]
            )
        elif kind == 2:
            line = line[:position] + line[position + rng.randint(1, 3) :]
        elif kind == 3:
            tokens = line.split(b" ")
            first, second = rng.randrange(len(tokens)), rng.randrange(len(tokens))
            tokens[first], tokens[second] = tokens[second], tokens[first]
            line = b" ".join(tokens)
        elif kind == 4:
            line = line[:position] + bytes(rng.choices(b"0123456789", k=rng.randint(1, 40))) + line[position:]
        else:
            tokens = line.split(b" ")
            tokens.insert(rng.randrange(len(tokens) + 1), rng.choice(TOKENS).encode())
            line = b" ".join(tokens)
    return line


@pytest.mark.slow
def test_mutated_lines_read_as_the_oracle_says_or_are_refused():
    rng, refused = random.Random(3), 0
    for _ in range(N_FUZZED):
        qid = rng.choice(["", "qid:7 "])
        features = " ".join(
            f"{i}:{rng.choice([rng.random(), rng.randint(0, 9), -1e-5])}" for i in (1, 2, 5, 11)
        )
        good = f"{rng.randint(0, 4)} {qid}{features}{rng.choice(['', ' #docid = d1 x', '# c'])}".encode()
        text = good + b"\n" + mutate(rng, good)
        try:
            letor_rows(text)
        except LetorFault:
            refused += 1
        check_against_oracle(text)
    assert N_FUZZED // 4 < refused < N_FUZZED * 4 // 5  # both answers are exercised


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("x qid:1 1:2", 1, 1, "grade 'x'"),
        ("0 qid:1 1:2\n\n-1 qid:1 1:2", 3, 1, "negative"),
        ("-1.00000000000000000000000000000000001e-310 1:2", 1, 1, "negative"),
        ("0 qid:1 1:2\n0 1:2", 2, 3, "first row has one"),
        ("0 1:2\n0 qid:1 1:2", 2, 3, "index:value"),
        ("0 qid:-1 1:2", 1, 3, "integer"),
        ("0 qid:9223372036854775808 1:2", 1, 3, "integer"),
        ("0 qid:1 2:1 2:1", 1, 13, "does not increase"),
        ("0 qid:1 3:1 2:1", 1, 13, "does not increase"),
        ("0 qid:1 0:1", 1, 9, "zero_based=True"),
        ("# c\n0 qid:1 1:1 7:nan", 2, 15, "'nan'"),
        ("0 qid:1 1:inf", 1, 11, "'inf'"),
        ("0 qid:1 1:0x10", 1, 11, "0x10"),
        ("0 qid:1 1:1_0", 1, 11, "1_0"),
        ("0 qid:1 3:", 1, 11, "not a finite"),
        ("0 qid:1 3: 4", 1, 11, "not a finite"),
        ("0 qid:1 -3:1", 1, 9, "index:value"),
        ("0 qid:1 9223372036854775808:1", 1, 9, "64 bits"),
        ("0 qid:1 1:1 word", 1, 13, "'word'"),
    ],
)
def test_faults_name_line_and_column(text, line, column, words):
    for end in ("\n", "\r\n"):
        with pytest.raises(MalformedLineError, match=words) as caught:
            parse(text.replace("\n", end).encode())
        assert (caught.value.line, caught.value.column, caught.value.path) == (line, column, "memory")


def test_n_features_widens_and_refuses():
    assert parse(b"0 1:1", n_features=3).X.tolist() == [[1.0, 0.0, 0.0]]
    with pytest.raises(MalformedLineError, match="beyond n_features") as caught:
        parse(b"0 1:1\n0 1:1 4:1", n_features=3)
    assert (caught.value.line, caught.value.column) == (2, 7)


def test_the_first_fault_of_a_long_file_is_named_whatever_thread_meets_it():
    lines = [b"1 qid:%d 1:0.5 2:%d" % (row, row) for row in range(200_000)]
    lines[150_000] = lines[90_001] = b"1 qid:1 1:0.5 2:oops"
    with pytest.raises(MalformedLineError) as caught:
        parse(b"\n".join(lines))
    assert (caught.value.line, caught.value.column) == (90_002, 17)


def test_a_stray_index_is_refused_before_memory_is_asked_for():
    text = b"0 qid:1 1:1\n0 qid:1 1:1 2000000000:1\n" + b"0 qid:1 1:1\n" * 100
    with pytest.raises(MalformedLineError, match="sparse=True") as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (2, 13)
    assert parse(text, sparse=True).X.shape == (102, 2_000_000_000)
    with pytest.raises(ParameterError, match="sparse=True"):
        parse(text, n_features=2_000_000_000)
    with pytest.raises(MalformedLineError, match="oops"):
        parse(text + b"0 qid:1 1:oops")
    assert parse(b"0 9223372036854775807:1", sparse=True).X.indices.tolist() == [2**63 - 2]


# -- options


def test_missing_features_take_the_fill():
    X = parse(b"0 2:5\n1 1:1e-320", fill=np.nan).X
    np.testing.assert_array_equal(X, [[np.nan, 5.0], [1e-320, np.nan]])
    assert parse(b"0 2:5\n1 1:1e-30", fill=-1, dtype=np.float32).X.tolist() == [
        [-1, 5],
        [np.float32(1e-30), -1],
    ]


def test_float32_is_the_double_rounded_and_refuses_what_overflows_it():
    tokens = [repr(value) for value in np.random.default_rng(0).standard_normal(1000).tolist()]
    text = "\n".join(f"0 1:{token}" for token in tokens).encode()
    for stored in (False, True):
        X = parse(text, dtype=np.float32, sparse=stored).X
        X = X.toarray() if stored else X
        assert X.dtype == np.float32
        assert X[:, 0].tolist() == [np.float32(float(token)) for token in tokens]
        with pytest.raises(NonFiniteError, match="float64"):
            parse(b"0 1:1e300", dtype=np.float32, sparse=stored)


def test_rows_without_query_ids():
    assert parse(b"0 1:1\n1 1:2").qid.tolist() == [0, 0]
    assert parse(b"3\n1").X.shape == (2, 0)
    sizes = np.array([1, 0, 2])
    assert parse(b"0 1:1\n1 1:2\n1 1:3", sizes=sizes).qid.tolist() == [0, 2, 2]
    for text, wrong in ((b"0 1:1", sizes), (b"0 qid:1 1:1", np.array([1])), (b"0 1:1", np.array([0.5, 0.5]))):
        with pytest.raises(ParameterError, match="group"):
            parse(text, sizes=wrong)


def test_group_files(tmp_path):
    (tmp_path / "a").write_text("0 1:1\n1 1:2\n")
    (tmp_path / "a.query").write_text("1\n1\n")
    assert read_letor(tmp_path / "a", group=tmp_path / "a.query").qid.tolist() == [0, 1]
    twice = read_letor([tmp_path / "a"] * 2, group=[str(tmp_path / "a.query")] * 2)
    assert twice.qid.tolist() == [0, 1, 2, 3]
    assert read_letor(tmp_path / "a", group=[2]).qid.tolist() == [0, 0]
    (tmp_path / "a.query").write_text("1\nx\n")
    with pytest.raises(MalformedLineError, match="line 2"):
        read_letor(tmp_path / "a", group=tmp_path / "a.query")


@pytest.mark.parametrize("options", [{"dtype": np.int64}, {"sparse": True, "fill": 1.0}, {"n_features": -1}])
def test_impossible_options_are_refused(options):
    with pytest.raises(ParameterError):
        parse(b"0 1:1", **options)


def test_docids():
    assert parse(b"0 1:1").docid is None
    assert parse(b"0 1:1 #").docid is None
    text = "0 1:1 #docid = GX1 inc = 1\n0 1:1\n1 1:1 # two words \n1 1:1 #docid=\u00fc"
    assert parse(text.encode()).docid.tolist() == ["GX1", "", "two words", "\u00fc"]
    long = parse(b"0 1:1 # " + b"x" * 100_000 + b"\n" + b"0 1:1 # y\n" * 1000)
    assert len(long.docid[0]) == 100_000  # one long comment does not widen a thousand short ones
    assert long.docid.dtype == object
    assert parse(b"1 1:1 # docid = \n0 1:2 #docid=x").docid.tolist() == ["", "x"]
    for same_when_replaced in (b"0 1:1 #docid = caf\xe9\n0 1:1 #docid = caf\xe8", b"0 1:1 # a\n0 1:1 # a\0"):
        with pytest.raises(MalformedLineError, match=r"memory, line [12], column (19|10).*(not UTF-8|NUL)"):
            parse(same_when_replaced)


# -- files


@pytest.mark.parametrize(
    "opener", [(".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open)], ids=lambda o: o[0]
)
def test_compressed_files(tmp_path, opener):
    suffix, open_file = opener
    with open_file(tmp_path / f"a.txt{suffix}", "wb") as stream:
        stream.write(b"\xef\xbb\xbf1 qid:2 1:3\r\n0 qid:2 1:4")
    data = read_letor(str(tmp_path / f"a.txt{suffix}"))
    assert data.X.tolist() == [[3.0], [4.0]]
    (tmp_path / f"bad{suffix}").write_bytes((tmp_path / f"a.txt{suffix}").read_bytes()[:-5])
    with pytest.raises(OSError, match="bad"):
        read_letor(tmp_path / f"bad{suffix}")


ROWS = [b"1 qid:1 1:%d\n" % row for row in range(80)]


@pytest.mark.parametrize(
    ("suffix", "padding"), [(".gz", b""), (".gz", b"\0"), (".xz", b""), (".xz", bytes(8)), (".bz2", b"")]
)
def test_streams_one_after_another_are_read_whole(tmp_path, suffix, padding):
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[suffix]
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(pack(b"".join(ROWS[:30])) + padding + pack(b"".join(ROWS[30:])) + padding)
    assert read_letor(path).X.ravel().tolist() == [*range(80)]
    assert sum(np.count_nonzero(piece.buffer == 10) for _, piece in text_pieces(str(path), 64)) == 80


def damaged_second_streams():
    """Files of 30 rows, followed by something that is no second stream of the same compression."""
    zstd = pa.Codec("zstd")
    packs = {".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}
    for suffix, pack in (packs | {".zst": lambda text: zstd.compress(text, asbytes=True)}).items():
        first, second = pack(b"".join(ROWS[:30])), pack(b"".join(ROWS[30:]))
        tails = {"flipped": b"\0" + second[1:], "cut": second[:-4], "garbage": b"garbage", "bit": b"\1"}
        tails |= {"odd padding": bytes(3) + second, "padding": bytes(5)} if suffix != ".gz" else {}
        yield from (pytest.param(suffix, first + tail, id=f"{suffix} {name}") for name, tail in tails.items())


@pytest.mark.parametrize(("suffix", "contents"), [*damaged_second_streams()])
def test_what_follows_a_stream_and_is_none_is_refused(tmp_path, suffix, contents):
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(contents)
    with pytest.raises(OSError, match=r"a\.txt.* cannot be decompressed"):
        read_letor(path)
    with pytest.raises(OSError, match=r"a\.txt.* cannot be decompressed"):
        [*text_pieces(str(path))]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_what_is_written_is_read(tmp_path, suffix):
    X = np.array([[5e-324, 1e308, -0.0], [0.1, -1 / 3, 2.0**-1022]])
    path = tmp_path / f"a.txt{suffix}"
    write_letor(path, X, [0.5, 3], [0, 2**63 - 1], docid=["a#b", "two words"])
    data = read_letor(path)
    np.testing.assert_array_equal(bits(data.X.ravel()), bits(X.ravel()))
    assert data.y.tolist() == [0.5, 3]
    assert data.qid.tolist() == [0, 2**63 - 1]
    assert data.docid.tolist() == ["a#b", "two words"]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1
    ),
    zero_based=st.booleans(),
    stored=st.booleans(),
)
def test_round_trip_is_exact(tmp_path_factory, rows, zero_based, stored):
    path = tmp_path_factory.mktemp("round") / "a.txt"
    X = np.array(rows)
    matrix = sparse.csr_array(X) if stored else X
    write_letor(path, matrix, np.zeros(len(X)), np.arange(len(X)), zero_based=zero_based)
    back = read_letor(path, n_features=3, zero_based=zero_based, sparse=stored).X
    if stored:
        np.testing.assert_array_equal(bits(back.data), bits(matrix.data))
        np.testing.assert_array_equal(back.indices, matrix.indices)
    else:
        np.testing.assert_array_equal(bits(back.ravel()), bits(X.ravel()))


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_letor(tmp_path / "a", [[1.0]], [1], [1])
    before = (tmp_path / "a").read_bytes()
    broken = [
        (([[np.nan]], [1], [1]), NonFiniteError),
        (([[1.0]], [-1], [1]), GradeError),
        (([[1.0]], [1], ["q"]), NotNumericError),
        (([[1.0]], [1], [-1]), ParameterError),
        (([[1.0]], [1, 2], [1]), LengthMismatchError),
        (([1.0], [1], [1]), ShapeError),
        (([["a"]], [1], [1]), NotNumericError),
    ]
    for arguments, error in broken:
        with pytest.raises(error):
            write_letor(tmp_path / "a", *arguments)
    for docid in ("two\nlines", " a", "docid = b"):
        with pytest.raises(ParameterError):
            write_letor(tmp_path / "a", [[1.0]], [1], [1], docid=[docid])
    assert (tmp_path / "a").read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_several_files_read_as_one(tmp_path):
    (tmp_path / "a").write_text("0 qid:1 1:1 #docid = x")
    (tmp_path / "b").write_text("1 qid:2 2:1")
    data = read_letor([tmp_path / "a", str(tmp_path / "b")])
    assert data.X.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert data.docid.tolist() == ["x", ""]
    assert read_letor([tmp_path / "a", tmp_path / "b"], sparse=True).X.toarray().tolist() == data.X.tolist()
    (tmp_path / "c").write_text("\n1 2:1")
    with pytest.raises(MalformedLineError, match="first row has one") as caught:
        read_letor([tmp_path / "a", tmp_path / "c"])
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "c"), 2)


def test_files_that_hold_nothing(tmp_path):
    (tmp_path / "a").write_text("# only a comment\n\n")
    with pytest.raises(EmptyDataError):
        read_letor(tmp_path / "a")
    with pytest.raises(EmptyDataError):
        read_letor([])
    with pytest.raises(FileNotFoundError):
        read_letor(tmp_path / "none")
    assert issubclass(EmptyDataError, ConcordantError)


def test_importing_the_readers_does_not_import_numba_or_pyarrow():
    heavy = "{'numba', 'pyarrow', 'pandas', 'scipy'}"
    code = f"import concordant.data.io, sys; print({heavy} & {{*sys.modules}})"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "set()\n"
    )


# -- real data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "shape", "queries"), [("mq2008", (15_211, 46), 784), ("ohsumed", (16_140, 25), 106)]
)
def test_letor_sets(shared_data, name, shape, queries):
    data = read_letor([shared_data / name / f"S{part}.txt.xz" for part in range(1, 6)])
    assert data.X.shape == shape
    assert data.n_queries == queries
    with lzma.open(shared_data / name / "S1.txt.xz") as stream:
        rows = letor_rows(stream.read())
    np.testing.assert_array_equal(data.X[: len(rows)], [list(row[2].values()) for row in rows])
    assert data.docid[: len(rows)].tolist() == [row[3] for row in rows]


def test_lightgbm_example(shared_data):
    folder = shared_data / "lightgbm-lambdarank"
    data = read_letor(folder / "rank.train.xz", group=folder / "rank.train.query.xz")
    assert data.X.shape == (3_005, 300)
    assert data.n_queries == 201
    assert np.bincount(data.y.astype(int)).tolist() == [645, 1_211, 858, 222, 69]


def test_line_ends_of_old_macs_are_refused(tmp_path):
    """As blanks they would let a comment swallow every row but the first."""
    (tmp_path / "x").write_bytes(b"2 qid:1 1:0.5 #docid = a\r0 qid:1 1:7 #docid = b\r")
    with pytest.raises(MalformedLineError, match="CR only"):
        read_letor(tmp_path / "x")


def test_an_absurd_exponent_is_read_as_python_reads_it(tmp_path):
    token = "1" + "0" * 100_001 + "e-100001"
    (tmp_path / "x").write_text(f"1 qid:1 1:{token}\n")
    assert read_letor(tmp_path / "x").X.tolist() == [[float(token)]]


@pytest.mark.parametrize(
    "options",
    [{"n_features": 2.5}, {"n_features": "3"}, {"dtype": "x"}, {"dtype": int}, {"fill": "a"}, {"group": 3}],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(tmp_path, options):
    (tmp_path / "x").write_text("1 1:2\n")
    with pytest.raises(ParameterError):
        read_letor(tmp_path / "x", **options)
