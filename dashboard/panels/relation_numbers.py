"""Under the matrix: the covariance shown in numbers, and planted beside learned relatedness."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from core.mrn.relations import Relations
from core.store.records import Run, SnapshotKey
from dashboard import resources
from dashboard.caches.curves import curve_series
from dashboard.charts import planted_chart
from dashboard.components import chart
from dashboard.queries.relation_numbers import in_numbers, number_keys, planted
from dashboard.queries.relations import RelationsView
from dashboard.text import escape, plural, unsigned_zero
from dashboard.theme import colours

__all__ = ["numbers_panel", "planted_panel"]


def numbers_panel(
    runs: Sequence[Run],
    views: Sequence[RelationsView],
    learned: Sequence[Relations],
    keys: Sequence[Sequence[SnapshotKey]],
) -> None:
    """The covariances shown, in numbers: of one run each with its line over training, of several side by
    side.
    """
    mode, size = views[0].mode, len(views[0].rows)
    all_rows = [
        in_numbers(view, one, curve_series([run], number_keys(mode)), own)
        for run, view, one, own in zip(runs, views, learned, keys, strict=True)
    ]
    st.markdown("**In numbers** at this step")
    if len(runs) == 1:
        columns = {
            "At this step": [row.value for row in all_rows[0]],
            "Over training": [list(row.line) for row in all_rows[0]],
        }
    else:
        titles = [row.title for row in all_rows[0]]
        told = [{row.title: row.value for row in rows} for rows in all_rows]
        columns = {
            f"Run {run.id}": [one.get(title, "–") for title in titles]
            for run, one in zip(runs, told, strict=True)
        }
    st.dataframe(
        pd.DataFrame({"Number": [row.title for row in all_rows[0]], **columns}),
        key=f"relations_numbers_{mode}",
        hide_index=True,
        height="content",
        column_config={
            "Number": st.column_config.TextColumn(width=110, pinned=True),
            "Over training": st.column_config.LineChartColumn(width=150),
        },
        alt="The covariances in numbers at this step",
    )
    st.caption(
        f"Effective rank: how many directions share the variance, from 1 to {size:,}. "
        "Condition: largest eigenvalue over smallest, 1 where all directions are alike, ∞ where the "
        "matrix is singular."
    )


def planted_panel(run: Run, view: RelationsView) -> None:
    """Where tasks are simulated: how related they were made, beside how related they were learned to be."""
    found = planted(run, view)
    if found is None:
        return
    st.markdown(f"**Planted and learned**: each simulated task and {escape(found.real)}")
    left, right = st.columns([5, 3], gap="large")
    with left:
        chart(
            planted_chart(found, colours(resources.task_order())),
            key="planted",
            revision=str(run.id),
            still=True,
            alt=f"Learned correlation with {found.real} over planted relatedness, a point per simulated task",
        )
    with right:
        st.dataframe(
            pd.DataFrame(
                {
                    "Task": pair.task,
                    "α": pair.alpha,
                    "Planted AMI": pair.ami,
                    "Learned": unsigned_zero(pair.learned, 3),
                }
                for pair in found.pairs
            ),
            key="relations_planted",
            hide_index=True,
            height="content" if len(found.pairs) <= 8 else 320,
            column_config={
                "α": st.column_config.NumberColumn(format="%.2f", width=64),
                "Planted AMI": st.column_config.NumberColumn(format="%.3f"),
                "Learned": st.column_config.NumberColumn(format="%.3f"),
            },
            alt="Planted relatedness and learned correlation of each simulated task",
        )
        st.caption(
            "α: chance that the task keeps a word's real label. AMI: adjusted mutual information of its "
            "labels and the real ones, 0 unrelated, 1 the same."
        )
        if found.agreement is not None:
            st.caption(
                f"Rank correlation of planted and learned: **{found.agreement:z.2f}** over "
                f"{plural(len(found.pairs), 'task')}; 1 is the same order."
            )
