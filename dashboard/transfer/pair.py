"""One pair on the Transfer page: gains by seed, losses, features, and which labels got better or worse."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core.store.records import MetricKey, Run
from core.tasks import kind_of
from core.tasks.confusion import NOTHING, OTHER_WORDS
from core.transfer.gains import Gains, Pair
from core.wording import all_of, plural
from dashboard.compare.closer_views import Errors, errors, mistakes
from dashboard.compare.scope import confusions
from dashboard.components.charts import chart
from dashboard.shared import resources
from dashboard.text import escape
from dashboard.theme import TASK_COLOURS
from dashboard.transfer.charts import loss_chart, seeds_chart
from dashboard.transfer.views import course, gain_sentence
from jobs.reports.transfer import PairGroup

_MOST_CHANGES = 10
_MOST_LABELS = 4


def pick_pair(gains: Gains, default: Pair) -> Pair:
    """Two selects; in the address as `main` and `aux`. Unknown tasks in it give the default."""
    for key, task in zip(("main", "aux"), default, strict=True):
        if st.session_state.get(key, st.query_params.get(key)) not in gains.tasks:
            st.session_state.pop(key, None)
            st.query_params.pop(key, None)
        # A default beside a value that a click on a cell has set is a warning of Streamlit's.
        place = 0 if key in st.session_state else gains.tasks.index(task)
        label = "Main task" if key == "main" else "Auxiliary task"
        st.selectbox(label, gains.tasks, index=place, key=key, bind="query-params", width=260)
    return st.session_state["main"], st.session_state["aux"]


def choose_pair(main: str, aux: str) -> None:
    """Show this pair. To be called before the selects are drawn."""
    st.session_state["main"], st.session_state["aux"] = main, aux


def pair_detail(group: PairGroup, pair: Pair, unit: str, colours: Mapping[str, str]) -> None:
    """Everything about one pair of tasks."""
    main, aux = pair
    if main == aux:
        st.caption("Choose two different tasks.")
        return
    known = [group.gains.pairs[order] for order in (pair, pair[::-1]) if order in group.gains.pairs]
    if not known:
        st.caption(f"No run trained {escape(main)} and {escape(aux)} together beside STL of the same seed.")
        return
    ids = [
        *group.alone.get(main, {}).values(),
        *group.alone.get(aux, {}).values(),
        *_beside(group, pair).values(),
    ]
    runs = {run.id: run for run in resources.store().runs(ids, with_facts=False)}
    scored = _scores(ids)
    with st.container(gap="xsmall"):
        for gain in known:
            st.markdown(gain_sentence(gain, unit))
    *first, middle, right = st.columns(2 if all(gain.is_equal for gain in known) else 3, gap="medium")
    for left in first:  # a chart of nothing but zeros would repeat the sentence
        with left:
            st.markdown("**Gain by seed**")
            by_seed = [_by_seed(group, gain.main, pair, scored) for gain in known]
            chart(
                seeds_chart(known, by_seed), key="pair_seeds", revision=" ".join(pair), still=True,
                alt=f"Gains of {main} and {aux} by each other, seed by seed",
            )  # fmt: skip
    for column, task in ((middle, main), (right, aux)):
        with column:
            st.markdown(f"**Training loss of {escape(task)}**")
            _losses(group, task, pair, runs, colours.get(task, TASK_COLOURS[-1]))
    for column, task, role in zip(st.columns(2, gap="large"), pair, ("main", "auxiliary"), strict=True):
        with column:
            _changes(group, task, role, pair, runs, scored)


def _beside(group: PairGroup, pair: Pair) -> Mapping[int, int]:
    return group.beside.get(pair) or group.beside.get(pair[::-1]) or {}


def _scores(ids: list[int]) -> dict[tuple[int, str], tuple[float, str]]:
    """By run and task the test score, and what it is called."""
    found = resources.store().scores(ids, "test", with_reports=False)
    return {(score.run_id, score.task): (score.score, score.score_name) for score in found}


def _by_seed(
    group: PairGroup, task: str, pair: Pair, scored: Mapping[tuple[int, str], tuple[float, str]]
) -> dict[int, float]:
    alone, beside = group.alone.get(task, {}), _beside(group, pair)
    return {
        seed: scored[beside[seed], task][0] - scored[alone[seed], task][0]
        for seed in sorted(alone.keys() & beside.keys())
        if (beside[seed], task) in scored and (alone[seed], task) in scored
    }


def _losses(group: PairGroup, task: str, pair: Pair, runs: Mapping[int, Run], colour: str) -> None:
    courses = {}
    for paradigm, ids in (("stl", group.alone.get(task, {})), ("mtl", _beside(group, pair))):
        of_paradigm = [runs[run_id] for run_id in ids.values()]
        curves = resources.curve_series(of_paradigm, [MetricKey(task, "train", "loss")])
        courses[paradigm] = course(curves, {run.id: run.step for run in of_paradigm})
    chart(
        loss_chart(courses, colour), key=f"pair_loss_{task == pair[0]}", revision=" ".join((task, *pair)),
        still=True, alt=f"Training loss of {task} alone and beside the other task",
    )  # fmt: skip


def _changes(
    group: PairGroup,
    task: str,
    role: str,
    pair: Pair,
    runs: Mapping[int, Run],
    scored: Mapping[tuple[int, str], tuple[float, str]],
) -> None:
    """What MTL takes for what more and less often than STL, counted over the seeds that both have."""
    seeds = list(_by_seed(group, task, pair, scored))
    st.markdown(f"**Mistakes on {escape(task)}** ({role})")
    alone, beside = group.alone.get(task, {}), _beside(group, pair)
    if not seeds:
        st.caption("STL and MTL have no seed in common.")
        return
    first = beside[seeds[0]]
    kind = kind_of(resources.store().run(first).facts, task, scored[first, task][1])
    if kind.is_number:
        st.caption("A number is missed by more or less: nothing is taken for anything else.")
        return
    both = [
        errors(confusions([runs[ids[seed]] for seed in seeds], "test", task, kind)) for ids in (alone, beside)
    ]
    stl, mtl = both
    if stl is None or mtl is None or stl.seeds != mtl.seeds:
        st.caption("Of some runs no predictions are stored.")
        return
    changed = changes(stl, mtl)
    if changed.empty:
        st.caption(f"The same alone and beside the other task, counted over {plural(len(seeds), 'seed')}.")
        return
    st.markdown(label_sentence(stl, mtl))
    number = st.column_config.NumberColumn
    st.dataframe(
        changed.head(_MOST_CHANGES),
        hide_index=True,
        height="content",
        key=f"changes_{role}",
        column_config={
            "STL": number(width=60),
            "MTL": number(width=60),
            "Change": number(format="%+d", width=70),
        },
        alt=f"The mistakes on {task} that change most from STL to MTL",
    )
    count = plural(len(changed), "change")
    shown = f"The {_MOST_CHANGES} largest of {count}" if len(changed) > _MOST_CHANGES else count
    over = f"counted on the test sentences over {plural(len(seeds), 'seed')}"
    st.caption(f"{shown}, {over}. Fewer mistakes are better.")


def changes(stl: Errors, mtl: Errors) -> pd.DataFrame:
    """The mistakes whose number differs, the largest change first, in counts over all seeds."""
    found = mistakes(stl, mtl)
    counts = (found[["A", "B"]].to_numpy() * stl.seeds).round().astype(int)
    frame = pd.DataFrame(
        {
            "Mistake": [
                f"{'nothing there' if gold == NOTHING else gold} → "
                f"{ {NOTHING: 'missed', OTHER_WORDS: 'other words'}.get(predicted, predicted) }"
                for gold, predicted in zip(found["gold"], found["predicted"], strict=True)
            ],
            "STL": counts[:, 0],
            "MTL": counts[:, 1],
            "Change": counts[:, 1] - counts[:, 0],
        }
    )  # fmt: skip
    frame = frame[frame["Change"] != 0]
    return frame.iloc[frame["Change"].abs().argsort(kind="stable")[::-1]]


def label_sentence(stl: Errors, mtl: Errors) -> str:
    """Which labels are right more often and less often under MTL, as Markdown."""
    labels = [label for label in dict.fromkeys((*stl.table.gold, *mtl.table.gold)) if label != NOTHING]
    more = {label: round(stl.seeds * (mtl.count(label, label) - stl.count(label, label))) for label in labels}
    ranked = sorted((label for label in labels if more[label]), key=lambda label: -abs(more[label]))

    def named(sign: int) -> str:
        of_sign = [label for label in ranked if more[label] * sign > 0][:_MOST_LABELS]
        return all_of([f"{escape(label)} {'+' if sign > 0 else '−'}{abs(more[label])}" for label in of_sign])

    parts = [
        f"Right more often: {named(1)}." if named(1) else "",
        f"Right less often: {named(-1)}." if named(-1) else "",
    ]
    return " ".join(filter(None, parts)) or "Every label is right equally often."
