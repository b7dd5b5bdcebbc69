"""Curves read so far, shared by all sessions: only what is new is read from the store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import streamlit as st

from core.paths import database_url
from core.store import Store
from core.store.records import ACTIVE, MetricKey, MetricSeries, Run
from dashboard.shared.resources import store

_MOST_BYTES = 400_000_000

# A curve's name: a retried run writes its curves anew.
_Name = tuple[int, int, MetricKey]


class SeriesCache:
    """Curves read so far. A live run's curve is read on from its last step; an ended one is never read
    again. Those longest unused go first.
    """

    def __init__(self) -> None:
        self._series: OrderedDict[_Name, MetricSeries | None] = OrderedDict()
        self._final: set[_Name] = set()
        self._lock = threading.Lock()

    def get(self, laboratory: Store, runs: Sequence[Run], keys: Sequence[MetricKey]) -> list[MetricSeries]:
        """These curves of these runs, as far as there are any, by key, then run."""
        with self._lock:
            wanted = {(run.id, key): (run.id, run.attempt, key) for key in keys for run in runs}
            steps = {
                curve: self._last_step(name) for curve, name in wanted.items() if name not in self._final
            }
            for new in laboratory.metrics_since(steps) if steps else ():
                name = wanted[new.run_id, new.key]
                known = self._series.get(name)
                self._series[name] = new if known is None else _joined(known, new)
            ended = {run.id for run in runs if run.state not in ACTIVE}
            for name in wanted.values():
                self._series.setdefault(name, None)
                self._series.move_to_end(name)
                if name[0] in ended:
                    self._final.add(name)
            self._forget()
            return [one for name in wanted.values() if (one := self._series.get(name)) is not None]

    def _last_step(self, name: _Name) -> int:
        known = self._series.get(name)
        return -1 if known is None else int(known.step[-1])

    def _forget(self) -> None:
        size = sum(_bytes(one) for one in self._series.values())
        while size > _MOST_BYTES and len(self._series) > 1:
            name, one = self._series.popitem(last=False)
            self._final.discard(name)
            size -= _bytes(one)


def _bytes(one: MetricSeries | None) -> int:
    return 0 if one is None else 4 * one.value.nbytes


def _joined(old: MetricSeries, new: MetricSeries) -> MetricSeries:
    return MetricSeries(
        new.run_id,
        new.key,
        np.concatenate([old.step, new.step]),
        np.concatenate([old.epoch, new.epoch]),
        np.concatenate([old.seconds, new.seconds]),
        np.concatenate([old.value, new.value]),
    )


@st.cache_resource(max_entries=4, show_spinner=False)
def _cache(url: str) -> SeriesCache:
    return SeriesCache()


def curve_series(runs: Sequence[Run], keys: Sequence[MetricKey]) -> list[MetricSeries]:
    """These curves of these runs, whole."""
    return _cache(database_url()).get(store(), runs, keys)
