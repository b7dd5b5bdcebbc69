"""*Export* of a run as a zip file, and *Import* of exported files."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.errors import MRNLabError
from core.store import Run, RunState
from dashboard.runs.table import run_link
from dashboard.shared import resources
from dashboard.shared.states import problem
from dashboard.text import escape


def export_menu(run: Run) -> None:
    """Draws *Export* for a run that has succeeded; opened, the download, or why there is none."""
    if run.state is not RunState.SUCCEEDED:
        return
    with st.popover(
        "Export", icon=":material/download:", type="tertiary", key="export", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        # Imported here: it takes a second, which pages without an export need not wait for.
        from jobs.exchange import check_exportable, export_zip

        try:
            check_exportable(run)
        except MRNLabError as error:
            problem(str(error))
            return
        st.markdown(
            "Weights for Transformers, scores, curves and a model card, as `mrnlab export` writes them."
        )
        make = partial(export_zip, resources.store(), run.id)
        st.download_button(
            "Download the zip file", make, f"mrnlab-run-{run.id}.zip", "application/zip", on_click="ignore"
        )


def import_menu() -> None:
    """Draws *Import*: a field for zip files of exports, and the outcome of the last one."""
    with st.popover(
        "Import", icon=":material/upload:", type="tertiary", key="import", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        file = st.file_uploader("Zip file of an exported run", type="zip", key="import_file")
        if file is None:
            st.caption("*Export* on the page of a run makes one. Larger files: `mrnlab import DIR`.")
            return
        if st.button("Import this run", type="primary"):
            from jobs.exchange import import_zip

            try:
                made = import_zip(resources.store(), file, file.name)
            except MRNLabError as error:
                problem(str(error))
                return
            already = "The store already has this run." if made.was_there else "Imported."
            st.markdown(f"{escape(already)}")
            run_link([made.run_id], f"Run {made.run_id}", ":material/visibility:")
