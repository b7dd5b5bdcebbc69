"""README's figures on scarce data are those that its runs have now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.benchmarks.readme import scarce_data

README = Path(__file__).resolve().parents[2] / "README.md"
_FIGURE = re.compile(r"\d+\.\d+")
_RANGE = 1.0
"""Points by which a figure may differ on another machine: bfloat16 and another BLAS change a few words in a
thousand, and an interval over five seeds with them."""


@pytest.mark.slow
def test_readme_has_the_figures_of_now() -> None:
    sentence = scarce_data()
    words = [re.escape(part).replace(r"\ ", r"\s+") for part in _FIGURE.split(sentence)]
    printed = re.search(r"(\d+\.\d+)".join(words), README.read_text(encoding="utf-8"))
    assert printed is not None, f"README does not say: {sentence}"
    assert [float(figure) for figure in _FIGURE.findall(sentence)] == pytest.approx(
        [float(figure) for figure in printed.groups()], abs=_RANGE
    )
