"""Samples of splits: all that a name without a kind does, and what every kind does for dev and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.corpora.assembly import SPLITS
from core.corpora.derived.kind import Kind, Options, same_tasks
from core.corpora.derived.values import SAMPLES
from core.corpora.draws import parts, stream
from core.corpora.types import Corpus, Sentence, Split

__all__ = ["SAMPLED", "sampled"]


def sampled(corpus: Corpus, options: Options, seed: int) -> Corpus:
    """At most as many sentences of each split as the options `train`, `dev` and `test` say, in their order.

    Drawn of each part apart, and so that a smaller sample is part of a larger one with the same seed.
    """
    kept: dict[Split, tuple[Sentence, ...]] = {split: corpus.split(split) for split in SPLITS}
    notes = []
    for split in SPLITS:
        if split in options:
            whole = corpus.split(split)
            kept[split] = _sample(whole, options[split], seed, split)
            if len(kept[split]) < len(whole):
                notes.append(
                    f"Uses {len(kept[split]):,} of {len(whole):,} {split} sentences, drawn with seed {seed}."
                )
    return replace(
        corpus, train=kept["train"], dev=kept["dev"], test=kept["test"], notes=(*corpus.notes, *notes)
    )


def _sample(sentences: Sequence[Sentence], most: int, seed: int, split: Split) -> tuple[Sentence, ...]:
    sample: list[Sentence] = []
    for part, own in parts(sentences):
        order = stream(seed, f"sample {split}", part).permutation(len(own))[:most]
        sample += [own[place] for place in sorted(order)]
    return tuple(sample)


SAMPLED = Kind(
    name="",
    description="The corpus as it is, or samples of its splits.",
    options=SAMPLES,
    tasks=same_tasks,
    derive=sampled,
)
