"""What can be called and set is documented."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from core.config import FIELD_HELP, FIELD_RULES, PRESETS, RunConfig
from core.metrics import METRICS, STATISTICS, statistic
from core.registry import ADDED, ALIGNMENTS, ENCODERS, MODES, PREDICTED, PRIORS, WORD_ENCODERS
from core.results.filter import FIELDS
from core.settings import SETTINGS
from dashboard.shared.docs import anchor_of
from jobs.cli import app

DOCS = Path(__file__).resolve().parents[2] / "docs"
_PROGRAM = typer.main.get_command(app)
assert isinstance(_PROGRAM, TyperGroup)
_COMMANDS = _PROGRAM.commands


def _section(text: str, title: str) -> str:
    """What stands under that heading of the second level."""
    section = re.search(rf"^## {title}$(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return section[1] if section else ""


@pytest.mark.parametrize("verb", sorted(_COMMANDS))
def test_every_verb_has_a_section_with_an_example_and_its_options(verb: str) -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    section, everywhere = _section(text, verb), text.split("## launch")[0]
    assert f"    mrnlab {verb}" in section
    options = {option for parameter in _COMMANDS[verb].params for option in parameter.opts}
    for option in options - {"--help"}:
        assert not option.startswith("--") or (
            f"`{option}" in section or f" {option}" in section or f"`{option}`" in everywhere
        ), option


def test_every_field_of_a_filter_is_documented() -> None:
    section = _section((DOCS / "command-line.md").read_text(encoding="utf-8"), "runs")
    for name, field in FIELDS.items():
        assert name in FIELD_HELP or f"| `{name}` | {field.description} |" in section, name


def test_every_metric_is_documented() -> None:
    section = _section((DOCS / "command-line.md").read_text(encoding="utf-8"), "metrics")
    statistics = {statistic(mode, name) for mode in MODES for name in STATISTICS}
    names = {metric.name for metric in METRICS.values() if metric not in statistics}
    assert {"loss", "penalty"} < names
    assert not [name for name in (*names, *MODES, *STATISTICS) if f"`{name}`" not in section]


def test_no_section_without_a_verb() -> None:
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (.*)$", text, flags=re.MULTILINE)) == set(_COMMANDS)


_HEAD = """\
# The description of a run

One `RunConfig` describes a run everywhere: in the form, on the command line, in the store and in the worker.
Runs that differ only in `seed` are seeds of one configuration. On the command line the fields are options of
[`mrnlab launch`](command-line.md), the rarer ones by `--set field=value`.

This page is written by `python -m tests.unit.test_docs`; change the descriptions in
`core/config/parts.py`.

## Fields

| Field | What it is | Accepted | Default |
|---|---|---|---|
"""
_PUBLISHED = {
    "dissertation": "the-published-protocol-value-by-value",
    "sc-lstm": "the-published-sc-lstm-value-by-value",
    "tea": "the-published-tea-bert-value-by-value",
}
"""The section of docs/mathematics.md with the values of each preset."""
# A run that has every field, to read the defaults from.
_EXAMPLE = RunConfig.build(corpus="corpus", tasks=("one", "two"), encoder="minilm+bilstm")


def _run_description() -> Iterator[str]:
    """The lines of docs/run-description.md."""
    yield from _HEAD.splitlines()
    for name, help_ in FIELD_HELP.items():
        symbol = f" ({help_.symbol})" if help_.symbol else ""
        unit = "" if help_.unit == "choice" else help_.unit
        accepted = f"{help_.range.replace('|', '·')} {unit}".strip()
        yield f"| `{name}`{symbol} | {help_.description} | {accepted} | {_default(name)} |"
    yield from ("", "## Fields that only some runs have", "")
    reasons: dict[str, list[str]] = {}
    for name, rule in FIELD_RULES.items():
        if rule.reason:
            reasons.setdefault(rule.reason, []).append(f"`{name}`")
    yield from (f"- {', '.join(names)}: {reason}." for reason, names in reasons.items())
    encoders = {spec.name: spec.description for spec in ENCODERS.values()} | WORD_ENCODERS
    priors = {name: spec.description for name, spec in (PRIORS | {PREDICTED: ADDED}).items()}
    for title, entries in {"Encoders": encoders, "Priors": priors, "Alignments": ALIGNMENTS}.items():
        yield from ("", f"## {title}", "")
        yield from (f"- `{name}`: {description}" for name, description in entries.items())
    yield from ("", "## Presets", "")
    yield from (f"- [`{name}`](mathematics.md#{anchor})" for name, anchor in _PUBLISHED.items())


def _default(name: str) -> str:
    if name in ("corpus", "tasks"):
        return "required"
    value = FIELD_HELP[name].default if name == "encoder" else _EXAMPLE.value(name)
    if value is None:
        return "unset"
    text = f"`{','.join(map(str, value)) if isinstance(value, tuple) else value}`"
    return f"{text} for minilm" if name in ("lr_encoder", "lr_heads") else text


def test_the_description_of_a_run_is_up_to_date() -> None:
    expected = "\n".join(_run_description()) + "\n"
    text = (DOCS / "run-description.md").read_text(encoding="utf-8")
    assert text == expected, "run: python -m tests.unit.test_docs > docs/run-description.md"


def test_every_preset_has_its_values_in_the_docs() -> None:
    """The tests of each published protocol hold the values."""
    assert set(_PUBLISHED) == set(PRESETS)


def test_the_environment_is_documented() -> None:
    root = DOCS.parent
    used = {
        name
        for package in ("core", "jobs", "dashboard")
        for path in (root / package).rglob("*.py")
        for name in re.findall(r"MRNLAB_[A-Z0-9_]*[A-Z0-9]\b", path.read_text(encoding="utf-8"))
    }
    assert used - {"MRNLAB_TEST_DATA"} == set(SETTINGS)
    text = (DOCS / "command-line.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"\n\| `(MRNLAB_\w+)` \|(.*)", text))
    assert list(rows) == list(SETTINGS)
    for name, setting in SETTINGS.items():
        if setting is not None and setting.default is not None:
            assert f"(default {setting.default:g}" in rows[name]


_ROOT = DOCS.parent
_PAGES = [
    *(_ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(DOCS.rglob("*.md")),
]
_SOURCES = [path for room in ("core", "jobs", "dashboard", "tests") for path in (_ROOT / room).rglob("*.py")]
_FOLDERS = r"(?:core|jobs|dashboard|tests|docs|spec|shared|\.ci)"
_PATH = re.compile(rf"(?<![\w./~:-])({_FOLDERS}/[\w./-]*\w)")
_DOTTED = re.compile(r"(?<![\w./-])((?:core|jobs|dashboard|tests)(?:\.[A-Za-z_0-9]+)+)")


def _is_there(dotted: str) -> bool:
    """Whether that is a module of this repository, or a name at the top of one."""
    module = _ROOT.joinpath(*dotted.split("."))
    if module.is_dir() or module.with_suffix(".py").exists():
        return True
    parent = module.parent / "__init__.py" if module.parent.is_dir() else module.parent.with_suffix(".py")
    name = rf"^(?:def |class |from .* import .*|    \"|)\b{module.name}\b"
    return parent.exists() and bool(re.search(name, parent.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_map_of_folders_names_every_package() -> None:
    text = (_ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:core|jobs|dashboard)/\w+)`", _section(text, "The house in ten lines")))
    packages = {
        f"{package}/{path.parent.name}"
        for package in ("core", "jobs", "dashboard")
        for path in (_ROOT / package).glob("*/__init__.py")
    }
    assert (packages - named, named - packages) == (set(), set())


def test_the_walks_are_short_and_name_what_is_there() -> None:
    section = _section((DOCS / "architecture.md").read_text(encoding="utf-8"), "Three walks")
    walks = [walk.splitlines() for walk in re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)]
    assert [len(walk) for walk in walks] == [
        int(count) for count in re.findall(r"\*\*, (\d+) files", section)
    ]
    assert [len(walk) <= most for walk, most in zip(walks, (20, 12, 8), strict=True)] == [True] * 3
    for line in (line for walk in walks for line in walk):
        path, name = line.split()[:2]
        source = (_ROOT / path).read_text(encoding="utf-8")
        assert re.search(rf"^ *(?:def|class) {name}\b", source, re.MULTILINE), line


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return set(map(anchor_of, headings))


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_every_path_and_anchor_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", text)
    targets = [(page.parent / name if name else page, anchor) for name, anchor in links]
    missing = [str(target) for target, _ in targets if not target.exists()]
    missing += [name for name in _PATH.findall(text) if not (_ROOT / name).exists()]
    missing += [name for name in _DOTTED.findall(text) if not _is_there(name)]
    assert missing == []
    assert [anchor for target, anchor in targets if anchor and anchor not in _anchors(target)] == []


_COMMAND = re.compile(r"^(?: {4}|\$ )?mrnlab (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_ROOT)))
def test_every_command_that_a_page_shows_is_understood(page: Path) -> None:
    """Its verb exists, and each option and argument is one that the verb takes."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    refused = []
    for line in _COMMAND.findall(text):
        verb, *arguments = shlex.split(line.split(" > ")[0], comments=True)
        command = _COMMANDS.get(verb)
        if isinstance(command, TyperGroup) and arguments and not arguments[0].startswith("-"):
            command = command.commands.get(arguments.pop(0))
        try:
            assert command is not None, "no such verb"
            command.make_context(verb, arguments).close()
        except (TyperException, AssertionError) as error:
            refused.append(f"mrnlab {line}: {getattr(error, 'message', error)}")
    assert refused == []


def test_commands_are_found_and_refused() -> None:
    """What the test above stands on."""
    text = "    mrnlab study priors --part 'a b'\n$ mrnlab tag 9 x > y\n"
    assert _COMMAND.findall(text) == ["study priors --part 'a b'", "tag 9 x > y"]
    with pytest.raises(TyperException, match="No such option"):
        _COMMANDS["study"].make_context("study", ["priors", "--parts", "a"])


def test_every_table_of_a_study_has_named_columns_and_a_page() -> None:
    studies = DOCS / "studies"
    pages = "".join(page.read_text(encoding="utf-8") for page in studies.glob("*.md"))
    for table in (studies / "tables").iterdir():
        assert f"](tables/{table.name})" in pages, table.name
        with table.open(encoding="utf-8", newline="") as lines:
            head, *rows = csv.reader(lines)
        assert rows, table.name
        assert len(set(head)) == len(head), table.name
        assert all(head), table.name
        assert {len(row) for row in rows} == {len(head)}, table.name


def test_every_document_that_a_docstring_or_comment_names_exists() -> None:
    """Documents stand in docstrings by their path from the root."""
    missing = [
        f"{path.relative_to(_ROOT)}: {name}"
        for path in _SOURCES
        for name in re.findall(r"[\w./-]*/[\w-]+\.md\b|\b[A-Z]{4,}\.md\b", path.read_text(encoding="utf-8"))
        if not (_ROOT / name).exists()
    ]
    assert missing == []


def test_each_claim_of_security_md_has_its_test() -> None:
    text = (DOCS / "security.md").read_text(encoding="utf-8")
    named = re.findall(r"`(test_\w+\.py)::(\w+)`", text)
    assert len(named) > 30
    assert text.count("::test_") == len(named)
    for file, test in named:
        tests = (_ROOT / "tests" / "security" / file).read_text(encoding="utf-8")
        assert f"\ndef {test}(" in tests, f"{file} has no {test}"


if __name__ == "__main__":
    sys.stdout.write("\n".join(_run_description()) + "\n")
