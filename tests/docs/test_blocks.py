"""Every block of the documentation is run or checked, or stands in `NOT_RUN` with the reason why not.

How a block is run says doc_blocks.py.
"""

import tomllib

import pytest

from tests.helpers.doc_blocks import PAGES, blocks_of, read

DATA = "reads a public data set that is not shipped"
LONG = "takes minutes; printed by the command above it"
ELSEWHERE = "run by another test: "

NOT_RUN = {  # (page, how the block begins): why
    ("studies/boosting.md", "mq2008 +"): DATA,
    ("studies/boosting.md", "ours less"): DATA,
    ("studies/boosting.md", "mq2008:"): DATA,
    ("studies/boosting.md", "mq2007-partial:"): DATA,
    ("studies/boosting.md", "ohsumed:"): DATA,
    (
        "boosting.md",
        "from distributed import Client",
    ): "needs a cluster: tests/rankers/test_boosted_cluster.py",
    ("bounds.md", "$ python -m studies bounds"): ELSEWHERE + "tests/studies/test_bounds.py, on fewer draws",
    ("command-line.md", "$ concordant certify ap --matrix --search"): LONG,
    ("command-line.md", "$ concordant certify ap squared --search"): LONG,
    ("conditions.md", "import concordant as cc"): DATA,
    ("conditions.md", "dots:"): DATA,
    ("conditions.md", "votes = cc.datasets.load"): DATA,
    ("conditions.md", "concordant.exceptions.LabelError"): DATA,
    ("conditions.md", "panels = workers"): DATA,
    ("conditions.md", "Replicates("): DATA,
    ("conditions.md", "people = Replicates"): DATA,
    ("conditions.md", "4926 different orders"): DATA,
    ("studies/consistency.md", "a coin between"): LONG,
    ("studies/exactness.md", "three label vectors"): LONG,
    ("studies/exactness.md", "two kinds of annotators"): LONG,
    ("export.md", "curl -X POST"): "needs a search engine",
    ("studies/maxmargin.md", "mq2008:"): DATA,
    ("studies/maxmargin.md", "ohsumed:"): DATA,
    ("studies/pairs.md", "mq2008:"): DATA,
    ("studies/pairs.md", "mq2007-partial:"): DATA,
    ("studies/pairs.md", "ohsumed:"): DATA,
    (
        "rankers.md",
        "model = cc.LinearRanker(",
    ): "needs a GPU; tests/rankers/test_device.py runs the same code",
    ("studies/svmcompare.md", "l2:"): DATA,
    ("studies/svmcompare.md", "Baselines less compare"): DATA,
    ("studies/svmcompare.md", "python -m studies svmcompare --figure 4 --size 50"): LONG,
    ("studies/svmcompare.md", "l1:"): LONG,
    ("studies/svmcompare.md", "Margins of separable pairs"): LONG,
    ("studies/svmcompare.md", "chess:"): DATA,
    ("torch.md", "class RankingLoss"): ELSEWHERE + "tests/docs/test_examples.py, as a part of an example",
}


def reason(block):
    """Why it is not run, if it is listed."""
    listed = [key for key in NOT_RUN if key[0] == block.page and block.first.startswith(key[1])]
    return listed[0] if listed else None


ALL = {name: blocks_of(name, path.read_text(encoding="utf-8")) for name, path in PAGES.items()}


@pytest.mark.once
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "migration.md" else name  # it compiles ranx
        for name, blocks in ALL.items()
        if any(not block.is_doctest for block in blocks)
    ],
)
@pytest.mark.filterwarnings("ignore:unsafe cast")  # ranx's own, where it is compiled
def test_every_block_is_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page in ("torch.md", "neural.md"):
        pytest.importorskip("torch", reason="torch is not installed")
    read([block for block in ALL[page] if not reason(block)], tmp_path)


def test_what_is_not_run_is_there():
    met = {reason(block) for blocks in ALL.values() for block in blocks if not block.is_doctest}
    assert not set(NOT_RUN) - met


# ---------------------------------------------------------------- each kind of block, wrong


WRONG = {  # what is told of it: a page on which it stands
    "another output": "```text\n$ concordant --version\nconcordant 9.9\n```\n",
    "a crash": "```text\n$ cat nowhere.txt\n```\n",
    "no such option": "```text\nconcordant evaluate --letters test.txt\n```\n",
    "no such command": "```text\nconcordant rate test.txt\n```\n",
    "no such study": "```text\npython -m studies coffee\n```\n",
    "another result of a study": "```text\n$ python -m studies pairs --data coffee\nerror: no coffee\n```\n",
    "no such target": "```text\nmake coffee\n```\n",
    "no such extra": "```text\npip install -e '.[sauce]'\n```\n",
    "no such module": "```text\npython -m benchmarks.coffee\n```\n",
    "another tool": "```text\n$ curl example.org\n```\n",
    "another print": "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    "a print that is not shown": "```python\nprint(1)\n```\n\nThat is all.\n",
    "an error": "```python\n1 / 0\n```\n",
    "no TOML": "`a.toml`:\n\n```toml\na = \n```\n",
    "just text": "```text\nBest is 1>2>3.\n```\n",
}


@pytest.mark.parametrize("page", WRONG.values(), ids=WRONG)
def test_a_wrong_block_is_noticed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ZeroDivisionError, tomllib.TOMLDecodeError)):
        read(blocks_of("wrong.md", page), tmp_path)
