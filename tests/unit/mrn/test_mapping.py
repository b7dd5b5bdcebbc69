"""The alignments by hand, how tasks overlap, mapping files and what is wrong with them, groups of tasks."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.overlaps import overlaps
from core.corpora.types import Overlap, Sentence
from core.errors import ConfigError
from core.mrn.alignments import LabelCounts, align, choose
from core.mrn.alignments.mapping import MappingFile, fit, keep_mapping, parse_mapping, read_mapping
from core.mrn.relations import Block, TaskRelations, impossible_blocks, task_groups
from core.tasks.kinds import TaskFacts
from core.training.setup import set_up
from tests.making import corpus_folder

TASKS = ("chunk", "ner")
LABELS = (("O", "B-NP", "I-NP"), ("O", "B-PER"))
ROWS = "task,label,general,weight\nchunk,B-NP,NP,0.5\nchunk,I-NP,NP,0.5\nner,B-PER,NP,\nner,B-PER,PER,2\n"


def mapping(text: str) -> MappingFile:
    return parse_mapping(text.encode(), "labels.csv")


def counts(*labels: tuple[str, ...]) -> LabelCounts:
    names = TASKS[: len(labels)]
    return LabelCounts.from_words(names, labels, np.empty((0, len(labels)), dtype=int))


@pytest.mark.parametrize(
    "text",
    [
        "task,label,general\nchunk,B-NP,NP\n",
        "\ufefftask,label,general\r\nchunk,B-NP,NP\r\n",
        "General,Label,Task\n NP , B-NP ,chunk",
        'task,label,general,weight\n\n"chunk","B-NP","NP"\n,,,\n',
    ],
)
def test_what_spreadsheets_write_is_read(text: str) -> None:
    (row,) = mapping(text).rows
    assert (row.task, row.label, row.general, row.weight) == ("chunk", "B-NP", "NP", 1.0)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "labels.csv is empty; its first row must be task,label,general,weight"),
        (b"task,label,general\n", "labels.csv has no rows"),
        (b"task,label\nner,O\n", "labels.csv, row 1: has no column general"),
        (b"task;label;general\nner;O;O\n", "row 1: has no column task; .* with commas between"),
        (b"task,label,general,wieght\nner,O,O,1\n", "row 1: has a column 'wieght' too many"),
        (b"task,label,general,task\nner,O,O,ner\n", "row 1: has a column 'task' too many"),
        (b"task,label,general\nner,,,\n", "row 2: has 4 cells and the first row 3; .*quotation marks"),
        (b"task,label,general\nner,O,O\n\nner,B-PER\n", "row 4: has no general; fill the cell"),
        (b"task,label,general\nner,,O\n", "row 2: has no label"),
        (b"task,label,general\n,O,O\n", "row 2: has no task"),
        (b"task,label,general,weight\nner,O,O,much\n", "row 2: has the weight 'much'; a weight is a number"),
        (b"task,label,general,weight\nner,O,O,0\n", "row 2: has the weight '0'.*delete the row"),
        (b"task,label,general,weight\nner,O,O,nan\n", "row 2: has the weight 'nan'"),
        (b"task,label,general,weight\nner,O,O,1e-300\n", "row 2: has the weight '1e-300'"),
        (b'task,label,general,weight\nner,O,O,"0,5"\n', "row 2: has the weight '0,5'.* point before"),
        (
            b"task,label,general\nner,O,O\nner,B,O\nner,O,O\n",
            "row 4: says again, as row 2 does, that O of ner goes to O; keep one",
        ),
        (b"task,label,general\nner,O,O\nner,caf\xe9,O\n", "row 3: is not UTF-8; save the file as UTF-8"),
        (b'task,label,general\npos,",X\nner,O,O\n', "row 2: is not proper CSV .*quotation marks"),
    ],
)
def test_refused_files_are_named_with_the_row(content: bytes, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        parse_mapping(content, "labels.csv")
    assert error.value.field == "alignment"
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no file .*nowhere\.csv; check the name"):
        read_mapping(tmp_path / "nowhere.csv")
    with pytest.raises(ConfigError, match="is not a file"):
        read_mapping(tmp_path)


def test_the_example_of_the_docs_is_one() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "mathematics.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^    task,label,general.*?(?=\n\n)", text, flags=re.MULTILINE | re.DOTALL)
    rows = mapping(textwrap.dedent(example)).rows
    assert {row.task for row in rows} == {"pos", "chunk", "ner"}
    assert rows[-1].label == ","


def test_labels_that_the_file_does_not_name_keep_rows_of_their_own(tmp_path: Path) -> None:
    """The matrix is a property (tests/properties/test_alignments.py)."""
    (tmp_path / "labels.csv").write_text(ROWS)
    alignment = align(f"mapping:{tmp_path / 'labels.csv'}", counts(*LABELS))
    assert (alignment.name, alignment.label_names) == ("mapping", ("NP", "PER", "chunk:O", "ner:O"))
    assert alignment.label_owners == (("chunk", "ner"), ("ner",), ("chunk",), ("ner",))
    assert alignment.reason == "chosen in the run's description, as labels.csv has it"
    kept = "2 labels of this run, which keep general rows of their own: chunk:O, ner:O."
    assert alignment.notes == (f"labels.csv does not name {kept}",)
    assert not alignment.keeps_rows(counts(*LABELS))


def test_rows_of_other_tasks_and_labels_are_left_out_with_a_note() -> None:
    more = ROWS + "chunk,B-UCP,UCP,1\npos,NN,NP,1\npos,VB,VP,1\nner,O,O,1\nchunk,O,O,1\n"
    fitted = fit(mapping(more), TASKS, LABELS)
    assert list(fitted.owners) == ["NP", "PER", "O"]
    others, absent = fitted.notes
    assert others == "labels.csv also has rows of pos, not learned in this run; they are left out."
    assert "B-UCP (row 6)" in absent
    assert "Labels of chunk there are O, B-NP, I-NP." in absent
    apart = fit(mapping("task,label,general\nner,B-PER,NP\n"), TASKS, LABELS)
    assert "no relation between tasks can be learned" in apart.notes[-1]
    with pytest.raises(ConfigError, match="no row, from row 2 on, names a task and a label") as error:
        fit(mapping("task,label,general\nner,B-LOC,LOC\npos,NN,N\n"), TASKS, LABELS)
    assert "chunk has O, B-NP, I-NP; ner has O, B-PER" in str(error.value)


def test_a_kept_file_outlives_changes_of_the_original(laboratory: Path, tmp_path: Path) -> None:
    original = tmp_path / "my labels ü.csv"
    original.write_text(ROWS)
    kept = keep_mapping(read_mapping(original))
    original.write_text(ROWS.replace("0.5", "0.25"))
    changed = keep_mapping(read_mapping(original))
    assert kept.parent == changed.parent == laboratory / "uploads" / "mappings"
    assert kept.name.startswith("my-labels-")
    assert kept != changed
    assert (kept.read_text(), changed.read_text()) == (ROWS, original.read_text())
    assert keep_mapping(read_mapping(kept)) == kept
    assert len(list(kept.parent.iterdir())) == 2


# Five words; the last is annotated for the first task alone.
WORDS = np.array([[0, 0], [0, 1], [1, 1], [1, 1], [1, -1]])
OF_WORDS = LabelCounts.from_words(["pos", "ner"], [["N", "V"], ["O", "B"]], WORDS)


def test_counts_are_of_words_with_both_labels() -> None:
    np.testing.assert_array_equal(OF_WORDS.together, [[2, 0, 1, 1], [0, 3, 0, 2], [1, 0, 1, 0], [1, 2, 0, 3]])
    assert OF_WORDS.shared.tolist() == [[False, True], [True, False]]
    with pytest.raises(ValueError, match=r"\(N, 2\).*\(5, 3\)"):
        LabelCounts.from_words(["a", "b"], [["x"], ["y"]], np.zeros((5, 3), dtype=int))
    # The correlation of indicators is that of one-hot columns.
    both = WORDS[WORDS[:, 1] >= 0]
    one_hot = np.concatenate([np.eye(2)[both[:, 0]], np.eye(2)[both[:, 1]]], axis=1)
    expected = np.corrcoef(one_hot.T)
    np.testing.assert_allclose(OF_WORDS.indicator_correlation()[:2, 2:], expected[:2, 2:])


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # Words annotated for both tasks, labelled words under names of both: one pair of tasks after another.
        ([(1.0, 0.0)], "cooccurrence"),
        ([(1.0, 0.4)], "cooccurrence"),
        ([(1.0, 0.6)], "exact"),
        ([(0.0, 0.99)], "exact"),
        ([(0.02, 0.3)], "exact"),
        ([(0.0, 0.001)], "disjoint"),
        ([(0.001, 0.0)], "disjoint"),
        ([(1.0, 0.0), (0.0, 0.99), (0.0, 0.0)], "cooccurrence"),
        ([(0.0, 0.99), (0.0, 0.0), (0.0, 0.0)], "exact"),
    ],
)
def test_auto_chooses_by_evidence(pairs: list[tuple[float, float]], expected: str) -> None:
    name, _ = choose([Overlap((f"a{i}", f"b{i}"), *pair) for i, pair in enumerate(pairs)])
    assert name == expected


def test_the_evidence_names_the_pair_or_ranges() -> None:
    shares = "of their words and"
    overlaps_of_pairs = [Overlap(("a", "b"), 1.0, 0.0004), Overlap(("a", "c"), 0.0, 0.125)]
    assert f"a and b share all {shares} under 0.1% of their label names" in choose(overlaps_of_pairs[:1])[1]
    reason = choose(overlaps_of_pairs)[1]
    assert f"the 2 pairs of tasks share 0% to 100% {shares} under 0.1% to 12.5% of" in reason


# Two corpora: the first annotates pos-a and chunk, the second pos-b and ner. No word has labels of both.
TWO_CORPORA = LabelCounts.from_words(
    ["pos-a", "chunk", "pos-b", "ner"],
    [["N", "V"], ["O", "B-NP"], ["N", "J"], ["O", "B-PER"]],
    np.array([[0, 0, -1, -1], [1, 1, -1, -1], [-1, -1, 0, 0], [-1, -1, 1, 1]]),
)


def test_tasks_meet_in_the_rows_that_both_have() -> None:
    # chunk meets pos-b in the rows that both know pos-a from, N; ner meets chunk nowhere but through pos.
    chunk, ner = 1, 3
    apart = np.zeros((4, 4), dtype=bool)
    apart[chunk, ner] = apart[ner, chunk] = True
    assert (align("cooccurrence", TWO_CORPORA).shares_rows == ~apart).all()
    by_name = np.tile(np.eye(2, dtype=bool), (2, 2))
    assert (align("exact", TWO_CORPORA).shares_rows == by_name).all()
    assert (align("disjoint", TWO_CORPORA).shares_rows == np.eye(4, dtype=bool)).all()


def test_labels_that_keep_rows_of_their_own_can_be_compared_with_counts() -> None:
    # Without common names, `exact` keeps every label apart too.
    assert all(align(name, OF_WORDS).keeps_rows(OF_WORDS) for name in ("disjoint", "cooccurrence", "exact"))
    assert not align("exact", TWO_CORPORA).keeps_rows(TWO_CORPORA)


def _codes(*, whole: bool) -> list[Sentence]:
    labels = (("pos", "0"), ("pos", "good"), ("ner", "0"), ("ner", "1"))
    return [Sentence(("a",), {task: (label,)}, whole=whole) for task, label in labels]


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        # O is no name in common.
        (
            [
                Sentence(("a", "b", "c"), {"pos": ("X", "X", "Y"), "ner": ("O", "X", "Z")}),
                Sentence(("d",), {"pos": ("O",)}),
            ],
            (1.0, 0.5),
        ),
        ([Sentence(("e", "f"), {"pos": ("W", "W")}), Sentence(("g",), {"ner": ("V",)})], (0.0, 0.0)),
        # Of texts, nor are codes, unless there are names too.
        (_codes(whole=True), (0.0, 0.0)),
        ([*_codes(whole=True), Sentence(("a",), {"ner": ("good",)}, whole=True)], (0.0, 1.0)),
        (_codes(whole=False), (0.0, 0.5)),
    ],
)
def test_overlaps_are_shares_of_words_and_of_label_names(
    sentences: list[Sentence], expected: tuple[float, float]
) -> None:
    assert overlaps(sentences, ("pos", "ner")) == (Overlap(("pos", "ner"), *expected),)


def test_every_seed_and_fraction_of_a_configuration_resolves_alike(tmp_path: Path, encoder: str) -> None:
    """SYM stands in 2 of 40 sentences: some draws have it for both tasks, others for none."""
    plain = "Boston NOUN NNP\nbeats VERB VBZ\nLondon NOUN NNP\n. PUNCT .\n\n"
    rare = "Boston NOUN NNP\n% SYM SYM\n. PUNCT .\n\n"
    files = {"train.conll": (rare + 19 * plain) * 2, "test.conll": rare + 3 * plain}
    described = {
        "corpus": corpus_folder(tmp_path / "corpus", files), "columns": ("tokens", "upos", "xpos"),
        "tasks": ("upos", "xpos"), "paradigm": "mrn", "label_inventory": "train", "encoder": encoder,
        "encoder_training": "frozen", "max_length": 32, "device": "cpu",
    }  # fmt: skip
    resolved, has_sym = set(), set()
    for seed, fraction in product(range(1, 5), (0.2, 1.0)):
        config = RunConfig.build(**described, seed=seed, fraction=fraction)
        prepared = prepare(config)
        has_sym.add("SYM" in prepared.task("upos").labels)
        facts = set_up(config, prepared).facts
        resolved.add((facts.alignment, facts.alignment_reason))
    assert has_sym == {True, False}
    ((name, reason),) = resolved
    assert name == "cooccurrence"
    assert "upos and xpos share all of their words" in str(reason)


@pytest.mark.parametrize(
    ("corpus", "tasks", "expected"),
    [
        ("demo", ("pos", "chunk", "ner"), "cooccurrence"),
        ("demo-both-pos", ("pos-a", "pos-b"), "exact"),
        ("apart:demo?tokens=300", ("pos", "chunk", "ner"), "disjoint"),
        ("simulated:demo?task=ner&tasks=2&samples=300&tokens=200", ("ner", "sim-1", "sim-2"), "exact"),
        ("joined:demo+demo-pos-b", ("pos@demo", "pos@demo-pos-b"), "exact"),
    ],
)
def test_derived_corpora_are_measured_as_they_are_made(
    corpus: str, tasks: tuple[str, ...], expected: str
) -> None:
    configs = [RunConfig.build(corpus=corpus, tasks=tasks, paradigm="mrn", seed=seed) for seed in (1, 2)]
    chosen = {choose(prepare(config).overlaps) for config in configs}
    assert [name for name, _ in chosen] == [expected]


def facts(meet: list[list[int]], **more: Any) -> TaskRelations:
    """Of tasks a, b, c, ..."""
    tasks = tuple(TaskFacts(name, "plain", (), "accuracy", 1, 1) for name in "abcd"[: len(meet)])
    return TaskRelations(tasks=tasks, meet=tuple(tuple(map(bool, row)) for row in meet), **more)


@pytest.mark.parametrize(
    ("meet", "groups"),
    [
        ([[1, 1], [1, 1]], [("a", "b")]),
        ([[1, 0], [0, 1]], [("a",), ("b",)]),
        ([[1, 0, 1], [0, 1, 0], [1, 0, 1]], [("a", "c"), ("b",)]),
        # a and d meet through c and b only.
        ([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 0], [0, 1, 0, 1]], [("a", "b", "c", "d")]),
    ],
)
def test_groups_are_connected_through_meeting(meet: list[list[int]], groups: list[tuple[str, ...]]) -> None:
    assert list(task_groups(facts(meet))) == groups


def test_a_run_of_an_earlier_version_says_all_or_none() -> None:
    earlier = replace(facts([[], []]), meet=())
    assert task_groups(earlier) == (("a", "b"),)
    assert task_groups(replace(earlier, impossible=("task", "label"))) == (("a",), ("b",))


def test_only_cells_between_groups_are_hatched() -> None:
    apart = facts([[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    tasks = impossible_blocks(apart, "task", [("a",), ("b",), ("c",)])
    assert set(tasks) == {Block(0, 1, 1, 2), Block(1, 2, 0, 1), Block(1, 2, 2, 3), Block(2, 3, 1, 2)}
    labels = impossible_blocks(apart, "label", [("a", "c"), ("a", "c"), ("a",), ("b",), ("b",)])
    assert set(labels) == {Block(0, 2, 3, 5), Block(3, 5, 0, 2), Block(2, 3, 3, 5), Block(3, 5, 2, 3)}
    assert impossible_blocks(apart, "feature", [()] * 4) == ()
    assert impossible_blocks(apart, "label", [()] * 4) == ()
    # Rows that a run shares with one of other tasks: only its own tasks count.
    assert impossible_blocks(apart, "label", [("a", "d"), ("b",)]) == (Block(0, 1, 1, 2), Block(1, 2, 0, 1))
    assert impossible_blocks(apart, "label", [("d",), ("b",)]) == ()
    assert impossible_blocks(facts([[1, 1], [1, 1]]), "task", [("a",), ("b",)]) == ()
