"""Imports run one way, and pages open without the heavy libraries."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.side_by_side import FIRST

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {package: sorted((ROOT / package).rglob("*.py")) for package in ("core", "jobs", "dashboard")}
FORBIDDEN = {
    "core": {"jobs", "dashboard", "streamlit", "plotly"},
    "jobs": {"dashboard", "streamlit", "plotly"},
    "dashboard": {"torch", "transformers", "datasets", "seqeval", "sqlalchemy", "plotly"},
}
HEAVY = ("torch", "transformers", "datasets", "seqeval", "scipy")
MOST_LINES = 600
CONTRACTS = ROOT / "core" / "testing"
MOST_PAGE_LINES = 120


@cache
def _nodes(path: Path) -> list[ast.AST]:
    """The syntax tree of a file, node by node."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _imported(path: Path) -> Iterator[str]:
    """The top-level packages that a file imports, anywhere in it."""
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", SOURCES)
def test_imports_run_one_way(package: str) -> None:
    wrong = {
        str(path.relative_to(ROOT)): sorted(forbidden)
        for path in SOURCES[package]
        if (forbidden := set(_imported(path)) & FORBIDDEN[package]) and path != ROOT / "core/figures.py"
    }
    assert SOURCES[package]
    assert not wrong


THROUGH = {
    **dict.fromkeys(("starlette", "pillow"), "streamlit"),
    **dict.fromkeys(("huggingface-hub", "tokenizers"), "transformers"),
    "pydantic-core": "pydantic",
    "pyyaml": "datasets",
}
"""Packages that are imported as part of one that is installed with them."""


def test_every_imported_package_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = chain.from_iterable(
        entries for name, entries in project["optional-dependencies"].items() if name not in ("test", "dev")
    )
    declared = {Requirement(text).name.lower() for text in chain(project["dependencies"], extras)}
    in_contracts = {name for path in SOURCES["core"] if path.parent == CONTRACTS for name in _imported(path)}
    modules = {
        name
        for paths in SOURCES.values()
        for path in paths
        if path.parent != CONTRACTS
        for name in _imported(path)
    }
    assert in_contracts - modules == {"pytest"}, "what contracts alone need is in the extra test"
    modules -= {*sys.stdlib_module_names, *SOURCES}
    installed = packages_distributions()
    named = {installed.get(module, [module])[0].lower().replace("_", "-") for module in modules}
    assert {THROUGH.get(name, name) for name in named} <= declared


@cache
def _imports(package: str) -> frozenset[tuple[str, str]]:
    """(importer, imported) for every import between modules of a package, in functions too, but for
    annotations.
    """
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in SOURCES[package]}
    known = {name.removesuffix(".__init__"): name for name in modules if name != f"{package}.__init__"}
    edges = set()
    for importer, path in modules.items():
        nodes = _nodes(path)
        typing = [
            node for node in nodes if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ]
        for_annotations = {inner for node in typing for inner in ast.walk(node)}
        for node in nodes:
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in known else node.module for name in inner]
            if node not in for_annotations:
                edges |= {(importer, known[name]) for name in names if name in known}
    return frozenset(edges)


def _rooms(package: str) -> set[tuple[str, str]]:
    """(importer, imported) for every import from one folder or file of a package to another."""
    pairs = {(a.split(".")[1], b.split(".")[1]) for a, b in _imports(package)}
    return {(a, b) for a, b in pairs if a != b}


@pytest.mark.parametrize(
    ("package", "depth"),
    [("core", 2), ("core", None), ("jobs", 2), ("jobs", None), ("dashboard", None)],
)
def test_there_is_no_import_circle(package: str, depth: int | None) -> None:
    graph: dict[str, set[str]] = {}
    for edge in _imports(package):
        importer, imported = (".".join(name.split(".")[:depth]) for name in edge)
        if importer != imported:
            graph.setdefault(importer, set()).add(imported)
    assert len(graph) > 4
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


FLOORS = ({"cli"}, {"studies", "exchange"}, {"reports"}, {"queue"}, {"engines"}, {"worker"})
"""The rooms of jobs, the highest first."""


def test_jobs_import_downwards() -> None:
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    assert set(floor) == {path.parent.name for path in SOURCES["jobs"]} - {"jobs"}
    assert not {(a, b) for a, b in _rooms("jobs") if floor[a] >= floor[b]}


def test_the_picture_of_jobs_is_so() -> None:
    """The arrows between its rooms in docs/architecture.md are the imports."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = text.split("## The floors of jobs", 1)[1].split("```")[1]
    lines = re.findall(r"(\w+) --> (.+)", picture)
    assert {(a, b) for a, targets in lines for b in targets.split(" & ")} == _rooms("jobs")


@pytest.mark.parametrize(("walk", "most"), [("A description", 20), ("A sentence", 12), ("A metric", 8)])
def test_a_walk_is_short_and_names_what_is_there(walk: str, most: int) -> None:
    """The files of docs/architecture.md hand the thing on, each in the function that is named."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    steps = [
        line.split()[:2] for line in text.split(f"**{walk}, ", 1)[1].split("```")[1].strip().splitlines()
    ]
    assert 5 < len(steps) <= most
    for file, name in steps:
        assert re.search(rf"(def|class) {name}\b", (ROOT / file).read_text(encoding="utf-8")), (file, name)


def test_pages_do_not_import_each_other() -> None:
    """Nor does what they share import one. A report, which is made in a process of its own, is made of them,
    and none imports it.
    """
    pages = {path.parent.name for path in SOURCES["dashboard"] if path.name == "page.py"}
    assert len(pages) > 6
    assert not {(a, b) for a, b in _rooms("dashboard") if b in pages and a != "report"}
    assert not {a for a, b in _rooms("dashboard") if b == "report"}


def _reached(module: str) -> set[str]:
    """The modules of the dashboard that a module imports, itself among them, directly or not."""
    reached: set[str] = set()
    new = {module}
    while new:
        reached |= new
        new = {imported for importer, imported in _imports("dashboard") if importer in reached} - reached
    return reached


@pytest.mark.parametrize(("page", "most"), [("compare", 32), ("relations", 30), ("tag", 26)])
def test_a_page_reaches_few_modules(page: str, most: int) -> None:
    """Whoever changes a page reads no more of the dashboard than this."""
    reached = _reached(f"dashboard.{page}.page")
    assert "dashboard.shared.resources" in reached
    assert len(reached) < most, sorted(reached)


def test_test_files_do_not_import_each_other() -> None:
    """What several share is in a module of helpers."""
    tests = sorted((ROOT / "tests").rglob("*.py"))
    assert tests
    imported = {
        str(path.relative_to(ROOT)): re.findall(
            r"from (tests\.\S*\btest_\w+) import", path.read_text("utf-8")
        )
        for path in tests
    }
    assert {path: names for path, names in imported.items() if names} == {}


def test_charts_and_queries_know_no_streamlit() -> None:
    parts = [
        path
        for path in SOURCES["dashboard"]
        if path.stem in ("charts", "numbers", "views") or path.stem.endswith("_views")
        if path.parent.name != "components"
    ]
    parts += [ROOT / "dashboard" / name for name in ("text.py", "theme.py")]
    assert len(parts) > 8
    assert not [path.name for path in parts if "streamlit" in set(_imported(path))]


def test_sql_stays_in_the_store() -> None:
    users = {path for paths in SOURCES.values() for path in paths if "sqlalchemy" in set(_imported(path))}
    assert {path for path in users if ROOT / "core" / "store" not in path.parents} == set()


def _imported_with(modules: Sequence[str], watched: Sequence[str]) -> list[str]:
    """Which of the watched modules a fresh process has once it has imported those."""
    script = (
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        f"print(*[name for name in {watched!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_pages_import_nothing_heavy() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in SOURCES["dashboard"]
        if path.name not in ("page.py", "app.py", "main.py", "__init__.py")
    ]
    assert _imported_with(modules, HEAVY) == []


def test_supervisors_and_waiting_workers_are_light() -> None:
    """A supervisor stays as long as its worker, and a worker imports torch with its first run."""
    heavy = (*HEAVY, "streamlit", "plotly", "ray", "submitit", "psycopg", "typer")
    modules = (
        *("jobs.worker.supervisor", "jobs.worker.watching"),
        *("jobs.queue.maintenance", "jobs.worker.loop"),
    )
    assert _imported_with(modules, heavy) == []
    # The worker is to start before its supervisor imports the store.
    assert _imported_with(modules[:1], ("core.store",)) == []


def test_states_of_pages_are_drawn_in_one_place() -> None:
    """Notes, reasons, warnings and problems of fields look the same everywhere."""
    drawn = re.compile(r"st\.(?:info|warning|error|success)\(|:material/info:|:orange\[:material/error: ")
    users = {path.name for path in SOURCES["dashboard"] if drawn.search(path.read_text(encoding="utf-8"))}
    assert users == {"states.py"}


def test_files_that_run_first_are_there() -> None:
    """A file that is moved keeps its place in the order."""
    tests = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    assert [start for start in FIRST if not any(test.startswith(start) for test in tests)] == []


def test_no_folder_called_pages() -> None:
    """Streamlit would take it for an old kind of app, and show deep links without navigation."""
    assert not (ROOT / "dashboard" / "pages").exists()


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for package in SOURCES
        for path in SOURCES[package]
        if (lines := len(path.read_text(encoding="utf-8").splitlines()))
        > (MOST_PAGE_LINES if path.name == "page.py" else MOST_LINES)
    }
    assert not long


def test_no_html_from_text() -> None:
    """HTML on a page is the places of form fields that the plan's links lead to, tables of results
    (`test_text.py`) and small forests (`test_studies.py`), whose names are escaped.
    """
    texts = {
        path.relative_to(ROOT / "dashboard"): path.read_text(encoding="utf-8")
        for path in SOURCES["dashboard"]
    }
    assert not [name for name, text in texts.items() if "unsafe_allow_html" in text or "st.iframe(" in text]
    calls = {str(name): text.count("st.html(") for name, text in texts.items() if "st.html(" in text}
    assert calls == {"launch/form.py": 1, "shared/downloads.py": 1, "studies/results.py": 1}
    assert "html.table_html(sheet, html.html_text(alt), markup=_MARKUP)" in texts[Path("shared/downloads.py")]
    assert "st.html(small_forest(view, axis, leads))" in texts[Path("studies/results.py")]
    assert 'st.html(f\'<span id="{anchor(field)}" tabindex=' in texts[Path("launch/form.py")]
    scripts = sorted((ROOT / "dashboard" / "components").glob("*.js"))
    assert scripts
    for script in scripts:
        assert not re.search(
            "innerHTML|outerHTML|insertAdjacentHTML|document.write", script.read_text(encoding="utf-8")
        )


def test_components_are_mounted_in_one_place() -> None:
    """Which makes their keys, so that no name on a page breaks the ids that Streamlit makes of them."""
    users = [path for path in SOURCES["dashboard"] if "components.v2" in path.read_text(encoding="utf-8")]
    assert users == [ROOT / "dashboard" / "components" / "charts.py"]
