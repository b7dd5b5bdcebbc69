"""mrnlab verify --export: the figures of a report recomputed from exported runs, without their store."""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from core.report import ReportAsked, make_report
from core.store import Store
from jobs.cli import app
from jobs.exchange import export_run
from tests.trained import UNTAUGHT, toy_config, train_runs

_PARTS = ("answer", "table", "forest")


@dataclass(frozen=True)
class Sent:
    """A report, and the exports of its runs: one of MTL and one of MRN."""

    file: Path
    exports: tuple[Path, Path]


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    """What someone without the laboratory has got; the laboratory is gone."""
    home, mail = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("mail")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRNLAB_HOME", str(home))
        with contextlib.closing(Store.open()) as store:
            configs = [toy_config(home, paradigm=name, seed=1, **UNTAUGHT) for name in ("mtl", "mrn")]
            runs = train_runs(store, configs)
            report = make_report(ReportAsked(store.url, tuple(runs), parts=_PARTS))
            mtl, mrn = (export_run(store, run, mail / str(run)).folder for run in runs)
    (mail / "report.html").write_text(report.html, encoding="utf-8")
    shutil.rmtree(home)
    return Sent(mail / "report.html", (mtl, mrn))


def verified(file: Path, *exports: Path) -> Result:
    """The call on these exports."""
    options = [word for folder in exports for word in ("--export", str(folder))]
    return CliRunner().invoke(app, ["verify", str(file), *options], catch_exceptions=False)


def test_exports_give_the_figures_of_the_report(sent: Sent) -> None:
    done = verified(sent.file, *sent.exports)
    assert done.exit_code == 0, done.output
    assert re.search(r"All \d+ cells of its tables, and the answer, are as the runs give them", done.stdout)
    assert "from 2 runs" in done.stderr


def test_a_changed_figure_is_named(sent: Sent, tmp_path: Path) -> None:
    text = sent.file.read_text(encoding="utf-8")
    shown = re.search(r"<td class=right>(\d+\.\d\d)", text)
    assert shown is not None
    changed = tmp_path / "changed.html"
    changed.write_text(text.replace(shown[0], "<td class=right>99.99", 1), encoding="utf-8")
    done = verified(changed, *sent.exports)
    assert done.exit_code == 1
    assert f"'{shown[1]}' here, '99.99' in the report" in done.stdout


def test_a_run_without_its_export_is_named(sent: Sent) -> None:
    done = verified(sent.file, sent.exports[0])
    assert done.exit_code == 1
    assert "1 run of the report, by its numbers run 2, is not among these exports" in done.stdout


def test_an_export_with_other_scores_is_not_that_run(sent: Sent, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(sent.exports[1], other)
    scores = pq.read_table(other / "scores.parquet")
    place, values = scores.schema.get_field_index("score"), pa.array([0.75] * len(scores))
    pq.write_table(scores.set_column(place, "score", values), other / "scores.parquet")
    done = verified(sent.file, sent.exports[0], other)
    assert done.exit_code == 1
    assert "run 2, is not among these exports with the same description and scores" in done.stdout
    alone = verified(sent.file, other)
    assert alone.exit_code == 2
    assert "None of the report's runs is among these exports" in alone.stderr


def test_a_folder_that_is_no_export_is_refused(sent: Sent, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        done = verified(sent.file, sent.exports[0], folder)
        assert done.exit_code == 2
        assert f"{folder} is not a folder that `mrnlab export` wrote: it has no run.json." in done.stderr
