"""RunConfig: what it fills in, what it refuses, and what makes two runs seeds of one configuration."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, Field, ValidationError
from pydantic_core.core_schema import ErrorType

from core.config import (
    FIELD_HELP,
    FIELD_RULES,
    RunConfig,
    applicable_fields,
    config_warnings,
    default_value,
)
from core.config.typed import format_values, parse_values
from core.errors import _WRONG, ConfigError, first_problem
from core.mrn import alignments, priors
from core.registry import ALIGNMENTS, MODES, PREDICTED, PRIORS, PriorSpec
from core.store.runs import parse_config
from core.wording import any_of

BASE: dict[str, Any] = {"corpus": "demo", "tasks": "pos,ner"}
_AS_MTL: dict[str, Any] = {"paradigm": "mtl"}
_EMBEDDED: dict[str, Any] = _AS_MTL | {"task_embedding": "input"}
_OVER_WORDS: dict[str, Any] = _AS_MTL | {"encoder": "bilstm"}
_LSTM_D: dict[str, Any] = _AS_MTL | {"encoder": "lstm-d"}
_ADDED: dict[str, Any] = {"tasks": "tag", "encoder_training": "frozen", "added_to": "/1"}
_ONLY_MTL_SHARES = "must be left unset here: only MTL can share rows"
_TRAINING = r"must be full, frozen or top:K \(the last K layers\)"


def test_defaults_are_the_dissertations_but_where_measured_otherwise() -> None:
    config = RunConfig.build(**BASE)
    assert (config.max_length, config.batch_size, config.epochs, config.weight_decay) == (256, 16, 5, 1e-2)
    assert (config.prior, config.alignment) == ("relational", "auto")
    assert (config.update_every, config.snapshots) == (10, 50)
    assert config.learn == MODES
    assert (config.lr_encoder, config.lr_heads) == pytest.approx((2e-4, 2e-3))
    assert config.head_init == "zeros"
    bert = RunConfig.build(**BASE, encoder="bert-base-cased")
    assert (bert.lr_encoder, bert.lr_heads) == pytest.approx((5e-5, 5e-4))
    frozen = bert.with_(encoder_training="frozen", lr_heads=None)
    assert (frozen.lr_encoder, frozen.lr_heads) == (None, 2e-2)
    adadelta = RunConfig.build(**BASE, optimiser="adadelta", lr_encoder=1.0)
    assert adadelta.lr_heads == 1.0


def test_ten_times_a_decimal_rate_is_a_decimal() -> None:
    """Ids of stored runs hold that have the float next to it."""
    bert = RunConfig.build(**BASE, encoder="bert-base-cased")
    for digits in range(1, 1000):
        rate = float(f"{digits}e-7")
        assert bert.with_(lr_encoder=rate, lr_heads=None).lr_heads == float(f"{digits}e-6")
    mtl = RunConfig.build(corpus="demo", tasks="pos,ner", paradigm="mtl", encoder="bert-base-cased")
    unset = mtl.with_(lr_encoder=3e-5, lr_heads=None)
    assert unset == mtl.with_(lr_encoder=3e-5, lr_heads=3e-4)
    assert unset.configuration_id == "1f148caeb0d7"
    text = unset.to_json().replace('"lr_heads":0.0003,', '"lr_heads":0.00030000000000000003,')
    stored = RunConfig.from_json(text)
    assert (stored.configuration_id, stored.to_json()) == ("382e71913b1f", text)


@pytest.mark.parametrize(
    ("prior", "training", "lambda_", "learn", "shrinkage"),
    [
        ("relational", "full", 1e-3, ("task", "label", "feature"), 1.0),
        ("relational", "frozen", 3e-3, ("task",), 1.0),
        ("map", "frozen", 1e-3, ("task", "label", "feature"), 1.0),
        ("paper", "frozen", 5e-2, ("task", "label", "feature"), None),
    ],
)
def test_each_prior_has_its_own_defaults(
    prior: str, training: str, lambda_: float, learn: tuple[str, ...], shrinkage: float | None
) -> None:
    config = RunConfig.build(**BASE, prior=prior, encoder_training=training)
    assert (config.lambda_, config.learn, config.shrinkage) == (lambda_, learn, shrinkage)


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"tasks": "pos"}, "tasks", "MRN needs at least two tasks"),
        ({"tasks": "pos", "paradigm": "mtl"}, "tasks", "MTL needs at least two tasks"),
        ({"paradigm": "stl"}, "tasks", "STL learns exactly one task, not 2"),
        ({"paradigm": "mtl", "lambda": 0.1}, "lambda", "only MRN has a prior"),
        ({"paradigm": "mtl", "alignment": "exact"}, "alignment", "only MRN has a prior"),
        ({"lambda": -1}, "lambda", "lambda must be above 0 and at most 1,000,000, not -1"),
        ({"lambda": float("nan")}, "lambda", "not nan"),
        ({"prior": "none"}, "prior", f"must be {any_of([*PRIORS, PREDICTED])}, not 'none'"),
        ({"alignment": "magic"}, "alignment", "not one of auto, disjoint"),
        ({"alignment": "mapping:"}, "alignment", "a mapping needs its CSV file"),
        ({"alignment": "exact:a.csv"}, "alignment", "only mapping takes a file"),
        ({"paradigm": "joint"}, "paradigm", "must be stl, mtl or mrn, not 'joint'"),
        ({"paradigm": "other"}, "system", "name the system that made the predictions"),
        ({"fraction": 0}, "fraction", "fraction must be above 0 and at most 1, not 0"),
        ({"epochs": "many"}, "epochs", "a whole number at least 1 and at most 1,000, not 'many'"),
        ({"tasks": "pos,pos"}, "tasks", "a name is listed twice"),
        ({"columns": "word,pos"}, "columns", "one of the names must be 'tokens'"),
        ({"encoder_training": "frozen", "lr_encoder": 1e-4}, "lr_encoder", "a frozen encoder is not trained"),
        ({"lr_bilstm": 1e-3}, "lr_bilstm", "ends in \\+bilstm"),
        ({"device": "tpu"}, "device", "tpu"),
        ({"epoch": 3}, "epoch", "a run has no such field"),
        ({"corpus": ""}, "corpus", "corpus must not be empty"),
        ({"batch_size": 4, "batch_tokens": 512}, "batch_size", "must be left unset here: batch_tokens says"),
        ({"patience": 1, "select_by": "last"}, "patience", "select_by keeps the last epoch"),
        ({"task_weights": "1"}, "task_weights", "a weight above 0 for each of the 2 tasks"),
        ({"task_weights": "1,x"}, "task_weights", "x"),
        ({"draw_tasks": "uniform", "corpus_order": "in_turn"}, "draw_tasks", "must be 'together'"),
        (
            {"draw_tasks": "smoothed:2"},
            "draw_tasks",
            "with A from 0 to 1, as in smoothed:0.5, not 'smoothed:2'",
        ),
        ({"draw_tasks": "smoothed:"}, "draw_tasks", "must be together, uniform, by_size or smoothed:A"),
        ({"heads": "shared"}, "heads", _ONLY_MTL_SHARES),
        ({"heads": "shared", "paradigm": "stl", "tasks": "ner"}, "heads", _ONLY_MTL_SHARES),
        *(
            (_AS_MTL | {"encoder_training": training}, "encoder_training", _TRAINING)
            for training in ("", "top", "top:", "top:0", "top:02", "top:-1", "lora:8", "full:1", "TOP:1")
        ),
        (_OVER_WORDS | {"encoder_training": "top:1"}, "encoder_training", "must be full here"),
        (_OVER_WORDS | {"encoder_training": "frozen"}, "encoder_training", "vectors_training"),
        (_EMBEDDED | {"encoder_training": "top:1"}, "task_embedding", "fine-tuned in full"),
        (_OVER_WORDS | {"task_order": "pos"}, "task_order", "only lstm-d"),
        (_LSTM_D | {"task_order": "pos"}, "task_order", "name each of pos, ner once, not pos"),
        (_LSTM_D | {"task_order": "pos,pos"}, "task_order", "listed twice"),
        (_LSTM_D | {"task_order": "pos,chunk"}, "task_order", "once, not pos, chunk"),
        (_LSTM_D | {"task_order": "pos,ner,chunk"}, "task_order", "once, not pos, ner, chunk"),
        (_AS_MTL | {"lstm_layers": 2}, "lstm_layers", "only an encoder that reads words"),
        (_AS_MTL | {"vectors": "glove"}, "vectors", "only an encoder that reads words"),
        *(
            (_OVER_WORDS | {"context_encoder": name}, "context_encoder", "a transformer's name without")
            for name in ("sc-lstm", "minilm+bilstm")
        ),
        (_OVER_WORDS | {"context_encoder": ""}, "context_encoder", "must not be empty"),
        (_AS_MTL | {"context_encoder": "minilm"}, "context_encoder", "only an encoder that reads"),
        (_OVER_WORDS | {"window": 4}, "window", "must be an odd number of words, not 4"),
        (_OVER_WORDS | {"window": 3, "lstm_layers": 2}, "window", "one LSTM layer reads windows, not 2"),
        (_AS_MTL | {"encoder": "sc-lstm", "window": 3}, "window", "only the encoder bilstm reads windows"),
        (_AS_MTL | {"shared_dense": 1}, "shared_dense", "only an encoder that reads words has it"),
        (_ADDED | {"added_to": None, "prior": "predicted"}, "added_to", "name the finished run"),
        (_ADDED | {"prior": "relational"}, "added_to", "only a run with the prior predicted"),
        (_ADDED | {"tasks": "tag,ner"}, "tasks", "choose one task. You can add another afterwards"),
        (_ADDED | {"encoder_training": "full"}, "encoder_training", "must be frozen here"),
        (_ADDED | {"learn": "task"}, "learn", "learns no covariance"),
        (_ADDED | {"paradigm": "mtl", "tasks": "tag,ner"}, "added_to", "must be left unset here"),
    ],
)
def test_contradictions_are_refused_with_the_field(changes: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        RunConfig.build(**(BASE | changes))
    assert error.value.field == field
    assert "\n" not in str(error.value)


def test_a_configuration_is_everything_but_the_seed() -> None:
    config = RunConfig.build(**BASE, **{"lambda": 0.1}, learn="label,task", seed=1)
    assert RunConfig.from_json(config.to_json()) == config
    assert '"lambda":0.1' in config.to_json()
    assert config.learn == ("task", "label")
    assert config.configuration_id == config.with_(seed=2).configuration_id
    assert config.configuration_id != config.with_(epochs=4).configuration_id
    # Unset and set to the default are the same configuration.
    assert RunConfig.build(**BASE) == RunConfig.build(**BASE, **{"lambda": 0.001}, lr_heads=2e-3)
    # Changing the paradigm drops what no longer applies.
    mtl = config.with_(paradigm="mtl")
    assert (mtl.lambda_, mtl.prior, mtl.learn) == (None, None, None)


# Descriptions as an earlier version stored them, before there were LATER_FIELDS, with their ids.
_STORED = (
    '{"corpus":"conll2003","columns":null,"tasks":["pos","ner"],"fraction":1.0,"truecase":false,'
    '"encoder":"minilm","encoder_training":"full",%s"seed":1,"epochs":5,"batch_size":16,"max_length":256,'
    '"lr_encoder":0.0002,"lr_heads":0.002,"lr_bilstm":null,"bilstm_hidden":null,"dropout":0.1,'
    '"head_init":"zeros","weight_decay":0.01,"select_by":"score","pos_score":"accuracy","device":"auto",'
    '"precision":"auto"}'
)
_MRN = (
    '"paradigm":"mrn","prior":"relational","alignment":"auto","lambda":0.01,"learn":["task","label",'
    '"feature"],"shrinkage":1.0,"update_every":10,"snapshots":50,'
)
_MTL = (
    '"paradigm":"mtl","prior":null,"alignment":null,"lambda":null,"learn":null,"shrinkage":null,'
    '"update_every":null,"snapshots":null,'
)


@pytest.mark.parametrize(("paradigm", "identity"), [(_MRN, "80e5997ac4ae"), (_MTL, "8cc6d97d93af")])
def test_earlier_descriptions_keep_their_id_and_their_meaning(paradigm: str, identity: str) -> None:
    config = RunConfig.from_json(_STORED % paradigm)
    assert config.configuration_id == identity
    assert config.to_json() == _STORED % paradigm
    assert (config.label_inventory, config.batching, config.dropout_on) == ("train", "by_length", "features")
    assert config.with_(seed=2).configuration_id == identity
    assert RunConfig.build(corpus="conll2003", tasks="pos,ner").label_inventory == "corpus"
    assert set(config.values()) == {name.rstrip("_") for name in RunConfig.model_fields}


def test_every_field_has_a_description_and_a_unit() -> None:
    assert len(FIELD_HELP) == len(RunConfig.model_fields)
    for help_ in FIELD_HELP.values():
        assert help_.description.endswith((".", ")"))
        assert help_.unit
        assert len(help_.sentence) > 20
    assert FIELD_HELP["lambda"].symbol == "λ"
    assert (FIELD_HELP["fraction"].range, FIELD_HELP["paradigm"].range) == ("> 0, ≤ 1", "stl | mtl | mrn")
    mtl = applicable_fields("mtl", "minilm", "frozen")
    assert not {"lambda", "prior", "lr_encoder", "lr_bilstm"} & mtl
    assert {"lambda", "lr_encoder", "lr_bilstm"} <= applicable_fields("mrn", "minilm+bilstm", "full")


def test_sharing_nothing_is_remarked_on() -> None:
    frozen = RunConfig.build(**BASE, paradigm="mtl", encoder_training="frozen")
    assert "MTL equals STL" in config_warnings(frozen)[0]
    assert "through the MRN prior alone" in config_warnings(frozen.with_(paradigm="mrn"))[0]
    assert config_warnings(frozen.with_(encoder="minilm+bilstm")) == ()
    assert config_warnings(frozen.with_(heads="shared")) == ()
    added = {"tasks": "ner", "paradigm": "mrn", "prior": "predicted", "added_to": "12"}
    assert config_warnings(frozen.with_(**added)) == ()
    assert config_warnings(RunConfig.build(**BASE)) == ()


def test_registries_have_a_line_and_a_class_each() -> None:
    assert set(PRIORS) == set(priors.PRIOR_CLASSES)
    assert set(ALIGNMENTS) == {"auto", "mapping", *alignments._RULES}
    assert all(spec.description for spec in PRIORS.values())
    assert all(ALIGNMENTS.values())


def test_a_new_prior_has_its_own_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = PriorSpec("Mine.", lambda_=0.5, learn=("label",), frozen_lambda=0.1, has_scales=False)
    monkeypatch.setitem(PRIORS, "mine", spec)
    run = RunConfig.build(**BASE, prior="mine")
    assert (run.lambda_, run.learn, run.shrinkage) == (0.5, ("label",), None)
    frozen = RunConfig.build(**BASE, prior="mine", encoder_training="frozen")
    assert (frozen.lambda_, frozen.learn) == (0.1, ("label",))
    with pytest.raises(ConfigError, match="shrinkage must be left unset here"):
        RunConfig.build(**BASE, prior="mine", shrinkage=1.0)


def test_a_default_of_lambda_follows_how_the_encoder_is_trained() -> None:
    """0.01 did harm where all of the encoder is trained (docs/mathematics.md, The default of λ)."""
    training = {"full": 0.001, "top:1": 0.01, "frozen": 0.003}
    for encoder_training, strength in training.items():
        assert RunConfig.build(**BASE, encoder_training=encoder_training).lambda_ == strength
    assert RunConfig.build(**BASE, **{"lambda": 0.01}).lambda_ == 0.01


def test_layers_of_lstm_d_are_unset_where_each_task_has_one() -> None:
    unset = RunConfig.build(**BASE | _LSTM_D)
    assert unset.lstm_layers is None
    assert RunConfig.build(**BASE | _LSTM_D, lstm_layers="2") == unset
    assert RunConfig.build(**BASE | _LSTM_D, lstm_layers=3).configuration_id != unset.configuration_id


def test_a_budget_stands_for_the_batch_size() -> None:
    plain = RunConfig.build(**BASE)
    assert "batch_tokens" not in plain.to_json()  # so it is still the configuration that it was
    small = plain.with_(batch_size=4)
    budget = small.with_(batch_tokens=512)
    assert (budget.batch_size, budget.batch_tokens) == (16, 512)
    assert RunConfig.from_json(budget.to_json()) == budget
    assert len({plain.configuration_id, small.configuration_id, budget.configuration_id}) == 3


@pytest.mark.parametrize("corpus", ["demo", '"seed":7,', "a\\"])
def test_stored_descriptions_come_out_as_they_went_in(corpus: str) -> None:
    """Seeds of one configuration are checked together."""
    for seed in (0, 3, 2**31 - 1):
        config = RunConfig.build(**(BASE | {"corpus": corpus, "seed": seed}))
        assert parse_config(config.to_json()) == (config, None)
    for wrong in ("-1", "1.5", "01", "2147483648", "1e3x", '"x"'):
        _, problem = parse_config(config.to_json().replace(f'"seed":{seed}', f'"seed":{wrong}'))
        assert problem is not None, wrong


@pytest.mark.parametrize("paradigm", ["stl", "mtl", "mrn"])
@pytest.mark.parametrize("encoder", ["minilm", "minilm+bilstm", "bilstm", "lstm-d", "sc-lstm"])
@pytest.mark.parametrize("training", ["full", "frozen", "top:2"])
@pytest.mark.parametrize("prior", [None, "map", "paper"])
def test_a_default_is_what_a_field_takes_when_it_is_unset(
    paradigm: str, encoder: str, training: str, prior: str | None
) -> None:
    """Without building the changed run, which may not be a valid one."""
    values = BASE | {"tasks": ("pos",) if paradigm == "stl" else ("pos", "ner"), "paradigm": paradigm}
    context = {"encoder": encoder, "prior": prior if paradigm == "mrn" else None}
    context |= {"encoder_training": training if encoder.startswith("minilm") else "full"}
    config = RunConfig.build(**values | context)
    for field in FIELD_RULES:
        if FIELD_RULES[field].is_conditional:
            assert default_value(config, field) == config.with_(**{field: None}).value(field), field
        else:
            assert default_value(config, field) == FIELD_HELP[field].default


def test_what_is_wrong_is_said_in_our_words() -> None:
    """Whatever pydantic finds wrong; what it calls its findings is spelt as it spells them."""
    assert set(_WRONG) <= set(get_args(ErrorType))

    class Data(BaseModel):
        name: str = Field(max_length=3)
        number: Annotated[int, Field(ge=1)]
        others: tuple[str, ...] = ()

    for values, sentence in (
        ({"number": 1}, "name is missing"),
        ({"name": "abcd", "number": 1}, "name must have at most 3 characters, not 'abcd'"),
        ({"name": "a", "number": 0}, "number must be at least 1, not 0"),
        ({"name": "a", "number": "9" * 6000}, "number has too many digits"),
        ({"name": "a", "number": 1, "others": ["b", 3]}, "others.1 must be text, not 3"),
    ):
        with pytest.raises(ValidationError) as refused:
            Data.model_validate(values)
        assert first_problem(refused.value).startswith(sentence)


def test_each_choice_of_a_field_is_read_as_it_is_typed() -> None:
    """A choice may have the name of a type within it, as `interval` has."""
    choices = {
        name: [
            value
            for part in get_args(field.annotation)
            for value in get_args(part) or [part]
            if isinstance(value, str)
        ]
        for name, field in RunConfig.model_fields.items()
    }
    assert choices["update_timing"] == ["interval", "epoch_start"]
    for field, values in choices.items():
        if values:
            assert parse_values(field, format_values(field, values)) == values, field
