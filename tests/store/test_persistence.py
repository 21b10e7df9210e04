"""Model files: what comes back is the same to the last bit; what is damaged or foreign is refused by name."""

import io
import json
import zipfile
from contextlib import suppress
from dataclasses import fields, is_dataclass
from inspect import signature

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from concordant import Comparer, synthetic
from concordant.comparisons.comparer_recipe import Recipe
from concordant.comparisons.ratings import BradleyTerry, Davidson, Elo, Glicko, RaoKupper
from concordant.exceptions import ModelFileError
from concordant.store import describe, load, save
from concordant.store.model_file import CHECKSUM, checksum_file, digest, zip_files
from concordant.store.model_parts import PARTS
from concordant.store.registry import LEARNED, MODELS
from concordant.store.value_kinds import IDS, REAL, WHOLE, UnreadableError, array
from tests.helpers import old_model_files

GAMES = synthetic.comparisons(n=120, norm="l2", tie_share=0.4, seed=1)
RNG = np.random.default_rng(0)
LEFT, RIGHT = RNG.integers(0, 6, 300), RNG.integers(0, 5, 300)
RIGHT = RIGHT + (RIGHT >= LEFT)
OUTCOME = RNG.integers(-1, 2, 300)
NAMES = np.array(["ann", "bob", "cid", "dora", "eve", "für"])

COMPARERS = {
    "linear": Comparer(),
    "no calibration": Comparer(calibration=0, C=np.float64(0.3)),
    "rank": Comparer(method="rank"),
    "rank2": Comparer(method="rank2", C=7),
    "logistic": Comparer(loss="logistic"),
    "libsvm": Comparer("rbf", C=10.0),
    "poly": Comparer("poly", gamma=0.5, degree=2),
    "nystroem": Comparer("rbf", approximation="nystroem", n_components=30),
    "lp": Comparer(formulation="lp"),
    "kernel lp": Comparer("rbf", formulation="lp", calibration=0),
}
RATINGS = {
    "bradley-terry": BradleyTerry(ties="drop"),
    "davidson": Davidson(advantage=True),
    "rao-kupper": RaoKupper(alpha=0.1),
    "elo": Elo(k=20.0),
    "fide": Elo(k="fide"),
    "glicko": Glicko(period=30.0),
}


def again(model, folder):
    save(model, folder / "model.cmp")
    return load(folder / "model.cmp")


def same(first, second):
    """Whether two objects consist of the same values, to the last bit and the order in memory."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return same_arrays(first, second)
    if is_dataclass(first):
        return type(first) is type(second) and all(
            same(getattr(first, field.name), getattr(second, field.name)) for field in fields(first)
        )
    if isinstance(first, (list, tuple)) and type(first) is type(second):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    return type(first) is not np.ndarray and (first == second or (first != first and second != second))  # noqa: PLR0124


def same_arrays(first, second):
    """Whether two arrays are the same to the last bit, in the same order in memory."""
    if first.dtype == object:
        return first.tolist() == second.tolist()
    order = slice(None) if first.ndim > 1 else slice(0)  # of one axis, there is but one
    flags = [
        (values.dtype, values.shape, values.flags.writeable, values.strides[order])
        for values in (first, second)
    ]
    return flags[0] == flags[1] and first.tobytes() == second.tobytes()


@pytest.mark.parametrize("name", COMPARERS)
def test_a_loaded_comparer_is_the_same(name, tmp_path):
    model = COMPARERS[name].fit(GAMES.pairs, GAMES.y)
    loaded = again(model, tmp_path)
    assert type(loaded) is Comparer
    assert loaded.get_params() == model.get_params()
    others = RNG.normal(size=(500, 2, 2))
    assert loaded.decision_function(others).tobytes() == model.decision_function(others).tobytes()
    assert loaded.predict(others).tobytes() == model.predict(others).tobytes()
    assert same(loaded.machine_, model.machine_)
    assert (loaded.threshold_, loaded.method_, loaded.note_) == (model.threshold_, model.method_, model.note_)
    if model.calibration:
        assert loaded.predict_proba(others).tobytes() == model.predict_proba(others).tobytes()
    assert same(vars(loaded.fit(GAMES.pairs, GAMES.y)), vars(model))  # and can be fitted again


@pytest.mark.parametrize("name", RATINGS)
def test_loaded_ratings_are_the_same(name, tmp_path):
    timed = {"time": np.sort(RNG.integers(0, 900, 300))} if name == "glicko" else {}
    later = {"time": np.full(20, 901)} if name == "glicko" else {}
    model = RATINGS[name].fit(NAMES[LEFT], NAMES[RIGHT], OUTCOME, **timed)
    loaded = again(model, tmp_path)
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert same(vars(loaded), vars(model))
    assert (
        loaded.predict_proba(NAMES, NAMES[::-1]).tobytes()
        == model.predict_proba(NAMES, NAMES[::-1]).tobytes()
    )
    assert same(loaded.interval(0.9), model.interval(0.9))
    assert str(loaded.leaderboard()) == str(model.leaderboard())
    assert [part.tolist() for part in loaded.components_] == [part.tolist() for part in model.components_]
    new = np.append(NAMES[LEFT[:19]], "zoe"), NAMES[RIGHT[:20]], OUTCOME[:20]
    if name in ("bradley-terry", "davidson"):  # a newcomer with one vote has no finite rating
        new = NAMES[LEFT[:20]], *new[1:]
    updated = [estimator.update(*new, **later).ratings_ for estimator in (model, loaded)]
    assert same(*updated)


@pytest.mark.parametrize("ids", [np.arange(6), np.arange(6.0), NAMES, np.arange(6).astype("datetime64[D]")])
def test_ids_keep_their_type(ids, tmp_path):
    model = Elo().fit(ids[LEFT], ids[RIGHT], OUTCOME)
    assert same(again(model, tmp_path).items_, model.items_)


@pytest.mark.parametrize("model", [Comparer(loss="logistic"), Comparer("rbf", n_components=20), Comparer()])
def test_a_stream_goes_on(model, tmp_path):
    model.partial_fit(GAMES.pairs[:60], GAMES.y[:60])
    loaded = again(model, tmp_path)
    for comparer in (model, loaded):
        comparer.partial_fit(GAMES.pairs[60:], GAMES.y[60:])
    assert same(vars(loaded), vars(model))
    assert loaded.predict_proba(GAMES.pairs).tobytes() == model.predict_proba(GAMES.pairs).tobytes()
    assert loaded.stream_.state.count == 120


def test_degenerate_models(tmp_path):
    ties = Comparer()
    with pytest.warns(match="All training pairs are ties"):
        ties.fit(GAMES.pairs, np.zeros(120))
    constant = Comparer(calibration=0)
    with pytest.warns(match="No feature varies"):
        constant.fit(np.ones((2, 2, 1)), [1, -1])
    for model in (ties, constant):
        loaded = again(model, tmp_path)
        assert same(vars(loaded), vars(model))
    only_ties = Davidson(alpha=0.1).fit(["a"], ["b"], [0])
    assert again(only_ties, tmp_path).nu_ == np.inf
    for model in (Elo().fit(["a"], ["b"], [0]), Glicko().fit(["a"], ["b"], [0])):
        assert again(model, tmp_path).tie_ == np.inf
    separable = np.array([[[2.0], [0.0]], [[0.0], [2.0]], [[0.0], [0.0]]])
    hard = Comparer(C=np.inf, calibration=0).fit(separable, [1, -1, 0])
    assert np.inf == again(hard, tmp_path).C


def test_feature_names_travel(tmp_path):
    model = Comparer().fit(GAMES.pairs, GAMES.y)
    assert not hasattr(again(model, tmp_path), "feature_names_in_")
    model.feature_names_in_ = np.array(["width", "höhe"], dtype=object)
    assert again(model, tmp_path).feature_names_in_.tolist() == ["width", "höhe"]


def test_equal_models_give_equal_files(tmp_path):
    for name in "ab":
        save(Comparer("rbf").fit(GAMES.pairs, GAMES.y), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_compressed_by_suffix(tmp_path):
    model = Comparer().fit(GAMES.pairs, GAMES.y)
    save(model, tmp_path / "model.cmp.gz")
    assert (tmp_path / "model.cmp.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert same(vars(load(tmp_path / "model.cmp.gz")), vars(model))
    (tmp_path / "cut.gz").write_bytes((tmp_path / "model.cmp.gz").read_bytes()[:50])
    with pytest.raises(ModelFileError, match="decompressed"):
        load(tmp_path / "cut.gz")


def test_files_of_the_first_schema_still_load(tmp_path):
    games = synthetic.comparisons(n=12, norm="l2", tie_share=0.4, seed=1)
    (tmp_path / "comparer").write_bytes(old_model_files.COMPARER)
    (tmp_path / "elo").write_bytes(old_model_files.ELO)
    comparer, elo = load(tmp_path / "comparer"), load(tmp_path / "elo")
    np.testing.assert_allclose(
        comparer.decision_function(games.pairs[:3]), old_model_files.DECISIONS, atol=1e-12
    )
    assert comparer.feature_names_in_.tolist() == ["a", "b"]
    assert elo.ratings_.tolist() == old_model_files.RATINGS
    assert describe(tmp_path / "elo")["schema"] == 1
    save(elo, tmp_path / "anew")
    assert describe(tmp_path / "anew")["schema"] == 2
    damaged = bytearray(old_model_files.ELO)
    damaged[300] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(ModelFileError):
        load(tmp_path / "damaged")


# --- what is refused


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "model.cmp"
    function = Comparer(lambda a, b: a @ b.T, calibration=0).fit(GAMES.pairs, GAMES.y)
    with pytest.raises(ModelFileError, match=r"kernel is a function.*\nHint: use what the library has by"):
        save(function, path)
    with pytest.raises(NotFittedError):
        save(Comparer(), path)

    class Mine(Comparer):
        pass

    for other in (Mine().fit(GAMES.pairs, GAMES.y), {"a": 1}, None):
        with pytest.raises(ModelFileError, match="cannot be saved"):
            save(other, path)
    odd = Comparer(random_state=0).fit(GAMES.pairs, GAMES.y)
    odd.machine_ = (1, 2)
    with pytest.raises(ModelFileError, match=r"machine_ is not Machine\).\nHint: .* fit it again"):
        save(odd, path)
    assert not path.exists()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.cmp"
    save(Elo().fit(["a"], ["b"], [1]), path)
    before = path.read_bytes()
    with pytest.raises(ModelFileError):
        save(object(), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "contents", [b"", b"PK", b"left,right,outcome\na,b,1\n", b"\x00" * 100, b"PK\x05\x06" + b"\x00" * 18]
)
def test_no_model_file(contents, tmp_path):
    (tmp_path / "a").write_bytes(contents)
    with pytest.raises(ModelFileError):
        load(tmp_path / "a")


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "a")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        save(Elo().fit(["a"], ["b"], [1]), tmp_path / "no" / "a")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """One file of each kind, as its manifest and its arrays."""
    folder = tmp_path_factory.mktemp("models")
    models = {
        "kernel": Comparer("rbf", C=10.0).fit(GAMES.pairs[:30], GAMES.y[:30]),
        "stream": Comparer("rbf", n_components=5).partial_fit(GAMES.pairs[:30], GAMES.y[:30]),
        "davidson": Davidson().fit(NAMES[LEFT], NAMES[RIGHT], OUTCOME),
        "elo": Elo().fit(NAMES[LEFT], NAMES[RIGHT], OUTCOME),
    }
    for name, model in models.items():
        save(model, folder / name)
    return {name: (folder / name).read_bytes() for name in models}


def unzipped(contents):
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    del files[CHECKSUM]
    return json.loads(files.pop("manifest.json")), files


def zip_of(text, files):
    """A file of this manifest, with its right checksum."""
    text = text.encode()
    return zip_files({"manifest.json": text, CHECKSUM: checksum_file(text), **files})


def with_sizes(manifest, files):
    """Let the manifest tell the right checksums of these files."""
    manifest["arrays"] = {
        name: {"sha256": digest(contents), "bytes": len(contents)} for name, contents in files.items()
    }


def rewritten(tmp_path, manifest, files):
    """A file whose checksums are right, whatever it says."""
    with_sizes(manifest, files)
    (tmp_path / "changed").write_bytes(zip_of(json.dumps(manifest), files))
    return tmp_path / "changed"


def npy(values):
    stream = io.BytesIO()
    np.save(stream, values, allow_pickle=True)
    return stream.getvalue()


def test_rewriting_alone_changes_nothing(written, tmp_path):
    for contents in written.values():
        model = load(rewritten(tmp_path, *unzipped(contents)))
        save(model, tmp_path / "again")
        assert unzipped((tmp_path / "again").read_bytes()) == unzipped(contents)


def test_the_manifest_is_readable(written):
    manifest, files = unzipped(written["kernel"])
    assert manifest["format"] == "concordant model"
    assert (manifest["schema"], manifest["class"]) == (2, "Comparer")
    assert manifest["parameters"]["kernel"] == "rbf"
    assert set(manifest["arrays"]) == set(files) >= {"machine_.scorer.items.npy"}
    assert np.load(io.BytesIO(files["scaling_.mean.npy"])).shape == (2,)


CHANGES = {
    "format": lambda m, _: m.update(format="something"),
    "future": lambda m, _: m.update(schema=3, library="9.0"),
    "no version": lambda m, _: m.update(schema="1"),
    "class": lambda m, _: m.update({"class": "os.system"}),
    "a part as class": lambda m, _: m.update({"class": "Machine"}),
    "other class": lambda m, _: m.update({"class": "Elo"}),
    "class no text": lambda m, _: m.update({"class": ["Comparer"]}),
    "unknown parameter": lambda m, _: m["parameters"].update(colour="red"),
    "parameter of another version": lambda m, _: (m.update(library="9.0"), m["parameters"].update(mood=1)),
    "bad parameter": lambda m, _: m["parameters"].update(C=-1.0),
    "huge parameter": lambda m, _: m["parameters"].update(C=10**400),
    "list parameter": lambda m, _: m["parameters"].update(C=[1.0]),
    "array parameter": lambda m, _: m["parameters"].update(
        C={"array": "scaling_.mean.npy", "read_only": False}
    ),
    "no fitted": lambda m, _: m.pop("fitted"),
    "fitted no object": lambda m, _: m.update(fitted=[1]),
    "missing": lambda m, _: m["fitted"].pop("machine_"),
    "extra": lambda m, _: m["fitted"].update(predict="evil"),
    "unknown part": lambda m, _: m["fitted"]["machine_"].update(part="Popen"),
    "other part": lambda m, _: m["fitted"].update(machine_=m["fitted"]["scaling_"]),
    "field missing": lambda m, _: m["fitted"]["machine_"]["fields"].pop("threshold"),
    "field of text": lambda m, _: m["fitted"]["machine_"]["fields"].update(threshold="1"),
    "field of truth": lambda m, _: m["fitted"]["machine_"]["fields"].update(threshold=True),
    "array of null": lambda m, _: m["fitted"]["scaling_"]["fields"].update(mean=None),
    "kernel": lambda m, _: m["fitted"]["machine_"]["fields"]["scorer"]["fields"]["kernel"]["fields"].update(
        name="x"
    ),
    "curve": lambda m, _: m["fitted"]["curve_"]["fields"].update(slope=-1.0),
    "features": lambda m, _: m["fitted"].update(n_features_in_=3),
    "names": lambda m, _: m.update(feature_names=["a"]),
    "names no text": lambda m, _: m.update(feature_names=[1, 2]),
    "deep": lambda m, _: m.update(fitted=json.loads("[" * 900 + "]" * 900)),
    "classes": lambda _, f: f.update({"classes_.npy": npy(np.array([0, 1, 2]))}),
    "deviation 0": lambda _, f: f.update({"scaling_.deviation.npy": npy(np.zeros(2))}),
    "too short": lambda _, f: f.update({"machine_.scorer.coef.npy": npy(np.zeros(1))}),
    "too narrow": lambda _, f: f.update({"machine_.scorer.items.npy": npy(np.zeros((3, 1)))}),
    "float32": lambda _, f: f.update({"scaling_.mean.npy": npy(np.zeros(2, np.float32))}),
    "other byte order": lambda _, f: f.update({"scaling_.mean.npy": npy(np.zeros(2, ">f8"))}),
    "pickle": lambda _, f: f.update({"scaling_.mean.npy": npy(np.array([print], dtype=object))}),
    "no npy": lambda _, f: f.update({"scaling_.mean.npy": b"\x93NUMPY\x01\x00\x05\x00((((\n"}),
    "no array": lambda _, f: f.pop("scaling_.mean.npy"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_comparer_is_refused(change, written, tmp_path):
    manifest, files = unzipped(written["kernel"])
    CHANGES[change](manifest, files)
    with pytest.raises(ModelFileError):
        load(rewritten(tmp_path, manifest, files))


def test_messages_name_what_was_seen(written, tmp_path):
    def message(change):
        manifest, files = unzipped(written["kernel"])
        CHANGES[change](manifest, files)
        with pytest.raises(ModelFileError) as caught:
            load(rewritten(tmp_path, manifest, files))
        return str(caught.value)

    assert "written by concordant 9.0, in format 3" in message("future")
    assert "upgrade" in message("future")
    other = message("parameter of another version")
    assert "written by concordant 9.0, with 'mood'; this is" in other
    assert "whose Comparer has no such parameter" in other
    assert "keyword" not in message("unknown parameter")
    assert "'os.system', which is no model" in message("class")
    assert "machine_.threshold is not a finite number" in message("field of text")
    assert "C must be a finite number > 0" in message("bad parameter")
    assert "coef has shape (1,)" in message("too short")
    (tmp_path / "votes.csv").write_text("left,right\n")
    with pytest.raises(ModelFileError, match="this is not a model file"):
        load(tmp_path / "votes.csv")
    assert isinstance(UnreadableError("a"), Exception)


def test_a_changed_array_is_noticed_by_its_checksum(written, tmp_path):
    manifest, files = unzipped(written["kernel"])
    files["scaling_.mean.npy"] = npy(np.zeros(2))
    (tmp_path / "a").write_bytes(zip_of(json.dumps(manifest), files))
    with pytest.raises(ModelFileError, match=r"scaling_.mean.npy does not have the checksum"):
        load(tmp_path / "a")


UNSAFE = {  # compiled code would read or write outside its arrays
    "davidson": {
        "counts_.first.npy": np.full(15, 99),
        "counts_.second.npy": np.full(15, -1),
        "counts_.cells.npy": np.full((15, 3), -1.0),
        "ratings_.npy": np.zeros(1),
        "x_.npy": np.zeros(1),
    },
    "elo": {
        "history_.0.left.npy": np.full(300, 6),
        "history_.0.right.npy": np.full(300, -7),
        "history_.0.outcome.npy": np.full(300, 5),
        "history_.0.weights.npy": np.zeros(2),
        "state_.of_items.ratings.npy": np.zeros(2),
        "state_.levels.npy": np.zeros((3, 3)),
    },
    "stream": {
        "stream_.state.mean.npy": np.zeros(1),
        "stream_.state.fisher.npy": np.zeros(1),
        "stream_.state.history.npy": np.zeros((2, 2, 3)),
        "stream_.features.whiten.npy": np.zeros((5, 1)),
    },
}


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model, names in UNSAFE.items() for name in names]
)
def test_parts_that_do_not_fit_together_are_refused(model, name, written, tmp_path):
    manifest, files = unzipped(written[model])
    assert name in files
    files[name] = npy(UNSAFE[model][name])
    with pytest.raises(ModelFileError, match="fit together"):
        load(rewritten(tmp_path, manifest, files))


@settings(max_examples=150)
@given(data=st.data())
def test_damage_is_noticed(data, written, tmp_path_factory):
    """Flipped, cut or overwritten bytes: a named error, or the same model after all."""
    name = data.draw(st.sampled_from(sorted(written)))
    contents = bytearray(written[name])
    if data.draw(st.booleans()):
        del contents[data.draw(st.integers(0, len(contents) - 1)) :]
    else:  # headers and directory stand at the ends, so these are drawn more often
        positions = (
            st.integers(0, len(contents) - 1)
            | st.integers(0, 60)
            | st.integers(len(contents) - 900, len(contents) - 1)
        )
        for at in data.draw(st.lists(positions, min_size=1, max_size=3)):
            contents[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.unlink(missing_ok=True)  # much faster than writing over it
    path.write_bytes(bytes(contents))
    (tmp_path_factory.getbasetemp() / "whole").unlink(missing_ok=True)
    (tmp_path_factory.getbasetemp() / "whole").write_bytes(written[name])
    try:
        loaded = load(path)
    except ModelFileError:
        return
    assert same(vars(loaded), vars(load(tmp_path_factory.getbasetemp() / "whole")))


@pytest.mark.slow
@settings(max_examples=80)
@given(data=st.data())
def test_no_manifest_brings_another_error(data, written, tmp_path_factory):
    """Any value anywhere in the manifest: a named error, or a model."""
    manifest, files = unzipped(written[data.draw(st.sampled_from(sorted(written)))])
    node = manifest
    while True:
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        key = data.draw(st.sampled_from(list(keys)))
        if not isinstance(node[key], (dict, list)) or not node[key] or data.draw(st.booleans()):
            break
        node = node[key]
    simple = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3)
    )
    node[key] = data.draw(
        st.recursive(
            simple,
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(["array", "part", "fields", "float", "values", "x"]), inner, max_size=2
                )
            ),
        )
    )
    path = tmp_path_factory.getbasetemp() / "manifest"
    path.unlink(missing_ok=True)
    path.write_bytes(zip_of(json.dumps(manifest), files))
    with suppress(ModelFileError):
        load(path)


# --- the list of what files can hold


def test_every_field_is_listed():
    for part in PARTS.values():
        assert sorted(part.fields) == sorted(signature(part.build).parameters), part.cls
    assert PARTS["Recipe"].cls is Recipe


@pytest.mark.parametrize("model", [*COMPARERS.values(), *RATINGS.values()])
def test_everything_learned_is_listed(model):
    """A fitted attribute that no file would keep is noticed here."""
    if isinstance(model, Comparer):
        fitted = type(model)(**model.get_params()).fit(GAMES.pairs, GAMES.y)
    else:
        timed = {"time": np.arange(300)} if isinstance(model, Glicko) else {}
        fitted = type(model)(**model.get_params()).fit(NAMES[LEFT], NAMES[RIGHT], OUTCOME, **timed)
    learned = vars(fitted).keys() - fitted.get_params().keys() - {LEARNED}
    entry = MODELS[type(model).__name__]
    assert entry.fitted.keys() - entry.optional <= learned <= entry.fitted.keys()


def test_kinds_refuse():
    assert not REAL.fits(True)
    assert not WHOLE.fits(-1)
    assert not WHOLE.fits(2**63)
    assert not IDS.fits(np.zeros((1, 1)))
    assert not IDS.fits(np.array([None]))
    assert not array(np.float64, 1).fits([1.0])
