"""PrefLib files: ballots, preference matrices against their definition, faults by line and column."""

import itertools
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concordant.data.io import Digraph, Profile, read_preflib
from concordant.exceptions import EmptyDataError, MalformedLineError, UnknownNameError

HEADER = "# NUMBER ALTERNATIVES: 4\n" + "".join(f"# ALTERNATIVE NAME {i}: item {i}\n" for i in range(1, 5))


def read(tmp_path, text, suffix):
    path = tmp_path / f"file{suffix}"
    path.write_text(text)
    return read_preflib(path)


def preference_matrix(profile, *, unranked_last):
    """Pair by pair, from the definition."""
    n = len(profile.names)
    matrix = np.zeros((n, n))
    for count, ballot in zip(profile.counts, profile.ballots, strict=True):
        groups = [*ballot]
        if unranked_last:
            groups.append([item for item in range(n) if all(item not in group for group in ballot)])
        for rank, better in enumerate(groups):
            for worse in groups[rank + 1 :]:
                for i in better:
                    for j in worse:
                        matrix[i, j] += count
    return matrix


def check_matrix(profile, matrix):
    for unranked_last in (False, True):
        expected = preference_matrix(profile, unranked_last=unranked_last)
        np.testing.assert_array_equal(matrix(unranked_last=unranked_last), expected)


def test_ballots(tmp_path):
    profile = read(tmp_path, HEADER + "3: 2,{1,4},3\r\n12: { 3 } , 1\n1: {1,2,3,4}\n", ".toi")
    assert profile.names == ["item 1", "item 2", "item 3", "item 4"]
    assert profile.counts.tolist() == [3, 12, 1]
    assert profile.ballots == [[[1], [0, 3], [2]], [[2], [0]], [[0, 1, 2, 3]]]


def test_digraph(tmp_path):
    graph = read(tmp_path, HEADER + "1,2,1.5\n2, 1, 3\n1,2,1e1\n", ".wmd")
    assert isinstance(graph, Digraph)
    assert graph.source.tolist() == [0, 1, 0]
    assert graph.matrix()[:2, :2].tolist() == [[0.0, 11.5], [3.0, 0.0]]
    assert read(tmp_path, HEADER, ".wmd").matrix().sum() == 0


@st.composite
def profiles(draw):
    n = draw(st.integers(1, 6))
    ballots = []
    for _ in range(draw(st.integers(0, 5))):
        items = draw(st.permutations(range(n)))[: draw(st.integers(1, n))]
        cuts = sorted(draw(st.sets(st.integers(1, len(items)), max_size=4)) | {0, len(items)})
        ballots.append([items[a:b] for a, b in itertools.pairwise(cuts)])
    counts = draw(st.lists(st.integers(1, 9), min_size=len(ballots), max_size=len(ballots)))
    return Profile([f"i{item}" for item in range(n)], np.array(counts, dtype=np.int64), ballots)


@given(profiles())
def test_matrix_is_its_definition(profile):
    check_matrix(profile, profile.matrix)


def test_the_check_rejects_a_matrix_that_counts_ties():
    profile = Profile(["a", "b"], np.array([1]), [[[0, 1]]])
    with pytest.raises(AssertionError):
        check_matrix(profile, lambda **_: np.array([[0.0, 0.5], [0.5, 0.0]]))


@given(profiles().filter(lambda profile: profile.counts.any()))
def test_written_ballots_are_read(tmp_path_factory, profile):
    lines = [f"# ALTERNATIVE NAME {i + 1}: {name}" for i, name in enumerate(profile.names)]
    for count, ballot in zip(profile.counts, profile.ballots, strict=True):
        groups = [",".join(str(item + 1) for item in group) for group in ballot]
        lines.append(
            f"{count}: "
            + ",".join(f"{{{g}}}" if len(b) > 1 else g for g, b in zip(groups, ballot, strict=True))
        )
    back = read(tmp_path_factory.mktemp("preflib"), "\n".join(lines), ".toi")
    assert back.ballots == profile.ballots
    assert back.counts.tolist() == profile.counts.tolist()
    assert back.names == profile.names


@pytest.mark.parametrize(
    ("suffix", "body", "column", "words"),
    [
        (".soc", "1: 1,2,3", 0, "3 of 4 alternatives"),
        (".soc", "1: 1,2,{3,4}", 0, "a tie"),
        (".soi", "1: {1,2}", 0, "a tie"),
        (".toi", "1 1,2", 1, "count: order"),
        (".toi", "x: 1,2", 1, "count: order"),
        (".toi", "1: 1,5", 6, "no alternative 5"),
        (".toi", "1: 0", 4, "no alternative 0"),
        (".toi", "1: 1,2,1", 8, "ranked twice"),
        (".toi", "1: 1,,2", 6, "',' does not fit"),
        (".toi", "1: 1 2", 6, "'2' does not fit"),
        (".toi", "1: 1,x", 6, "'x' does not fit"),
        (".toi", "1: {1,{2}}", 7, "'{' does not fit"),
        (".toi", "1: 1},2", 5, "'}' does not fit"),
        (".toi", "1: {},2", 5, "'}' does not fit"),
        (".toi", "1: {1,2", 7, "is incomplete"),
        (".toi", "1: 1,", 5, "is incomplete"),
        (".toi", "1:", 2, "is incomplete"),
        (".wmd", "1,2", 1, "source, target, weight"),
        (".wmd", "1,2,nan", 1, "source, target, weight"),
        (".wmd", "1,2,1e999", 1, "source, target, weight"),
        (".wmd", "1, 9,1.0", 4, "no alternative 9"),
    ],
)
def test_faults_name_line_and_column(tmp_path, suffix, body, column, words):
    with pytest.raises(MalformedLineError, match=words) as caught:
        read(tmp_path, HEADER + body + "\n", suffix)
    assert (caught.value.line, caught.value.column) == (6, column)


@pytest.mark.parametrize(
    ("suffix", "header", "body", "words"),
    [
        (".toi", "NUMBER VOTERS: 4", "3: 1,2\n", "NUMBER VOTERS is 4, but the lines below have 3"),
        (".toi", "NUMBER UNIQUE ORDERS: 2", "3: 1,2\n", "NUMBER UNIQUE ORDERS is 2, .* have 1"),
        (".wmd", "NUMBER EDGES: 0", "1,2,1.0\n", "NUMBER EDGES is 0, .* have 1"),
    ],
)
def test_a_file_that_was_cut_off_is_refused(tmp_path, suffix, header, body, words):
    with pytest.raises(MalformedLineError, match=f"line 6: {words}"):
        read(tmp_path, f"{HEADER}# {header}\n{body}", suffix)


def test_what_the_header_states_may_be_so(tmp_path):
    text = f"{HEADER}# NUMBER VOTERS: 03\n# NUMBER UNIQUE ORDERS: 2\n3: 1,2\n0: 2,1\n"
    assert read(tmp_path, text, ".toi").counts.tolist() == [3, 0]
    with pytest.raises(MalformedLineError, match="every count is 0"):
        read(tmp_path, f"{HEADER}0: 1,2\n0: 2,1\n", ".toi")


def test_digits_of_other_scripts_and_other_encodings_are_refused(tmp_path):
    with pytest.raises(MalformedLineError, match="line 6, column 3: '\u0662' does not fit"):
        read(tmp_path, f"{HEADER}1:\u0662\n", ".toi")
    (tmp_path / "a.soi").write_bytes(HEADER.encode() + b"# ALTERNATIVE NAME 5: caf\xe9\n1: 1\n")
    with pytest.raises(MalformedLineError, match="line 6, column 26: byte 0xe9 is not UTF-8"):
        read_preflib(tmp_path / "a.soi")


def test_headers_and_suffixes(tmp_path):
    with pytest.raises(MalformedLineError, match="number 2 is unnamed"):
        read(tmp_path, "# NUMBER ALTERNATIVES: 2\n# ALTERNATIVE NAME 1: a\n1: 1\n", ".soi")
    with pytest.raises(UnknownNameError, match="soc"):
        read(tmp_path, HEADER, ".cat")
    with pytest.raises(EmptyDataError):
        read(tmp_path, "\n", ".soc")


@pytest.mark.parametrize(
    ("archive", "elections", "voters"),
    [
        ("00006-skate", 48, 416),
        ("00015-cleanweb", 79, None),
        ("00024-dots", 4, 3_183),
        ("00025-puzzle", 4, 3_180),
        ("00032-education", 10, None),
        ("00034-cities", 2, 784),
        ("00064-eurovision", 73, 2_257),
    ],
)
def test_real_elections(shared_data, tmp_path, archive, elections, voters):
    with tarfile.open(shared_data / "preflib" / f"{archive}.tar.xz") as tar:
        tar.extractall(tmp_path, filter="data")
    paths = sorted(path for path in tmp_path.rglob("*") if path.suffix in (".soc", ".soi", ".toc", ".toi"))
    assert len(paths) == elections
    total = 0
    for path in paths:
        profile = read_preflib(path)
        stated = next(line for line in path.read_text().splitlines() if line.startswith("# NUMBER VOTERS:"))
        assert profile.counts.sum() == int(stated.split(":")[1])
        total += profile.counts.sum()
        if len(profile.names) < 40:
            check_matrix(profile, profile.matrix)
    assert voters is None or total == voters
