"""Every block of the documentation is run or checked, or stands in `NOT_RUN` with the reason why not.

How a block is run says doc_blocks.py.
"""

import tomllib

import pytest

from doc_blocks import PAGES, blocks_of, read

DATA = "reads a public data set that is not shipped"
LONG = "takes minutes; printed by the command above it"
ELSEWHERE = "run by another test: "

NOT_RUN = {  # (page, how the block begins): why
    ("boosting-study.md", "mq2008 +"): DATA,
    ("boosting-study.md", "ours less"): DATA,
    ("boosting-study.md", "mq2008:"): DATA,
    ("boosting-study.md", "mq2007-partial:"): DATA,
    ("boosting-study.md", "ohsumed:"): DATA,
    ("boosting.md", "from distributed import Client"): "needs a cluster: tests/test_boosted_cluster.py",
    ("bounds.md", "$ concordant reproduce bounds"): ELSEWHERE
    + "tests/test_bounds_simulation.py, on fewer draws",
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
    ("consistency.md", "a coin between"): LONG,
    ("exactness.md", "three label vectors"): LONG,
    ("exactness.md", "two kinds of annotators"): LONG,
    ("export.md", "curl -X POST"): "needs a search engine",
    ("maxmargin-reproduction.md", "mq2008:"): DATA,
    ("maxmargin-reproduction.md", "ohsumed:"): DATA,
    ("pairs-reproduction.md", "mq2008:"): DATA,
    ("pairs-reproduction.md", "mq2007-partial:"): DATA,
    ("pairs-reproduction.md", "ohsumed:"): DATA,
    ("rankers.md", "model = cc.LinearRanker("): "needs a GPU; tests/test_device.py runs the same code",
    ("svmcompare.md", "l2:"): DATA,
    ("svmcompare.md", "Baselines less compare"): DATA,
    ("svmcompare.md", "concordant reproduce svmcompare --figure 4 --size 50"): LONG,
    ("svmcompare.md", "l1:"): LONG,
    ("svmcompare.md", "Margins of separable pairs"): LONG,
    ("svmcompare.md", "chess:"): DATA,
    ("torch.md", "class RankingLoss"): ELSEWHERE + "tests/test_examples.py, as a part of an example",
}


def reason(block):
    """Why it is not run, if it is listed."""
    listed = [key for key in NOT_RUN if key[0] == block.page and block.first.startswith(key[1])]
    return listed[0] if listed else None


ALL = {name: blocks_of(name, path.read_text(encoding="utf-8")) for name, path in PAGES.items()}


@pytest.mark.once
@pytest.mark.parametrize(
    "page", [name for name, blocks in ALL.items() if any(not one.is_doctest for one in blocks)]
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
