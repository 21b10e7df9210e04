"""Pins: what users see and what estimators learn stays as it is, or changes on purpose.

`make pins` writes the pins anew; each change has its line in CHANGELOG.md.
"""

import copy
import json
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import concordant as cc
from tests.pins import golden, surface
from tests.pins import values as computed

HERE = Path(__file__).resolve().parent
HOW = "if it is meant: make pins, and a line in CHANGELOG.md"
SURFACE = json.loads((HERE / "surface.json").read_text(encoding="utf-8"))
GOLDEN = json.loads((HERE / "golden.json").read_text(encoding="utf-8"))
VALUES = json.loads((HERE / "values.json").read_text(encoding="utf-8"))
MODELS = pytest.mark.parametrize("name", golden.MODELS)
TIGHT = 1e-9

pytestmark = pytest.mark.once


def differences(expected, actual, where="", tolerance=TIGHT):
    """Places where two trees of plain values differ; numbers may be rounded otherwise."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            if key not in expected or key not in actual:
                yield f"{where}/{key}: only {'now' if key in actual else 'in the pin'}"
            else:
                yield from differences(expected[key], actual[key], f"{where}/{key}", tolerance)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, pair in enumerate(zip(expected, actual, strict=True)):
            yield from differences(*pair, f"{where}/{index}", tolerance)
    elif isinstance(expected, float) and isinstance(actual, int | float):
        if not np.isclose(expected, actual, rtol=tolerance, atol=tolerance, equal_nan=True):
            yield f"{where}: {expected} in the pin, {actual} now"
    elif expected != actual:
        yield f"{where}: {expected!r} in the pin, {actual!r} now"


def check_same(expected, actual, tolerance=TIGHT):
    """Raise where there are differences, and say how a pin is changed."""
    changes = list(differences(expected, actual, tolerance=tolerance))
    assert not changes, "\n".join([*changes[:20], f"{len(changes)} differences; {HOW}"])


def check_numbers(expected, actual, tolerance):
    """Raise where numbers of a model differ by more than the tolerance, as a share of the largest."""
    assert expected.keys() == actual.keys(), HOW
    for key, values in expected.items():
        scale = max(1.0, *map(abs, values))
        np.testing.assert_allclose(
            actual[key], values, rtol=0, atol=tolerance * scale, err_msg=f"{key}; {HOW}"
        )


def with_torch(names):
    """The namespaces that can be compared here."""
    return {key: value for key, value in names.items() if key != "concordant.torch" or find_spec("torch")}


def test_public_names():
    check_same(with_torch(SURFACE["names"]), surface.names())


@pytest.mark.skipif(find_spec("torch") is None, reason="the reference has parts that need torch")
def test_documented_names():
    check_same(SURFACE["reference"], surface.reference())


def test_commands():
    check_same(SURFACE["commands"], surface.commands())


@pytest.fixture(scope="module")
def models():
    """Models by name, each fitted once."""
    cache = {}

    def give(name):
        if library := golden.missing(name):
            pytest.skip(f"{library} is not installed")
        if name not in cache:
            cache[name] = golden.fitted(name)
        return cache[name]

    return give


@MODELS
def test_models_learn_the_same(name, models):
    check_numbers(GOLDEN["models"][name], golden.learned(name, models(name)), golden.LOOSE.get(name, TIGHT))


@MODELS
def test_certificates_say_the_same(name, models):
    check_same(GOLDEN["certificates"][name], golden.certificate(models(name)))


@MODELS
def test_model_files_of_before_load(name):
    """The file is of the version that wrote the pins."""
    if library := golden.missing(name):
        pytest.skip(f"{library} is not installed")
    path = HERE / "models" / golden.file_name(name)
    assert golden.digest(path) == GOLDEN["digests"][name]
    tolerance = 1e-5 if name in golden.LOOSE else 1e-12
    check_numbers(GOLDEN["models"][name], golden.learned(name, cc.load(path)), tolerance)


@MODELS
def test_equal_models_have_equal_digests(name, models, tmp_path):
    """With CONCORDANT_PINS=bits those of the pins, too: on the machine that wrote them, to the last bit."""
    actual = golden.digest(golden.written(name, models(name), tmp_path))
    expected = GOLDEN["digests"][name]
    if os.environ.get("CONCORDANT_PINS") != "bits":
        expected = golden.digest(golden.written(name, golden.fitted(name), tmp_path))
    assert actual == expected


@pytest.mark.parametrize(("name", "kind"), golden.EXPORTED)
def test_exports_are_the_same(name, kind, models):
    if library := golden.missing_for_export(kind):
        pytest.skip(f"{library} is not installed")
    tolerance = golden.LOOSE_EXPORTS.get(kind, TIGHT)
    check_same(GOLDEN["exports"][name][kind], golden.exported(name, kind, models(name)), tolerance)


@pytest.mark.parametrize("name", golden.EXPORTS)
def test_exports_are_tried_on_the_same_rows(name, models):
    tolerance = golden.LOOSE.get(name, TIGHT)
    check_same(GOLDEN["export rows"][name], golden.export_rows(name, models(name)), tolerance)


@pytest.mark.parametrize("topic", computed.TOPICS)
def test_values_are_the_same(topic):
    if topic == "torch" and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    check_same(VALUES[topic], computed.of_topic(topic))


def test_certify_says_the_same():
    check_same(GOLDEN["certified"], golden.certified())


def test_the_matrix_is_the_same():
    check_same(GOLDEN["matrix"], golden.matrix())


def test_wrong_pins_are_noticed():
    wrong = copy.deepcopy(SURFACE["commands"])
    wrong["rank"]["parameters"][0][0] = "--other"
    del wrong["evaluate"]
    changes = list(differences(wrong, SURFACE["commands"]))
    assert len(changes) == 2
    numbers = {"coef": [1.0, 2.0]}
    check_numbers(numbers, {"coef": [1.0, 2.0 + 1e-10]}, TIGHT)
    with pytest.raises(AssertionError, match=r"make pins"):
        check_numbers(numbers, {"coef": [1.0, 2.0 + 1e-8]}, TIGHT)
    with pytest.raises(AssertionError, match="1 differences"):
        check_same({"status": "proven"}, {"status": "refuted"})
