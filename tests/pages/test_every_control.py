"""Every page over stores as they come about, and every control on it: no exception, and a title.

`MRNLAB_TEST_EXAMPLES=500 pytest -n 0 tests/pages/test_every_control.py` tries that many stores and walks.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from jobs.engines.local import LocalEngine
from tests.pages.conftest import app_at, page_names, run_tables
from tests.pages.generated_store import SweepWithFates, build, stores, swept

_EXAMPLES = int(os.environ.get("MRNLAB_TEST_EXAMPLES", "4"))
_STEPS = 4
_PAGES = [*page_names(), "run"]
_TEXTS = ("", "state:succeeded", "0.1,0.2", "EU rejects German call .")
_WRITES = ("Delete", "Archive", "Delete now")
"""Buttons after which little is left to look at."""


def moves(app: AppTest) -> Iterator[tuple[Any, Any]]:
    """Every control on the page that a reader could use, with each value that it could get."""
    for kind in ("selectbox", "button_group", "radio"):
        for control in _usable(app, kind):
            yield from ((control, option) for option in control.options)
    for kind in ("toggle", "checkbox"):
        yield from ((control, not control.value) for control in _usable(app, kind))
    for control in _usable(app, "multiselect"):
        chosen = list(control.value)
        yield from ((control, chosen[:place] + chosen[place + 1 :]) for place in range(len(chosen)))
        yield from ((control, [*chosen, option]) for option in control.options[len(chosen) :][:3])
    for control in _usable(app, "number_input"):
        yield from ((control, value) for value in (control.min, control.max) if value is not None)
    for kind in ("text_input", "text_area"):
        yield from ((control, text) for control in _usable(app, kind) for text in _TEXTS)
    yield from ((button, True) for button in _usable(app, "button") if button.label not in _WRITES)
    for data in run_tables(app):
        yield from ((data, line["runs"]) for line in data["lines"][:2])
    for table in app.dataframe:
        if table.key and list(table.proto.selection_mode):
            yield from ((table, row) for row in range(min(2, len(table.value))))


def _usable(app: AppTest, kind: str) -> list[Any]:
    return [control for control in app.get(kind) if not control.proto.disabled]


def use(app: AppTest, control: Any, value: Any) -> None:
    """Gives a control a value, as a reader would: of several the one, of a table a row."""
    if isinstance(control, dict):
        app.query_params["run"] = ",".join(map(str, value))
    elif control.type == "dataframe":
        app.session_state[control.key] = {"selection": {"rows": [value], "columns": [], "cells": []}}
    else:
        is_one_of_several = control.type == "button_group" and not control._is_single_select
        control.set_value([value] if is_one_of_several else value)
    app.run()


@pytest.fixture(scope="module")
def laboratories() -> Iterator[Iterator[Path]]:
    """Empty homes, one after the other, for as many stores."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:

        def homes() -> Iterator[Path]:
            for number in itertools.count():
                home = Path(folder) / str(number)
                home.mkdir()
                patch.setenv("MRNLAB_HOME", str(home))
                yield home

        yield homes()


@pytest.mark.parametrize(
    "fields", [("lambda",), ("lambda", "dropout"), ("lambda", "dropout", "fraction")], ids=len
)
def test_a_sweep_of_so_many_settings_is_on_every_page(
    fields: Sequence[str], laboratories: Iterator[Path], workers: list[str]
) -> None:
    next(laboratories)
    runs = ",".join(map(str, build([swept(*fields)])))
    for page in _PAGES:
        app = app_at(page)
        app.query_params["id" if page == "run" else "run"] = runs
        app.run()
        assert app.title
        for setting in [box for box in app.selectbox if box.key == "against"]:
            for option in setting.options:
                use(app, app.selectbox(key="against"), option)


@pytest.mark.parametrize("page", _PAGES)
@settings(
    max_examples=_EXAMPLES,
    derandomize=True,
    phases=[Phase.generate],  # a smaller example takes minutes to find, and the plan can be read as it is
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(plan=stores, data=st.data())
def test_no_control_ends_in_an_exception(
    page: str, plan: Sequence[SweepWithFates], data: st.DataObject, laboratories: Iterator[Path]
) -> None:
    next(laboratories)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalEngine, "ensure_workers", lambda *_: 0)
        runs = build(plan)
        app = app_at(page)
        chosen = data.draw(st.sampled_from([[], runs, runs[:1], runs[-6:]]), label="chosen")
        if chosen:
            app.query_params["id" if page == "run" else "run"] = ",".join(map(str, chosen))
        app.run()
        assert app.title
        for _ in range(_STEPS):
            possible = list(moves(app))
            if not possible:
                break
            use(app, *data.draw(st.sampled_from(possible), label="move"))
