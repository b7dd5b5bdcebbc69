"""The inputs of an encoder over words: pre-trained vectors, capitalisation patterns and a character CNN.

A batch's ids number word forms (core.encoding.words); everything here is a function of the form.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from core.encoding.batches import Batch
from core.encoding.words import WordTokenizer
from core.errors import FIELD, ConfigError
from core.models.encoders import at_words
from core.models.word_vectors import WordVectors, lookup, read_vectors

CAPITALS: tuple[str, ...] = (
    "lower", "initial", "upper", "mixed", "number", "with digit", "punctuation", "other",
)  # fmt: skip
"""The eight patterns of capitalisation, in the order of their features."""

CHARACTER_SIZE, CHARACTER_FILTERS, CHARACTER_WIDTH = 16, 128, 3
_UNIFORM = 0.1  # characters start within ± this (the SC-LSTM paper, section 4.2)
_LEARNS_FORMS = threading.Lock()
_LONGEST = 64  # characters of a word that are read


def capitals(form: str) -> int:
    """Which of the patterns CAPITALS the form has."""
    letters = [character for character in form if character.isalpha()]
    if not letters:
        has_digit = any(character.isdigit() for character in form)
        return 4 if has_digit else 6 if form else 7
    if any(character.isdigit() for character in form):
        return 5
    if all(character.islower() for character in letters):
        return 0
    if all(character.isupper() for character in letters):
        return 1 if len(letters) == 1 else 2
    if form[0].isupper() and all(character.islower() for character in letters[1:]):
        return 1
    return 3 if any(character.isupper() for character in letters) else 7


@dataclass(frozen=True)
class Inventory:
    """The vocabulary of word inputs, as a checkpoint keeps it, in the order of its rows.

    It has the words with trained vectors, the words with fixed ones, and the characters of the training
    words.
    """

    trained: tuple[str, ...]
    fixed: tuple[str, ...]
    characters: tuple[str, ...]


class WordInputs(nn.Module):
    """Vectors ⊕ capitalisation ⊕ characters ⊕ context of each word: (B, L, D).

    `context_size` is the size of the contextual vectors, which batches bring; 0 where the run has none.

    Row 0 of the trained vectors is that of all words without one. Vectors of words that training never
    shows stay as they are: without a gradient an optimiser would only decay them.
    """

    fixed: Tensor

    def __init__(
        self,
        tokenizer: WordTokenizer,
        inventory: Inventory,
        dimension: int,
        *,
        tuned: bool,
        with_capitals: bool,
        with_characters: bool,
        context_size: int = 0,
    ) -> None:
        super().__init__()
        self.inventory = inventory
        self._tokenizer = tokenizer
        self.trained = nn.Parameter(torch.zeros(len(inventory.trained) + 1, dimension), requires_grad=tuned)
        self.register_buffer("fixed", torch.zeros(len(inventory.fixed), dimension))
        self._places = {word: index for index, word in enumerate(inventory.trained, 1)}
        after = len(inventory.trained) + 1
        self._places |= {word: index for index, word in enumerate(inventory.fixed, after)}
        self._characters = {character: index for index, character in enumerate(inventory.characters, 2)}
        self.with_capitals = with_capitals
        self.characters = self.filters = None
        if with_characters:  # row 0 is padding, row 1 characters that training never showed
            self.characters = nn.Embedding(len(inventory.characters) + 2, CHARACTER_SIZE, padding_idx=0)
            self.filters = nn.Conv1d(CHARACTER_SIZE, CHARACTER_FILTERS, CHARACTER_WIDTH, padding=1)
            with torch.no_grad():
                self.characters.weight[1:].uniform_(-_UNIFORM, _UNIFORM)
        self._has_context = context_size > 0
        features = dimension + len(CAPITALS) * with_capitals + CHARACTER_FILTERS * with_characters
        self.features = features + context_size
        self._place_of_form = np.zeros(0, dtype=np.int64)
        self._pattern_of_form = np.zeros(0, dtype=np.int64)
        self._spelling_of_form: list[list[int]] = []
        self.source: str | None = None
        """The source of vectors of words that the inventory lacks; None while training.
        """
        self.note: str | None = None
        """Why they cannot be looked up there."""

    @torch.no_grad()
    def start_from(self, vectors: WordVectors) -> None:
        """Take over these vectors; that of unknown words starts within ± 0.1."""
        number = {word: index for index, word in enumerate(vectors.words)}
        values = torch.from_numpy(vectors.vectors)
        self.trained[0].uniform_(-_UNIFORM, _UNIFORM)
        self.trained[1:] = values[[number[word] for word in self.inventory.trained]]
        self.fixed.copy_(values[[number[word] for word in self.inventory.fixed]])

    def forward(self, batch: Batch) -> Tensor:
        self._know_forms()
        forms, where = torch.unique(batch.ids, return_inverse=True)  # a form is computed once a batch
        numbers = forms.cpu().numpy()
        parts = [self._vectors(torch.from_numpy(self._place_of_form[numbers]).to(forms.device))]
        if self.with_capitals:
            patterns = torch.from_numpy(self._pattern_of_form[numbers]).to(forms.device)
            parts.append(nn.functional.one_hot(patterns, len(CAPITALS)).to(parts[0].dtype))
        if self.characters is not None:
            parts.append(self._spelled([self._spelling_of_form[number] for number in numbers.tolist()]))
        # Indexed by `where`, a row would get its gradients in whichever order threads come by.
        states = nn.functional.embedding(where, torch.cat(parts, dim=1))
        if not self._has_context:
            return states
        assert batch.context is not None
        return torch.cat([states, batch.context], dim=2)

    def words(self, batch: Batch) -> Tensor:
        return at_words(self(batch), batch)

    def _vectors(self, places: Tensor) -> Tensor:
        """The vectors (U, d) at these places among the trained and then the fixed ones."""
        count = len(self.trained)
        if self.training:  # no word of the training sentences has a fixed vector
            return nn.functional.embedding(places, self.trained)
        tuned = nn.functional.embedding(places.clamp(max=count - 1), self.trained)
        if not len(self.fixed):
            return tuned
        others = nn.functional.embedding((places - count).clamp(min=0), self.fixed)
        return torch.where((places < count)[:, None], tuned, others)

    def _spelled(self, spellings: Sequence[Sequence[int]]) -> Tensor:
        """The filters' responses, max-pooled over each of U spellings: (U, 128)."""
        assert self.characters is not None
        assert self.filters is not None
        # All spellings one after the other, padding between them, and what a filter sees around each of their
        # S characters: words padded to the longest would take four times as long.
        text = np.fromiter(chain.from_iterable((0, *spelling) for spelling in (*spellings, ())), np.int64)
        around = np.flatnonzero(text)[:, None] + np.arange(CHARACTER_WIDTH) - CHARACTER_WIDTH // 2
        seen = self.characters(torch.from_numpy(text[around]).to(self.trained.device))  # (S, 3, 16)
        weight = self.filters.weight.transpose(1, 2).flatten(1)
        responses = nn.functional.linear(seen.flatten(1), weight, self.filters.bias)
        return _max_pooled(responses, np.array([len(spelling) for spelling in spellings]))

    def _know_forms(self) -> None:
        """Place, pattern and spelling of the forms that the tokenizer has numbered since the last batch."""
        with _LEARNS_FORMS:  # several readers may ask one tagger at once
            if new := self._tokenizer.forms[len(self._place_of_form) :]:
                self._learn(new)

    def _learn(self, new: Sequence[str]) -> None:
        unknown = [form for form in new if form and lookup(form, self._places) is None]
        if unknown and self.source is not None:
            self._find_vectors(self.source, unknown)
        places = [lookup(form, self._places) or 0 for form in new]
        self._place_of_form = np.append(self._place_of_form, places).astype(np.int64)
        if self.with_capitals:
            self._pattern_of_form = np.append(self._pattern_of_form, [*map(capitals, new)]).astype(np.int64)
        if self.characters is not None:
            self._spelling_of_form += [
                [self._characters.get(character, 1) for character in form[:_LONGEST]] or [1] for form in new
            ]

    def _find_vectors(self, source: str, forms: Sequence[str]) -> None:
        """Add the vectors that `source` has for these forms to the fixed ones.

        Where it cannot be read any more, they and all later ones stay unknown.
        """
        needed = {*forms, *map(str.lower, forms)} - self._places.keys()
        try:
            more = read_vectors(source, needed.__contains__)
            if more.dimension != self.fixed.shape[1]:
                dimension = self.fixed.shape[1]
                raise ConfigError(
                    "vectors", f"{FIELD}: {source} now has {more.dimension} dimensions, not {dimension}."
                )
        except ConfigError as error:
            self.source = None
            self.note = f"Words that are not in this run's corpus count as unknown. {error}"
            return
        after = len(self.trained) + len(self.fixed)
        self.fixed = torch.cat([self.fixed, torch.from_numpy(more.vectors)])
        self._places |= {word: index for index, word in enumerate(more.words, after)}


def _max_pooled(responses: Tensor, lengths: NDArray[np.int64]) -> Tensor:
    """The maximum over each word of S responses (S, F), where word u has `lengths[u]` of them: (U, F).

    The gradient of a maximum reaches the first response that has it. `torch.segment_reduce` would give a
    negative gradient whole to every response that ties, as those of a repeated trigram do.
    """
    starts = lengths.cumsum() - lengths
    offsets = np.minimum(np.arange(lengths.max()), lengths[:, None] - 1)
    rows = torch.from_numpy(starts[:, None] + offsets).to(responses.device)  # (U, longest)
    with torch.no_grad():
        first = responses[rows].argmax(dim=1)
    return responses.gather(0, rows.gather(1, first))


def inventory_of(
    vectors: WordVectors, training_forms: Collection[str], all_forms: Collection[str]
) -> Inventory:
    """The words and characters that inputs for these texts need.

    A word of the training text has a trained vector, another word of the corpus a fixed one.
    """
    places = {word: index for index, word in enumerate(vectors.words)}

    def used(forms: Collection[str]) -> set[int]:
        return {index for form in forms if (index := lookup(form, places)) is not None}

    trained = used(training_forms)
    fixed = used(all_forms) - trained
    return Inventory(
        tuple(vectors.words[index] for index in sorted(trained)),
        tuple(vectors.words[index] for index in sorted(fixed)),
        tuple(sorted(set().union(*training_forms))),
    )
