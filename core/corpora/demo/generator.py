"""Derives sentences from the demo grammar: words, POS, chunks and entities come out of one derivation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import pairwise
from random import Random

from core.corpora.demo.notation import Alternative, Entry, Lexicon, Rules, WordList, parse
from core.corpora.types import Sentence, Split


def below(random: Random, end: int) -> int:
    """A whole number from 0 to end - 1. Only `random()` is used: its numbers are the same in every Python."""
    return int(random.random() * end)


def _whole(low: int, high: int) -> Callable[[Random], str]:
    return lambda random: f"{low + below(random, high - low + 1):,}"


def _hundreds(low: int, high: int) -> Callable[[Random], str]:
    return lambda random: f"{(low + below(random, high - low + 1)) * 100:,}"


def _decimal(low: float, high: float, digits: int) -> Callable[[Random], str]:
    return lambda random: f"{low + random.random() * (high - low):,.{digits}f}"


def _score(least: int, lost_below: int, margin_below: int) -> Callable[[Random], str]:
    def draw(random: Random) -> str:
        lost = least + below(random, lost_below)
        return f"{lost + 1 + below(random, margin_below)}-{lost}"

    return draw


def _drawn(random: Random) -> str:
    goals = below(random, 4)
    return f"{goals}-{goals}"


def _tennis_set(random: Random) -> str:
    lost = below(random, 6)
    return f"7-{lost}" if lost == 5 else f"6-{lost}"


def _date(random: Random) -> str:
    return f"{2004 + below(random, 20)}-{1 + below(random, 12):02d}-{1 + below(random, 28):02d}"


def _minute(random: Random) -> str:
    number = 1 + below(random, 89)
    ending = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


NUMBERS: dict[str, Callable[[Random], str]] = {
    "percent": _decimal(0.2, 14.9, 1),
    "points": _decimal(3, 98, 2),
    "index": _decimal(2100, 7900, 2),
    "price": _decimal(4, 96, 2),
    "amount": _whole(2, 95),
    "billions": _decimal(1.1, 9.8, 1),
    "dozens": _whole(11, 96),
    "hundreds": _hundreds(2, 9),
    "thousands": _hundreds(12, 480),
    "age": _whole(22, 79),
    "young-age": _whole(18, 36),
    "small": _whole(2, 12),
    "degrees": _whole(9, 28),
    "rate": _decimal(0.5, 7.5, 2),
    "ounce": _decimal(412, 455, 2),
    "kilometres": _whole(20, 160),
    "magnitude": _decimal(4.1, 7.4, 1),
    "day": _whole(1, 28),
    "year": lambda random: str(1994 + below(random, 30)),
    "old-year": lambda random: str(1931 + below(random, 50)),
    "vote": _whole(52, 412),
    "football-score": _score(0, 3, 3),
    "drawn-score": _drawn,
    "basketball-score": _score(78, 30, 22),
    "tennis-set": _tennis_set,
    "minority": _whole(11, 49),
    "goals": _whole(0, 4),
    "seconds": _decimal(10.1, 59.8, 2),
    "date": _date,
    "minute": _minute,
}
"""By name, what the grammar's `$name` draws: a plausible number, date or score."""


_START = "Sentence"
_HEADLINE = "CAPITALS"
"""A mark, not a word: the sentence that holds it is written in capitals."""

# Of every ten names, six are for all splits, two are kept for dev and two for test.
_TENTHS: dict[Split, tuple[int, ...]] = {"train": (), "dev": (6, 7), "test": (8, 9)}
_KEPT_BACK = 6
# How often dev and test use a name of their own, where the list has any.
_OWN_NAME = 0.35
# How often a word already used in the sentence is drawn again before it is let pass.
_TRIES = 8

_PRONOUNS = {
    "he": {"m": ("he", "PRP"), "f": ("she", "PRP")},
    "him": {"m": ("him", "PRP"), "f": ("her", "PRP")},
    "his": {"m": ("his", "PRP$"), "f": ("her", "PRP$")},
}
_GENDERED = {"first.male": "m", "first.female": "f", "Mr.": "m", "Ms.": "f"}
_VOWEL = re.compile(r"(?!eu|uni|one|use|u\.s|uk)[aeiou]|hour|honest|heir|(8|11|18)(\D|$)|mp$", re.IGNORECASE)


@dataclass
class _Draft:
    """A sentence while it is derived: a row of word, POS, chunk and entity label per word."""

    split: Split
    rows: list[tuple[str, str, str, str]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=lambda: {"chunk": "O", "entity": "O"})
    gender: str = ""
    capitals: bool = False

    def add(self, word: str, tag: str) -> None:
        if word == _HEADLINE:
            self.capitals = True
            return
        self.rows.append((word, tag, self.labels["chunk"], self.labels["entity"]))
        self.labels = {kind: label.replace("B-", "I-", 1) for kind, label in self.labels.items()}


class Generator:
    """A source of sentences, the same for the same seed on every machine."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._rules, self._lexicon = grammar()

    def sentence(self, split: Split) -> Sentence:
        """One sentence with tasks pos, chunk and ner; names are those that the split may use."""
        return self.phrase(_START, split)

    def phrase(self, rule: str, split: Split = "train") -> Sentence:
        """What one rule of the grammar makes, as if it were a sentence."""
        draft = _Draft(split)
        self._derive(rule, draft)
        return _finished(draft)

    def _derive(self, name: str, draft: _Draft) -> None:
        if name == "first.same":
            name = {"m": "first.male", "f": "first.female"}[self._gender(draft)]
        if name in NUMBERS:
            draft.add(NUMBERS[name](self._random), "JJ" if name == "minute" else "CD")
        elif name in _PRONOUNS:
            draft.add(*_PRONOUNS[name][self._gender(draft)])
        elif name in self._lexicon:
            draft.gender = draft.gender or _GENDERED.get(name, "")
            for word, tag in self._entry(name, self._lexicon[name], draft):
                draft.add(word, tag)
        else:
            self._write_out(self._alternative(name), draft)

    def _gender(self, draft: _Draft) -> str:
        """That of the first person in the sentence; drawn where there is none yet."""
        draft.gender = draft.gender or ("m" if self._random.random() < 0.5 else "f")
        return draft.gender

    def _write_out(self, alternative: Alternative, draft: _Draft) -> None:
        for symbol in alternative.symbols:
            if symbol.kind == "word":
                draft.gender = draft.gender or _GENDERED.get(symbol.text, "")
                draft.add(symbol.text, symbol.tag)
            elif symbol.kind == "ref":
                if symbol.chance == 100 or self._random.random() * 100 < symbol.chance:
                    self._derive(symbol.text, draft)
            else:
                action, _, kind = symbol.kind.partition("-")
                draft.labels[kind] = f"B-{symbol.text}" if action == "open" else "O"

    def _alternative(self, name: str) -> Alternative:
        alternatives = self._rules[name]
        left = self._random.random() * sum(alternative.weight for alternative in alternatives)
        for alternative in alternatives:
            left -= alternative.weight
            if left < 0:
                return alternative
        return alternatives[-1]

    def _entry(self, name: str, words: WordList, draft: _Draft) -> Entry:
        """A lexicon entry, not one that the sentence has already where that can be helped."""
        entries = words.entries
        if words.proper:
            entries = self._for_split(entries, draft.split)
        for _ in range(_TRIES):
            entry = entries[below(self._random, len(entries))]
            lemma = " ".join(word for word, _ in entry)
            if lemma not in draft.used:
                break
        draft.used.add(lemma)
        return entry

    def _for_split(self, entries: tuple[Entry, ...], split: Split) -> tuple[Entry, ...]:
        own = tuple(entry for place, entry in enumerate(entries) if place % 10 in _TENTHS[split])
        if own and self._random.random() < _OWN_NAME:
            return own
        return tuple(entry for place, entry in enumerate(entries) if place % 10 < _KEPT_BACK)


def _finished(draft: _Draft) -> Sentence:
    words, tags, chunks, entities = map(list, zip(*draft.rows, strict=True))
    for place, following in enumerate(words[1:]):
        if words[place] in ("a", "A") and _VOWEL.match(following):
            words[place] += "n"
    for place, (tag_before, tag) in enumerate(pairwise(tags)):
        if tag == "POS" and words[place].endswith("s") and tag_before in ("NNS", "NNPS"):
            words[place + 1] = "'"
    for place, before in enumerate(["``", *words[:-1]]):
        if before == "``":
            words[place] = words[place][0].upper() + words[place][1:]
    if draft.capitals:
        words = [word.upper() for word in words]
    return Sentence(tuple(words), {"pos": tuple(tags), "chunk": tuple(chunks), "ner": tuple(entities)})


@cache
def grammar() -> tuple[Rules, Lexicon]:
    """All rules and all lists of words, by name."""
    rules: Rules = {}
    lexicon: Lexicon = {}
    for file in resources.files("core.corpora.demo").iterdir():
        if file.name.endswith(".txt"):
            more_rules, more_lists = parse(file.read_text(encoding="utf-8"))
            rules |= more_rules
            lexicon |= more_lists
    return rules, lexicon
