"""`mrnlab export`: a finished run as a folder that stands alone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save_file

from core.checkpoints.sealed import Damaged, opened, seal
from core.errors import MRNLabError
from core.models.registry import ENCODERS, base_name
from core.paths import given_path, own_checkpoint
from core.store import RunState, Store
from core.store.snapshot_codec import decode
from core.store.transfer import RunRecord
from jobs.transfer.card import card
from jobs.transfer.run_file import FORMAT, RunFile
from jobs.transfer.tables import write_tables

if TYPE_CHECKING:
    from core.models.saved_tagger import SavedTagger

__all__ = ["Exported", "export_run"]

CHECKPOINT = "checkpoint"
"""The folder of an export that holds the run's own checkpoint."""

_TAKEN = ("checkpoint", "readme.md", "manifest.json", "run.json")


@dataclass(frozen=True)
class Exported:
    """What was written: where, how much, the folder of each task, or a sentence on why there are none."""

    folder: Path
    size: int
    folders: dict[str, str]
    no_folders_because: str | None


def export_run(
    store: Store, run_id: int, folder: Path, tasks: Sequence[str] | None = None, *, force: bool = False
) -> Exported:
    """Writes a run that succeeded to `folder`, beside first and then renamed: whole or not there.

    `tasks`: those that get a Transformers folder (all of the run by default). `force`: an earlier export that
    is there is replaced. Raises MRNLabError, and leaves what is there as it is.
    """
    folder = given_path(folder).resolve()
    _check_place(folder, force)
    record = store.record(run_id)
    checkpoint = _checkpoint_of(record)

    # Imported here: it loads torch, and a wrong number should be told at once.
    from core.models.checkpoint import load
    from core.models.task_folders import save_encoder, save_task_folders

    tagger = load(checkpoint)
    known = list(tagger.labels)
    if unknown := [task for task in tasks or () if task not in known]:
        raise MRNLabError(f"Run {run_id} has no task '{unknown[0]}'; it has {', '.join(known)}.")
    folders = _folder_names([task for task in known if tasks is None or task in tasks])
    carries_encoder = not (checkpoint / "encoder").is_dir() and not _comes_with_program(record)
    copies = len(folders) + carries_encoder
    because: str | None = None

    def write(beside: Path) -> None:
        nonlocal because
        facts = {"run": run_id, "configuration_id": record.run.configuration_id}
        places = {task: beside / name for task, name in folders.items()}
        because = save_task_folders(tagger, places, facts)
        own = beside / CHECKPOINT
        about = _about(checkpoint)

        def write_checkpoint(target: Path) -> None:
            shutil.copytree(
                checkpoint, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("manifest.json")
            )
            if carries_encoder:
                save_encoder(tagger, target / "encoder")

        seal(own, about, 0, write_checkpoint)
        write_tables(record, beside)
        _write_relations(record, beside / "relations.safetensors")
        file = RunFile.of(record, datetime.now(UTC), {} if because else folders, because)
        (beside / "run.json").write_text(file.model_dump_json(indent=1), encoding="utf-8")
        (beside / "README.md").write_text(card(record, file, tagger.schemes), encoding="utf-8")

    try:
        sealed = seal(folder, {"export": FORMAT, "run": run_id}, _needs(checkpoint, tagger, copies), write)
    except OSError as error:
        raise MRNLabError(f"{folder} cannot be written: {error.strerror}.") from error
    return Exported(folder, sealed.size, {} if because else folders, because)


def _check_place(folder: Path, force: bool) -> None:
    """Raises MRNLabError where something is there that must not go."""
    if folder.exists() and not folder.is_dir():
        raise MRNLabError(f"{folder} is a file; name a folder to export to.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not force:
        raise MRNLabError(f"{folder} is not empty; name another folder, or replace an export with --force.")
    try:
        if "export" in opened(folder).about:
            return
    except Damaged:
        pass
    raise MRNLabError(
        f"{folder} holds something that is not an export of MRN Lab, which --force does not replace; name "
        "another folder."
    )


def _checkpoint_of(record: RunRecord) -> Path:
    run = record.run
    if run.state is not RunState.SUCCEEDED:
        raise MRNLabError(f"Run {run.id} is {run.state}; only a run that has succeeded can be exported.")
    if run.config_problem is not None:
        raise MRNLabError(f"Run {run.id} cannot be exported: {run.config_problem}")
    checkpoint = None if run.checkpoint is None else own_checkpoint(run.checkpoint)
    if checkpoint is None or not checkpoint.is_dir():
        raise MRNLabError(
            f"The checkpoint of run {run.id} is not there any more, so its model cannot be exported."
        )
    return checkpoint


def _about(checkpoint: Path) -> dict[str, object]:
    """What the writer of the checkpoint said of it; nothing where an earlier version wrote it."""
    try:
        return dict(opened(checkpoint).about)
    except Damaged:
        return {}


def _comes_with_program(record: RunRecord) -> bool:
    """Whether the encoder's weights are part of every installation, so that a frozen one need not travel."""
    spec = ENCODERS.get(base_name(record.run.config.encoder))
    return spec is not None and spec.source.startswith("package:")


def _folder_names(tasks: Iterable[str]) -> dict[str, str]:
    """A folder name for each task that every file system takes, none twice."""
    names: dict[str, str] = {}
    taken = set(_TAKEN)
    for task in tasks:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip(".-")[:100] or "task"
        name, again = plain, 2
        while name.lower() in taken:
            name, again = f"{plain}-{again}", again + 1
        taken.add(name.lower())
        names[task] = name
    return names


def _needs(checkpoint: Path, tagger: SavedTagger, copies: int) -> int:
    """About how many bytes the export takes: the checkpoint, and the encoder so many times more."""
    size = sum(path.stat().st_size for path in checkpoint.rglob("*") if path.is_file())
    return size + copies * sum(weight.nbytes for weight in tagger.model.parameters())


def _write_relations(record: RunRecord, path: Path) -> None:
    """The covariances of the last snapshot, as arrays; no file for a run that learns none."""
    if not record.snapshots:
        return
    last = record.snapshots[-1]
    relations = decode(vars(last))
    arrays = {
        "task": relations.task,
        "label": relations.label,
        "feature_factor": relations.feature_factor,
        "feature_diagonal": np.asarray([relations.feature_diagonal]),
    }
    told = {
        "step": str(last.step),
        "tasks": json.dumps([task["name"] for task in record.run.facts.get("tasks", ())]),
        "labels": json.dumps(list(record.run.facts.get("label_names", ()))),
        "feature": "feature_diagonal · I + feature_factor · feature_factorᵀ",
    }
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, told)
