"""The table of studies with a button for each; the page of one study with its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.evaluation.comparison import EQUIVALENT, HIGHER, LOWER, UNDECIDED
from core.evaluation.costs import COST_NOTE
from core.registry import FULL
from core.results.figures import forest_chart
from core.studies import STUDIES, Study
from core.studies.analysis import MEAN, RARE, Result, TableView, joined, table_view
from core.studies.answer import (
    answered,
    from_bases,
    headline,
    how_measured,
    study_answer,
    unit,
)
from core.studies.factors import FACTORS, answers_of, first_grid, gains_by_factor, grid_answer, trends
from core.studies.meaning import meanings, meanings_in
from core.studies.recorded import PAIRS, PAIRS_TITLE, RECORDS, Record, records_of
from core.studies.study import ALPHA, TERMS
from core.tasks.scores import scale_text
from core.wording import about_time, capitalised, p_sentence, plural, plural_range, uncapitalised
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.shared.docs import file_link
from dashboard.shared.downloads import show_table
from dashboard.shared.live import live
from dashboard.shared.selection import choice, segments
from dashboard.shared.states import problem, show_answer, title
from dashboard.studies.charts import factor_charts, settings_chart
from dashboard.studies.controls import launch_or_stop, study_state
from dashboard.studies.views import (
    alone_in_a_setting,
    failures,
    gains_forest,
    has_scores,
    largest_gain,
    left_out,
    over_bases,
    over_reference,
    over_reference_rare,
    overview,
    plainly_named,
    scored,
    settings_forest,
    small_forest,
    study_forest,
    trends_forest,
)
from dashboard.text import escape, with_code
from dashboard.theme import colours
from jobs.reports.parts import Sheet
from jobs.studies.pairs import answer as gains_answer
from jobs.studies.pairs import seeds_text
from jobs.studies.progress import StudyOptions
from jobs.studies.report import cost_sheet, paper_sheet

_PAGE = "studies/page.py"
_FEW = 3
"""So many settings are all opened from the start."""
_TRENDS = {
    HIGHER: "gain grows",
    LOWER: "gain falls",
    EQUIVALENT: "no change that matters",
    UNDECIDED: "undecided",
}
"""How the gain changes with a factor, by the verdict on the factor's ends."""
_MANY, _TALL = 16, 480
"""Beyond so many rows a table scrolls, within so many pixels."""
_KEY = {
    HIGHER: ":green[**higher**]",
    LOWER: ":orange[**lower**]",
    UNDECIDED: ":gray[undecided]",
    EQUIVALENT: "≈ equivalent",
}
"""How a table of differences shows each verdict, as Markdown."""
_GROUPS = {"priors": "Does MRN help?", "sc-lstm": "Does sharing help?", "tea": "Do other methods help?"}
"""By the first study of each group what its studies ask."""
_HEAD = 5, 3
"""The widths of the title of a study, and of what runs it."""
_COLUMNS = {"Study": 4, "Answer": 9}
"""The heads of the table of studies, with the widths of its columns."""


def studies() -> None:
    """The study in the page's address, or the table of all studies."""
    name = st.query_params.get("study", "")
    if name in STUDIES:
        _study(name)
        return
    answered_now = sum(bool(records_of(study)) for study in STUDIES)
    title(
        "Studies",
        f"{len(STUDIES)} experiments of papers and of this laboratory, {answered_now} with an answer from "
        "recorded runs. STL trains each task alone, MTL all together, MRN adds a prior that draws related "
        "heads together. Lines are 95% intervals; filled marks are decided, hollow ones may be chance.",
    )
    if name:
        problem(f"No study is called {name}. These are the studies.")
    with st.container(key="studies_head"):
        for column, head in zip(st.columns([*_COLUMNS.values()], gap="medium"), _COLUMNS, strict=True):
            column.caption(head)
    live(_table, resources.pace, key="studies_table")


def _table() -> None:
    """A row for each study: question, published answer with what this store has, one button."""
    for name, now in resources.studies_by_now().items():
        study = STUDIES[name]
        if name in _GROUPS:
            st.subheader(_GROUPS[name], anchor=False)
        with st.container(key=f"study_row_{name}"):
            question, answered = st.columns([*_COLUMNS.values()], gap="medium")
        with question:
            st.page_link(
                _PAGE, label=f"**{escape(study.title)}**", query_params={"study": name},
                icon=":material/arrow_forward:", icon_position="right",
            )  # fmt: skip
            st.caption(escape(study.question))
            with st.container(horizontal=True, vertical_alignment="center", key=f"study_act_{name}"):
                counts = now and now[1]
                launch_or_stop(study, counts, StudyOptions(name), [], f"study_{name}", is_quiet=True)
                if now is not None:
                    st.caption(_cost(now), width="content")
        with answered:
            _published(study)
            if now is not None and any((now[1].done, now[1].active, now[1].failed)):
                _here(name, now)


def _published(study: Study) -> None:
    records = records_of(study.name)
    if not records:
        st.caption("Not answered yet: its runs are not recorded. *Launch* trains them.")
        return
    record, leads = records[0], list[str]()
    if study.pairs:
        gains = record.gains(PAIRS)
        words, setting, view = gains_answer(gains, study.pairs), PAIRS_TITLE, gains_forest(gains, study.pairs)
        axis, more = "Points over STL", " Filled: decided among the pairs of a main task."
        seeds = seeds_text(gains)
    else:
        results = [record.result(each) for each in record.settings]
        result = plainly_named(results[0])
        asked = study_answer(record.definition, joined(results))
        grid = [] if asked or not study.by_relatedness else first_grid(results)
        axis = f"{capitalised(unit(result))} over {study.method(study.reference).in_sentence}"
        if grid:
            words, view, more = " ".join(grid_answer(grid)), trends_forest(grid), ""
            setting, axis = "Simulated tasks, from the least to the most of each factor", f"Change of {axis}"
            drawn = [*trends(grid).values()]
        else:
            words, setting = asked or headline(result), result.setting.title
            named = study.asked.methods if asked and study.asked else ()
            leads = [capitalised(study.method(name).in_sentence) for name in named]
            view = study_forest(result, (MEAN,))
            shown, every = len(view.marks) - left_out(view), len(view.marks)
            more = f" {shown} of {every} methods shown." * (shown < every)
            drawn = [each.differences[MEAN] for each in result.outcomes if MEAN in each.differences]
        seeds = plural_range((delta.seeds for delta in drawn), "seed")
    st.markdown(f"**{escape(words)}**")
    with st.container(gap="xxsmall"):
        st.caption(escape(f"{axis} on {uncapitalised(setting)}, {seeds}"))
        st.html(small_forest(view, axis, leads))
        st.caption(f"{plural(record.runs, 'recorded run')}.{more}")


def _here(study: str, now: resources.StudyNow) -> None:
    """What this store has of a study: its runs, and the answer of the first setting with scores."""
    results, counts, _ = now
    texts = f"{counts.done:,} of {plural(counts.total, 'run')} done"
    texts += f", {counts.active:,} queued or in progress" * bool(counts.active)
    texts += f", {counts.failed:,} failed" * bool(counts.failed)
    first_answer = "".join(f" {headline(result)}" for result in scored(results)[:1])
    with st.container(key=f"here_{study}"):
        st.markdown(f"**In this store** {escape(f'{texts}.{first_answer}')}")


def _cost(now: resources.StudyNow) -> str:
    """How many runs are left to do, and how long they take where that is known."""
    _, counts, seconds = now
    left = counts.total - counts.done
    time = f", {about_time(seconds)}" if seconds else ""
    return f"{plural(left, 'run')} left{time}" if left else ""


def _study(name: str) -> None:
    study = STUDIES[name]
    st.page_link(_PAGE, label="All studies", icon=":material/arrow_back:")
    named, head = st.columns(_HEAD, gap="medium", vertical_alignment="bottom")
    with named:
        title(escape(study.title), escape(study.question), link=file_link(f"studies/{name}.md"))
    options, record = _results(name)
    with head:
        live(partial(study_state, study, options, record), resources.pace, key=f"study_{name}")


def _results(name: str) -> tuple[StudyOptions, Record | None]:
    """Draws the results of a study, part by part; returns the options shown and their published record."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        encoder, training = _encoder(name)
        options = StudyOptions(name, encoder=encoder, encoder_training=training)
        record = next((each for each in RECORDS if each == Record(name, encoder, training)), None)
        study, results, is_published = _shown_results(options, record)
        parts = {result.setting.part for result in results if has_scores(result)}
        part = segments(
            "Part",
            {part: capitalised(part) for part in study.parts()},
            key="part",
            default=next((part for part in study.parts() if part in parts), study.parts()[0]),
            labelled=True,
        )
    if about := study.about.get(part):
        st.caption(escape(about))
    of_part = [plainly_named(result) for result in results if result.setting.part == part]
    joined_results = joined(of_part)
    scored_results = [result for result in of_part if has_scores(result)]
    options = replace(options, part=part)
    if study.pairs and record is not None and is_published:
        answers = [gains_answer(record.gains(part), study.pairs)]
    else:
        answers = answers_of(study, of_part)
    by_name = meanings(joined_results)
    if answers:
        show_answer(answers[0], key="study_part")
        _explained(study, answers, of_part, by_name)
    if not scored_results:
        where = "is recorded" if is_published else "has finished in this store"
        st.caption(f"No run of this part {where}.")
    elif study.by_relatedness:
        _by_factor(of_part)
    elif len(joined_results) > 1 and not study.pairs:
        _by_setting(study, joined_results)
    if len(joined_results) > 1:
        _overview(study, joined_results, by_name)
    view = table_view(study, part, results)
    is_single = len(of_part) == 1 and bool(scored_results)
    if view is not None and not is_single:
        _paper(view, study)
    if scored_results:
        for result in _chosen(
            scored_results, largest_gain(scored_results) if study.by_relatedness else scored_results[0]
        ):
            # Of a single setting the part's answer is the headline.
            _setting(result, "" if is_single else headline(result), by_name)
        if view is not None and is_single:  # the chart of a single setting is in its card
            _paper(view, study)
        if study.by_relatedness and not is_published:
            _formulas(resources.study_grid(options), part)
        _meanings(by_name)
        _notes(study, of_part)
    return options, record


def _explained(
    study: Study, answers: Sequence[str], results: Sequence[Result], by_name: Mapping[str, str]
) -> None:
    """Draws what else the answer says, what it is measured by, and what the methods are that it names."""
    if len(answers) > 1:
        st.markdown(escape(" ".join(answers[1:])))
    key = "Bars: 95% intervals. ● decided; ○ undecided, which may be chance (p ≥ 0.05 after correction)."
    alike = (
        "Each mark: the mean over settings that are alike in all else; solid line: the gain grows or falls."
    )
    is_grid = study.by_relatedness and len(results) > 1
    st.caption(escape(" ".join([how_measured(results), key, *[alike, ALPHA] * is_grid])))
    reference = study.method(study.reference).in_sentence
    if named := meanings_in(" ".join([*answers, reference]), by_name):
        texts = [f"**{escape(capitalised(name))}**: {escape(text)}" for name, text in named.items()]
        st.caption(" ".join(texts))


def _shown_results(options: StudyOptions, record: Record | None) -> tuple[Study, list[Result], bool]:
    """The study with the results that the reader chose, and whether these are the published ones.

    By default they are those of this store once it has some.
    """
    study, here = resources.study_results(options)
    if record is None:
        return study, here, False
    done = resources.study_counts(options).done
    texts = {
        "published": f"Recorded, {plural(record.runs, 'run')}",
        "store": f"This store, {plural(done, 'run')}",
    }
    default = "store" if any(map(has_scores, here)) else "published"
    if segments("Results", texts, key="results", default=default, labelled=True) == "store":
        return study, here, False
    return study, [record.result(setting) for setting in record.settings], True


def _encoder(name: str) -> tuple[str | None, str]:
    """The encoder that the study is shown over, none for its own, and how it is trained."""
    choices: dict[str, tuple[str | None, str]] = {"As the study has it": (None, FULL)}
    others = resources.study_encoders(name)
    folders = Counter((PurePath(encoder).name, training) for encoder, training in others)
    for encoder, training in others:
        short = PurePath(encoder).name
        text = short if folders[short, training] == 1 else encoder
        choices[text if training == FULL else f"{text}, {training}"] = encoder, training
    if len(choices) == 1:
        return None, FULL
    now, records = resources.studies_by_now().get(name), records_of(name)
    has_own = not records or (now is not None and now[1].done)
    first = (None, FULL) if has_own else (records[0].encoder, records[0].encoder_training)
    default = next(text for text, encoder in choices.items() if encoder == first)
    return choices[choice("Encoder", choices.keys(), key="over", width=240, default=default)]


def _paper(view: TableView, study: Study) -> None:
    """Draws the published table with our figures, the published ones in grey, and the cost."""
    paper = view.paper
    st.subheader(paper.title, anchor=False)
    with _scrolled(len(view.rows) + len(paper.reported)):
        show_table(paper_sheet(view), alt="Our scores beside the published ones")
    for text in (view.summary, f"Published: {paper.citation}. {paper.note}", study.protocol):
        if text:
            st.caption(with_code(text))
    if any(outcome.cost is not None for outcome in view.rows.values()):
        with st.expander("What each model costs"):
            show_table(cost_sheet(view), alt="Parameters, peak memory and time by model")
            st.caption(COST_NOTE)


def _by_factor(results: Sequence[Result]) -> None:
    """Draws the gain in a grid of simulated tasks by each of its factors, and what it grows by in all."""
    by_factor = gains_by_factor(results)
    tested = trends(results)
    charts = factor_charts(by_factor, tested, unit(results[0]))
    for column, (factor, trend) in zip(st.columns(len(charts) or 1), tested.items(), strict=False):
        with column:
            first, last = (FACTORS[factor].value(end(by_factor[factor])) for end in (min, max))
            st.markdown(f"**{capitalised(FACTORS[factor].title)}: {_TRENDS[trend.verdict]}**")
            p = f", corrected {p_sentence(trend.p)}" * (trend.p is not None)
            st.caption(f"From {first} to {last}: {escape(trend.in_points + p)}")
            chart(
                charts[factor],
                key=f"gain_by_{factor}",
                revision=results[0].setting.part,
                still=True,
                alt=f"Gain over STL by {FACTORS[factor].title}",
            )


def _formulas(table: pd.DataFrame, part: str) -> None:
    """Draws the errors of published formulas on the cells of a grid, where its relatedness (AMI) is known."""
    from jobs.studies.grids import published_sheet  # learns formulas, which takes a second to import

    if (sheet := published_sheet(table, part)) is not None:
        st.subheader("Published formulas", anchor=False)
        show_table(sheet, alt="Errors of the published formulas on our cells")
        st.caption(escape(sheet.caption))


def _scrolled(rows: int) -> DeltaGenerator:
    """Room for a table of so many rows: many scroll."""
    return st.container(height=_TALL if rows > _MANY else "content", border=False)


def _by_setting(study: Study, results: Sequence[Result]) -> None:
    """Draws what the answer is counted from: differences by setting."""
    if not (view := settings_forest(results)).marks:
        return
    leads = [capitalised(method) for method in answered(study, results)]
    chart(
        settings_chart(view, leads),
        key="by_setting",
        revision=" ".join(view.rows),
        still=True,
        alt=f"Differences from {view.reference} by setting and method",
    )


def _overview(study: Study, results: Sequence[Result], by_name: Mapping[str, str]) -> None:
    if not any(MEAN in outcome.differences for result in results for outcome in result.outcomes):
        return
    reference = study.method(study.reference).in_sentence
    sheet = overview(results)
    entries = [entry for block in sheet.blocks for _, row in block.rows for entry in row if entry is not None]
    verdicts = {entry.verdict for entry in entries if entry.is_defined}
    words = [mark for verdict, mark in _KEY.items() if verdict in verdicts]
    words += ["– not run"] * any(entry.is_number and not entry.is_defined for entry in entries)
    titles = " ".join(result.setting.title for result in results)
    terms = [text for word, text in TERMS.items() if word in titles] if not study.by_relatedness else []
    st.subheader(f"Points over {escape(reference)}", anchor=False)
    mean = "Mean over tasks: " * any(len(result.setting.targets) > 1 for result in results)
    caption = f"{mean}{', '.join(words)}. Bold: the largest gain of a row, if decided."
    st.caption(" ".join([caption, *map(escape, terms)]))
    with st.container(key="study_overview"), _scrolled(sum(len(each.rows) for each in sheet.blocks)):
        show_table(
            sheet,
            alt=f"Mean difference from {reference} by setting and method",
            hovers=_hovers(by_name),
        )
    if alone := alone_in_a_setting(results):
        st.caption(escape(alone))


def _meanings(by_name: Mapping[str, str]) -> None:
    """Draws what each method is, folded."""
    with st.expander("What the methods are"), st.container(key="study_methods"):
        lines = (f"- **{escape(capitalised(name))}**: {escape(text)}" for name, text in by_name.items())
        st.markdown("\n".join(lines))


def _chosen(results: Sequence[Result], first: Result) -> list[Result]:
    """The settings that the reader has opened: `first` where they are many; one alone is open."""
    if len(results) == 1:
        return list(results)
    names = [result.setting.name for result in results]
    if not set(st.session_state.get("setting", ())) <= set(names):
        del st.session_state["setting"]  # chosen in another part
    picked = st.multiselect(
        "Settings to look at closely",
        names,
        default=names if len(names) <= _FEW else [first.setting.name],
        format_func={result.setting.name: result.setting.title for result in results}.__getitem__,
        key="setting",
        bind="query-params",
        placeholder="Choose settings to open",
    )
    return [result for result in results if result.setting.name in picked]


def _setting(result: Result, sentence: str, by_name: Mapping[str, str]) -> None:
    """Draws a setting: this sentence on it, the forest of its differences, and its table."""
    with st.container(border=True):
        st.subheader(escape(result.setting.title), anchor=False)
        st.markdown(escape(f"{sentence} {from_bases(result)}".strip()))
        if (view := study_forest(result)).marks:
            chart(
                forest_chart(view, _colours(result.setting.targets)),
                key=f"forest_{result.setting.name}",
                revision=" ".join(view.rows),
                still=True,
                alt=f"Differences from {view.reference} with their 95% intervals",
            )
        _tables(result, by_name)


def _tables(result: Result, by_name: Mapping[str, str]) -> None:
    """Draws scores and differences of a setting's methods; folded those of rarer labels and from bases."""

    def show(sheet: Sheet, alt: str) -> None:
        show_table(replace(sheet, hides_n=result.is_complete), alt=alt, hovers=_hovers(by_name))

    with st.container(key=f"setting_table_{result.setting.name}"):
        show(over_reference(result), "Scores, chosen candidates and differences by method")
    folded = [over_bases(result)]
    if (rare := over_reference_rare(result)) is not None:
        folded.append((f"On {RARE}", rare))
    if titled := dict(filter(None, folded)):
        with st.expander(", and ".join([*titled][:1] + [uncapitalised(title) for title in [*titled][1:]])):
            for title, sheet in titled.items():
                st.markdown(f"**{escape(title)}**")
                show(sheet, title)


def _hovers(by_name: Mapping[str, str]) -> dict[str, str]:
    """What methods are, by their names in tables."""
    return {capitalised(name): text for name, text in by_name.items()}


def _colours(targets: Sequence[str]) -> dict[str, str]:
    """The tasks' colours; distinct ones for these tasks where two would have the same."""
    known = colours(targets, resources.task_colours())
    return known if len(set(known.values())) == len(targets) else colours(targets)


def _notes(study: Study, results: Sequence[Result]) -> None:
    measured = {name for result in results for each in result.outcomes for name in each.measures(MEAN)}
    has_learned = any(each.learned is not None for result in results for each in result.outcomes)
    is_chosen = any(each.chosen for result in results for each in result.outcomes)
    st.caption(
        f"Scores: {scale_text(measured)}, mean ± standard deviation over seeds. Differences: the 95% "
        "interval of each by itself; p is corrected for the methods of a setting (Holm), against other "
        "methods than the reference for those that change them; the verdict follows p."
        + " Task correlation: learned at the last step, mean over pairs with a target."
        * has_learned
        + " In brackets after a method: the candidate with the best dev mean over "
        f"{plural(len(study.search_seeds), 'seed')}, which all seeds train." * is_chosen
    )
    for setting, count in failures(results):
        st.caption(
            f":material/warning: {escape(setting)}: {plural(count, 'run')} failed; see Runs for the reason."
        )
