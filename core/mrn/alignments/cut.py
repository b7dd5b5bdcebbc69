"""Cutting a link between two tasks, or labels of two tasks: a mapping in which they share no row.

Two labels are linked where both have weights in a row of the general label space. A cut takes the weights of
one side out of each such row: of the side that does not own the row alone, else of the second one named. A
label without any row left keeps one of its own, as in every mapping.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from core.errors import ConfigError
from core.mrn.alignments.base import Alignment, LabelCounts
from core.mrn.alignments.mapping import _COLUMNS, _LEAST, MappingFile, parse_mapping
from core.plain_text import shortened, spreadsheet_cell
from core.wording import all_of, first_of, plural

_FILE = re.compile(r"cut-(?P<first>.+)-from-(?P<second>.+)-[0-9a-f]{12}")
"""The name of a kept mapping with a cut, without its extension."""


@dataclass(frozen=True)
class End:
    """One side of a cut: a task, and a label of it or a type of spans; without one all its labels."""

    task: str
    label: str = ""

    def __str__(self) -> str:
        return f"{self.task}:{self.label}" if self.label else self.task

    def places(self, counts: LabelCounts) -> list[int]:
        """Its labels among the stacked rows. Raises ConfigError for a task or label that the run has not."""
        if self.task not in counts.names:
            raise ConfigError(
                "cut",
                f"cut: the prior relates no task '{shortened(self.task)}'; name {first_of(counts.names)}.",
            )
        task = counts.names.index(self.task)
        labels, first = counts.labels[task], counts.slices[task].start
        named = [
            first + place
            for place, label in enumerate(labels)
            if not self.label or self.label in (label, label.partition("-")[2])
        ]
        if not named:
            raise ConfigError(
                "cut", f"cut: {self.task} has no label '{shortened(self.label)}'; name {first_of(labels)}."
            )
        return named


def parse_cut(text: str) -> tuple[End, End]:
    """Reads `chunk:NP,ner:PER` or `chunk,ner`. Raises ConfigError."""
    ends = [End(*(part.strip() for part in side.partition(":")[::2])) for side in text.split(",")]
    if len(ends) != 2 or not all(end.task for end in ends) or bool(ends[0].label) != bool(ends[1].label):
        raise ConfigError(
            "cut",
            f"cut: '{shortened(text)}' names no two labels or tasks; write chunk:NP,ner:PER or chunk,ner.",
        )
    if ends[0].task == ends[1].task:
        raise ConfigError("cut", f"cut: both are of {ends[0].task}; name labels of two tasks.")
    return ends[0], ends[1]


@dataclass(frozen=True)
class Cut:
    """A mapping without a link, and sentences on what else the cut parts, or leaves."""

    ends: tuple[End, End]
    mapping: MappingFile
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """`chunk:NP–ner:PER`."""
        return "–".join(map(str, self.ends))


def cut_alignment(alignment: Alignment, counts: LabelCounts, first: End, second: End) -> Cut:
    """The alignment of these tasks as a mapping in which both ends share no row.

    Raises ConfigError where they share none, so that there is nothing to cut.
    """
    sides = [end.places(counts) for end in (first, second)]
    weights = alignment.matrix.sum(axis=0)  # (C, r): a stacked row is of one task
    has = [(weights[:, places] != 0).any(axis=1) for places in sides]
    shared = np.flatnonzero(has[0] & has[1])
    if not len(shared):
        other = f" To part all of {first.task} and {second.task} write {first.task},{second.task}."
        raise ConfigError(
            "cut",
            f"cut: under the alignment '{alignment.name}' {first} and {second} share no row, so there is no "
            f"link of these two to cut.{other * bool(first.label)}",
        )
    others: dict[str, None] = {}
    for row in shared.tolist():
        owners = alignment.label_owners[row]
        leaving = (first, second)[owners != (second.task,)]
        places = sides[leaving is second]
        weights[row, places] = 0
        if len(owners) > 1:
            others |= dict.fromkeys(task for task in owners if task not in (first.task, second.task))
    notes = []
    if others:
        names = all_of(list(others))
        notes.append(f"{second} leaves {plural(len(shared), 'row')} that it shares with {names} too.")
    if first.label:
        notes.append("Other labels of the two tasks still share rows, through which both can be related.")
    return Cut((first, second), _mapping(alignment, counts, weights, first, second), tuple(notes))


def _mapping(
    alignment: Alignment, counts: LabelCounts, weights: np.ndarray, first: End, second: End
) -> MappingFile:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    heads = [
        (task, label) for task, labels in zip(counts.names, counts.labels, strict=True) for label in labels
    ]
    for place, (task, label) in enumerate(heads):
        for row in np.flatnonzero(np.abs(weights[:, place]) >= _LEAST).tolist():
            cells = (task, label, alignment.label_names[row])
            writer.writerow([*map(spreadsheet_cell, cells), repr(float(weights[row, place]))])
    return parse_mapping(text.getvalue().encode(), f"{cut_name(first, second)}.csv")


def cut_name(first: End, second: End) -> str:
    """The name of a cut in file names: `cut-chunk_NP-from-ner_PER`."""
    return f"cut-{str(first).replace(':', '_')}-from-{str(second).replace(':', '_')}"


def cut_of(alignment: str) -> str | None:
    """`chunk:NP–ner:PER` of an alignment `mapping:FILE` with a cut; None of others."""
    name, _, file = alignment.partition(":")
    match = _FILE.fullmatch(PurePath(file).stem) if name == "mapping" else None
    return None if match is None else f"{_side(match['first'])}–{_side(match['second'])}"


def _side(text: str) -> str:
    return ":".join(filter(None, text.partition("_")[::2]))
