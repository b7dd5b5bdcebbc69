"""The answer of a setting of a study, in words; and of a part of it, over its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED, VERDICTS, Comparison
from core.results.naming import SCORE_NAMES
from core.studies.analysis import MEAN, Result
from core.studies.published import WITHIN
from core.studies.study import Setting, Study
from core.wording import all_of, any_of, capitalised, in_words, plural, plural_range, uncapitalised


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
    differences = [delta for of_base in compared.values() for delta in of_base.values()]
    sentences = [f"Against {base}, {_verdicts(of_base)}." for base, of_base in compared.items()]
    return " ".join([*sentences, _seeds(differences)])


def _seeds(differences: Sequence[Comparison]) -> str:
    """`5 seeds.`, `2 to 5 seeds.`"""
    seeds = plural_range((delta.seeds for delta in differences), "seed")
    return "One seed each, so no interval." if seeds == "1 seed" else f"{seeds}."


def how_measured(results: Sequence[Result]) -> str:
    """What the differences of these results are: the score, its unit, the reference, and the seeds."""
    compared = [delta for result in results for delta in _compared(result).values()]
    if not compared:
        return ""
    reference = results[0].outcome(results[0].reference).method.in_sentence
    names = dict.fromkeys(
        name for result in results for each in result.outcomes for name in each.measures(MEAN)
    )
    scores = any_of([SCORE_NAMES.get(name, name) for name in names]) or "score"
    mean = ", mean over tasks" * any(len(result.setting.targets) > 1 for result in results)
    seeds = plural_range((delta.seeds for delta in compared), "seed")
    return f"Difference in test {scores}, in points, from {reference}{mean}; {seeds}, paired."


def headline(result: Result) -> str:
    """How many methods beat the reference in the mean over tasks, and which most, in plain words.

    `Five of six methods beat MTL on NER with 500 words, MRN with the published prior most (+16.2 F1).`
    """
    reference = result.outcome(result.reference).method.in_sentence
    compared = _compared(result)
    if not compared:
        return f"No method can be compared with {reference} yet."
    return _beaten(compared, f"{reference} on {result.setting.in_sentence}", unit(result))


def from_bases(result: Result) -> str:
    """As `headline`, how methods compare with those that they change in one thing; seeds and missing runs."""
    of_bases: dict[str, dict[str, Comparison]] = {}
    for outcome in result.outcomes:
        if MEAN in outcome.from_base:
            base = result.outcome(outcome.method.base).method.in_sentence
            of_bases.setdefault(base, {})[outcome.method.in_sentence] = outcome.from_base[MEAN]
    sentences = [_compared_with(base, of_base, unit(result)) for base, of_base in of_bases.items()]
    compared = list(_compared(result).values())
    seeds = _seeds(compared) if compared else ""
    return " ".join(filter(None, [*sentences, seeds, recorded_runs(result)]))


def study_answer(study: Study, results: Sequence[Result]) -> str:
    """The answer to the question of a study, over these settings; empty where it does not say what is asked.

    Where it repeats published figures, how many come out is said first.
    """
    compared = _asked(study, results)
    if study.asked is None or not compared:
        return ""
    if len(study.asked.methods) > 1:
        return part_answer(compared, study.asked.noun)
    answer = headline(compared[0]) if len(compared) == 1 else _counted(compared, study.asked.group)
    if any(paper.is_compared for paper in study.papers.values()):
        encoder = compared[0].setting.model.partition(",")[0]
        answer = f"{_published(results)} Over {encoder}, {uncapitalised(answer)}"
    return capitalised(answer)


def answered(study: Study, results: Sequence[Result]) -> tuple[str, ...]:
    """The methods, as a sentence names them, that the answer over these settings is of.

    They are the one that is asked for, else the one that wins most often, and the one that loses most often.
    """
    asked = _by_method(_asked(study, results))
    by_method = asked if len(asked) > 1 else _by_method(results)
    if not by_method:
        return ()
    best, worst = _best_and_worst(by_method)
    best = next(iter(asked)) if len(asked) == 1 else best
    return (best, worst) if worst != best and _times(by_method[worst], LOWER) else (best,)


def _asked(study: Study, results: Sequence[Result]) -> list[Result]:
    """The results that compare methods which the study's question asks for, with these alone."""
    if study.asked is None:
        return []
    asked = [
        replace(
            result,
            outcomes=tuple(
                outcome
                for outcome in result.outcomes
                if outcome.method.name in (result.reference, *study.asked.methods)
            ),
        )
        for result in results
    ]
    return [result for result in asked if _compared(result)]


def _counted(results: Sequence[Result], group: Callable[[Setting], str]) -> str:
    """`MRN beats MTL in 5 of 6 settings with a frozen encoder and 1 of 4 trained (+1.0 points).`

    Groups of one setting each are counted together.
    """
    by_group: dict[str, list[Comparison]] = {}
    for result in results:
        ((method, delta),) = _compared(result).items()
        by_group.setdefault(group(result.setting), []).append(delta)
    reference = results[0].outcome(results[0].reference).method.in_sentence
    every = [delta for deltas in by_group.values() for delta in deltas]
    if len(by_group) == len(every):
        by_group = {"": every}
    clauses: list[str] = []
    for verdict in (HIGHER, LOWER):
        decided = sorted((delta for delta in every if delta.verdict == verdict), key=lambda delta: delta.mean)
        counts = [
            f"{_times(deltas, verdict)} of {len(deltas)}{' settings' * (place == 0)} {words}"
            for place, (words, deltas) in enumerate(by_group.items())
        ]
        where = f"in {all_of(counts)}" if len(by_group) > 1 else _settings(every, verdict)
        if decided:
            digits = 1 if all(abs(100 * delta.mean) >= _SHOWN for delta in decided) else 2
            ends = " to ".join(
                dict.fromkeys(short_points(delta.mean, digits) for delta in (decided[0], decided[-1]))
            )
            verb = f"{_VERBS[verdict]} {'it' if clauses else reference}"
            clauses.append(f"{verb} {where} ({ends} points)")
    none = f"is not shown to differ from {reference} in any of {plural(len(every), 'setting')}"
    return f"{method} {' and '.join(clauses) or none}."


def _published(results: Sequence[Result]) -> str:
    """How many figures come out that were published for the same encoder."""
    verdicts = [
        verdict
        for result in results
        for outcome in result.outcomes
        for target in outcome.published
        if (verdict := outcome.verdict(target))
    ]
    if not verdicts:
        return "Not tested over the published encoders yet."
    within = sum(verdict == WITHIN for verdict in verdicts)
    return f"{within} of {plural(len(verdicts), 'published figure')} come out within their SD."


def part_answer(results: Sequence[Result], noun: str = "method") -> str:
    """In how many of these settings the most successful method beats the reference, in plain words.

    Also the one that loses most often, or in how many settings nothing is decided of the former where none
    loses. Of a single setting it is the headline; empty where none is compared.
    """
    compared = [result for result in results if _compared(result)]
    if len(compared) < 2:
        return "".join(map(headline, compared))
    by_method = _by_method(compared)

    def times(method: str, verdict: str) -> int:
        return _times(by_method[method], verdict)

    reference = compared[0].outcome(compared[0].reference).method.in_sentence
    best, worst = _best_and_worst(by_method)
    beats = f"no {noun} beats {reference} in any of {len(compared):,} settings"
    if times(best, HIGHER):
        beats = f"{best} beats {reference} {_settings(by_method[best], HIGHER)}"
        if not times(worst, LOWER):
            counts = {word: times(best, word) for word in (EQUIVALENT, UNDECIDED)}
            rest = all_of([f"{word} in {count:,}" for word, count in counts.items() if count])
            beats += f"; {rest}" * bool(rest)
    if not times(worst, LOWER):
        return capitalised(f"{beats}.")
    loses = " and" if worst == best and times(best, HIGHER) else f"; {worst}"
    return capitalised(f"{beats}{loses} loses {_settings(by_method[worst], LOWER)}.")


def losses(results: Sequence[Result]) -> str:
    """In how many of several settings the method that loses most often does so; empty where none loses."""
    by_method = _by_method(results)
    worst = _best_and_worst(by_method)[1] if len(results) > 1 and by_method else ""
    if not worst or not _times(by_method[worst], LOWER):
        return ""
    return capitalised(f"{worst} loses {_settings(by_method[worst], LOWER)}.")


def _by_method(results: Iterable[Result]) -> dict[str, list[Comparison]]:
    by_method: dict[str, list[Comparison]] = {}
    for result in results:
        for method, delta in _compared(result).items():
            by_method.setdefault(method, []).append(delta)
    return by_method


def _settings(differences: Sequence[Comparison], verdict: str) -> str:
    """`in 2 of 3 settings`, `in both settings`, `in all 3 settings`."""
    count, every = _times(differences, verdict), len(differences)
    if count < every:
        return f"in {count:,} of {plural(every, 'setting')}"
    return "in both settings" if every == 2 else f"in all {plural(every, 'setting')}"


def _times(differences: Iterable[Comparison], verdict: str) -> int:
    return sum(delta.verdict == verdict for delta in differences)


def _best_and_worst(by_method: Mapping[str, Sequence[Comparison]]) -> tuple[str, str]:
    """The method that wins in most settings, and the one that loses in most."""
    best, worst = (
        max(by_method, key=lambda method: _times(by_method[method], verdict)) for verdict in (HIGHER, LOWER)
    )
    return best, worst


def unit(result: Result) -> str:
    """What differences of this setting are counted in: `F1` where all of its targets are, else `points`."""
    names = {name for outcome in result.outcomes for name in outcome.measures(MEAN)}
    return "F1" if names == {"f1_conll"} else "points"


def _compared(result: Result) -> dict[str, Comparison]:
    """By method, as a sentence names it, its difference from the reference in the mean over tasks."""
    return {o.method.in_sentence: o.differences[MEAN] for o in result.outcomes if MEAN in o.differences}


_VERBS = {HIGHER: "beats", LOWER: "loses to", EQUIVALENT: "does as well as"}


def _beaten(differences: Mapping[str, Comparison], base: str, points: str) -> str:
    """`Two of four methods beat MTL, pooled most (+4.2 F1); ridge loses (−1.0).`"""
    ordered = sorted(differences.items(), key=lambda named: -named[1].mean)
    higher = [named for named in ordered if named[1].verdict == HIGHER]
    lower = [named for named in ordered[::-1] if named[1].verdict == LOWER]
    if len(ordered) == 1:
        ((name, delta),) = ordered
        if delta.verdict not in _VERBS:
            return f"Whether {name} beats {base} is undecided ({short_points(delta.mean)} {points})."
        return capitalised(f"{name} {_VERBS[delta.verdict]} {base} ({short_points(delta.mean)} {points}).")
    every = in_words(len(ordered))
    none, each = f"none of {every} methods", f"all {every}"
    if len(ordered) == 2:
        none, each = "neither method", "both"
    if not higher and not lower:
        return capitalised(f"{none} is shown to differ from {base}.")
    parts = [f"{none} beats {base}"]
    if higher:
        (best, delta), *others = higher
        count = each if len(higher) == len(ordered) else f"{in_words(len(higher))} of {every}"
        best_of = f" methods beat {base}, {best} most" if others else f" methods beats {base}: {best}"
        parts = [f"{count}{best_of} ({short_points(delta.mean)} {points})"]
    if len(lower) == len(ordered):
        worst, delta = lower[0]
        parts = [f"{each} methods lose to {base}, {worst} most ({short_points(delta.mean)} {points})"]
    elif lower:
        (worst, delta), *others = lower
        lose = f"{in_words(len(lower))} lose, {worst} most" if others else f"{worst} loses"
        parts.append(f"{lose} ({short_points(delta.mean)}{f' {points}' * (not higher)})")
    return capitalised("; ".join(parts)) + "."


_GROUPS = {HIGHER: "beat", LOWER: "lose to", EQUIVALENT: "do as well as", UNDECIDED: "are undecided against"}
_NAMED = 4


def _compared_with(base: str, differences: Mapping[str, Comparison], points: str) -> str:
    """`A fixed task correlation (+6.0 F1) and MRN (+8.4) beat one head for all tasks.` Many are counted."""
    if not 1 < len(differences) <= _NAMED:
        return _beaten(differences, base, points)
    ordered = sorted(differences.items(), key=lambda named: -named[1].mean)
    units = iter([f" {points}"])
    clauses: list[str] = []
    for verdict, verb in _GROUPS.items():
        of_verdict = [(name, delta) for name, delta in ordered if delta.verdict == verdict]
        named = [f"{name} ({short_points(delta.mean)}{next(units, '')})" for name, delta in of_verdict]
        if named:
            verbs = verb if len(named) > 1 else _VERBS.get(verdict, "is undecided against")
            clauses.append(f"{all_of(named)} {verbs} {'it' if clauses else base}")
    return capitalised("; ".join(clauses)) + "."


def short_points(difference: float, digits: int = 1) -> str:
    """The difference times a hundred: `+16.2`; no sign on `0.0`."""
    text = f"{100 * difference:+z.{digits}f}".replace("-", "−")
    return text if text.strip("+0.") else text.lstrip("+")


_SHOWN = 0.05
"""A smaller difference in points is 0.0 with one decimal."""


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
