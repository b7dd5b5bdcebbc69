"""Restores the case of sentences written all in capitals, as the dissertation does (its appendix A.4).

A sentence qualifies when each of its alphabetic tokens is all upper case and there is at least one. Only its
alphabetic tokens are replaced, so tokens and labels stay aligned. The `truecase` package's own loader
unpickles whatever its file names; here its data file may name two harmless classes and nothing else.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from core.corpora.types import Sentence

__all__ = ["all_capitals", "truecase"]

_ALLOWED = {("builtins", "set"), ("nltk.probability", "FreqDist")}
_TABLES = ("uni_dist", "backward_bi_dist", "forward_bi_dist", "trigram_dist", "word_casing_lookup")


def truecase(sentences: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences, those all in capitals with their case restored. The number of tokens never changes."""
    return tuple(
        replace(sentence, tokens=_restored(sentence.tokens)) if all_capitals(sentence.tokens) else sentence
        for sentence in sentences
    )


def all_capitals(tokens: Sequence[str]) -> bool:
    """Whether each alphabetic token is all upper case, and there is one."""
    words = [token for token in tokens if token.isalpha()]
    return bool(words) and all(word.isupper() for word in words)


def _restored(tokens: Sequence[str]) -> tuple[str, ...]:
    places = [place for place, token in enumerate(tokens) if token.isalpha()]
    restored = _truecaser().get_true_case_from_tokens([tokens[place] for place in places])
    result = list(tokens)
    for place, token in zip(places, restored, strict=True):
        result[place] = token
    return tuple(result)


class _TwoNamesUnpickler(pickle.Unpickler):
    """Loads the frequency tables and refuses every other name a pickle could call."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"truecase's data names {module}.{name}, which is not allowed")
        return super().find_class(module, name)


@cache
def _truecaser() -> Any:
    """truecase's TrueCaser with its English tables: some 2 s and 340 MB, once per process."""
    from truecase import TrueCaser

    with resources.files("truecase").joinpath("data/english.dist").open("rb") as file:
        tables = _TwoNamesUnpickler(file).load()
    # Its __init__ would read the file with a plain pickle.load.
    caser = TrueCaser.__new__(TrueCaser)
    for name in _TABLES:
        setattr(caser, name, tables[name])
    return caser
