"""Uploaded corpora: the field for files, what is kept of them and when it is deleted, and earlier uploads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.corpora import save_upload, summarise
from core.corpora.assembly import SPLITS
from core.corpora.catalogue.uploads import MOST_MEGABYTES, delete_upload, uploads
from core.corpora.loading import proposed_columns
from core.corpora.readers.files import split_of
from core.corpora.types import Split
from core.errors import CorpusError
from core.store import Store
from core.store.types import ACTIVE, Run
from core.wording import plural
from dashboard.launch.address import UPLOADED
from dashboard.launch.samples import SAMPLES, zipped
from dashboard.shared import actions, resources
from dashboard.text import escape
from jobs.queue.control import Answer

_SAVED, _STORED = "launch_own_saved", "launch_own_stored"
_UPLOADS_HEIGHT = 220


def uploaded() -> str | None:
    """The folder of the files in the field, or of an earlier upload. Raises CorpusError."""
    left, right = st.columns([1, 2])
    name = left.text_input("Name", value="my-corpus", key="launch_own_name", persist_state="session")
    files = right.file_uploader(
        "Files named train, dev and test",
        accept_multiple_files=True,
        max_upload_size=MOST_MEGABYTES,
        key="launch_own_files",
        help="CoNLL columns, CoNLL-U, lists of words or spans as JSON, JSONL or Parquet, or texts as TSV, "
        "CSV or JSONL. Without dev, a part of train is held out.",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("CoNLL, JSON, Parquet, TSV or CSV. Samples:", width="content")
        for kind, samples in SAMPLES.items():
            st.download_button(
                kind,
                zipped(samples),
                file_name=f"{kind.lower().replace(' ', '-')}.zip",
                mime="application/zip",
                type="tertiary",
                icon=":material/download:",
                on_click="ignore",
                key=f"launch_samples_{kind}",
            )
    refused = _keep_upload(name, files) if files else None
    path = _earlier_upload(is_given=bool(files))
    if refused is not None:
        raise refused
    return path


def _keep_upload(name: str, files: Sequence[UploadedFile]) -> CorpusError | None:
    """Keeps new files and chooses them; why not, where they are no corpus.

    What is left of kept files, or another name of them, is kept only on a click.
    """
    splits = {file.name: _asked_split(file) for file in files if split_of(file.name) is None}
    given = {(name, file.file_id, splits.get(file.name)) for file in files}
    kept: set[tuple[str, str, Split | None]] = st.session_state.get(_SAVED, set())
    if given == kept:
        return None
    if unknown := [file for file, split in splits.items() if split is None]:
        return CorpusError(
            f"Cannot tell whether {unknown[0]} is train, dev or test. Rename it or choose its split."
        )
    is_old = {given_file[1:] for given_file in given} <= {kept_file[1:] for kept_file in kept}
    if is_old and not st.button(
        f"Keep {plural(len(files), 'file')} as {escape(name)}", key="launch_own_keep"
    ):
        return None
    chosen = {file: split for file, split in splits.items() if split is not None}
    before = uploads()
    try:
        contents = {file.name: file.getvalue() for file in files}
        saved = save_upload(contents, name, chosen)
        if saved in before and not _users(saved):  # kept under another name, it may be, and never launched
            delete_upload(saved)
            saved = save_upload(contents, name, chosen)
    except CorpusError as error:
        return error
    st.session_state[_SAVED] = given
    st.session_state[UPLOADED] = str(saved)
    _replace(saved if saved not in before else None)
    return None


def _replace(stored: Path | None) -> None:
    """Remembers the upload that this reader has just stored, and deletes the one before if no run uses it.

    Files are stored to be read, but kept for good only once a run is launched on them.
    """
    former: Path | None = st.session_state.get(_STORED)
    st.session_state[_STORED] = stored
    if former is None or former == stored or former not in uploads():
        return
    if not _users(former):
        delete_upload(former)


def _users(path: Path) -> list[Run]:
    """The runs on an upload."""
    return [run for run in resources.store().runs(archived=None) if str(path) in run.config.corpus]


def _asked_split(file: UploadedFile) -> Split | None:
    return st.selectbox(
        f"Split of {escape(file.name)}",
        SPLITS,
        index=None,
        placeholder="train, dev or test",
        key=f"launch_own_split_{file.file_id}",
    )


def _earlier_upload(*, is_given: bool) -> str | None:
    """The folder of the upload that is chosen in their list; None while none is.

    `is_given`: the field holds files. There is no list where nothing else was uploaded.
    """
    kept = {str(path): uploaded for path, uploaded in uploads().items()}
    if st.session_state.get(UPLOADED) not in kept:
        st.session_state[UPLOADED] = None
    if not kept:
        return None
    if is_given and list(kept) == [str(st.session_state.get(_STORED))] == [st.session_state[UPLOADED]]:
        return next(iter(kept))
    stored = resources.store().runs(archived=None)
    users = {path: [run for run in stored if path in run.config.corpus] for path in kept}
    with st.container(height=_UPLOADS_HEIGHT if len(kept) > 4 else "content", gap="xsmall"):
        path: str | None = st.radio(
            "Uploaded corpora",
            list(kept),
            index=None,
            format_func=lambda path: escape(Path(path).name),
            captions=[
                f"{_sentences(path)} · {uploaded.astimezone(UTC):%d %b %Y, %H:%M} UTC · used by "
                f"{plural(len(users[path]), 'run') if users[path] else 'no run'}"
                for path, uploaded in kept.items()
            ],
            key=UPLOADED,
            persist_state="session",
        )
    if path is not None:
        _deletion(Path(path), users[path])
    return path


@st.cache_data(max_entries=256, show_spinner=False)
def _sentences(path: str) -> str:
    """How many sentences, texts or pairs an upload has, which never changes."""
    try:
        proposal = proposed_columns(path)
        summary = summarise(path, None if proposal is None else proposal.columns)  # as it is chosen
    except CorpusError:
        return "cannot be read"
    return f"{sum(split.sentences for split in summary.splits.values()):,} {summary.examples}"


def _deletion(path: Path, users: Sequence[Run]) -> None:
    """Draws a button that names the data deleted, and the consequence for runs trained on it."""
    with st.popover(
        "Delete this upload", icon=":material/delete:", key="launch_own_delete", on_change="rerun"
    ) as popover:
        if not popover.open:
            return
        active = sum(run.state in ACTIVE for run in users)
        st.markdown(f"Delete **{escape(path.name)}** permanently.")
        if active:
            st.caption(f"{plural(active, 'run')} on it queued or in progress. Stop them first.")
        elif users:
            st.caption(
                f"{plural(len(users), 'run')} on it keep their scores and models. They cannot be resumed or "
                "repeated, and their test sentences can no longer be shown."
            )
        st.button(
            "Delete these files",
            icon=":material/delete:",
            disabled=bool(active),
            on_click=actions.perform,
            args=(_delete, path),
        )


def _delete(_store: Store, path: Path) -> list[Answer]:
    delete_upload(path)
    return [Answer(0, True, f"{path.name} was deleted.")]
