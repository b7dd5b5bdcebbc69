"""The Tag page over runs that were really trained, on words, texts and pairs."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.types import Sentence, whole_text
from core.store import RunState, Store
from core.tasks.answers import TextAnswer
from dashboard.tag import models
from dashboard.tag.seeds import Answer, voted
from dashboard.tag.texts import task_answers, text_disagreement
from dashboard.tag.views import ALL_SENTENCES, ANY_TASK, checked, matching
from tests.making import OWNER, claimed
from tests.pages.conftest import Open, labels, press, sent, table, words
from tests.patience import PATIENCE_S
from tests.trained import copy_intent_taggers, copy_taggers, copy_text_taggers, toy_config

SENTENCE = "German lamb rejects EU ."


@pytest.fixture
def trained(shared_folder: Path, laboratory: Path, patient: None) -> Path:
    """This test's laboratory with the runs of `copy_taggers`."""
    copy_taggers(shared_folder, laboratory)
    return laboratory


def drawn(app: AppTest) -> list[dict[str, Any]]:
    """The sentences on the page."""
    blocks: list[dict[str, Any]] = sent(app, "blocks")["blocks"]
    return blocks


def lanes(block: dict[str, Any], task: str) -> list[dict[str, Any]]:
    return [lane for lane in block["lanes"] if lane["task"] == task]


def texts(lane: dict[str, Any]) -> list[str]:
    return [cell.get("text", "") for cell in lane["cells"]]


def test_a_link_tags_its_text(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="1", text=f"{SENTENCE[:-2]}. Mr. EU can't call.")
    first, second = drawn(app)
    assert first["tokens"] == SENTENCE.split()
    assert second["tokens"] == ["Mr.", "EU", "ca", "n't", "call", "."]
    (pos,), (ner,) = lanes(first, "pos"), lanes(first, "ner")
    assert texts(pos) == ["J", "N", "V", "N", "."]
    assert [bool(cell.get("inside")) for cell in ner["cells"]] == [True, True, False, True, False]
    assert texts(ner)[0] == texts(ner)[1] == "MISC"
    label, share = pos["cells"][0]["shares"][0]
    assert label == "J"
    assert 0.5 < share <= 1
    assert len(pos["cells"][0]["shares"]) == 5
    assert "2 sentences, 11 words" in words(app)


def test_typing_and_splitting(open_page: Open, trained: Path) -> None:
    assert "One sentence a line" in words(open_page("tag", run="1", input="File"))
    app = open_page("tag", run="1")
    assert "Enter a sentence" in words(app)
    (sample, *_) = [button for button in app.button if button.label.startswith("German lamb")]
    sample.click().run()
    assert " ".join(drawn(app)[0]["tokens"]) == sample.label.replace("\\", "")
    app.text_area(key="tag_text").set_value("EU's lamb.").run()
    assert drawn(app)[0]["tokens"] == ["EU", "'s", "lamb", "."]
    assert "EU's lamb." in app.query_params["text"]
    app.toggle(key="tag_split").set_value(True).run()
    assert drawn(app)[0]["tokens"] == ["EU's", "lamb."]
    assert "yes" in app.query_params["split"]
    app.text_area(key="tag_text").set_value("EU rejects lamb. " * 201).run()
    assert sum(len(block["tokens"]) for block in drawn(app)) == 600
    assert "3 more words" in words(app)


def test_runs_that_differ_are_outlined_and_counted(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="1,2", text=SENTENCE)
    (block,) = drawn(app)
    first, second = lanes(block, "pos")
    assert first["who"].startswith("MTL · 9 epochs")
    assert second["who"].startswith("MTL · 1 epoch")
    differing = [place for place in range(5) if texts(first)[place] != texts(second)[place]]
    assert differing
    assert [place for place in range(5) if second["cells"][place].get("differs")] == differing
    assert not any(cell.get("differs") for cell in first["cells"])
    assert second["cells"][differing[0]]["why"] == f"{first['who']}: {texts(first)[differing[0]]}"
    # Said once, above the sentence; the legend names what the lanes are compared with.
    answer = next(
        line.value for line in app.markdown if line.value.startswith("Both configurations agree on")
    )
    assert len(differing) > 4 or all(block["tokens"][place] in answer for place in differing)
    assert block["about"] == ""
    assert dict(sent(app, "blocks")["marks"])["outline"].startswith("differs from MTL · 9 epochs")
    assert not sent(app, "blocks")["confidence"]
    app.toggle(key="confidence").set_value(True).run()
    assert sent(app, "blocks")["confidence"]


def test_a_mistake_in_a_file_is_one_sentence_and_its_columns_can_be_named(
    open_page: Open, trained: Path
) -> None:
    app = open_page("tag", run="1", input="File")

    def upload(content: bytes) -> None:
        app.file_uploader(key="tag_file").upload("news.conll", content, "text/plain").run()

    upload(b"German J B-MISC\nlamb N\n")
    (warning,) = app.warning
    assert "news.conll, line 2: expected 3 columns" in warning.value.replace("\\", "")
    upload(b"German JJ X X\nlamb NN X X\n")
    assert "Read as columns: 1 word, 2 pos, 3 skipped, 4 skipped." in words(app).replace("\\", "")
    (columns,) = [field for field in app.text_input if field.label.startswith("Columns")]
    columns.set_value("tokens, _, _, _").run()
    assert "no gold labels" in words(app)
    columns.set_value("tokens, pos, _, _").run()
    assert "gold labels of pos" in words(app)


def test_a_test_sentence_that_was_wrong(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="2,1", input="Test sentences")
    (block,) = drawn(app)
    first = block["tokens"]
    guess = lanes(block, "pos")[-1]["cells"] + lanes(block, "ner")[-1]["cells"]
    assert any(cell.get("differs") for cell in guess)
    app.number_input(key="sentence").set_value(2).run()
    assert drawn(app)[0]["tokens"] != first
    # The run that has learned everything got none wrong.
    app = open_page("tag", run="1", input="Test sentences")
    assert "no such sentence" in words(app)
    app.selectbox(key="wrong").set_value("all sentences").run()
    assert drawn(app)[0]["tokens"][:2] == ["German", "lamb"]


@pytest.fixture
def seeds(trained: Path) -> Iterator[Store]:
    """The store with three seeds of STL, MTL and MRN, with the models of `copy_taggers`.

    Seed 2 of MTL (run 5) has learned nothing, and its checkpoint is no other run's.
    """
    with contextlib.closing(Store.open()) as store:

        def seed(model: int, number: int, checkpoint: Path | None = None, **values: str) -> None:
            (run_id,) = store.add_runs([store.run(model).config.with_(seed=number, **values)])
            store.claim(OWNER)
            store.finish(
                run_id, RunState.SUCCEEDED, checkpoint=str(checkpoint or store.run(model).checkpoint)
            )

        copied = trained / "checkpoints" / "copied"
        shutil.copytree(str(store.run(2).checkpoint), copied)
        seed(1, 2, copied)
        seed(1, 3)
        for number in (1, 2, 3):
            seed(1, number, paradigm="mrn")
        for model in (3, 4):
            for number in (2, 3):
                seed(model, number)
        yield store


def test_each_configuration_has_a_lane_with_the_agreement_of_its_seeds(open_page: Open, seeds: Store) -> None:
    """Nine systems of three paradigms: no paradigm is left out."""
    app = open_page("tag", run=",".join(str(run.id) for run in seeds.runs() if run.id != 2), text=SENTENCE)
    assert len(app.multiselect(key="tag_runs").value) == 3
    of_task = lanes(drawn(app)[0], "pos")
    shown = [lane for lane in of_task if not lane["of"]]
    assert [lane["who"][:3] for lane in shown] == ["STL", "MTL", "MRN"]
    assert [lane["seeds"] for lane in shown] == [3, 3, 3]
    assert [lane["who"] for lane in of_task if lane["of"] == shown[1]["who"]] == [
        "seed 1",
        "seed 2",
        "seed 3",
    ]
    assert {cell["agreed"] for cell in shown[1]["cells"]} == {2, 3}
    assert texts(shown[1]) == ["J", "N", "V", "N", "."]  # two of three have learned them
    assert {cell["agreed"] for cell in shown[2]["cells"]} == {3}


def test_a_lane_fills_as_its_models_come(
    open_page: Open, seeds: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, load = threading.Event(), models._load

    def slow(checkpoint: str) -> Any:
        if checkpoint == str(seeds.run(5).checkpoint):
            held.wait(PATIENCE_S)
        return load(checkpoint)

    monkeypatch.setattr(models, "_load", slow)
    monkeypatch.setattr(models, "_PATIENCE_S", 0.1)
    app = open_page("tag", run="5,1", text=SENTENCE)
    assert "of 2 models" in words(app)
    held.set()
    wait(app.session_state["tag_asked"])
    (lane,) = [lane for lane in lanes(drawn(app.run())[0], "pos") if not lane["of"]]
    assert lane["seeds"] == 2
    assert "of 2 models" not in words(app)


def test_of_more_models_than_fit_the_first_stay_loaded(
    open_page: Open, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked in turn, only the others are loaded again, and the page says so."""
    with contextlib.closing(Store.open()) as store:
        checkpoints = [str(store.run(run_id).checkpoint) for run_id in (1, 2)]
    loaded, load = list[str](), models._load

    def noted(checkpoint: str) -> Any:
        loaded.append(checkpoint)
        return load(checkpoint)

    monkeypatch.setattr(models, "_load", noted)
    pool = models.Models()
    for room, kept, times in ((1e9, 2, [1, 1]), (1.5 * models._version(checkpoints[0])[2], 1, [1, 4])):
        monkeypatch.setattr(models, "MOST_BYTES", room)
        assert pool.prepare(checkpoints) == kept
        for checkpoint in 3 * checkpoints:
            pool.load(checkpoint).result()
        assert [loaded.count(checkpoint) for checkpoint in checkpoints] == times
    assert "1 of 2 models" in words(open_page("tag", run="1,2", text=SENTENCE))


@pytest.mark.parametrize("is_finished", [True, False])
def test_runs_without_a_model_say_what_to_do(open_page: Open, laboratory: Path, is_finished: bool) -> None:
    with contextlib.closing(Store.open()) as store:
        run_id = claimed(store)
        if is_finished:  # as in a store that was copied without its checkpoints
            store.finish(run_id, RunState.SUCCEEDED)
    app = open_page("tag")
    assert f"(run {run_id})" in words(app)
    assert "Try it" not in [button.label for button in app.button]
    assert "Runs" in labels(app, "page_link")


def test_damaged_missing_and_unfinished(open_page: Open, trained: Path) -> None:
    store = Store.open()
    running = claimed(store)
    weights = Path(str(store.run(2).checkpoint)) / "weights.safetensors"
    damaged = trained / "checkpoints" / "damaged"
    shutil.copytree(weights.parent, damaged)
    (damaged / "weights.safetensors").write_bytes(b"no weights")
    (broken,) = store.add_runs([toy_config(trained)])
    store.claim(OWNER)
    store.finish(broken, RunState.SUCCEEDED, checkpoint=str(damaged))
    app = open_page("tag", run=f"1,{running},{broken}", text=SENTENCE)
    assert f"(run {running})" in words(app)
    (warning,) = app.warning
    assert f"Run {broken}: The checkpoint damaged is damaged" in warning.value.replace("\\", "")
    assert len(lanes(drawn(app)[0], "pos")) == 1  # the run that can be asked still answers


def test_the_address_says_what_is_shown(open_page: Open, trained: Path) -> None:
    app = open_page("tag", run="1", text=SENTENCE, input="Test sentences")
    assert "text" not in app.query_params
    app.button_group(key="input").set_value("Text").run()
    assert app.text_area(key="tag_text").value == SENTENCE
    app.text_area(key="tag_text").set_value("EU " * 3000).run()
    assert "too long for a link" in words(app)
    assert "text" not in app.query_params


# Tasks on whole texts and on pairs


@pytest.fixture
def text_taggers(shared_folder: Path, laboratory: Path, patient: None) -> Path:
    """This test's laboratory with the runs of `copy_text_taggers`."""
    copy_text_taggers(shared_folder, laboratory)
    return laboratory


def answered(app: AppTest) -> dict[str, Any]:
    return dict(sent(app, "tasks"))


def of_task(app: AppTest, task: str) -> dict[str, Any]:
    (answer,) = [answer for answer in answered(app)["tasks"] if answer["task"] == task]
    return dict(answer)


def test_a_link_asks_a_text_and_a_pair(open_page: Open, text_taggers: Path) -> None:
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


def test_what_is_asked_for_is_what_the_runs_read(open_page: Open, text_taggers: Path) -> None:
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


def test_runs_beside_each_other(open_page: Open, text_taggers: Path) -> None:
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


def test_test_texts_show_gold(open_page: Open, text_taggers: Path) -> None:
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


def test_a_file_of_pairs(open_page: Open, text_taggers: Path) -> None:
    app = open_page("tag", run="3", input="File")
    content = "text1\ttext2\talike\tid\nEU lamb\tlamb EU\t5\t1\ncall\tto\t0\t2\nEU\t.\t\t3\n"
    app.file_uploader(key="tag_file").upload("pairs.tsv", content.encode(), "text/tab-separated-values").run()
    assert "3 rows, 8 words; gold labels of alike; left out: id." in words(app)
    press(app, "Answer the file")
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
    press(app, "Tag the file")
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


def answer_to(answers: Sequence[Answer], text: Sentence) -> Any:
    (task,) = task_answers(text, lambda of: of.texts[0], answers, {})
    return task


def test_what_differs_and_how_far_numbers_lie_apart() -> None:
    plain, gold = whole_text("x"), Sentence(("x",), {"mood": ("b",)}, whole=True)
    assert [of_run.differs for of_run in answer_to(asked("a", "b", "a"), plain).said] == [False, True, False]
    assert [of_run.differs for of_run in answer_to(asked("a", "b"), gold).said] == [True, False]
    for values, sentence in (
        (("a", "b"), "The configurations disagree on mood."),
        (("a", "a"), "The configurations agree."),
        ((1.5, 2.25), "The configurations differ by 0.75 on mood."),
        (("a",), ""),
    ):
        answers = asked(*values)
        assert text_disagreement(lambda of: of.texts[0], answers, answers[0].schemes) == sentence
    number = answer_to(asked(3.0), Sentence(("x",), {"mood": ("4.5",)}, whole=True, second=("y",)))
    assert (number.said[0].why, number.gold_place) == ("1.50 too low", 0.9)


def test_seeds_of_a_configuration_are_one_answer_with_their_agreement() -> None:
    plain = whole_text("x")
    labels, numbers = voted("MTL", asked("a", "b", "b")), voted("MTL", asked(1.0, 2.0))
    (of_labels,) = answer_to([labels], plain).said
    assert (of_labels.text, of_labels.seeds) == ("b", "2 of 3 seeds")
    (of_numbers,) = answer_to([numbers], plain).said
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
