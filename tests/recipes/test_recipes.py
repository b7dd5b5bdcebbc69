"""Each recipe of CONTRIBUTING.md holds: its change, made in a copy of the tree, passes the promised tests."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes import column, kind, prior, score
from tests.recipes.edits import Recipe

ROOT = Path(__file__).resolve().parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = [recipe.RECIPE for recipe in (prior, kind, column, score)]
_recipes = pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.heading)


def _section(recipe: Recipe) -> str:
    """The recipe as CONTRIBUTING.md tells it."""
    match = re.search(
        rf"^### {re.escape(recipe.heading)}$(.*?)(?=^##)", CONTRIBUTING, flags=re.MULTILINE | re.DOTALL
    )
    assert match is not None
    return match[1]


def _commands(recipe: Recipe) -> list[str]:
    """The promised tests, and the programs that write pages of docs and pins anew, in order."""
    spans = re.findall(r"`((?:pytest|python -m tests\.(?:unit|pins))[^`]*)`", _section(recipe))
    return [" ".join(span.split()) for span in spans]


def _unrecorded(recipe: Recipe, commands: list[str]) -> str:
    """The pins that the recipe might change and does not record anew, for pytest's `-k`; empty where none."""
    recording = [shlex.split(command) for command in commands if "tests.pins.record" in command]
    if any("-k" not in words for words in recording):
        return ""
    return " and not ".join(f"({pins})" for pins in (recipe.pins, *(words[-1] for words in recording)))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the tracked files and of new ones that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / "tree" / name)
    return tmp_path / "tree"


def _call(command: str, tree: Path) -> None:
    """Runs a command of a recipe in that tree, from its own modules."""
    program, _, page = command.partition(" > ")
    words = shlex.split(program)
    if words[0] == "pytest":
        words = [sys.executable, "-m", *words, "-n", "0", "-p", "no:cacheprovider"]
    else:
        words = [sys.executable, *words[1:]]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MRNLAB_"))
    }
    done = subprocess.run(
        words,
        cwd=tree,
        env=environment | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    if page:
        (tree / page).write_text(done.stdout, encoding="utf-8")


@_recipes
def test_every_file_of_a_change_is_named(recipe: Recipe) -> None:
    """A new file by its folder, a test by the command that runs it."""
    section = _section(recipe)
    for edit in recipe.edits:
        named = edit.path if edit.after else str(Path(edit.path).parent)
        assert named in section, edit.path


@pytest.mark.slow
@_recipes
def test_the_promised_tests_pass_where_a_recipe_was_followed(recipe: Recipe, tree: Path) -> None:
    for edit in recipe.edits:
        edit.apply(tree)
    commands = _commands(recipe)
    assert any(command.startswith("pytest") for command in commands)
    own_tests = [edit.path for edit in recipe.edits if edit.path.startswith("tests/")]
    for command in commands:
        _call(" ".join((command, *own_tests)) if command.startswith("pytest") else command, tree)
    if left := _unrecorded(recipe, commands):
        _call(f"pytest -k {shlex.quote(left)} tests/pins", tree)
