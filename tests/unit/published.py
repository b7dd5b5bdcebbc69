"""Whether a preset has the values of its paper, which docs/mathematics.md prints with their sources."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.config import PRESETS, RunConfig

OF_MRN = {
    *("prior", "alignment", "lambda", "learn", "shrinkage", "update_every", "update_timing", "snapshots"),
    *("label_scale", "task_correlation", "added_to"),
}
OF_NO_PAPER = {"system", "permuted", "balancing"}
"""Fields of imported predictions, of a control, and of methods that none of the papers has."""
_ROOT = Path(__file__).resolve().parents[2]
_PAGE = (_ROOT / "docs" / "mathematics.md").read_text(encoding="utf-8")
_HEADS = {"dissertation": "protocol", "sc-lstm": "SC-LSTM", "tea": "TEA-BERT"}


def published_values(preset: str) -> dict[str, str]:
    """The value of each field of the paper, as its table prints it."""
    section = _PAGE.split(f"## The published {_HEADS[preset]}, value by value\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", section, flags=re.MULTILINE))


def printed_values(config: RunConfig) -> dict[str, str]:
    """The values of a run as the tables print them."""
    return {
        field: ",".join(value) if isinstance(value, tuple | list) else str(value)
        for field, value in config.values().items()
    }


def assert_published(preset: str, values: dict[str, str], *, of_no_paper: set[str], unset: set[str]) -> None:
    """A run with the preset has the published values; each field is published, of no paper, or unset."""
    published = published_values(preset)
    assert {field: values[field] for field in published} == published
    assert published.keys() | of_no_paper | unset | OF_NO_PAPER == values.keys()
    assert {values[field] for field in unset} == {"None"}
    assert PRESETS[preset].keys() <= published.keys()


def paper_text(name: str) -> str:
    """The text of a paper, or a skip where it is not here."""
    file = _ROOT.parent / "shared" / "papers" / name
    if not file.is_file():
        pytest.skip("the text of the paper is not here")
    return file.read_text(encoding="utf-8")
