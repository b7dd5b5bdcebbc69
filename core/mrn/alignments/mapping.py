"""Labels correspond as the researcher says, many to many: A_t[general, label] is a weight from a CSV file.

A general row made of several labels of a task is their weighted sum, so that W stays linear in the heads;
weights 1/n make it the mean of n labels. A label that the file does not name keeps a row of its own, called
`task:label`; a file that writes this name as a general label joins other labels to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.corpora.wording import counted, listed
from core.errors import ConfigError
from core.mrn.alignments.base import Alignment, LabelCounts, stack_blocks
from core.mrn.alignments.mapping_file import MappingFile, read_mapping

__all__ = ["FittedMapping", "align", "fit"]


@dataclass(frozen=True)
class FittedMapping:
    """A mapping over the tasks of a run.

    `weights` are those of A_t that are not zero, by task, label and general label. `owners` gives the tasks
    of each of the C general labels: those of the file in its order, then the rows that labels keep for
    themselves. `notes` say what was left out and what was added.
    """

    weights: Mapping[tuple[str, str, str], float]
    owners: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]


def align(counts: LabelCounts, reason: str, file: str) -> Alignment:
    """The general labels of the file. Raises ConfigError where it cannot be read or does not fit."""
    mapping = read_mapping(file)
    fitted = fit(mapping, counts.names, counts.labels)
    row = {general: index for index, general in enumerate(fitted.owners)}
    blocks = []
    for task, own in zip(counts.names, counts.labels, strict=True):
        block = np.zeros((len(row), len(own)))
        for (of, label, general), weight in fitted.weights.items():
            if of == task:
                block[row[general], own.index(label)] = weight
        blocks.append(block)
    return Alignment(
        name="mapping",
        reason=f"{reason}, as {mapping.name} has it",
        task_names=counts.names,
        label_names=tuple(fitted.owners),
        label_owners=tuple(fitted.owners.values()),
        matrix=stack_blocks(blocks),
        notes=fitted.notes,
    )


def fit(mapping: MappingFile, names: Sequence[str], labels: Sequence[Sequence[str]]) -> FittedMapping:
    """The mapping over tasks of these names and labels.

    Rows of other tasks are left out and told, and so are rows of labels that training does not show: a small
    share of the sentences may lack some. Raises ConfigError where no row is left.
    """
    known = dict(zip(names, labels, strict=True))
    weights = {
        (one.task, one.label, one.general): one.weight
        for one in mapping.rows
        if one.label in known.get(one.task, ())
    }
    if not weights:
        tasks = "; ".join(f"{task} has {listed(own)}" for task, own in known.items())
        raise ConfigError(
            "alignment",
            f"{mapping.name}: no row, from row {mapping.rows[0].row} on, names a task and a label of this "
            f"run; change the columns task and label ({tasks}).",
        )
    named = {(task, label) for task, label, _ in weights}
    alone = [(task, label) for task, own in known.items() for label in own if (task, label) not in named]
    weights |= {(task, label, f"{task}:{label}"): 1.0 for task, label in alone}
    there = {(task, general) for task, _, general in weights}
    owners = {general: tuple(task for task in names if (task, general) in there) for _, _, general in weights}
    notes = [*_left_out(mapping, known)]
    if alone:
        labels_told = listed([f"{task}:{label}" for task, label in alone])
        notes.append(
            f"{mapping.name} does not name {counted(len(alone), 'label')} of this run, which keep general "
            f"rows of their own: {labels_told}."
        )
    if all(len(tasks) == 1 for tasks in owners.values()):
        notes.append(
            f"In {mapping.name} no two tasks of this run have a general label in common, so no relation "
            "between tasks can be learned."
        )
    return FittedMapping(weights, owners, tuple(notes))


def _left_out(mapping: MappingFile, known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A sentence on tasks that the run does not have, and one for each task on labels it does not have."""
    others = dict.fromkeys(one.task for one in mapping.rows if one.task not in known)
    if others:
        yield (
            f"{mapping.name} also has rows of {listed(list(others))}, not learned in this run; they are left "
            "out."
        )
    for task, own in known.items():
        absent = [
            f"{one.label} (row {one.row})"
            for one in mapping.rows
            if one.task == task and one.label not in own
        ]
        if absent:
            yield (
                f"{mapping.name} has rows of {task} labels that these training sentences do not have: "
                f"{listed(absent)}; they are left out. Labels of {task} there are {listed(own)}."
            )
