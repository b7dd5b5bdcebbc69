"""One run in full, or the runs of a configuration as a table: a page of their own, by `?id=12`.

Without an `id`, of the runs that are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.results.naming import corpus_name, field_texts, run_name, settings_text, short_name
from core.results.samples import readable
from core.store import Run
from core.wording import plural
from dashboard.runs.controls import chosen_bar
from dashboard.runs.run import run_in_full
from dashboard.runs.table import RUNS_SHOWN, follow, run_link, run_tables, way_back
from dashboard.runs.views import page_of
from dashboard.shared import actions, resources
from dashboard.shared.downloads import copy_link
from dashboard.shared.live import live
from dashboard.shared.run_picker import warn_missing_runs
from dashboard.shared.selection import chosen, run_numbers
from dashboard.shared.states import empty, title
from dashboard.text import escape

store = resources.store()
ids = run_numbers(st.query_params.get(RUNS_SHOWN, "")) or chosen()


def draw() -> None:
    follow()
    actions.show()
    runs = store.runs(ids)
    with st.container(horizontal=True, vertical_alignment="center"):
        way_back()
        if len(runs) == 1:
            siblings = store.runs_of([runs[0].configuration_id])
            if len(siblings) > 1:
                seeds = len({run.config.seed for run in siblings})
                label = (
                    f"All {plural(seeds, 'seed')}"
                    if seeds > 1
                    else f"All {len(siblings):,} runs of this seed"
                )
                run_link([run.id for run in siblings], label, ":material/list_alt:")
        st.space("stretch")
        copy_link()
    _title(runs)
    warn_missing_runs(set(ids) - {run.id for run in runs})
    if len(ids) == 1 and runs:
        run_in_full(store, ids[0])
    elif runs:
        tasks = resources.task_order()
        run_tables(page_of(store, runs, grouped=False, sort="old", page=1, tasks=tasks), "test")
        picked = store.runs(chosen())
        chosen_bar(picked, len({run.id for run in picked} - set(ids)))
    else:
        if not ids:
            empty("No run chosen", "A run's page opens by its name on Runs.")
        actions.undo_line()


def _title(runs: Sequence[Run]) -> None:
    known = readable(runs)[0]
    if len(ids) == 1:
        config = known[0].config if known else None
        (tasks,) = field_texts("tasks", [config.tasks]) if config else ("",)
        about = f"{tasks} · {settings_text(config)} ·" if config else ""
        title(f"Run {escape(run_name(runs[0]) if runs else ids[0])}", escape(about), "Runs")
        return
    names = {f"{short_name(run.config)} on {corpus_name(run.config.corpus)}" for run in known}
    about = f"{plural(len(runs), 'run')}." if runs else ""
    title(escape(names.pop()) if len(names) == 1 else "Runs", about, "Runs")


live(draw, resources.pace, key="run")
