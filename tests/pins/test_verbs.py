"""What every verb of `mrnlab` prints, as text and as JSON, on a filled store and on trained runs."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.pins.conftest import Call
from tests.pins.recorded import masked, pinned

READING = """
runs
runs --json
runs --state failed,lost --json
runs --filter 'paradigm:mrn lambda<0.1'
runs --filter 'lamda<0.1'
runs --archived
show 1 --log 3
show 13 --json
show 15
show 16
show 999
metrics 1
metrics 1 --json
metrics 1 score --split dev
metrics 1 score --split dev --csv
metrics 1 score --split dev --task total --json
metrics 1 height
results
results --format csv
results --format markdown
results --format latex
results --json
results --split dev
results --cost
results --cost --published --json
results 1 7 --by-label
results 1 --by-label --json
results 1 --by-label --format latex
relations 1
relations 1 --csv
relations 1 --json
relations 13
relations 1 --step 1 --json
relations 1 --step 9
relations 1 --numbers
relations 1 --numbers --json
relations 3
tag 15 'A sentence .'
queue
queue --json
study
study --json
study priors --setting apart-500 --report table
study priors --setting apart-500 --report markdown
"""
CHANGING = """
launch --corpus demo --tasks pos,ner --lambda 0.01,0.1 --seeds 1,2 --encoder-training frozen --json
launch --corpus demo --tasks pos,ner --paradigm stl --sweep single --priority 2 --retries 1
launch --corpus demo --tasks pos,ner --lambda -1
launch --corpus nowhere --tasks pos,ner
queue pause
queue drain --host elsewhere
queue --json
queue
queue undrain --host elsewhere
queue resume
priority 5 19 20
stop 19
stop --sweep single
stop 1
retry 15 16
resume 17
resume 1
archive 1 2
runs --archived --json
restore 1
keyword 3 4 --add good,old
keyword 3 --remove old
show 3 --json
delete 5 --yes
delete 18 --yes
export 1 {home}/exported
"""
TRAINED = """
runs --json
results --json
tag 3 'EU rejects German lamb .'
tag 3 'EU rejects German lamb .' --json
tag 3 --file {home}/toy/test.conll --columns tokens,pos,ner --confidence --format conll
export 3 {home}/exported --json
export 3 {home}/exported
export 2 {home}/exported2
import {home}/exported --json
import {home}/exported2 --again
backup {home}/copy.db --json
backup {home}/copy.db
"""


def _answers(call: Call, home: Path, lines: Iterable[str], *homes: Path) -> dict[str, Any]:
    """Exit code, standard output (as JSON where it is) and standard error of each command."""
    answers = {}
    for line in lines:
        result = call(home, *shlex.split(line.replace("{home}", str(home))))
        printed = masked(result.stdout, home, *homes)
        out: Any = json.loads("\n".join(printed)) if "--json" in line and printed else printed
        answers[line] = {"exit": result.exit_code, "out": out, "err": masked(result.stderr, home, *homes)}
    return answers


def test_reading_verbs(filled_home: Path, call: Call) -> None:
    pinned("verbs that read", _answers(call, filled_home, READING.strip().splitlines()))


def test_changing_verbs(filled_home: Path, call: Call, tmp_path: Path) -> None:
    home = tmp_path / "copy"
    shutil.copytree(filled_home, home)
    pinned("verbs that change", _answers(call, home, CHANGING.strip().splitlines(), filled_home))


def test_verbs_on_models(trained_home: Path, call: Call) -> None:
    pinned("verbs on models", _answers(call, trained_home, TRAINED.strip().splitlines()))


def test_plan_of_a_study(laboratory: Path, call: Call) -> None:
    line = "study priors --setting apart-500 --dry-run"
    plan = _answers(call, laboratory, [line, f"{line} --runs", f"{line} --json"])
    document = plan[f"{line} --json"]["out"]
    document["runs"] = [*document["runs"][:2], len(document["runs"])]
    pinned("verb study", plan)


def test_doctor(filled_home: Path, call: Call) -> None:
    """What depends on the machine is left out: of its facts all but the counts, and remarks on its SQLite."""
    (answer,) = _answers(call, filled_home, ["doctor --json"]).values()
    report = answer["out"]
    pinned(
        "verb doctor",
        {
            "exit": answer["exit"],
            "facts": list(report),
            "counts": [report["rows"], report["runs"], report["problems"]],
            "findings": [finding for finding in report["findings"] if "SQLite" not in finding["message"]],
        },
    )
