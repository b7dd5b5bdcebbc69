"""The notation that the demo grammar is written in, and its parser.

A topic's file holds the words and the rules. A list of words is one line, entries set apart by `|`:

    verb rise: rise rises rose risen rising | climb      rise.VB .VBP .VBZ .VBD .VBN .VBG; climb is regular
    noun deal: deal | loss losses                        deal.NN and deal.NNS
    name city: Boston | New York                         proper nouns, partly kept for dev and test
    word soon RB: soon | at once                         every word has the tag

A rule is a name at the start of a line, then one alternative a line, indented:

    Result
        3  [NP <ORG $team > ] [VP $beat.VBD ] [NP <ORG $team > ] [NP $score ]
           [NP <ORG $team > ] [VP $draw.VBD ] [PP with/IN ] [NP <ORG $team > ] $when?40

A leading number is the alternative's weight (1 where there is none). `word/TAG` is a word, `$name` a rule, a
list or a number to be drawn, `$name?` one that comes half of the time and `$name?40` in 40 of 100.
`[NP ... ]` makes a chunk and `<LOC ... >` an entity of the words inside. A `#` at the start of a line opens a
comment.
"""

from __future__ import annotations

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


_VERB_FORMS = {"VB": 0, "VBP": 0, "VBZ": 1, "VBD": 2, "VBN": 3, "VBG": 4}

Entry = tuple[tuple[str, str], ...]
"""A lexicon entry: its words, each with its tag."""


@dataclass(frozen=True, slots=True)
class WordList:
    """Entries to draw from. `proper` lists are partly kept for dev and test.

    Entries of one lemma share their place in all of its lists (rise.VB, rise.VBD).
    """

    entries: tuple[Entry, ...]
    proper: bool = False


Rules = dict[str, tuple[Alternative, ...]]
Lexicon = dict[str, WordList]


def parse(text: str) -> tuple[Rules, Lexicon]:
    """The rules and the lists of words (`rise.VBD`, `deal.NN`, `city`) of a file, by name.

    Raises ValueError with the line that cannot be read.
    """
    rules: Rules = {}
    lexicon: Lexicon = {}
    rule = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            if line[0].isspace():
                rules[rule] += (_alternative(line.split()),)
            elif ":" in line:
                lists = _lists(line)
                if twice := lists.keys() & lexicon.keys():
                    raise ValueError(f"list {min(twice)} stands twice")
                lexicon |= lists
            else:
                rule = line.strip()
                if rule in rules:
                    raise ValueError(f"rule {rule} stands twice")
                rules[rule] = ()
        except (KeyError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error
    return rules, lexicon


def _alternative(words: list[str]) -> Alternative:
    weight = float(words.pop(0)) if words[0].replace(".", "", 1).isdigit() else 1.0
    return Alternative(weight, tuple(map(_symbol, words)))


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


def _lists(line: str) -> Lexicon:
    head, _, body = line.partition(":")
    kind, name, *tags = head.split()
    entries = [entry.split() for entry in body.split("|")]
    if not all(entries):
        raise ValueError(f"an entry of {name} is empty")
    if kind == "verb":
        forms = [_conjugated(entry) for entry in entries]
        return {
            f"{name}.{tag}": WordList(tuple(((form[place], tag),) for form in forms))
            for tag, place in _VERB_FORMS.items()
        }
    if kind == "noun":
        pairs = [_declined(entry) for entry in entries]
        return {
            f"{name}.NN": WordList(tuple(_compound(singular, "NN") for singular, _ in pairs)),
            f"{name}.NNS": WordList(tuple(_compound(plural, "NNS") for _, plural in pairs)),
        }
    if kind == "name":
        return {name: WordList(tuple(tuple(map(_proper, entry)) for entry in entries), proper=True)}
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
    singular, plural = entry if len(entry) == 2 else (*entry, _with_s(*entry))
    return singular, plural


def _with_s(word: str) -> str:
    if _drops_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


def _drops_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"
