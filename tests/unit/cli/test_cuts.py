"""Cuts: a mapping without a link between two tasks or labels, its runs, and what they lose."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.config import RunConfig
from core.errors import ConfigError
from core.events import SplitResult, TaskFacts
from core.mrn.alignments import Alignment, LabelCounts, align
from core.mrn.alignments.cut import cut_alignment, cut_of, parse_cut
from core.mrn.alignments.mapping import MappingFile, align_mapping
from core.results.cuts import cut_losses
from core.results.stored import stored_results
from core.tasks import score_task
from tests.claims.cuts import check_cuts
from tests.making import finished, run_facts
from tests.unit.cli.conftest import Laboratory

WORDS = np.array([[0, 0], [1, 1], [1, 1], [0, 1], [2, 0], [2, 2]])
COUNTS = LabelCounts.from_words(["a", "b"], [("B-X", "I-X", "O"), ("B-X", "B-Y", "O")], WORDS)


def cut(name: str, text: str, counts: LabelCounts = COUNTS) -> tuple[MappingFile, tuple[str, ...]]:
    """The mapping of an alignment without that link, with the notes of the cut."""
    made = cut_alignment(align(name, counts), counts, *parse_cut(text))
    return made.mapping, made.notes


def read(mapping: MappingFile, counts: LabelCounts, folder: Path) -> Alignment:
    """The alignment of that mapping, as a run reads it."""
    file = folder / mapping.name
    file.write_bytes(mapping.content)
    return align_mapping(counts, "cut", str(file))


@pytest.mark.parametrize("name", ["exact", "cooccurrence"])
def test_tasks_that_are_cut_share_no_row(name: str, tmp_path: Path) -> None:
    assert align(name, COUNTS).shares_rows.all()
    mapping, _ = cut(name, "a,b")
    again = read(mapping, COUNTS, tmp_path)
    assert again.shares_rows.tolist() == [[True, False], [False, True]]
    assert again.impossible == ("task", "label")
    assert (again.matrix != 0).any(axis=(0, 1)).all()  # every label keeps a row


def test_two_labels_are_parted_and_the_others_stay(tmp_path: Path) -> None:
    mapping, notes = cut("exact", "a:X,b:X")
    again = read(mapping, COUNTS, tmp_path)
    rows = dict(zip(again.label_names, again.label_owners, strict=True))
    assert rows == {"B-X": ("a",), "I-X": ("a",), "O": ("a", "b"), "B-Y": ("b",), "b:B-X": ("b",)}
    assert "Other labels of the two tasks still share rows" in notes[-1]
    before = align("cooccurrence", COUNTS)
    mapping, _ = cut("cooccurrence", "a:B-X,b:B-Y")
    after = read(mapping, COUNTS, tmp_path)
    place = {row: index for index, row in enumerate(before.label_names)}
    order = [after.label_names.index(row) for row in before.label_names]
    changed = np.argwhere(~np.isclose(before.matrix, after.matrix[:, order])).tolist()
    assert changed == [[0, place["b:B-Y"], place["a:B-X"]], [1, place["a:B-X"], place["b:B-Y"]]]


def test_a_third_task_that_shares_the_row_is_named() -> None:
    words = np.array([[0, 0, 0], [1, 1, 1]])
    counts = LabelCounts.from_words(["a", "b", "c"], [("X", "Y")] * 3, words)
    _, notes = cut("exact", "a,b", counts)
    assert notes == ("b leaves 2 rows that it shares with c too.",)


def test_what_cannot_be_cut_is_a_sentence() -> None:
    for name, text, words in (
        ("disjoint", "a,b", "under the alignment 'disjoint' a and b share no row"),
        ("exact", "a:X,b:Y", "share no row, so there is no link of these two to cut. To part all of a and b"),
        ("exact", "a:Z,b:X", "a has no label 'Z'; name B-X, I-X"),
        ("exact", "c,b", "relates no task 'c'; name a, b"),
    ):
        with pytest.raises(ConfigError, match="cut: ") as raised:
            cut(name, text)
        assert words in str(raised.value)
    for text in ("a", "a,b,c", "a:X,b", "a:X,a:Y", ","):
        with pytest.raises(ConfigError, match="cut: "):
            parse_cut(text)


LABELS = [["N", "V"], ["V", "N"]] * 10


def trained(lab: Laboratory, config: RunConfig, wrong: int) -> int:
    """A finished run that predicts so many of the labels of each task wrongly."""
    facts = tuple(TaskFacts(task, "plain", ("N", "V"), "accuracy", 9, 9) for task in config.tasks)
    guess = [["V", "V"] if row < wrong else labels for row, labels in enumerate(LABELS)]
    scores = tuple(score_task(task, "plain", LABELS, guess) for task in config.tasks)
    of_run = run_facts(tasks=facts, alignment="exact", alignment_reason="named")
    return finished(lab.store, config, of_run, SplitResult("test", 1, scores, {}, {}))


def test_the_verb_writes_the_mapping_and_says_what_a_cut_costs(lab: Laboratory, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        block = "".join(f"w {a} {a}\nx {b} {b}\n\n" for a, b in LABELS)
        (folder / f"{split}.conll").write_text(block)
    config = RunConfig.build(
        corpus=str(folder), columns="tokens,a,b", tasks="a,b", paradigm="mrn", alignment="exact"
    )
    seeds = range(1, 7)
    runs = [trained(lab, config.with_(seed=seed), seed % 2) for seed in seeds]
    document = json.loads(lab.answer("relations", str(runs[0]), "--cut", "a,b", "--json"))
    assert document["seeds"] == list(seeds)
    assert document["losses"] == []
    assert "--cut a,b --launch" in document["command"]
    cut_config = config.with_(alignment=document["alignment"])
    assert cut_of(str(cut_config.alignment)) == document["cut"] == "a–b"
    for seed in seeds:
        trained(lab, cut_config.with_(seed=seed), 6 + seed % 2 + (seed == 1))
    said = lab.answer("relations", str(runs[0]), "--cut", "a,b")
    assert "Cutting a–b costs a 1" in said
    (losses,) = [
        cut_losses(table) for table in stored_results(lab.store, None).method_tables("test").values()
    ]
    (loss,) = losses
    assert loss.sentence in said
    # Rows are named by what was cut, not by the file of the mapping.
    assert [row.name for row in (loss.row, loss.base)] == ["MRN λ=0.001 · without a–b", "MRN λ=0.001 · exact"]
    assert "share no row" in lab.refusal("relations", str(runs[0]), "--cut", "a:N,b:V")
    assert "add --cut" in lab.refusal("relations", str(runs[0]), "--launch")
    assert "of one run" in lab.refusal("relations", "1", "2", "--cut", "a,b")


def test_the_record_of_cuts_is_as_the_document_has_it() -> None:
    assert check_cuts().differences == ()
