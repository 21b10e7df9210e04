"""Every reader refuses what it cannot read by a named error, whatever the bytes are."""

import itertools
import time
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concordant import ConcordantError
from tests.contracts.files import Reader, binary_readers, text_readers
from tests.contracts.fuzzing import fuzzed, read_outcome
from tests.contracts.mutations import WORDS
from tests.contracts.outcomes import ACCEPTED, BROKEN, REFUSED

pytestmark = pytest.mark.once

READERS = [*text_readers(), *binary_readers()]
each = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)


def files(reader):
    """Any bytes; and words of sound files, among others, in any order."""
    pieces = sorted({piece for seed in reader.seeds for piece in seed.replace(b"\n", b" \n ").split(b" ")})
    words = st.sampled_from([*pieces, b" ", b"\n", b",", *WORDS])
    return st.binary(max_size=100) | st.lists(words, max_size=30).map(b"".join)


@each
def test_sound_files_are_read(reader, tmp_path):
    for contents in reader.seeds:
        assert read_outcome(reader, tmp_path / f"file{reader.suffix}", contents).kind == ACCEPTED


@each
def test_almost_sound_files(reader, tmp_path):
    outcomes = list(fuzzed(reader, tmp_path, seed=1, n=60))
    assert [(contents, outcome) for contents, outcome in outcomes if outcome.kind == BROKEN] == []
    assert {outcome.kind for _, outcome in outcomes} >= {REFUSED}


@pytest.mark.slow
@each
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_bytes(reader, tmp_path, data):
    outcome = read_outcome(reader, tmp_path / f"file{reader.suffix}", data.draw(files(reader)))
    assert outcome.kind != BROKEN, outcome.message


def cut_within(contents, share):
    """A file of which some bytes in the middle are gone."""
    middle = int(share * len(contents))
    return contents[:middle] + contents[middle + 8 :]


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("evaluate -o table", lambda seed: seed.replace(b"rr", b"r\rr", 1)),  # csv.Error
        *(("read_table(parquet)", partial(cut_within, share=share)) for share in (0.02, 0.3, 0.5)),  # OSError
        *(("read_table(feather)", partial(cut_within, share=share)) for share in (0.05, 0.4, 0.8)),  # OSError
        ("load", partial(cut_within, share=0.5)),
        ("read_letor(gz)", lambda seed: seed[:-4]),
    ],
)
def test_files_that_once_broke_a_reader(name, damaged, tmp_path):
    reader = next(candidate for candidate in READERS if candidate.name == name)
    outcome = read_outcome(reader, tmp_path / f"file{reader.suffix}", damaged(reader.seeds[0]))
    assert outcome.kind == REFUSED, outcome.message
    assert f"file{reader.suffix}" in outcome.message


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (lambda path: int(path.read_text()), "invalid literal"),  # Python's own words name nothing
        (lambda path: path.read_text().split()[7], "IndexError"),
        (lambda _: float("nan"), "accepted, but it is nan"),
        (lambda _: time.sleep(9), "not read within 1 s"),
        (lambda _: [].append(1 / 0), "division by zero"),
    ],
)
def test_bad_readers_are_detected(read, problem, tmp_path):
    outcome = read_outcome(Reader("bad", ".txt", read, (b"x",)), tmp_path / "file.txt", b"x", seconds=1)
    assert outcome.kind == BROKEN
    assert problem in outcome.message


def test_a_refusal_is_none_of_these(tmp_path):
    def read(path):
        raise ConcordantError(f"{path}: no.")

    assert read_outcome(Reader("good", ".txt", read, (b"x",)), tmp_path / "file.txt", b"x").kind == REFUSED


def test_equal_seeds_give_equal_files(tmp_path):
    first, second = ([contents for contents, _ in fuzzed(READERS[0], tmp_path, 3, 5)] for _ in range(2))
    assert first == second
    assert len(set(itertools.chain(first, READERS[0].seeds))) > 4
