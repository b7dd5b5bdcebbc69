"""`mrnlab import`: an exported run as a run of this laboratory.

An export may come from anybody: nothing in it is trusted before it is checked. Its manifest is read first.
Only files of the manifest are copied or unpacked, and only the copy is read, once its hashes are verified.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from core.checkpoints.sealed import MANIFEST, Damaged, Sealed, opened, verified
from core.config import RunConfig
from core.errors import ConfigError, MRNLabError
from core.paths import checkpoint_dir, given_path
from core.registry import ENCODERS
from core.store import Store, normal_keyword
from core.store.exchange import RunRecord
from jobs.exchange.format import CHECKPOINT, MOST_BYTES, RunFile, read_export

IMPORTED = "imported"
"""The keyword of imported runs."""
_MOST_FILES = 10_000
_MOST_TEXT = 256 * 1024**2
# The most bytes of a file by its ending; any other ending is refused. Weights are bounded by the disk.
_MOST = {
    **dict.fromkeys([".json", ".txt", ".md", ".jinja"], _MOST_TEXT),
    # Vocabularies of SentencePiece, and merges: data, not code.
    **dict.fromkeys([".model", ".spm", ".vocab"], _MOST_TEXT),
    ".parquet": MOST_BYTES,
    ".safetensors": 1024**4,
}
_MOST_MANIFEST = 16 * 1024**2
_MOST_UNPACKED, _MOST_RATIO = 256 * 1024**2, 10
"""A zip file unpacks to so many bytes at most, and so many more for each of its own: weights hardly get
smaller when they are packed.
"""
_CHUNK = 1024**2
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError)
_ENCRYPTED = 0x1
"""The flag of an encrypted file in a zip file."""
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


@dataclass(frozen=True)
class Imported:
    """The number of the run here; `was_there` where the store already had it, and nothing was done."""

    run_id: int
    was_there: bool


class _Refused(Exception):
    """The reason why a folder is not imported, as a clause."""


class _NoExport(Exception):
    """What is to be imported has no manifest."""


def import_run(store: Store, folder: Path, *, again: bool = False) -> Imported:
    """Imports an exported run into the store with its checkpoint, completely or not at all.

    A run that the store already has (exported from here or imported before) is left as it is, unless `again`.
    Raises MRNLabError where the folder differs in any byte from what `export_run` wrote.
    """
    folder = given_path(folder)
    if not folder.is_dir():
        raise MRNLabError(f"There is no folder {folder} to import.")
    return _imported(store, partial(_copy_listed, folder.resolve()), str(folder), again=again)


def import_zip(store: Store, file: BinaryIO, name: str) -> Imported:
    """Imports a run as `import_run` does from the zip file of an export, which messages call `name`."""
    return _imported(store, partial(_unpack_listed, file), name, again=False)


@contextmanager
def _aside() -> Iterator[Path]:
    """A folder on the disk of the checkpoints, removed at the end."""
    checkpoints = checkpoint_dir(1).parent
    checkpoints.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="import.", dir=checkpoints) as folder:
        yield Path(folder)


def _imported(store: Store, fill: Callable[[Path], None], name: str, *, again: bool) -> Imported:
    """Imports the files that `fill` puts into a folder, from what messages call `name`."""
    with _aside() as copy:
        try:
            fill(copy)
            verified(copy)
            file, record = read_export(copy)
            same = store.same_run(record.run)
            if same is not None and not again:
                return Imported(same.id, True)
            _check_model(copy / CHECKPOINT, file)
        except _NoExport as error:
            raise MRNLabError(
                f"{name} is not an export of MRN Lab: it has no {MANIFEST}. `mrnlab export RUN DIR` makes "
                "one."
            ) from error
        except (_Refused, Damaged, ValueError, OSError) as error:
            raise MRNLabError(f"{name} is not imported: {error}. Nothing was changed.") from error
        keywords = set(map(normal_keyword, (*record.run.keywords, IMPORTED)))
        run = dataclasses.replace(record.run, keywords=tuple(sorted(keywords)))
        note = (
            f"Imported from {name}, where {file.made_by} had exported it on {file.exported_at:%Y-%m-%d} as "
            f"run {file.run} of another store."
        )
        return _import_record(
            store, dataclasses.replace(record, run=run), note, copy / CHECKPOINT, again=again
        )


def _import_record(store: Store, record: RunRecord, note: str, checkpoint: Path, *, again: bool) -> Imported:
    """Adds the rows and moves the checkpoint's folder in, in one transaction.

    Nothing is done where another process has imported the run meanwhile, unless `again`.
    """
    target: Path | None = None
    try:
        with store.queueing_alone():
            if not again and (same := store.same_run(record.run)) is not None:
                return Imported(same.id, True)
            run_id = store.import_record(record, note)
            target = checkpoint_dir(run_id)
            if target.exists():
                raise MRNLabError(f"{target} is left behind by a run that is gone; remove it.")
            checkpoint.rename(target)
            store.place_checkpoint(run_id, str(target))
    except BaseException:
        # The store rolls the rows back; the folder moves back and is removed with the copy.
        if target is not None and not checkpoint.exists() and target.exists():
            target.rename(checkpoint)
        raise
    return Imported(run_id, False)


def _copy_listed(folder: Path, copy: Path) -> None:
    """Copies the files of an export's manifest.

    Raises _NoExport, and _Refused or Damaged where a file leads out of the folder, is too large, or may be
    code.
    """
    if not (folder / MANIFEST).exists():
        raise _NoExport
    _copy_file(folder, MANIFEST, copy)
    listed = _listed(copy, (path.name for path in folder.rglob("*")))
    _check_room(
        sum(os.lstat(folder / name).st_size for name in listed.files if (folder / name).is_file()), copy
    )
    for name in listed.files:
        _copy_file(folder, name, copy)


def _listed(copy: Path, names: Iterable[str]) -> Sealed:
    """Reads the manifest of an export. Raises _Refused where it, or a file beside it, cannot be one's.

    `names` are of all files, also those outside the manifest: they are never read, but a pickle among them is
    suspicious.
    """
    listed = opened(copy)
    if "export" not in listed.about or len(listed.files) > _MOST_FILES:
        raise _Refused(f"{MANIFEST} is not one of an export")
    for name in (*listed.files, *names):
        if name.lower().endswith(_PICKLES):
            raise _Refused(f"it holds {name}, which may be a pickle, and can run code when it is read")
    return listed


def _unpack_listed(file: BinaryIO, copy: Path) -> None:
    """Unpacks the files of an export's manifest, which is read first, none further than its size there.

    Raises _NoExport, and _Refused or Damaged where the file is no zip file of an export, or unpacks to more
    than one can.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            members = _members(archive)
            manifests = [name for name in members if PurePosixPath(name).name == MANIFEST]
            if not manifests:
                raise _NoExport
            manifest = min(manifests, key=lambda name: len(PurePosixPath(name).parts))
            _unpack(archive, members[manifest], copy / MANIFEST, _MOST_MANIFEST)
            listed = _listed(copy, members)
            packed = file.seek(0, os.SEEK_END)
            most = _MOST_UNPACKED + _MOST_RATIO * packed
            if listed.size > most:
                raise _Refused(
                    f"it unpacks to {listed.size / 1e6:,.1f} MB, and an export of {packed / 1e6:,.1f} MB has "
                    f"{most / 1e6:,.1f} MB at most; unpack it, and import the folder"
                )
            _check_room(listed.size, copy)
            for name, (size, _) in listed.files.items():
                member = members.get(f"{manifest.removesuffix(MANIFEST)}{name}")
                if member is None:
                    raise _Refused(f"{name} is missing")
                _check_kind(name, size)
                _unpack(archive, member, copy / name, size)
    except _DAMAGED_ZIP as error:
        raise _Refused("it is damaged, or no zip file") from error


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files of an archive by name. Raises _Refused for what no export is packed as."""
    members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
    if len(members) > _MOST_FILES:
        raise _Refused(f"it has {len(members):,} files, more than an export has")
    for name, member in members.items():
        if member.flag_bits & _ENCRYPTED:
            raise _Refused("it is encrypted")
        if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
            raise _Refused(f"'{name[:80]}' leads out of the folder")
        _check_kind(name, member.file_size)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise _Refused(f"{name[:80]} is packed by another method than zip's own (deflate)")
    return members


def _unpack(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, most: int) -> None:
    """Writes a file of an archive. Raises _Refused as soon as it has more than so many bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with archive.open(member) as source, path.open("xb") as target:
        while part := source.read(_CHUNK):
            size += len(part)
            if size > most:
                raise _Refused(f"{member.filename[:80]} has more than the {most:,} bytes that it may have")
            target.write(part)


def _check_room(size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if size > 0.9 * free:
        raise _Refused(f"it takes {size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free")


def _check_kind(name: str, size: int) -> None:
    """Raises _Refused for a file of another kind, or larger, than an export has."""
    most = _MOST.get(PurePosixPath(name).suffix.lower())
    if most is None:
        raise _Refused(f"{name} is a kind of file that no export holds")
    if size > most:
        raise _Refused(f"{name} has {size / 1e6:,.0f} MB, more than such a file of an export has")


def _copy_file(folder: Path, name: str, copy: Path) -> None:
    _check_kind(name, 0)
    path = folder / name
    if not path.is_relative_to(folder) or path.resolve() != path:
        raise _Refused(f"'{name[:80]}' leads out of the folder, or is a link")
    try:
        # Non-blocking: opening a pipe would wait until somebody writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _Refused(f"{name} is missing, or cannot be read ({error.strerror})") from error
    with os.fdopen(descriptor, "rb") as source:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _Refused(f"{name} is no plain file")
        _check_kind(name, status.st_size)
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        with (copy / name).open("xb") as target:
            shutil.copyfileobj(source, target)


def _check_model(checkpoint: Path, file: RunFile) -> None:
    """Raises _Refused where the checkpoint asks for code, cannot be loaded, or is another run's."""
    from core.models.model_io import load

    for path in checkpoint.rglob("*.json"):
        try:
            content = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise _Refused(f"{path.name} of its checkpoint is not JSON") from error
        if isinstance(content, dict) and "auto_map" in content:
            raise _Refused(f"{path.name} of its checkpoint asks for Python code of its own (auto_map)")
    if not (checkpoint / "weights.safetensors").is_file():
        raise _Refused("it has no checkpoint")
    try:
        config = json.loads((checkpoint / "run.json").read_bytes())["config"]
        encoder = RunConfig.from_stored(config).transformer
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise _Refused("its checkpoint has no run.json of ours") from error
    spec = ENCODERS.get(encoder or "")
    is_carried = encoder is None or (checkpoint / "encoder").is_dir()
    if not is_carried and (spec is None or not spec.source.startswith("package:")):
        # Every export has its encoder; a name could lead to any folder of this machine, or to the Hub.
        raise _Refused(f"its checkpoint lacks the encoder {encoder}")
    try:
        tagger = load(checkpoint)
    except Exception as error:  # a foreign model may fail with any error
        raise _Refused(f"its checkpoint cannot be loaded ({str(error).rstrip('.')})") from error
    labels = {task["name"]: list(task["labels"]) for task in file.facts.get("tasks", ())}
    model_labels = {task: list(names) for task, names in tagger.labels.items()}
    if file.config.get("added_to"):  # its facts have the labels of the one task that was added
        *before, name = file.facts.get("related", ("",))
        model_labels = {task: names for task, names in model_labels.items() if task not in before}
        labels = dict.fromkeys([name], *labels.values())
    if model_labels != labels:
        raise _Refused("its checkpoint has other tasks or labels than its run")
