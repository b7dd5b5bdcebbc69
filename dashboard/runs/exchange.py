"""*Export* of a run as a zip file, and *Import* of exported files and of other systems' predictions."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import streamlit as st

from core.corpora.readers.files import READ_ENDINGS
from core.corpora.readers.lines import GivenFile
from core.corpora.types import Split
from core.errors import MRNLabError
from core.store import Run, RunState
from dashboard.runs.table import run_link
from dashboard.shared import resources
from dashboard.shared.states import problem
from dashboard.text import escape

_RUN, _PREDICTIONS = "Exported run", "Predictions"


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
    """Draws *Import*: a field for zip files of exports, or for predictions of another system."""
    with st.popover(
        "Import", icon=":material/upload:", type="tertiary", key="import", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        kind = st.segmented_control(
            "What to import", (_RUN, _PREDICTIONS), default=_RUN, required=True, key="import_kind",
            label_visibility="collapsed",
        )  # fmt: skip
        (_import_run if kind == _RUN else _import_predictions)()


def _import_run() -> None:
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


def _import_predictions() -> None:
    """Draws the form for predictions of another system; imported they are a run."""
    file = st.file_uploader(
        "Words and predicted labels", key="predictions_file",
        type=[ending.removeprefix(".") for ending in READ_ENDINGS],
    )  # fmt: skip
    corpus = st.text_input("Corpus", key="predictions_corpus", placeholder="conll2003, a folder, hub:…")
    with st.container(horizontal=True):
        system = st.text_input("System", key="predictions_system", placeholder="flair")
        tasks = st.text_input("Tasks", key="predictions_tasks", placeholder="ner")
    with st.container(horizontal=True):
        seed = st.number_input("Seed", min_value=0, value=1, key="predictions_seed")
        splits: tuple[Split, ...] = ("test", "dev")
        split = st.selectbox("Split", splits, key="predictions_split")
        percent = st.number_input(
            "% of the training data", min_value=0.0, max_value=100.0, value=100.0, key="predictions_percent"
        )
    columns = st.text_input(
        "Columns of a CoNLL file", key="predictions_columns", placeholder="as detected; else tokens,_,ner"
    )
    if st.button("Import these predictions", type="primary"):
        if file is None or not (corpus and system and tasks):
            problem("Choose a file, and name the corpus, the system and the tasks.")
            return
        from core.predictions import Predictions, add_predictions

        try:
            run_id = add_predictions(
                resources.store(),
                Predictions.of(
                    {split: GivenFile(file.name, file.getvalue())},
                    tasks=tasks,
                    columns=columns,
                    system=system.strip(),
                    corpus=corpus.strip(),
                    seed=int(seed),
                    fraction=float(Decimal(str(percent)) / 100),
                ),
            )
        except MRNLabError as error:
            problem(str(error))
            return
        st.markdown("Scored and stored.")
        run_link([run_id], f"Run {run_id}", ":material/visibility:")
    else:
        st.caption("They are scored here and compared like a run. More options: `mrnlab import-predictions`.")
