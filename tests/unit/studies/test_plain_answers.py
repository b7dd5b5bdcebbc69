"""The answers of studies in plain words: of a setting, of a part, and of all published records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import pytest

from core.studies import STUDIES, Method
from core.studies.analysis import MEAN, Outcome, Result, with_differences
from core.studies.answer import (
    answered,
    from_bases,
    headline,
    how_measured,
    losses,
    part_answer,
    study_answer,
)
from core.studies.factors import answers_of, first_grid, gains_by_factor, grid_answer, trends
from core.studies.meaning import meaning, meanings, meanings_in
from core.studies.recorded import RECORDS, Record, records_of
from core.studies.simulator import point_of
from core.studies.study import Asked
from tests.studying import setting, study

_UP, _DOWN, _WIDE, _SAME = (0.101, 0.1, 0.099), (-0.201, -0.2, -0.199), (0.3, -0.2, 0.01), (0.0, 1e-5, -1e-5)


def made(score_name: str = "f1_conll", /, **gains: tuple[float, ...]) -> Result:
    """A setting in which these methods gain so much over MTL in three seeds."""
    names = {"mtl": (0.0, 0.0, 0.0), **gains}
    methods = tuple(Method(name, name.upper(), ({"paradigm": "mtl"},), words=f"the {name}") for name in names)
    methods = (replace(methods[0], words=""), *methods[1:])
    small = replace(setting(), methods=tuple(names), words="NER with 500 words")

    def outcome(method: Method) -> Outcome:
        by_seed = {seed: 0.5 + gain for seed, gain in enumerate(names[method.name])}
        return Outcome(
            method, {}, None, {"ner": by_seed, MEAN: by_seed}, 0, {}, score_names={"ner": score_name}
        )

    outcomes: Mapping[str, Outcome] = {method.name: outcome(method) for method in methods}
    whole = replace(study(), settings=(small,), methods=methods)
    return with_differences(whole, small, dict(outcomes), 3, 3)


@pytest.mark.parametrize(
    ("gains", "sentence"),
    [
        ({"a": _UP}, "The a beats MTL on NER with 500 words (+10.0 F1)."),
        ({"a": _DOWN}, "The a loses to MTL on NER with 500 words (−20.0 F1)."),
        ({"a": _SAME}, "The a does as well as MTL on NER with 500 words (0.0 F1)."),
        ({"a": _WIDE}, "Whether the a beats MTL on NER with 500 words is undecided (+3.7 F1)."),
        ({"a": _WIDE, "b": _SAME}, "Neither method is shown to differ from MTL on NER with 500 words."),
        (
            {"a": _UP, "b": tuple(2 * gain for gain in _UP)},
            "Both methods beat MTL on NER with 500 words, the b most (+20.0 F1).",
        ),
        (
            {"a": _UP, "b": _UP, "c": _WIDE},
            "Two of three methods beat MTL on NER with 500 words, the a most (+10.0 F1).",
        ),
        (
            {"a": _UP, "b": _DOWN, "c": _WIDE},
            "One of three methods beats MTL on NER with 500 words: the a (+10.0 F1); the b loses (−20.0).",
        ),
        (
            {"a": _DOWN, "b": tuple(2 * gain for gain in _DOWN), "c": _WIDE},
            "None of three methods beats MTL on NER with 500 words; two lose, the b most (−40.0 F1).",
        ),
        (
            {"a": _DOWN, "b": tuple(2 * gain for gain in _DOWN)},
            "Both methods lose to MTL on NER with 500 words, the b most (−40.0 F1).",
        ),
    ],
)
def test_the_headline_says_how_many_methods_win_and_which_most(
    gains: dict[str, tuple[float, ...]], sentence: str
) -> None:
    assert headline(made(**gains)) == sentence
    assert headline(made("accuracy", **gains)) == sentence.replace("F1", "points")


def test_a_part_is_answered_by_how_often_the_best_wins_and_the_worst_loses() -> None:
    wins, loses, open_ = made(a=_UP, b=_WIDE), made(a=_UP, b=_DOWN), made(a=_WIDE, b=_WIDE)
    assert part_answer([]) == ""
    assert part_answer([wins]) == headline(wins)
    assert part_answer([wins, loses]) == "The a beats MTL in both settings; the b loses in 1 of 2 settings."
    assert part_answer([wins, loses, open_]).startswith("The a beats MTL in 2 of 3 settings; the b")
    assert part_answer([open_, open_]) == "No method beats MTL in any of 2 settings."
    alone = [made(a=_UP), made(a=_DOWN)]
    assert part_answer(alone) == "The a beats MTL in 1 of 2 settings and loses in 1 of 2 settings."
    assert part_answer([made(a=_UP), made(a=_WIDE)]) == "The a beats MTL in 1 of 2 settings; undecided in 1."


def test_what_none_wins_is_not_said_to_lose_itself() -> None:
    assert part_answer([made(a=_DOWN), made(a=_WIDE)], "way") == (
        "No way beats MTL in any of 2 settings; the a loses in 1 of 2 settings."
    )


def test_a_study_says_of_which_methods_and_kinds_of_settings_its_answer_is() -> None:
    many, few = "with many words", "with few words"
    kinds = iter([many, many, few, many, few])
    asked = replace(study(), asked=Asked(("a",), lambda _: next(kinds)))
    assert study_answer(study(), [made(a=_UP)]) == study_answer(asked, [made(b=_UP)]) == ""
    assert study_answer(asked, [made(a=_UP, b=_DOWN), made(a=_UP), made(a=_WIDE, b=_UP)]) == (
        "The a beats MTL in 2 of 2 settings with many words and 0 of 1 with few words (+10.0 points)."
    )
    # Kinds of one setting each are counted together.
    assert study_answer(asked, [made(a=_UP), made(a=_WIDE)]) == (
        "The a beats MTL in 1 of 2 settings (+10.0 points)."
    )
    published = records_of("dissertation")[0]
    answer = study_answer(published.definition, [published.result(each) for each in published.settings])
    assert answer.startswith("Not tested over the published encoders yet. Over minilm, MRN")


def test_methods_that_change_one_thing_are_named_by_their_verdicts() -> None:
    record = records_of("priors")[0]
    assert from_bases(record.result(record.settings[0])) == (
        "MRN with the published prior (+9.4 F1), MRN with the relational prior (+8.4) and a fixed task "
        "correlation (+6.0) beat one head for all tasks. 5 seeds."
    )


def test_a_method_is_described_by_the_fields_of_its_runs() -> None:
    record = records_of("priors")[0]
    (first, *_) = record.settings
    texts = {name: meaning(each, first.base) for name, each in record.definition.methods_in(first).items()}
    assert all(texts.values())
    assert len(set(texts.values())) == len(texts)
    assert "their tasks to be related" in texts["mrn"]


@pytest.mark.parametrize("name", STUDIES)
def test_each_method_of_each_setting_is_said_to_be_something_of_its_own(name: str) -> None:
    for each in STUDIES[name].settings:
        texts = [meaning(method, each.base) for method in STUDIES[name].methods_in(each).values()]
        assert all(text.endswith(".") for text in texts)
        assert len(set(texts)) == len(texts)


def test_an_answer_is_of_what_is_asked_and_of_what_loses_most_often() -> None:
    wins, loses, open_ = made(a=_UP, b=_WIDE), made(a=_UP, b=_DOWN), made(a=_WIDE, b=_UP)
    assert answered(study(), [wins, open_]) == ("the a",)
    assert answered(study(), [wins, loses]) == ("the a", "the b")
    assert answered(replace(study(), asked=Asked(("b",))), [wins, open_]) == ("the b",)
    several = replace(study(), asked=Asked(("b", "c")))
    assert answered(several, [made(a=_UP, b=_WIDE, c=_DOWN)]) == ("the b", "the c")
    assert answered(study(), []) == ()
    assert losses([wins, loses]) == "The b loses in 1 of 2 settings."
    assert losses([wins, open_]) == losses([loses]) == ""


def test_what_a_grid_of_simulated_tasks_answers_are_its_trends_by_factor() -> None:
    record = records_of("simulator")[0]
    balanced = [each for each in record.settings if each.part == "balanced"]
    results = [record.result(each) for each in balanced]
    of_500 = [
        result.outcome("mtl").differences[MEAN].mean
        for each, result in zip(balanced, results, strict=True)
        if (point := point_of(each)) is not None and point.words == 500
    ]
    assert len(of_500) == 20
    gains = gains_by_factor(results)
    assert list(gains) == ["words", "tasks", "alpha"]  # each task has NER's number of words
    assert gains["words"][500].mean == pytest.approx(fmean(of_500))
    assert {gain.seeds for by_value in gains.values() for gain in by_value.values()} == {3}
    assert trends(results)["alpha"].mean == pytest.approx(gains["alpha"][1.0].mean - gains["alpha"][0.2].mean)
    text = " ".join(grid_answer(results))
    assert text == (
        "NER's gain from simulated tasks grows with their relatedness (+13.4 F1 with 20% of labels kept, "
        "+22.2 with 100%). Whether it depends on NER's training words "
        f"(+{100 * fmean(of_500):.1f} F1 with 500 words, +5.5 with 2,000) or the number of tasks (+11.4 F1 "
        "with one, +23.4 with six) is undecided."
    )
    assert answers_of(STUDIES["simulator"], results) == [
        *grid_answer(results), "MTL beats STL in 21 of 60 settings; undecided in 39.",
    ]  # fmt: skip
    assert " ".join(grid_answer(first_grid([record.result(each) for each in record.settings]))) == text
    # Settings count for a factor where those alike in all else have each of its values.
    assert results[0].setting.name == "balanced-n500-t1-a0.2"
    of_others = [
        each.outcome("mtl").differences[MEAN].mean for each in results if "-n500-" in each.setting.name
    ]
    assert gains_by_factor(results[1:])["words"][500].mean == pytest.approx(fmean(of_others[1:]))
    by_alpha = [result for result in results if result.setting.name.startswith("balanced-n500-t1-")]
    (undecided,) = grid_answer(by_alpha)
    assert undecided.startswith("Whether NER's gain from simulated tasks depends on their relat")
    assert grid_answer([]) == grid_answer(results[:1]) == []


def test_what_differences_are_is_said_in_one_sentence() -> None:
    assert how_measured([made(a=_UP)]) == (
        "Difference in test F1, in points, from MTL, mean over tasks; 3 seeds, paired."
    )
    record = records_of("priors")[0]
    of_pooling = [record.result(each) for each in record.settings if each.part == "pooling"]
    assert how_measured(of_pooling) == (
        "Difference in test F1 or accuracy, in points, from MTL, mean over tasks; 5 seeds, paired."
    )
    assert how_measured([made()]) == ""


def test_the_methods_that_a_text_names_are_explained_in_its_order() -> None:
    record = records_of("priors")[0]
    (first, *_) = record.settings
    by_name = meanings([record.result(first)])
    text = "One head for all tasks, weighted, loses to MTL; MRN with the published prior beats it."
    assert list(meanings_in(text, by_name)) == [
        "one head for all tasks, weighted", "MTL", "MRN with the published prior",
    ]  # fmt: skip
    assert meanings_in("MTLs", by_name) == {}


def test_a_difference_that_one_decimal_makes_nothing_has_two() -> None:
    small = (-0.0004, -0.0003, -0.0005)
    asked = replace(study(), asked=Asked(("a",)))
    results = [made(a=small), made(a=_DOWN)]
    assert study_answer(asked, results).endswith("(−20.00 to −0.04 points).")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.results_path.stem)
def test_every_published_answer_is_a_short_sentence_whose_methods_have_one_name_each(record: Record) -> None:
    for each in map(record.result, record.settings):
        names = [outcome.method.in_sentence for outcome in each.outcomes]
        assert len(set(names)) == len(names)
        for text in (headline(each), from_bases(each)):
            assert "  " not in text
            assert not re.search(r"\d\.\d\d|\[", text)  # intervals are in the table
        assert len(headline(each)) < 200


@pytest.mark.parametrize("name", STUDIES)
def test_settings_of_a_part_are_told_apart_by_their_titles(name: str) -> None:
    titles = [(setting.part, setting.title) for setting in STUDIES[name].settings]
    assert len(set(titles)) == len(titles)
