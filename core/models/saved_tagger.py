"""A finished run as a tagger of free text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from core.config import RunConfig
from core.encoding.batches import IGNORED, Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import SubwordTokenizer
from core.models.tagger import MultiTaskTagger
from core.tagging import TaggedSentence, WordTag
from core.training.device import ALL_THREADS

__all__ = ["SavedTagger"]

_BATCH = 32  # windows tagged at once
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
        blank = np.full((len(text.firsts), len(self._tasks)), IGNORED, dtype=np.int64)
        logits = torch.zeros(len(text.firsts), self.model.heads.weight.shape[0])
        with _threads(1 if len(text.firsts) <= _FEW_WORDS else ALL_THREADS):
            for batch in Batches(text, blank, _BATCH, self.tokenizer.pad).by_length():
                logits[batch.words] = self.model(batch)
        by_task = {
            task["name"]: self._word_tags(logits[:, rows], task["labels"], top)
            for task, rows in zip(self._tasks, self.model.heads.slices, strict=True)
        }
        starts = text.sentences
        return [
            TaggedSentence(
                own, {task: tuple(tags[starts[k] : starts[k + 1]]) for task, tags in by_task.items()}
            )
            for k, own in enumerate(words)
        ]

    def _cased(self, sentences: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        if not self.config.truecase:
            return sentences
        # Imported here: it loads a large model, which only runs that used it need.
        from core.corpora.truecasing import truecase
        from core.corpora.types import Sentence

        return [cased.tokens for cased in truecase([Sentence(words, {}) for words in sentences])]

    @staticmethod
    def _word_tags(logits: torch.Tensor, labels: Sequence[str], top: int) -> list[WordTag]:
        best = torch.softmax(logits, dim=1).topk(min(top, len(labels)), dim=1)
        tags = []
        for shares, places in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            ranked = tuple((labels[place], share) for place, share in zip(places, shares, strict=True))
            tags.append(WordTag(ranked[0][0], ranked[0][1], ranked))
        return tags


@contextmanager
def _threads(number: int) -> Iterator[None]:
    """Computes with so many threads, and leaves their number as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
