"""A finished run as a tagger of free text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from core.config import RunConfig
from core.encoding.batches import AT_ONCE, Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import SubwordTokenizer
from core.models.tagger import MultiTaskTagger
from core.tagging import TaggedSentence, WordTag
from core.training.device import ALL_THREADS

__all__ = ["SavedTagger"]

_FEW_WORDS = (
    500  # so few are tagged as fast by one thread, and several models then do not wait for each other
)


class SavedTagger:
    """Tags sentences with every task of a finished run."""

    def __init__(
        self,
        config: RunConfig,
        tasks: Sequence[Mapping[str, Any]],
        model: MultiTaskTagger,
        tokenizer: SubwordTokenizer,
    ) -> None:
        self.config = config
        self._tasks = tasks
        self.model = model
        self.tokenizer = tokenizer

    @property
    def schemes(self) -> Mapping[str, str]:
        return {task["name"]: task["scheme"] for task in self._tasks}

    @property
    def labels(self) -> Mapping[str, Sequence[str]]:
        return {task["name"]: task["labels"] for task in self._tasks}

    @torch.inference_mode()
    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        """Every task's labels for every word, with the `top` most probable labels of each."""
        words = [tuple(sentence) for sentence in sentences]
        text = encode(self._cased(words), self.tokenizer, self.config.max_length)
        number = len(text.firsts)
        # Probabilities and labels (N, top) of each task; never all labels' of a whole text.
        best = [
            (torch.zeros(number, kept), torch.zeros(number, kept, dtype=torch.int64))
            for kept in (min(top, len(task["labels"])) for task in self._tasks)
        ]
        batches = Batches(text, np.zeros((number, 0), dtype=np.int64), 1, self.tokenizer.pad)
        with _threads(1 if number <= _FEW_WORDS else ALL_THREADS):
            for batch in batches.by_length(AT_ONCE["cpu"]):
                logits = self.model(batch)
                for (shares, places), rows in zip(best, self.model.heads.slices, strict=True):
                    found = torch.softmax(logits[:, rows], dim=1).topk(shares.shape[1], dim=1)
                    shares[batch.words], places[batch.words] = found.values, found.indices
        by_task = {
            task["name"]: _word_tags(task["labels"], *own)
            for task, own in zip(self._tasks, best, strict=True)
        }
        starts = text.sentences.tolist()
        return [
            TaggedSentence(own, {task: tuple(tags[start:end]) for task, tags in by_task.items()})
            for own, start, end in zip(words, starts[:-1], starts[1:], strict=True)
        ]

    def _cased(self, sentences: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        if not self.config.truecase:
            return sentences
        # Imported here: it loads a large model, which only runs that used it need.
        from core.corpora.truecasing import truecase
        from core.corpora.types import Sentence

        return [cased.tokens for cased in truecase([Sentence(words, {}) for words in sentences])]


def _word_tags(labels: Sequence[str], shares: torch.Tensor, places: torch.Tensor) -> list[WordTag]:
    """A task's answers, from the probabilities and numbers (N, top) of the best labels of N words."""
    names = np.asarray(labels, dtype=object)[places.T.numpy()].tolist()
    ranks = [list(zip(*rank, strict=True)) for rank in zip(names, shares.T.tolist(), strict=True)]
    return [WordTag(ranked[0][0], ranked[0][1], ranked) for ranked in zip(*ranks, strict=True)]


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Computes with so many threads, and leaves their number as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
