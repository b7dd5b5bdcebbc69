"""`mrnlab tag` with tasks on whole texts and on pairs: a text, a pair, a file, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import core
from core.errors import MRNLabError
from core.models.model_io import load
from tests.trained import copy_text_taggers
from tests.unit.cli.conftest import Laboratory

MIXED, PAIRS, TEXTS = "1", "3", "4"


@pytest.fixture
def corpora(shared_folder: Path, laboratory: Path) -> Path:
    """This test's laboratory with the runs of `copy_text_taggers`; the folder of their corpora."""
    copy_text_taggers(shared_folder, laboratory)
    return laboratory / "texts"


def test_spans_have_their_places_in_the_given_text(corpora: Path, lab: Laboratory) -> None:
    text = "\U0001f600  EU\trejects"
    document = lab.json("tag", MIXED, text)
    assert document["text"] == text
    (span,) = document["spans"]["ner"]
    confidence = document["tags"]["ner"][1]["confidence"]
    assert span == {"label": "ORG", "text": "EU", "start": 3, "end": 5, "score": confidence}

    lines = corpora / "lines.txt"
    lines.write_text("\u200e  EU rejects\n\nHe said EU rejects .\n", encoding="utf-8")
    sentences = lab.json("tag", MIXED, "--file", str(lines), "--layout", "text")["sentences"]
    for sentence in sentences:
        assert "EU" in [span["text"] for span in sentence["spans"]["ner"]]
        assert all(
            sentence["text"][span["start"] : span["end"]] == span["text"] for span in sentence["spans"]["ner"]
        )
    assert sentences[0]["spans"]["ner"][0]["start"] == 3

    lines.write_text("EU\nrejects\n\nEU\n", encoding="utf-8")
    first, _ = lab.json("tag", MIXED, "--file", str(lines), "--layout", "words")["sentences"]
    assert first["text"] == "EU rejects"


def test_a_text_and_a_pair(corpora: Path, lab: Laboratory) -> None:
    document = lab.json("tag", MIXED, "EU rejects", "--second", "lamb .")
    assert document["tokens"] == ["EU", "rejects"]
    assert [word["label"] for word in document["tags"]["ner"]] == ["B-ORG", "O"]
    assert (document["text"], document["second"]) == ("EU rejects", "lamb .")
    answers = document["answers"]
    assert answers.keys() == {"mood", "same", "alike"}
    assert answers["mood"]["value"] == "good"
    assert sum(answers["mood"]["probabilities"].values()) == pytest.approx(1)
    assert 0 <= answers["alike"]["value"] <= 5
    assert "probabilities" not in answers["alike"]

    result = lab.call("tag", MIXED, "EU rejects")
    assert "same and alike: no answer without a second text; give it with --second TEXT." in result.stderr
    assert result.stdout.splitlines()[-1].split()[:3] == ["mood", "good", "good"]
    long = lab.call("tag", TEXTS, "EU " * 40)
    assert "longer than run 4 reads (max_length 32); its end is left out." in long.stderr
    assert "longer" not in lab.call("tag", TEXTS, "EU lamb").stderr


def test_files_are_answered_row_by_row(corpora: Path, lab: Laboratory, tmp_path: Path) -> None:
    test = corpora / "mood" / "test.tsv"
    result = lab.call("tag", MIXED, "--file", str(test), "--confidence")
    header, *rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert header == ["text", "mood_gold", "mood", "mood_confidence"]
    assert len(rows) == 12
    assert all(gold == label for _, gold, label, _ in rows)
    assert "mood: accuracy 100.00% on 12 texts." in result.stderr
    assert "ner, same and alike: no answers" in result.stderr

    asked = tmp_path / "pairs.jsonl"
    pairs = [("EU lamb", "lamb EU", 5), ("call", "to", None), ("EU", ".", 0)]
    asked.write_text(
        "".join(json.dumps({"text1": a, "text2": b, "score": c, "id": 1}) + "\n" for a, b, c in pairs)
    )
    document = lab.json("tag", PAIRS, "--file", str(asked))
    assert [text["gold"] for text in document["texts"]] == [{"alike": "5"}, {}, {"alike": "0"}]
    assert document["scores"]["alike"].keys() == {"pearson", "pairs"}
    assert document["scores"]["alike"]["pairs"] == 2
    pair = lab.json("tag", PAIRS, "EU", "--second", ".")["answers"]
    assert document["texts"][2]["answers"]["alike"]["value"] == pytest.approx(
        pair["alike"]["value"], abs=1e-5
    )
    assert "Left out: id." in lab.call("tag", PAIRS, "--file", str(asked)).stderr


def test_what_is_refused(corpora: Path, lab: Laboratory, tmp_path: Path) -> None:
    words = corpora / "words" / "test.conll"
    bad = tmp_path / "bad.tsv"
    bad.write_text("text1\ttext2\talike\nEU\tlamb\tmuch\n")
    refused: dict[tuple[str, ...], str] = {
        (PAIRS, "EU"): "Run 3 reads pairs of texts (same and alike); give the second with --second TEXT.",
        (TEXTS, "EU", "--second", "lamb"): "Run 4 has no task on pairs",
        (TEXTS, "EU", "--second", " "): "has no words",
        (PAIRS, "--second", "EU"): "has no words",
        **{(run, "\u200b \ufeff\u00ad"): "has no words" for run in (MIXED, TEXTS)},
        (PAIRS, "EU", "--second", "\u2060"): "has no words",
        (
            PAIRS,
            "--file",
            str(corpora / "mood" / "test.tsv"),
        ): "give the second in a column text2 beside text1.",
        (TEXTS, "--file", str(words)): "must be a .tsv, .csv or .jsonl file with a column text",
        (TEXTS, "--file", str(corpora / "same" / "test.tsv")): "has no task on pairs",
        (PAIRS, "--file", str(bad)): "bad.tsv, line 2: alike must be a number, not 'much'.",
    }
    for arguments, words_of_it in refused.items():
        assert words_of_it in lab.refusal("tag", *arguments), arguments


def test_the_library_answers_and_reads_predictions(corpora: Path) -> None:
    laboratory = core.Laboratory()
    mixed, pairs, texts = (laboratory.run(int(number)) for number in (MIXED, PAIRS, TEXTS))
    frame = mixed.answer("EU rejects", "lamb .", probabilities=True)
    assert list(frame.columns) == [
        "text", "second", "mood", "mood: bad", "mood: good", "same", "same: no", "same: yes", "alike",
    ]  # fmt: skip
    assert frame["mood: good"].tolist()[0] > 0.5
    assert mixed.answer(["EU rejects", "lamb ."])["mood"].tolist() == ["good", "bad"]
    refused: dict[str, Callable[[], pd.DataFrame]] = {
        "answer\\(\\) reads whole texts": lambda: texts.tag("EU"),
        "give the second text as `second`": lambda: pairs.answer("EU"),
        "no words": lambda: texts.answer("  "),
        "has no words": lambda: texts.answer("\u200b"),
        "2 texts and 1 second": lambda: pairs.answer(["EU", "lamb"], ["lamb"]),
    }
    for sentence, wrong in refused.items():
        with pytest.raises(MRNLabError, match=sentence):
            wrong()

    stored = mixed.predictions()
    words, whole = stored[stored["task"] == "ner"], stored[stored["task"] != "ner"]
    assert words["word"].notna().all()
    assert words["text"].isna().all()
    assert len(whole) == 3 * 12
    scores = mixed.scores().loc["test"]
    alike = whole[whole["task"] == "alike"]
    assert alike["gold"].astype(float).corr(alike["predicted"].astype(float)) == pytest.approx(
        scores.loc["alike", "score"], abs=1e-4
    )
    stored_answers = texts.predictions()
    assert list(stored_answers.columns) == ["task", "sentence", "text", "gold", "predicted"]
    again = texts.answer(stored_answers["text"].tolist())["mood"]
    pd.testing.assert_series_equal(again, stored_answers["predicted"], check_names=False)


def test_texts_are_truecased_as_in_training(corpora: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = load(Path(core.Laboratory().run(int(TEXTS)).record.checkpoint or ""))
    monkeypatch.setattr(tagger, "config", tagger.config.with_(truecase=True))
    shouted, spoken = tagger.answer([("GERMAN LAMB", None), ("German lamb", None)])
    assert shouted == spoken
