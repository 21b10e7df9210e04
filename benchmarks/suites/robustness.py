"""Attempts to break the library, counted by outcome: bad input, odd parameters, damaged files."""

import contextlib
import io
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.shared.processes import memory, restart_peak
from benchmarks.shared.tables import Table
from benchmarks.shared.timing import watched
from tests.contracts import cases, cells, contract, files, fuzzing, legitimate, options, test_scikit_learn
from tests.contracts.outcomes import BROKEN

COLUMNS = ("inputs tried", "refused by name", "accepted", "broken", "seconds")


def run(*, quick: bool) -> list[Table]:
    """Count every attempt; `broken` is to be 0."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # where checkpoints are written
        return [
            _bad_input(quick=quick),
            _bad_parameters(quick=quick),
            _contracts(quick=quick),
            _damaged(quick=quick),
        ]


def _count_outcomes(outcomes: Iterable) -> tuple:
    """The numbers of a row."""
    start, kinds = time.perf_counter(), Counter()
    for name, outcome in outcomes:
        kinds[outcome.kind] += 1
        if outcome.kind == BROKEN:
            print(f"broken: {name}: {outcome.message}", file=sys.stderr)
    total = sum(kinds.values())
    return total, kinds["refused"], kinds["accepted"], kinds[BROKEN], time.perf_counter() - start


def _bad_input(*, quick: bool) -> Table:
    """Each argument of each function and method x each of its defects."""
    all_cells = list(cells.cells())[:: 40 if quick else 1]
    kinds: dict[str, list] = {}
    for cell in all_cells:
        kinds.setdefault(cell.subject.name.partition("(")[0].partition(".")[0], []).append(cell)
    rows = [
        (name, *_count_outcomes((cell.name, _judged(cell)) for cell in subject_cells))
        for name, subject_cells in watched(kinds.items(), "bad input")
    ]
    note = (
        "One argument is damaged, the others are sound. Refused: by an error of the library that speaks of "
        "the argument, after which a fitted model predicts as before. Accepted: where the damage is none, by "
        "the list in `tests/contracts/legitimate.py`, with a sound result. Broken: anything else."
    )
    return Table("Bad input", note, ("of", *COLUMNS), [*rows, _summed(rows)])


def _judged(cell: cells.Cell) -> object:
    """The outcome; what is accepted and is not on the list is broken."""
    outcome = cell.outcome()
    expected = "accepted" if legitimate.reason(cell) else "refused"
    return (
        outcome
        if outcome.kind in (expected, BROKEN)
        else type(outcome)(BROKEN, f"{outcome.kind}: {outcome.message}")
    )


def _summed(rows: list) -> tuple:
    """A last row."""
    return ("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))


def _bad_parameters(*, quick: bool) -> Table:
    """Each parameter of each estimator x each probe."""
    names = list(options.ESTIMATORS)[:: 6 if quick else 1]
    rows = []
    for name in watched(names, "parameters"):
        tried = [
            (estimator, option, probe)
            for estimator, option in options.choices()
            if estimator == name
            for probe in options.PROBES
        ]
        with contextlib.redirect_stderr(io.StringIO()):
            rows.append(
                (name, *_count_outcomes((" ".join(choice), options.fitted_with(*choice)) for choice in tried))
            )
    note = f"Each parameter is given {len(options.PROBES)} values, most of them wrong; the others are sound."
    return Table("Parameters", note, ("of", *COLUMNS), [*rows, _summed(rows)])


def _contracts(*, quick: bool) -> Table:
    """scikit-learn's checks, and those of estimators that take pairs."""
    warnings.simplefilter("ignore")
    models = list(test_scikit_learn.estimators())[:: 9 if quick else 1]
    rows = [_checked_by_scikit_learn(model) for model in watched(models, "scikit-learn's checks")]
    rows += [
        _checked_by_contract(case)
        for case in watched(cases.cases()[:: 9 if quick else 1], "contract of pairs")
    ]
    note = (
        "`check_estimator` of scikit-learn for estimators that take a table; `tests/contracts/contract.py` "
        "for those that take pairs. Expected failures are listed with their reasons in docs/robustness.md."
    )
    columns = ("estimator", "checks", "passed", "expected to fail, and do", "skipped", "broken", "seconds")
    return Table("Contracts", note, columns, rows)


def _checked_by_scikit_learn(model: object) -> tuple:
    """Count the checks by what became of them."""
    from sklearn.utils.estimator_checks import check_estimator

    start = time.perf_counter()
    expected = test_scikit_learn.expected_failures(model)
    logs = check_estimator(model, expected_failed_checks=expected, on_skip=None, on_fail=None)
    kinds = Counter(log["status"] for log in logs)
    name = " ".join(repr(model).split())
    seconds = time.perf_counter() - start
    return name, len(logs), kinds["passed"], kinds["xfail"], kinds["skipped"], kinds["failed"], seconds


def _checked_by_contract(case: contract.Case) -> tuple:
    """The same for pairs."""
    start, kinds = time.perf_counter(), Counter()
    for check in contract.CHECKS:
        expected = (case.name, check.__name__) in cases.EXPECTED
        try:
            check(case)
        except AssertionError:
            kinds["xfail" if expected else "broken"] += 1
        else:
            kinds["broken" if expected else "passed"] += 1
    seconds = time.perf_counter() - start
    return case.name, len(contract.CHECKS), kinds["passed"], kinds["xfail"], 0, kinds["broken"], seconds


def _damaged(*, quick: bool) -> Table:
    """Files that are almost right, for every reader."""
    number, rows = (20 if quick else 5_000), []
    for reader in watched([*files.text_readers(), *files.binary_readers()], "damaged files"):
        with tempfile.TemporaryDirectory() as folder:
            before = restart_peak()
            counts = _count_outcomes(_fuzzed_files(reader, Path(folder), number))
            rows.append((reader.name, *counts, max(memory("VmHWM") - before, 0) / 2**20))
    note = (
        f"{number:,} files of each kind: sound ones with bytes flipped, cut, moved, doubled, and words put "
        "where none belong, always the same for a seed. Broken: an error that is not named, a result that is "
        f"not sound, or more than {fuzzing.SECONDS} s. The last column: the highest memory of the "
        "process, less what it held before."
    )
    return Table(
        "Damaged files", note, ("reader", *COLUMNS, "MiB more"), [*rows, (*_summed(rows)[:-1], None)]
    )


def _fuzzed_files(reader: files.Reader, folder: Path, number: int) -> Iterable:
    """Outcomes, with the bytes for a report."""
    for contents, outcome in fuzzing.fuzzed(reader, folder, seed=0, n=number):
        yield f"{reader.name} {contents[:200]!r}", outcome
