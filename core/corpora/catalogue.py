"""The corpora known by name. A new one is one file that reads it and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.corpora.conll import CONLL2000_COLUMNS, CONLL2003_COLUMNS, conll2000, conll2003
from core.corpora.demo import DEMO_COLUMNS, DEMO_POS_COLUMNS, demo, demo_pos_a, demo_pos_b
from core.corpora.joined import both_pos, demo_both_pos
from core.corpora.types import Corpus

__all__ = ["CATALOGUE", "CorpusSpec"]


@dataclass(frozen=True)
class CorpusSpec:
    """A corpus with a name of its own.

    `columns` are those of its files (None where it is joined from others), `tasks` what it annotates.
    `hub_folders` are the folders under MRNLAB_DATA that it is read from; those missing come from the Hub.
    """

    name: str
    description: str
    columns: tuple[str, ...] | None
    tasks: tuple[str, ...]
    read: Callable[[], Corpus] = field(repr=False, compare=False)
    hub_folders: tuple[str, ...] = ()

    @property
    def needs_hub(self) -> bool:
        """Whether it comes over the network unless folders under MRNLAB_DATA hold it."""
        return bool(self.hub_folders)


CATALOGUE: dict[str, CorpusSpec] = {
    spec.name: spec
    for spec in (
        CorpusSpec(
            "demo",
            "1,800 newswire-like sentences made by MRN Lab's own grammar: POS, chunks and entities.",
            DEMO_COLUMNS,
            tasks=("pos", "chunk", "ner"),
            read=demo,
        ),
        CorpusSpec(
            "demo-pos-a",
            "Sentences of the demo grammar with its own POS tags.",
            DEMO_POS_COLUMNS,
            tasks=("pos",),
            read=demo_pos_a,
        ),
        CorpusSpec(
            "demo-pos-b",
            "Other sentences of the demo grammar, with a POS tag set that differs in a few labels.",
            DEMO_POS_COLUMNS,
            tasks=("pos",),
            read=demo_pos_b,
        ),
        CorpusSpec(
            "demo-both-pos",
            "demo-pos-a and demo-pos-b together: two tasks, each on sentences of its own.",
            None,
            tasks=("pos-a", "pos-b"),
            read=demo_both_pos,
        ),
        CorpusSpec(
            "conll2003",
            "English newswire of the CoNLL-2003 shared task: POS, chunks and entities.",
            CONLL2003_COLUMNS,
            hub_folders=("conll2003",),
            tasks=("pos", "chunk", "ner"),
            read=conll2003,
        ),
        CorpusSpec(
            "conll2000",
            "English newswire of the CoNLL-2000 shared task: POS and chunks.",
            CONLL2000_COLUMNS,
            hub_folders=("conll2000",),
            tasks=("pos", "chunk"),
            read=conll2000,
        ),
        CorpusSpec(
            "both-pos",
            "The POS tags of conll2003 and conll2000: two tasks, each on sentences of its own.",
            None,
            hub_folders=("conll2003", "conll2000"),
            tasks=("pos-2003", "pos-2000"),
            read=both_pos,
        ),
    )
}
