"""The app in tests: the real pages over a store of the test's own, with no worker process."""

from __future__ import annotations

import ast
import functools
import json
import os
import pickle
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest
from filelock import FileLock
from streamlit import type_util
from streamlit.components.v2 import manifest_scanner
from streamlit.elements.lib import policies
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.testing.v1.local_script_runner import LocalScriptRunner
from streamlit.testing.v1.util import patch_config_options

from core.store import Store
from dashboard.tag import models as tag_models
from jobs.engines.local import LocalEngine
from tests.pages.filled_store import Filled, fill, fill_pairs
from tests.patience import PATIENCE_S

APP = Path(__file__).resolve().parents[2] / "dashboard" / "main.py"
Open = Callable[..., AppTest]
PAIR = re.compile(r"light-dark\((#\w+|rgba\([^)]*\)),(#\w+|rgba\([^)]*\))\)")
FOLDS = ("filter_help", "launch_more", "launch_terminal", "advice_terminal", "relations_in_numbers")
"""What tests of pages find opened, though a reader opens it first."""


@pytest.fixture(autouse=True, scope="session")
def as_served() -> Iterator[None]:
    """At each step an AppTest does what a server does once: it compiles the pages, and looks for components
    among all installed packages. It has other settings, and asks each millisecond whether a page has ended.
    Streamlit looks at the signature of a function at each argument of each call.
    """
    settings = tomllib.loads((APP.parent / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    options = {
        "runner.magicEnabled": settings["runner"]["magicEnabled"],
        "browser.gatherUsageStats": settings["browser"]["gatherUsageStats"],
    }
    bytecode, wait = ScriptCache.get_bytecode, local_script_runner.require_widgets_deltas

    @functools.cache
    def compiled(path: str, _changed: int) -> Any:
        return bytecode(ScriptCache(), path)

    def wait_for(runner: LocalScriptRunner, timeout: float) -> None:
        assert runner._script_thread is not None
        runner._script_thread.join(timeout)
        wait(runner, timeout if runner.script_stopped() else 0)

    with pytest.MonkeyPatch.context() as patch, patch_config_options(options):
        cached = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", cached)
        patch.setattr(
            type_util, "get_func_parameters", functools.lru_cache(1000)(type_util.get_func_parameters)
        )
        patch.setattr(ScriptCache, "get_bytecode", lambda _, path: compiled(path, os.stat(path).st_mtime_ns))
        patch.setattr(local_script_runner, "require_widgets_deltas", wait_for)
        yield


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each time the app asks for workers, the store's name is noted here instead of starting a process."""
    asked: list[str] = []

    def note(engine: LocalEngine, store: Store) -> int:
        asked.append(store.name)
        return 0

    monkeypatch.setattr(LocalEngine, "ensure_workers", note)
    return asked


@pytest.fixture
def doubled_values(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The widgets of which Streamlit warns: they have a default, and their value was set as well."""
    keys: list[str] = []

    class Noted:
        def warning(self, message: str, key: str, **kwargs: object) -> None:
            keys.append(key)

    monkeypatch.setattr(policies, "_LOGGER", Noted())
    monkeypatch.setattr(policies, "_shown_default_value_warning", False)
    return keys


class App(AppTest):
    """The app. No step may leave it with an exception."""

    def _run(self, *arguments: Any, **options: Any) -> AppTest:
        super()._run(*arguments, **options)
        assert not self.exception, [raised.value for raised in self.exception]
        return self


def page_names() -> list[str]:
    """The pages of the navigation by their names in the address, as `dashboard/main.py` lists them."""
    tree = ast.parse(APP.read_text(encoding="utf-8"))
    (listed,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PAGES"
    )
    return [name.lower() for name in ast.literal_eval(listed)]


@functools.cache
def _pages() -> dict[str, Any]:
    return App(APP, default_timeout=PATIENCE_S).run()._registered_pages


def app_at(page: str) -> AppTest:
    """The app at a page, `run` for that of one run, not yet run. By itself an AppTest learns of the pages by
    running the first.
    """
    app = App(APP, default_timeout=PATIENCE_S)
    for fold in FOLDS:
        app.session_state[fold] = True
    app._registered_pages = _pages()
    return app.switch_page("runs/run_page.py" if page == "run" else f"{page}/page.py")


@pytest.fixture
def open_page(laboratory: Path, workers: list[str]) -> Open:
    """Opens a page of the app, `curves` say, with query parameters, as a link would."""

    def open_(page: str, **query: str) -> AppTest:
        app = app_at(page)
        app.query_params.update(query)
        return app.run()

    return open_


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tag waits until all models have answered, however busy the machine is."""
    monkeypatch.setattr(tag_models, "_PATIENCE_S", PATIENCE_S)


@pytest.fixture(scope="session")
def templates(shared_folder: Path) -> Callable[..., tuple[Path, Filled]]:
    """Filled stores, made once by the testing process that comes first, and copied for every test."""

    def template(seeds: tuple[int, ...], going_on: bool, with_pairs: bool = False) -> tuple[Path, Filled]:
        home = shared_folder / f"template-{len(seeds)}-{going_on}-{with_pairs}"
        made = home / "filled.pickle"
        with FileLock(home.with_suffix(".lock")):
            if not made.exists():
                with pytest.MonkeyPatch.context() as patch:
                    patch.setenv("MRNLAB_HOME", str(home))
                    if with_pairs:
                        shutil.copytree(template(seeds, going_on)[0], home)
                        fill_pairs(seeds=seeds)
                    else:
                        home.mkdir()
                        made.write_bytes(pickle.dumps(fill(seeds=seeds, active=going_on, broken=going_on)))
        return home, pickle.loads(made.read_bytes())

    return template


@pytest.fixture
def filled(laboratory: Path, templates: Callable[..., tuple[Path, Filled]]) -> Filled:
    """A store with finished, live, waiting, failed, lost and cancelled runs; two seeds each."""
    return _copied(templates((1, 2), True), laboratory)


@pytest.fixture
def finished(laboratory: Path, templates: Callable[..., tuple[Path, Filled]]) -> Filled:
    """A store where everything has ended well; three seeds each."""
    return _copied(templates((1, 2, 3), False), laboratory)


@pytest.fixture
def pairs(laboratory: Path, templates: Callable[..., tuple[Path, Filled]]) -> Filled:
    """The same, where every pair of three tasks was trained too."""
    return _copied(templates((1, 2, 3), False, with_pairs=True), laboratory)


def _copied(template: tuple[Path, Filled], laboratory: Path) -> Filled:
    home, made = template
    for path in home.glob("runs.db*"):
        shutil.copy(path, laboratory / path.name)
    shutil.copytree(home / "logs", laboratory / "logs")
    return made


def labels(app: AppTest, kind: str) -> list[str]:
    """The labels of all elements of that kind, such as page_link."""
    elements: Any = app.get(kind)
    return [element.label for element in elements]


def sent(app: AppTest, part: str) -> dict[str, Any]:
    """What the page sends to the component whose data has this field; {} where there is none."""
    data = [json.loads(element.proto.json or "{}") for element in app.get("bidi_component")]
    return next((fields for fields in data if part in fields), {})


def run_tables(app: AppTest) -> list[dict[str, Any]]:
    """What the page sends of each of its tables of runs."""
    parts = (part for part in app.get("bidi_component") if part.proto.component_name == "mrnlab_run_table")
    return [json.loads(part.proto.json) for part in parts]


def listed(app: AppTest) -> pd.DataFrame:
    """The first table of runs: the values of its numbers, and what is read in its other columns."""
    (first, *_) = run_tables(app)
    columns = {"Name": [line["name"] for line in first["lines"]]}
    for column in first["columns"]:
        texts = [text if isinstance(text, str) else [word for _, word in text] for text in column["texts"]]
        columns[column["name"]] = column["values"] if column["kind"] == "number" else texts
    return pd.DataFrame(columns)


def words(app: AppTest) -> str:
    """All prose on the page, as one reads it: without the escapes that keep user text from being Markdown."""
    kinds = (app.title, app.subheader, app.markdown, app.caption, app.info, app.warning, app.error)
    text = "\n".join(str(element.value) for kind in kinds for element in kind)
    return text.replace("\\", "").replace("\u2060", "")


def problems(app: AppTest) -> list[str]:
    """What the page says in place of a part that could not be drawn."""
    return [warning.value for warning in app.warning if warning.icon == ":material/error:"]


def figures(app: AppTest, key: str = "") -> list[dict[str, Any]]:
    """The Plotly figures on the page whose component key begins so, checked by Plotly's Python package."""
    drawn = []
    for component in app.get("bidi_component"):
        data = json.loads(component.proto.json or "{}")
        if "figure" in data and data["filename"].startswith(key):
            figure = json.loads(PAIR.sub(r"\1", data["figure"]))  # as on the light page
            go.Figure(figure)  # a ValueError names a property or value that Plotly does not know
            drawn.append(figure)
    return drawn


def table(app: AppTest, column: str) -> Any:
    """The first data frame on the page that has this column."""
    return next(frame.value for frame in app.dataframe if column in frame.value.columns)


def press(app: AppTest, label: str) -> AppTest:
    """Presses the first button of that label."""
    return next(button for button in app.button if button.label == label).click().run()


def sheets(app: AppTest) -> list[Any]:  # tables, of which pandas does not know the types of cells
    """The tables of results on the page as they read: rows by name, with the marks of Markdown."""
    return [_read_table(body) for part in app.get("html") if "<table" in (body := part.proto.body)]


_MARKS = {
    "b": r"**\1**",
    'b class="higher[^"]*"': r":red[**\1**]",
    'b class="lower[^"]*"': r":blue[**\1**]",
    'span class="quiet"': r":gray[\1]",
}


def _read_table(body: str) -> pd.DataFrame:
    rows = []
    for row in re.findall("<tr>(.*?)</tr>", body):
        cells = re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row)
        for tag, mark in _MARKS.items():
            cells = [re.sub(f"<{tag}>(.*?)</{tag.split()[0]}>", mark, cell) for cell in cells]
        rows.append([unescape(re.sub("<[^>]*>", "", cell)).replace("\u2060", "") for cell in cells])
    head, *lines = rows
    filled = [[*cells, *[""] * (len(head) - len(cells))] for cells in lines]
    index = pd.Index([name for name, *_ in filled], name=head[0])
    return pd.DataFrame([cells for _, *cells in filled], index=index, columns=head[1:])
