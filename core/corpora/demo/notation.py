"""The notation that the demo grammar is written in, and its parser.

A grammar file holds rules: a name at the start of a line, then one alternative a line, indented:

    Result
        3  [NP <ORG $team > ] [VP $beat.VBD ] [NP <ORG $team > ] [NP $score ]
           [NP <ORG $team > ] [VP $draw.VBD ] [PP with/IN ] [NP <ORG $team > ] $when?40

A leading number is the alternative's weight (1 where there is none). `word/TAG` is a word, `$name` a rule, a
lexicon entry or a number to be drawn, `$name?` one that comes half of the time and `$name?40` in 40 of 100.
`[NP ... ]` makes a chunk and `<LOC ... >` an entity of the words inside. A `#` at the start of a line opens a
comment.

A lexicon file holds one list a line, entries set apart by `|`:

    verb rise: rise rises rose risen rising | climb      rise.VB .VBP .VBZ .VBD .VBN .VBG; climb is regular
    noun deal: deal | loss losses                        deal.NN and deal.NNS
    name city: Boston | New York                         proper nouns, partly kept for dev and test
    word soon RB: soon | at once                         every word has the tag
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "ref", "open-chunk", "close-chunk", "open-entity", "close-entity"]


@dataclass(frozen=True, slots=True)
class Symbol:
    """One sign of an alternative. `text` is a word, a name to draw, or the type of a chunk or entity."""

    kind: Kind
    text: str = ""
    tag: str = ""
    chance: int = 100


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to write a rule out."""

    weight: float
    symbols: tuple[Symbol, ...]


Entry = tuple[tuple[str, str], ...]
"""A lexicon entry: its words, each with its tag."""


@dataclass(frozen=True, slots=True)
class WordList:
    """Entries to draw from. `proper` lists are partly kept for dev and test.

    Entries of one lemma share their place in all of its lists (rise.VB, rise.VBD).
    """

    entries: tuple[Entry, ...]
    proper: bool = False


def parse_grammar(text: str) -> dict[str, tuple[Alternative, ...]]:
    """The rules of a grammar file. Raises ValueError with the line that cannot be read."""
    rules: dict[str, list[Alternative]] = {}
    name = ""
    for number, line in _lines(text):
        if not line[0].isspace():
            name = line.strip()
            if name in rules:
                raise ValueError(f"line {number}: rule {name} stands twice")
            rules[name] = []
            continue
        words = line.split()
        weight = 1.0
        if words[0].replace(".", "", 1).isdigit():
            weight = float(words.pop(0))
        try:
            rules[name].append(Alternative(weight, tuple(map(_symbol, words))))
        except (KeyError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error
    return {name: tuple(alternatives) for name, alternatives in rules.items()}


def parse_lexicon(text: str) -> dict[str, WordList]:
    """The lists of a lexicon file by name (`rise.VBD`, `deal.NN`, `city`).

    Raises ValueError with the line.
    """
    lists: dict[str, WordList] = {}
    for number, line in _lines(text):
        head, _, body = line.partition(":")
        kind, name, *tags = head.split()
        entries = [entry.split() for entry in body.split("|")]
        if not all(entries):
            raise ValueError(f"line {number}: an entry of {name} is empty")
        try:
            made = _made(kind, name, tags, entries)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        for key in made:
            if key in lists:
                raise ValueError(f"line {number}: list {key} stands twice")
        lists.update(made)
    return lists


def _lines(text: str) -> Iterable[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _symbol(sign: str) -> Symbol:
    if sign == "]":
        return Symbol("close-chunk")
    if sign == ">":
        return Symbol("close-entity")
    if "/" in sign:
        word, _, tag = sign.rpartition("/")
        return Symbol("word", word, tag)
    if sign.startswith("["):
        return Symbol("open-chunk", sign[1:])
    if sign.startswith("<"):
        return Symbol("open-entity", sign[1:])
    if sign.startswith("$"):
        name, optional, chance = sign[1:].partition("?")
        return Symbol("ref", name, chance=int(chance or 50) if optional else 100)
    raise ValueError(f"'{sign}' is no sign of the notation; words are written word/TAG")


def _made(kind: str, name: str, tags: list[str], entries: list[list[str]]) -> Mapping[str, WordList]:
    if kind == "verb":
        forms = [_conjugated(entry) for entry in entries]
        order = ("VB", "VBZ", "VBD", "VBN", "VBG")
        lists = {
            f"{name}.{tag}": WordList(tuple(((form[place], tag),) for form in forms))
            for place, tag in enumerate(order)
        }
        return lists | {f"{name}.VBP": WordList(tuple(((form[0], "VBP"),) for form in forms))}
    if kind == "noun":
        pairs = [_declined(entry) for entry in entries]
        return {
            f"{name}.NN": WordList(tuple(_compound(singular, "NN") for singular, _ in pairs)),
            f"{name}.NNS": WordList(tuple(_compound(plural, "NNS") for _, plural in pairs)),
        }
    if kind == "name":
        return {
            name: WordList(tuple(tuple(_proper(word) for word in entry) for entry in entries), proper=True)
        }
    if kind == "word":
        (tag,) = tags
        return {name: WordList(tuple(tuple((word, tag) for word in entry) for entry in entries))}
    raise ValueError(f"'{kind}' is no kind of list")


def _proper(word: str) -> tuple[str, str]:
    """`word` or `word/TAG` for the few words of names that are not NNP."""
    form, _, tag = word.partition("/")
    return form, tag or "NNP"


def _compound(words: str, tag: str) -> Entry:
    """`interest_rate`: every word but the last is a singular noun."""
    *modifiers, head = words.split("_")
    return (*((word, "NN") for word in modifiers), (head, tag))


def _conjugated(entry: list[str]) -> tuple[str, str, str, str, str]:
    """Base, third person, past, participle, -ing form; a verb written alone is regular."""
    if len(entry) == 5:
        base, third, past, participle, ing = entry
        return base, third, past, participle, ing
    (base,) = entry
    past = base[:-1] + "ied" if _drops_y(base) else base + ("d" if base.endswith("e") else "ed")
    ing = (base[:-1] if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) else base) + "ing"
    return base, _with_s(base), past, past, ing


def _declined(entry: list[str]) -> tuple[str, str]:
    """Singular and plural; a noun written alone is regular."""
    if len(entry) == 2:
        return entry[0], entry[1]
    (singular,) = entry
    return singular, _with_s(singular)


def _with_s(word: str) -> str:
    if _drops_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _drops_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"
