"""`studies choice` and `tree_choice` run and write their tables; what they measure is not asserted."""

import json

import pytest
from typer.testing import CliRunner

from studies.__main__ import app

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["choice", "tree_choice"])
def test_a_quick_run_writes_its_tables(name, tmp_path):
    done = CliRunner().invoke(app, [name, "--quick", "--json", "--quiet", "--output", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    record = json.loads((tmp_path / f"{name}.json").read_text())
    text = (tmp_path / f"{name}.md").read_text()
    assert json.loads(done.stdout)["tables"] == record["tables"]
    for table in record["tables"]:
        assert table["rows"]
        assert f"## {table['title']}" in text
    assert f"python -m studies {name}" in text
    assert str(tmp_path) not in text


def test_the_tables_are_printed(tmp_path, monkeypatch):
    monkeypatch.setenv("CONCORDANT_DATA", str(tmp_path))
    done = CliRunner().invoke(app, ["choice", "--quick", "--output", str(tmp_path)])
    assert "Exact regret on synthetic labels" in done.stdout
    assert "left out, since they are not here (set CONCORDANT_DATA): mq2008" in " ".join(done.stderr.split())
