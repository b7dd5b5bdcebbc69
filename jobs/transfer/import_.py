"""`mrnlab import`: an exported run as a run of this laboratory.

A folder that says it is an export may be by anybody: nothing of it is believed before it was looked at. Only
files that its list names are read, and of these no more than it says; their bytes are hashed while they are
read, so that what was checked is what is used.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import MRNLabError
from core.paths import checkpoint_dir, given_path
from core.registry import ENCODERS, base_name
from core.store import Store, normal_tag
from core.store.transfer import RunRecord
from jobs.transfer.format import CHECKPOINT, MOST_BYTES, TABLES, RunFile, first_problem, read_table

IMPORTED = "imported"
"""The tag of runs that came from elsewhere."""
_MANIFEST = "manifest.json"
_PIECE = 1024**2
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
_PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".npy", ".npz", ".joblib", ".msgpack", ".h5")


@dataclass(frozen=True)
class Imported:
    """The run's number here; `was_there`: it was known already, and nothing was done."""

    run_id: int
    was_there: bool


def import_run(store: Store, folder: Path, *, again: bool = False) -> Imported:
    """Takes an exported run into the store and its checkpoint into the laboratory: all of it or nothing.

    One that is there already (exported from here, say, or imported before) is left as it is, unless `again`.
    Raises MRNLabError where the folder is not what `export_run` wrote, in every byte.
    """
    folder = given_path(folder)
    given = _GivenExport(folder)
    file, record = _read(given)
    known = store.same_run(record.run)
    if known is not None and not again:
        return Imported(known.id, True)
    tags = {normal_tag(tag) for tag in (*record.run.tags, IMPORTED)}
    run = dataclasses.replace(record.run, tags=tuple(sorted(tags)))
    note = (
        f"Imported from {folder}, where {file.made_by} had exported it on {file.exported_at:%Y-%m-%d} as "
        f"run {file.run} of another store."
    )
    with _staged(given, file) as checkpoint:
        return Imported(_take_in(store, dataclasses.replace(record, run=run), note, checkpoint), False)


def _take_in(store: Store, record: RunRecord, note: str, checkpoint: Path) -> int:
    """The rows in one transaction, at whose end the checkpoint's folder is renamed in."""
    place: Path | None = None
    try:
        with store.transaction():
            run_id = store.take_in(record, note)
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


def _read(given: _GivenExport) -> tuple[RunFile, RunRecord]:
    """What the export says of its run, checked as a whole."""
    fields = {
        "metrics.parquet": "curves",
        "scores.parquet": "scores",
        "predictions.parquet": "predictions",
        "snapshots.parquet": "snapshots",
    }
    part = "run.json"
    try:
        file = RunFile.read(given.read(part))
        tables = {}
        for part in TABLES:
            tables[fields[part]] = read_table(part, given.read(part))
        part = "run.json"
        return file, file.record(tables)
    except ValidationError as error:
        raise given.refused(f"{part} is not as an export has it ({first_problem(error)})") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise given.refused(f"{part} is not as an export has it ({error})") from error


@contextmanager
def _staged(given: _GivenExport, file: RunFile) -> Iterator[Path]:
    """The export's checkpoint, copied beside the laboratory's own and found able to tag."""
    checkpoints = checkpoint_dir(1).parent
    checkpoints.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(checkpoints).free
    if given.size > 0.9 * free:
        raise given.refused(f"it takes {given.size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free")
    with tempfile.TemporaryDirectory(prefix="import.", dir=checkpoints) as aside:
        staged = Path(aside) / CHECKPOINT
        for name in sorted(given.files):
            inside = PurePosixPath(name)
            if inside.parts[0] == CHECKPOINT:
                given.copy(name, staged / inside.relative_to(CHECKPOINT))
            else:
                given.read_through(name, len)
        _check_model(given, staged, file)
        yield staged


def _check_model(given: _GivenExport, checkpoint: Path, file: RunFile) -> None:
    """Raises MRNLabError where the checkpoint asks for code, cannot be loaded, or is another run's."""
    from core.models.model_io import load

    for path in checkpoint.rglob("*.json"):
        try:
            content = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise given.refused(f"{path.name} of its checkpoint is not JSON") from error
        if isinstance(content, dict) and "auto_map" in content:
            raise given.refused(f"{path.name} of its checkpoint asks for Python code of its own (auto_map)")
    if not (checkpoint / "weights.safetensors").is_file():
        raise given.refused("it has no checkpoint")
    try:
        encoder = base_name(str(json.loads((checkpoint / "run.json").read_bytes())["config"]["encoder"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise given.refused("its checkpoint has no run.json of ours") from error
    spec = ENCODERS.get(encoder)
    if not (checkpoint / "encoder").is_dir() and (spec is None or not spec.source.startswith("package:")):
        # Every export carries it; its name could lead to any folder of this machine, or to the Hub.
        raise given.refused(f"its checkpoint lacks the encoder {encoder}")
    try:
        tagger = load(checkpoint)
    except Exception as error:  # whatever makes the model of a stranger fail
        raise given.refused(f"its checkpoint cannot be loaded ({str(error).rstrip('.')})") from error
    labels = {task["name"]: list(task["labels"]) for task in file.facts.get("tasks", ())}
    if {task: list(of_task) for task, of_task in tagger.labels.items()} != labels:
        raise given.refused("its checkpoint has other tasks or labels than its run")


class _Listed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class _About(BaseModel):
    export: int


class _Manifest(BaseModel):
    format: int
    about: _About
    files: dict[str, _Listed] = Field(max_length=_MOST_FILES)


class _GivenExport:
    """Such a folder, its list read and checked. All of its methods raise MRNLabError, in one sentence."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not folder.is_dir():
            raise MRNLabError(f"There is no folder {folder} to import.")
        try:
            pieces: list[bytes] = []
            self._hashed(_MANIFEST, pieces.append, _MOST_TEXT)
            self.files = _Manifest.model_validate_json(b"".join(pieces)).files
        except FileNotFoundError:
            raise MRNLabError(
                f"{folder} is not an export of MRN Lab: it has no {_MANIFEST}. `mrnlab export RUN DIR` "
                "makes one."
            ) from None
        except ValidationError as error:
            raise self.refused(f"{_MANIFEST} is not one of an export ({first_problem(error)})") from error
        for name, listed in self.files.items():
            self._look_at(name, listed.size)
        # Those that the list does not name would never be read; whoever put them there meant no good.
        for path in folder.rglob("*"):
            if path.name.lower().endswith((".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt")):
                raise self.refused(f"it holds {path.name}, which may be a pickle, and no export does")
        self.size = sum(listed.size for listed in self.files.values())

    def refused(self, why: str) -> MRNLabError:
        """Why nothing of the folder is taken in."""
        return MRNLabError(f"{self._folder} is not imported: {why}. Nothing was changed.")

    def read(self, name: str) -> bytes:
        """The bytes of a file, checked against the list."""
        if name not in self.files:
            raise self.refused(f"it has no {name}")
        pieces: list[bytes] = []
        self.read_through(name, pieces.append)
        return b"".join(pieces)

    def copy(self, name: str, target: Path) -> None:
        """Copies a file, and checks what was copied."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            self.read_through(name, file.write)

    def read_through(self, name: str, take: Callable[[bytes], object]) -> None:
        """Gives a file to `take` piece by piece, and checks its size and hash."""
        listed = self.files[name]
        if self._hashed(name, take, listed.size) != (listed.sha256, listed.size):
            raise self.refused(f"{name} is not as it was exported (its SHA-256 differs)")

    def _look_at(self, name: str, listed_size: int) -> None:
        """Whether a listed file lies inside, is a plain file of the size it should have, and no code."""
        path = PurePosixPath(name)
        odd = {"..", ".", ""} & set(name.split("/")) or set("\\:\0") & set(name)
        if path.is_absolute() or odd or len(name) > 500:
            raise self.refused(f"its list names '{name[:80]}', which leads out of the folder")
        ending = path.suffix.lower()
        if ending in _PICKLES:
            raise self.refused(f"{name} may be a pickle, which can run code when it is read")
        if ending not in _MOST:
            raise self.refused(f"{name} is a kind of file that no export holds")
        for part in (path, *path.parents[:-1]):
            try:
                mode = (self._folder / part).lstat().st_mode
            except OSError:
                raise self.refused(f"{name} is missing") from None
            if stat.S_ISLNK(mode):
                raise self.refused(f"{part} is a link, which may lead anywhere")
            if not (stat.S_ISREG(mode) if part == path else stat.S_ISDIR(mode)):
                raise self.refused(f"{part} is no plain file")
        size = (self._folder / path).lstat().st_size
        if size != listed_size:
            raise self.refused(f"{name} has {size:,} bytes, not the {listed_size:,} of the list")
        if size > _MOST[ending]:
            raise self.refused(f"{name} has {size / 1e6:,.0f} MB, more than such a file of an export has")

    def _hashed(self, name: str, take: Callable[[bytes], object], most: int) -> tuple[str, int]:
        """Gives a file to `take` piece by piece; its hash and size. No link is followed at its end."""
        digest, size = hashlib.sha256(), 0
        # Without waiting: a pipe in place of the file would be waited for until somebody writes into it.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            descriptor = os.open(self._folder / name, flags)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self.refused(f"{name} cannot be read ({error.strerror})") from error
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise self.refused(f"{name} is no plain file")
            while piece := file.read(_PIECE):
                size += len(piece)
                if size > most:
                    raise self.refused(f"{name} has more than {most:,} bytes")
                digest.update(piece)
                take(piece)
        return digest.hexdigest(), size
