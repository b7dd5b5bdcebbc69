"""Stores of every schema, made by the version that recorded them, are opened, upgraded and read.

The stores stand for those that people have: `python -m tests.pins.record` makes only those that are missing.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from core.store.migrations import HEAD
from tests.pins.conftest import RUNS, Call
from tests.pins.recorded import FOLDER, RECORDING, masked, pinned

SCHEMAS = ("0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008")


def _write(schema: str, home: Path) -> None:
    """Write the trained runs' store, which has the present schema, as a gzipped SQL text."""
    assert schema == HEAD, "only the version that has a schema can record it"
    connected = sqlite3.connect(home / "runs.db")
    text = "\n".join(connected.iterdump()).replace(str(home), "/laboratory")
    connected.close()
    with gzip.GzipFile(FOLDER / f"store-{schema}.sql.gz", "wb", mtime=0) as file:
        file.write(text.encode())


@pytest.mark.parametrize("schema", SCHEMAS)
def test_store(schema: str, call: Call, laboratory: Path, request: pytest.FixtureRequest) -> None:
    path = FOLDER / f"store-{schema}.sql.gz"
    if os.environ.get(RECORDING) and not path.exists():
        _write(schema, request.getfixturevalue("trained_home"))
    connected = sqlite3.connect(laboratory / "runs.db")
    connected.executescript(gzip.decompress(path.read_bytes()).decode())
    connected.close()

    def read(*arguments: str) -> Any:
        result = call(laboratory, *arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads("\n".join(masked(result.stdout, laboratory)))

    runs = {name: str(number) for name, number in RUNS.items()}
    pinned(
        "stores",
        {
            "runs": read("runs"),
            "results": read("results"),
            "history": read("show", runs["mrn relational"])["history"],
            "loss": {
                name: [row["loss"] for row in read("metrics", run, "loss")] for name, run in runs.items()
            },
            "relations": {
                f"{name} {mode}": read("relations", run, "--mode", mode)["matrix"]
                for name, run in runs.items()
                if name.startswith("mrn")
                for mode in ("label", "feature")
            },
        },
    )
