"""Corpora that were uploaded before: chosen again in the form, or deleted."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.corpora.uploads import Upload, uploads
from core.store.states import ACTIVE
from dashboard import actions, resources
from dashboard.launch.fill import UPLOADED
from dashboard.text import all_of, escape, plural, size

__all__ = ["pick_upload"]


def pick_upload() -> str | None:
    """The folder of the chosen upload; None while none is chosen."""
    kept = {str(upload.path): upload for upload in uploads()}
    if st.session_state.get(UPLOADED) not in kept:
        st.session_state[UPLOADED] = None
    if not kept:
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        path: str | None = st.selectbox(
            "Uploaded corpus",
            list(kept),
            format_func=lambda path: _name(kept[path]),
            key=UPLOADED,
            placeholder="Choose one uploaded before",
            persist_state="session",
        )
        if path is not None:
            _deletion(kept[path])
    return path


def _name(upload: Upload) -> str:
    # Not "2 min ago": Streamlit drops a choice whose name changes.
    return f"{upload.path.name} · {upload.uploaded.astimezone():%d %b %Y, %H:%M}"


def _deletion(upload: Upload) -> None:
    """A button that says what is deleted, and what the runs trained on it would lack."""
    with st.popover("Delete", icon=":material/delete:", key="launch_own_delete", on_change="rerun") as asked:
        if not asked.open:
            return
        st.markdown(
            f"Delete **{escape(upload.path.name)}** for good: {all_of(upload.splits)}, {size(upload.bytes)}."
        )
        runs = [run for run in resources.store().runs(archived=None) if str(upload.path) in run.config.corpus]
        going_on = sum(run.state in ACTIVE for run in runs)
        if going_on:
            st.caption(f"Runs on it that have not ended: {going_on}. Stop them first.")
        elif runs:
            st.caption(
                f"The scores and models of {plural(len(runs), 'run')} on it stay. The test sentences can no "
                "longer be shown."
            )
        st.button(
            "Delete these files",
            type="primary",
            icon=":material/delete:",
            disabled=bool(going_on),
            on_click=_delete,
            args=(upload.path,),
        )


def _delete(path: Path) -> None:
    st.session_state[UPLOADED] = None
    actions.delete_upload(path)
