"""Files that a researcher uploads, kept as a corpus folder of the laboratory.

The folder's name ends in a hash of the content: the same upload is kept once, and a run's corpus never
changes under it. Nothing of an uploaded file's name becomes part of a path but its ending, and that only from
a list.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from core.corpora.folder import READ_ENDINGS, find_splits, read_splits, split_of, splits_of
from core.corpora.readers import GivenFile
from core.corpora.types import Split
from core.errors import CorpusError
from core.paths import upload_dir

MOST_MEGABYTES = 200
"""The most an upload may hold in all: ten times the largest shared-task corpora."""

_NAME_LENGTH = 60


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


def save_upload(files: Mapping[str, bytes], name: str) -> Path:
    """Stores the split files (file name → content) and returns the corpus folder.

    `name` is what the researcher calls the corpus. Raises CorpusError, and keeps nothing, where a file's name
    tells no split, two tell the same, splits are missing, there is too much of it, or a file cannot be read.
    """
    megabytes = sum(map(len, files.values())) / 1e6
    if megabytes > MOST_MEGABYTES:
        raise CorpusError(
            f"The upload holds {megabytes:,.0f} MB and the most is {MOST_MEGABYTES} MB; "
            "put the files in a folder on the machine and name that instead."
        )
    given = [GivenFile(re.split(r"[/\\]", file_name)[-1], content) for file_name, content in files.items()]
    for file in given:
        if split_of(file.name) is None:
            raise CorpusError(
                f"'{file.name}' does not tell its split; name the files train, dev and test with an ending "
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
    folder = upload_dir() / f"{_slug(name)}-{digest.hexdigest()[:8]}"
    if not folder.exists():
        # Refused where it is no corpus.
        read_splits({split: by_name[name] for split, name in chosen.items()}, "The upload", name, name)
        _write(folder, splits)
    return folder


def _write(folder: Path, splits: Mapping[Split, GivenFile]) -> None:
    """All files or none: written beside, then moved in place."""
    beside = Path(tempfile.mkdtemp(prefix=".upload-", dir=folder.parent))
    try:
        for split, file in splits.items():
            (beside / f"{split}{_ending(file.name)}").write_bytes(file.content)
        try:
            beside.rename(folder)
        except OSError:
            if not folder.exists():  # else another session has stored the same upload meanwhile
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _ending(base: str) -> str:
    ending = Path(base).suffix.lower()
    return ending if ending in READ_ENDINGS else ".conll"


def _slug(name: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_NAME_LENGTH]
    return slug or "corpus"
