"""Tag with tasks on whole texts and on pairs, over runs that were really trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.types import Sentence, whole_text
from core.records import TextAnswer
from dashboard.tag.seeds import Answer, voted
from dashboard.tag.texts import task_answers, text_disagreement
from dashboard.tag.views import ALL_SENTENCES, ANY_TASK, checked, matching
from tests.pages.conftest import Open, sent, table, words
from tests.trained import copy_intent_taggers, copy_text_taggers


@pytest.fixture
def trained(shared_folder: Path, laboratory: Path, patient: None) -> Path:
    """This test's laboratory with the runs of `copy_text_taggers`."""
    copy_text_taggers(shared_folder, laboratory)
    return laboratory


def answered(app: AppTest) -> dict[str, Any]:
    return dict(sent(app, "tasks"))


def of_task(app: AppTest, task: str) -> dict[str, Any]:
    (answer,) = [answer for answer in answered(app)["tasks"] if answer["task"] == task]
    return dict(answer)


def test_a_link_asks_a_text_and_a_pair(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="1", text="EU rejects German lamb", second="EU rejects")
    assert sent(app, "blocks")["blocks"][0]["tokens"] == ["EU", "rejects", "German", "lamb"]
    mood, same, alike = (of_task(app, task) for task in ("mood", "same", "alike"))
    assert (mood["of"], same["of"]) == ("of the first text", "of the pair")
    assert mood["labels"] == ["bad", "good"]
    (of_run,) = mood["said"]
    assert of_run["shares"].keys() == {"bad", "good"}
    assert of_run["text"] == max(of_run["shares"], key=of_run["shares"].__getitem__)
    assert alike["ends"] == ["0", "5"]
    assert float(alike["said"][0]["text"]) == pytest.approx(5 * alike["said"][0]["place"], abs=0.01)
    assert answered(app)["texts"] == []  # they stand in the fields
    app.text_area(key="tag_second").set_value("").run()
    assert [task["task"] for task in answered(app)["tasks"]] == ["mood"]
    assert "same and alike" in words(app)
    assert "second" not in app.query_params
    app.text_area(key="tag_text").set_value("EU " * 40).run()
    assert "max_length 32" in words(app).replace("\\", "")


def test_what_is_asked_for_is_what_the_runs_read(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="4")
    assert [field.key for field in app.text_area] == ["tag_text"]
    assert app.button_group(key="input").options == ["Text", "Test sentences", "File"]
    assert not app.toggle
    app = open_page("tag", run="3")
    assert [field.key for field in app.text_area] == ["tag_text", "tag_second"]
    assert "Enter two texts" in words(app)
    app.button(key="sample_0").click().run()
    assert app.text_area(key="tag_second").value
    assert {task["task"] for task in answered(app)["tasks"]} == {"same", "alike"}


def test_runs_beside_each_other(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="1,2,4", text="EU rejects")
    assert len(answered(app)["columns"]) == 3
    mood = of_task(app, "mood")
    assert len(mood["said"]) == 3
    first = mood["said"][0]["text"]
    for of_run in mood["said"]:
        assert of_run["differs"] == (of_run["text"] != first)
    agree = len({of_run["text"] for of_run in mood["said"]}) == 1
    assert ("disagree" in answered(app)["about"]) != agree
    app = open_page("tag", run="1,4", text="EU", second="lamb")
    assert of_task(app, "alike")["said"].count(None) == 1


def test_test_texts_show_gold(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="2", input="Test sentences", wrong="mood")
    mood = of_task(app, "mood")
    assert mood["gold"] in ("good", "bad")
    assert mood["said"][0]["differs"]
    assert mood["said"][0]["why"] == "wrong"
    assert len(answered(app)["texts"]) == 1
    app.selectbox(key="wrong").set_value("alike").run()
    assert "Text, 1 to 12" in [field.label for field in app.number_input]
    assert len(answered(app)["texts"]) == 2
    assert [task["task"] for task in answered(app)["tasks"]] == ["same", "alike"]

    def off() -> float:
        alike = of_task(app, "alike")
        return abs(float(alike["gold"]) - float(alike["said"][0]["text"]))

    furthest = off()
    app.number_input(key="sentence").set_value(12).run()
    assert off() <= furthest
    app = open_page("tag", run="1", input="Test sentences", wrong="ner")
    assert "no such sentence" in words(app)  # it has learned them


def test_a_file_of_pairs(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="3", input="File")
    content = "text1\ttext2\talike\tid\nEU lamb\tlamb EU\t5\t1\ncall\tto\t0\t2\nEU\t.\t\t3\n"
    app.file_uploader(key="tag_file").upload("pairs.tsv", content.encode(), "text/tab-separated-values").run()
    assert "3 rows, 8 words; gold labels of alike; left out: id." in words(app)
    (answer,) = [button for button in app.button if button.label == "Answer the file"]
    answer.click().run()
    frame = table(app, "alike")
    assert list(frame.columns) == ["text1", "text2", "same", "alike_gold", "alike"]
    assert list(frame["alike_gold"]) == ["5", "0", ""]
    scores = table(app, "Spearman")
    assert list(scores["Over"]) == ["2 pairs"]
    app.toggle(key="tag_file_sure").set_value(True).run()
    assert "same_confidence" in table(app, "alike").columns
    app.file_uploader(key="tag_file").upload("bad.tsv", b"text\tid\nEU\t1\n", "text/plain").run()
    assert [warning.value for warning in app.warning]


@pytest.fixture
def intents(shared_folder: Path, laboratory: Path, patient: None) -> Path:
    """This test's laboratory with the runs of `copy_intent_taggers`."""
    copy_intent_taggers(shared_folder, laboratory)
    return laboratory


def test_a_sentence_has_tags_and_an_answer(open_page: Open, intents: Path) -> None:
    app = open_page("tag", run="1,2", text="EU rejects lamb .")
    assert [lane["task"] for lane in sent(app, "blocks")["blocks"][0]["lanes"]] == ["pos"]
    intent = of_task(app, "intent")
    assert (intent["of"], intent["labels"]) == ("of the sentence", ["ask", "say"])
    assert [said["text"] for said in intent["said"]] == ["ask", "ask"]
    several = open_page("tag", run="1", text="EU rejects lamb . British lamb .")
    assert table(several, "Sentence")["intent"].tolist() == ["ask", "say"]
    alone = open_page("tag", run="2", text="British lamb .")
    assert [said["text"] for said in of_task(alone, "intent")["said"]] == ["say"]


def test_test_sentences_show_the_gold_label_of_the_whole(open_page: Open, intents: Path) -> None:
    app = open_page("tag", run="1", input="Test sentences", wrong=ALL_SENTENCES)
    intent = of_task(app, "intent")
    assert intent["gold"] in ("ask", "say")
    scores = table(app, "Mistakes")
    assert scores["Task"].tolist() == ["pos", "intent"]
    assert scores["Over"].tolist()[1] == "1 sentence"


def test_a_file_of_sentences_with_intents(open_page: Open, intents: Path) -> None:
    app = open_page("tag", run="1", input="File")
    content = b"# intent: ask\nEU N\nrejects V\n\n# intent: ask\nBritish J\nlamb N\n"
    app.file_uploader(key="tag_file").upload("mine.conll", content, "text/plain").run()
    (tag,) = [button for button in app.button if button.label == "Tag the file"]
    tag.click().run()
    scores = table(app, "Measure")
    assert dict(zip(scores["Task"], scores["Over"], strict=True)) == {
        "pos": "4 words",
        "intent": "2 sentences",
    }
    assert dict(zip(scores["Task"], scores["Score"], strict=True))["intent"] == "50.00"


def asked(*values: str | float, task: str = "mood", labels: Sequence[str] = ("a", "b")) -> list[Answer]:
    """Runs that answer one text with these."""
    return [
        Answer(
            f"run {place}",
            {task: "score" if isinstance(value, float) else "text"},
            (),
            {task: labels},
            scales={task: (0.0, 5.0)},
            texts=({task: TextAnswer(value, () if isinstance(value, float) else ((value, 0.6),))},),
        )
        for place, value in enumerate(values)
    ]


def drawn(answers: Sequence[Answer], text: Sentence) -> Any:
    (task,) = task_answers(text, lambda of: of.texts[0], answers, {})
    return task


def test_what_differs_and_how_far_numbers_lie_apart() -> None:
    plain, gold = whole_text("x"), Sentence(("x",), {"mood": ("b",)}, whole=True)
    assert [of_run.differs for of_run in drawn(asked("a", "b", "a"), plain).said] == [False, True, False]
    assert [of_run.differs for of_run in drawn(asked("a", "b"), gold).said] == [True, False]
    for values, sentence in (
        (("a", "b"), "The configurations disagree on mood."),
        (("a", "a"), "The configurations agree."),
        ((1.5, 2.25), "The configurations are 0.75 apart on mood."),
        (("a",), ""),
    ):
        answers = asked(*values)
        assert text_disagreement(lambda of: of.texts[0], answers, answers[0].schemes) == sentence
    number = drawn(asked(3.0), Sentence(("x",), {"mood": ("4.5",)}, whole=True, second=("y",)))
    assert (number.said[0].why, number.gold_place) == ("1.50 too low", 0.9)


def test_seeds_of_a_configuration_are_one_answer_with_their_agreement() -> None:
    plain = whole_text("x")
    labels, numbers = voted("MTL", asked("a", "b", "b")), voted("MTL", asked(1.0, 2.0))
    (of_labels,) = drawn([labels], plain).said
    assert (of_labels.text, of_labels.seeds) == ("b", "2 of 3 seeds")
    (of_numbers,) = drawn([numbers], plain).said
    assert (of_numbers.text, of_numbers.place, of_numbers.seeds) == ("1.50 ± 0.71", 0.3, "2 seeds")
    assert (
        text_disagreement(lambda of: of.texts[0], [labels], labels.schemes) == "The seeds disagree on mood."
    )


def test_of_many_labels_the_likeliest_are_drawn() -> None:
    labels = [f"l{number}" for number in range(30)]
    shares = tuple((label, (30 - number) / 465) for number, label in enumerate(labels))
    task = task_answers(
        whole_text("x"), lambda _: {"mood": TextAnswer("l0", shares)}, asked("l0", labels=labels), {}
    )[0]
    assert (list(task.labels), task.more) == (labels[:8], 22)


def test_numbers_are_never_wrong_but_off() -> None:
    pairs = [Sentence(("a",), {"alike": (gold,)}, whole=True, second=("b",)) for gold in ("1", "2", "3")]
    stored = {"alike": ([["1"], ["2"], ["3"]], [["1.5"], ["4"], ["3"]])}
    tested = checked(pairs, stored, {"alike": "score"})
    assert matching(tested, "alike") == [pairs[1], pairs[0], pairs[2]]
    assert matching(tested, ANY_TASK) == []
    assert not pd.isna(tested[0].off["alike"])
