"""mrnlab backup: a file, with a sentence or a document about it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from jobs.cli import app


def test_the_verb(tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    first = CliRunner().invoke(app, ["backup", str(file)])
    assert (first.exit_code, first.stdout) == (0, "")
    assert first.stderr.startswith("0 runs, 0 rows, 0.1 MB: ")
    assert CliRunner().invoke(app, ["backup", str(file)]).exit_code == 2
    again = CliRunner().invoke(app, ["backup", str(file), "--force", "--json"])
    assert json.loads(again.stdout) == {
        "place": str(file),
        "runs": 0,
        "rows": 0,
        "bytes": file.stat().st_size,
    }
