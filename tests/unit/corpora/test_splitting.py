"""Free text as sentences and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpora.readers.splitting import (
    given_sentences,
    has_unspaced_script,
    joined_words,
    place_words,
    placed_sentences,
    split_sentences,
    split_words,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mr. Smith paid $12.5 million.", "Mr. Smith paid $ 12.5 million ."),
        ("The U.S. and the U.N. met Dr. A. B. Lee", "The U.S. and the U.N. met Dr. A. B. Lee"),
        ("John's can't, it’s", "John 's ca n't , it ’s"),
        ("at 10:30 a.m. on Jan. 5, 1996", "at 10:30 a.m. on Jan. 5 , 1996"),
        ("Vitamin C.", "Vitamin C ."),
        ("AT&T won 6-2 in the 3rd, 1,200 of 5/6", "AT&T won 6-2 in the 3rd , 1,200 of 5/6"),
        ("Wait ... now -- no", "Wait ... now -- no"),
        ("see https://a.b/c?d=e. or me@x.org!", "see https://a.b/c?d=e . or me@x.org !"),
        ("<script>x</script>", "< script > x < / script >"),
        ("नमस्ते दुनिया।", "नमस्ते दुनिया ।"),
        ("cafe\u0301 \u202babc\u202c", "cafe\u0301 abc"),
        ("ok 👩‍👩‍👧 🇩🇪 👍🏽", "ok 👩‍👩‍👧 🇩🇪 👍🏽"),
    ],
)  # fmt: skip
def test_words(text: str, words: str) -> None:
    assert split_words(text) == words.split(" ")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rose 3.5% to 9.8. It fell.", ["It rose 3.5 % to 9.8 .", "It fell ."]),
        ("Mr. A. Lee met Dr. Wu. They left.", ["Mr. A. Lee met Dr. Wu .", "They left ."]),
        ("He left the U.S. The rest stayed in the U.S. Treasury.", 2),
        ("“Why not?” he asked. “Go!” He went.", 3),
        ("Apple Inc. said so. I work at Apple Inc. The boss left.", 3),
        ("No. 5 won. No. That is wrong.", 3),
        ("1. First thing. 2. Second thing.", 2),
        ("A headline\nAnother one\nthat was wrapped\n\nA third", 3),
        ("我爱北京。天安门！", 2),
        ("i.e. this, e.g. That. Done", 2),
        (" \n ", []),
    ],
)
def test_sentences(text: str, sentences: list[str] | int) -> None:
    split = [" ".join(words) for words in split_sentences(text)]
    assert (len(split) if isinstance(sentences, int) else split) == sentences


def test_text_that_is_split_already() -> None:
    assert given_sentences("Mr. Lee 's\n\nx .") == [["Mr.", "Lee", "'s"], ["x", "."]]
    assert given_sentences("Mr.\nLee\n\nsings\n.\n") == [["Mr.", "Lee"], ["sings", "."]]
    assert given_sentences("Boston") == [["Boston"]]
    assert given_sentences(" \n") == []


def test_scripts_without_spaces_are_noticed() -> None:
    assert has_unspaced_script("他们在北京")
    assert not has_unspaced_script("نص عربي and 中")


@given(st.text())
def test_nothing_that_can_be_seen_is_lost(text: str) -> None:
    """But for marks of direction and the like, which no one sees."""
    unseen = set("\u00ad\u200b\u200e\u200f\u2060\ufeff") | {chr(place) for place in range(0x202A, 0x202F)}
    unseen |= {chr(place) for place in range(0x2066, 0x206A)}
    kept = "".join(word for words in split_sentences(text) for word in words)
    assert "".join(kept.split()) == "".join(
        mark for mark in text if mark not in unseen and not mark.isspace()
    )


@given(st.text() | st.text(alphabet="aB.' \n\u00ad\u200b@\U0001f600", max_size=30))
def test_words_stand_at_their_places(text: str) -> None:
    sentences = placed_sentences(text)
    assert [[word.word for word in words] for words in sentences] == split_sentences(text)
    end = 0
    for word in (word for words in sentences for word in words):
        assert end <= word.start < word.end
        assert split_sentences(text[end : word.start]) == []  # nothing that can be seen lies between
        seen = [mark for mark in text[word.start : word.end] if split_words(mark)]
        assert "".join(seen) == "".join(word.word.split())
        end = word.end


@given(st.lists(st.lists(st.text(alphabet="aB\u200b\U0001f600\u05d0", min_size=1), min_size=1)), st.data())
def test_words_that_were_given_stand_at_their_places(sentences: list[list[str]], data: st.DataObject) -> None:
    gaps = st.sampled_from([" ", "  ", "\t"])
    text = "\n".join("".join(word + data.draw(gaps) for word in words) for words in sentences)
    for words in place_words(text, sentences, has_invisible=True):
        assert [text[word.start : word.end] for word in words] == [word.word for word in words]
    for given_words in sentences:
        joined, places = joined_words(given_words)
        assert [joined[word.start : word.end] for word in places] == given_words
