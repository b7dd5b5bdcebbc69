"""The words of the Relations page: why something is not there yet, what was not or cannot be learned, what to
make of what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from core.mrn.groups import task_groups
from core.mrn.rows import impossible_blocks
from core.store.records import MetricKey, Run
from core.store.states import ACTIVE, RunState
from core.training.events import TOTAL
from dashboard.caches.curves import curve_series
from dashboard.queries.naming import run_name
from dashboard.queries.relations import RelationsView, learns, penalty_vanished, saturated
from dashboard.queries.relations_course import Moments
from dashboard.queries.relations_gold import agreement, gold_labels, why_no_gold
from dashboard.queries.relations_rows import Shared
from dashboard.states import empty
from dashboard.text import all_of, escape, number, plural
from dashboard.theme import STATES

__all__ = ["gold_words", "player_words", "run_words", "size_words", "waiting"]

_PENALTY = MetricKey(TOTAL, "train", "penalty")
_MOST_NAMED = 6


def waiting(runs: Sequence[Run], *, alone: bool) -> None:
    """Of runs without a snapshot, why they have none and what to do; `alone` where there is nothing else."""
    for run in runs:
        words = (
            "The first snapshot comes when training begins."
            if run.state in ACTIVE
            else "This run ended before its first snapshot. Choose another above, or retry this one on Runs."
        )
        if alone:
            empty(
                "No relations yet", words, page="app_pages/runs.py", label="Runs", icon=":material/list_alt:"
            )
            return
        st.caption(f"{escape(run_name(run))} has no relations yet and is left out. {words}")


def run_words(runs: Sequence[Run], views: Sequence[RelationsView], shared: Shared, moments: Moments) -> None:
    """What each run's setting means for what can be seen; said once for runs of which the same is true."""
    mode = views[0].mode
    for run in runs:
        if run.state in (RunState.FAILED, RunState.LOST, RunState.CANCELLED):
            word = STATES[run.state].word.lower()
            st.caption(f"{escape(run_name(run))}: {word}. Shown is what it learned up to step {run.step:,}.")
        _vanished(run, len(runs) > 1)
    settings = [_setting(run) for run in runs]
    for sentence in dict.fromkeys(settings):
        of = [str(run.id) for run, one in zip(runs, settings, strict=True) if one == sentence]
        st.caption(sentence if len(of) == len(runs) else f"Run {all_of(of)}: {sentence}")
    told = (_limits(run, view) for run, view in zip(runs, views, strict=True))
    for sentence in dict.fromkeys(sentence for sentence in told if sentence):
        st.info(sentence, icon=":material/info:")
    if moments.cut:
        st.caption(f"Shown up to step {moments.steps[-1]:,}: not all of these runs have got further.")
    if not moments.exact:
        st.caption(
            "These runs were stored at other steps: each is shown at the snapshot nearest in training."
        )
    for run, names in zip(runs, shared.left_out, strict=True):
        if names:
            some = ", ".join(map(escape, names[:_MOST_NAMED])) + (", …" if len(names) > _MOST_NAMED else "")
            st.caption(
                f"Shown are the {plural(len(shared.rows), mode)} that all these runs have. Of run {run.id} "
                f"{len(names)} are left out: {some}."
            )


def _setting(run: Run) -> str:
    config, facts = run.config, run.facts
    learned = ", ".join(config.learn or ())
    words = f"Prior {escape(config.prior)}, λ {number(config.lambda_)}, learned: {learned}."
    if not facts.get("alignment"):
        return words
    reason = facts.get("alignment_reason")
    because = f": {escape(reason.rstrip('.'))}" if reason else ""
    return f"{words} Alignment **{escape(facts['alignment'])}**{because}."


def _limits(run: Run, view: RelationsView) -> str:
    """What this run could not learn of the mode shown."""
    if not learns(run, view.mode):
        return (
            f"The {view.mode} covariance was not learned in this run: it stays as it began, all relations 0."
        )
    if not view.impossible:
        return ""
    what = "tasks" if view.mode == "task" else "labels of different tasks"
    groups = task_groups(run.facts)
    if all(len(group) == 1 for group in groups):
        which, between = "different tasks", f"between {what}"
    else:
        told = "; ".join(", ".join(map(escape, group)) for group in groups)
        which, between = f"these groups of tasks ({told})", f"of {what} between groups"
    better = (
        "a mapping of your own"
        if run.facts.get("alignment") == "cooccurrence"
        else "the alignment cooccurrence"
    )
    return (
        f"Hatched: with this alignment the rows of {which} never meet, so the relations {between} "
        f"stay at zero whatever the data say. Launch the run with {better} to learn them."
    )


def _vanished(run: Run, several: bool) -> None:
    """Whether the penalty has vanished, and what that makes of the relations shown."""
    series = curve_series([run], [_PENALTY])
    vanished = penalty_vanished(series[0] if series else None)
    if vanished is not None:
        st.warning(
            (f"Run {run.id}. " if several else "")
            + f"The penalty has vanished: it was {_rough(vanished[0])} at most and is {_rough(vanished[1])} "
            "now, so this run trains as MTL, and the relations shown are what the procedure left behind. "
            "The relational prior cannot vanish in this way.",
            icon=":material/warning:",
        )


def _rough(value: float) -> str:
    return number(float(f"{value:.2g}"))


def size_words(views: Sequence[RelationsView]) -> None:
    """Where nearly all correlations are ±1: that their size tells of λ, not of the data."""
    shares = [share for view in views if (share := saturated(view)) is not None]
    if shares:
        st.warning(
            f"{100 * max(shares):.0f}% of the correlations are all but ±1 at this step. How large one "
            "becomes depends on λ too: large for the data, it drives related rows to ±1. Read the order in "
            "which they got there at earlier steps, and compare with a smaller λ before reading their size.",
            icon=":material/warning:",
        )


def gold_words(run: Run, views: Sequence[RelationsView], shared: Shared) -> None:
    """How far learned and gold relations go together, or why the run has none of the latter."""
    gold = gold_labels(run)
    if gold is None:
        st.info(why_no_gold(run), icon=":material/info:")
        return
    own = zip(views, shared.places, strict=True)
    learned = np.mean([view.matrix[np.ix_(places, places)] for view, places in own], axis=0)
    gold = gold[np.ix_(shared.places[0], shared.places[0])]
    rows, cannot = shared.rows, impossible_blocks(run.facts, "label", shared.rows.owners)
    all_pairs = agreement(learned, gold, rows, cannot, between=False)
    if all_pairs is None:
        st.caption("Learned and gold correlations cannot be compared: one of them is the same for all pairs.")
        return
    words = (
        f"Learned and counted go together with a rank correlation of **{_signed(all_pairs.spearman)}** "
        f"(Pearson {_signed(all_pairs.pearson)}) over {all_pairs.pairs:,} pairs of labels"
    )
    between = agreement(learned, gold, rows, cannot, between=True)
    if between is not None:
        words += f"; **{_signed(between.spearman)}** over the {between.pairs:,} of different tasks"
    st.caption(
        f"{words}. 1 is what counting gold labels on the training words already tells; what the "
        "difference shows was learned beyond it. Labels of one task never stand on the same word, so counted "
        "they repel each other."
    )


def _signed(value: float) -> str:
    return f"{value:z.2f}".replace("-", "−")


def player_words(mode: str, frame: Mapping[str, Any], size: int, *, zoomed: bool) -> dict[str, str]:
    """The words in and under the matrices."""
    block = max(frame["rows"]["block"], frame["columns"]["block"])
    if block > 1:
        foot = (
            f"{size:,} features; a cell is the mean of {block} × {block}, to 0.004. Click one or drag a "
            "rectangle for the exact values."
        )
    elif mode == "feature":
        foot = "Exact values. Esc or Whole matrix leads back."
    else:
        foot = "Drag a rectangle to zoom in." if size > 12 and not zoomed else ""
    return {"foot": foot, "cannot": "With this alignment the rows of these two never meet."}
