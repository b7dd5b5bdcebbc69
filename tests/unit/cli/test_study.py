"""mrnlab study: the list, the plan, a run to the end, the reports."""

from __future__ import annotations

import json
from functools import partial

import pytest

from core.studies import STUDIES
from jobs.cli import study as verb
from jobs.studies import follow
from tests.studying import Workers, setting, study
from tests.unit.cli.conftest import Laboratory


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registered study with two settings."""
    monkeypatch.setitem(STUDIES, "toy", study(setting("whole"), setting("half", fraction=0.5)))


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that train at once."""
    monkeypatch.setattr(verb, "follow", partial(follow, engine=Workers(), sleep=lambda _: None))


def test_the_list(lab: Laboratory) -> None:
    assert "toy" in lab.answer("study")
    assert {"name": "toy", "question": "Does it work?"} in lab.json("study")


class TestDryRun:
    def test_counts_and_queues_nothing(self, lab: Laboratory) -> None:
        lines = lab.answer("study", "toy", "--dry-run").splitlines()
        rows = [line.split() for line in lines[-3:]]
        assert [row[:3] for row in rows] == [
            ["whole", "6", "10"], ["half", "6", "10"], ["all", "12", "20"],
        ]  # fmt: skip
        assert all("about" in row for row in rows)
        assert lab.store.runs() == []
        assert lab.started == 0

    def test_fewer(self, lab: Laboratory) -> None:
        document = lab.json("study", "toy", "--setting", "half", "--seeds", "2", "--dry-run")
        (only,) = document["settings"]
        assert (only["setting"], only["search"], only["final"]) == ("half", 6, 6)
        assert document["seconds"] > 0


def test_before_any_run(lab: Laboratory) -> None:
    assert "open" in lab.answer("study", "toy", "--report", "table")
    assert lab.started == 0


@pytest.mark.usefixtures("workers")
def test_a_setting_to_the_end_and_then_the_rest(lab: Laboratory) -> None:
    result = lab.call("study", "toy", "--setting", "whole")
    assert result.exit_code == 0
    done = "whole is done: mtl 62.00%, stl 62.00% (negligible), mrn 67.20% (higher)."
    assert done in result.stderr
    assert "half is done" not in result.stderr
    assert "Half" not in result.stdout
    mrn = [line for line in result.stdout.splitlines() if line.startswith("MRN")][-1]
    assert "λ=0.1 " in mrn
    assert mrn.endswith("higher")
    assert len(lab.store.runs()) == 16

    markdown = lab.answer("study", "toy", "--report", "markdown").splitlines()
    assert markdown[:2] == ["## The answer", ""]
    assert markdown[2].startswith("- Whole: Against MTL, MRN (+5.20 [")
    assert markdown[4:9] == [
        "## One",
        "",
        "| less MTL | whole | half |",
        "| --- | ---: | ---: |",
        "| STL | 0.00 | – |",
    ]
    assert markdown[9].startswith("| MRN | **+5.20** |")
    (mrn,) = [line for line in markdown if line.startswith("| MRN | λ=0.1 ")]
    assert mrn.count("|") == markdown[markdown.index("### Whole (`whole`)") + 2].count("|")

    document = json.loads(lab.call("study", "toy", "--part", "one", "--json").stdout)
    assert [setting["name"] for setting in document["settings"]] == ["whole", "half"]
    families = {family["name"]: family for family in document["settings"][0]["families"]}
    assert families["mrn"]["arm"] == {"paradigm": "mrn", "lambda": 0.1}
    assert families["mrn"]["test"]["pos"]["n"] == 3
    assert families["mrn"]["by_seed"]["mean"]["1"] == pytest.approx(0.66 + 0.001)
    difference = families["mrn"]["differences"]["mean"]
    assert difference["verdict"] == "higher"
    assert difference["low"] < difference["mean"] < difference["high"]
    assert families["mtl"]["differences"] == {}
    assert json.loads(lab.answer("study", "toy", "--report", "json")) == document

    plan = lab.json("study", "toy", "--dry-run")
    assert (plan["search"], plan["final"]) == (0, 0)


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (("letters",), ["letters", "priors"]),
            (("toy", "--part", "one,two"), ["part", "two", "one"]),
            (("toy", "--encoder", "minilm"), ["toy", "--encoder"]),
            (("dissertation", "--encoder", "minilm+bilstm"), ["name minilm without +bilstm"]),
            (("toy", "--setting", "whole,third"), ["third", "whole, half"]),
        ],
    )
    def test_in_one_sentence(self, lab: Laboratory, arguments: tuple[str, ...], words: list[str]) -> None:
        sentence = lab.refusal("study", *arguments)
        assert all(word in sentence for word in words)

    def test_ctrl_c(self, lab: Laboratory, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(_seconds: float) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(verb, "follow", partial(follow, engine=Workers(at_once=0), sleep=interrupt))
        result = lab.call("study", "toy")
        assert result.exit_code == 130
        assert "the same command goes on" in result.stderr
        assert lab.store.runs()
