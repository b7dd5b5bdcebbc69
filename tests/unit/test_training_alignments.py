"""Training on two corpora that share one task: what can be related is, what cannot stays at zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from core.checkpoints import Checkpoint
from core.config import RunConfig
from core.corpora import prepare
from core.mrn.relations import Relations, task_groups
from core.records import Event, RunFacts, Snapshot
from core.training.trainer import train

# The first corpus annotates parts of speech and entities, the second parts of speech only.
CORPUS = "joined:demo+demo-pos-b?train=40&dev=10&test=10"
TASKS = ("pos@demo", "ner", "pos@demo-pos-b")


def trained(encoder: str, alignment: str, folder: Path) -> tuple[RunFacts, Relations]:
    config = RunConfig.build(
        corpus=CORPUS, tasks=TASKS, encoder=encoder, alignment=alignment, epochs=2, max_length=32,
        update_every=2, device="cpu", precision="fp32",
    )  # fmt: skip
    events: list[Event] = []
    train(config, prepare(config), sink=events.append, checkpoint=Checkpoint(folder / "checkpoint"))
    (facts,) = [event for event in events if isinstance(event, RunFacts)]
    last = [event for event in events if isinstance(event, Snapshot)][-1]
    return facts, last.relations


def test_exact_relates_the_common_task_and_leaves_the_other_apart(encoder: str, tmp_path: Path) -> None:
    facts, relations = trained(encoder, "exact", tmp_path)
    assert facts.impossible == ()
    assert facts.cooccurrence == ()
    groups = task_groups({"tasks": [{"name": name} for name in TASKS], "meet": facts.meet})
    assert groups == (("pos@demo", "pos@demo-pos-b"), ("ner",))
    task = relations.correlation("task")
    assert task[0, 1] == task[1, 2] == 0
    assert abs(task[0, 2]) > 1e-3
    ner = np.array(["ner" in owners for owners in facts.label_owners])
    label = relations.correlation("label")
    assert (label[ner][:, ~ner] == 0).all()
    assert (np.abs(label[~ner][:, ~ner]) > 0).mean() > 0.5


def test_a_mapping_relates_what_it_joins_and_says_what_it_left(encoder: str, tmp_path: Path) -> None:
    file = tmp_path / "names.csv"
    file.write_text(
        "task,label,general\npos@demo,NNP,name\nner,B-PER,name\nner,B-LOC,name\nner,B-NOWHERE,name\n"
    )
    facts, relations = trained(encoder, f"mapping:{file}", tmp_path)
    assert (facts.alignment, facts.cooccurrence) == ("mapping", ())
    assert facts.label_names[0] == "name"
    assert facts.label_owners[0] == ("pos@demo", "ner")
    assert any("B-NOWHERE (row 5)" in note for note in facts.notes)
    assert any("keep general rows of their own" in note for note in facts.notes)
    task = relations.correlation("task")
    assert abs(task[0, 1]) > 1e-4
    assert task[0, 2] == task[1, 2] == 0
