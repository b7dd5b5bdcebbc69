"""Who is asked, where they differ, which test sentences were wrong, and a file tagged part by part."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from core.config import RunConfig
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.store import Conditions, RunState
from core.store.types import Run
from core.tagging import TaggedSentence, TextAnswer, WordTag
from dashboard.components.charts import read_asset
from dashboard.components.sentence import Lane, SentenceBlock, lane_kind, marks, sentence_data
from dashboard.tag import views
from dashboard.tag.answers import legend
from dashboard.tag.files import ReadFile, answer_file
from dashboard.tag.seeds import Answer, asked_systems, configurations, merged, repeats_sentence, voted
from dashboard.theme import colours


def run(number: int, state: RunState = RunState.SUCCEEDED, sweep: str | None = "s", **values: Any) -> Run:
    values = {"corpus": "demo", "tasks": ("pos", "ner"), "paradigm": "mtl"} | values
    known: dict[str, Any] = dict.fromkeys(Run.__dataclass_fields__)
    config = RunConfig.build(**values)
    known |= {"id": number, "config": config, "sweep": sweep, "state": state}
    known |= {"configuration_id": config.configuration_id}
    return Run(**(known | {"checkpoint": f"c{number}", "created_at": datetime.now(UTC)}))


def stl(number: int, task: str, **values: Any) -> Run:
    return run(number, paradigm="stl", tasks=(task,), **values)


def test_models_are_named_by_configuration_and_stl_runs_of_a_seed_are_one() -> None:
    def named(*runs: Run) -> list[tuple[str, dict[str, list[int]]]]:
        return [
            (of.who, {seed.who: [member.id for member in seed.runs] for seed in of.seeds})
            for of in configurations(runs)
        ]

    def mrn(number: int, lambda_: float) -> Run:
        values: dict[str, Any] = {"lambda": lambda_}
        return run(number, paradigm="mrn", **values)

    strong, weak = mrn(7, 0.1), mrn(8, 0.01)
    assert named(weak, run(1, seed=2), stl(3, "pos"), stl(4, "ner", sweep="other"), strong) == [
        ("STL", {"seed 1": [3, 4]}),
        ("MTL", {"seed 2": [1]}),
        ("MRN λ=0.1", {"seed 1": [7]}),
        ("MRN λ=0.01", {"seed 1": [8]}),
    ]
    assert list(asked_systems(configurations([run(1), run(2, seed=2), weak]))) == [
        "MTL · seed 1",
        "MTL · seed 2",
        "MRN λ=0.01",
    ]


def test_a_repeated_seed_has_one_vote() -> None:
    def asked(
        runs: Sequence[Run], conditions: Mapping[int, Conditions] | None = None
    ) -> tuple[list[list[int]], str]:
        shown = configurations(runs, conditions)
        ids = [[member.id for member in seed.runs] for of in shown for seed in of.seeds]
        return ids, repeats_sentence(runs, shown)

    ids, said = asked([run(1), run(2, seed=2), run(9, seed=2)])
    assert ids == [[1], [9]]
    assert said.startswith("Left out: run 2. Of each seed the newest run answers")
    assert asked([stl(1, "pos"), stl(2, "pos"), stl(3, "ner")])[0] == [[2, 3]]
    assert asked([run(1), run(2, seed=2)]) == ([[1], [2]], "")
    assert asked([run(1)]) == ([[1]], "")
    # Models that learned another text are no seeds of one configuration.
    texts = {number: Conditions(text) for number, text in ((1, "a"), (2, "b"), (3, "b"))}
    ids, said = asked([run(1), run(2, seed=2), run(3, seed=3)], texts)
    assert ids == [[2], [3]]
    assert "run 1" in said


def answer(*labels: str, task: str = "pos", scheme: str = "plain", who: str = "") -> Answer:
    tags = tuple(WordTag(label, 0.6, ((label, 0.6),)) for label in labels)
    return Answer(who, {task: scheme}, (TaggedSentence(tuple("abcde"[: len(labels)]), {task: tags}),))


def test_words_on_which_answers_differ_are_named_and_many_counted() -> None:
    answers = [answer(*labels, who=who) for who, labels in (("S", "NVX"), ("T", "NXX"), ("R", "VJX"))]
    both = [
        merged(of.who, [of, answer(*labels, task="sem")])
        for of, labels in zip(answers, ("NNN", "NVN", "NNN"), strict=True)
    ]
    twice = [replace(of, sentences=of.sentences * 2) for of in answers]
    four = [answer(*"NNNNN", who="S"), answer(*"NVVVV", who="T")]
    for chosen, sentences, headline in (
        (answers, [0], "All three configurations agree on 1 of 3 words. S, T and R disagree on a and b."),
        (
            twice,
            [0, 1],
            "All three configurations agree on 2 of 6 words. S, T and R disagree on 4 words in pos.",
        ),
        (
            answers[:1] + answers[1:2],
            [0],
            "Both configurations agree on 2 of 3 words. S and T disagree on b.",
        ),
        ([answers[0], answer("N", "V", "X", who="T")], [0], "Both configurations agree on every word."),
        ([voted("MTL", answers)], [0], "All three seeds agree on 1 of 3 words. They disagree on a and b."),
        (both, [0], "All three configurations agree on 1 of 3 words. S, T and R disagree on a (pos) and b."),
        (answers[:1], [0], ""),
        (four, [0], "Both configurations agree on 1 of 5 words. S and T disagree on b, c, d and e."),
        (
            [answer(*"NNNNN", who="S"), answer(*"VVVVV", who="T")],
            [0],
            "Both configurations agree on 0 of 5 words. S and T disagree on 5 words in pos.",
        ),
    ):
        assert views.disagreement(chosen, sentences) == headline


def test_seeds_without_a_majority_are_no_disagreement() -> None:
    """Of a: N, N, J against V, V, N; of b no two seeds of MTL agree."""
    stl = voted("STL", [answer("N", "X", "."), answer("N", "X", "."), answer("J", "X", ".")])
    mtl = voted("MTL", [answer("V", "X", "."), answer("V", "V", "."), answer("N", "J", ".")])
    assert views.disagreement([stl, mtl], [0]) == (
        "Both configurations agree on 1 of 3 words. STL and MTL disagree on a. "
        "In MTL at most half of the seeds agree on b."
    )
    (block,) = views.blocks([Sentence(tuple("abc"), {})], [stl, mtl], {})
    of_stl, of_mtl = (lane for lane in block.lanes if not lane.of)
    assert (of_stl.is_reference, of_mtl.is_reference) == (True, False)
    assert [mark.in_question for mark in of_stl.cells] == [True, True, False]
    assert [mark.text for mark in of_mtl.cells] == ["V", "split", "."]
    assert [mark.differs for mark in of_mtl.cells] == [True, False, False]
    (block,) = views.blocks([Sentence(tuple("abc"), {})], [mtl, mtl], {})
    assert block.about == (
        "Both configurations agree on 2 of 3 words. "
        "In both configurations at most half of the seeds agree on b."
    )
    stl = voted("STL", [answer("N", "V", "."), answer("N", "X", "."), answer("N", "J", "V")])
    last = voted("MTL", [answer("N", "V", "."), answer("N", "X", "X"), answer("N", "J", "V")])
    assert views.disagreement([stl, last], [0]) == (
        "Both configurations agree on 1 of 3 words. In STL or MTL at most half of the seeds agree on b and c."
    )


def test_a_split_word_is_a_mistake_in_the_lane_and_in_the_score() -> None:
    """Its score was that of the first seed's label, which happened to be right."""
    mtl = voted("MTL", [answer("N", "V"), answer("N", "X")])
    given = Sentence(tuple("ab"), {"pos": ("N", "V")})
    (row,) = views.marked([mtl], [given])
    assert (row.score.score, row.kinds) == (0.5, {"wrong label": 1})
    (block,) = views.blocks([given], [mtl], {})
    of_mtl = next(lane for lane in block.lanes if lane.who == "MTL")
    assert [(mark.text, mark.tied, mark.differs) for mark in of_mtl.cells] == [
        ("N", False, False),
        ("split", True, True),
    ]


def test_the_configurations_whose_seeds_have_no_majority_are_named() -> None:
    halves = [answer("N", "V"), answer("N", "X")]
    agreed = [answer("N", "V")] * 2
    names = ("A", "B", "C", "D")
    for split, systems in (
        ("A", "A"),
        ("AB", "A and B"),
        ("ABC", "three configurations"),
        ("ABCD", "all four configurations"),
    ):
        chosen = [voted(who, halves if who in split else agreed) for who in names]
        assert views.disagreement(chosen, [0]) == (
            "All four configurations agree on 1 of 2 words. "
            f"In {systems} at most half of the seeds agree on b."
        )


def test_the_page_says_what_it_waits_for() -> None:
    assert views.waiting_sentence(0, 20, ["minilm+bilstm"] * 20, 0) == (
        "Loading minilm+bilstm: 0 of 20 models have answered. Answers appear here by themselves."
    )
    assert views.waiting_sentence(1, 3, ["minilm", "bilstm"], 1) == (
        "Loading bilstm and minilm: 1 of 3 models have answered. "
        "One run trains on the same machine meanwhile. Answers appear here by themselves."
    )


def test_labels_of_a_known_tag_set_have_their_meanings() -> None:
    def meanings(scheme: str, *labels: str) -> dict[str, dict[str, str]]:
        lane = Lane("task", "", lane_kind(scheme), marks(labels, scheme))
        meanings: dict[str, dict[str, str]] = sentence_data([SentenceBlock(labels, (lane,))])["meanings"]
        return meanings

    assert meanings("plain", "JJ", "NN", "?") == {"task": {"JJ": "adjective", "NN": "noun, singular or mass"}}
    assert meanings("iob2", "B-ORG", "I-ORG", "O") == {
        "task": {"B-ORG": "organisation, first word", "I-ORG": "organisation, later word", "O": "no span"}
    }
    assert meanings("plain", "S-NP", "E-VP")["task"] == {
        "S-NP": "noun phrase, only word",
        "E-VP": "verb phrase, last word",
        "O": "no span",
    }
    assert meanings("plain", "X", "Y") == {}


def test_a_configuration_answers_what_most_of_its_seeds_do() -> None:
    seeds = [answer("N", "V"), answer("N", "X"), answer("J", "X")]
    assert [tag[:2] for tag in voted("MTL", seeds).sentences[0].tags["pos"]] == [("N", 2 / 3), ("X", 2 / 3)]
    columns = [
        ("B-PER", "I-PER", "O", "B-LOC", "O"),
        ("B-PER", "I-PER", "O", "B-ORG", "O"),
        ("O", "B-PER", "O", "O", "B-LOC"),
        ("B-PER", "I-PER", "O", "O", "O"),
    ]
    spans = [answer(*labels, task="ner", scheme="iob2") for labels in columns]
    (block,) = views.blocks([Sentence(tuple("abcde"), {})], [voted("MTL", spans)], {})
    lane, *of_seeds = block.lanes
    assert (lane.seeds, [seed.of for seed in of_seeds]) == (4, ["MTL"] * 4)
    assert [mark.title for mark in lane.cells] == ["B-PER", "I-PER", "O", "O", "O"]
    assert [(mark.text, mark.agreed, mark.few) for mark in lane.cells if mark.inside] == [
        ("PER", 3, False),
        ("PER", 3, False),
        ("LOC", 1, True),
        ("LOC", 1, True),
    ]
    assert lane.cells[3].votes == (("O", 2), ("B-LOC", 1), ("B-ORG", 1))
    assert of_seeds[2].cells[1].differs  # from the lane of its configuration


def test_why_runs_cannot_tag() -> None:
    scores = [replace(run(number), checkpoint=None) for number in (1, 2, 3)]
    queued, lost = run(4, RunState.QUEUED), run(6, RunState.LOST)
    assert views.without_model([*reversed(scores), queued, run(5), lost]) == [
        "No checkpoint in this store (3 runs: 1 to 3). Train again, or import an export, to tag.",
        "Not finished yet (run 4). A run can tag once it has succeeded.",
        "Ended without a model (run 6). A run's page says what to do.",
    ]
    assert "(294 runs)" in views.without_model(scores[:1] * 294)[0]


def test_the_confidence_of_a_crf_is_explained() -> None:
    plain = run(1).config
    assert views.about_confidence([plain]) == ""
    assert "marginal" in views.about_confidence([plain, plain.with_(head="crf_legal")])


SENTENCES = [Sentence(("a", "b"), {"ner": ("B-X", "O")}), Sentence(("c",), {"pos": ("N",)})]


def test_sentences_that_were_wrong() -> None:
    stored = {"ner": ([["B-X", "O"]], [["O", "B-X"]]), "pos": ([["N"]], [["N"]])}
    first, second = views.checked(SENTENCES, stored, {"ner": "iob2", "pos": "plain"})
    assert first.wrong == {"ner": 2}
    assert second.wrong == {}


def test_a_corpus_that_has_changed_is_one_sentence() -> None:
    for gold in ([["B-X", "O"]] * 2, [["B-X"]]):
        with pytest.raises(CorpusError, match="changed since"):
            views.checked(SENTENCES, {"ner": (gold, gold)}, {"ner": "iob2"})


def test_mistakes_against_gold_labels_are_marked_and_counted_by_kind() -> None:
    gold = Sentence(tuple("abcde"), {"pos": tuple("JNNN."), "ner": ("B-MISC", "O", "B-ORG", "O", "O")})
    said = {"pos": tuple("JNVN."), "ner": ("B-MISC", "I-MISC", "O", "B-ORG", "O")}
    tags = {
        task: tuple(WordTag(label, 0.6, ((label, 0.6),)) for label in labels) for task, labels in said.items()
    }
    answers = [Answer("MTL", {"pos": "plain", "ner": "iob2"}, (TaggedSentence(gold.tokens, tags),))]
    (block,) = views.blocks([gold], answers, colours(["pos", "ner"]))
    _, pos, true, guess = block.lanes
    assert (true.who, [mark.text for mark in true.cells]) == ("gold", ["MISC", "", "ORG", "", ""])
    assert [mark.note for mark in guess.cells] == ["boundary", "boundary", "missed", "invented", ""]
    assert guess.cells[2].ghost
    assert guess.cells[3].why == "Invented; gold: O"
    assert [place for place in range(5) if pos.cells[place].differs] == [2]
    rows = views.marked(answers, [gold])
    assert views.mistakes_in_words(rows) == "4 mistakes."
    assert views.mistakes_in_words([*rows, views.Marked(rows[0].score, "STL", {})]) == (
        "MTL makes 4 mistakes and STL none."
    )
    assert views.mistakes_in_words([]) == ""
    kinds = [views.kinds_in_words(row.kinds or {}) for row in rows]
    assert kinds == ["1 wrong label", "1 wrong boundary, 1 missed and 1 invented"]
    assert views.kinds_in_words({}) == "all right"
    assert (
        views.kinds_in_words({"wrong label": 2, "wrong boundary": 3})
        == "2 wrong labels and 3 wrong boundaries"
    )


def test_the_legend_names_the_marks_that_are_drawn() -> None:
    def outlined(*, has_gold: bool, is_partial: bool, first: str) -> str:
        marks = legend(
            has_gold=has_gold, is_partial=is_partial, has_seeds=False, first=first, has_spans=False
        )
        return dict(marks).get("outline", "")

    assert outlined(has_gold=False, is_partial=True, first="") == ""
    assert outlined(has_gold=False, is_partial=True, first="STL") == "differs from STL"
    assert outlined(has_gold=True, is_partial=False, first="STL") == "an error against the gold labels"
    assert outlined(has_gold=True, is_partial=True, first="STL") == (
        "an error against the gold labels, without gold differs from STL"
    )
    of_seeds = legend(has_gold=False, is_partial=True, has_seeds=True, first="", has_spans=True)
    assert dict(of_seeds) == {
        "thick": "all seeds agree",
        "thin": "fewer seeds agree",
        "few": "at most half of the seeds: the most frequent label",
        "split": "no label leads",
        "hollow": "a span of at most half of the seeds",
    }
    drawn = re.findall(r"^  (\w+): \(\) =>", read_asset("sentence.js"), re.MULTILINE)
    everything = legend(
        has_gold=True, is_partial=True, has_seeds=True, first="STL", has_spans=True, has_reference=True,
        in_question=True,
    )  # fmt: skip
    assert drawn == [mark for mark, _ in everything]


def test_the_legend_leaves_out_what_no_lane_has() -> None:
    def undrawn(*columns: str) -> set[str]:
        (block,) = views.blocks(
            [Sentence(("a",), {"pos": ("N",)})], [voted("MTL", [answer(column) for column in columns])], {}
        )
        return views.undrawn(block.lanes)

    every = {"few", "split", "hollow", "outline", "dashed"}
    assert undrawn("N", "N", "N") == every
    assert undrawn("N", "V", "X") == every - {"split", "outline"}
    assert undrawn("N", "N", "V", "X") == every - {"few", "outline"}


def test_configurations_without_a_majority_may_lean_to_other_labels() -> None:
    stl = voted("STL", [answer("N", "X"), answer("N", "V"), answer("V", "W"), answer("X", "U")])
    mtl = voted("MTL", [answer("J", "X"), answer("J", "V"), answer("V", "W"), answer("X", "U")])
    assert views.leanings([stl, mtl]) == "Their most frequent labels differ: a (pos) N in STL, J in MTL."
    assert views.leanings([stl, replace(stl, who="MTL")]) == ""
    assert (
        views.leanings([answer("N", who="S"), answer("J", who="T")]) == ""
    )  # they differ: the headline says


class Capitals:
    """Tags words in capitals as X."""

    schemes: Mapping[str, str] = {"case": "plain"}
    labels: Mapping[str, Sequence[str]] = {"case": ("X", "y")}
    scales: Mapping[str, tuple[float, float]] = {}
    notes: Sequence[str] = ()

    def tag(self, sentences: Sequence[Sequence[str]], top: int = 3) -> list[TaggedSentence]:
        answers = []
        for words in sentences:
            labels = ["X" if word.isupper() else "y" for word in words]
            tags = tuple(WordTag(label, 0.5, ((label, 0.5),)[:top]) for label in labels)
            answers.append(TaggedSentence(tuple(words), {"case": tags}))
        return answers

    def answer(self, texts: Sequence[tuple[str, str | None]], top: int = 10) -> list[dict[str, TextAnswer]]:
        return [{} for _ in texts]


def test_every_sentence_of_a_file_is_tagged_and_scored() -> None:
    sentences = tuple(Sentence(("EU", "calls"), {"case": ("X", "X")}) for _ in range(600))
    done: list[int] = []
    taggers: Any = [Capitals()]
    tagged = answer_file(ReadFile("a.txt", sentences, ("case",)), taggers, "accuracy", done.append)
    assert len(done) == 3
    assert done[-1] == 600
    (columns, text), (columns_sure, text_sure) = tagged.written
    assert text.splitlines()[:3] == ["EU\tX\tX", "calls\tX\ty", ""]
    assert text_sure.splitlines()[0] == "EU\tX\tX\t0.5000"
    assert columns == ("tokens", "case_gold", "case")
    assert columns_sure == ("tokens", "case_gold", "case", "case_confidence")
    (score,) = tagged.scores
    assert (score.score, score.tokens) == (0.5, 1200)
