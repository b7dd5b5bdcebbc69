"""The predictors of gains, and the packaged pairs when there is no pair yet."""

from __future__ import annotations

import math

import streamlit as st

from core.studies import STUDIES
from core.studies.recorded import PAIRS, PAIRS_TITLE, records_of
from core.transfer.predictors import CROSS_VALIDATION, LEFT_OUT
from dashboard.components.pair_table import pair_table
from dashboard.shared import resources
from dashboard.shared.downloads import show_table
from dashboard.shared.selection import segments
from dashboard.shared.states import show_reason
from dashboard.text import escape
from dashboard.theme import colours
from dashboard.transfer.views import ABOUT_GAINS, best_sentence, caution, gain_sentence, gains_table
from jobs.studies.evidence import Evidence
from jobs.studies.pairs import answer, coefficients_sheet, predictors_sheet

_SCHEMES = {"left": "Tasks left out", "folds": "Random folds"}
_NAMES = {"left": LEFT_OUT, "folds": CROSS_VALIDATION}
_HOW = {
    "left": "The regression that predicts a pair has seen neither of its tasks, as for new tasks; ± is the "
    "standard error by a bootstrap over tasks.",
    "folds": "5 random folds of the pairs, 100 times, as published; ± is the SD over repeats. The regression "
    "has seen the tasks of a tested pair in other pairs, so it can remember which tasks gain.",
}


_PAIRS_OF_DEMO = {
    "corpus": "demo",
    "encoder": "minilm+bilstm",
    "encoder_training": "frozen",
    "paradigm": "stl,mtl",
    "task_groups": "pairs",
    "seed": "1-3",
    "fraction": "0.1",
    "epochs": "10",
}


def nothing_yet() -> None:
    """Draws a card that explains which runs are needed, with two ways to launch them."""
    study = STUDIES["transfer"]
    with st.container(border=True, width=640):
        st.markdown("**No pair of tasks yet**")
        st.markdown(
            "A gain compares two kinds of runs that differ in nothing else: a task alone (STL), and that "
            "task with one other (MTL). An interval takes at least two seeds."
        )
        st.page_link(
            "launch/page.py", label="Launch every pair of the demo's tasks", icon=":material/rocket_launch:",
            query_params=_PAIRS_OF_DEMO,
        )  # fmt: skip
        st.page_link(
            "studies/page.py", label=f"The study: {escape(study.title.lower())}", icon=":material/science:",
            query_params={"study": study.name},
        )  # fmt: skip
    packaged()


def packaged() -> None:
    """The packaged matrix of twelve real tasks; a click on a cell puts its pair into the address."""
    gains = records_of("transfer")[0].gains(PAIRS)
    tasks = gains.tasks
    chosen = st.query_params.get("main"), st.query_params.get("aux")

    def click(row: int, column: int) -> None:
        st.query_params["main"], st.query_params["aux"] = tasks[row], tasks[column]

    st.subheader("Published records: twelve real tasks", anchor=False)
    st.markdown(escape(answer(gains)))
    at = [tasks.index(task) if task in tasks else None for task in chosen]
    cell = (at[0], at[1]) if at[0] is not None and at[1] is not None else None
    pair_table(
        gains_table(gains, "points", colours(tasks, resources.task_colours())),
        chosen=cell,
        key="packaged",
        clicked=click,
    )
    if shown := [gain for pair, gain in gains.pairs.items() if pair == chosen]:
        st.markdown(gain_sentence(shown[0], "points"))
    st.caption(
        f"Bundled example, not your runs: {PAIRS_TITLE} (docs/studies/transfer.md). {caution(gains)}",
        help=ABOUT_GAINS,
    )


def predictors(known: Evidence) -> None:
    """The table of predictors in one of two schemes, and the weights of the features."""
    judgements = [each for each in known.judgements if math.isfinite(each.accuracy.value)]
    judging = {each.scheme for each in judgements}
    offered = {key: name for key, name in _SCHEMES.items() if _NAMES[key] in judging}
    if not offered:
        show_reason(
            "No predictor can be judged yet: judging takes pairs with a mean gain above zero and others, and "
            "at least four tasks."
        )
        return
    scheme = segments("Scheme", offered, key="scheme")
    wanted = _NAMES[scheme]
    judged = [judgement for judgement in known.judgements if judgement.scheme == wanted]
    if sentence := best_sentence(judged):
        st.markdown(sentence)
    table = predictors_sheet(judged, with_published=wanted == CROSS_VALIDATION)
    show_table(table, alt="Predictors of gain and their accuracy")
    st.caption(
        f"A pair counts as a gain if its mean gain is above zero, decided or not. {_HOW[scheme]} Rank: "
        "Spearman's correlation of the score with the gain, or of a single number itself. Time: to compute "
        "it for all pairs."
    )
    if known.coefficients:
        st.markdown("**Largest weights of the regression on all features**")
        show_table(coefficients_sheet(known.coefficients), alt="The largest coefficients of the regression")
        st.caption(
            f"The largest of {len(known.coefficients)} weights. Features are scaled to [0, 1]; a weight "
            "above zero means that a larger value predicts a gain. 95% intervals by a bootstrap over tasks. "
            "Reported: Bingel and Søgaard (2017) on their tasks."
        )
