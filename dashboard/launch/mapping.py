"""The mapping of labels in the form: a template to fill in, its upload, and what it says as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.errors import ConfigError
from core.mrn.alignments.kept_mappings import keep_mapping
from core.mrn.alignments.mapping import FittedMapping, fit
from core.mrn.alignments.mapping_file import MOST_BYTES, MappingFile, parse_mapping, read_mapping, template
from dashboard.launch.fields import key_of
from dashboard.launch.fill import MAPPING_KEPT
from dashboard.text import escape, number

__all__ = ["choose_mapping"]

_MOST_ROWS = 8


def choose_mapping(labels: Mapping[str, Sequence[str]]) -> str:
    """Draws the widgets; returns the alignment, `mapping:FILE`.

    `labels` are those of each chosen task, empty where the corpus has not been looked into. Raises
    ConfigError where there is no file yet or it cannot be used.
    """
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    file = left.file_uploader(
        "A CSV file with the columns task, label, general and weight",
        type="csv",
        max_upload_size=MOST_BYTES // 1_000_000,
        key=key_of("mapping"),
    )
    right.download_button(
        "Template",
        # With a byte order mark, by which spreadsheets know UTF-8.
        template(labels.items()).encode("utf-8-sig"),
        file_name="mapping.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
        disabled=not labels,
        key="launch_template",
        help="All labels of the chosen tasks, each with a general label of its own name: change that column."
        if labels
        else "Choose tasks of a corpus that has been looked into; the template then holds their labels.",
    )
    if file is not None:
        # The uploader forgets its file on another page; what is kept is found there again.
        st.session_state.pop(MAPPING_KEPT, None)
        st.session_state[MAPPING_KEPT] = str(keep_mapping(parse_mapping(file.getvalue(), file.name)))
    kept: str | None = st.session_state.get(MAPPING_KEPT)
    if kept is None:
        raise ConfigError("alignment", "Upload the CSV file of the mapping; the template is a beginning.")
    mapping = read_mapping(kept)
    known = labels or _named(mapping)
    _preview(mapping, fit(mapping, tuple(known), tuple(known.values())), tuple(known))
    return f"mapping:{kept}"


def _named(mapping: MappingFile) -> dict[str, list[str]]:
    """Tasks and labels as the file itself names them."""
    named: dict[str, list[str]] = {}
    for one in mapping.rows:
        own = named.setdefault(one.task, [])
        if one.label not in own:
            own.append(one.label)
    return named


def _preview(mapping: MappingFile, fitted: FittedMapping, tasks: Sequence[str]) -> None:
    """A row for each general label, a column for each task: the labels that make it, with their weights."""
    told: dict[tuple[str, str], list[str]] = {}
    for (task, label, general), weight in fitted.weights.items():
        told.setdefault((general, task), []).append(label if weight == 1 else f"{number(weight)} {label}")
    st.caption(f"**{escape(mapping.name)}**, {len(fitted.owners)} general labels")
    st.dataframe(
        [
            {"General label": general} | {task: " + ".join(told.get((general, task), ())) for task in tasks}
            for general in fitted.owners
        ],
        hide_index=True,
        height="content" if len(fitted.owners) <= _MOST_ROWS else 320,
        key="launch_mapping_table",
        alt="General labels and the labels of each task that make them",
    )
