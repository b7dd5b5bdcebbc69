"""mrnlab appendix: what a paper's reproducibility appendix needs, from the store."""

from __future__ import annotations

from typing import Any

import pytest

from core.events import SplitResult
from tests.making import claimed, config, finished, run_facts, task_score
from tests.unit.cli.conftest import Laboratory

_KNOWN: dict[str, Any] = {
    "sizes": {"train": (120, 1712), "test": (30, 400)},
    "hardware": "A processor, 2 cores",
}


def _finished(
    lab: Laboratory,
    dev: float,
    test: float,
    *,
    known: bool = True,
    facts: dict[str, Any] | None = None,
    **values: Any,
) -> int:
    results = [
        SplitResult(split, 1, (task_score("pos", score), task_score("ner", score / 2)), {}, {})
        for split, score in (("dev", dev), ("test", test))
    ]
    return finished(
        lab.store, config(**values), run_facts(**(_KNOWN if known else {}), **(facts or {})), *results
    )


@pytest.mark.parametrize("format_", ["markdown", "latex"])
def test_all_that_a_reader_needs_to_repeat_it(lab: Laboratory, format_: str) -> None:
    ids = [_finished(lab, 0.8 + seed / 100, 0.7 + seed / 100, seed=seed) for seed in (1, 2)]
    for seed in (1, 2):
        _finished(lab, 0.9, 0.1, seed=seed, lambda_=0.5)
    text = lab.answer("appendix", *map(str, ids), "--format", format_)
    assert "120 sentences" in text
    assert "1,712 words" in text
    assert "81.50" in text  # dev
    assert "71.50" in text  # test
    assert "A processor, 2 cores" in text
    # Dev scores are higher for the other λ, whatever the test scores are, and the appendix says so.
    assert "of 0.001, 0.5: dev is highest for 0.5" in text
    option = "-{}-" if format_ == "latex" else "--"
    assert f"mrnlab launch {option}corpus" in text
    assert f"{option}seeds 1,2" in text
    assert "mrnlab & test" in text or "mrnlab | test" in text
    if format_ == "latex":
        assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 5
        assert r"learn" in text
        assert r"update\_every" in text
    else:
        assert "| update\\_every | 10 | default |" in text


def test_values_tried_on_other_text_stand_beside_no_other(lab: Laboratory) -> None:
    """The corpus changed; the scores on its two texts do not compare."""
    old = [
        _finished(lab, dev, 0.7, lambda_=λ, facts={"text_hash": "a"}) for λ, dev in ((0.1, 0.8), (0.2, 0.7))
    ]
    new = _finished(lab, 0.95, 0.7, lambda_=0.3, facts={"text_hash": "b"})
    text = lab.answer("appendix", *map(str, (*old, new)), "--format", "markdown")
    assert text.count("dev is highest for 0.1") == 1
    assert "| lambda | 0.3 | set |" in text


def test_a_repeated_seed_is_no_further_value_tried(lab: Laboratory) -> None:
    for dev in (0.99, 0.6):  # the newest counts
        _finished(lab, dev, 0.7, lambda_=0.1)
    other = _finished(lab, 0.7, 0.7, lambda_=0.2)
    text = lab.answer("appendix", "1", "2", str(other), "--format", "markdown")
    assert text.count("dev is highest for 0.2") == 1


def test_what_an_older_version_did_not_record_is_named(lab: Laboratory) -> None:
    run_id = _finished(lab, 0.8, 0.7, known=False)
    text = lab.answer("appendix", str(run_id), "--format", "markdown")
    assert "| splits | not recorded |" in text
    assert "| precision | auto: fp32 | default |" in text  # what auto stood for was recorded


def test_runs_that_have_not_finished_are_refused(lab: Laboratory) -> None:
    run_id = claimed(lab.store)
    assert "None of these runs has finished" in lab.refusal("appendix", str(run_id))


def test_values_tried_are_compared_on_the_seeds_that_all_have(lab: Laboratory) -> None:
    """λ 0.1 is better with the one seed that both have; 0.2 has been tried with an easier one too."""
    ids = [_finished(lab, dev, 0.7, lambda_=0.1, seed=seed) for seed, dev in ((1, 0.6), (2, 0.8))]
    ids += [_finished(lab, dev, 0.7, lambda_=0.2, seed=seed) for seed, dev in ((2, 0.79), (3, 0.9))]
    text = lab.answer("appendix", *map(str, ids), "--format", "markdown")
    assert text.count("dev is highest for 0.1") == 1
    lone = _finished(lab, 0.99, 0.7, epochs=9, lambda_=0.1, seed=7)
    text = lab.answer("appendix", str(lone), "--format", "markdown")
    assert "they share no seed on dev" in text
