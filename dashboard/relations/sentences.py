"""Sentences on the matrix shown, made from its numbers.

`names` (n) are the rows'; `values` (runs, n, n) their correlations; `possible` (n, n) marks pairs
that could be learned and have training words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

import numpy as np

from core.evaluation.relation_verdicts import UNDECIDED, RelationVerdicts
from core.evaluation.statistics import summary
from core.mrn.relations import effective_rank
from core.results.relations import Hub
from core.wording import all_of, first_of, percent, plural, spread_text
from dashboard.relations.views import Bools, Floats, signed

# The word for a correlation of at least this size. 0.1, 0.3 and 0.5 are Cohen's (1988).
_STRENGTHS = ((0.9, "almost fully"), (0.5, "strongly"), (0.3, "moderately"), (0.1, "weakly"))
_NEGLIGIBLE = 0.1
# The word for features whose effective rank is at least this share of their number.
_REDUNDANCY = ((0.9, "nearly independent"), (0.25, "partly redundant"), (0.0, "highly redundant"))
_MOST_PAIRS = 3
# Where so many percent of the pairs are so alike, their size says little.
_ALIKE, _MANY_ALIKE = 0.8, 25
NEARLY_ONE = 0.98
"""A correlation of this size is at ±1."""
# A head below this dev score, or that makes hardly fewer errors (by this share) than always predicting the
# most frequent label, has learned next to nothing.
_UNLEARNED_BELOW, _FEWER_ERRORS = 0.1, 0.02
_MOST_SCORES, _ROOM = 6, 180
_MARKUP = re.compile(r":color\[●\]\{[^}]*\}|\\")
_MOST_ALONE = 4
# A share of the reduction of the effective rank below this is none.
_SAME_BELOW = 0.005

Pair = tuple[int, int]


def _names(names: Sequence[str], pair: Pair) -> str:
    return f"{names[pair[0]]} and {names[pair[1]]}"


def _degree(value: float) -> str:
    return next(word for least, word in _STRENGTHS if abs(round(value, 2)) >= least)


def _ranked(sizes: Floats, possible: Bools) -> list[Pair]:
    """The possible pairs above the diagonal, the largest first."""
    rows, columns = np.nonzero(np.triu(possible, 1))
    order = np.argsort(-sizes[rows, columns], kind="stable")
    return [(int(rows[index]), int(columns[index])) for index in order]


def read_scores(scores: Mapping[str, Sequence[float]]) -> str:
    """The dev scores of tasks, over runs where there are several; tasks without a score are left out."""
    means = [(name, summary(of)) for name, of in scores.items() if of]
    if not means:
        return "No dev score up to this step."
    parts = [
        f"{name} {percent(of.mean)}" + (f" {spread_text(100 * (of.sd or 0))} ({of.n})" if of.n > 1 else "")
        for name, of in means
    ]
    return f"Dev scores at this step: {first_of(parts, _that_fit(parts))}."


def _that_fit(parts: Sequence[str]) -> int:
    """How many of these stand in two lines."""
    lengths = accumulate(len(_MARKUP.sub("", part)) for part in parts[:_MOST_SCORES])
    return max(1, sum(length <= _ROOM for length in lengths))


def read_unlearned(scores: Mapping[str, Sequence[float]], majority: Mapping[str, float]) -> str:
    """A warning of tasks with dev scores too low for meaningful relations; empty without one.

    `majority` is the share of the most frequent label of each task, where it is known.
    """
    low = {}
    for name, of in scores.items():
        mean, share = (summary(of).mean if of else math.nan), majority.get(name, math.nan)
        if 1 - mean >= (1 - _FEWER_ERRORS) * (1 - share):
            low[name] = f"{percent(mean)}; its most frequent label alone gives {percent(share)}"
        elif mean < _UNLEARNED_BELOW:
            low[name] = f"{percent(mean)}, below {percent(_UNLEARNED_BELOW)}"
    if not low:
        return ""
    which = _few([f"{name} (dev score {score})" for name, score in low.items()])
    heads, have, their = ("head", "has", "its") if len(low) == 1 else ("heads", "have", "their")
    learned = f"At this step the {heads} of {which} {have} learned next to nothing"
    return f"{learned}: {their} relations have no meaning."


def _few(names: Sequence[str]) -> str:
    """All names, or the first of many and how many more."""
    return all_of(names) if len(names) <= _MOST_ALONE else first_of(names, _MOST_PAIRS)


def _weaker(pairs: int) -> str:
    return f" {plural(pairs, 'more pair')} {'is' if pairs == 1 else 'are'} weaker." if pairs else ""


def _over_seeds(names: Sequence[str], values: Floats, pairs: Sequence[Pair]) -> str:
    """Whether the signs of these pairs hold in all seeds; empty for one run."""
    if len(values) < 2:
        return ""
    changing = [_names(names, pair) for pair in pairs if np.ptp(np.sign(values[:, *pair])) > 1]
    if changing:
        return f" The sign of {all_of(changing)} changes between the {len(values)} seeds."
    return f" The {'sign holds' if len(pairs) == 1 else 'signs hold'} in each of the {len(values)} seeds."


def read_embeddings(names: Sequence[str], values: Floats) -> str:
    """A sentence on the similar and the dissimilar task embeddings."""
    mean = values.mean(axis=0)
    pairs = _ranked(np.abs(mean), ~np.eye(len(names), dtype=bool))
    alike = [pair for pair in pairs if abs(mean[pair].round(2)) >= _NEGLIGIBLE]
    if not alike:
        first = f"{_names(names, pairs[0])}{' embeddings' * (len(pairs) == 1)}"
        value = signed(mean[pairs[0]])
        if len(pairs) == 1:
            text = f"{first} are nearly orthogonal ({value})."
        else:
            text = f"All task embeddings are nearly orthogonal: {first} come nearest to each other ({value})."
        return text + _over_seeds(names, values, pairs[:1])
    shown = alike[:_MOST_PAIRS]
    parts = [
        f"{_names(names, pair)} {_degree(mean[pair])} {'alike' if mean[pair] > 0 else 'opposed'} "
        f"({signed(mean[pair])})"
        for pair in shown
    ]
    rest = _weaker(len(alike) - len(shown))
    if not rest and len(alike) < len(pairs):
        rest = " All others are nearly orthogonal."
    return f"Task embeddings: {all_of(parts)}.{rest}" + _over_seeds(names, values, shown)


def read_features(size: int, ranks: Sequence[float]) -> str:
    """Over how many directions the variance of so many features spreads, by each run's effective rank."""
    rank = float(np.mean(ranks))
    word = next(word for least, word in _REDUNDANCY if rank >= least * size)
    spread = f" ({min(ranks):.0f} to {max(ranks):.0f} over {len(ranks)} seeds)" if len(ranks) > 1 else ""
    return (
        f"To these heads the features are {word}: their variance spreads over {rank:.0f} of {size} "
        f"directions{spread}."
    )


def read_parts(parts: Sequence[str], size: int) -> str:
    """A sentence on the origin of an encoder's features, if they have parts of equal size."""
    each = size // max(1, len(parts))
    named = [f"{index * each} to {(index + 1) * each - 1} {part}" for index, part in enumerate(parts)]
    return f"Features by their origin: {'; '.join(named)}." if named else ""


def read_strength(strengths: Collection[str], *, is_default: bool) -> str:
    """The λ of the matrices as the first words of a sentence."""
    if len(strengths) > 1:
        return "These λ"
    return f"{'The default ' * is_default}λ={next(iter(strengths))}"


def read_saturation(values: Floats, possible: Bools, strength: str) -> str:
    """That λ drove most correlations of matrices to ±1, if so, else an empty text.

    `possible` marks the pairs of each matrix, or of all; `strength` is λ as `read_strength` has it.
    """
    pairs = _pairs(values, possible)
    driven = _percent(np.abs(pairs) >= NEARLY_ONE)
    if driven <= 50:
        return ""
    if len(pairs) == len(values):
        what, its = "the correlation", "its"
    else:
        what, its = f"{driven:.0f}% of the correlations", "their"
    return f"{strength} drove {what} to ±{NEARLY_ONE} or beyond: {its} size says little."


def read_driven(names: Sequence[str], verdict: str, of_seeds: Floats, strength: str) -> str:
    """The verdict on one pair whose correlations (s,) the prior has driven to ±1."""
    least = min(0.99, math.floor(100 * float(np.abs(of_seeds).min())) / 100)
    side, least = ("above", least) if of_seeds[0] > 0 else ("below", -least)
    return (
        f"{names[0]} and {names[1]} are {verdict}; how strongly is not known. {strength} drove "
        f"their correlation {side} {signed(least)} in all {len(of_seeds)} seeds."
    )


_LINKED = {"cooccurrence": "labels that fall on the same words", "exact": "labels of one name"}


def read_alone(more: int, alignment: str | None) -> str:
    """What the alignment is, and how many pairs are related as far as it alone relates them."""
    linked = _LINKED.get(alignment or "", "some labels")
    text = f"Before training, {linked} are already linked (alignment)"
    return f"{text}; that alone relates {plural(more, 'more pair')} as far." if more else f"{text}."


def read_furthest(names: Sequence[str], pair: Pair, learned: float, alone: float) -> str:
    """The pair whose relation is furthest beyond what the alignment alone gives."""
    return f"Furthest beyond that: {_names(names, pair)}, at {signed(learned)} instead of {signed(alone)}."


def read_hub(names: Sequence[str], hub: Hub) -> str:
    """Which rows only their seeds set apart from the row that most decided pairs have; empty without any."""
    if not hub.as_strong:
        return ""
    others = first_of([names[place] for place in hub.as_strong], 2)
    have, are, seeds = (
        ("has", "is", "its seeds") if len(hub.as_strong) == 1 else ("have", "are", "their seeds")
    )
    return (
        f"Not only {names[hub.row]}: {others} {have} on average as strong correlations with these "
        f"{len(hub.partners)} labels, but {are} undecided, because {seeds} differ more."
    )


def read_undecided(verdicts: RelationVerdicts) -> str:
    """How many pairs have no verdict; empty where most have one."""
    undecided, tested = verdicts.count(UNDECIDED), int(np.triu(verdicts.tested, 1).sum())
    if 2 * undecided <= tested:
        return ""
    return f"**{undecided:,} of {plural(tested, 'pair')} are undecided** after {verdicts.seeds} seeds."


def _pairs(values: Floats, possible: Bools) -> Floats:
    return values[np.broadcast_to(np.triu(possible, 1), values.shape)]


def _percent(many: Bools) -> float:
    return 100 * float(np.mean(many)) if len(many) else 0.0


def read_size(values: Floats, possible: Bools) -> str:
    """A caution if many correlations of labels are large, else an empty text.
    `possible` marks the pairs of each matrix, or of all.

    Measured on CoNLL-2003 (5%, three seeds, λ 0.003): NER made 95 to 97% of the label scatter, and the words
    of 73% of the labels of POS and chunks are O there to more than 80%.
    """
    alike = _percent(_pairs(values, possible) >= _ALIKE)
    if alike < _MANY_ALIKE:
        return ""
    return (
        f"{alike:.0f}% of all pairs are at {_ALIKE} or above, so a high value alone says little: look at the "
        "opposed pairs."
    )


def read_rank(variances: Floats, rank: float) -> str:
    """A sentence on the effective rank and its causes: unequal variances or correlations.
    The rank may be 1.2 of 3 with correlations near 0. Empty for NaN: no rank.
    """
    if not (math.isfinite(rank) and np.isfinite(variances).all()):
        return ""
    size = len(variances)
    causes = {"unequal variances": size - (alone := effective_rank(variances)), "correlations": alone - rank}
    known = {cause: share for cause, share in causes.items() if abs(share) >= _SAME_BELOW}
    text = f"Effective rank {rank:.1f} of {size}"
    if not known:
        return f"{text}."
    return f"{text}, {'mostly ' * (len(known) > 1)}from {max(known, key=known.__getitem__)}."
