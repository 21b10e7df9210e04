"""The main path is short: a default call passes few files, and none of what was not asked for."""

import sys
from pathlib import Path

import pytest

import concordant as cc
from concordant.rankers.guarantee import knowingly

ROOT = f"{Path(cc.__file__).parent}/"
TOY = cc.synthetic.grades(n_queries=60, n_items=10, seed=0)
PAIRS = cc.synthetic.comparisons(n=120, norm="l2", tie_share=0.4, seed=1)
OPTIMISED = 1  # flag of the code of functions: classes and modules have it not
FORBIDDEN = (  # collaborators that are chosen at the door
    "solvers/checkpoint.py",
    "rankers/device_losses.py",
    "rankers/fitted_certificate.py",
    "rankers/parts/",
    "rankers/risk_bound.py",
    "scale/cluster",
    "scale/scan/",
    "theory/bounds/",
    "theory/search/",
)
CALLS = {  # call, and the most files that it passes
    "linear": (lambda: cc.LinearRanker("ndcg@5").fit(TOY.X, TOY.y, qid=TOY.qid), 25),
    "pairs": (lambda: cc.PairRanker("ap").fit(TOY.X, TOY.y, qid=TOY.qid), 22),
    "boosted": (lambda: cc.BoostedRanker("ndcg@5", n_estimators=3).fit(TOY.X, TOY.y, qid=TOY.qid), 25),
    "neural": (lambda: cc.NeuralRanker("ndcg@5", max_epochs=2).fit(TOY.X, TOY.y, qid=TOY.qid), 29),
    "comparer": (lambda: cc.Comparer(kernel="rbf", C=1.0).fit(PAIRS.pairs, PAIRS.y), 15),
    "certify": (lambda: str(cc.certify("ndcg@5", "pairwise")), 12),
}
ON_DEVICE = {"neural": ["rankers/device_losses.py"]}  # networks are trained by torch
NEEDS = {"boosted": "lightgbm", "neural": "torch"}


def files_passed(call):
    """Files of the package whose functions a call runs, once everything is imported and cached."""
    with knowingly():
        call()
    files = set()

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_flags & OPTIMISED:
            files.add(code.co_filename.removeprefix(ROOT))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return files


def asked_for(files):
    """Files of collaborators that a default call has no use for."""
    return sorted(name for name in files if name.startswith(FORBIDDEN))


@pytest.mark.once
@pytest.mark.parametrize("name", CALLS)
def test_a_default_call_passes_few_files(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    call, most = CALLS[name]
    files = files_passed(call)
    assert asked_for(files) == ON_DEVICE.get(name, [])
    assert len(files) <= most, sorted(files)


def test_the_checks_can_fail(tmp_path):
    checkpointed = files_passed(
        lambda: cc.LinearRanker("ndcg@5", checkpoint=tmp_path / "fit").fit(TOY.X, TOY.y, qid=TOY.qid)
    )
    assert "solvers/checkpoint.py" in asked_for(checkpointed)
    model = cc.LinearRanker("ndcg@5").fit(TOY.X, TOY.y, qid=TOY.qid)
    bounded = files_passed(lambda: model.risk_bound(TOY.X, TOY.y, qid=TOY.qid))
    assert asked_for(bounded)
