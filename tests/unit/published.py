"""Whether a preset has the values of its paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.config import PRESETS

OF_MRN = {
    *("prior", "alignment", "lambda", "learn", "shrinkage", "update_every", "update_timing", "snapshots"),
    *("label_scale", "task_correlation", "added_to"),
}


def assert_published(
    preset: str,
    published: list[tuple[str, Any, str]],
    values: dict[str, Any],
    *,
    of_no_paper: set[str],
    unset: set[str],
) -> None:
    """A run with the preset has the published values, which the mathematics page prints; and each field of a
    run is published, of no paper, or unset.
    """
    page = (Path(__file__).parents[2] / "docs" / "mathematics.md").read_text(encoding="utf-8")
    for field, value, where in published:
        stored = values[field]
        assert (tuple(stored) if isinstance(stored, list) else stored) == value, field
        printed = ",".join(value) if isinstance(value, tuple) else value
        assert f"| `{field}` | {printed} | {where} |" in page
    named = {field for field, _, _ in published}
    assert named | of_no_paper | unset == set(values)
    assert {values[field] for field in unset} == {None}
    assert set(PRESETS[preset]) <= named
