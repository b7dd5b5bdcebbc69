"""`mrnlab import`: an exported run as a run of this laboratory.

A folder that says it is an export may be by anybody: nothing of it is believed before it was looked at. Only
files that its list names are copied, and only the copy, once its hashes are right, is read.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.checkpoints.sealed import MANIFEST, Damaged, opened, verified
from core.config import RunConfig
from core.errors import ConfigError, MRNLabError
from core.paths import checkpoint_dir, given_path
from core.registry import ENCODERS
from core.store import Store, normal_keyword
from core.store.exchange import RunRecord
from jobs.exchange.format import CHECKPOINT, MOST_BYTES, RunFile, read_export

IMPORTED = "imported"
"""The keyword of runs that came from elsewhere."""
_MOST_FILES = 10_000
_MOST_TEXT = 256 * 1024**2
# By ending, how long a file may be; any other ending is refused. Weights are bounded by the disk.
_MOST = {
    **dict.fromkeys([".json", ".txt", ".md", ".jinja"], _MOST_TEXT),
    # Vocabularies of SentencePiece, and merges: data, not code.
    **dict.fromkeys([".model", ".spm", ".vocab"], _MOST_TEXT),
    ".parquet": MOST_BYTES,
    ".safetensors": 1024**4,
}
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


@dataclass(frozen=True)
class Imported:
    """The run's number here; `was_there`: it was known already, and nothing was done."""

    run_id: int
    was_there: bool


class _Refused(Exception):
    """Why nothing of a folder is taken in, as a clause."""


def import_run(store: Store, folder: Path, *, again: bool = False) -> Imported:
    """Takes an exported run into the store and its checkpoint into the laboratory: all of it or nothing.

    One that is there already (exported from here, say, or imported before) is left as it is, unless `again`.
    Raises MRNLabError where the folder is not what `export_run` wrote, in every byte.
    """
    folder = given_path(folder)
    if not folder.is_dir():
        raise MRNLabError(f"There is no folder {folder} to import.")
    if not (folder / MANIFEST).exists():
        raise MRNLabError(
            f"{folder} is not an export of MRN Lab: it has no {MANIFEST}. `mrnlab export RUN DIR` makes one."
        )
    checkpoints = checkpoint_dir(1).parent
    checkpoints.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="import.", dir=checkpoints) as aside:
        copy = Path(aside)
        try:
            _copy_listed(folder.resolve(), copy)
            file, record = read_export(copy)
            known = store.same_run(record.run)
            if known is not None and not again:
                return Imported(known.id, True)
            _check_model(copy / CHECKPOINT, file)
        except (_Refused, Damaged, ValueError, OSError) as error:
            raise MRNLabError(f"{folder} is not imported: {error}. Nothing was changed.") from error
        keywords = set(map(normal_keyword, (*record.run.keywords, IMPORTED)))
        run = dataclasses.replace(record.run, keywords=tuple(sorted(keywords)))
        note = (
            f"Imported from {folder}, where {file.made_by} had exported it on {file.exported_at:%Y-%m-%d} as "
            f"run {file.run} of another store."
        )
        run_id = _import_record(store, dataclasses.replace(record, run=run), note, copy / CHECKPOINT)
    return Imported(run_id, False)


def _import_record(store: Store, record: RunRecord, note: str, checkpoint: Path) -> int:
    """The rows in one transaction, at whose end the checkpoint's folder is renamed in."""
    place: Path | None = None
    try:
        with store.transaction():
            run_id = store.import_record(record, note)
            place = checkpoint_dir(run_id)
            if place.exists():
                raise MRNLabError(f"{place} is there already, left behind by a run that is gone; remove it.")
            checkpoint.rename(place)
            store.place_checkpoint(run_id, str(place))
    except BaseException:
        # The rows are taken back by the store; the folder goes back to where it is removed.
        if place is not None and not checkpoint.exists() and place.exists():
            place.rename(checkpoint)
        raise
    return run_id


def _copy_listed(folder: Path, copy: Path) -> None:
    """Copies an export, and reads every byte of the copy. Raises _Refused or Damaged where a file is not as
    the list says, leads out of the folder, is too large, or may be code.
    """
    _copy_file(folder, MANIFEST, copy)
    listed = opened(copy)
    if "export" not in listed.about or len(listed.files) > _MOST_FILES:
        raise _Refused(f"{MANIFEST} is not one of an export")
    # Those that the list does not name would never be read; whoever put them there meant no good.
    for name in (*listed.files, *(path.name for path in folder.rglob("*"))):
        if name.lower().endswith(_PICKLES):
            raise _Refused(f"it holds {name}, which may be a pickle, and can run code when it is read")
    free = shutil.disk_usage(copy).free
    size = sum(os.lstat(folder / name).st_size for name in listed.files if (folder / name).is_file())
    if size > 0.9 * free:
        raise _Refused(f"it takes {size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free")
    for name in listed.files:
        _copy_file(folder, name, copy)
    verified(copy)


def _copy_file(folder: Path, name: str, copy: Path) -> None:
    most = _MOST.get(PurePosixPath(name).suffix.lower())
    if most is None:
        raise _Refused(f"{name} is a kind of file that no export holds")
    place = folder / name
    if not place.is_relative_to(folder) or place.resolve() != place:
        raise _Refused(f"'{name[:80]}' leads out of the folder, or is a link")
    try:
        # Without waiting: a pipe in place of the file would be waited for until somebody writes into it.
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise _Refused(f"{name} is missing, or cannot be read ({error.strerror})") from error
    with os.fdopen(descriptor, "rb") as source:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _Refused(f"{name} is no plain file")
        if status.st_size > most:
            raise _Refused(
                f"{name} has {status.st_size / 1e6:,.0f} MB, more than such a file of an export has"
            )
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
        encoder = RunConfig.stored(config).transformer
    except (OSError, ValueError, KeyError, TypeError, ConfigError) as error:
        raise _Refused("its checkpoint has no run.json of ours") from error
    spec = ENCODERS.get(encoder or "")
    is_carried = encoder is None or (checkpoint / "encoder").is_dir()
    if not is_carried and (spec is None or not spec.source.startswith("package:")):
        # Every export carries it; its name could lead to any folder of this machine, or to the Hub.
        raise _Refused(f"its checkpoint lacks the encoder {encoder}")
    try:
        tagger = load(checkpoint)
    except Exception as error:  # whatever makes the model of a stranger fail
        raise _Refused(f"its checkpoint cannot be loaded ({str(error).rstrip('.')})") from error
    labels = {task["name"]: list(task["labels"]) for task in file.facts.get("tasks", ())}
    found = {task: list(of_task) for task, of_task in tagger.labels.items()}
    if file.config.get("added_to"):  # its facts have the labels of the one task that was added
        *before, name = file.facts.get("related", ("",))
        found = {task: of_task for task, of_task in found.items() if task not in before}
        labels = dict.fromkeys([name], *labels.values())
    if found != labels:
        raise _Refused("its checkpoint has other tasks or labels than its run")
