"""Truecasing: which sentences, which tokens, and a pickle that can call nothing."""

from __future__ import annotations

import io
import pickle

import pytest

from core.corpora.preparation import _TwoNamesUnpickler, all_capitals, truecase
from core.corpora.types import Sentence

pytest.importorskip("truecase", reason="the package truecase is not installed here")


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ("SOCCER - JAPAN GET LUCKY WIN", True),
        ("BOSTON 1996-08-22", True),
        ("U.S. 3 -", False),
        ("JAPAN get LUCKY WIN", False),
        ("1 , 2 .", False),
        ("McDonald SAID", False),
    ],
)
def test_a_sentence_qualifies_by_its_alphabetic_tokens(tokens: str, expected: bool) -> None:
    assert all_capitals(tokens.split()) is expected


def test_case_is_restored_and_length_and_other_tokens_kept() -> None:
    labels = {"pos": ("NN", ":", "NNP", "VBP", "JJ", "NN", ",", "CD")}
    shouted = Sentence(("SOCCER", "-", "JAPAN", "GET", "LUCKY", "WIN", ",", "U.S."), labels, part="a")
    spoken = Sentence(("Japan", "won"), {"pos": ("NNP", "VBD")})
    restored, untouched = truecase([shouted, spoken])
    assert restored.tokens == ("Soccer", "-", "Japan", "get", "lucky", "win", ",", "U.S.")
    assert (restored.labels, restored.part) == (labels, "a")
    assert untouched is spoken


def test_a_pickle_that_names_anything_else_is_refused() -> None:
    for harmful in (print, pickle.loads, __import__("os").system):
        with pytest.raises(pickle.UnpicklingError, match="is not allowed"):
            _TwoNamesUnpickler(io.BytesIO(pickle.dumps(harmful))).load()
    assert _TwoNamesUnpickler(io.BytesIO(pickle.dumps({"a": {1, 2}}, protocol=3))).load() == {"a": {1, 2}}
