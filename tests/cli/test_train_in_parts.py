"""`concordant train` and `rerun` in parts: the same run, part by part or on a cluster; and `convert`."""

import errno
import functools
import inspect
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.cli.runs.run_folder import RunFolder, changed_files, fingerprint
from concordant.cli.shared.compute_target import IN_MEMORY, IN_PARTS, ComputeTarget
from concordant.cli.train.train_options import KINDS, ranker_class
from concordant.exceptions import ClusterError
from concordant.scale import cluster
from tests.helpers.cli_calls import answer, call, contents, refusal, written_log

pytestmark = pytest.mark.once

FILES = {"config.toml", "run.json", "metrics.json", "model.concordant"}
PARTS = ["--memory", "64MiB"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Logs as LETOR text, as a Parquet file of several parts, and as a folder of such files."""
    folder = tmp_path_factory.mktemp("logs")
    for seed, name in enumerate(("train", "test")):
        log = written_log(folder, name, 60 - 20 * seed, seed)
        data = cc.RankingData(log.X, log.y, log.qid)
        cc.write_parquet(data, folder / f"{name}.parquet", row_group="8 KiB", features=list(log.features))
        (folder / name).mkdir()
        for number, queries in enumerate(np.array_split(np.unique(log.qid), 3)):
            rows = np.isin(log.qid, queries)
            part = cc.RankingData(log.X[rows], log.y[rows], log.qid[rows])
            cc.write_parquet(part, folder / name / f"{number}.parquet", features=list(log.features))
    return folder


def trained(home, out, *options, source="train.parquet", test="test.parquet"):
    return answer("train", home / source, "--test", home / test, "-o", out, *options)


def coefficients(run):
    return cc.load(run / "model.concordant").coef_


def values(output):
    return [row["value"] for row in output["results"]]


def test_the_kinds_that_read_parts_are_named():
    reading = [kind for kind in KINDS if "client" in inspect.signature(ranker_class(kind).fit).parameters]
    assert [kind for kind in reading if kind != "boosted"] == list(IN_PARTS)


@pytest.mark.parametrize(
    ("source", "test"), [("train.parquet", "test.parquet"), ("train", "test"), ("train.txt", "test.txt")]
)
def test_a_run_in_parts_is_the_run_in_memory(home, tmp_path, source, test):
    output = trained(home, tmp_path / "parts", *PARTS, source=source, test=test)
    plain = trained(home, tmp_path / "plain")
    assert coefficients(tmp_path / "parts") == pytest.approx(coefficients(tmp_path / "plain"), abs=1e-8)
    assert values(output) == pytest.approx(values(plain), abs=1e-12)
    assert output["rankings"] == plain["rankings"]
    assert output["place"] == {"memory": 64 << 20}
    assert "place" not in plain
    assert set(contents(tmp_path / "parts")) == FILES
    sizes = [
        {key: output["data"]["test"][key] for key in ("rows", "queries", "features")}
        for output in (output, plain)
    ]
    assert sizes[0] == sizes[1]


@pytest.mark.slow
def test_where_it_is_made_is_no_part_of_the_configuration(home, tmp_path):
    trained(home, tmp_path / "parts", *PARTS)
    trained(home, tmp_path / "plain")
    assert (tmp_path / "parts" / "config.toml").read_bytes() == (
        tmp_path / "plain" / "config.toml"
    ).read_bytes()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::concordant.GuaranteeWarning")
@pytest.mark.parametrize("kind", [kind for kind in IN_PARTS if kind != "linear"])
def test_other_kinds_in_parts(home, tmp_path, kind):
    output = trained(home, tmp_path / "parts", *PARTS, "--model", kind)
    plain = trained(home, tmp_path / "plain", "--model", kind)
    near = 1e-8 if kind == "pairs" else 1e-3
    assert coefficients(tmp_path / "parts") == pytest.approx(coefficients(tmp_path / "plain"), abs=near)
    assert output["metrics"] == plain["metrics"]


def test_text_leaves_zeros_out_in_parts_too(home, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 9:0.5\n0 qid:1 1:1\n")
    for name, options in (("parts", PARTS), ("plain", [])):
        output = answer(
            "train", home / "train.txt", "--test", tmp_path / "wide.txt", "-o", tmp_path / name, *options
        )
        assert [table["features"] for table in output["data"].values()] == [9, 9]
    assert coefficients(tmp_path / "parts") == pytest.approx(coefficients(tmp_path / "plain"), abs=1e-8)
    mixed = trained(home, tmp_path / "mixed", *PARTS, test="test.txt")  # by number, as in memory
    assert values(mixed) == pytest.approx(values(trained(home, tmp_path / "named")), abs=1e-12)
    message = refusal(
        "train", home / "train.parquet", "--test", tmp_path / "wide.txt", "-o", tmp_path / "no", *PARTS
    )
    assert "7 features, as the training set has" in message


def test_columns_go_to_the_scan(home, tmp_path):
    table = pq.read_table(home / "train.parquet")
    names = [{"qid": "query", "grade": "clicks"}.get(name, name) for name in table.column_names]
    odd = table.rename_columns(names).append_column("url", pa.array(["u"] * len(table)))
    pq.write_table(odd, tmp_path / "odd.parquet")
    base = ["train", tmp_path / "odd.parquet", "-o", tmp_path / "run", *PARTS]
    assert "name it by --label COL" in refusal(*base)
    assert "name it by --qid COL" in refusal(*base, "--label", "clicks")
    named = ["--label", "clicks", "--qid", "query"]
    assert "--features A,B" in refusal(*base, *named)
    assert "no column 'nosuch'" in refusal(*base, *named, "--features", "nosuch")
    output = answer(*base, *named, "--features", "match,price")
    assert output["data"]["train"]["features"] == 2
    assert cc.load(tmp_path / "run" / "model.concordant").feature_names_in_.tolist() == ["match", "price"]


# --- a cluster


def test_a_cluster_gives_the_same_bits_and_reruns_anywhere(home, tmp_path, client):
    there = ["--scheduler", client.scheduler.address]
    output = trained(home, tmp_path / "cluster", *there)
    parts = trained(home, tmp_path / "parts", *PARTS)
    assert output["place"] == {"scheduler": client.scheduler.address, "workers": 2}
    assert output["model"] == parts["model"]
    assert output["results"] == parts["results"]
    assert answer("rerun", tmp_path / "cluster")["same"]
    assert answer("rerun", tmp_path / "parts", *there)["same"]
    assert client.status == "running"  # the cluster is not ours to end


@pytest.mark.slow
def test_processes_of_this_machine(home, tmp_path):
    """A real call: workers are new interpreters, which import what `python -m concordant` is."""
    pytest.importorskip("distributed")
    command = [sys.executable, "-m", "concordant", "train", home / "train.parquet", "-o", tmp_path / "run"]
    command += ["--local-cluster", "2", "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    output = json.loads(done.stdout)
    assert output["place"] == {"scheduler": "local", "workers": 2}
    parts = answer("train", home / "train.parquet", "-o", tmp_path / "parts", *PARTS)
    assert output["model"] == parts["model"]


def test_an_interrupted_run_goes_on_at_another_place(home, tmp_path, client, monkeypatch):
    base = ["train", home / "train.parquet", "-o", tmp_path / "run"]

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model")

    with monkeypatch.context() as patch:
        patch.setattr("concordant.cli.train.train_fit.write_model", full)
        assert "No space left" in refusal(*base, *PARTS)
    (part_folder,) = (tmp_path / "run" / "checkpoint").iterdir()
    assert contents(part_folder)
    output = answer(*base, "--scheduler", client.scheduler.address)
    assert output["resumed"]
    assert output["model"] == answer(*base[:-1], tmp_path / "whole", *PARTS)["model"]


def test_a_run_in_memory_begins_anew_in_parts(home, tmp_path, monkeypatch):
    def fail(*_):
        raise MemoryError

    base = ["train", home / "train.parquet", "-o", tmp_path / "run"]
    with monkeypatch.context() as patch:
        patch.setattr("concordant.cli.train.train_fit.write_model", fail)
        assert call(*base).exit_code == 2
    assert answer(*base, *PARTS)["resumed"]
    assert answer("rerun", tmp_path / "run")["same"]


def test_a_cluster_that_fails_leaves_what_goes_on(home, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ClusterError("the scheduler is gone", "start it again.")

    base = ["train", home / "train.parquet", "-o", tmp_path / "run"]
    with monkeypatch.context() as patch:
        patch.setattr("concordant.cli.train.train_fit.fit_rows", fail)
        message = refusal(*base, *PARTS)
    assert "the scheduler is gone" in message
    assert "run the same command again" in message
    assert RunFolder(tmp_path / "run").state == "interrupted"
    assert answer(*base, *PARTS)["resumed"]


@pytest.mark.parametrize(("kind", "has_checkpoint"), [("linear", True), ("boosted", False)])
def test_trees_on_a_cluster_have_no_checkpoint(home, tmp_path, client, monkeypatch, kind, has_checkpoint):
    """LightGBM cannot go on there, and refuses one; facts say so, since `rerun` does as they say."""
    pytest.importorskip("lightgbm")
    has_checkpoints = []

    def fail(model, *_, **__):
        has_checkpoints.append(model.checkpoint is not None)
        raise ClusterError("the scheduler is gone", "start it again.")

    monkeypatch.setattr("concordant.cli.train.train_fit.fit_rows", fail)
    options = ["--model", kind, "--scheduler", client.scheduler.address]
    refusal("train", home / "train.parquet", "-o", tmp_path / "run", *options)
    assert has_checkpoints == [has_checkpoint]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["checkpoint"] is has_checkpoint


def test_what_workers_print_is_not_our_output():
    code = "import os\nfrom concordant.scale.cluster import dask_setup\nprint('ours', flush=True)\n"
    code += "dask_setup(None)\nprint('a library', flush=True)\nos.system('echo another')\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "ours\n"


def test_a_scheduler_that_is_not_there(home, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "connected", functools.partial(cluster.connected, timeout=0.2))
    for address in ("tcp://127.0.0.1:1", "nonsense"):
        message = refusal("train", home / "train.parquet", "-o", tmp_path / "run", "--scheduler", address)
        assert f"no scheduler answers at '{address}'" in message
        assert not (tmp_path / "run").exists()


# --- what is refused


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--scheduler", "tcp://a:1", "--local-cluster", "2"],
            "--local-cluster and --scheduler exclude each other",
        ),
        (["--local-cluster", "2", "--memory", "1GiB"], "--memory has no effect on a cluster"),
        (["--local-cluster", "0"], "--local-cluster"),
        (["--memory", "much"], "--memory must be a number of bytes"),
        (["--memory", "100"], "memory must be at least"),
        ([*PARTS, "--model", "linear-cv"], "one of linear, maxmargin, pairs"),
        ([*PARTS, "--model", "boosted"], "On a cluster it can also be boosted"),
        (["--local-cluster", "2", "--model", "boosted", "--set", "booster=xgboost"], "boosted (xgboost)"),
        ([*PARTS, "--validation", "v.parquet"], "--validation does not work with"),
        ([*PARTS, "--evaluate", "err[max_grade=data]"], "max_grade must be a number for data in parts"),
        ([*PARTS, "--test", "nosuch.parquet"], "nosuch.parquet: No such file"),
        ([*PARTS, "--test", "nosuch.csv"], "concordant convert nosuch.csv"),
        ([*PARTS, "--test", "nosuch.txt.gz"], "concordant convert nosuch.txt.gz"),
    ],
)
def test_wrong_options_end_with_a_message_before_any_work(home, tmp_path, options, words, monkeypatch):
    monkeypatch.setattr("concordant.scale.cluster.local_cluster", None)
    assert words in refusal("train", home / "train.parquet", "-o", tmp_path / "run", *options)
    assert not (tmp_path / "run").exists()


def test_a_folder_is_read_in_parts_only(home, tmp_path):
    assert "--memory SIZE" in refusal("train", home / "train", "-o", tmp_path / "run")


def spoiled(source, path, group, row):
    """The same file, but for a feature that is not finite."""
    file, tables = pq.ParquetFile(source), []
    for number in range(file.num_row_groups):
        table = file.read_row_group(number)
        if number == group:
            column = table.column("price").to_numpy().copy()
            column[row] = np.nan
            table = table.set_column(table.column_names.index("price"), "price", pa.array(column))
        tables.append(table)
    with pq.ParquetWriter(path, tables[0].schema) as writer:
        for table in tables:
            writer.write_table(table)
    return path


@pytest.mark.parametrize("where", ["memory", pytest.param("cluster", marks=pytest.mark.once)])
@pytest.mark.parametrize("part", ["train", "test"])
def test_a_bad_row_is_named_before_any_work_and_nothing_is_written(home, tmp_path, part, where, request):
    place_options = PARTS
    if where == "cluster":
        place_options = ["--scheduler", request.getfixturevalue("client").scheduler.address]
    files = {name: home / f"{name}.parquet" for name in ("train", "test")}
    files[part] = spoiled(files[part], tmp_path / "bad.parquet", 1, 5)
    message = refusal(
        "train", files["train"], "--test", files["test"], "-o", tmp_path / "run", *place_options
    )
    assert "bad.parquet, row group 1: column 'price' is nan at row 5" in message
    assert not (tmp_path / "run").exists()


def test_a_folder_that_was_there_stays(home, tmp_path):
    bad = spoiled(home / "train.parquet", tmp_path / "bad.parquet", 0, 2)
    (tmp_path / "run").mkdir()
    assert "row group 0" in refusal("train", bad, "-o", tmp_path / "run", *PARTS)
    assert RunFolder(tmp_path / "run").state == "new"
    trained(home, tmp_path / "run", *PARTS)
    contents_before = contents(tmp_path / "run")
    assert "row group 0" in refusal("train", bad, "-o", tmp_path / "run", *PARTS, "--overwrite")
    assert contents(tmp_path / "run") == contents_before


def test_a_search_is_made_in_memory(home, tmp_path):
    answer("tune", home / "train.txt", "--folds", "2", "--space", "alpha=[1,2]", "-o", tmp_path / "run")
    assert "does not work with a search" in refusal("rerun", tmp_path / "run", *PARTS)
    assert refusal("rerun", tmp_path / "run", "--memory", "much")


# --- fingerprints of folders


def test_files_of_a_folder_that_change_are_named(home, tmp_path):
    shutil.copytree(home / "train", tmp_path / "data")
    answer("train", tmp_path / "data", "-o", tmp_path / "run", *PARTS)
    facts = json.loads((tmp_path / "run" / "run.json").read_text())["data"]["train"]
    assert facts["files"] == {
        name: fingerprint(tmp_path / "data" / name)["sha256"] for name in facts["files"]
    }
    assert facts["bytes"] == sum(path.stat().st_size for path in (tmp_path / "data").iterdir())
    (tmp_path / "data" / "notes.txt").write_text("not ours")
    assert answer("rerun", tmp_path / "run")["same"]
    spoiled(home / "train" / "1.parquet", tmp_path / "data" / "1.parquet", 0, 0)
    assert "1.parquet is not what it was" in refusal("rerun", tmp_path / "run")
    now = {"data": {"train": fingerprint(tmp_path / "data")}}
    assert changed_files({"data": {"train": facts}}, now) == [str(tmp_path / "data" / "1.parquet")]
    (tmp_path / "data" / "0.parquet").rename(tmp_path / "data" / "3.parquet")
    now = {"data": {"train": fingerprint(tmp_path / "data")}}
    names = [name.rpartition("/")[2] for name in changed_files({"data": {"train": facts}}, now)]
    assert names == ["0.parquet", "1.parquet", "3.parquet"]
    lost = {key: value for key, value in facts.items() if key != "files"}
    assert changed_files({"data": {"train": lost}}, now) == [str(tmp_path / "data")]


def test_places_are_what_the_options_say():
    assert ComputeTarget.from_options(None, None, None) == IN_MEMORY
    assert not IN_MEMORY.in_parts
    assert ComputeTarget.from_options(None, None, "1KiB") == ComputeTarget(memory=1024)
    assert ComputeTarget.from_options(None, 3, None).is_cluster
    assert ComputeTarget.from_facts({}) == IN_MEMORY
    assert ComputeTarget.from_facts({"place": {"memory": 4096}}) == ComputeTarget(memory=4096)
    assert ComputeTarget.from_facts({"place": {"workers": 7}}).memory == 1 << 30


# --- convert


@pytest.mark.slow
def test_converted_rows_are_those_of_the_source(home, tmp_path):
    log = cc.read_letor(home / "train.txt")
    mixed = np.random.default_rng(0).permutation(len(log.y))
    cc.write_letor(tmp_path / "mixed.txt", log.X[mixed], log.y[mixed], log.qid[mixed])
    output = answer("convert", tmp_path / "mixed.txt", "-o", tmp_path / "out.parquet", "--row-group", "4KiB")
    file = pq.ParquetFile(tmp_path / "out.parquet")
    assert output == {
        "source": [str(tmp_path / "mixed.txt")],
        "output": str(tmp_path / "out.parquet"),
        "rows": len(log.y),
        "queries": log.n_queries,
        "features": log.X.shape[1],
        "row_groups": file.num_row_groups,
        "bytes": (tmp_path / "out.parquet").stat().st_size,
    }
    assert file.num_row_groups > 1
    table = file.read()
    order = mixed[np.argsort(log.qid[mixed], kind="stable")]
    assert np.array_equal(table.column("qid"), log.qid[order])
    assert np.array_equal(table.column("grade"), log.y[order])
    assert np.array_equal(np.column_stack([table.column(f"f{k}") for k in range(1, 8)]), log.X[order])
    parts = trained(home, tmp_path / "run", *PARTS, source=tmp_path / "out.parquet", test="test.txt")
    plain = trained(home, tmp_path / "plain", source="train.txt", test="test.txt")
    assert values(parts) == pytest.approx(values(plain), abs=1e-12)


def test_several_files_become_one_and_columns_keep_their_names(home, tmp_path):
    for number, rows in enumerate(("b,1,0.5\na,0,2\n", "c,2,1\na,1,3\n")):
        (tmp_path / f"{number}.csv").write_text(f"session,clicks,bm25\n{rows}")
    files = [tmp_path / "0.csv", tmp_path / "1.csv"]
    options = ["--qid", "session", "--label", "clicks", "--dtype", "float32", "-o", tmp_path / "out.parquet"]
    result = call("convert", *files, *options)
    assert result.exit_code == 0
    assert result.stdout.split()[-5:-1] == ["4", "3", "1", "1"]
    assert result.stderr == ""
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column("session").to_pylist() == ["a", "a", "b", "c"]
    assert table.column("bm25").to_pylist() == [2.0, 3.0, 0.5, 1.0]
    assert table.schema.field("bm25").type == pa.float32()
    output = answer("convert", home / "train", "-o", tmp_path / "folder.parquet")
    assert output["rows"] == cc.scan_parquet(home / "train").n_rows


def test_convert_writes_over_nothing_unasked(home, tmp_path):
    out = tmp_path / "out.parquet"
    out.write_text("mine")
    assert "pass --overwrite" in refusal("convert", home / "train.txt", "-o", out)
    assert out.read_text() == "mine"
    assert answer("convert", home / "train.txt", "-o", out, "--overwrite")["queries"] == 60
    before = out.read_bytes()
    assert "a file that is read" in refusal("convert", out, "-o", out, "--overwrite")
    shutil.copytree(home / "train", tmp_path / "data")
    inside = tmp_path / "data" / "1.parquet"
    assert "a file that is read" in refusal("convert", tmp_path / "data", "-o", inside, "--overwrite")
    (tmp_path / "bad.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:x\n")
    assert "line 2" in refusal("convert", tmp_path / "bad.txt", "-o", out, "--overwrite")
    assert out.read_bytes() == before
    assert "line 2" in refusal("convert", tmp_path / "bad.txt", "-o", tmp_path / "new.parquet")
    assert not (tmp_path / "new.parquet").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["train.csv", "-o", "out.parquet"], "Columns are named by --label, --qid"),
        (["train.csv", "--qid", "query", "-o", "out.parquet"], "'url'"),
        (["nosuch.txt", "-o", "out.parquet"], "nosuch.txt: No such file"),
        (["train.txt", "-o", "out.csv"], "ends in .parquet"),
        (["train.txt", "-o", "nosuch/out.parquet"], "nosuch: No such file"),
        (["train.txt", "-o", "out.parquet", "--memory", "1KiB"], "largest query"),
        (["train.txt", "-o", "out.parquet", "--memory", "much"], "--memory"),
        (["train.txt", "-o", "out.parquet", "--row-group", "0"], "--row-group"),
        (["train.txt", "-o", "out.parquet", "--dtype", "int8"], "dtype"),
        (["train.txt", "train.csv", "-o", "out.parquet"], "different kinds"),
    ],
)
def test_wrong_conversions_end_with_a_message(home, tmp_path, monkeypatch, options, words):
    shutil.copy(home / "train.txt", tmp_path)
    (tmp_path / "train.csv").write_text("query,grade,url,bm25\n1,0,a,0.5\n1,1,b,0.5\n")
    monkeypatch.chdir(tmp_path)
    assert words in refusal("convert", *options)
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_can_be_read_once_is_not_converted(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "read twice" in refusal("convert", tmp_path / "pipe", "-o", tmp_path / "out.parquet")
