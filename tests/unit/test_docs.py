"""What can be called and set is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from core.config import FIELD_HELP
from core.config_docs import lines
from jobs.cli import app
from jobs.filter_fields import FIELDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
_COMMANDS = typer.main.get_command(app)


def _section(text: str, title: str) -> str:
    """What stands under that heading of the second level."""
    found = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("verb", sorted(_COMMANDS.commands))
def test_every_verb_has_a_section_with_an_example(verb: str) -> None:
    section = _section((DOCS / "command-line.md").read_text(encoding="utf-8"), verb)
    assert f"    mrnlab {verb}" in section


@pytest.mark.parametrize("verb", sorted(_COMMANDS.commands))
def test_every_option_is_documented(verb: str) -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    section = _section(text, verb)
    everywhere = text.split("## launch")[0]
    for parameter in _COMMANDS.commands[verb].params:
        for option in parameter.opts:
            if option.startswith("--") and option != "--help":
                assert f"`{option}" in section or f" {option}" in section or f"`{option}`" in everywhere, (
                    option
                )


def test_every_field_of_a_filter_is_documented() -> None:
    section = _section((DOCS / "command-line.md").read_text(encoding="utf-8"), "runs")
    for name, field in FIELDS.items():
        assert name in FIELD_HELP or f"| `{name}` | {field.description} |" in section, name


def test_no_section_without_a_verb() -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (.*)$", text, flags=re.MULTILINE)) == set(_COMMANDS.commands)


def test_the_description_of_a_run_is_up_to_date() -> None:
    text = (DOCS / "run-description.md").read_text(encoding="utf-8")
    assert text == "\n".join(lines()) + "\n", "run: python -m core.config_docs > docs/run-description.md"
    for field in FIELD_HELP:
        assert f"\n| `{field}`" in text


def test_the_environment_is_documented() -> None:
    root = DOCS.parent
    used = {
        name
        for package in ("core", "jobs")
        for path in (root / package).rglob("*.py")
        for name in re.findall(r"MRNLAB_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert {name for name in used if f"| `{name}` |" not in text} == set()
