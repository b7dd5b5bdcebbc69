"""Corpora made from others, named `[KIND:]BASE[?key=value&key=value]`; BASE is one corpus, or some with `+`.

A new kind is a `CorpusRecipe` in a file here and an entry of RECIPES.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from core.corpora.catalogue.hub import OPTIONS, PREFIX, hub_name_in, is_hub
from core.corpora.catalogue.names import find_folder
from core.corpora.derived.recipes import Apart, CorpusRecipe, Joined, Sampled
from core.corpora.derived.simulated import Simulated
from core.corpora.types import Corpus
from core.errors import CorpusError

RECIPES: dict[str, type[CorpusRecipe]] = {
    recipe.name: recipe for recipe in (Sampled, Apart, Simulated, Joined)
}
"""By name; a name without a kind is a sample."""


# Two letters at least: C:\corpora is a folder.
_NAME = re.compile(rf"(?:(?P<kind>(?!{PREFIX})[a-z]{{2,}}):)?(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Derivation:
    """How a derived corpus is made: by a recipe with its options, from one base or several joined.

    options_text    the options as they were written
    """

    recipe: CorpusRecipe
    bases: tuple[str, ...]
    options_text: str = ""

    @property
    def name(self) -> str:
        """The name of the derived corpus."""
        kind = f"{self.recipe.name}:" if self.recipe.name else ""
        text = self.options_text
        if "?" in self.bases[-1]:  # it has options of its own
            text = text.replace("?", "&", 1)
        return kind + "+".join(self.bases) + text

    def make(self, base: Corpus, seed: int) -> Corpus:
        """The corpus, drawn with that seed, labels not counted yet. Raises CorpusError."""
        return self.recipe.make(replace(base, name=self.name), seed)


def is_derived(name: str) -> bool:
    """Whether the name has a kind or options, which are not the options of a dataset.

    The caller looks for a folder of exactly this name.
    """
    match = _NAME.fullmatch(name)
    assert match is not None
    rest: str = match["rest"]
    has_more = bool(hub_name_in(rest)[1]) if is_hub(rest) else "?" in rest
    return match["kind"] is not None or has_more


def _parts(name: str) -> tuple[str | None, tuple[str, ...], str]:
    """The kind, the bases and the options, `?key=value&key=value`, of a name. A dataset keeps its own."""
    match = _NAME.fullmatch(name)
    assert match is not None
    rest = match["rest"]
    whole, mark, options = rest.partition("?")
    # A folder may have a + in its name.
    if not is_hub(rest) and find_folder(whole) is not None:
        return match["kind"], (whole,), mark + options
    bases = []
    while True:
        base, rest = hub_name_in(rest) if is_hub(rest) else _base_in(rest)
        bases.append(base)
        if not rest.startswith("+"):
            break
        rest = rest[1:]
    if is_hub(bases[-1]) and rest:
        pairs = rest[1:].split("&")
        own = [pair for pair in pairs if pair.partition("=")[0] in OPTIONS]
        for pair in own:
            bases[-1] += f"{'&' if '?' in bases[-1] else '?'}{pair}"
        others = [pair for pair in pairs if pair not in own]
        rest = f"?{'&'.join(others)}" if others else ""
    return match["kind"], tuple(bases), rest


def _base_in(text: str) -> tuple[str, str]:
    end = next((position for position, character in enumerate(text) if character in "+?"), len(text))
    return text[:end], text[end:]


def derivation(name: str) -> Derivation:
    """How the derived corpus of this name is made.

    Raises CorpusError where there is no such kind or option, or a value is out of range.
    """
    kind_name, bases, written = _parts(name)
    if not all(bases):
        raise CorpusError(
            f"'{name}' names no corpus to derive from; write [KIND:]CORPUS[?key=value&key=value]."
        )
    if (recipe := RECIPES.get(kind_name or "")) is None:
        kinds = ", ".join(filter(None, RECIPES))
        raise CorpusError(f"There is no kind of corpus '{kind_name}'; the kinds are {kinds}.")
    if recipe is Joined and len(bases) < 2:
        raise CorpusError(f"'{name}' joins one corpus alone; name two or more, as joined:A+B.")
    if not written:
        return Derivation(recipe(), bases)
    options: dict[str, str] = {}
    for pair in written[1:].split("&"):
        key, _, value = pair.partition("=")
        if not key:
            raise CorpusError(f"{name}: an option has no name; write ?key=value&key=value.")
        if key in options:
            raise CorpusError(f"{name}: {key} is given twice; give it once.")
        options[key] = value
    return Derivation(recipe.read(name, options), bases, written)
