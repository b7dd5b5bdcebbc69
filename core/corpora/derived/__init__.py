"""Corpora made from others, named `[KIND:]BASE[?key=value&key=value]`; BASE is one corpus, or some with `+`.

A new kind is a `Kind` in a file here and an entry of KINDS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from core.corpora.catalogue import find_folder
from core.corpora.derived.kinds import Apart, Joined, Kind, Sampled
from core.corpora.derived.simulated import Simulated
from core.corpora.types import Corpus
from core.errors import CorpusError

KINDS: dict[str, type[Kind]] = {kind.name: kind for kind in (Sampled, Apart, Simulated, Joined)}
"""By name; a name without a kind is a sample."""


# Two letters at least: C:\corpora is a folder.
_NAME = re.compile(r"(?:(?P<kind>[a-z]{2,}):)?(?P<base>[^?]*)(?:\?(?P<options>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Recipe:
    """How a corpus is made: of which bases (joined if there are several), by which kind with its options
    (`options_text` as they were written).
    """

    kind: Kind
    bases: tuple[str, ...]
    options_text: str = ""

    @property
    def name(self) -> str:
        """The name that says this."""
        return (f"{self.kind.name}:" if self.kind.name else "") + "+".join(self.bases) + self.options_text

    def make(self, base: Corpus, seed: int) -> Corpus:
        """The corpus, drawn with that seed, labels not counted yet. Raises CorpusError."""
        return self.kind.make(replace(base, name=self.name), seed)


def is_derived(name: str) -> bool:
    """Whether the name has a kind or options (a folder of that very name is for the caller to look for)."""
    match = _NAME.fullmatch(name)
    return match is not None and (match["kind"] is not None or match["options"] is not None)


def recipe(name: str) -> Recipe:
    """What a derived corpus's name says.

    Raises CorpusError where there is no such kind or option, or a value is out of range.
    """
    match = _NAME.fullmatch(name)
    text = match["base"] if match is not None else ""
    # A folder may have a + in its name.
    bases = (text,) if find_folder(text) is not None else tuple(text.split("+"))
    if match is None or not all(bases):
        raise CorpusError(
            f"'{name}' names no corpus to derive from; write [KIND:]CORPUS[?key=value&key=value]."
        )
    if (kind := KINDS.get(match["kind"] or "")) is None:
        known = ", ".join(filter(None, KINDS))
        raise CorpusError(f"There is no kind of corpus '{match['kind']}'; the kinds are {known}.")
    if kind is Joined and len(bases) < 2:
        raise CorpusError(f"'{name}' joins one corpus alone; name two or more, as joined:A+B.")
    if match["options"] is None:
        return Recipe(kind(), bases)
    options: dict[str, str] = {}
    for pair in match["options"].split("&"):
        key, _, value = pair.partition("=")
        if not key:
            raise CorpusError(f"{name}: an option has no name; write ?key=value&key=value.")
        if key in options:
            raise CorpusError(f"{name}: {key} is given twice; give it once.")
        options[key] = value
    return Recipe(kind.read(name, options), bases, f"?{match['options']}")
