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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from core.corpora.assembly import SPLITS
from core.corpora.folder import CONLLU, EXTENSIONS, detect_columns, find_splits, split_of
from core.corpora.readers import read_conllu, read_table
from core.corpora.types import Split
from core.errors import CorpusError
from core.paths import upload_dir

MOST_MEGABYTES = 200
"""The most an upload may hold in all: ten times the largest shared-task corpora."""

_NAME_LENGTH = 60


@dataclass(frozen=True)
class Upload:
    """An uploaded corpus: its folder, when it was uploaded, its splits and its size."""

    path: Path
    uploaded: datetime
    splits: tuple[Split, ...]
    bytes: int


def uploads() -> list[Upload]:
    """The uploaded corpora that are kept, newest first."""
    kept = []
    for path in upload_dir().iterdir():
        # Beside them lie uploads that are being written, and the mappings of runs.
        if path.name.startswith(".") or not path.is_dir():
            continue
        try:
            files = find_splits(path)
        except CorpusError:
            continue  # no corpus
        uploaded = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        size = sum(file.stat().st_size for file in files.values())
        kept.append(Upload(path, uploaded, tuple(split for split in SPLITS if split in files), size))
    return sorted(kept, key=lambda upload: upload.uploaded, reverse=True)


def delete_upload(path: Path) -> None:
    """Deletes an uploaded corpus. Raises CorpusError where that is none."""
    if path not in [upload.path for upload in uploads()]:
        raise CorpusError(f"{path.name} is no uploaded corpus; it may have been deleted already.")
    shutil.rmtree(path)


def save_upload(files: Mapping[str, bytes], name: str) -> Path:
    """Stores the split files (file name → content) and returns the corpus folder.

    `name` is what the researcher calls the corpus. Raises CorpusError, and keeps nothing, where a file's name
    tells no split, two tell the same, train or test is missing, there is too much of it, or a file cannot be
    read.
    """
    megabytes = sum(map(len, files.values())) / 1e6
    if megabytes > MOST_MEGABYTES:
        raise CorpusError(
            f"The upload holds {megabytes:,.0f} MB and the most is {MOST_MEGABYTES} MB; "
            "put the files in a folder on the machine and name that instead."
        )
    splits: dict[Split, tuple[str, bytes]] = {}
    for file_name, content in files.items():
        base = re.split(r"[/\\]", file_name)[-1]
        split = split_of(base)
        if split is None:
            raise CorpusError(
                f"'{base}' does not tell its split; name the files train, dev and test with an ending such "
                "as .conll or .conllu."
            )
        if split in splits:
            raise CorpusError(
                f"Both '{splits[split][0]}' and '{base}' are {split} files; upload one of them."
            )
        splits[split] = base, content
    for needed in ("train", "test"):
        if needed not in splits:
            raise CorpusError(f"The upload has no {needed} file; add one, {needed}.conll say.")
    folder = upload_dir() / f"{_slug(name)}-{_digest(splits)}"
    if not folder.exists():
        _write(folder, splits)
    return folder


def _write(folder: Path, splits: Mapping[Split, tuple[str, bytes]]) -> None:
    """All files or none: written beside, then moved in place."""
    beside = Path(tempfile.mkdtemp(prefix=".upload-", dir=folder.parent))
    try:
        for split, (base, content) in splits.items():
            (beside / f"{split}{_ending(base)}").write_bytes(content)
        _check_readable(beside, splits)
        try:
            beside.rename(folder)
        except OSError:
            if not folder.exists():  # else another session has stored the same upload meanwhile
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _check_readable(folder: Path, splits: Mapping[Split, tuple[str, bytes]]) -> None:
    """Raises CorpusError, with the file's uploaded name, where a file cannot be read as rows of one width."""
    try:
        files = find_splits(folder)
        is_conllu = files["train"].suffix == CONLLU
        columns = None if is_conllu else detect_columns(folder).columns
        for file in files.values():
            read_conllu(file) if is_conllu else read_table(file, columns)
    except CorpusError as error:
        sentence = str(error)
        for split, (base, _) in splits.items():
            sentence = sentence.replace(str(folder / f"{split}{_ending(base)}"), base)
        raise CorpusError(sentence.replace(str(folder), "The upload")) from error


def _ending(base: str) -> str:
    ending = Path(base).suffix.lower()
    return ending if ending in EXTENSIONS else ".conll"


def _slug(name: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:_NAME_LENGTH]
    return slug or "corpus"


def _digest(splits: Mapping[Split, tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for split in sorted(splits):
        base, content = splits[split]
        digest.update(f"{split}{_ending(base)}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()[:8]
