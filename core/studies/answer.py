"""The answer of a setting of a study, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED, VERDICTS, Comparison
from core.studies.analysis import MEAN, Result
from core.wording import all_of, capitalised, plural, signed_points


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


def headline(result: Result) -> str:
    """How many methods beat the reference in the mean over tasks, and which is best, as plain text.

    `5 of 6 methods beat MTL; the best is Paper, tasks (+16.17 points). 1 is undecided.`
    """
    differences = {o.method.title: o.differences[MEAN] for o in result.outcomes if MEAN in o.differences}
    reference = result.outcome(result.reference).method.title
    if not differences:
        return f"No method can be compared with {reference} yet."
    counts = Counter(difference.verdict for difference in differences.values())
    if not counts[HIGHER] and not counts[LOWER]:
        return f"No method differs from {reference}: {_counted(counts, (EQUIVALENT, UNDECIDED))}."
    sentences = []
    every = f" of {plural(len(differences), 'method')}"
    for verdict, verb, rank, sign in ((HIGHER, "beat", "best", 1), (LOWER, "lose to", "worst", -1)):
        if not counts[verdict]:
            continue
        title, first = max(
            ((title, delta) for title, delta in differences.items() if delta.verdict == verdict),
            key=lambda named: sign * named[1].mean,
        )
        points = f"({signed_points(first.mean)} points)"
        number = f"{counts[verdict]}{every}"
        if counts[verdict] == 1:
            ends = "beats" if verdict == HIGHER else "loses to"
            sentences.append(f"{number} {ends} {reference}: {title} {points}.")
        else:
            sentences.append(f"{number} {verb} {reference}; the {rank} is {title} {points}.")
        every = ""
    if counts[EQUIVALENT] or counts[UNDECIDED]:
        sentences.append(f"{capitalised(_counted(counts, (EQUIVALENT, UNDECIDED)))}.")
    return " ".join(sentences)


def _counted(counts: Mapping[str, int], verdicts: Sequence[str]) -> str:
    """`1 is equivalent, 2 are undecided`."""
    return ", ".join(f"{n} {'is' if n == 1 else 'are'} {word}" for word in verdicts if (n := counts[word]))


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
