"""Imports run one way, and pages open without the heavy libraries."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {package: sorted((ROOT / package).rglob("*.py")) for package in ("core", "jobs", "dashboard")}
FORBIDDEN = {
    "core": {"jobs", "dashboard", "streamlit", "plotly"},
    "jobs": {"dashboard", "streamlit", "plotly"},
    "dashboard": {"torch", "transformers", "datasets", "seqeval", "sqlalchemy", "alembic"},
}
HEAVY = ("torch", "transformers", "datasets", "seqeval")
MOST_LINES = 600
MOST_PAGE_LINES = 120


def _imported(path: Path) -> Iterator[str]:
    """The top-level packages that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("package", SOURCES)
def test_imports_run_one_way(package: str) -> None:
    wrong = {
        str(path.relative_to(ROOT)): sorted(found)
        for path in SOURCES[package]
        if (found := set(_imported(path)) & FORBIDDEN[package])
    }
    assert SOURCES[package], f"no source found under {package}/"
    assert not wrong


def test_charts_and_queries_know_no_streamlit() -> None:
    parts = [path for part in ("charts", "queries") for path in (ROOT / "dashboard" / part).rglob("*.py")]
    parts += [ROOT / "dashboard" / name for name in ("text.py", "theme.py")]
    assert len(parts) > 8
    assert not [path.name for path in parts if "streamlit" in set(_imported(path))]


def test_sql_stays_in_the_store() -> None:
    outside = [
        path
        for package in SOURCES
        for path in SOURCES[package]
        if (ROOT / "core" / "store") not in path.parents
    ]
    wrong = [
        str(path.relative_to(ROOT)) for path in outside if {"sqlalchemy", "alembic"} & set(_imported(path))
    ]
    assert not wrong


def test_pages_import_nothing_heavy() -> None:
    """In a fresh process: everything that the pages import at module level."""
    modules = [
        "dashboard." + ".".join(path.relative_to(ROOT / "dashboard").with_suffix("").parts)
        for path in SOURCES["dashboard"]
        if path.parent.name != "app_pages" and path.name not in ("app.py", "main.py", "__init__.py")
    ]
    script = (
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_supervisors_and_waiting_workers_are_light() -> None:
    """A supervisor stays as long as its worker, and a worker imports torch with its first run."""
    heavy = (*HEAVY, "streamlit", "plotly", "ray", "submitit", "psycopg", "typer")
    modules = ("jobs.supervisor", "jobs.supervision", "jobs.worker")
    script = (
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert told.stdout.split() == ["[]"]
    first = "import sys, jobs.supervisor\nprint('core.store' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", first], capture_output=True, text=True, cwd=ROOT, check=True)
    assert told.stdout.split() == ["False"], "the worker is to start before the store is imported"


def test_no_folder_called_pages() -> None:
    """Streamlit takes a `pages` folder beside main.py for an old kind of app.

    A deep link opened first would then show the bare script, without navigation and sidebar.
    """
    assert not (ROOT / "dashboard" / "pages").exists()
    assert (ROOT / "dashboard" / "app_pages").is_dir()


def _bound(path: Path) -> set[str]:
    """The public names that a file defines at its top level; of a package also those of its own modules."""
    own = ".".join(path.parent.relative_to(ROOT).parts) if path.name == "__init__.py" else "no module"
    bound: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound |= {
                name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
            }
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(own):
            bound |= {alias.asname or alias.name for alias in node.names}
    return {name for name in bound if not name.startswith("_")}


def _exported(path: Path) -> list[str]:
    """The names in a file's `__all__`; a file without one fails."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            assert isinstance(node, ast.Assign | ast.AnnAssign)
            assert node.value is not None
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{path.relative_to(ROOT)} has no __all__")


def _library() -> list[Path]:
    """The files of core and jobs, but for migrations, which Alembic loads by their path."""
    return [
        path
        for name in ("core", "jobs")
        for path in SOURCES[name]
        if path.parent.name != "versions" and path.name != "env.py"
    ]


def test_packages_export_what_they_say() -> None:
    packages = [path for path in _library() if path.name == "__init__.py"]
    assert len(packages) > 10
    for path in packages:
        named = _exported(path)
        public = _bound(path) | ({"__version__"} if path.parent == ROOT / "core" else set())
        assert sorted(named) == sorted(public), path.relative_to(ROOT)


def test_modules_name_their_functions_and_classes() -> None:
    for path in _library():
        if path.name == "__init__.py":
            continue
        named = set(_exported(path))
        bound = _bound(path)
        assert named <= bound, path.relative_to(ROOT)
        callables = {
            node.name
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        }
        assert callables <= named, path.relative_to(ROOT)


def test_files_stay_small() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for package in SOURCES
        for path in SOURCES[package]
        if (lines := len(path.read_text(encoding="utf-8").splitlines()))
        > (MOST_PAGE_LINES if path.parent.name == "app_pages" else MOST_LINES)
    }
    assert not long


def test_no_html_from_text() -> None:
    """Streamlit's ways to put HTML on a page are used nowhere, but for our own style sheet in main.py."""
    texts = {
        path.relative_to(ROOT / "dashboard"): path.read_text(encoding="utf-8")
        for path in SOURCES["dashboard"]
    }
    assert not [name for name, text in texts.items() if "unsafe_allow_html" in text or "st.iframe(" in text]
    calls = {str(name): text.count("st.html(") for name, text in texts.items() if "st.html(" in text}
    assert calls == {"main.py": 1}
    assert 'st.html(Path(__file__).parent / "style.css")' in texts[Path("main.py")]


def test_components_build_dom_from_text_only() -> None:
    scripts = sorted((ROOT / "dashboard" / "components").glob("*.js"))
    assert scripts
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        assert not [
            word
            for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write")
            if word in text
        ]
