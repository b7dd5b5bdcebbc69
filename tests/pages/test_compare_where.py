"""Where on Compare: the planted bucket, what is copied, when it is computed, and what cannot be answered."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from core.config import OTHER, RunConfig
from core.registry import UNKNOWN_ENCODER
from core.results.stored import stored_results
from core.results.where import where as taken_apart
from core.results.where import where_of
from core.store import Store
from core.tasks.span_errors import ERROR_KINDS, SCHEMES
from dashboard.compare import where
from jobs.cli import app as command_line
from tests.making import corpus_folder
from tests.pages.conftest import (
    Open,
    figures,
    labels,
    problems,
    sheets,
    words,
)
from tests.where_store import fill

DEMO = {"corpus": "demo?train=200", "tasks": "pos,ner", "paradigm": "mtl"}


def filled(description: dict[str, Any] = DEMO, **more: Any) -> None:
    """MTL and MRN, five seeds; MRN is right more often with unseen words."""
    store = Store.open()
    fill(store, RunConfig.build(**description), **more)
    store.close()


def copied(app: AppTest) -> list[dict[str, str]]:
    """The texts by format of each table on the page that can be copied."""
    sent = [json.loads(element.proto.json or "{}") for element in app.get("bidi_component")]
    return [{each["name"]: each["text"] for each in data["formats"]} for data in sent if "formats" in data]


def drawn_blocks(app: AppTest) -> list[dict[str, Any]]:
    """The sentences on the page with their lanes."""
    sent = [json.loads(element.proto.json or "{}") for element in app.get("bidi_component")]
    return [block for data in sent for block in data.get("blocks", ())]


def test_the_planted_bucket_is_named_drawn_and_copied(open_page: Open, laboratory: Path) -> None:
    filled()
    app = open_page("compare", closer="Where", to="MTL", task="ner")
    assert problems(app) == []
    printed = CliRunner().invoke(command_line, ["compare", "--where", "--task", "ner"])
    assert printed.exit_code == 0, printed.output
    headline = printed.stdout.splitlines()[0]
    gains, others = headline.split(" This explains ")
    assert "with words unseen in training (+" in gains
    assert f"**{gains}** This explains {others}" in words(app)
    (forest,) = figures(app, "where_forest")
    rows, (trace, *key) = forest["layout"]["yaxis"]["ticktext"], forest["data"]
    names = [rows[round(place)] for place in trace["y"]]
    assert rows[:2] == ["<b>How often seen</b>", "unseen"]
    # Each state of the key is a filling that some marks have, and one bucket is decided by itself.
    of_state = {each["name"]: (each["marker"]["symbol"], each["marker"]["color"]) for each in key}
    states = ["decided", "explained by another bucket", "undecided"]
    assert list(of_state) == states
    looks = list(zip(trace["marker"]["symbol"], trace["marker"]["color"], strict=True))
    assert set(looks) == set(of_state.values())
    by_itself = of_state["decided"]
    assert [name for name, look in zip(names, looks, strict=True) if look == by_itself] == ["unseen"]
    assert others.startswith("the differences with ")
    (hover,) = [text for text in trace["text"] if text.startswith("words unseen in training: higher, +")]
    assert "spans, 5 seeds" in hover
    assert "MTL " in hover
    (helped,) = [caption for caption in app.caption if caption.value.startswith("Click a mark")]
    assert "Explained by another bucket: decided, but no longer without the spans" in helped.help
    # What another bucket explains is a smaller mark than what is decided by itself.
    sizes = dict(zip(trace["marker"]["color"], trace["marker"]["size"], strict=True))
    assert sizes[of_state["explained by another bucket"][1]] < sizes[by_itself[1]]
    tables = {frame.index.name: frame for frame in sheets(app)}
    assert list(tables["Errors"].index) == list(ERROR_KINDS)
    assert list(tables["F1 scheme"].index) == list(SCHEMES)
    assert len(tables["Bucket"]) == len(names)
    verb = CliRunner().invoke(command_line, ["compare", "--where", "--task", "ner", "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(verb.stdout)))
    on_page = [row for each in copied(app)[1:] for row in csv.DictReader(io.StringIO(each["CSV"]))]
    assert sorted(map(str, on_page)) == sorted(map(str, rows))
    assert copied(app)[1].keys() == {"LaTeX", "Markdown", "CSV", "TSV"}
    app.segmented_control(key="task").set_value("pos").run()
    assert "On pos MRN" in words(app)
    assert "Kinds of errors" not in words(app)


def test_it_is_computed_once_and_only_when_it_is_open(
    open_page: Open, laboratory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled()
    calls: list[str] = []
    computed = where_of

    def noted(*arguments: Any) -> Any:
        calls.append(arguments[1].task)
        return computed(*arguments)

    monkeypatch.setattr(where, "where_of", noted)
    app = open_page("compare", to="MTL", closer="Differences")
    assert calls == []
    app.segmented_control(key="closer").set_value("where").run()
    app.segmented_control(key="on").set_value("dev").run()
    app.segmented_control(key="on").set_value("test").run()
    assert calls == ["ner", "ner"]


def test_what_cannot_be_answered_is_a_sentence(open_page: Open, laboratory: Path) -> None:
    filled(seeds=(1, 2), with_predictions=False)
    app = open_page("compare", closer="Where", to="MTL", task="ner")
    assert problems(app) == []
    assert "No test predictions of MRN λ=0.001 and MTL on ner are stored" in words(app)
    assert figures(app, "where_forest") == []


def test_rows_without_a_common_seed_or_task_are_a_sentence(open_page: Open, laboratory: Path) -> None:
    filled(seeds=(1, 2), paradigms=("mtl",))
    filled(seeds=(3, 4), paradigms=("mrn",))
    app = open_page("compare", closer="Where", to="MTL", task="ner")
    assert problems(app) == []
    assert "have no seed in common on ner." in words(app)
    filled(DEMO | {"tasks": "pos", "paradigm": "stl"}, seeds=(1, 2), paradigms=("stl",))
    app = open_page("compare", closer="Where", to="STL", of="MTL", task="ner")
    assert problems(app) == []
    assert "do not both have a score on ner" in words(app)


def test_one_seed_decides_nothing_and_says_so(open_page: Open, laboratory: Path) -> None:
    filled(seeds=(1,))
    app = open_page("compare", closer="Where", to="MTL", task="pos")
    assert problems(app) == []
    assert "One seed in common: nothing is decided." in words(app)
    (forest,) = figures(app, "where_forest")
    assert all(symbol.endswith("-open") for symbol in forest["data"][0]["marker"]["symbol"])


def test_a_corpus_that_has_changed_leaves_the_kinds_of_errors(open_page: Open, laboratory: Path) -> None:
    block = "EU B-ORG N\nis O V\nnew O A\n\nOld O A\nBonn B-LOC N\n\n"
    files = {f"{split}.conll": block * 30 for split in ("train", "dev", "test")}
    folder = corpus_folder(laboratory / "changing", files)
    filled(
        {"corpus": folder, "columns": "tokens,ner,pos", "tasks": "ner,pos", "paradigm": "mtl"}, seeds=(1, 2)
    )
    app = open_page("compare", closer="Where", to="MTL", task="ner")
    assert len(figures(app, "where_forest")) == 1
    (Path(folder) / "test.conll").write_text("It O N\n\n" * 30)
    app.run()
    assert problems(app) == []
    assert "is no longer what run 2 was scored on" in words(app)
    assert "Kinds of errors" in words(app)
    assert figures(app, "where_forest") == []
    app.segmented_control(key="task").set_value("pos").run()
    assert problems(app) == []
    assert "is no longer what run" in words(app)
    for file in Path(folder).iterdir():
        file.unlink()
    app.run()
    assert problems(app) == []


def test_runs_of_other_systems_have_buckets_or_a_sentence(open_page: Open, laboratory: Path) -> None:
    description = {"corpus": "demo?train=200", "tasks": "pos,ner"}
    filled(description | {"paradigm": "mtl"}, seeds=(1, 2), paradigms=("mtl",))
    other = {"paradigm": OTHER, "system": "flair 0.15", "encoder": UNKNOWN_ENCODER}
    filled(description | other, seeds=(1, 2), paradigms=(OTHER,))
    app = open_page("compare", closer="Where", to="MTL", task="ner")
    assert problems(app) == []
    assert len(figures(app, "where_forest")) == 1


def test_a_bucket_has_its_sentences(open_page: Open, laboratory: Path) -> None:
    """As clicked, and as an address names it: gold, both predictions, and which of both errs less."""
    filled()
    bucket = "words unseen in training"
    app = open_page("compare", closer="Where", to="MTL", task="ner", bucket=bucket)
    assert problems(app) == []
    counts = re.search(r"fewer errors in (\d+) sentences, \*\*B\*\* MTL in (\d+)", words(app))
    assert counts is not None
    assert int(counts[1]) > 2 * int(counts[2])
    blocks = drawn_blocks(app)
    assert len(blocks) == 5
    assert all([lane["who"] for lane in block["lanes"]] == ["gold", "A", "B"] for block in blocks)
    for block in blocks:
        wrong = [sum("differs" in mark for mark in lane["cells"]) for lane in block["lanes"]]
        assert wrong[0] == 0
        assert block["about"].startswith("Fewer errors: A with ")
    app.segmented_control(key="fewer").set_value("b").run()
    assert all("B with" in block["about"] for block in drawn_blocks(app))
    app.selectbox(key="bucket").set_value("").run()
    assert problems(app) == []
    assert "fewer errors in" not in words(app)


def test_errors_by_bucket_are_those_of_the_predictions(laboratory: Path) -> None:
    """The errors of all sentences in a bucket are those that its scores count."""
    filled(seeds=(1,))
    with closing(Store.open()) as store:
        (apart,) = taken_apart(store, stored_results(store, None), tasks=["pos"])
    assert apart.errors is not None
    for each in apart.buckets:
        fewer = apart.errors.fewer_errors[:, :, apart.errors.buckets.index(each.bucket)].sum()
        assert fewer == pytest.approx(2 * each.items * each.paired.mean, abs=0.01)
        listed = apart.errors.sentences_in(each.bucket)
        assert all(of.fewer + of.more == 1 for of in listed)


def test_suspects_are_listed_read_and_saved(open_page: Open, laboratory: Path) -> None:
    """Places at which two runs agree by chance on another label; none where all are right."""
    filled(seeds=(1,), wrong=lambda paradigm, is_unseen: 0.0)
    app = open_page("compare", closer="Suspects", to="MTL", task="pos")
    assert problems(app) == []
    assert "is contradicted by so many of these runs" in words(app)
    filled(seeds=(1,), wrong=lambda paradigm, is_unseen: 0.9)
    app = open_page("compare", closer="Suspects", to="MTL", task="pos", agree="At least 75% agree")
    assert problems(app) == []
    assert "Gold is never changed" in words(app)
    (listed,) = [frame.value for frame in app.dataframe if "Annotated" in frame.value.columns]
    assert (listed["Agree"] >= 75).all()
    assert (listed["Annotated"] != listed["Predicted"]).all()
    block = drawn_blocks(app)[0]
    assert [lane["who"] for lane in block["lanes"]] == ["gold", "runs"]
    assert sum("differs" in mark for mark in block["lanes"][1]["cells"]) == 1
    assert "of 2 runs. Other tasks: ner " in block["about"]
    assert {"CSV", "CoNLL"} <= set(labels(app, "download_button"))


def test_runs_without_predictions_have_no_suspects(open_page: Open, laboratory: Path) -> None:
    filled(seeds=(1, 2), with_predictions=False)
    app = open_page("compare", closer="Suspects", to="MTL", task="ner")
    assert problems(app) == []
    assert "No test predictions on ner are stored; train it again." in words(app)
