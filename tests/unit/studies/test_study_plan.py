"""Which runs a study makes: the plan's own logic, and what holds of every plan."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.config import RunConfig
from core.errors import ConfigError
from core.studies import Method, Setting, load_study
from core.studies.study import (
    DevByRun,
    SettingRuns,
    chosen_candidate,
    dev_mean,
    next_runs,
    planned_runs,
    remaining,
    with_runs,
)
from tests.studying import METHODS, score_of, setting, study

NOTHING = DevByRun({})


def setting_runs(**changes: Any) -> SettingRuns:
    made = study(**changes)
    return with_runs(made, made.settings[0])


def known(*runs: RunConfig) -> DevByRun:
    return DevByRun({run: dict.fromkeys(run.tasks, score_of(run, "dev")) for run in runs})


def to_come(made: SettingRuns, dev: DevByRun, failed: Collection[RunConfig]) -> tuple[list[RunConfig], ...]:
    return remaining(planned_runs(made, dev, failed), dev, failed)


def arm_of(run: RunConfig) -> tuple[str, float | None]:
    return run.paradigm, run.lambda_


class TestPlan:
    def test_first_all_arms_with_few_seeds_then_the_chosen_arm_with_all(self) -> None:
        made = setting_runs()
        runs = next_runs(made, NOTHING, ())
        seeds: dict[tuple[str, float | None], list[int]] = {}
        for run in runs:
            seeds.setdefault(arm_of(run), []).append(run.seed)
        assert seeds == {
            ("mtl", None): [1, 2, 3],  # no choice, so no search
            ("stl", None): [1, 1, 2, 2, 3, 3],  # a run for each task
            ("mrn", 0.01): [1, 2], ("mrn", 0.1): [1, 2], ("mrn", 1.0): [1, 2],
        }  # fmt: skip
        assert all(run.alignment == "exact" for run in runs if run.paradigm == "mrn")
        assert [(*arm_of(run), run.seed) for run in next_runs(made, known(*runs), ())] == [("mrn", 0.1, 3)]

    def test_a_family_waits_for_all_of_its_search(self) -> None:
        made = setting_runs()
        first = next_runs(made, NOTHING, ())
        assert next_runs(made, known(*first[:-1]), ()) == [first[-1]]
        assert chosen_candidate(made, "mrn", known(*first[:-1]), ()) is None

    def test_the_first_of_equal_arms_is_chosen(self) -> None:
        made = setting_runs()
        alike = DevByRun({run: dict.fromkeys(run.tasks, 0.5) for run in next_runs(made, NOTHING, ())})
        chosen = chosen_candidate(made, "mrn", alike, ())
        assert chosen is not None
        assert chosen.values["lambda"] == 0.01

    def test_only_targets_count_and_stl_of_several_tasks_is_one_arm(self) -> None:
        only = Setting("s", "S", "one", setting().base, ("ner",), ("mtl", "stl", "mrn"))
        made = with_runs(study(only), only)
        assert {run.tasks for run in made.runs() if run.paradigm == "stl"} == {("ner",)}
        (mtl,) = made.candidates["mtl"]
        scores = DevByRun({run: {"pos": 0.1, "ner": 0.7} for run in mtl.runs_with([1, 2])})
        assert dev_mean(mtl, [1, 2], ("ner",), scores) == pytest.approx(0.7)
        assert dev_mean(mtl, [1, 2, 3], ("ner",), scores) is None
        (stl,) = setting_runs().candidates["stl"]
        pos, ner = stl.runs[1]
        both = DevByRun({pos: {"pos": 0.9}, ner: {"ner": 0.5}})
        assert dev_mean(stl, [1], ("pos", "ner"), both) == pytest.approx(0.7)
        assert dev_mean(stl, [1], ("pos", "ner"), DevByRun({pos: {"pos": 0.9}})) is None

    def test_an_arm_that_failed_is_out_and_a_family_whose_arms_all_failed_is_left(self) -> None:
        made = setting_runs()
        first = next_runs(made, NOTHING, ())
        failed = {run for run in first if arm_of(run) == ("mrn", 0.1) and run.seed == 2}
        (further,) = next_runs(made, known(*(set(first) - failed)), failed)
        assert arm_of(further) == ("mrn", 0.01)
        failed = {run for run in first if run.paradigm == "mrn" and run.seed == 1}
        scores = known(*(set(first) - failed))
        assert next_runs(made, scores, failed) == []
        assert to_come(made, scores, failed) == ([], [])

    def test_a_search_of_its_own(self) -> None:
        """The runs that choose differ from those that count, and all seeds of the chosen one are trained."""
        made = setting_runs(settings=(replace(setting(), search={"epochs": 1}),))
        first = next_runs(made, NOTHING, ())
        assert {run.epochs for run in first if run.paradigm == "mrn"} == {1}
        assert {run.epochs for run in first if run.paradigm != "mrn"} == {5}
        then = next_runs(made, known(*first), ())
        assert [(*arm_of(run), run.seed, run.epochs) for run in then] == [
            ("mrn", 0.1, seed, 5) for seed in (1, 2, 3)
        ]
        assert next_runs(made, known(*first, *then), ()) == []
        search, final = to_come(made, NOTHING, ())
        assert (len(search), len(final)) == (6, 3 + 6 + 3)
        # Scores of the runs that count, dev scores among them, choose nothing.
        assert (
            chosen_candidate(made, "mrn", known(*(run for run in made.runs() if run.epochs == 5)), ()) is None
        )


class TestEveryPlan:
    @given(st.data())
    def test_it_ends_and_never_asks_twice(self, data: st.DataObject) -> None:
        candidates = data.draw(st.integers(1, 4))
        strengths = [0.01 * (place + 1) for place in range(candidates)]
        method = Method("mrn", "MRN", tuple({"paradigm": "mrn", "lambda": value} for value in strengths))
        seeds = tuple(range(1, data.draw(st.integers(1, 4)) + 1))
        search = seeds[: data.draw(st.integers(1, len(seeds)))]
        made = setting_runs(methods=(*METHODS[:2], method), seeds=seeds, search_seeds=search)
        scores: dict[RunConfig, dict[str, float]] = {}
        failed: set[RunConfig] = set()
        most = len(list(made.runs()))
        while due := next_runs(made, DevByRun(scores), failed):
            assert len(set(due)) == len(due)
            assert not set(due) & (scores.keys() | failed)
            for run in due[: data.draw(st.integers(1, len(due)))]:  # they end in any order, some badly
                ending = data.draw(st.sampled_from(["succeeds", "succeeds", "succeeds", "fails", "no score"]))
                if ending == "fails":
                    failed.add(run)
                else:
                    value = data.draw(st.floats(0, 1))
                    scores[run] = dict.fromkeys(run.tasks, value) if ending == "succeeds" else {}
            assert len(scores) + len(failed) <= most
        assert to_come(made, DevByRun(scores), failed) == ([], [])
        chosen = chosen_candidate(made, "mrn", DevByRun(scores), failed)
        if chosen is not None:
            assert all(run in scores or run in failed for run in chosen.runs_with(seeds))

    @given(st.lists(st.floats(0, 1), min_size=3, max_size=3), st.floats(0, 1))
    def test_later_seeds_do_not_change_the_choice(self, means: list[float], later: float) -> None:
        """Else a study that goes on could choose again."""
        made = setting_runs()
        candidates = made.candidates["mrn"]
        scores = {
            run: dict.fromkeys(run.tasks, mean)
            for candidate, mean in zip(candidates, means, strict=True)
            for run in candidate.runs_with([1, 2])
        }
        before = chosen_candidate(made, "mrn", DevByRun(scores), ())
        assert before is not None
        scores |= {run: dict.fromkeys(run.tasks, later) for run in before.runs_with([3])}
        assert chosen_candidate(made, "mrn", DevByRun(scores), ()) is before


class TestStudy:
    def test_what_pooling_is_told_of_tasks_and_words(self) -> None:
        """Weights follow what is planted, or the words of each task; their mean is 1. Seeds are new ones."""
        made = load_study("priors")
        settings = {each.name: with_runs(made, each) for each in made.settings if each.part == "pooling"}
        (by_alpha,) = settings["ner-two-good"].candidates["pooled-alpha"]
        weights = by_alpha.values["task_weights"]
        assert [weight / weights[0] for weight in weights] == pytest.approx(
            [1, 0.95, 0.95, *[0.11] * 3], abs=1e-3
        )
        (by_words,) = settings["ner-mixed-others"].candidates["pooled-words"]
        weights = by_words.values["task_weights"]
        assert [weight / weights[0] for weight in weights] == pytest.approx([1, *[2000 / 500] * 5], abs=5e-3)
        assert sum(weights) / len(weights) == pytest.approx(1, abs=1e-3)
        chosen_on = {
            run.seed
            for each in made.settings
            if each.name not in settings
            for run in with_runs(made, each).runs()
        }
        for setting_runs in settings.values():
            assert {run.heads for run in setting_runs.runs() if run.paradigm == "mtl"} == {"own", "shared"}
            assert not {run.seed for run in setting_runs.runs()} & chosen_on

    def test_fewer_and_more_seeds_and_a_name_that_is_none(self) -> None:
        with pytest.raises(ConfigError, match="no study 'letters'; there is priors"):
            load_study("letters")
        made = study()
        assert (made.with_seeds(1).seeds, made.with_seeds(1).search_seeds) == ((1,), (1,))
        assert (made.with_seeds(5).seeds, made.with_seeds(5).search_seeds) == ((1, 2, 3, 4, 5), (1, 2))

    def test_arms_are_told_by_what_differs(self) -> None:
        method = Method(
            "f", "F", ({"learn": ("task",), "lambda": 0.1}, {"learn": ("task", "label"), "lambda": 0.1})
        )
        assert [method.describe(candidate) for candidate in method.candidates] == [
            "learn=task",
            "learn=task+label",
        ]
        assert METHODS[0].describe(METHODS[0].candidates[0]) == ""

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"reference": "ridge"}, "reference ridge is missing"),
            ({"methods": METHODS[:2]}, "no method is called mrn"),
            ({"methods": (*METHODS, METHODS[0])}, "given twice"),
            ({"methods": (Method("mtl", "MTL", ()), *METHODS[1:])}, "no candidate"),
            ({"search_seeds": (7,)}, "seeds of the search"),
            ({"settings": (setting(), setting())}, "given twice"),
        ],
    )
    def test_what_contradicts_itself(self, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            study(**changes)
