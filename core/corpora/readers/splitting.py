"""Free text split into sentences and words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

# Rules of our own instead of pysbd 0.3.4: that drops characters it uses as marks inside (a property test here
# forbids it), and its time grows with the square of the text: 25 s for 72 kB, where these take 0.05 s. Of the
# cases of tests/unit/corpora/test_splitting.py sentencex 1.0 splits 8 of 11 as meant, NLTK's tokenizers 6 and
# 7 of 12 (addresses, typographic apostrophes, other scripts); importing NLTK takes seconds.

# Abbreviations that a name or a number follows: their point never ends a sentence.
_TITLE_WORDS = """
    adm brig capt cmdr col cpl dr fig gen gov hon jr lt maj mme mr mrs ms mt no nos op pp prof rep rev sen sgt
    st vs jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e cf approx z.b d.h
"""
# Abbreviations that may also end one: it does where a word follows that often begins a sentence.
_OTHER_WORDS = "ave bros calif co corp dept est etc fla inc ltd mass mo sr univ va a.m p.m al"
_BEGINNING_WORDS = """
    a after all an and as at but by during for from he her his however i if in it its last meanwhile more most
    no on one our she since so some that the their there these they this those to under we what when while who
    with yesterday you
"""
_TITLES, _OTHERS = frozenset(_TITLE_WORDS.split()), frozenset(_OTHER_WORDS.split())
_BEGINNERS = frozenset(_BEGINNING_WORDS.split())

# Not to be seen, and no part of a word: marks of direction or byte order, soft hyphens, zero-width spaces.
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_ADDRESS = r"https?://[^\s<>\"]*[\w/]|www\.[^\s<>\"]*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_EMOJI = "[\u2600-\u27bf\U0001f000-\U0001faff]"
_EMOJI_SEQUENCE = (
    "[\U0001f1e6-\U0001f1ff]{2}|"
    f"{_EMOJI}[\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d{_EMOJI}[\ufe0f\U0001f3fb-\U0001f3ff]*)*"
)
_CLITIC = re.compile(r"(.+?)(n['’]t|['’](?:s|re|ve|ll|d|m))", re.IGNORECASE)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")

# Where a sentence may end: points or marks, what closes behind them, then space and the next word.
_END = re.compile(r"([.!?…]+)[\"'”’»)\]]*(?=\s+(\S+))|[。！？।]+[”’」』）]*")
_OPENING = "\"'“‘«([„"
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{3}")


def split_sentences(text: str) -> list[list[str]]:
    """The words of each sentence of a free text, by English rules that do no harm elsewhere.

    Scripts written without spaces (Chinese, Japanese, Thai) are split into sentences, not into words.
    An empty line ends a sentence. So does the end of a line, unless the next goes on in lower case, as lines
    that were wrapped do.
    """
    pieces = [piece for line in _joined_lines(_INVISIBLE.sub("", text)) for piece in _cut(line)]
    return [words for words in map(split_words, pieces) if words]


def is_blank(text: str) -> bool:
    """Whether the text holds nothing that can be seen: no more than spaces, controls and invisible marks."""
    return all(unicodedata.category(mark) in ("Cc", "Cf", "Zl", "Zp", "Zs") for mark in text)


class PlacedWord(NamedTuple):
    """A word and its place: the characters of the text from `start` up to, not including, `end`."""

    word: str
    start: int
    end: int


def placed_sentences(text: str) -> list[list[PlacedWord]]:
    """The sentences of `split_sentences`, with the place of each word in the text."""
    return place_words(text, split_sentences(text))


def place_words(
    text: str, sentences: Sequence[Sequence[str]], *, has_invisible: bool = False
) -> list[list[PlacedWord]]:
    """The words of sentences that a text was split into, with the place of each in the text.

    The functions here that split leave out marks that are not to be seen; `has_invisible`: these words still
    have them, as those of `given_sentences` do. Raises ValueError where the words are not those of the text.
    """
    seen, kept = text, list(range(len(text)))
    if not has_invisible:
        seen = _INVISIBLE.sub("", text)
        kept = [position for position, mark in enumerate(text) if not _INVISIBLE.match(mark)]
    end = 0

    def placed(word: str) -> PlacedWord:
        nonlocal end
        start = seen.index(word, end)
        end = start + len(word)
        return PlacedWord(word, kept[start], kept[end - 1] + 1)

    return [list(map(placed, words)) for words in sentences]


def joined_words(words: Sequence[str]) -> tuple[str, list[PlacedWord]]:
    """The words with a space between them, and the place of each in that text."""
    ends = list(itertools.accumulate(len(word) + 1 for word in words))
    places = [PlacedWord(word, end - 1 - len(word), end - 1) for word, end in zip(words, ends, strict=True)]
    return " ".join(words), places


def split_words(text: str) -> list[str]:
    """Words and punctuation marks of one sentence.

    Abbreviations keep their point and numbers their marks; clitics ('s, n't) are words of their own.
    """
    words: list[str] = []
    text = _INVISIBLE.sub("", text).strip()
    position = 0
    for match in _word().finditer(text):
        word = match[0]
        if match.start() < position:
            continue  # the point that an abbreviation before has taken
        position = match.end()
        # A lone letter before the very last point is a word (vitamin C.), before any other an initial.
        last = position + 1 >= len(text)
        is_one_point = text.startswith(".", position) and not text.startswith("..", position)
        if is_one_point and _abbreviates(word, last):
            word, position = word + ".", position + 1
        clitic = None if "@" in word or "/" in word else _CLITIC.fullmatch(word)
        words += clitic.groups() if clitic else (word,)
    return words


def given_sentences(text: str) -> list[list[str]]:
    """The sentences of a text that is already split: words between spaces, a sentence a line.

    Where no line holds more than one, words stand below each other, and an empty line ends a sentence.
    """
    lines = [line.split() for line in text.splitlines()]
    if sum(map(bool, lines)) < 2 or any(len(line) > 1 for line in lines):
        return [line for line in lines if line]
    sentences: list[list[str]] = [[]]
    for line in lines:
        if line:
            sentences[-1] += line
        elif sentences[-1]:
            sentences.append([])
    return [sentence for sentence in sentences if sentence]


def has_unspaced_script(text: str) -> bool:
    """Whether part of the text is in a script that sets no spaces between words."""
    return _UNSPACED.search(text) is not None


def _abbreviates(word: str, last: bool) -> bool:
    if _INITIALS.fullmatch(word):
        return "." in word or (word.isupper() and not last)
    return word.casefold() in _OTHERS or (word.casefold() in _TITLES and not last)


def _joined_lines(text: str) -> Iterator[str]:
    """The lines, with each line that begins in lower case joined to the one before."""
    current = ""
    for line in map(str.strip, text.splitlines()):
        if current and line[:1].islower():
            current += " " + line
            continue
        if current:
            yield current
        current = line
    if current:
        yield current


def _cut(line: str) -> Iterator[str]:
    """The sentences of a line."""
    start = 0
    for end in _END.finditer(line):
        if end[1] is None or _ends(line[start : end.start()], end[1], end[2]):
            yield line[start : end.end()]
            start = end.end()
    if line[start:].strip():
        yield line[start:]


def _ends(before: str, marks: str, following: str) -> bool:
    """Whether a sentence ends with these marks, between the text before and the word that follows."""
    following = following.lstrip(_OPENING)
    if following[:1].islower():
        return False
    if marks != ".":
        return True
    words = before.split()
    word = words[-1].lstrip(_OPENING) if words else ""
    if not words or (len(words) == 1 and word.isdecimal()):
        return False  # the number of a list's entry
    begins = re.split(r"\W", following.casefold(), maxsplit=1)[0] in _BEGINNERS
    if word.casefold() in _TITLES:
        # No is also a word, May and the like too; only before a number or a name are they cut short.
        return word.casefold() == "no" and not following[:1].isdecimal()
    if word.casefold() in _OTHERS or (_INITIALS.fullmatch(word) and "." in word):
        return begins
    return not (_INITIALS.fullmatch(word) and word.isupper() and word != "I") or begins


@cache
def _word() -> re.Pattern[str]:
    """Compiled on first use: the marks that combine with letters (accents, vowel signs) are looked up.

    Python's `\\w` leaves them out, which would cut Hindi words and decomposed accents in pieces.
    """
    marks = [code for code in range(0x300, 0xFE00) if unicodedata.category(chr(code))[0] == "M"]
    letter = rf"[\w{''.join(map(chr, marks))}]"
    inner = r"(?:[-'’.&]|(?<=\d)[,:/](?=\d)|\u200c|\u200d)"
    return re.compile(
        rf"{_ADDRESS}|{letter}+(?:{inner}{letter}+)*|{_EMOJI_SEQUENCE}|\.{{2,}}|-{{2,}}|[^\w\s]"
    )
