"""The form, a link to it, the command and the runs that they make are one and the same."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import typer
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from typer.core import TyperGroup

from core.config import RunConfig, comparison_key
from core.config.fields import NOTHING
from core.corpora import CATALOGUE
from core.errors import ConfigError
from core.recording.resolve import with_absolute_paths
from core.registry import ENCODERS, MODES, PRIORS, WORD_ENCODERS, reads_words
from core.results.naming import field_text, fields_apart, is_default, shortest_names
from dashboard.launch.address import command
from dashboard.launch.draft import cloned, draft_of, plan
from jobs.cli import app
from jobs.cli.launch import RunOptions
from jobs.queue.sweeps import Sweep

_PROGRAM = typer.main.get_command(app)
assert isinstance(_PROGRAM, TyperGroup)
_LAUNCH = _PROGRAM.commands["launch"]


def _described(options: Mapping[str, Any]) -> list[RunConfig]:
    return RunOptions(**{field.name: options[field.name] for field in dataclasses.fields(RunOptions)}).runs()


def _drawn_by(schema: dict[str, Any]) -> st.SearchStrategy[Any] | None:
    """Values of a field with choices or limits; None for any other."""
    (kind,) = (each for each in schema.get("anyOf", [schema]) if each["type"] != "null")
    if "enum" in kind:
        return st.sampled_from(kind["enum"])
    if kind["type"] == "boolean":
        return st.booleans()
    if kind["type"] == "integer":
        return st.integers(kind["minimum"], kind["maximum"])
    if kind["type"] == "number":
        low = kind.get("minimum", 1e-6)
        is_open = "exclusiveMaximum" in kind
        return st.floats(low, kind["exclusiveMaximum" if is_open else "maximum"], exclude_max=is_open)
    return None


_OF_FIELD: dict[str, st.SearchStrategy[Any]] = {
    field: drawn
    for field, schema in RunConfig.model_json_schema()["properties"].items()
    if (drawn := _drawn_by(schema)) is not None
} | {
    "encoder": st.sampled_from(
        [name + end for name in ENCODERS for end in ("", "+bilstm")] + ["own/encoder", *WORD_ENCODERS]
    ),
    "encoder_training": st.sampled_from(["full", "frozen", "top:1", "top:3"]),
    "prior": st.sampled_from(sorted(PRIORS)),
    "alignment": st.sampled_from(["auto", "exact", "disjoint", "cooccurrence", "mapping:/kept/labels.csv"]),
    "seed": st.integers(0, 2**31 - 1) | st.integers(0, 9),
    "window": st.sampled_from([3, 5]),
    "vectors": st.sampled_from(["glove", "/some where/vectors.txt.gz"]),
    "context_encoder": st.sampled_from(["minilm", "own/encoder"]),
    "device": st.sampled_from(["auto", "cpu", "cuda", "cuda:1"]),
}
_PRIORITY = st.just(0) | st.integers(-1000, 1000)
_RETRIES = st.just(0) | st.integers(0, 100)
_ALWAYS_LISTED = ("encoder", "encoder_training", "paradigm", "seed", "epochs", "fraction")
_TASKS = st.lists(st.sampled_from(["pos", "chunk", "ner"]), min_size=2, max_size=3, unique=True)


@st.composite
def sweeps(draw: st.DrawFn, most: int = 2) -> tuple[RunConfig, ...]:
    """The runs of a sweep over a few fields, each with a few values."""
    names = draw(st.sets(st.sampled_from(sorted(_OF_FIELD)), max_size=6)) | set(_ALWAYS_LISTED[:3])
    lists = {
        name: draw(
            st.lists(_OF_FIELD[name], min_size=1, max_size=most if name != "alignment" else 1, unique=True)
        )
        for name in sorted(names)
    }
    corpora = ["demo", "/some where/mine", "demo?train=100", "demo?train={100|200}&dev={5|50}&test=9"]
    base: dict[str, Any] = {"corpus": draw(st.sampled_from(corpora))}
    base["tasks"] = tuple(draw(_TASKS))
    if base["corpus"].startswith("/"):
        base["columns"] = draw(st.none() | st.just(("tokens", "pos", "chunk", "ner")))
    if "mrn" in lists["paradigm"]:
        some = st.sets(st.sampled_from(MODES), min_size=1).map(tuple)
        base["learn"] = draw(st.none() | st.just((NOTHING,)) | some)
    if {"mtl", "mrn"} & {*lists["paradigm"]}:
        weights = st.lists(
            st.floats(1e-6, 1e6), min_size=len(base["tasks"]), max_size=len(base["tasks"])
        ).map(tuple)
        base["task_weights"] = draw(st.none() | weights)
        if "lstm-d" in lists["encoder"]:
            base["task_order"] = draw(st.none() | st.permutations(base["tasks"]).map(tuple))
    chain = "; ".join(map(",".join, pairwise(base["tasks"])))
    groups = draw(st.sampled_from(["all", "pairs", "subsets", chain]))
    try:
        whole = {name: base.pop(name) for name in ("learn", "task_weights", "task_order") if name in base}
        lists |= {name: values for name, values in whole.items() if values is not None}
        return tuple(Sweep(**base, task_groups=groups, lists=lists).runs())
    except ConfigError:
        assume(False)  # a field that none of these runs has
        raise


_LAYERED = tuple(
    RunConfig.build(corpus="demo", tasks=task, paradigm="stl", encoder="lstm-d", lstm_layers=layers)
    for layers in (1, 2)
    for task in ("pos", "chunk")
)
"""One layer for each task is no layer named."""


@settings(max_examples=80)
@given(sweeps(), st.booleans(), _PRIORITY, _RETRIES)
@example((RunConfig.build(corpus="demo", tasks="pos,ner", lr_encoder=1, lr_heads=1),), False, 0, 0)
@example((RunConfig.build(corpus="demo", tasks="pos,ner", seed=0),), True, -1, 0)
@example(_LAYERED, False, 0, 0)
@example(  # one float is nearest to this share in percent and to its neighbour's
    (RunConfig.build(corpus="demo", tasks="pos,ner", fraction=0.7633680307359217),), False, 0, 0
)
def test_a_clone_a_link_and_the_command_make_the_same_runs(
    runs: tuple[RunConfig, ...], reuse: bool, priority: int, retries: int
) -> None:
    draft, sentences = cloned(runs)
    configs = plan(draft).configs
    assert set(configs) == set(runs), plan(draft).problems
    assert sentences == ()

    draft = replace(draft, priority=priority, retries=retries)
    linked, sentences = draft_of(draft.query())
    assert set(plan(linked).configs) == set(runs), plan(linked).problems
    assert sentences == ()
    assert linked.query() == draft.query()
    assert (linked.priority, linked.retries) == (priority, retries)

    sweep = Sweep.of(runs)
    assert set(sweep.runs()) == set(runs)
    arguments = list(itertools.chain.from_iterable(sweep.options()))
    assert set(_described(_LAUNCH.make_context("launch", arguments).params)) == set(runs)

    line = command(draft, configs, configs, reuse=reuse)
    program, verb, *arguments = shlex.split(line.replace("\\\n", " "))
    assert (program, verb) == ("mrnlab", "launch")
    options = _LAUNCH.make_context("launch", arguments).params
    assert set(_described(options)) == set(runs)
    assert (options["reuse"], options["priority"], options["retries"]) == (reuse, priority, retries)


# Many combinations of fields make no run at all; those are left out.
@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_some_runs_of_sweeps_come_back_or_it_is_said_why_not(data: st.DataObject) -> None:
    runs = [run for _ in range(2) for run in data.draw(sweeps())]
    some = data.draw(st.lists(st.sampled_from(runs), min_size=1, max_size=6, unique=True))
    draft, sentences = cloned(some)
    assert (set(plan(draft).configs) == set(some)) == (sentences == ())


@settings(max_examples=60)
@given(sweeps(most=3))
def test_names_are_the_shortest_that_tell_configurations_apart(runs: tuple[RunConfig, ...]) -> None:
    names = dict(zip(map(comparison_key, runs), shortest_names(runs), strict=True))
    assert len(set(names.values())) == len(names)
    # Scores on other shares or encoders do not compare, so a name always tells its own where these differ. A
    # default λ follows from other fields: it tells no configuration from another.
    settings = [
        field
        for field in ("fraction", "encoder", "encoder_training")
        if len(
            {
                run.values()[field]
                for run in runs
                if field != "encoder_training" or not reads_words(run.encoder)
            }
        )
        > 1
    ]
    for paradigm in {run.paradigm for run in runs}:
        configs = {comparison_key(run): run for run in runs if run.paradigm == paradigm}
        columns = [texts for _, texts in fields_apart(list(configs.values()))]
        rows = zip(*columns, strict=True) if columns else [()] * len(configs)
        always, texts, parts = {}, {}, {}
        for (key, run), row in zip(configs.items(), rows, strict=True):
            start, *rest = names[key].split(" · ")
            start = "default λ" if is_default(run, "lambda") else start
            always[key] = {start, *(field_text(field, run.values()[field]) for field in settings)}
            texts[key] = {*always[key], *row}
            parts[key] = {start, *rest}
        for key, of_name in parts.items():
            assert of_name <= texts[key]
            fitting = {other for other in configs if of_name <= texts[other]}
            for part in of_name - always[key]:
                assert fitting < {other for other in configs if of_name - {part} <= texts[other]}


def test_the_command_names_places_in_full(tmp_path: Any, monkeypatch: Any) -> None:
    folder = tmp_path / "my corpus"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    draft = cloned([RunConfig.build(corpus="my corpus", tasks="pos,ner")])[0]
    runs = plan(draft).configs
    assert f"--corpus '{folder}'" in command(
        draft, runs, [with_absolute_paths(run) for run in runs], reuse=False
    )


def test_runs_that_the_form_cannot_make() -> None:
    mtl = RunConfig.build(corpus="demo", tasks="pos,ner", paradigm="mtl")
    other = RunConfig.build(corpus="demo-both-pos", tasks="pos-a,pos-b", paradigm="mtl")
    assert "0 of the 2 cloned runs" in cloned([mtl, other])[1][0]
    corners = [mtl.with_(epochs=1, seed=1), mtl.with_(epochs=2, seed=2)]
    assert "2 of the 2 cloned runs, and 2 others." in cloned(corners)[1][0]
    spec = CATALOGUE["conll2003"]
    named = RunConfig.build(corpus=spec.name, columns=spec.columns, tasks="pos,ner")
    assert cloned([named])[0].columns is None


def test_a_link_with_what_is_not_possible_says_so() -> None:
    draft, sentences = draft_of(
        {"corpus": "demo", "tasks": "pos", "paradigm": "stl,best", "priority": "5000", "retries": "two"}
    )
    assert (draft.lists["paradigm"], draft.priority, draft.retries) == (("stl",), 0, 0)
    assert sentences == tuple(
        f"The link asks for {value}, which this form does not offer."
        for value in ("paradigm best", "priority 5000", "retries two")
    )
