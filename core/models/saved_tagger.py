"""A finished run as a tagger: every task's labels of words, and its answers on whole texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.config import RunConfig
from core.corpora.readers.splitting import split_words
from core.corpora.types import Sentence, whole_text
from core.encoding.batches import SUBWORDS_TO_PREDICT, Batches
from core.encoding.encoded import EncodedText
from core.encoding.texts import encode_sentences
from core.encoding.tokenizer import Tokenizer
from core.models.device import ALL_THREADS
from core.models.encoders.word_inputs import WordInputs
from core.models.tagger import MultiTaskTagger
from core.models.word_model import ContextReader
from core.tasks import KINDS
from core.tasks.answers import TaggedSentence, TextAnswer, WordTag
from core.tasks.kinds import Reads

_FEW_WORDS = 500  # one thread is as fast for so few, and several models then do not wait for each other


class SavedTagger:
    """A finished run as a tagger, with every task. `schemes`, `labels` and `scales` are by task."""

    def __init__(
        self,
        config: RunConfig,
        tasks: Sequence[Mapping[str, Any]],
        model: MultiTaskTagger,
        tokenizer: Tokenizer,
        context: ContextReader | None = None,
    ) -> None:
        self.config, self.model, self.tokenizer, self.context = config, model, tokenizer, context
        self.schemes: Mapping[str, str] = {task["name"]: task["scheme"] for task in tasks}
        self.labels: Mapping[str, Sequence[str]] = {task["name"]: task["labels"] for task in tasks}
        self.scales: Mapping[str, tuple[float, float]] = {
            task["name"]: tuple(task["scale"]) for task in tasks if task.get("scale")
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that a reader of its answers should know, a sentence each."""
        inputs = [part for part in self.model.modules() if isinstance(part, WordInputs)]
        return tuple(part.note for part in inputs if part.note is not None)

    @torch.inference_mode()
    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        """The labels of every word by the tasks on words, and the answers of the tasks on sentences.

        Each has the `top` most probable labels.
        """
        tokens = [tuple(sentence) for sentence in sentences]
        word_tasks, sentence_tasks = self._tasks("words"), self._tasks("sentence")
        if not word_tasks and not sentence_tasks:
            return [TaggedSentence(words, {}) for words in tokens]
        whole = tuple(sentence_tasks)
        asked = self._truecased(
            [Sentence(words, dict.fromkeys(whole, ("",)), text_tasks=whole) for words in tokens]
        )
        text, _ = encode_sentences(asked, self.tokenizer, self.config.max_length, together=True, cache=None)
        batches = self._batches(text, "words", "sentence")
        if self.context is not None:
            with _threads(1 if len(text.firsts) <= _FEW_WORDS else ALL_THREADS):
                batches.context = self.context.read([sentence.tokens for sentence in asked], text)
        best = self._best(text, batches, word_tasks | sentence_tasks, top)
        starts = text.sentences.tolist()
        tags = {task: _word_tags(self.labels[task], *best[task]) for task in word_tasks}
        answers: list[dict[str, TextAnswer]] = [{} for _ in tokens]
        if text.texts is not None:
            shortened = text.texts.shortened[text.texts.whole].tolist()
            for task in sentence_tasks:
                for index, item in enumerate(starts[:-1]):
                    answers[index][task] = self._answer(
                        task, *(item_values[item] for item_values in best[task]), shortened=shortened[index]
                    )
        return [
            TaggedSentence(
                words,
                {task: tuple(task_tags[end - len(words) : end]) for task, task_tags in tags.items()},
                answer,
            )
            for words, end, answer in zip(tokens, starts[1:], answers, strict=True)
        ]

    @torch.inference_mode()
    def answer(self, texts: Sequence[tuple[str, str | None]], top: int = 10) -> list[dict[str, TextAnswer]]:
        """The answers of the tasks on whole texts for each text, and of the tasks on pairs for each pair.

        Tasks on a text answer for the first text of a pair, and tasks on sentences take it for one. Of labels
        the `top` most probable ones.
        """
        answers: list[dict[str, TextAnswer]] = [{} for _ in texts]
        if self._tasks("sentence"):
            words = [split_words(text) for text, _ in texts]
            answers = [dict(tagged.answers) for tagged in self.tag(words, top)]
        kinds: tuple[Reads, ...] = ("text", "pair")
        for reads in kinds:
            alone = reads == "text"
            places = [index for index, (_, second) in enumerate(texts) if alone or second is not None]
            if not places or not self._tasks(reads):
                continue
            asked = (whole_text(texts[index][0], None if alone else texts[index][1]) for index in places)
            sentences = self._truecased(list(asked))
            together = self.config.pair_encoding == "together"
            text, _ = encode_sentences(
                sentences, self.tokenizer, self.config.max_length, together=together, cache=None
            )
            batches = self._batches(text, reads)
            assert text.texts is not None  # whole texts have them
            begins = np.flatnonzero(~text.texts.follows)
            shortened = np.logical_or.reduceat(text.texts.shortened, begins).tolist()
            by_task = self._best(text, batches, self._tasks(reads), top)
            for task, (probabilities, numbers) in by_task.items():
                for row, index in enumerate(places):
                    answers[index][task] = self._answer(
                        task, probabilities[row], numbers[row], shortened=shortened[row]
                    )
        return answers

    def _answer(self, task: str, probabilities: Tensor, numbers: Tensor, *, shortened: bool) -> TextAnswer:
        if KINDS[self.schemes[task]].is_number:
            return TextAnswer(float(probabilities[0]), shortened=shortened)
        labels = [self.labels[task][number] for number in numbers.tolist()]
        return TextAnswer(labels[0], tuple(zip(labels, probabilities.tolist(), strict=True)), shortened)

    def _tasks(self, reads: Reads) -> dict[str, int]:
        """The tasks that read words, sentences, texts or pairs, each with its number in the model."""
        return {
            task: number
            for number, (task, scheme) in enumerate(self.schemes.items())
            if KINDS[scheme].reads == reads
        }

    def _batches(self, text: EncodedText, *reads: Reads) -> Batches:
        asked = None
        if self.config.embeds_tasks:
            asked = np.zeros((text.windows, len(self.schemes)), dtype=bool)
            for each in reads:
                asked[:, list(self._tasks(each).values())] = True
        labels = np.zeros((len(text.firsts), len(self.schemes)), dtype=np.int64)
        return Batches(text, labels, 1, self.tokenizer.pad, window_tasks=asked)

    def _best(
        self, text: EncodedText, batches: Batches, tasks: Mapping[str, int], top: int
    ) -> dict[str, tuple[Tensor, Tensor]]:
        """By task the probabilities and numbers (N, top) of the best labels of each word or text.

        Of numbers it has the numbers themselves. Labels of whole texts are never all kept. `tasks` have their
        numbers in the model.
        """
        count = len(text.firsts)
        best = {
            task: (torch.zeros(count, kept), torch.zeros(count, kept, dtype=torch.int64))
            for task, kept in ((task, min(top, len(self.labels[task]))) for task in tasks)
        }
        with _threads(1 if count <= _FEW_WORDS else ALL_THREADS):
            for batch in batches.by_length(SUBWORDS_TO_PREDICT["cpu"]):
                logits = self.model(batch)
                chosen = self.model.best(logits, batch).long()
                by_task = self.model.probabilities(logits, batch)
                read_for = None if batch.tasks is None else batch.tasks.repeat_interleave(batch.counts)
                for task, number in tasks.items():
                    probabilities, numbers = best[task]
                    rows = slice(None) if read_for is None else torch.nonzero(read_for == number)[:, 0]
                    label_probabilities, places = by_task[number][rows], batch.words[rows]
                    # A CRF chooses a sequence: the label of a word need not be its most probable one.
                    first = label_probabilities.clone()
                    if not KINDS[self.schemes[task]].is_number:
                        first.scatter_add_(1, chosen[rows, number, None], torch.ones(len(first), 1))
                    ranked = first.topk(probabilities.shape[1], dim=1).indices
                    numbers[places] = ranked
                    probabilities[places] = label_probabilities.gather(1, ranked)
        return best

    def _truecased(self, sentences: Sequence[Sentence]) -> Sequence[Sentence]:
        if not self.config.truecase:
            return sentences
        # Imported here: it loads a large model, which only runs that used it need.
        from core.corpora.preparation import truecase

        return truecase(sentences)


def _word_tags(labels: Sequence[str], probabilities: Tensor, numbers: Tensor) -> list[WordTag]:
    """A task's answers, from the probabilities and numbers (N, top) of the best labels of N words."""
    names = np.asarray(labels, dtype=object)[numbers.T.numpy()].tolist()
    ranks = [list(zip(*rank, strict=True)) for rank in zip(names, probabilities.T.tolist(), strict=True)]
    return [WordTag(ranked[0][0], ranked[0][1], ranked) for ranked in zip(*ranks, strict=True)]


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Compute with so many threads, and leave their number as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
