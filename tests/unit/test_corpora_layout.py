"""Each rule that tells what a column holds, over each format: CSV, TSV, JSONL, Parquet, DataFrames, the Hub."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from core.corpora import load
from core.corpora.types import Corpus
from tests.making import corpus_folder

Rows = list[dict[str, Any]]
FORMATS = ("csv", "tsv", "jsonl", "dataframe", "copy")
"""Files of texts, DataFrames of pandas, and a copy of a dataset of the Hub."""


def _file(ending: str, rows: Rows) -> str:
    if ending == "jsonl":
        return "".join(f"{json.dumps(row)}\n" for row in rows)
    written = io.StringIO()
    if ending == "tsv":
        lines = [list(rows[0]), *([_text(value) for value in row.values()] for row in rows)]
        return "".join("\t".join(line) + "\n" for line in lines)
    writer = csv.writer(written)
    writer.writerows([list(rows[0]), *([_text(value) for value in row.values()] for row in rows)])
    return written.getvalue()


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def read(form: str, folder: Path, train: Rows, test: Rows, dev: Rows | None = None) -> Corpus:
    """The corpus of these rows, written in that format."""
    splits = {"train": train, "test": test} | ({"dev": dev} if dev is not None else {})
    if form in ("csv", "tsv", "jsonl"):
        files = {f"{split}.{form}": _file(form, rows) for split, rows in splits.items()}
        return load(corpus_folder(folder / "mine", files))
    datasets = pytest.importorskip("datasets", reason="the package datasets is not installed here")
    if form == "dataframe":
        import pandas as pd

        from core.library import Laboratory

        tables = {split: pd.DataFrame(rows) for split, rows in splits.items()}
        raise NotImplementedError(Laboratory, tables)
    tables = {split: datasets.Dataset.from_list(rows) for split, rows in splits.items()}
    datasets.DatasetDict(tables).save_to_disk(str(folder / "mine"))
    return load(f"hub:{folder / 'mine'}")
