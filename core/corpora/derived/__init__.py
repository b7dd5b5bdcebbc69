"""Corpora made from others, named `[KIND:]BASE[?key=value&key=value]`; BASE is one corpus, or some with `+`.

A new kind is a `Kind` in a file here and an entry of KINDS.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.corpora.catalogue import find_folder
from core.corpora.derived.kinds import APART, JOINED, SAMPLED, Kind, Options
from core.corpora.derived.simulated import SIMULATED
from core.corpora.types import Corpus
from core.errors import CorpusError

__all__ = ["KINDS", "Kind", "Options", "Recipe", "is_derived", "recipe"]

KINDS: dict[str, Kind] = {kind.name: kind for kind in (SAMPLED, APART, SIMULATED, JOINED)}
"""By name; a name without a kind is a sample."""


# Two letters at least: C:\corpora is a folder.
_NAME = re.compile(r"(?:(?P<kind>[a-z]{2,}):)?(?P<base>[^?]*)(?:\?(?P<options>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Recipe:
    """How a corpus is made: of which bases (joined if there are several), by which kind, with which options
    (`options_text` as they were written).
    """

    kind: Kind
    bases: tuple[str, ...]
    options: Options
    options_text: str = ""

    @property
    def name(self) -> str:
        """The name that says this."""
        return (f"{self.kind.name}:" if self.kind.name else "") + "+".join(self.bases) + self.options_text

    def tasks(self, base: Sequence[str]) -> dict[str, str]:
        """Each task of the made corpus and the task of the base that it comes from."""
        return dict(self.kind.tasks(base, self.options))

    def make(self, base: Corpus, seed: int) -> Corpus:
        """The corpus, drawn with that seed, labels not counted yet. Raises CorpusError."""
        return self.kind.derive(replace(base, name=self.name), self.options, seed)


def is_derived(name: str) -> bool:
    """Whether the name has a kind or options (a folder of that very name is for the caller to look for)."""
    match = _NAME.fullmatch(name)
    return match is not None and (match["kind"] is not None or match["options"] is not None)


def recipe(name: str) -> Recipe:
    """What a derived corpus's name says.

    Raises CorpusError where there is no such kind or option, or a value is out of range.
    """
    match = _NAME.fullmatch(name)
    bases = _bases(match["base"]) if match is not None else ()
    if match is None or not all(bases):
        raise CorpusError(
            f"'{name}' names no corpus to derive from; write [KIND:]CORPUS[?key=value&key=value]."
        )
    if (kind := KINDS.get(match["kind"] or "")) is None:
        known = ", ".join(filter(None, KINDS))
        raise CorpusError(f"There is no kind of corpus '{match['kind']}'; the kinds are {known}.")
    if kind is JOINED and len(bases) < 2:
        raise CorpusError(f"'{name}' joins one corpus alone; name two or more, as joined:A+B.")
    text = match["options"]
    return Recipe(kind, bases, _options(name, kind, text), "" if text is None else f"?{text}")


def _bases(text: str) -> tuple[str, ...]:
    """The corpora named there; a folder may have a + in its name."""
    return (text,) if find_folder(text) is not None else tuple(text.split("+"))


def _options(name: str, kind: Kind, text: str | None) -> Options:
    values = {}
    for pair in text.split("&") if text is not None else ():
        key, _, value = pair.partition("=")
        if key not in kind.options:
            whose = f"A corpus of the kind {kind.name}" if kind.name else "A corpus without a kind"
            raise CorpusError(f"{name}: {whose} has no option '{key}'; it has {', '.join(kind.options)}.")
        if key in values:
            raise CorpusError(f"{name}: {key} is given twice; give it once.")
        try:
            values[key] = kind.options[key].read(value)
        except ValueError as error:
            raise CorpusError(f"{name}: {key} must be {error}, not '{value}'.") from None
    return values
