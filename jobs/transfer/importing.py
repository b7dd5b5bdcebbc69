"""`mrnlab import`: an exported run as a run of this laboratory."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from core.errors import MRNLabError
from core.models.registry import ENCODERS, base_name
from core.paths import checkpoint_dir, given_path
from core.store import Store, normal_tag
from core.store.transfer import RunRecord
from jobs.transfer.exporting import CHECKPOINT
from jobs.transfer.given import GivenExport
from jobs.transfer.run_file import RunFile
from jobs.transfer.tables import TABLES, read_table, recorded

__all__ = ["Imported", "import_run"]

IMPORTED = "imported"
"""The tag of runs that came from elsewhere."""


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
    given = GivenExport(folder)
    file, record = _read(given)
    known = store.same_run(record.run)
    if known is not None and not again:
        return Imported(known.id, True)
    with _staged(given, file) as checkpoint:
        tags = {normal_tag(tag) for tag in (*record.run.tags, IMPORTED)}
        taken = dataclasses.replace(record, run=dataclasses.replace(record.run, tags=tuple(sorted(tags))))
        note = (
            f"Imported from {folder}, where {file.made_by} had exported it on {file.exported_at:%Y-%m-%d} as "
            f"run {file.run} of another store."
        )
        return Imported(_take_in(store, taken, note, checkpoint), False)


def _take_in(store: Store, record: RunRecord, note: str, checkpoint: Path) -> int:
    """The rows in one transaction, at whose end the checkpoint's folder is renamed in."""
    place: Path | None = None
    try:
        with store.transaction():
            run_id = store.take_in(record, note)
            place = checkpoint_dir(run_id)
            if place.exists():
                raise MRNLabError(
                    f"{place} is there already, left behind by a run that is gone; `mrnlab doctor --fix` "
                    "removes it."
                )
            checkpoint.rename(place)
            store.place_checkpoint(run_id, str(place))
    except BaseException:
        # The rows are taken back by the store; the folder goes back to where it is removed.
        if place is not None and not checkpoint.exists() and place.exists():
            place.rename(checkpoint)
        raise
    return run_id


def _read(given: GivenExport) -> tuple[RunFile, RunRecord]:
    """What the export says of its run, checked as a whole."""
    try:
        part = "run.json"
        file = RunFile.read(given.read(part))
        tables = {}
        for part in TABLES:
            tables[part] = read_table(part, given.read(part))
        part = "its tables"
        values = recorded(tables)
        part = "run.json"
        return file, file.record(values)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise given.refused(f"{part} is not as an export has it ({error})") from error


@contextmanager
def _staged(given: GivenExport, file: RunFile) -> Iterator[Path]:
    """The export's checkpoint, copied beside the laboratory's own and found able to tag."""
    checkpoints = checkpoint_dir(1).parent
    checkpoints.mkdir(parents=True, exist_ok=True)
    given.check_room(checkpoints)
    with tempfile.TemporaryDirectory(prefix="import.", dir=checkpoints) as aside:
        inside = f"{CHECKPOINT}/"
        staged = Path(aside) / CHECKPOINT
        for name in given.names():
            if name.startswith(inside):
                given.copy(name, staged / name.removeprefix(inside))
            else:
                given.verify(name)
        for config in staged.rglob("*.json"):
            _refuse_code(given, config)
        _check_model(given, staged, file)
        yield staged


def _refuse_code(given: GivenExport, path: Path) -> None:
    """An encoder may name Python code of its own to be loaded with it."""
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise given.refused(f"{path.name} of its checkpoint is not JSON") from error
    if isinstance(content, dict) and "auto_map" in content:
        raise given.refused(f"{path.name} of its checkpoint asks for Python code of its own (auto_map)")


def _check_model(given: GivenExport, checkpoint: Path, file: RunFile) -> None:
    """Raises MRNLabError where the checkpoint cannot be loaded, or is another run's."""
    from core.models.checkpoint import load

    if not (checkpoint / "weights.safetensors").is_file():
        raise given.refused("it has no checkpoint")
    try:
        own = base_name(str(json.loads((checkpoint / "run.json").read_bytes())["config"]["encoder"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise given.refused("its checkpoint has no run.json of ours") from error
    spec = ENCODERS.get(own)
    if not (checkpoint / "encoder").is_dir() and (spec is None or not spec.source.startswith("package:")):
        # Every export carries it; its name could lead to any folder of this machine, or to the Hub.
        raise given.refused(f"its checkpoint lacks the encoder {own}")
    try:
        tagger = load(checkpoint)
    except Exception as error:  # whatever makes the model of a stranger fail
        raise given.refused(f"its checkpoint cannot be loaded ({str(error).rstrip('.')})") from error
    of_facts = {task["name"]: list(task["labels"]) for task in file.facts.get("tasks", ())}
    if {task: list(labels) for task, labels in tagger.labels.items()} != of_facts:
        raise given.refused("its checkpoint has other tasks or labels than its run")
