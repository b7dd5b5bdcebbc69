"""What buttons do: each asks the jobs layer, and answers with a sentence for the reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from core.config import RunConfig
from core.corpora import uploads
from core.errors import MRNLabError
from core.store import RunState, Store
from core.wording import plural
from dashboard.shared import resources
from dashboard.shared.selection import choose, chosen
from dashboard.text import escape
from jobs import control
from jobs import control as queueing
from jobs.control import Answer
from jobs.submit import submit, submit_missing

_REPORT = "last_report"


def launch(
    configs: Sequence[RunConfig], name: str, *, reuse: bool, priority: int = 0, retries: int = 0
) -> tuple[list[int], list[int]]:
    """Queue these runs, see that workers start, and make them the chosen ones. Raises MRNLabError.

    With `reuse` only the runs that the store lacks are queued. Returns the numbers of all runs, and of those
    that were there. The launch is named by its time, so that its runs are known as launched together.
    """
    sweep = f"{name}, {datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    used: list[int] = []
    if reuse:
        runs, used = submit_missing(resources.store(), configs, sweep, priority=priority, retries=retries)
    else:
        runs = submit(resources.store(), configs, sweep, priority=priority, retries=retries)
    choose(runs)
    return runs, used


def say(message: str) -> None:
    """Have `report` say this of something that went well."""
    st.session_state[_REPORT] = [Answer(0, True, message)]


def stop(runs: Sequence[int]) -> None:
    """Stop at the next step."""
    _ask(control.stop if len(runs) == 1 else queueing.stop_all, runs)


def resume(runs: Sequence[int]) -> None:
    """Queue again what was lost or stopped."""
    _ask(control.resume, runs)


def retry(runs: Sequence[int]) -> None:
    """Queue again from the start."""
    _ask(control.retry, runs)


def pause() -> None:
    """Let nothing that waits start."""
    _do(queueing.pause)


def unpause() -> None:
    """Let what waits start again."""
    _do(queueing.unpause)


def drain(host: str) -> None:
    """Let a machine take no more runs."""
    _do(lambda store: queueing.drain(store, host))


def drain_now(host: str) -> None:
    """Let a machine take no more runs, and hand back what it trains."""
    _do(lambda store: queueing.drain(store, host, now=True))


def undrain(host: str) -> None:
    """Let a machine take runs again."""
    _do(lambda store: queueing.undrain(store, host))


def stop_launch(name: str) -> None:
    """Stop whatever of a launch trains or waits."""
    _do(lambda store: queueing.stop_launch(store, name))


def resume_launch(name: str) -> None:
    """Resume whatever of a launch was lost or stopped."""
    _do(lambda store: queueing.resume_launch(store, name))


def move_launch(name: str, by: int) -> None:
    """Have what waits of a launch start sooner or later."""
    _do(lambda store: queueing.move(store, store.launched(name, {RunState.QUEUED}), by))


def move(runs: Sequence[int], by: int) -> None:
    """Have those of the runs that wait start sooner or later."""
    _ask(lambda store, ids: queueing.move(store, ids, by), runs)


def prioritise(runs: Sequence[int], priority: int) -> None:
    """Give runs a priority."""
    _ask(lambda store, ids: queueing.prioritise(store, ids, priority), runs)


def archive(runs: Sequence[int]) -> None:
    """Put ended runs out of sight."""
    _ask(control.archive, runs)


def restore(runs: Sequence[int]) -> None:
    """Take archived runs back."""
    _ask(control.restore, runs)


def retag(runs: Sequence[int], before: Sequence[str], after: Sequence[str]) -> None:
    """Give all runs the tags that are new, and take those that are gone."""
    add, remove = set(after) - set(before), set(before) - set(after)
    _ask(lambda store, ids: control.label(store, ids, add=sorted(add), remove=sorted(remove)), runs)


def set_note(run_id: int, text: str) -> None:
    """Replace a run's note."""
    _ask(lambda store, ids: control.set_note(store, ids[0], text), [run_id])


def delete(runs: Sequence[int]) -> None:
    """Remove the runs with all they left behind."""
    _ask(control.delete, runs)
    choose([run_id for run_id in chosen() if run_id not in runs])


def delete_upload(path: Path) -> None:
    """Delete an uploaded corpus."""

    def act(store: Store) -> list[Answer]:
        uploads.delete_upload(path)
        return [Answer(0, True, f"{path.name} was deleted.")]

    _do(act)


def _ask(act: Callable[[Store, Sequence[int]], list[Answer]], runs: Sequence[int]) -> None:
    _do(lambda store: act(store, list(runs)))


def _do(act: Callable[[Store], list[Answer]]) -> None:
    try:
        st.session_state[_REPORT] = act(resources.store())
    except MRNLabError as error:  # nothing was done for any run
        st.session_state[_REPORT] = [Answer(0, False, str(error))]


def report() -> None:
    """Say once what the last button did: a line per refusal, one line for all that went well."""
    answers: list[Answer] = st.session_state.pop(_REPORT, [])
    done = [answer for answer in answers if answer.done]
    if len(done) == 1:
        st.toast(escape(done[0].message), icon=":material/check:")
    elif done:
        st.toast(f"Done for {plural(len(done), 'run')}.", icon=":material/check:")
    for answer in answers:
        if not answer.done:
            st.toast(escape(answer.message), icon=":material/error:")
