"""How the tests call the command line, and the files they give it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

import concordant as cc
from concordant.cli import app


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments):
    """The JSON of a command that must succeed."""
    result = call(*arguments, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def refusal(*arguments):
    """The message of a command that must be refused."""
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


def written_log(folder, name, n_queries, seed):
    """A search log as LETOR text and as Parquet; the table has query ids in `query`, and a text column."""
    log = cc.synthetic.search_log(n_queries, (4, 8), seed=seed)
    cc.write_letor(folder / f"{name}.txt", log.X, log.y, log.qid)
    columns = {
        "query": [f"q{qid}" for qid in log.qid],
        "url": [f"u{row}" for row in range(len(log.y))],
        "grade": log.y,
        **{feature: log.X[:, column] for column, feature in enumerate(log.features)},
    }
    pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return log


def contents(folder):
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def killed(condition, *arguments):
    """Run a command until the condition holds, and kill it there; whether it was still at work."""
    command = [sys.executable, "-m", "concordant", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 60
        while process.poll() is None and not condition() and time.monotonic() < until:
            time.sleep(0.005)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode == -signal.SIGKILL


def mean(metric, y, scores, qid):
    return float(np.nanmean(cc.metric(metric).per_query(y, scores, qid=qid)))
