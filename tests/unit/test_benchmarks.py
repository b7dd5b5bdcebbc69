"""Every benchmark runs with `--quick`, and its last line has the promised keys.

Tests with `gpu` in their name also run on a machine without a browser and without the dashboard's packages:
this module must not import those at its top.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from packaging.requirements import Requirement

from tests.benchmarks import on_gpu
from tests.benchmarks._loops import Job, ways
from tests.benchmarks.readme import scarce_data
from tests.benchmarks.training import BF16_TFLOPS
from tests.toys import corpus
from tests.trained import toy_config

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
KEYS = {
    "curves": "band_ms naive_ms",
    "evaluation": "evaluation_share_of_epoch",
    "formulas": "found data_sets nodes test_mse seconds cpu_seconds",
    "machamp": "epoch_s over_crf dev",
    "balancing": "over_none",
    "mrn_step": "update_speedup mrn_over_mtl",
    "on_gpu": "done failed left",
    "pages": "runs points open_s open_cpu_s live_update_ms live_update_kb relations_step_ms",
    "queue": "runs described_s queued_s stopped_s lost_s next_claimed_s",
    "reading": "words_per_s theirs_over_ours memory_per_byte largest_over_smallest",
    "sentence_labels": "both_over_words both_over_words_cpu",
    "small_runs --runs-per-gpu 1": "runs_per_hour",
    "small_runs --kinds heads": "new_seed_s heads_stages runs_per_hour",
    "startup": "first_loss_cold_s first_loss_warm_s import_core_s encode_s encode_cached_s",
    "store_ingest": "ingest listing",
    "tagging": "runs words one_run one_frozen_encoder an_encoder_each",
    "suspects": "pos_planted pos_precision pos_sd pos_contradicted chunk_planted chunk_precision chunk_sd "
    "chunk_contradicted ner_planted ner_precision ner_sd ner_contradicted pos_cleanlab",
    "task_embedding": "together_over_apart together_over_none",
    "training --only tagging": "inference_over_pipeline",
    "training --only training": "over_trainer over_trainer_within over_trainer_cpu over_trainer_fp32 "
    "over_published mrn_over_mtl memory_over_trainer",
    "walks": "own_s",
    "where": "pos_s pos_cpu_s chunk_s chunk_cpu_s ner_s ner_cpu_s",
    "words": "over_flair sc_over_s words_per_s",
}
"""By the benchmark and its arguments after `--quick`."""
WITH_PROCESSES = {"machamp", "on_gpu", "pages", "queue", "small_runs", "startup", "training", "walks"}
CALLS = sorted([*KEYS, "readme"])
NOT_ON_GPU_MACHINE = ("playwright", "plotly", "streamlit", "truecase")


def test_every_benchmark_is_called() -> None:
    files = (ROOT / "tests" / "benchmarks").glob("[!_]*.py")
    assert {call.split()[0] for call in CALLS} == {path.stem for path in files}


@pytest.mark.parametrize(
    "call",
    [pytest.param(call, marks=[pytest.mark.slow] * (call.split()[0] in WITH_PROCESSES)) for call in CALLS],
)
def test_quick(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *words = call.split()
    if name in ("pages", "walks"):
        from tests.journeys.browser import BROWSERS

        if not any(map(shutil.which, BROWSERS)):
            pytest.skip("it drives Chromium, which is not installed")
    if name == "training" and importlib.util.find_spec("accelerate") is None:
        pytest.skip("Trainer needs accelerate: pip install 'mrnlab[bench]'")
    if name == "balancing" and importlib.util.find_spec("torchjd") is None:
        pytest.skip("gradients are combined with TorchJD: pip install 'mrnlab[balancing]'")
    if name == "formulas" and importlib.util.find_spec("pyoperon") is None:
        pytest.skip("formulas are learned with pyoperon: pip install 'mrnlab[formulas]'")
    if name == "on_gpu":
        use_bare_parts(tmp_path, monkeypatch)
    # Benchmarks use temporary laboratories and must ignore this store.
    monkeypatch.setenv("MRNLAB_DB", f"sqlite:///{tmp_path / 'other.db'}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # some unset it, for the processes that they start
    monkeypatch.setattr(sys, "argv", [name, "--quick", *words])
    importlib.import_module(f"tests.benchmarks.{name}").main()
    last = capsys.readouterr().out.splitlines()[-1]
    if name == "readme":
        assert re.search(pattern_of(last), README.read_text(encoding="utf-8"))
    else:
        assert list(json.loads(last)) == KEYS[call].split()
    if name == "on_gpu":
        assert json.loads(last) == {"done": ["tests", "table-3"], "failed": [], "left": []}
    assert not (tmp_path / "other.db").exists()


def use_bare_parts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the parts of `on_gpu` that no other call of `test_quick` runs, without what a bare machine lacks.

    Both parts of tests are one: their tests are collected, with the benchmarks' modules as plugins, so that
    all that the parts import is imported.
    """
    for module in NOT_ON_GPU_MACHINE:
        (folder / f"{module}.py").write_text(f"raise ModuleNotFoundError('no {module} here')")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(ROOT)]))
    called = {
        f"-m tests.benchmarks.{name} --quick {' '.join(words)}".strip()
        for name, *words in map(str.split, CALLS)
    }
    parts = on_gpu.parts

    def bare_parts(args: Namespace) -> dict[str, on_gpu.Part]:
        left = {name: part for name, part in parts(args).items() if " ".join(part.quick) not in called}
        tests, (*_, resuming, _k, _gpu) = left["tests"], left.pop("resume").quick
        modules = ("_published", "_trainer", "mrn_step", "small_runs", "tagging", "training")
        imported = [word for module in modules for word in ("-p", f"tests.benchmarks.{module}")]
        collected = (*tests.command, "-n", "0", resuming, "--collect-only", *imported)
        return left | {"tests": on_gpu.Part(tests.command, collected, tests.limit_s)}

    monkeypatch.setattr(on_gpu, "parts", bare_parts)


class TestOnGpu:
    """The script that runs everything on a GPU, with parts that take no time."""

    @pytest.fixture
    def measured(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[..., dict[str, list[str]]]:
        log = tmp_path / "log"

        def measured(code: str, **changes: Any) -> dict[str, list[str]]:
            """The parts `first` and `second`; `code` is the first one's, and the second notes that it ran."""
            noted = f"open({str(log)!r}, 'a').write('ran '); print('{{\"figure\": 1}}')"
            commands = {"first": ("-c", code), "second": ("-c", noted)}
            made = {name: on_gpu.Part(words, words, 60.0) for name, words in commands.items()}
            monkeypatch.setattr(on_gpu, "parts", lambda _args: made)
            given = {"part": [], "skip": [], "minutes": 5.0, "quick": True, "device": "cpu", "packed": None}
            return on_gpu.measure(Namespace(out=tmp_path, encoder="minilm", **given | changes))

        return measured

    def test_a_part_that_fails_stops_no_other_and_is_run_again(
        self, measured: Callable[..., dict[str, list[str]]], tmp_path: Path
    ) -> None:
        assert measured("raise SystemExit('no kernel')") == {
            "done": ["second"],
            "failed": ["first"],
            "left": [],
        }
        failed, done = (json.loads((tmp_path / f"{part}.json").read_text()) for part in ("first", "second"))
        assert (failed["error"], failed["output"]) == ("exit code 1", ["no kernel"])
        assert (done["figures"], "error" in done) == ([{"figure": 1}], False)
        assert measured("pass") == {"done": ["first", "second"], "failed": [], "left": []}
        assert (tmp_path / "log").read_text() == "ran "

    def test_no_part_begins_when_the_time_is_up(
        self, measured: Callable[..., dict[str, list[str]]], tmp_path: Path
    ) -> None:
        assert measured("pass", minutes=0, skip=["first"]) == {"done": [], "failed": [], "left": ["second"]}
        assert list(tmp_path.glob("*.json")) == []

    def test_its_wheels_are_versions_that_the_project_takes(self) -> None:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        ranges = {(known := Requirement(text)).name: known.specifier for text in project["dependencies"]}
        lines = Path(on_gpu.__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
        versions = dict(line.split("==") for line in lines if not line.startswith("#"))
        assert {"pydantic", "sqlalchemy", "datasets", "seqeval"} <= set(versions) & set(ranges)
        assert [
            name for name, version in versions.items() if name in ranges and version not in ranges[name]
        ] == []


def test_a_partly_trained_encoder_is_measured_beside_a_whole_one(tmp_path: Path) -> None:
    """The others, and MRN Lab as `full`, train the whole encoder at its rates."""
    config = toy_config(tmp_path, encoder_training="top:1")
    job = Job(config, corpus(), ())
    trained = {name: given.config for name, (_, given) in ways(job).items()}
    assert {name for name, given in trained.items() if given.top_layer_count} == {"mtl", "mrn"}
    whole = config.with_(encoder_training="full", lr_encoder=None, lr_heads=None)
    assert trained["full"] == trained["trainer"] == whole
    assert set(ways(Job(trained["full"], corpus(), ()))) == set(trained) - {"full"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("training", ["full", "frozen", "top:1"])
def test_training_on_a_gpu_has_figures_of_the_gpu(training: str) -> None:
    """In bfloat16. The fraction of its peak where that is known."""
    command = ["tests.benchmarks.training", "--quick", "--device", "cuda"]
    for setting in (f"encoder_training={training}", "precision=bf16"):
        command += ["--set", setting]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    _, measured, *_ = map(json.loads, done.stdout.splitlines())
    figures = measured["variants"]["mtl"]
    assert (figures["precision"], figures["peak_mb_on_gpu"] >= 0) == ("bf16", True)
    known = torch.cuda.get_device_name().startswith(tuple(BF16_TFLOPS))
    assert (figures["mfu"] is not None) == known


_FIGURE = r"\d+\.\d+"
_TOLERANCE = 1.0
"""Points: bfloat16 and another BLAS change a few words in a thousand."""


def pattern_of(sentence: str) -> str:
    """Matches that sentence with any figures, broken into lines anywhere."""
    words = [re.escape(part).replace(r"\ ", r"\s+") for part in re.split(_FIGURE, sentence)]
    return f"({_FIGURE})".join(words)


@pytest.mark.slow
def test_readme_has_the_figures_of_now() -> None:
    sentence = scarce_data()
    printed = re.search(pattern_of(sentence), README.read_text(encoding="utf-8"))
    assert printed is not None, f"README does not say: {sentence}"
    assert [float(figure) for figure in re.findall(_FIGURE, sentence)] == pytest.approx(
        [float(figure) for figure in printed.groups()], abs=_TOLERANCE
    )
