"""`concordant bounds`: its numbers are the library's, and bad input is a message."""

import json

import pytest
from typer.testing import CliRunner

from concordant.cli import app
from concordant.theory import bounds


def call(*arguments):
    return CliRunner().invoke(app, ["bounds", *map(str, arguments)])


def answer(*arguments):
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


CASES = [
    (("-k", "pairwise", "-m", 6), lambda **arguments: bounds.pairwise(m=6, **arguments)),
    (
        ("-k", "multipartite", "--levels", "1,2,3"),
        lambda **arguments: bounds.multipartite(levels=(1, 2, 3), **arguments),
    ),
    (
        ("-k", "bipartite", "--rel", 2, "--nrel", 5),
        lambda **arguments: bounds.bipartite(rel=2, nrel=5, **arguments),
    ),
    (("-k", "listwise", "--m", 6), lambda **arguments: bounds.listwise(m=6, **arguments)),
    (
        ("-k", "average_precision", "-m", 6, "--rel", 2),
        lambda **arguments: bounds.average_precision(m=6, rel=2, **arguments),
    ),
]


@pytest.mark.parametrize(("options", "compute_bound"), CASES)
def test_numbers_are_those_of_the_library(options, compute_bound):
    output = answer("-n", 500, *options, "--B", 2, "--M", 0.5, "--delta", 0.1, "--epsilon", 0.2)

    assert [row["version"] for row in output["bounds"]] == list(bounds.VERSIONS)
    for row in output["bounds"]:
        bound = compute_bound(n=500, B=2, M=0.5, delta=0.1, version=row["version"])
        assert row["excess"] == bound.excess
        assert row["log10"] == bound.log10
        assert row["vacuous"] == bound.vacuous
        assert row["queries_needed"]["queries"] == bound.queries_needed(0.2)
        assert {name: term["value"] for name, term in row["terms"].items()} == {
            name: term.value for name, term in bound.terms.items()
        }


def test_options_reach_the_library():
    (*_, tight) = answer("-n", 9, "-k", "pairwise", "-m", 5, "--per-pair", "--error", "plain")["bounds"]
    assert tight["excess"] == bounds.pairwise(9, 5, version="tight", reduction="pairs", error="plain").excess
    (*_, sharp, _) = answer("-n", 9, "-m", 5, "--mode", "softmax", "--temperature", 0.3)["bounds"]
    expected = bounds.listwise(9, 5, version="sharp", mode="softmax", temperature=0.3)
    assert sharp["excess"] == expected.excess
    (*_, sharp, _) = answer("-n", 9, "-m", 5, "--levels", "2, 3")["bounds"]
    assert sharp["excess"] == bounds.listwise(9, 5, version="sharp", levels=(2, 3)).excess
    assert answer("-n", 9, "--levels", "2,3") == answer("-n", 9, "-m", 5, "--levels", "2,3")


def test_table():
    result = call("-n", 1700, "-m", 40)
    assert result.exit_code == 0
    assert "0.2530" in result.stdout
    assert "10^47.60" in result.stdout
    assert "10,883" in result.stdout
    assert "refuted" in result.stdout
    assert "refuted" not in call("-n", 1700, "-m", 40, "--quiet").stdout
    assert "9 times" in call("-n", 1700, "-k", "pairwise", "-m", 10, "--error", "plain").stdout


def test_large_lists():
    rows = answer("-n", 1700, "-m", 3000)["bounds"]
    assert rows[0]["excess"] is None
    assert rows[0]["log10"] > 9000
    assert rows[0]["queries_needed"]["queries"] is None
    assert rows[0]["queries_needed"]["log10"] > 18_000
    assert call("-n", 1700, "-m", 3000).exit_code == 0


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("-n", 0, "-m", 4), "--n must be an integer >= 1, got 0."),
        (("-n", 10), "needs --m"),
        (("-n", 10, "-m", 1), "--m must be an integer >= 2, got 1."),
        (("-n", 10, "-k", "bipartite", "--rel", 2), "needs --nrel"),
        (
            ("-n", 10, "-k", "multipartite", "--levels", "2;3"),
            "--levels must be integers separated by commas",
        ),
        (("-n", 10, "-k", "multipartite"), "needs --levels"),
        (("-n", 10, "-k", "triple"), "got 'triple'."),
        (("-n", 10, "-m", 4, "--rel", 2), "--rel has no effect with --kind listwise"),
        (("-n", 10, "-m", 4, "--mode", "sum"), "--mode must be 'max' or 'softmax'"),
        (("-n", 10, "-m", 4, "--per-pair"), "--per-pair has no effect with --kind listwise"),
        (("-n", 10, "-m", 4, "--error", "plain"), "--error has no effect with --kind listwise"),
        (("-n", 10, "-k", "pairwise", "-m", 4, "--temperature", 3), "--temperature has no effect"),
        (("-n", 10, "-m", 4, "--delta", 2), "--delta must be a number > 0 and < 1"),
        (("-n", 10, "-m", 4, "--epsilon", 0), "--epsilon must be a finite number > 0, got 0.0."),
    ],
)
def test_bad_input_is_a_message(options, problem):
    result = call(*options)
    assert result.exit_code == 2
    assert problem in " ".join(result.stderr.split())
    assert "Traceback" not in result.output


def test_help_has_examples():
    assert "concordant bounds -n 1700 -m 40" in call("--help").stdout
