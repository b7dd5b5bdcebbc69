"""A card for each study, with buttons that run it, and the results of one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath
from typing import Literal

import streamlit as st

from core.errors import MRNLabError
from core.evaluation.costs import COST_NOTE
from core.figures import forest_chart
from core.studies import STUDIES, Study
from core.studies.analysis import MEAN, Result, TableView, table_view
from core.studies.answer import answer
from core.wording import duration, plural
from dashboard.components.charts import chart
from dashboard.shared import actions, resources
from dashboard.shared.downloads import show_table
from dashboard.shared.live import live
from dashboard.shared.selection import choice, segments
from dashboard.shared.states import problem
from dashboard.studies.views import failures, has_scores, sample_forest, study_forest
from dashboard.text import escape
from dashboard.theme import colours
from jobs.reports.studies import Standing, Version, follower, start_study, stop_study
from jobs.reports.study_report import cost_sheet, overview, paper_sheet, setting_sheet

_PROBLEM = "study_problem"
_CARDS_BESIDE = 3
_FEW = 3
"""So many settings are all opened from the start."""
_MANY, _TALL = 12, 480
"""Beyond so many settings their overview scrolls, within so many pixels."""


def studies() -> None:
    """The whole page: a card for each study, and the results of the one that is chosen."""
    first, second = st.container(), st.container()
    names = list(STUDIES)
    standings = {name: resources.study_standing(Version(name)) for name in names}
    complete = [name for name, standing in standings.items() if standing.done == standing.total]
    with second if complete else first:
        for start in range(0, len(names), _CARDS_BESIDE):
            row = names[start : start + _CARDS_BESIDE]
            for column, study in zip(st.columns(_CARDS_BESIDE), row, strict=False):
                with column, st.container(border=True, height="stretch"):
                    live(partial(_card, study), resources.pace, key=f"study_{study}")
    with first if complete else second:
        _results(complete)


def _results(complete: Sequence[str]) -> None:
    """The results of a study, part by part."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        default = complete[0] if complete else None
        name = choice("Results of", STUDIES.keys(), key="study", default=default, width=240)
        encoder, training = _encoder(name)
        study, results = resources.study_results(Version(name, encoder=encoder, encoder_training=training))
        part = segments(
            "Part", {part: part.capitalize() for part in study.parts()}, key="part", labelled=True
        )
    of_part = [result for result in results if result.setting.part == part]
    scored_results = [result for result in of_part if has_scores(result)]
    version = Version(study.name, part, encoder=encoder, encoder_training=training)
    _launch(version, "Launch this part", key="part")
    if not scored_results:
        st.caption("No run of this part has finished in this store.")
    if (view := table_view(study, part, results)) is not None:
        _paper(view, study)
    if not scored_results:
        return
    _overview(study, of_part)
    for result in _chosen(scored_results):
        _setting(result, study)
    _notes(study, of_part)


def _card(name: str) -> None:
    """What a study asks, how far it is, what it found here or elsewhere, and the buttons that run it."""
    whole = Version(name)
    study, results = resources.study_results(whole)
    standing = resources.study_standing(whole)
    scored_results = [result for result in results if MEAN in result.outcomes[0].scores]
    methods, settings = (plural(len(things), noun) for things, noun in (
        (study.families, "method"), (study.settings, "setting"),
    ))  # fmt: skip
    st.markdown(f"**{escape(study.title)}**: {escape(study.question)}")
    st.caption(
        f"{settings} ({', '.join(study.parts())}), {methods}, {plural(len(study.seeds), 'seed')}. "
        f"{standing.done:,} of {plural(standing.total, 'run')} done in this store."
    )
    if standing.active:
        st.progress(standing.done / standing.total)
    view = study_forest(scored_results[0], (MEAN,)) if scored_results else sample_forest(study)
    if view.marks:
        chart(
            forest_chart(view, colours(resources.task_order())),
            key=f"card_{name}",
            revision=" ".join(view.families),
            still=True,
            alt=f"Differences from {view.reference}",
        )
    if scored_results:
        title = escape(scored_results[0].setting.title)
        st.caption(f"Found here. {title}: {escape(answer(scored_results[0]))}")
    elif study.sample is not None:
        st.caption(escape(study.sample.words))
    if study.pairs:
        st.page_link("transfer/page.py", label="Gains of all pairs", icon=":material/hub:")
    _buttons(study, whole, standing)


def _buttons(study: Study, whole: Version, standing: Standing) -> None:
    of_study, why = st.session_state.get(_PROBLEM, ("", ""))
    if of_study == study.name:
        problem(why)
    store = resources.store()
    followed = follower(store, study.name) is not None
    if standing.active or followed:
        words = f"{plural(standing.active, 'run')} queued or in progress"
        more = "; the others follow by themselves" if followed else ""
        st.markdown(f":material/schedule: {words}{more}.")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.page_link("runs/page.py", label="See them on Runs", icon=":material/list_alt:")
            st.button(
                "Stop the study", icon=":material/stop_circle:", key=f"stop_{study.name}",
                on_click=actions.perform, args=(stop_study, study.name),
            )  # fmt: skip
    if followed:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        if study.small:
            small = Version(study.name, **study.small)
            _launch(small, "Launch a smaller version", key=f"{study.name}_small", primary=True)
        _launch(whole, "Go on" if standing.done else "Launch", key=study.name)
    if standing.failed:
        st.caption(f":material/warning: {plural(standing.failed, 'run')} failed; Runs tells why.")


def _launch(version: Version, label: str, *, key: str, primary: bool = False) -> None:
    """A button that queues what is missing of that version, and beside it the same for the terminal; nothing
    where nothing is missing.
    """
    standing = resources.study_standing(version)
    missing = standing.total - standing.done - standing.active - standing.failed
    if not missing or follower(resources.store(), version.study) is not None:
        return
    known = resources.study_outstanding(version)
    words = plural(missing, "run")
    seconds = [setting.seconds for setting in known if setting.seconds is not None]
    if len(seconds) == len(known):
        words += f", about {duration(sum(seconds))}"
    with st.container(horizontal=True, vertical_alignment="center", width="content"):
        look: Literal["primary", "secondary"] = "primary" if primary else "secondary"
        icon = ":material/play_arrow:"
        st.button(label, type=look, icon=icon, key=f"launch_{key}", on_click=_start, args=(version,))
        st.caption(words, width="content")
        with st.popover("Terminal", type="tertiary", icon=":material/terminal:", key=f"terminal_{key}"):
            st.code(shlex.join(["mrnlab", *version.arguments()]), language=None)
            st.caption("It goes on where it was; with --dry-run it says what is to be run, and for how long.")


def _start(version: Version) -> None:
    """As a callback, so that no refresh of the page comes between the click and what it does."""
    st.session_state.pop(_PROBLEM, None)
    try:
        left_out = start_study(resources.store(), version)
    except MRNLabError as error:
        st.session_state[_PROBLEM] = version.study, str(error)
        return
    queued = resources.study_standing(version).active
    words = f"{plural(queued, 'run')} of {version.study} queued; the others follow by themselves."
    actions.toast(" ".join([words, *left_out]))


def _encoder(name: str) -> tuple[str | None, str]:
    """The encoder that the study is shown over, none for its own, and how it is trained."""
    choices: dict[str, tuple[str | None, str]] = {"As the study has it": (None, "full")}
    choices |= {
        f"{PurePath(encoder).name}{'' if training == 'full' else f', {training}'}": (encoder, training)
        for encoder, training in resources.study_encoders(name)
    }
    if len(choices) == 1:
        return None, "full"
    chosen = choice("Encoder", choices.keys(), key="over", width=240)
    return choices[chosen]


def _paper(view: TableView, study: Study) -> None:
    """The published table with our figures beside the published ones, which are grey, and the cost."""
    paper = view.paper
    st.subheader(paper.title, anchor=False)
    show_table(paper_sheet(view), alt="Our scores beside the published ones")
    for text in (view.summary, f"Published: {paper.citation}. {paper.note}", study.protocol):
        if text:
            st.caption(escape(text))
    if any(outcome.cost is not None for outcome in view.rows.values()):
        with st.expander("What each model costs"):
            show_table(cost_sheet(view), alt="Parameters, peak memory and time by model")
            st.caption(COST_NOTE)


def _overview(study: Study, results: Sequence[Result]) -> None:
    """Settings × families: the mean difference to the reference."""
    if not any(MEAN in outcome.differences for result in results for outcome in result.outcomes):
        return
    reference = study.family(study.reference).title
    with st.container(height=_TALL if len(results) > _MANY else "content", border=False):
        alt = f"Mean difference from {reference} by method and setting"
        show_table(overview(study, results), alt=alt, columns_first=True)
    st.caption(
        f"Mean difference from {escape(reference)} over a setting's tasks, in points. Bold red: higher. Bold "
        "blue: lower. Plain: negligible. Grey: undecided. p is corrected for the methods of a setting. "
        "Empty: not compared there, or not yet."
    )


def _chosen(results: Sequence[Result]) -> list[Result]:
    """The settings to show in full."""
    names = [result.setting.name for result in results]
    if not set(st.session_state.get("setting", ())) <= set(names):
        del st.session_state["setting"]  # chosen in another part
    picked = st.multiselect(
        "Settings",
        names,
        default=names if len(names) <= _FEW else names[:1],
        key="setting",
        bind="query-params",
        placeholder="Choose settings to open",
    )
    return [result for result in results if result.setting.name in picked]


def _setting(result: Result, study: Study) -> None:
    """The answer, the forest of differences, the table."""
    with st.container(border=True):
        st.markdown(f"**{escape(result.setting.title)}**")
        st.markdown(escape(answer(result)))
        view = study_forest(result)
        if view.marks:
            chart(
                forest_chart(view, _colours(result.setting.targets)),
                key=f"forest_{result.setting.name}",
                revision=" ".join(view.families),
                still=True,
                alt=f"Differences from {view.reference} with their 95% intervals",
            )
        show_table(setting_sheet(result), alt="Scores, chosen candidates and differences by method")
        least = min(
            (outcome.scores[MEAN].n for outcome in result.outcomes if MEAN in outcome.scores), default=0
        )
        if least < len(study.seeds):
            st.caption(f"Still under way or incomplete: {least} of {plural(len(study.seeds), 'seed')}.")


def _colours(targets: Sequence[str]) -> dict[str, str]:
    """The tasks' own colours; in a store with more tasks than colours, some that tell these apart."""
    known = colours(resources.task_order())
    return known if len({known.get(target) for target in targets}) == len(targets) else colours(targets)


def _notes(study: Study, results: Sequence[Result]) -> None:
    st.caption(
        "Test sentences, in percent: mean ± standard deviation over seeds. Differences are paired by seed, "
        "with the 95% interval of each by itself; p is corrected for the methods of a setting (Holm), and "
        "the verdict follows it. Bold: higher. Task correlation is what was learned in the end, the mean "
        "over pairs with a target. Of each method the candidate with the best dev mean over "
        f"{plural(len(study.search_seeds), 'seed')} was trained with all seeds."
    )
    for title, count in failures(results):
        st.caption(f":material/warning: {escape(title)}: {plural(count, 'run')} failed; Runs tells why.")
