"""A split is predicted in batches as window by window, and scored from label numbers as from labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import RunConfig
from core.corpora import prepare
from core.corpora.types import Sentence, Sentences
from core.encoding.batches import IGNORED, SUBWORDS_TO_PREDICT, Batches
from core.encoding.encoded import EncodedText
from core.events import TaskFacts
from core.tasks import score_task
from core.training.data import SplitData, label_numbers
from core.training.evaluate import Predicted, Scorer, predict
from core.training.setup import TrainingRun, set_up
from tests.trained import toy_config

TASKS = (
    TaskFacts("pos", "plain", ("NN", "VB", "DT"), "accuracy", 1, 1),
    TaskFacts("extra", "plain", ("x",), "accuracy", 1, 1, auxiliary=True),
    TaskFacts("ner", "iob2", ("O", "I-PER", "B-LOC", "B-PER"), "f1_conll", 1, 1),
)
NEVER_SEEN = {"pos": ("UH",), "ner": ("B-NEW", "I-NEW"), "extra": ()}


def _split(sentences: Sequence[Sentence]) -> SplitData:
    """The sentences with a subword for each word."""
    words = sum(len(sentence.tokens) for sentence in sentences)
    ends = np.cumsum([0, *(len(sentence.tokens) for sentence in sentences)])
    text = EncodedText(np.zeros(words, np.int32), ends, np.zeros(words, np.int32), ends, ends)
    labels = label_numbers(sentences, TASKS)
    return SplitData(Sentences.of(sentences), text, "key", labels, Batches(text, labels, 4, 0), (text, "key"))


@st.composite
def sentences(draw: st.DrawFn) -> list[Sentence]:
    """Sentences that each have the labels of some tasks, some of which training never saw."""
    made = []
    for size in draw(st.lists(st.integers(1, 5), min_size=1, max_size=6)):
        labels = {}
        for task in TASKS:
            if draw(st.booleans()):
                known = st.sampled_from(task.labels + NEVER_SEEN[task.name])
                labels[task.name] = tuple(draw(st.lists(known, min_size=size, max_size=size)))
        made.append(Sentence(("w",) * size, labels))
    return made


@settings(max_examples=40)
@given(sentences(), st.randoms(use_true_random=False), st.sampled_from(["accuracy", "seqeval_f1"]))
def test_scores_are_those_of_the_labels(given: list[Sentence], chance: Random, plain: str) -> None:
    words = [chance.randrange(3) for sentence in given for _ in sentence.tokens]
    numbers = np.array([words, [0] * len(words), words], dtype=np.int64).T
    predicted = Predicted(numbers, np.zeros(3))
    config = RunConfig.build(corpus="demo", tasks="pos,ner", pos_score=plain)
    scorer = Scorer(config, "dev", _split(given), TASKS)
    result = scorer.result(predicted, epoch=3)
    ends = np.cumsum([len(sentence.tokens) for sentence in given])[:-1]
    by_sentence = [part.tolist() for part in np.split(np.array(words), ends)]
    assert (result.split, result.epoch) == ("dev", 3)
    assert list(result.gold) == list(result.predictions) == ["pos", "ner"]
    for task, score, brief in zip(
        (TASKS[0], TASKS[2]), result.scores, scorer.headlines(predicted), strict=True
    ):
        annotated = [place for place, sentence in enumerate(given) if task.name in sentence.labels]
        gold = [list(given[place].labels[task.name]) for place in annotated]
        guess = [[task.labels[number] for number in by_sentence[place]] for place in annotated]
        assert result.gold[task.name] == gold
        assert result.predictions[task.name] == guess
        scored = partial(score_task, task.name, task.scheme, gold, guess, plain_score=config.pos_score)
        assert (score, brief) == (scored(), scored(details=False))


@pytest.fixture
def run(laboratory: Path, request: pytest.FixtureRequest) -> TrainingRun:
    """A training whose heads are not zero, over windows shorter than many sentences."""
    config = toy_config(laboratory, max_length=8)
    values: dict[str, Any] = dict(request.param)
    if values.pop("bilstm", False):
        values |= {"encoder": f"{config.encoder}+bilstm", "bilstm_hidden": 8}
    config = toy_config(laboratory, max_length=8, **values)
    made = set_up(config, prepare(config))
    torch.nn.init.normal_(made.model.heads.weight)
    return made


@pytest.mark.parametrize("tokens", [1, 40])
@pytest.mark.parametrize(
    "run",
    [{}, {"encoder_training": "frozen", "lr_encoder": None}, {"bilstm": True}],
    indirect=True,
    ids=["full", "frozen", "lstm"],
)
def test_batches_of_any_budget_are_predicted_as_single_windows(
    run: TrainingRun, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SUBWORDS_TO_PREDICT, "cpu", tokens)
    split = run.use_split("dev")
    assert split.text.windows > len(split.sentences)
    predicted = predict(run.model, split, run.device)
    run.model.eval()
    logits = torch.full((len(split.labels), run.model.heads.weight.shape[0]), torch.nan)
    with torch.no_grad():
        for batch in Batches(split.text, split.labels, 1, run.tokenizer.pad).by_length():
            states = run.model.encoder(batch).flatten(0, 1)
            logits[batch.words] = run.model.heads(states[batch.rows])
    labels = torch.from_numpy(split.labels)
    for task, rows in enumerate(run.model.heads.slices):
        assert predicted.numbers[:, task].tolist() == logits[:, rows].argmax(dim=1).tolist()
        loss = torch.nn.functional.cross_entropy(logits[:, rows], labels[:, task], ignore_index=IGNORED)
        assert predicted.losses[task] == pytest.approx(loss.item(), rel=1e-5)
