"""The differences of two systems in each kind of error of spans, and in F1 by each scheme."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from core.evaluation.comparison import Comparison, compare_paired
from core.tasks.span_errors import ERROR_KINDS, SCHEMES, SpanErrors


@dataclass(frozen=True)
class FigureDifference:
    """A figure of two systems: means over their common seeds, and the difference a − b."""

    name: str
    a: float
    b: float
    comparison: Comparison


def kind_differences(a: Mapping[int, SpanErrors], b: Mapping[int, SpanErrors]) -> list[FigureDifference]:
    """Each of ERROR_KINDS as a share of the annotated spans, by seed; p-values corrected for all (Holm)."""
    return _differences(
        ERROR_KINDS, a, b, lambda errors, kind: errors.counts[kind] / (errors.annotated or math.nan)
    )


def scheme_differences(a: Mapping[int, SpanErrors], b: Mapping[int, SpanErrors]) -> list[FigureDifference]:
    """F1 by each of SCHEMES, by seed; p-values corrected for all (Holm)."""
    return _differences(SCHEMES, a, b, lambda errors, scheme: errors.f1[scheme])


def _differences(
    names: Sequence[str],
    a: Mapping[int, SpanErrors],
    b: Mapping[int, SpanErrors],
    figure: Callable[[SpanErrors, str], float],
) -> list[FigureDifference]:
    family = {name: (_by_seed(a, name, figure), _by_seed(b, name, figure)) for name in names}
    differences = []
    for name, comparison in compare_paired(family, matters=0.0).items():
        first, second = family[name]
        seeds = first.keys() & second.keys()
        means = [fmean(side[seed] for seed in seeds) for side in (first, second)]
        differences.append(FigureDifference(name, means[0], means[1], comparison))
    return differences


def _by_seed(
    side: Mapping[int, SpanErrors], name: str, figure: Callable[[SpanErrors, str], float]
) -> dict[int, float]:
    values = {seed: figure(errors, name) for seed, errors in side.items()}
    return {seed: value for seed, value in values.items() if math.isfinite(value)}
