"""docs/security.md names tests that there are, and all of ours are named."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_DOCUMENT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
# Tests of the tests, and of helpers, hold no claim by themselves.
_UNNAMED = {
    "test_a_page_of_ours_connects", "test_a_server_for_this_machine_alone_warns_of_nothing",
    "test_which_addresses_are_local", "test_a_login_needs_no_warning",
    "test_names_that_can_be_no_folder", "test_a_guarded_cell_can_be_read_back",
    "test_a_mapping_of_hostile_labels_comes_back_from_its_template",
    "test_nothing_but_lines_and_tabs_is_left_to_command",
    "test_the_look_at_our_source_finds_what_it_looks_for", "test_the_look_for_sql_finds_what_it_looks_for",
    "test_deleting_goes_by_the_number_alone", "test_no_page_stumbles_over_hostile_text",
    "test_each_claim_has_its_test", "test_each_test_holds_a_claim",
}  # fmt: skip


def _tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_each_claim_has_its_test() -> None:
    named = re.findall(r"`((?:tests/unit/)?test_\w+\.py)::(\w+)`", _DOCUMENT)
    assert len(named) > 30
    assert _DOCUMENT.count("::test_") == len(named)
    for file, test in named:
        path = ROOT / file if file.startswith("tests/") else Path(__file__).parent / file
        assert test in _tests(path), f"{file} has no {test}"


def test_each_test_holds_a_claim() -> None:
    ours = set().union(*(_tests(path) for path in Path(__file__).parent.glob("test_*.py")))
    assert {test for test in ours if f"::{test}`" not in _DOCUMENT} == _UNNAMED
