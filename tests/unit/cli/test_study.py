"""mrnlab study: the list, the plan, a run to the end, the reports."""

from __future__ import annotations

import csv
import json
import re
from functools import partial
from pathlib import Path

import pytest

from core.corpora.loading import read
from core.studies import STUDIES
from jobs.cli import study as verb
from jobs.studies.follow import follow
from jobs.studies.progress import settings_with_runs
from tests.making import conll_folder, refuse_to_read, run_facts
from tests.studying import Workers, finished, setting, study
from tests.unit.cli.conftest import Laboratory


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registered study with two settings."""
    monkeypatch.setitem(STUDIES, "toy", study(setting("whole"), setting("half", fraction=0.5)))


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that train at once."""
    monkeypatch.setattr(verb, "follow", partial(follow, engine=Workers(), sleep=lambda _: None))


class TestDryRun:
    def test_counts_and_queues_nothing(self, lab: Laboratory) -> None:
        head, *lines, hint = lab.answer("study", "toy", "--dry-run").splitlines()
        assert head.split() == ["setting", "runs", "done", "to", "run", "time"]
        rows = [line.split() for line in lines]
        assert [row[:4] for row in rows] == [
            ["whole", "16", "0", "16"], ["half", "16", "0", "16"], ["all", "32", "0", "32"],
        ]  # fmt: skip
        assert all("unknown" in row for row in rows)  # no run of this kind has ended here
        assert hint.startswith("--runs lists every run")
        assert lab.store.runs() == []
        assert lab.started == 0

    def test_fewer(self, lab: Laboratory) -> None:
        document = lab.json("study", "toy", "--setting", "half", "--seeds", "2", "--dry-run")
        (only,) = document["settings"]
        assert (only["setting"], only["search"], only["final"]) == ("half", 6, 6)
        assert document["seconds"] is None

    @pytest.mark.parametrize("name", [name for name in STUDIES if name != "toy"])
    def test_it_reads_no_corpus_and_fits_a_terminal(
        self, lab: Laboratory, name: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refuse_to_read(monkeypatch)
        result = lab.call("study", name, "--dry-run")
        assert result.exit_code == 0
        lines = result.output.splitlines()
        assert len(lines) <= 40
        (total,) = (line.split() for line in lines if re.match("all +[0-9]", line))
        document = lab.json("study", name, "--dry-run")
        assert int(total[1]) == document["search"] + document["final"] > 0
        if name in ("simulator", "transfer"):
            assert re.search(r"\([0-9]+ settings\)", result.stdout)

    def test_of_finished_runs_the_text_is_known_without_reading(
        self, lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = conll_folder(tmp_path / "own")
        in_folder = setting("own", corpus=str(folder), columns="tokens,ner,pos")
        made = study(in_folder)
        monkeypatch.setitem(STUDIES, "toy", made)
        (setting_runs,) = settings_with_runs(made, made.settings)
        first, second, *_ = setting_runs.runs()
        text = read(str(folder), first.columns).text_hash
        for run, known in ((first, "another text"), (second, text)):
            lab.store.set_facts(finished(lab.store, run), run_facts(text_hash=known))

        def done() -> int:
            (only,) = lab.json("study", "toy", "--dry-run")["settings"]
            return int(only["done"])

        refuse_to_read(monkeypatch)
        assert done() == 1
        # What its text is now nobody knows.
        (folder / "train.conll").write_text("A X O\n")
        assert done() == 2


def test_before_any_run(lab: Laboratory) -> None:
    assert "open" in lab.answer("study", "toy", "--report", "table")
    assert lab.started == 0


@pytest.mark.usefixtures("workers")
def test_a_setting_to_the_end_and_then_the_rest(lab: Laboratory, tmp_path: Path) -> None:
    result = lab.call("study", "toy", "--setting", "whole")
    assert result.exit_code == 0
    done = "whole is done: mtl 62.00, stl 62.00 (equivalent), mrn 67.20 (higher)."
    assert done in result.stderr
    assert "half is done" not in result.stderr
    assert "Half" not in result.stdout
    mrn = [line for line in result.stdout.splitlines() if line.startswith("MRN")][-1]
    assert "λ=0.1 " in mrn
    assert " higher " in mrn
    assert len(lab.store.runs()) == 16

    markdown = lab.answer("study", "toy", "--report", "markdown").splitlines()
    assert markdown[:2] == ["## The answer", ""]
    assert markdown[2].startswith("- Whole: Against MTL, MRN (+5.20 \\[")
    assert markdown[4:9] == [
        "## One",
        "",
        "| Less MTL | whole | half |",
        "| --- | ---: | ---: |",
        "| STL | 0.00 | – |",
    ]
    assert markdown[9].startswith("| MRN | **+5.20** |")
    (mrn,) = [line for line in markdown if line.startswith("| MRN |") and "| λ=0.1 |" in line]
    assert mrn.count("|") == markdown[markdown.index("### Whole (whole)") + 2].count("|")

    folder = tmp_path / "tables"
    files = lab.answer("study", "toy", "--tables", str(folder)).splitlines()
    assert [Path(name).name for name in files] == ["toy-one.csv", "toy-whole.csv", "toy-half.csv"]
    overview, whole, _ = (
        list(csv.DictReader(Path(name).read_text(encoding="utf-8").splitlines())) for name in files
    )
    columns = ["Less MTL", "whole (points)", "whole verdict", "half"]
    assert overview[1] == dict(zip(columns, ["MRN", "+5.20", "higher", ""], strict=True))
    assert whole[0]["Method"] == "MTL"
    assert (whole[2]["pos (%)"], whole[2]["pos n"], whole[2]["Verdict"]) == ("67.20", "3", "higher")
    low, high = (float(whole[2][f"Difference {bound}"]) for bound in ("low", "high"))
    assert low < float(whole[2]["Difference (points)"]) < high

    latex = lab.answer("study", "toy", "--report", "latex").splitlines()
    assert latex[0] == r"\subsection*{The answer}"
    assert r"    MRN & \textbf{+5.20} & -- \\" in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 3

    document = json.loads(lab.call("study", "toy", "--part", "one", "--json").stdout)
    assert [setting["name"] for setting in document["settings"]] == ["whole", "half"]
    methods = {method["name"]: method for method in document["settings"][0]["families"]}
    assert methods["mrn"]["arm"] == {"paradigm": "mrn", "lambda": 0.1}
    assert methods["mrn"]["test"]["pos"]["n"] == 3
    assert methods["mrn"]["by_seed"]["mean"]["1"] == pytest.approx(0.66 + 0.001)
    difference = methods["mrn"]["differences"]["mean"]
    assert difference["verdict"] == "higher"
    assert difference["low"] < difference["mean"] < difference["high"]
    assert methods["mtl"]["differences"] == {}
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
            (("toy", "--report", "csv"), ["has no table of simulated tasks"]),
            (("transfer", "--report", "curves"), ["The study 'transfer' has no curves"]),
            (("toy", "--report", "table", "--json"), ["--report goes without --dry-run and --json"]),
            (("toy", "--report", "json", "--dry-run"), ["--report goes without --dry-run and --json"]),
            (("toy", "--runs"), ["--runs goes with --dry-run"]),
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
