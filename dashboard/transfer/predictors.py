"""The predictors of gains, and the packaged pairs when there is no pair yet."""

from __future__ import annotations

import math

import streamlit as st

from core.studies import STUDIES
from core.transfer.predictors import (
    CROSS_VALIDATION,
    LEFT_OUT,
    packaged_study,
)
from core.wording import plural
from dashboard.components.pair_table import pair_table
from dashboard.shared import resources
from dashboard.shared.downloads import show_table
from dashboard.shared.selection import segments
from dashboard.text import escape
from dashboard.theme import colours
from dashboard.transfer.views import best_sentence, packaged_pairs, packaged_sentence, packaged_table
from jobs.studies.evidence import Evidence
from jobs.studies.pairs import coefficients_sheet, predictors_sheet

_SCHEMES = {"left": "Tasks left out", "folds": "Random folds"}
_HOW = {
    "left": "Each pair is tested by a regression that has seen neither of its tasks, as for new tasks; ± "
    "is the standard error by a bootstrap over tasks.",
    "folds": "5 random folds of the pairs, 100 times, as published; ± is the SD over repeats. The tasks of a "
    "tested pair were seen in other pairs, so a predictor that remembers which tasks gain does well.",
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
            "A gain needs two kinds of runs, alike in all else: a task alone (STL), and that task together "
            "with one other (MTL). Two seeds at least give an interval."
        )
        st.page_link(
            "launch/page.py", label="Launch every pair of the demo's tasks", icon=":material/rocket_launch:",
            query_params=_PAIRS_OF_DEMO,
        )  # fmt: skip
        st.page_link(
            "studies/page.py", label=f"The study: {escape(study.title.lower())}", icon=":material/science:",
            query_params={"study": study.name},
        )  # fmt: skip
        st.caption(escape(study.sample.words if study.sample else study.question))
    packaged()


def packaged() -> None:
    """The packaged matrix of twelve real tasks; a click on a cell puts its pair into the address."""
    pairs = packaged_pairs(packaged_study())
    tasks = sorted({pair.main for pair in pairs})
    chosen = st.query_params.get("main"), st.query_params.get("aux")

    def click(row: int, column: int) -> None:
        st.query_params["main"], st.query_params["aux"] = tasks[row], tasks[column]

    st.subheader("Twelve real tasks, measured before", anchor=False)
    st.markdown(escape(packaged_sentence(pairs)))
    at = [tasks.index(task) if task in tasks else None for task in chosen]
    cell = (at[0], at[1]) if at[0] is not None and at[1] is not None else None
    pair_table(
        packaged_table(pairs, colours(tasks, resources.task_colours())),
        chosen=cell,
        key="packaged",
        clicked=click,
    )
    if shown := [pair for pair in pairs if (pair.main, pair.aux) == chosen]:
        st.markdown(escape(f"{shown[0].sentence}, {plural(shown[0].seeds, 'seed')}."))
    st.caption(
        "It comes with the installation and is not of your runs: 2,000 words a task, a BiLSTM over frozen "
        "MiniLM, test score of MTL of the two less STL, three seeds (docs/studies/transfer.md)."
    )


def predictors(known: Evidence) -> None:
    """The table of predictors in one of two schemes, and the weights of the features."""
    scheme = segments("Scheme", _SCHEMES, key="scheme")
    wanted = LEFT_OUT if scheme == "left" else CROSS_VALIDATION
    judged = [judgement for judgement in known.judgements if judgement.scheme == wanted]
    if not any(math.isfinite(judgement.accuracy.value) for judgement in judged):
        st.caption(
            "No predictor can be judged: that takes pairs that gain and pairs that do not, and more tasks "
            "than the two that are left out."
        )
        return
    if sentence := best_sentence(judged):
        st.markdown(sentence)
    table = predictors_sheet(judged, with_published=wanted == CROSS_VALIDATION)
    show_table(table, alt="Predictors of gain and how right each is")
    st.caption(
        f"Does a pair gain at all? {_HOW[scheme]} Rank: Spearman's correlation of the score with the gain, "
        "or of a single number itself. Time: to compute it for all pairs."
    )
    if known.coefficients:
        st.markdown("**What counts in the regression on all features**")
        show_table(coefficients_sheet(known.coefficients), alt="The largest coefficients of the regression")
        st.caption(
            f"The largest of {len(known.coefficients)} weights, features scaled to [0, 1]: above zero, a "
            "larger value goes with a gain. 95% intervals by a bootstrap over tasks. Reported: by Bingel and "
            "Søgaard (2017) on their tasks."
        )
