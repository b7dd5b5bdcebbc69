"""Launch: the fields of encoders over words and of training regimes, from CONDITIONS alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.config import applicable_fields
from core.registry import WORD_ENCODERS
from core.store import Store
from dashboard.launch.draft import RARE, SELDOM, START, Draft, automatic, draft_of, plan
from jobs.queue.sweeps import WHOLE
from tests.pages.conftest import Open, app_at, press, words
from tests.pages.launching import own_data

_DEMO: dict[str, Any] = {"corpus": "demo", "tasks": ("pos", "chunk", "ner")}
_RARE = {field for fields in RARE.values() for field in fields}


def _shown(app: AppTest) -> set[str]:
    """The fields that the form asks for."""
    widgets = (*app.text_input, *app.get("button_group"), *app.multiselect)
    keys = {str(widget.key) for widget in widgets}
    return {field for field in START if f"launch_{field}" in keys}


@pytest.mark.parametrize("encoder", [*WORD_ENCODERS, "minilm", "minilm+bilstm"])
def test_the_form_asks_for_what_the_runs_have(open_page: Open, encoder: str) -> None:
    app = open_page("launch", encoder=encoder, encoder_training="full", paradigm="mtl", window="5")
    has = applicable_fields("mtl", encoder, "full") - {"pooling", "pair_encoding", "pair_heads"}
    # A field that only a study sets is asked for where it has a value.
    assert _shown(app) == (has & START.keys()) - ({*SELDOM} - {"window"})
    assert ("encoder_training" in _shown(app)) == (encoder not in WORD_ENCODERS)


def test_fields_appear_and_vanish_with_the_encoder(open_page: Open) -> None:
    app = open_page("launch", paradigm="mtl", seed="1")
    assert not {"vectors", "task_order", "lstm_layers", *SELDOM} & _shown(app)
    app.multiselect(key="launch_encoder").set_value(["lstm-d"]).run()
    assert {"vectors", "capitals", "task_order", "lstm_layers"} <= _shown(app)
    assert "encoder_training" not in _shown(app)
    assert app.pills(key="launch_characters").value == ["cnn"]
    assert app.text_input(key="launch_lr_encoder").placeholder == "0.002"
    # Frozen features were chosen for MiniLM: they stay so beside an encoder that is always trained.
    app.multiselect(key="launch_encoder").set_value(["minilm", "sc-lstm"]).run()
    app.multiselect(key="launch_encoder_training").set_value(["frozen", "top:3"]).run()  # one is typed
    app.button(key="launch").click().run()
    runs = {(run.config.encoder, run.config.encoder_training) for run in Store.open().runs()}
    assert runs == {("minilm", "frozen"), ("minilm", "top:3"), ("sc-lstm", "full")}


def test_settings_that_are_not_drawn_count(open_page: Open) -> None:
    """The fold of rare settings is closed until a reader opens it; a link sets them all the same."""
    for dropout, wrong in (("0.3", 0), ("2", 2)):
        app = app_at("launch")
        app.session_state["launch_more"] = False
        app.query_params.update(paradigm="mtl", seed="1", dropout=dropout, priority="7", clip_norm=" 1 ")
        app.run()
        assert "dropout" not in _shown(app)
        assert words(app).count("Dropout must be") == wrong
        if not wrong:
            app.button(key="launch").click().run()
            (run,) = Store.open().runs()
            assert (run.config.dropout, run.config.clip_norm, run.priority) == (0.3, 1, 7)


def test_further_settings_can_be_searched_and_keep_what_is_hidden(open_page: Open) -> None:
    app = open_page("launch", paradigm="mtl", seed="1", dropout="0.3", clip_norm="1")
    every = _shown(app)
    app.text_input(key="launch_search").set_value("dropout").run()
    assert "dropout" in _shown(app)
    assert len(_shown(app) & _RARE) < len(every & _RARE)
    assert "clip_norm" not in _shown(app)
    app.text_input(key="launch_search").set_value("no such setting").run()
    assert not _shown(app) & _RARE
    app.button(key="launch").click().run()
    (run,) = Store.open().runs()
    assert (run.config.dropout, run.config.clip_norm) == (0.3, 1)


def test_where_mtl_would_share_nothing_a_bilstm_is_one_press_away(open_page: Open) -> None:
    app = open_page("launch", paradigm="mtl", encoder="minilm", encoder_training="frozen", seed="1")
    assert "MTL equals STL" in words(app)
    app = press(app, "Add a BiLSTM")
    assert app.multiselect(key="launch_encoder").value == ["minilm+bilstm"]
    assert "MTL equals STL" not in words(app)
    assert "Add a BiLSTM" not in [button.label for button in app.button]


def test_what_nobody_has_chosen_yet_is_no_error(open_page: Open) -> None:
    app = own_data(open_page("launch"))
    assert "Still to choose" in words(app)
    assert ":material/error" not in words(app)
    own_data(app, "/nowhere")
    assert "Not ready yet" in words(app)
    assert ":material/error" in words(app)


@pytest.mark.parametrize(
    ("query", "field", "sentence"),
    [
        ({"lambda": "-1"}, "lambda", "λ must be above 0"),
        ({"lambda": "much"}, "lambda", "λ: 'much' is not a number"),
        ({"seed": " "}, "seed", "Seeds: write a number."),
        ({"seed": "abc"}, "seed", "Seeds: 'abc' is not a seed"),
        ({"seed": "5-1"}, "seed", "smallest first"),
        ({"epochs": "0"}, "epochs", "Epochs must be at least 1"),
        ({"fraction": "1.5"}, "fraction", "Share must be above 0 and at most 1, not 1.5."),
        ({"encoder_training": "toop:3"}, "encoder_training",
         "Training must be full, frozen or top:K (the last K layers)"),
        ({"encoder": "lstm-d", "paradigm": "mtl", "task_order": "pos,ner"}, "task_order",
         "Task order: name each of pos, chunk, ner once, not pos, ner."),
        ({"encoder": "lstm-d", "paradigm": "mtl", "task_weights": "1,2"}, "task_weights",
         "Weights of tasks: name a weight above 0 for each of the 3 tasks."),
    ],
)  # fmt: skip
def test_what_is_wrong_belongs_to_its_field(query: dict[str, str], field: str, sentence: str) -> None:
    draft, _ = draft_of({"tasks": "pos,chunk,ner", **query})
    problems = plan(draft).problems
    assert list(problems) == [field]
    assert sentence in problems[field]


def test_all_that_is_wrong_is_said_at_once_and_goes_when_it_is_mended(
    open_page: Open, tmp_path: Path
) -> None:
    """At its field and in the plan, with a link between them."""
    app = open_page("launch", seed="abc")
    app.pills(key="launch_paradigm").set_value([]).run()
    for field, sentence in (("seed", "Seeds: 'abc' is not a seed"), ("paradigm", "Paradigm: choose one")):
        assert words(app).count(sentence) == 2
        assert f"[Go to field](#problem-{field})" in words(app)
    assert "launch" not in [button.key for button in app.button]
    app.text_input(key="launch_seed").set_value("1")
    app.pills(key="launch_paradigm").set_value(["mtl"]).run()
    assert not app.button(key="launch").disabled
    # Vectors are looked for once there is a plan: its button is there, but cannot be pressed.
    app.multiselect(key="launch_encoder").set_value(["sc-lstm"]).run()
    (tmp_path / "bad.txt").write_text("the 0.1 0.2\nof 0.3\n")
    app.text_input(key="launch_vectors").set_value(str(tmp_path / "bad.txt")).run()
    assert words(app).count("bad.txt, line 2: has 1 number, not 2.") == 2
    assert "[Go to field](#problem-vectors)" in words(app)
    assert app.button(key="launch").disabled


def test_what_an_empty_field_stands_for() -> None:
    lists = {"encoder": ("sc-lstm", "minilm"), "encoder_training": ("full",), "paradigm": ("mrn",)}
    defaults = automatic(lists)
    assert defaults["lr_encoder"] == (2e-3, 2e-4)
    assert defaults["bilstm_hidden"] == (256,)
    assert "task_order" not in defaults
    # What is picked in a fresh form is what runs have that pick nothing.
    for encoder in (*WORD_ENCODERS, "minilm"):
        picked = {**START, **lists, "encoder": (encoder,), "seed": "1"}
        unpicked = picked | dict.fromkeys(("characters", "capitals", "vectors_training", "update_timing"), ())
        plans = [plan(Draft(**_DEMO, lists=given)).configs for given in (picked, unpicked)]
        assert plans[0] == plans[1] != ()


def test_every_rare_field_stands_in_one_group() -> None:
    assert set(RARE) == {"Data", "Model", "MRN", "Training", "Scores and machine"}
    assert sum(map(len, RARE.values())) == len(_RARE)
    assert set(WHOLE) < _RARE
