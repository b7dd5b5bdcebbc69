"""What predicts the gains: predictors judged alike, their coefficients, planted relatedness."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core.transfer.features import FEATURES
from core.transfer.gains import Gains, Pair
from core.transfer.predictors import (
    CORRELATION,
    CROSS_VALIDATION,
    LEFT_OUT,
    PUBLISHED_COEFFICIENTS,
    Judgement,
)
from core.wording import duration, plural
from dashboard.components.charts import chart
from dashboard.shared.downloads import show_table
from dashboard.shared.selection import segments
from dashboard.text import escape
from dashboard.transfer.charts import coefficient_chart, planted_chart
from dashboard.transfer.state import Known, spearman
from jobs.reports.pairs import measure_entry, predictors_sheet
from jobs.reports.render import Entry

_SCHEMES = {"left": "Tasks left out", "folds": "Random folds"}
_HOW = {
    "left": "Each pair is tested by a regression that has seen neither of its tasks, as for new tasks; ± "
    "is the standard error by a bootstrap over tasks.",
    "folds": "5 random folds of the pairs, 100 times, as published; ± is the SD over repeats. The tasks of a "
    "tested pair were seen in other pairs, so a predictor that remembers which tasks gain does well.",
}
_MOST_COEFFICIENTS = 16


def predictors(known: Known) -> None:
    """The table of predictors in one of two schemes, and the weights of the features."""
    evidence = known.evidence
    scheme = segments("Scheme", _SCHEMES, key="scheme")
    wanted = LEFT_OUT if scheme == "left" else CROSS_VALIDATION
    judged = [judgement for judgement in evidence.judgements if judgement.scheme == wanted]
    if not any(math.isfinite(judgement.accuracy.value) for judgement in judged):
        st.caption(
            "No predictor can be judged: that takes pairs that gain and pairs that do not, and more tasks "
            "than the two that are left out."
        )
        return
    if sentence := best_sentence(judged):
        st.markdown(sentence)
    sheet = predictors_sheet(judged, with_published=wanted == CROSS_VALIDATION)
    show_table(sheet, alt="Predictors of gain and how right each is")
    st.caption(
        f"Does a pair gain at all? {_HOW[scheme]} Rank: Spearman's correlation of the score with the gain. "
        "Time: to compute it for all pairs."
    )
    if known.coefficients:
        st.markdown("**What counts in the regression on all features**")
        largest = sorted(known.coefficients, key=lambda weight: -abs(weight.value))[:_MOST_COEFFICIENTS]
        chart(
            coefficient_chart(
                largest,
                {weight.feature: feature_title(weight.feature) for weight in largest},
                PUBLISHED_COEFFICIENTS,
            ),
            key="coefficients",
            revision=" ".join(weight.feature for weight in largest),
            still=True,
            alt="Coefficients of the regression with 95% intervals",
        )
        st.caption(
            f"The {len(largest)} largest of {len(known.coefficients)} coefficients, features scaled to "
            "[0, 1]; 95% intervals by a bootstrap over tasks. Grey bars: the interval includes zero. "
            "Diamonds: reported by Bingel and Søgaard (2017) on their tasks."
        )


def best_sentence(judged: list[Judgement]) -> str:
    """Which predictor tells gains best by ROC AUC, and what it takes to compute, as Markdown."""
    scored = [judgement for judgement in judged if math.isfinite(judgement.auc.value)]
    if not scored:
        return ""
    best = max(scored, key=lambda judgement: judgement.auc.value)
    if best.auc.value <= 0.5:
        return "No predictor tells pairs that gain from others better than chance (AUC 0.5)."
    auc = measure_entry(best.auc) or Entry("")
    words = f"**{escape(best.predictor)}** tells best which pairs gain: AUC {auc.text} {auc.beside}".rstrip()
    return f"{words}, {duration(best.seconds)} to compute." if best.seconds is not None else f"{words}."


def _signed(value: float) -> str:
    return f"{value:+z.2f}".replace("-", "−")


def feature_title(feature: str) -> str:
    """`main size` as `Size, main`."""
    role, _, name = feature.partition(" ")
    return f"{FEATURES.get(name, name)}, {role}"


def features_table(known: Known, pair: Pair) -> None:
    """The 14 features of both tasks and their ratio."""
    found = [known.evidence.features.get(task) for task in pair]
    rows = {}
    for name, label in FEATURES.items():
        first, second = (float("nan") if of is None else of.values.get(name, math.nan) for of in found)
        ratio = first / second if second else math.nan
        rows[label] = [_plain(first), _plain(second), _plain(ratio)]
    columns = [f"{escape(pair[0])} (main)", f"{escape(pair[1])} (auxiliary)", "main / aux"]
    st.markdown("**Features**")
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    left, right = frame.iloc[:7], frame.iloc[7:]
    for column, half in zip(st.columns(2, gap="large"), (left, right), strict=True):
        column.table(half, border="horizontal", alt="Features of both tasks")
    notes = dict.fromkeys(
        f"{task}: {note}" for task, of in zip(pair, found, strict=True) if of for note in of.notes
    )
    st.caption(
        "Of the training data, and of the loss of STL: its gradient after a share of training, a and c of "
        f"a ln(c i + d) + b. Means over seeds. {escape(' '.join(notes))}"
    )


def _plain(value: float) -> str:
    return "–" if not math.isfinite(value) else f"{value:.3g}".replace("-", "−")


def planted_relations(gains: Gains, planted: Mapping[Pair, float], known: Known) -> None:
    """Planted AMI of simulated tasks against measured gain and against what MRN learned."""
    measured = {pair: 100 * gain.mean for pair, gain in gains.pairs.items()}
    learned = known.evidence.numbers[CORRELATION].by_pair
    series = {"measured gain, points": measured, "MRN's learned correlation": learned}
    for column, (name, values) in zip(st.columns(2, gap="large"), series.items(), strict=True):
        with column:
            st.markdown(f"**Planted AMI against {name}**")
            found = spearman(planted, values)
            if found is None:
                st.caption("Fewer than three pairs have both, or all are equal.")
                continue
            st.markdown(f"Rank correlation {_signed(found[0])} over {plural(found[1], 'pair')}.")
            chart(
                planted_chart(planted, values, name), key=f"planted_{name}", revision=name, still=True,
                alt=f"Planted AMI of each pair against {name}",
            )  # fmt: skip
