"""What researchers add to runs: archived or not, a note, tags."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable

from sqlalchemy import bindparam, select, update

from core.errors import IllegalMove, MRNLabError, RunNotFound
from core.store.base import StoreBase
from core.store.states import ENDED
from core.store.tables import runs

__all__ = ["CurationPart", "normal_tag"]

_APART = re.compile(r"[\s,]+")
_LONGEST_TAG = 50


def normal_tag(text: str) -> str:
    """The one spelling of a tag: lower case, with a hyphen for spaces and commas.

    Raises MRNLabError where nothing is left, or too much.
    """
    tag = _APART.sub("-", text).strip("-").lower()
    if not tag:
        raise MRNLabError("A tag needs at least one letter or digit.")
    if len(tag) > _LONGEST_TAG:
        raise MRNLabError(f"The tag '{tag[:20]}…' is longer than {_LONGEST_TAG} characters.")
    return tag


class CurationPart(StoreBase):
    """How runs are put out of sight and taken back, noted and tagged. Unknown ids are passed over."""

    def archive(self, ids: Collection[int]) -> None:
        """Leaves runs out of lists of all runs, all or none. Raises IllegalMove where one has not ended."""
        ended = [state.value for state in ENDED]
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                seen = (runs.c.id.in_(some), runs.c.archived_at.is_(None))
                connection.execute(
                    update(runs)
                    .where(*seen, runs.c.state.in_(ended))
                    .values(archived_at=self._clock(), revision=runs.c.revision + 1)
                )
                left = connection.execute(select(runs.c.id, runs.c.state).where(*seen).limit(1)).first()
                if left is not None:
                    raise IllegalMove(
                        f"Run {left.id} is {left.state}; only runs that have ended are archived."
                    )

    def restore(self, ids: Collection[int]) -> None:
        """Takes archived runs back into the lists."""
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                connection.execute(
                    update(runs)
                    .where(runs.c.id.in_(some), runs.c.archived_at.is_not(None))
                    .values(archived_at=None, revision=runs.c.revision + 1)
                )

    def set_note(self, run_id: int, text: str) -> None:
        """Replaces the run's note; the empty text removes it. Raises RunNotFound."""
        with self.transaction() as connection:
            if not self._change(connection, run_id, {"note": text.strip()}):
                raise RunNotFound(f"There is no run {run_id}.")

    def add_tags(self, ids: Collection[int], tags: Iterable[str]) -> None:
        """Gives these tags to runs. Raises MRNLabError where `normal_tag` does."""
        self._retag(ids, added={normal_tag(tag) for tag in tags}, removed=set())

    def remove_tags(self, ids: Collection[int], tags: Iterable[str]) -> None:
        """Takes these tags from runs. Raises MRNLabError where `normal_tag` does."""
        self._retag(ids, added=set(), removed={normal_tag(tag) for tag in tags})

    def _retag(self, ids: Collection[int], *, added: set[str], removed: set[str]) -> None:
        statement = (
            update(runs)
            .where(runs.c.id == bindparam("run"))
            .values(tags=bindparam("new"), revision=runs.c.revision + 1)
        )
        with self.transaction() as connection:
            for some in self._held(connection, ids):
                found = connection.execute(select(runs.c.id, runs.c.tags).where(runs.c.id.in_(some)))
                changed = []
                for run_id, text in found:
                    old = set(json.loads(text))
                    new = (old | added) - removed
                    if new != old:
                        changed.append({"run": run_id, "new": json.dumps(sorted(new), ensure_ascii=False)})
                if changed:
                    connection.execute(statement, changed)
