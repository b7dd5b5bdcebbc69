"""Predictions of other systems: read as corpora are, matched word by word, scored here, stored as a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from seqeval.metrics import f1_score

import core
from core.corpora import load
from core.corpora.readers.lines import GivenFile
from core.corpora.types import Sentences
from core.errors import MRNLabError
from core.predictions import Predictions, add_predictions
from core.results.pairs import further_seeds, missing_seeds
from core.results.stored import stored_plans, stored_results
from core.store import Store
from core.training.trainable import check_trainable
from jobs.studies.decide import PlanOptions, planned
from tests.making import facts_of

Rows = list[tuple[tuple[str, ...], tuple[str, ...]]]


@pytest.fixture
def store(laboratory: Path) -> Iterator[Store]:
    with closing(Store.open()) as opened:
        yield opened


def _gold(split: str = "test", task: str = "ner") -> tuple[Sentences, Rows]:
    sentences = load("demo").split(split)  # type: ignore[arg-type]
    return sentences, [(sentence.tokens, sentence.labels[task]) for sentence in sentences]


def _guessed(rows: Rows, every: int = 5) -> Rows:
    """The rows with each so manieth sentence without a span."""
    return [
        (words, ("O",) * len(words) if number % every == 0 else labels)
        for number, (words, labels) in enumerate(rows)
    ]


def _conll(rows: Rows, extra: str = "") -> bytes:
    blocks = ("".join(f"{word}{extra}\t{label}\n" for word, label in zip(*row, strict=True)) for row in rows)
    return "\n".join(blocks).encode()


def _of(file: bytes, name: str = "ner.conll", **values: object) -> Predictions:
    fields = {"system": "flair", "corpus": "demo", "tasks": ("ner",), "seed": 1, "files": None} | values
    fields["files"] = fields["files"] or {"test": GivenFile(name, file)}
    return Predictions(**fields)  # type: ignore[arg-type]


def test_the_score_is_that_of_seqeval_on_the_file(store: Store) -> None:
    _, rows = _gold()
    guessed = _guessed(rows)
    run_id = add_predictions(store, _of(_conll(guessed)))
    (score,) = store.scores([run_id])
    expected = f1_score([list(labels) for _, labels in rows], [list(labels) for _, labels in guessed])
    assert 0.5 < score.score < 1
    assert score.score == pytest.approx(expected, abs=1e-12)
    gold, predicted = store.predictions(run_id, "test")["ner"]
    assert [tuple(labels) for labels in predicted] == [labels for _, labels in guessed]
    assert [tuple(labels) for labels in gold] == [labels for _, labels in rows]


def _bioes(labels: tuple[str, ...]) -> tuple[str, ...]:
    following = (*labels[1:], "O")
    return tuple(
        {"B": "BS", "I": "IE"}[label[0]][not after.startswith("I-")] + label[1:] if label != "O" else label
        for label, after in zip(labels, following, strict=True)
    )


def test_every_format_of_corpora_is_read(store: Store) -> None:
    _, rows = _gold()
    guessed = _guessed(rows)
    listed = "".join(json.dumps({"tokens": words, "tags": labels}) + "\n" for words, labels in guessed)
    files = {
        "one.conll": _conll(guessed),
        "bioes.txt": _conll([(words, _bioes(labels)) for words, labels in guessed]),
        "lists.jsonl": listed.encode(),
        "beside-gold.tsv": _conll(guessed, extra="\tX"),
    }
    scores = [
        store.scores([add_predictions(store, _of(content, name, seed=seed, columns=columns))])[0].score
        for seed, (name, content) in enumerate(files.items(), start=1)
        for columns in [("tokens", "_", "ner") if name.startswith("beside") else None]
    ]
    assert len(set(scores)) == 1


def test_it_is_a_row_of_results_beside_runs(store: Store) -> None:
    _, rows = _gold()
    for system, every in (("flair", 5), ("spaCy", 2)):
        for seed in (1, 2, 3):
            add_predictions(store, _of(_conll(_guessed(rows, every + seed)), system=system, seed=seed))
    (table,) = stored_results(store).tables("test").values()
    assert [row.name for row in table.rows] == ["flair", "spaCy"]
    assert {row.block for row in table.rows} == {"other systems"}
    assert table.rows[0].cells["ner"].summary.n == 3
    facts = facts_of(store.run(1))
    assert (facts.sizes["test"][0], facts.tasks[0].train_sentences) == (len(rows), len(load("demo").train))
    lab = core.Laboratory()
    compared = lab.compare()
    assert set(compared["task"]) >= {"ner"}
    flair, spacy = table.rows
    configs = {run.id: run.config for run in store.runs()}
    assert not missing_seeds((flair, spacy), configs)
    assert not further_seeds((flair, spacy), configs, 3)
    with pytest.raises(MRNLabError, match="flair were imported, so no seeds of it can be trained"):
        planned(store, flair, spacy, PlanOptions())
    assert not stored_plans(store)


def test_tables_of_the_library(laboratory: Path) -> None:
    sentences, rows = _gold()
    words = pd.DataFrame(
        [
            {"sentence": number, "word": word, "ner": label}
            for number, row in enumerate(_guessed(rows))
            for word, label in zip(*row, strict=True)
        ]
    )
    lab = core.Laboratory()
    options = {"corpus": "demo", "system": "spaCy", "task": "ner"}
    run = lab.add_predictions(words, **options)  # type: ignore[arg-type]
    again = lab.add_predictions(
        pd.DataFrame(_guessed(rows), columns=["tokens", "ner"]),
        seed=2,
        **options,  # type: ignore[arg-type]
    )
    assert run.scores()["score"].tolist() == again.scores()["score"].tolist()
    assert len(run.predictions("test")) == sentences.tokens.lengths.sum()
    with pytest.raises(MRNLabError, match="columns sentence and word, or tokens"):
        lab.add_predictions(words.drop(columns="word"), seed=3, **options)  # type: ignore[arg-type]


def test_missing_sentences_count_as_without_labels(store: Store) -> None:
    _, rows = _gold()
    file = _conll(rows[:10] + rows[20:])
    with pytest.raises(MRNLabError, match="lacks 10 of the 300 of test; --partial"):
        add_predictions(store, _of(file))
    assert not store.runs()
    run_id = add_predictions(store, _of(file, partial=True))
    expected = [
        (words, ("O",) * len(words) if 10 <= n < 20 else labels) for n, (words, labels) in enumerate(rows)
    ]
    score = f1_score([list(labels) for _, labels in rows], [list(labels) for _, labels in expected])
    assert store.scores([run_id])[0].score == pytest.approx(score)
    assert facts_of(store.run(run_id)).notes == (
        "ner.conll lacks 10 sentences of test, counted as without labels.",
    )


def test_what_is_refused_is_named_and_stores_nothing(store: Store) -> None:
    _, rows = _gold()
    words, labels = rows[1]
    line = len(rows[0][0]) + 1 + 2
    other = [rows[0], ((words[0], "otter", *words[2:]), labels), *rows[2:]]
    pos = _conll(_gold(task="pos")[1])
    cases = {
        f"ner.conll, line {line}: sentence 2, word 2 is 'otter' where the test split": _of(_conll(other)),
        "behind the last of the test split": _of(_conll([*rows, rows[0]])),
        "sentence 2 has 9 words .* has 10": _of(_conll([rows[0], (words[:-1], labels[:-1]), *rows[2:]])),
        "'JJ' .* is not O, B- or I-": _of(pos),
        "has spans, and pos of the corpus none": _of(_conll(rows), tasks=("pos",)),
        "has no column pos; its columns are": _of(_conll(rows), tasks=("pos", "ner")),
        "has no task 'nerd'": _of(_conll(rows), tasks=("nerd",)),
        "There is no corpus 'demon'": _of(_conll(rows), corpus="demon"),
        "system": _of(_conll(rows), system="x" * 10_000),
        "system is missing|system": _of(_conll(rows), system=""),
        "UTF-8": _of("word\tO\n".encode("utf-16")),
        "is empty": _of(b""),
        "fraction must be above 0": _of(_conll(rows), fraction=0.0),
    }
    for sentence, predictions in cases.items():
        with pytest.raises(MRNLabError, match=sentence) as raised:
            add_predictions(store, predictions)
        assert "\n" not in str(raised.value)
        assert len(str(raised.value)) < 400
    assert not store.runs()
    add_predictions(store, _of(_conll(rows)))
    with pytest.raises(MRNLabError, match="Run 1 has predictions of flair for ner with seed 1 already"):
        add_predictions(store, _of(_conll(_guessed(rows))))
    assert len(store.runs()) == 1
    capitals = add_predictions(store, _of(_conll(rows), system="FLAIR"))  # LIKE of SQLite ignores capitals
    assert [run.id for run in store.runs_of_system("flair")] == [1]
    assert [run.id for run in store.runs_of_system("FLAIR")] == [capitals]
    assert not store.runs_of_system("fla_r") + store.runs_of_system("%")
    with pytest.raises(MRNLabError, match="no training to repeat"):
        check_trainable(store.run(1).config, ())


def test_dev_and_test_in_one_run(store: Store) -> None:
    files = {
        split: GivenFile(f"{split}.conll", _conll(_guessed(_gold(split)[1]))) for split in ("test", "dev")
    }
    run_id = add_predictions(store, _of(b"", files=files))
    assert {score.split for score in store.scores([run_id])} == {"test", "dev"}
