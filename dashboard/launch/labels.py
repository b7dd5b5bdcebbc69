"""The preview of a corpus's labels: how often each split has each, and those that training never shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from core.corpora import CorpusSummary
from dashboard.queries.labels import LabelCounts, label_counts
from dashboard.text import all_of, escape, plural

__all__ = ["show_labels"]

_HEIGHT = 246


def show_labels(summary: CorpusSummary, tasks: Sequence[str], colour: Mapping[str, str]) -> None:
    """A tab for each chosen task: its labels, their counts as numbers and bars, and what is odd."""
    views = [label_counts(summary, task) for task in summary.tasks if task.name in tasks]
    if not views:
        st.caption("None chosen.")
        return
    names = [f':color[●]{{foreground="{colour[view.task]}"}} {escape(view.task)}' for view in views]
    for tab, view in zip(st.tabs(names), views, strict=True):
        with tab:
            _told(view)
            _table(view)


def _told(view: LabelCounts) -> None:
    number = len(view.rows)
    if view.spans:
        said = (
            f"{plural(number, 'kind')} of spans, which cover {_share(view.labelled)} of the training words."
        )
    else:
        said = f"{plural(number, 'label')} on {_share(view.labelled)} of the training words."
    if view.annotated < 0.995:
        said += f" Annotated on {_share(view.annotated)} of them."
    if odd := view.unseen:
        few = all_of([escape(label) for label in odd[:4]] + ([f"{len(odd) - 4} more"] if odd[4:] else []))
        said += f" :orange[:material/warning: Training never shows {few}.]"
    st.caption(said)


def _table(view: LabelCounts) -> None:
    frame = pd.DataFrame(
        {
            "Label": row.label,
            **{split.capitalize(): row.counts.get(split, 0) for split in view.splits},
            "": f"only in {all_of(row.only_in)}" if row.only_in else "",
        }
        for row in view.rows
    )
    if not any(frame[""]):
        del frame[""]
    unit = "Spans" if view.spans else "Words"
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(frame) <= 6 else _HEIGHT,
        column_config={
            "Train": st.column_config.ProgressColumn(
                "Train",
                help=f"{unit} of the training split",
                format="localized",
                max_value=max(1, int(frame["Train"].max())),
            ),
            **{
                split.capitalize(): st.column_config.NumberColumn(
                    format="localized", help=f"{unit} of {split}"
                )
                for split in view.splits
                if split != "train"
            },
        },
        key=f"launch_labels_{view.task}",
        alt=f"How often each label of {view.task} stands in each split",
    )


def _share(share: float) -> str:
    return f"{100 * share:.1f}".removesuffix(".0") + "%"
