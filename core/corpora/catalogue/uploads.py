"""Files that a researcher uploads, and tables from a notebook, kept as a corpus folder of the laboratory.

The folder's name ends in a hash of the content: the same content is kept once, and a run's corpus never
changes under it. Nothing of an uploaded file's name becomes part of a path but its ending, and that only from
a list.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from core.corpora.catalogue.folders import find_splits, splits_of
from core.corpora.catalogue.hub import content_hash, quiet
from core.corpora.readers.files import READ_ENDINGS, read_splits, split_of
from core.corpora.readers.lines import GivenFile
from core.corpora.readers.unread import check_files
from core.corpora.sampling import stream
from core.corpora.types import Split
from core.errors import CorpusError
from core.paths import upload_dir
from core.plain_text import shortened

if TYPE_CHECKING:
    from datasets import Dataset

MOST_MEGABYTES = 200
"""The most an upload may hold in all: ten times the largest shared-task corpora."""

_NAME_LENGTH = 60
_SEED = 1


def uploads() -> dict[Path, datetime]:
    """The folders of the uploaded corpora and when each was uploaded, newest first."""
    kept = {}
    for path in upload_dir().iterdir():
        # Beside them lie uploads that are being written, and the mappings of runs.
        if path.is_dir() and not path.name.startswith("."):
            with suppress(CorpusError):  # it holds no corpus
                find_splits(path)
                kept[path] = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    return dict(sorted(kept.items(), key=lambda item: item[1], reverse=True))


def delete_upload(path: Path) -> None:
    """Deletes an uploaded corpus. Raises CorpusError where that is none."""
    if path not in uploads():
        raise CorpusError(f"{path.name} is not an uploaded corpus; it may have been deleted already.")
    shutil.rmtree(path)


def save_upload(
    files: Mapping[str, bytes], name: str, splits_by_file: Mapping[str, Split] = MappingProxyType({})
) -> Path:
    """Stores the split files (file name → content) and returns the corpus folder.

    `name` is what the researcher calls the corpus; what is there already keeps its name. `splits_by_file` has
    the splits of files whose names tell none. Raises CorpusError, and keeps nothing, where a file's name
    tells no split, two tell the same, splits are missing, there is too much of it, or a file cannot be read.
    """
    megabytes = sum(map(len, files.values())) / 1e6
    if megabytes > MOST_MEGABYTES:
        raise CorpusError(
            f"The upload holds {megabytes:,.0f} MB and the most is {MOST_MEGABYTES} MB; "
            "put the files in a folder on the machine and name that instead."
        )
    check_files([re.split(r"[/\\]", path)[-1] for path in files], "The upload")
    given = []
    for path, content in files.items():
        split = splits_by_file.get(path)
        given.append(GivenFile(f"{split}{_ending(path)}" if split else re.split(r"[/\\]", path)[-1], content))
    for file in given:
        if split_of(file.name) is None:
            raise CorpusError(
                f"Cannot tell whether '{file.name}' is train, dev or test; name the files so, with an ending "
                "such as .conll, .conllu or .csv."
            )
    by_name = {file.name: file for file in given}
    chosen = splits_of([file.name for file in given], "The upload")
    # By the split that the name tells: where no file is test, that is dev.
    splits = {split_of(name) or split: by_name[name] for split, name in chosen.items()}
    digest = hashlib.sha256()
    for split, file in sorted(splits.items()):
        digest.update(f"{split}{_ending(file.name)}:{len(file.content)}:".encode())
        digest.update(file.content)
    key = digest.hexdigest()[:8]
    folder = next((path for path in uploads() if path.name.endswith(f"-{key}")), None)
    if folder is None:
        # Refused where it is no corpus.
        read_splits({split: by_name[name] for split, name in chosen.items()}, "The upload", name, name)
        folder = upload_dir() / f"{_slug(name)}-{key}"
        _write(folder, splits)
    return folder


def save_dataset(data: Any, name: str) -> Path:
    """Stores the tables of a notebook, and returns the folder, which is a copy of a dataset.

    `data` has a table for each split: those of a DatasetDict, or pandas DataFrames. Of a single table, a
    tenth of the rows, drawn with seed 1, is the test split. Raises CorpusError where it is none of these.
    """
    from datasets import Dataset

    if isinstance(data, Mapping):
        tables = {str(split): _table(rows) for split, rows in data.items()}
    else:
        whole = _table(data)
        test = sorted(stream(_SEED, "test", "").permutation(len(whole))[: max(1, len(whole) // 10)].tolist())
        others = sorted(set(range(len(whole))).difference(test))
        tables = {"train": whole.select(others), "test": whole.select(test)}
    if unfit := [split for split in tables if not re.fullmatch(r"\w+", split)]:
        raise CorpusError(f"'{unfit[0]}' cannot be the name of a split; use train, validation and test.")
    with _beside() as folder, quiet():
        for split, table in tables.items():
            Dataset.to_parquet(table, folder / "data" / f"{split}-00000-of-00001.parquet")
        kept = upload_dir() / f"{_slug(name)}-{content_hash(folder)[:8]}"
        _move(folder, kept)
    return kept


def _table(rows: Any) -> Dataset:
    """A table as one of `datasets`. Raises CorpusError where it is none."""
    import pandas as pd
    import pyarrow as pa
    from datasets import Dataset

    if isinstance(rows, Dataset):
        return rows
    if not isinstance(rows, pd.DataFrame):
        raise CorpusError(
            "Expected the name of a corpus, or a table for each split: a DatasetDict, or a dict of pandas "
            f"DataFrames by train, validation and test; found {type(rows).__name__}."
        )
    codes = rows.select_dtypes("category")
    rows = rows.astype({column: codes[column].cat.categories.dtype for column in codes})
    try:
        return Dataset.from_pandas(rows, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise CorpusError(
            f"The table cannot be read ({shortened(str(error))}); each column needs values of one kind."
        ) from None


@contextmanager
def _beside() -> Iterator[Path]:
    """A folder to write an upload to; at the end of the block all that was not moved out is deleted."""
    folder = Path(tempfile.mkdtemp(prefix=".upload-", dir=upload_dir()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _move(folder: Path, kept: Path) -> None:
    try:
        folder.rename(kept)
    except OSError:
        if not kept.exists():  # else the same has been stored before, or meanwhile by another session
            raise


def _write(folder: Path, splits: Mapping[Split, GivenFile]) -> None:
    """All files or none: written beside, then moved in place."""
    with _beside() as beside:
        for split, file in splits.items():
            (beside / f"{split}{_ending(file.name)}").write_bytes(file.content)
        _move(beside, folder)


def _ending(base: str) -> str:
    ending = Path(base).suffix.lower()
    return ending if ending in READ_ENDINGS else ".conll"


def _slug(name: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_NAME_LENGTH]
    return slug or "corpus"
