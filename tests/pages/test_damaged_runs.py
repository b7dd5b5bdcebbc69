"""Runs whose description or facts cannot be read, on every page and for every verb.

Another version wrote them, or something damaged them: each costs a sentence, never a page or a list.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from core.config import RunConfig
from core.results.naming import settings_text, short_name, shortest_names
from core.store import Run, RunState, Store
from core.store.facts import read_facts
from core.store.runs import parse_config
from jobs.cli import app as program
from tests.pages.conftest import Open, page_names, problems, words
from tests.pages.filled_store import Filled

Templates = Callable[..., tuple[Path, Filled]]

FIELDS: Sequence[Mapping[str, Any]] = (
    {"encoder_training": "lora:8"},
    {"encoder": None},
    {"learn": {"task": True}},
    {"lr_encoder": {}},
    {"tasks": None},
    {"tasks": [], "paradigm": "stl"},
    {"tasks": "pos"},
    {"paradigm": "forest"},
    {"paradigm": None, "prior": 3},
    {"lambda": "much"},
    {"alignment": "as needed"},
    {"added_to": "1"},
    {"cls": 1, "self": 2},
    {"corpus": ["demo"]},
    {"seed": "one"},
    {"epochs": -3, "batch_size": None},
)
"""Values of a description that this version does not read."""
TEXTS = ("", "no JSON", "[]", "null", '{"corpus": "demo', "[" * 5000, '{"seed": 1e999}')
FACTS = ("", '{"device": "cp', "[]", "null", '{"tasks": 3}', '{"device": 1}')
_VALUES: Sequence[Any] = (None, True, -1, 0, 3, 0.5, 1e308, "", "x", "1", [], ["x"], [1, None], {}, {"a": []})
_GENERATED = 8


def _damages(draw: random.Random, texts: Iterable[str]) -> Iterator[str]:
    """Of each of these descriptions what is stored in its place."""
    known = iter(texts)
    for fields, text in zip(FIELDS, known, strict=False):
        yield json.dumps(json.loads(text) | dict(fields))
    yield from TEXTS
    for _ in range(_GENERATED):
        yield _changed(next(known), draw)


def _changed(text: str, draw: random.Random) -> str:
    """The description with some fields of other values, types or names."""
    values = json.loads(text)
    for field in draw.sample(sorted(values), draw.randint(1, 4)):
        value = draw.choice(_VALUES)
        if draw.random() < 0.2:
            del values[field]
        values[field if draw.random() < 0.8 else f"{field}s"] = value
    return json.dumps(values)


@pytest.fixture(scope="module")
def damaged_home(templates: Templates, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which most runs cannot be read, some of those that wait, train or failed too."""
    home = tmp_path_factory.mktemp("damaged") / "home"
    made, filled = templates((1, 2), True)
    shutil.copytree(made, home)
    with contextlib.closing(Store.open(f"sqlite:///{home / 'runs.db'}")) as store:
        for run_id in (*filled.finished, *filled.finished[:8]):
            store.import_record(store.record(run_id), "Once more.")
        draw = random.Random(5)
        runs = draw.sample(store.runs(archived=None), k=len(store.runs(archived=None)))
        described = runs[: len(FIELDS) + len(TEXTS) + _GENERATED]
        texts = (run.config.to_json() for run in described)
        begun = [run for run in runs[len(described) :] if run.state is RunState.SUCCEEDED]
        with store.transaction() as connection:
            for run, text in zip(described, _damages(draw, texts), strict=True):
                connection.exec_driver_sql("UPDATE runs SET config = ? WHERE id = ?", (text, run.id))
            for run, text in zip(begun, FACTS, strict=False):
                connection.exec_driver_sql("UPDATE facts SET facts = ? WHERE run_id = ?", (text, run.id))
    return home


@pytest.fixture
def damaged(damaged_home: Path, laboratory: Path) -> Sequence[Run]:
    """The runs of that store in this test's laboratory, with their facts; among them four or more that can be
    read.
    """
    for path in damaged_home.glob("runs.db*"):
        shutil.copy(path, laboratory / path.name)
    shutil.copytree(damaged_home / "logs", laboratory / "logs", dirs_exist_ok=True)
    with contextlib.closing(Store.open()) as store:
        runs = store.runs_with_facts(archived=None)
    assert len([run for run in runs if run.config_problem]) >= len(FIELDS) + len(TEXTS)
    assert len([run for run in runs if run.facts_problem]) == len(FACTS)
    assert len([run for run in runs if run.problem is None]) >= 4
    return runs


@pytest.mark.parametrize("is_chosen", [True, False], ids=["chosen", "nothing chosen"])
@pytest.mark.parametrize("page", page_names())
def test_every_page_is_there(page: str, is_chosen: bool, open_page: Open, damaged: Sequence[Run]) -> None:
    chosen = {"run": ",".join(str(run.id) for run in damaged)} if is_chosen else {}
    looks: Mapping[str, Sequence[Mapping[str, str]]] = {
        "runs": ({}, {"order": "runs"}, {"sort": "lambda"}, {"filter": "paradigm:mrn"}),
        "compare": ({}, {"closer": "per class"}, {"cost": "true"}),
    }
    for look in looks.get(page, ({},)):
        app = open_page(page, **chosen, **look)
        assert problems(app) == []
    if page == "compare" or (page == "curves" and is_chosen):
        assert "made by another version or damaged" in words(app)
    if page == "runs" and not look.get("filter"):
        assert "Made by another version" in words(app)


def test_every_run_has_a_page(open_page: Open, damaged: Sequence[Run]) -> None:
    unreadable = [run for run in damaged if run.problem is not None]
    parts = itertools.cycle(("Overview", "By label", "Configuration", "History", "Log"))
    for run, part in zip(unreadable, parts, strict=False):
        told = problems(open_page("run", id=str(run.id), run_part=part))[0]
        assert told.replace("\\", "").startswith(str(run.problem).partition(":")[0])
        assert "left out of comparisons" in told


def _verbs() -> Iterator[str]:
    """Every verb of `mrnlab`, as `queue pause`."""

    def below(command: Any, path: tuple[str, ...]) -> Iterator[str]:
        if path:
            yield " ".join(path)
        for name, inner in getattr(command, "commands", {}).items():
            yield from below(inner, (*path, name))

    return below(typer.main.get_command(program), ())


_EACH, _EVERY = "RUN", "RUNS"
"""In a call, the number of a run (the call is made for every third), and the numbers of all runs."""
READING: Mapping[str, Sequence[str]] = {
    "runs": ("", "--json", "--filter 'paradigm:mrn lambda<1'", "--state succeeded --limit 3"),
    "show": ("RUN", "RUN --json --log 2"),
    "metrics": ("RUN",),
    "results": ("", "--json --cost", "RUNS", "RUNS --split dev --format latex"),
    "compare": ("", "--json --every-row", "RUNS --split dev --format latex"),
    "appendix": ("RUNS", "RUNS --format markdown"),
    "suspects": ("RUNS --json",),
    "transfer": ("",),
    "study": ("", "--json"),
    "queue": ("", "--json"),
    "backup": ("copy.db",),
    "launch": ("--corpus demo --tasks pos,ner --reuse --dry-run",),
}
"""The verbs that must answer, however many runs cannot be read."""
OF_ONE: Mapping[str, Sequence[str]] = {
    "relations": ("RUN", "RUN --numbers", "RUN --mode embedding"),
    "tag": ("RUN 'A word .'",),
    "export": ("RUN exported",),
    "decide": ("RUN RUN --dry-run",),
    "report": ("RUNS --out report.html",),
    "import": ("exported",),
    "doctor": ("", "--json"),
    "keyword": ("RUNS --add old",),
    "priority": ("3 RUNS",),
    **dict.fromkeys(("stop", "resume", "archive", "restore"), ("RUNS",)),
    "retry": ("RUN",),
    **dict.fromkeys(("queue pause", "queue resume", "queue drain", "queue undrain"), ("",)),
}
"""The verbs that may refuse a run, in a sentence."""
ELSEWHERE = {
    "delete": "below, since nothing is left to look at after it",
    "worker": "tests/unit/worker/test_worker.py: it fails a run that it cannot read",
    "dashboard": "the pages above",
    "corpus": "tests/unit/cli/test_corpus.py: it opens no store",
    "verify": "tests/pages/test_report_files.py: it reads a report",
    "import-predictions": "tests/unit/results/test_predictions.py: it reads descriptions alone",
}


def test_every_verb_is_called() -> None:
    assert {*READING, *OF_ONE, *ELSEWHERE} == set(_verbs())


def _call(verb: str, arguments: str, ids: Sequence[int]) -> list[tuple[int, str]]:
    """The exit codes of the calls, and what was printed."""
    answers = []
    words = shlex.split(f"{verb} {arguments}")
    for run_id in ids[::3] if _EACH in words else ids[:1]:
        numbers = {_EACH: [str(run_id)], _EVERY: list(map(str, ids))}
        call = [word for part in words for word in numbers.get(part, [part])]
        result = CliRunner().invoke(program, call, catch_exceptions=False)
        answers.append((result.exit_code, result.output))
    return answers


@pytest.mark.parametrize("verb", [*READING, *OF_ONE])
def test_every_verb_answers(
    verb: str, damaged: Sequence[Run], workers: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    ids = [run.id for run in damaged if run.problem is not None or verb in READING]
    for arguments in READING.get(verb) or OF_ONE[verb]:
        for code, said in _call(verb, arguments, ids):
            assert code in ((0,) if verb in READING else (0, 1, 2)), (arguments, said)
            if code:
                assert said.strip(), arguments
    if verb in ("results", "appendix"):
        assert "made by another version or damaged" in " ".join(said.split())


def test_a_run_that_cannot_be_read_can_be_deleted(damaged: Sequence[Run], workers: list[str]) -> None:
    gone = [
        run.id for run in damaged if run.problem and run.state not in (RunState.RUNNING, RunState.CANCELLING)
    ]
    ((code, said),) = _call("delete --now", _EVERY, gone)
    assert code == 0, said
    with contextlib.closing(Store.open()) as store:
        assert not {run.id for run in store.runs(archived=None)} & set(gone)


# One place decides what can be read: it never raises, and what it gives can be shown


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_fields = st.sampled_from([*RunConfig.model_fields, "lambda", "another"])


@given(st.dictionaries(_fields, _json, max_size=6), st.booleans())
def test_any_description_can_be_shown(changed: Mapping[str, Any], is_whole: bool) -> None:
    valid: dict[str, Any] = {"corpus": "demo", "tasks": ["pos", "ner"], "seed": 2}
    valid["encoder_training"] = "frozen"
    text = json.dumps(changed if is_whole else {**valid, **changed})
    config, problem = parse_config(text)
    assert hash(config) == hash(config.model_copy())
    names = [short_name(config), settings_text(config), *shortest_names([config, RunConfig.build(**valid)])]
    assert all(names)
    assert config.values().keys() == RunConfig.build(**valid).values().keys()
    if problem is None:
        assert RunConfig.from_json(config.to_json()) == config


@given(st.text() | _json.map(json.dumps))
def test_any_text_is_read_or_told(text: str) -> None:
    config, problem = parse_config(text)
    assert problem is not None
    assert config.corpus
    facts, problem = read_facts(text)
    assert facts is None
    assert problem is not None or json.loads(text) == {}
