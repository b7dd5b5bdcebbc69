"""Sentences whose words and whole have labels, as slots and an intent: read, encoded, learned, answered."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.corpora.assembly import assemble
from core.corpora.loading import load
from core.corpora.overlaps import corpus_overlaps, overlaps
from core.corpora.readers.given import read_given
from core.corpora.types import Corpus, Sentence, Sentences
from core.encoding.batches import IGNORED, Batches
from core.encoding.texts import encode_sentences
from core.encoding.tokenizer import SubwordTokenizer, load_tokenizer
from core.errors import ConfigError, CorpusError
from core.events import Snapshot
from core.models.encoders.transformer import load_transformer
from core.models.tagger import make_tagger
from core.models.text_heads import HeadTask
from core.tagging import conll_text, given_scores, load_tagger
from core.training.data import label_numbers
from tests.tiny import tiny_bert
from tests.toys import config, sentences, texts
from tests.trained import assert_tags_as_tested, train_toy

ROWS = (
    ("1", "book", [("book", "O"), ("Riga", "B-place")]),
    ("2", "cancel", [("cancel", "O"), ("it", "O")]),
    ("3", "book", [("take", "O"), ("New", "B-place"), ("York", "I-place")]),
    ("4", "cancel", [("stop", "O")]),
)


def columns_text(rows: Any = ROWS, mark: str = "# intent: ") -> str:
    return "\n".join(
        f"# sent_id: {number}\n# lang: en\n{mark}{intent}\n" + "".join(f"{w} {label}\n" for w, label in words)
        for number, intent, words in rows
    )


def records_text(rows: Any = ROWS) -> str:
    return "".join(
        json.dumps(
            {
                "id": number,
                "text": " ".join(w for w, _ in words),
                "tokens": [w for w, _ in words],
                "slots": [label for _, label in words],
                "intent": intent,
            }
        )
        + "\n"
        for number, intent, words in rows
    )


def loaded(folder: Path, content: str, ending: str = ".conll") -> Corpus:
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        (folder / f"{split}{ending}").write_text(content)
    return load(str(folder))


@pytest.mark.parametrize(("ending", "content"), [(".conll", columns_text()), (".jsonl", records_text())])
def test_a_sentence_has_labels_of_its_words_and_of_the_whole(
    tmp_path: Path, ending: str, content: str
) -> None:
    corpus = loaded(tmp_path / "mine", content, ending)
    (words, whole) = corpus.tasks
    assert (words.scheme, whole.name, whole.scheme, whole.labels) == (
        *("iob2", "intent", "sentence", ("book", "cancel")),
    )
    third = corpus.train[2]
    assert third.tokens == ("take", "New", "York")
    assert (third.labels[words.name], third.labels["intent"]) == (("O", "B-place", "I-place"), ("book",))
    (reading,) = corpus.readings
    read = {column.name: (column.taken, column.labels, column.guessed) for column in reading.columns}
    assert read["intent"] == ("sentence label", 2, True)
    left_out = " ".join(corpus.notes)
    assert "intent" not in left_out
    assert ("# sent_id: 1" in left_out) or ("id" in left_out and "text" in left_out)


@pytest.mark.parametrize(
    ("mark", "tasks"),
    [
        ("# intent: ", ["ner", "intent"]),
        ("#intent: ", ["ner", "intent"]),
        ("# intent = ", ["ner"]),
        ("# _intent: ", ["ner"]),
        ("# mood: ", ["ner", "mood"]),
        ("# sent: x", ["ner"]),
    ],
)
def test_which_comments_are_labels(tmp_path: Path, mark: str, tasks: list[str]) -> None:
    rows = [(n, intent if mark != "# sent: x" else n, words) for n, intent, words in ROWS]
    corpus = loaded(tmp_path / "mine", columns_text(rows, mark))
    assert [task.name for task in corpus.tasks] == tasks


def test_a_sentence_without_the_comment_is_not_annotated(tmp_path: Path) -> None:
    rows = [(str(n), ("a", "b")[n % 2], [("w", "O")]) for n in range(30)]
    content = columns_text(rows).replace("# intent: a\n", "", 1)
    corpus = loaded(tmp_path / "mine", content)
    assert [("intent" in sentence.labels) for sentence in corpus.train[:2]] == [False, True]
    few = columns_text(rows).replace("# intent: a\n", "", 4)
    assert [task.name for task in loaded(tmp_path / "few", few).tasks] == ["ner"]


def test_two_comments_of_one_name_are_refused(tmp_path: Path) -> None:
    content = columns_text().replace("# intent: cancel\ncancel", "# intent: cancel\n# intent: book\ncancel")
    with pytest.raises(CorpusError, match="line 10: this is the second comment 'intent' before one sentence"):
        loaded(tmp_path / "mine", content)


@pytest.mark.parametrize(
    ("change", "is_task"),
    [
        ({}, True),
        ({"intent": None}, True),
        ({"intent": 7}, True),
        ({"intent": "a\nb"}, False),
        ({"intent": "long " * 40}, False),
    ],
)
def test_a_field_that_holds_no_labels_is_left_out(
    tmp_path: Path, change: dict[str, Any], is_task: bool
) -> None:
    first, *others = map(json.loads, records_text().splitlines())
    content = "".join(json.dumps(row) + "\n" for row in (first, *others, first | change))
    corpus = loaded(tmp_path / "mine", content, ".jsonl")
    assert ("intent" in [task.name for task in corpus.tasks]) is is_task
    assert any("intent" in note for note in corpus.notes) is not is_task


@pytest.fixture(scope="module")
def bert(encoder: str) -> SubwordTokenizer:
    return load_tokenizer(encoder)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("encoder")))


def intents(count: int, seed: int, longest: int = 9) -> list[Sentence]:
    """Toy sentences whose intent is whether the first word is one of the first four."""
    return [
        replace(
            sentence,
            labels={**sentence.labels, "intent": ("ask" if sentence.tokens[0] in _ASKS else "say",)},
            text_tasks=("intent",),
        )
        for sentence in sentences(count, seed, longest=longest)
    ]


_ASKS = ("EU", "rejects", "German", "call")


def intents_corpus(longest: int = 9) -> Corpus:
    splits = {"train": intents(64, 0, longest), "dev": intents(10, 1), "test": intents(16, 2, longest)}
    return assemble("intents", splits, schemes={"intent": "sentence"})  # type: ignore[arg-type]


def test_the_whole_comes_before_its_words_in_the_first_window(bert: SubwordTokenizer) -> None:
    given = [*intents(1, 0), *sentences(1, 1), *intents(1, 5, longest=60), *texts(1, 2), *intents(1, 3)]
    text, key = encode_sentences(given, bert, 12, together=False, cache=None)
    plain, same = encode_sentences(
        [replace(sentence, text_tasks=()) for sentence in given], bert, 12, together=False, cache=None
    )
    assert key == same
    np.testing.assert_array_equal(text.ids, plain.ids)
    assert np.diff(text.sentences).tolist() == Sentences.of(given).items.tolist()
    for number, sentence in enumerate(given):
        first = int(text.sentences[number])
        window = int(np.searchsorted(text.words, first, side="right")) - 1
        if sentence.text_tasks:
            assert text.firsts[first] == 0
            assert text.texts is not None
            assert text.texts.whole[window]
            assert text.texts.shortened[window] == (len(sentence.tokens) > 10)
        elif not sentence.whole:
            assert text.firsts[first] == 1
    np.testing.assert_array_equal(text.sentence_of_window, plain.sentence_of_window)


@pytest.mark.parametrize("head", ["linear", "crf"])
@pytest.mark.parametrize("pooled_by", ["cls", "mean"])
def test_words_have_the_same_losses_with_and_without_the_whole(
    encoder: str, bert: SubwordTokenizer, pooled_by: Any, head: str
) -> None:
    """And the loss of the whole is that of Transformers' own state of the sentence."""
    torch.manual_seed(1)
    corpus = intents_corpus(longest=30)
    given = corpus.train[:20]
    settings = config(encoder, tasks=("pos", "ner", "intent"), paradigm="mtl", head=head)
    tasks = [HeadTask(task.scheme, task.labels) for task in corpus.tasks]
    model = make_tagger(load_transformer(encoder, half=False), settings, tasks, pooled_by=pooled_by).eval()
    for parameter in (model.heads.weight, model.heads.bias):
        torch.nn.init.normal_(parameter)

    def losses(of: list[Sentence]) -> torch.Tensor:
        text, _ = encode_sentences(of, bert, 16, together=False, cache=None)
        (batch,) = Batches(text, label_numbers(of, corpus.tasks), 100, bert.pad).by_length()
        with torch.no_grad():
            return model.losses(model(batch), batch)[0]

    both = losses(list(given))
    words = losses([replace(s, labels={t: s.labels[t] for t in ("pos", "ner")}) for s in given])
    torch.testing.assert_close(both[:2], words[:2])
    assert words[2] == 0
    expected = torch.zeros(())
    inner = load_transformer(encoder, half=False).inner.eval()
    weight, bias = model.heads.weight_and_bias(2)
    fitting = [each for each in given if len(bert.split(each.tokens).ids) <= 14]
    assert len(fitting) > 5
    for sentence in fitting:
        pieces = bert.split(sentence.tokens).ids.tolist()
        ids = torch.tensor([[*bert.prefix, *pieces, *bert.suffix]])
        with torch.no_grad():
            states = inner(input_ids=ids).last_hidden_state[0]
        vector = states[0] if pooled_by == "cls" else states.mean(dim=0)
        right = corpus.tasks[2].labels.index(sentence.labels["intent"][0])
        expected = expected + torch.nn.functional.cross_entropy(weight @ vector + bias, torch.tensor(right))
    torch.testing.assert_close(losses(fitting)[2], expected.detach())


LEARNED: dict[str, Any] = {"epochs": 12, "lr_encoder": 5e-3, "lr_heads": 5e-2, "dropout": 0.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "mtl": {},
    "mrn": {"paradigm": "mrn"},
    "mean": {"pooling": "mean"},
    "crf": {"head": "crf"},
    "a task at a time": {"draw_tasks": "uniform"},
    "told the task": {"task_embedding": "input"},
    "vectors": {"encoder": "bilstm", "bilstm_hidden": 16, "lr_encoder": 1e-2, "lr_heads": 1e-2},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_words_and_the_whole_are_learned_and_answered_at_once(
    encoder: str, tmp_path: Path, variant: str
) -> None:
    corpus = intents_corpus()
    changes = {"tasks": ("pos", "ner", "intent"), "paradigm": "mtl"} | LEARNED | VARIANTS[variant]
    run = train_toy(config(**{"encoder": encoder} | changes), corpus, tmp_path / "run")
    scores = {score.task: score for score in run.test.scores}
    assert scores["pos"].score > 0.9
    assert scores["intent"].score >= 0.75
    assert scores["intent"].tokens == len(corpus.test)
    assert scores["pos"].tokens == sum(len(sentence.tokens) for sentence in corpus.test)
    facts = {task.name: task for task in run.facts.tasks}
    assert (facts["intent"].scheme, facts["intent"].train_tokens) == ("sentence", len(corpus.train))
    tagged = assert_tags_as_tested(run, corpus)
    tagger = load_tagger(run.checkpoint)
    alone = tagger.answer([(" ".join(sentence.tokens), None) for sentence in corpus.test])
    assert [answer["intent"].value for answer in alone] == [each.answers["intent"].value for each in tagged]
    if variant == "mrn":
        relations = run.of(Snapshot)[-1].relations
        assert relations.task.shape == (3, 3)


def test_a_run_of_the_whole_alone(encoder: str, tmp_path: Path) -> None:
    corpus = replace(intents_corpus(), tasks=intents_corpus().tasks[2:])
    run = train_toy(config(encoder, tasks=("intent",), paradigm="stl", **LEARNED), corpus, tmp_path / "run")
    assert run.test.scores[0].score >= 0.75
    (tagged,) = load_tagger(run.checkpoint).tag([["EU", "call"]])
    assert (tagged.tags, set(tagged.answers)) == ({}, {"intent"})


def test_rows_shared_by_name_are_refused(encoder: str, tmp_path: Path) -> None:
    settings = config(encoder, tasks=("pos", "intent"), paradigm="mtl", heads="shared")
    with pytest.raises(ConfigError, match="heads must be own here"):
        train_toy(settings, intents_corpus(), tmp_path / "run")


def test_tagged_columns_hold_answers_and_are_read_again(encoder: str, tmp_path: Path) -> None:
    corpus = intents_corpus()
    settings = config(encoder, tasks=("pos", "ner", "intent"), paradigm="mtl", **LEARNED)
    run = train_toy(settings, corpus, tmp_path / "run")
    tagger = load_tagger(run.checkpoint)
    tagged = tagger.tag([sentence.tokens for sentence in corpus.test])
    written = conll_text(corpus.test, tagged, confidence=True)
    first = written.split("\n")
    assert first[0] == f"# intent_gold: {corpus.test[0].labels['intent'][0]}"
    assert first[1] == f"# intent: {tagged[0].answers['intent'].value}"
    assert first[2].startswith("# intent_confidence: 0.")
    gold = "".join(
        f"# intent: {s.labels['intent'][0]}\n" + "".join(f"{word}\n" for word in s.tokens) + "\n"
        for s in corpus.test
    )
    given = read_given(gold.encode(), "mine.conll", tagger.schemes)
    assert given.gold == ("intent",)
    (score,) = given_scores(given.sentences, tagged, tagger.schemes)
    assert score.score == {score.task: score for score in run.test.scores}["intent"].score


def test_words_and_wholes_share_no_label() -> None:
    """A label of a sentence stands on no word: alignments see no overlap between the two."""
    pairs = {pair.tasks: pair.words for pair in overlaps(intents_corpus().train, ("pos", "ner", "intent"))}
    assert pairs == {("pos", "ner"): 1.0, ("pos", "intent"): 0.0, ("ner", "intent"): 0.0}


def test_the_demo_of_intents_joins_and_is_dealt_out() -> None:
    demo = load("demo-intents")
    assert [(task.name, task.scheme) for task in demo.tasks] == [
        ("pos", "plain"), ("slots", "iob2"), ("intent", "sentence"),
    ]  # fmt: skip
    assert [len(demo.split(split)) for split in ("train", "dev", "test")] == [900, 150, 300]
    joined = load("joined:demo-intents+demo")
    assert {task.name for task in joined.tasks} >= {"pos@demo-intents", "slots", "intent", "chunk"}
    assert joined.split("train").items[0] == 1 + len(joined.train[0].tokens)
    numbers = label_numbers(joined.train[:1], joined.tasks)
    intent = [task.name for task in joined.tasks].index("intent")
    assert (numbers[1:, intent] == IGNORED).all()
    assert numbers[0, intent] != IGNORED
    dealt = load("apart:demo-intents")
    assert {len(sentence.labels) for sentence in dealt.train} == {1}
    assert corpus_overlaps("demo-intents", None, ("slots", "intent"))[0].words == 0.0
