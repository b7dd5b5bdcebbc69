"""The studies on the Compare page: which one, its overview, and per setting the answer, forest and table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import PurePath

import pandas as pd
import streamlit as st

from core.evaluation.costs import COST_NOTE
from core.studies import STUDIES, Study
from core.studies.analysis import HELPS, HURTS, MEAN, NOT_SHOWN, Outcome, Result, TableView, table_view
from core.studies.published import ABOVE, BELOW, CITATION, WITHIN
from core.wording import p_text, percent, plural, signed_points
from dashboard.compare.charts import forest_chart
from dashboard.compare.views import (
    FIXED,
    failures,
    has_scores,
    published_text,
    score_text,
    study_answer,
    study_forest,
    study_points,
    targets,
)
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.shared.states import empty
from dashboard.text import escape
from dashboard.theme import colours
from jobs.naming import COST_HEAD, correlation_text, cost_cells

_VERDICTS = {
    WITHIN: ":material/check: within",
    ABOVE: ":material/arrow_upward: above",
    BELOW: ":material/arrow_downward: below",
}
_LOOKS = {HELPS: ":red[**{}**]", HURTS: ":blue[**{}**]", NOT_SHOWN: ":gray[{}]"}
_FEW = 3
"""So many settings are all opened from the start."""
_MANY, _TALL = 12, 480
"""Beyond so many settings their overview scrolls, within so many pixels."""


def studies() -> None:
    """The whole view, from the choice of the study on."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.selectbox(
            "Study", list(STUDIES), key="study", bind="query-params", format_func=str.capitalize, width=240
        )
        study, results = resources.study_results(str(name), *_encoder(str(name)))
        parts = study.parts()
        part = st.segmented_control(
            "Part", parts, default=parts[0], required=True, key="part", bind="query-params",
            format_func=str.capitalize,
        )  # fmt: skip
    st.markdown(escape(study.question))
    of_part = [result for result in results if result.setting.part == part]
    scored_results = [result for result in of_part if has_scores(result)]
    if not scored_results:
        _not_run(study, str(part))
    if (view := table_view(study, str(part), results)) is not None:
        _paper(view, study)
    if not scored_results:
        return
    _overview(study, of_part)
    for result in _chosen(scored_results):
        _setting(result, study)
    _notes(study, of_part)


def _encoder(name: str) -> tuple[str | None, str]:
    """The encoder that the study is shown over, None for its own, and how it is trained."""
    choices: dict[str, tuple[str | None, str]] = {"As the study has it": (None, "full")}
    choices |= {
        f"{PurePath(encoder).name}{', frozen' if training == 'frozen' else ''}": (encoder, training)
        for encoder, training in resources.study_encoders(name)
    }
    if len(choices) == 1:
        return None, "full"
    chosen = st.selectbox("Encoder", list(choices), key="over", bind="query-params", width=240)
    return choices[chosen]


def _paper(view: TableView, study: Study) -> None:
    """The published table: our figures beside the published ones, the rows it quotes in grey, the cost."""
    st.subheader(view.title, anchor=False)
    lines: dict[str, dict[str, str]] = {}
    for quoted in view.reported:
        line = lines[f":gray[{escape(quoted.model)}]"] = {"Chosen on dev": ":gray[reported]"}
        for task in view.tasks:
            line[escape(task)] = ""
            line[f"{escape(task)}, published"] = (
                f":gray[{quoted.scores[task]:.2f}]" if task in quoted.scores else ""
            )
    for model, outcome in view.rows.items():
        line = lines[escape(model)] = {"Chosen on dev": escape(outcome.chosen)}
        for task in view.tasks:
            line[escape(task)] = score_text(outcome.scores.get(task))
            mark = _VERDICTS.get(outcome.verdict(task), "")
            line[f"{escape(task)}, published"] = (
                f"{published_text(outcome.published.get(task))} {mark}".strip()
            )
    st.table(
        pd.DataFrame.from_dict(lines, orient="index"),
        border="horizontal",
        alt="Our scores beside the published ones",
    )
    st.caption(view.summary)
    st.caption(
        f"Published: {escape(CITATION)}. Within: our mean lies at most one published standard deviation "
        "from the published mean. A published figure stands only beside what was trained and scored as "
        "there, the encoder fine-tuned."
    )
    if view.reported:
        sources = ", ".join(f"{row.model} from {row.source}" for row in view.reported)
        st.caption(f"Reported: what the paper quotes from the literature. {escape(sources)}.")
    st.caption(escape(study.protocol))
    if any(outcome.cost is not None for outcome in view.rows.values()):
        with st.expander("What each model costs"):
            costs = {escape(model): cost_cells(outcome.cost) for model, outcome in view.rows.items()}
            head = [name.capitalize() for name in COST_HEAD]
            st.table(
                pd.DataFrame.from_dict(costs, orient="index", columns=head),
                border="horizontal",
                alt="Parameters, peak memory and time by model",
            )
            st.caption(COST_NOTE)


def _not_run(study: Study, part: str) -> None:
    empty(
        "Not run yet",
        "No run of this part has finished in this store. Launch it from a terminal; it can be stopped and "
        "goes on where it was. The first line below lists its runs and tells how long they take.",
    )
    command = f"mrnlab study {study.name} --part {shlex.quote(part)}"
    st.code(f"{command} --dry-run\n{command}", language=None)


def _overview(study: Study, results: Sequence[Result]) -> None:
    """Settings × families: the mean difference to the reference."""
    lines = {}
    for result in results:
        means = {outcome.family.title: outcome.differences.get(MEAN) for outcome in result.outcomes}
        lines[escape(result.setting.name)] = {
            escape(title): _LOOKS[mean.verdict].format(signed_points(mean.paired.mean))
            for title, mean in means.items()
            if mean is not None
        }
    titles = [escape(family.title) for family in study.families]
    frame = pd.DataFrame.from_dict(lines, orient="index").reindex(columns=titles).dropna(axis=1, how="all")
    if frame.empty:
        return
    reference = study.family(study.reference).title
    with st.container(height=_TALL if len(frame) > _MANY else "content", border=False):
        st.table(
            frame.fillna(""),
            border="horizontal",
            alt=f"Mean difference to {reference} by method and setting",
        )
    st.caption(
        f"Mean difference to {escape(reference)} over a setting's tasks, in points. Bold red: it "
        "helps. Bold blue: it hurts. Grey: no difference is shown, by p corrected for the methods of a "
        "setting. Empty: not compared there, or not yet."
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
        st.markdown(escape(study_answer(result)))
        view = study_forest(result)
        if view.marks:
            chart(
                forest_chart(view, _colours(result.setting.targets)),
                key=f"forest_{result.setting.name}",
                revision=" ".join(view.families),
                still=True,
                alt=f"Differences to {view.reference} with their 95% intervals",
            )
        _table(result)
        least = min(
            (outcome.scores[MEAN].n for outcome in result.outcomes if MEAN in outcome.scores), default=0
        )
        if least < len(study.seeds):
            st.caption(f"Still under way or incomplete: {least} of {plural(len(study.seeds), 'seed')}.")


def _colours(targets: Sequence[str]) -> dict[str, str]:
    """The tasks' own colours; in a store with more tasks than colours, some that tell these apart."""
    known = colours(resources.task_order())
    return known if len({known.get(target) for target in targets}) == len(targets) else colours(targets)


def _table(result: Result) -> None:
    learned = any(outcome.learned for outcome in result.outcomes)
    lines = {
        escape(outcome.family.title): _line(outcome, targets(result), learned=learned)
        for outcome in result.outcomes
    }
    st.table(
        pd.DataFrame.from_dict(lines, "index"),
        border="horizontal",
        alt="Scores, chosen candidates and differences by method",
    )


def _line(outcome: Outcome, columns: Sequence[str], *, learned: bool) -> dict[str, str]:
    mean = outcome.differences.get(MEAN)
    weight = "**" if mean is not None and mean.verdict == HELPS else ""
    return {
        "Difference": "reference" if mean is None else f"{weight}{_whole(study_points(mean))}{weight}",
        "p": "" if mean is None else _whole(p_text(mean.p_holm)),
        "Verdict": "" if mean is None else _whole(mean.verdict),
        **{escape(target): score_text(outcome.scores.get(target)) for target in columns},
        "Dev": percent(None if outcome.dev is None else outcome.dev.mean),
        "Chosen on dev": escape(outcome.chosen),
        **({"Task correlation": _whole(correlation_text(outcome.learned))} if learned else {}),
    }


def _whole(text: str) -> str:
    """Kept on one line."""
    return escape(text).replace(" ", FIXED)


def _notes(study: Study, results: Sequence[Result]) -> None:
    st.caption(
        "Test sentences, in percent: mean ± standard deviation over seeds. Differences are paired by seed, "
        "with the 95% interval of each by itself; p is corrected for the methods of a setting (Holm), and "
        "the verdict follows it. Bold: it helps. Task correlation is what was learned in the end, the mean "
        "over pairs with a target. Of each method the candidate with the best dev mean over "
        f"{plural(len(study.search_seeds), 'seed')} was trained with all seeds."
    )
    for title, count in failures(results):
        st.caption(f":material/warning: {escape(title)}: {plural(count, 'run')} failed; Runs tells why.")
