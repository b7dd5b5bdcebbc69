"""The answer of a setting of a study, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from core.evaluation.comparison import HIGHER, LOWER, VERDICTS, Comparison
from core.studies.analysis import MEAN, Result
from core.wording import all_of, plural


def answer(result: Result) -> str:
    """The methods that are higher or lower in the mean over tasks than the reference (plain text).

    They are also compared with the method that they change in one field. Where runs are missing, their number
    is said.
    """
    return f"{_answer(result)} {recorded_runs(result)}".rstrip()


def recorded_runs(result: Result) -> str:
    """`17 of 25 runs recorded.`; empty where none is missing, or all are."""
    if result.is_complete or not result.done:
        return ""
    return f"{result.done:,} of {plural(result.planned, 'run')} recorded."


def _answer(result: Result) -> str:
    reference = result.outcome(result.reference).method.title
    compared = {
        reference: {o.method.title: o.differences[MEAN] for o in result.outcomes if MEAN in o.differences}
    }
    for outcome in result.outcomes:
        if MEAN in outcome.from_base:
            base = result.outcome(outcome.method.base).method.title
            compared.setdefault(base, {})[outcome.method.title] = outcome.from_base[MEAN]
    if not compared[reference]:
        return f"No method can be compared with {reference} yet."
    counts = {delta.seeds for differences in compared.values() for delta in differences.values()}
    least, most = min(counts), max(counts)
    seeds = f"{plural(most, 'seed')}." if least == most else f"{least} to {plural(most, 'seed')}."
    sentences = [f"Against {base}, {_verdicts(differences)}." for base, differences in compared.items()]
    return " ".join([*sentences, "One seed each, so no interval." if most == 1 else seeds])


def verdict_counts(result: Result) -> str:
    """The number of methods by verdict in the mean over tasks: `Against MTL: 5 higher, 1 undecided.`"""
    differences = [outcome.differences[MEAN] for outcome in result.outcomes if MEAN in outcome.differences]
    reference = result.outcome(result.reference).method.title
    if not differences:
        return f"No method can be compared with {reference} yet."
    counts = Counter(difference.verdict for difference in differences)
    words = [f"{counts[word]} {word}" for word in VERDICTS if counts[word]]
    return f"Against {reference}: {', '.join(words)}."


def _verdicts(differences: Mapping[str, Comparison]) -> str:
    """The methods by verdict, the largest differences first."""
    ordered = sorted(differences.items(), key=lambda pair: -abs(pair[1].mean))
    parts = []
    for word in VERDICTS:
        named = [(title, f"{title} ({delta.in_points})") for title, delta in ordered if delta.verdict == word]
        titles, with_points = [title for title, _ in named], [text for _, text in named]
        if titles and word in (HIGHER, LOWER):
            parts.append(f"{all_of(with_points)} score{'s' if len(titles) == 1 else ''} {word}")
        elif titles:
            parts.append(f"{word} for {all_of(titles) if len(titles) <= 4 else f'{len(titles)} others'}")
    return "; ".join(parts)
