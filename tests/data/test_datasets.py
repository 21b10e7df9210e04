"""Named datasets: the counts of the data's own README, both layouts, and errors that help."""

import lzma

import numpy as np
import pytest

from concordant.data import datasets
from concordant.data.datasets import ComparisonData, Fold
from concordant.data.datasets.loaders import DATASETS
from concordant.data.queries import Queries
from concordant.exceptions import ChecksumError, DatasetNotFoundError, ParameterError, UnknownNameError
from tests import oracles

HERE = ("mq2007-partial", "mq2008", "ohsumed", "lightgbm-lambdarank", "sushi")
PARTS = {
    "mq2008": ((157, 2933), (157, 3635), (157, 3062), (157, 2707), (156, 2874)),
    "ohsumed": ((21, 2570), (21, 3076), (21, 3573), (21, 3538), (22, 3383)),
    "mq2007-partial": ((339, 11933), (339, 12239), (339, 11797), (339, 11736), (336, 11585)),
}
# name -> (left wins, ties, right wins), items
OUTCOMES = {
    "chess-twic": ((159_910, 160_235, 121_015), 28_299),
    "chess-worldcup": ((388, 631, 247), 240),
    "football-international": ((None, 11_258, None), 337),
    "cems": ((2595, 487, 1372), 6),
    "icehockey": ((366, 125, 592), 58),
    "springall": ((None, 198, None), 9),
    "pudding": ((None, 202, None), 6),
    "llmfao": ((2911, 3471, 2549), 59),
    "llmfao-gpt3": ((None, 313, None), 70),
    "llmfao-gpt4": ((None, 139, None), 70),
    "sushi-pairs": ((None, 17_832, None), 100),
    "svmcompare-l2": ((1707, 4889, 3404), 20_000),
}
# name -> elections, ballots
ELECTIONS = {
    "preflib-netflix": (200, None),
    "preflib-skate": (48, 416),
    "preflib-agh": (2, 299),
    "preflib-shirt": (1, 30),
    "preflib-cleanweb": (79, None),
    "preflib-dots": (4, 3183),
    "preflib-puzzle": (4, 3180),
    "preflib-education": (7, 153),
    "preflib-cities": (2, 784),
    "preflib-breakfast": (6, 252),
    "preflib-eurovision": (73, 2257),
}


def counts(data):
    return data.n_queries, len(data.y)


# ---------------------------------------------------------------- the table


def test_the_table_is_complete():
    assert len(set(datasets.names())) == len(DATASETS)
    for dataset in DATASETS:
        assert dataset.title
        assert dataset.source
        assert dataset.licence
        assert dataset.kind in {"grades", "orders", "comparisons", "annotations", "elections"}
        for layout in dataset.layouts:
            assert set(layout) <= ({"train", "validation", "test"} if dataset.folds else {"all"})
    tested = {*HERE, *OUTCOMES, *ELECTIONS, "sushi-orders-a", "sushi-orders-b", "crowd-relevance"}
    tested |= {"crowd-relevance-others", "crowd-ordinal-hcomp2010"}
    official = {"mq2007", "mslr-web10k", "mslr-web30k", "yahoo-set1", "yahoo-set2"}
    assert set(datasets.names()) == tested | official | {"istella", "istella-s", "istella-x"}


def test_every_checksum_belongs_to_a_file_of_the_table():
    file_names = set()
    for dataset in DATASETS:
        for layout in dataset.layouts:
            for name in (name for files in layout.values() for name in files):
                file_names |= {name.format(*(k % 5 + 1 for k in range(f, f + 5))) for f in range(5)}
    for dataset in DATASETS:
        for name in dataset.checksums:
            assert any(path.endswith(name) for path in file_names), name


def test_rows_for_the_command_line(shared_data):
    rows = {row["name"]: row for row in datasets.table(shared_data)}
    assert rows["mq2008"]["present"]
    assert not rows["mslr-web30k"]["present"]
    assert (rows["mslr-web30k"]["queries"], rows["mslr-web30k"]["features"]) == (31_531, 136)
    assert set(datasets.available(shared_data)) == {name for name, row in rows.items() if row["present"]}
    assert len(datasets.available(shared_data)) >= 30


def test_descriptions_name_owner_terms_and_files():
    text = datasets.describe("mslr-web10k")
    for part in (
        "10,000 queries",
        "136 features",
        "0..4",
        "microsoft.com",
        "MSLR-WEB10K",
        "Fold1/train.txt",
    ):
        assert part in text


# ---------------------------------------------------------------- real data


@pytest.mark.parametrize("name", HERE)
def test_graded_counts(shared_data, name):
    data = datasets.load(name, folder=shared_data, verify=True)
    entry = datasets.get(name)
    assert counts(data) == (entry.queries, entry.documents)
    assert data.X.shape[1] == entry.features
    low, high = (int(grade) for grade in entry.grades.split(".."))
    assert (data.y.min(), data.y.max()) == (low, high)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_folds_are_rotations_of_the_parts(shared_data, name, number):
    parts = [PARTS[name][(number - 1 + step) % 5] for step in range(5)]
    validation = datasets.load(name, fold=number, split="validation", folder=shared_data)
    test = datasets.load(name, fold=number, split="test", folder=shared_data)
    assert [counts(validation), counts(test)] == parts[3:]


def test_a_fold_has_three_disjoint_parts(shared_data):
    fold = datasets.load("mq2008", fold=2, folder=shared_data)
    assert isinstance(fold, Fold)
    assert counts(fold.train) == (157 * 3, 3635 + 3062 + 2707)
    ids = [set(np.unique(part.qid)) for part in (fold.train, fold.validation, fold.test)]
    assert len(set.union(*ids)) == sum(len(part) for part in ids) == 784
    alone = datasets.load("mq2008", fold=2, split="train", folder=shared_data)
    assert np.array_equal(alone.X, fold.train.X)


def test_grade_counts_of_mq2007_partial(shared_data):
    data = datasets.load("mq2007-partial", folder=shared_data, dtype=np.float32)
    assert np.bincount(data.y.astype(int)).tolist() == [43_968, 12_030, 3292]
    assert data.X.dtype == np.float32


def test_lightgbm_has_one_split_without_validation(shared_data):
    fold = datasets.load("lightgbm-lambdarank", fold=1, folder=shared_data, sparse=True)
    assert (counts(fold.train), fold.validation, counts(fold.test)) == ((201, 3005), None, (50, 768))
    assert np.bincount(fold.train.y.astype(int)).tolist() == [645, 1211, 858, 222, 69]
    assert fold.train.X.shape[1] == fold.test.X.shape[1] == 300
    train = datasets.load("lightgbm-lambdarank", split="train", folder=shared_data)
    assert np.array_equal(train.X, fold.train.X.toarray())
    with pytest.raises(UnknownNameError, match="test, train"):
        datasets.load("lightgbm-lambdarank", split="validation", folder=shared_data)


@pytest.mark.parametrize("name", OUTCOMES)
def test_comparison_counts(shared_data, name):
    data = datasets.load(name, folder=shared_data, verify=True)
    assert isinstance(data, ComparisonData)
    outcomes, items = OUTCOMES[name]
    for outcome, count in zip((-1, 0, 1), outcomes, strict=True):
        assert count is None or (data.comparisons.outcome == outcome).sum() == count
    assert len(data.comparisons.items) == items == datasets.get(name).documents
    if name not in {"springall", "pudding"}:  # there contests are counted, comparisons are written out
        assert len(data.comparisons) == datasets.get(name).queries
        assert len(data.extras["rows"]) == len(data.comparisons)
    if data.pairs is not None:
        assert data.pairs.shape == (len(data.comparisons), 2, datasets.get(name).features)
        assert len(data.feature_names) == datasets.get(name).features
    assert f"{len(data.comparisons):,} comparisons" in repr(data)


def test_outcomes_have_the_right_sign(shared_data):
    chess = datasets.load("chess-worldcup", folder=shared_data)
    elo = chess.pairs[:, :, 0]
    stronger_right = elo[:, 1] > elo[:, 0] + 100
    assert chess.comparisons.outcome[stronger_right].mean() > 0.2
    football = datasets.load("football-international", folder=shared_data)
    at_home = football.pairs[:, 0, 0] == 1
    assert (~at_home).sum() == 13_156  # on neutral ground
    assert football.comparisons.outcome[at_home].mean() < -0.2
    hockey = datasets.load("icehockey", folder=shared_data)
    assert hockey.comparisons.outcome[hockey.pairs[:, 1, 0] == 1].mean() > 0.1
    simulated = datasets.load("svmcompare-l2", folder=shared_data)
    gap = (simulated.pairs[:, 1] ** 2).sum(axis=1) - (simulated.pairs[:, 0] ** 2).sum(axis=1)
    assert np.corrcoef(gap, simulated.comparisons.outcome)[0, 1] > 0.8


def test_counts_are_written_out(shared_data):
    pudding = datasets.load("pudding", folder=shared_data)
    votes = pudding.comparisons
    first = (votes.left == 1) & (votes.right == 2)
    assert [int((votes.outcome[first] == y).sum()) for y in (-1, 0, 1)] == [19, 16, 22]
    springall = datasets.load("springall", folder=shared_data)
    left = springall.comparisons.left == 1
    assert np.unique(springall.pairs[left, 0], axis=0).tolist() == [[0.6, 0.0]]


def test_sushi(shared_data):
    scores = datasets.load("sushi", folder=shared_data)
    ties = sum(
        int(n * (n - 1) // 2) for user in scores.y.reshape(5000, 10) for n in np.bincount(user.astype(int))
    )
    assert ties == 73_150
    for name in ("sushi-orders-a", "sushi-orders-b"):
        orders = datasets.load(name, folder=shared_data, verify=True)
        queries = Queries.from_ids(orders.qid)
        assert queries.n_queries == 5000
        orders.y.grouped(queries)  # refuses what is no permutation
    graded = {(user, item): y for user, item, y in zip(scores.qid, scores.docid, scores.y, strict=True)}
    grades = np.array([graded[key] for key in zip(orders.qid, orders.item, strict=True)])
    by_place = [grades[orders.y.positions == position].mean() for position in (1, 10)]
    assert by_place == pytest.approx([3.9, 1.2], abs=0.05)
    assert orders.X.shape == (50_000, 7)


def test_sushi_pairs(shared_data):
    published = datasets.load("sushi-pairs", folder=shared_data, seed=None)
    assert np.bincount(published.comparisons.outcome + 1).tolist() == [0, 17_832, 7168]
    data = datasets.load("sushi-pairs", folder=shared_data)
    turned = data.comparisons.left != published.comparisons.left
    assert 0.48 < turned.mean() < 0.52
    assert np.array_equal(data.comparisons.outcome * np.where(turned, -1, 1), published.comparisons.outcome)
    assert np.array_equal(data.pairs[turned][:, ::-1], published.pairs[turned])
    assert np.array_equal(data.pairs[~turned], published.pairs[~turned])
    other = datasets.load("sushi-pairs", folder=shared_data, seed=1)
    assert (other.comparisons.left != data.comparisons.left).any()


def test_sushi_pairs_are_those_of_the_definition(shared_data):
    data = datasets.load("sushi-pairs", folder=shared_data, seed=None)
    with lzma.open(shared_data / "sushi" / "sushi3b.5000.10.score.xz", "rt") as stream:
        scores = [[int(score) for score in next(stream).split()] for _ in range(300)]
    expected = [pair for row in scores for pair in oracles.sushi_pairs(row)]
    votes = data.comparisons
    pairs = zip(votes.left.tolist(), votes.right.tolist(), votes.outcome.tolist(), strict=True)
    assert list(pairs)[: len(expected)] == expected
    assert data.extras["rows"]["user"].to_pylist()[: len(expected)] == np.repeat(np.arange(300), 5).tolist()


def test_sushi_pairs_describe_sushi_and_person(shared_data):
    data = datasets.load("sushi-pairs", folder=shared_data)
    home, scored = shared_data / "sushi", datasets.load("sushi", folder=shared_data)
    if not (home / "prefecture_latlon_approx.csv").is_file():
        pytest.skip("the table of coordinates is no part of the official archive")
    places = np.loadtxt(home / "prefecture_latlon_approx.csv", delimiter=",", skiprows=1, usecols=(2, 3))
    user = data.extras["rows"]["user"].to_numpy()
    person = scored.X[10 * user, 7:]
    columns = (person[:, :3], places[person[:, 3].astype(int)], places[person[:, 6].astype(int)])
    for side, item in enumerate((data.comparisons.left, data.comparisons.right)):
        assert np.array_equal(data.pairs[:, side, 7:], np.concatenate(columns, axis=1))
        kind = dict(zip(scored.docid.tolist(), scored.X[:, :7], strict=True))
        assert np.array_equal(data.pairs[:, side, :7], np.stack([kind[number] for number in item.tolist()]))


@pytest.mark.parametrize("name", ELECTIONS)
def test_elections(shared_data, name):
    elections = datasets.load(name, folder=shared_data, verify=True)
    number, ballots = ELECTIONS[name]
    assert len(elections) == number == datasets.get(name).queries
    if ballots is not None:
        assert sum(int(profile.counts.sum()) for profile in elections.values()) == ballots


def test_annotations(shared_data):
    votes = datasets.load("crowd-relevance", folder=shared_data, verify=True)
    others = datasets.load("crowd-relevance-others", folder=shared_data, verify=True)
    assert (len(votes.item), len(others.item)) == (17_395, 41_081)
    for data, name in ((votes, "crowd-relevance"), (others, "crowd-relevance-others")):
        assert len(np.unique(data.item)) == datasets.get(name).documents
        assert set(np.unique(data.grade)) == {0, 1}
        assert set(data.gold.values()) == {0, 1, 2}
        assert np.isin(list(data.gold), data.item).mean() > 0.5
    grades = datasets.load("crowd-ordinal-hcomp2010", folder=shared_data, verify=True)
    assert len(grades.grade) == 44_373 - 737
    assert (len(np.unique(grades.annotator)), len(np.unique(grades.item))) == (338, 496)
    assert set(np.unique(grades.grade)) == {0, 1, 2, 3}


# ---------------------------------------------------------------- layouts, on made-up files


def letor(query, n_features=46, grade=1):
    return f"{grade} qid:{query} 1:0.5 {n_features}:{query} #docid = d{query}\n"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".xz":
        path.write_bytes(lzma.compress(text.encode()))
    else:
        path.write_text(text)


@pytest.mark.parametrize("folder", ["MQ2008", "mq2008"])
def test_official_folds(tmp_path, folder):
    for number, split in enumerate(("train", "vali", "test"), start=1):
        write(tmp_path / folder / "Fold3" / f"{split}.txt", letor(number))
    fold = datasets.load("mq2008", fold=3, folder=tmp_path)
    assert [part.qid.tolist() for part in (fold.train, fold.validation, fold.test)] == [[1], [2], [3]]
    assert fold.train.X.shape == (1, 46)
    inside = datasets.load("mq2008", fold=3, split="test", folder=tmp_path / folder)
    assert inside.qid.tolist() == [3]
    with pytest.raises(DatasetNotFoundError, match=r"Fold1/train\.txt"):
        datasets.load("mq2008", folder=tmp_path)


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_parts(tmp_path, suffix):
    for number in range(1, 6):
        write(tmp_path / "mq2007" / f"S{number}.txt{suffix}", letor(number))
    assert datasets.load("mq2007", folder=tmp_path).qid.tolist() == [1, 2, 3, 4, 5]
    fold = datasets.load("mq2007", fold=4, folder=tmp_path)
    assert fold.train.qid.tolist() == [4, 5, 1]
    assert (fold.validation.qid.tolist(), fold.test.qid.tolist()) == ([2], [3])


@pytest.mark.parametrize(
    ("name", "files", "n_features"),
    [
        ("ohsumed", [f"OHSUMED/Data/Fold1/{s}set.txt" for s in ("training", "validation", "test")], 25),
        ("mslr-web10k", [f"MSLR-WEB10K/Fold1/{s}.txt" for s in ("train", "vali", "test")], 136),
        ("mslr-web30k", [f"MSLR-WEB30K/Fold1/{s}.txt" for s in ("train", "vali", "test")], 136),
        ("yahoo-set1", [f"ltrc_yahoo/set1.{s}.txt" for s in ("train", "valid", "test")], 700),
        ("yahoo-set2", [f"ltrc_yahoo/set2.{s}.txt" for s in ("train", "valid", "test")], 700),
        ("istella-s", [f"istella-s-letor/sample/{s}.txt" for s in ("train", "vali", "test")], 220),
        ("istella-x", [f"istella-x/{s}.txt" for s in ("train", "vali", "test")], 220),
    ],
)
def test_official_layouts(tmp_path, name, files, n_features):
    for number, file in enumerate(files, start=1):
        write(tmp_path / file, letor(number, n_features))
    fold = datasets.load(name, fold=1, folder=tmp_path)
    assert [part.qid.tolist() for part in (fold.train, fold.validation, fold.test)] == [[1], [2], [3]]
    assert fold.test.X.shape == (1, n_features)
    assert datasets.load(name, folder=tmp_path).qid.tolist() == [1, 2, 3]
    assert datasets.available(tmp_path) == (name,)


def test_istella_has_no_validation(tmp_path):
    for number, split in enumerate(("train", "test"), start=1):
        write(tmp_path / "istella-letor" / "full" / f"{split}.txt", letor(number, 220))
    assert datasets.load("istella", fold=1, folder=tmp_path).validation is None


# ---------------------------------------------------------------- folders and errors


def test_the_folder_comes_from_argument_environment_or_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CONCORDANT_DATA", str(tmp_path / "environment"))
    assert datasets.data_folder(tmp_path) == tmp_path
    assert datasets.data_folder() == tmp_path / "environment"
    monkeypatch.delenv("CONCORDANT_DATA")
    assert "concordant" in str(datasets.data_folder())


def test_missing_files_say_where_to_get_and_where_to_put_them(tmp_path):
    with pytest.raises(DatasetNotFoundError) as error:
        datasets.load("mslr-web30k", fold=2, folder=tmp_path)
    text = str(error.value)
    for part in (
        "Fold2/train.txt",
        str(tmp_path / "MSLR-WEB30K"),
        "microsoft.com",
        "research",
        "CONCORDANT_DATA",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"name": "mq2009"}, UnknownNameError, "Did you mean 'mq200"),
        ({"name": "mq2008", "fold": 6}, ParameterError, "1 to 5"),
        ({"name": "mq2008", "fold": 0}, ParameterError, "1 to 5"),
        ({"name": "mq2008", "split": "test"}, ParameterError, "if split is given"),
        ({"name": "mq2008", "fold": 1, "split": "dev"}, UnknownNameError, "validation"),
        ({"name": "chess-twic", "fold": 1}, ParameterError, "has no folds"),
        ({"name": "chess-twic", "split": "train"}, UnknownNameError, "split of chess-twic"),
    ],
)
def test_impossible_requests(tmp_path, arguments, error, text):
    with pytest.raises(error, match=text):
        datasets.load(**arguments, folder=tmp_path)


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_other_contents_are_noticed_on_request(tmp_path, suffix):
    for number in range(1, 6):
        write(tmp_path / "mq2008" / f"S{number}.txt{suffix}", letor(number))
    assert datasets.load("mq2008", folder=tmp_path).n_queries == 5
    with pytest.raises(ChecksumError, match=r"S1\.txt.*SHA-256 [0-9a-f]{64}, expected cbd42504"):
        datasets.load("mq2008", folder=tmp_path, verify=True)


def test_official_folds_are_verified_too(shared_data, tmp_path):
    def part(number):
        return lzma.decompress((shared_data / "mq2008" / f"S{number}.txt.xz").read_bytes())

    home = tmp_path / "MQ2008" / "Fold4"
    home.mkdir(parents=True)
    for split, numbers in (("train", (4, 5, 1)), ("vali", (2,)), ("test", (3,))):
        (home / f"{split}.txt").write_bytes(b"".join(part(number) for number in numbers))
    fold = datasets.load("mq2008", fold=4, folder=tmp_path, verify=True)
    parts = datasets.load("mq2008", fold=4, folder=shared_data)
    assert np.array_equal(fold.train.X, parts.train.X)
    assert np.array_equal(fold.test.qid, parts.test.qid)
