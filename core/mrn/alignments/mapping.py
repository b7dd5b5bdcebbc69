"""Many-to-many correspondence of labels: A_t[general, label] is a weight from the researcher's CSV file.

    task,label,general,weight
    chunk,B-NP,NP,0.5
    chunk,I-NP,NP,0.5
    ner,B-PER,NP,1

The weight may be left away and is then 1. A general row made of several labels of a task is their weighted
sum, so that W stays linear in the heads; weights 1/n make it the mean of n labels. A label that the file does
not name keeps a row of its own, called `task:label`; a file that writes this name as a general label joins
other labels to it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np

from core.corpora.readers.lines import read_bytes
from core.errors import ConfigError, CorpusError
from core.mrn.alignments.base import Alignment, LabelCounts
from core.paths import upload_dir, written_whole
from core.plain_text import spreadsheet_cell, unguarded_cell
from core.wording import first_of, plural

_COLUMNS = ("task", "label", "general", "weight")
_NEEDED = _COLUMNS[:3]
_NAME_LENGTH = 60
# Outside these bounds a weight squared, as a penalty has it, leaves the range of 32-bit floats.
_LEAST, _MOST = 1e-6, 1e6
MOST_BYTES = 5_000_000
"""The most that a mapping may hold: a hundred thousand rows."""


@dataclass(frozen=True)
class Correspondence:
    """One row: the label of the task goes to the general label with this weight. The header is row 1."""

    row: int
    task: str
    label: str
    general: str
    weight: float


@dataclass(frozen=True)
class MappingFile:
    """The name of a file, its content, and the correspondences in it."""

    name: str
    content: bytes
    rows: tuple[Correspondence, ...]


def read_mapping(path: str | Path) -> MappingFile:
    """The mapping in this file. Raises ConfigError in one sentence: file, row, and the remedy."""
    path = Path(os.path.expanduser(path))
    try:
        return parse_mapping(read_bytes(path, MOST_BYTES), path.name)
    except CorpusError as error:
        raise ConfigError("alignment", str(error)) from error


def parse_mapping(content: bytes, name: str) -> MappingFile:
    """The mapping in that content of a file called `name`. Raises ConfigError as `read_mapping` does."""
    rows = tuple(_correspondences(_cells(content, name), name))
    if not rows:
        raise ConfigError(
            "alignment", f"{name} has no rows; write one for each label, such as chunk,B-NP,NP,1."
        )
    first: dict[tuple[str, str, str], int] = {}
    for row in rows:
        same = first.setdefault((row.task, row.label, row.general), row.row)
        if same != row.row:
            again = f"says again, as row {same} does, that {row.label} of {row.task} goes to {row.general}"
            raise _wrong(name, row.row, f"{again}; keep one of them")
    return MappingFile(name, content, rows)


def template(tasks: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A file to begin from, given tasks and their labels: every label goes to a general label of its name."""
    text = io.StringIO()
    rows = [(task, label, label, 1) for task, labels in tasks for label in labels]
    csv.writer(text).writerows([_COLUMNS, *(map(spreadsheet_cell, row) for row in rows)])
    return text.getvalue()


def _cells(content: bytes, name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, with their numbers as a spreadsheet counts them."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        advice = "save the file as UTF-8 (in a spreadsheet: CSV UTF-8)"
        raise _wrong(name, row, f"is not UTF-8; {advice}") from None
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    number = 0
    try:
        for number, raw in enumerate(rows, start=1):
            cells = [unguarded_cell(cell.strip()) for cell in raw]
            if any(cells):
                yield number, cells
    except csv.Error as error:
        advice = 'write a cell that holds a comma or a quotation mark in quotation marks, such as "," or """"'
        raise _wrong(name, number + 1, f"is not proper CSV ({error}); {advice}") from None


def _correspondences(rows: Iterator[tuple[int, list[str]]], name: str) -> Iterator[Correspondence]:
    number, header = next(rows, (0, []))
    if not header:
        raise ConfigError(
            "alignment", f"{name} is empty; its first row must be {','.join(_COLUMNS)}, its others labels."
        )
    columns = [cell.lower() for cell in header]
    missing = [column for column in _NEEDED if column not in columns]
    others = list((Counter(columns) - Counter(_COLUMNS)).elements())
    if missing or others:
        wrong = f"has no column {missing[0]}" if missing else f"has a column '{others[0]}' too many"
        right = f"the first row must be {','.join(_COLUMNS)}, with commas between, each once"
        raise _wrong(name, number, f"{wrong}; {right}")
    for number, cells in rows:
        if len(cells) > len(columns):
            advice = 'write a cell that holds a comma in quotation marks, such as ","'
            raise _wrong(name, number, f"has {len(cells)} cells and the first row {len(columns)}; {advice}")
        values = dict(zip(columns, cells, strict=False))
        for needed in _NEEDED:
            if not values.get(needed):
                raise _wrong(name, number, f"has no {needed}; fill the cell or delete the row")
        weight = _weight(values.get("weight") or "1", name, number)
        yield Correspondence(number, values["task"], values["label"], values["general"], weight)


def _weight(text: str, name: str, row: int) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not _LEAST <= weight <= _MOST:  # so NaN is refused too
        raise _wrong(
            name,
            row,
            f"has the weight '{text}'; a weight is a number above 0 ({_LEAST:g} to {_MOST:,.0f}) with a "
            "point before its decimals; to leave a label out of a general label, delete the row",
        )
    return weight


def _wrong(name: str, row: int, what: str) -> ConfigError:
    return ConfigError("alignment", f"{name}, row {row}: {what}.")


@dataclass(frozen=True)
class FittedMapping:
    """A mapping over the tasks of a run.

    `weights` are those of A_t that are not zero, by task, label and general label. `owners` are the tasks of
    each of the C general labels: those of the file, then the rows that labels keep. `notes` are sentences.
    """

    weights: Mapping[tuple[str, str, str], float]
    owners: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


def align_mapping(counts: LabelCounts, reason: str, file: str) -> Alignment:
    """The general labels of the file. Raises ConfigError where it cannot be read or does not fit."""
    mapping = read_mapping(file)
    fitted = fit(mapping, counts.names, counts.labels)
    heads = [
        (task, label) for task, labels in zip(counts.names, counts.labels, strict=True) for label in labels
    ]
    row = {general: index for index, general in enumerate(fitted.owners)}
    column = {head: index for index, head in enumerate(heads)}
    matrix = np.zeros((len(counts.names), len(row), len(column)))
    for (task, label, general), weight in fitted.weights.items():
        matrix[counts.names.index(task), row[general], column[task, label]] = weight
    return Alignment(
        name="mapping",
        reason=f"{reason}, as {mapping.name} has it",
        task_names=counts.names,
        label_names=tuple(fitted.owners),
        label_owners=tuple(fitted.owners.values()),
        matrix=matrix,
        notes=fitted.notes,
    )


def fit(mapping: MappingFile, names: Sequence[str], labels: Sequence[Sequence[str]]) -> FittedMapping:
    """The mapping over tasks of these names and labels.

    Rows of other tasks are left out and noted, and so are rows of labels that training does not show: a small
    fraction of the sentences may lack some. Raises ConfigError where no row is left.
    """
    labels_of = dict(zip(names, labels, strict=True))
    weights = {
        (row.task, row.label, row.general): row.weight
        for row in mapping.rows
        if row.label in labels_of.get(row.task, ())
    }
    if not weights:
        tasks = "; ".join(f"{task} has {first_of(each)}" for task, each in labels_of.items())
        raise ConfigError(
            "alignment",
            f"{mapping.name}: no row, from row {mapping.rows[0].row} on, names a task and a label of this "
            f"run; change the columns task and label ({tasks}).",
        )
    named = {(task, label) for task, label, _ in weights}
    alone = [
        (task, label) for task, each in labels_of.items() for label in each if (task, label) not in named
    ]
    weights |= {(task, label, f"{task}:{label}"): 1.0 for task, label in alone}
    pairs = {(task, general) for task, _, general in weights}
    owners = {general: tuple(task for task in names if (task, general) in pairs) for _, _, general in weights}
    notes = []
    if others := dict.fromkeys(row.task for row in mapping.rows if row.task not in labels_of):
        notes.append(
            f"{mapping.name} also has rows of {first_of(list(others))}, not learned in this run; they are "
            "left out."
        )
    for task, task_labels in labels_of.items():
        rows = [row for row in mapping.rows if row.task == task and row.label not in task_labels]
        if rows:
            absent = first_of([f"{row.label} (row {row.row})" for row in rows])
            notes.append(
                f"{mapping.name} has rows of {task} labels that these training sentences do not have: "
                f"{absent}; they are left out. Labels of {task} there are {first_of(task_labels)}."
            )
    if alone:
        kept_labels = first_of([f"{task}:{label}" for task, label in alone])
        notes.append(
            f"{mapping.name} does not name {plural(len(alone), 'label')} of this run, which keep general "
            f"rows of their own: {kept_labels}."
        )
    if all(len(tasks) == 1 for tasks in owners.values()):
        notes.append(
            f"In {mapping.name} no two tasks of this run have a general label in common, so no relation "
            "between tasks can be learned."
        )
    return FittedMapping(weights, owners, tuple(notes))


def keep_mapping(mapping: MappingFile) -> Path:
    """Keep a copy in the laboratory under a hash of its content, and return its path.

    A run names the kept copy, which stays when the researcher's own file changes. The same content under the
    same name is kept once.
    """
    digest = hashlib.sha256(mapping.content).hexdigest()[:12]
    stem = PurePath(mapping.name).stem.removesuffix(f"-{digest}")
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-")[:_NAME_LENGTH] or "mapping"
    folder = upload_dir() / "mappings"
    folder.mkdir(exist_ok=True)
    kept = folder / f"{slug}-{digest}.csv"
    if not kept.exists():
        with written_whole(kept, len(mapping.content), f"The mapping {mapping.name}") as beside:
            beside.write_bytes(mapping.content)
    return kept
