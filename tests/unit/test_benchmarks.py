"""Every benchmark runs with `--quick`, and its last line has the promised keys."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.benchmarks._loops import Job, ways
from tests.benchmarks.readme import scarce_data
from tests.benchmarks.training import BF16_TFLOPS
from tests.journeys.browser import BROWSERS
from tests.toys import corpus
from tests.trained import toy_config

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
KEYS = {
    "curves": "band_ms naive_ms",
    "evaluation": "evaluation_share_of_epoch",
    "formulas": "found data_sets nodes test_mse seconds cpu_seconds",
    "mrn_step": "update_speedup mrn_over_mtl",
    "on_gpu": "done failed left",
    "pages": "runs points open_s open_cpu_s live_update_ms live_update_kb relations_step_ms",
    "queue": "runs described_s queued_s stopped_s lost_s next_claimed_s",
    "reading": "words_per_s theirs_over_ours memory_per_byte largest_over_smallest",
    "sentence_labels": "both_over_words both_over_words_cpu",
    "small_runs": "new_seed_s bilstm_stages heads_stages runs_per_hour",
    "startup": "first_loss_cold_s first_loss_warm_s import_core_s encode_s encode_cached_s",
    "store_ingest": "ingest listing",
    "tagging": "runs words one_run one_frozen_encoder an_encoder_each",
    "task_embedding": "together_over_apart together_over_none",
    "training": "over_trainer over_trainer_within over_trainer_cpu over_trainer_fp32 over_published "
    "mrn_over_mtl inference_over_pipeline memory_over_trainer",
    "words": "over_flair sc_over_s words_per_s",
}
WITH_PROCESSES = {"on_gpu", "pages", "queue", "small_runs", "startup", "training"}
COMMANDS = sorted(path.stem for path in (ROOT / "tests" / "benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in WITH_PROCESSES)) for name in COMMANDS]
)
def test_quick(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "pages" and not any(map(shutil.which, BROWSERS)):
        pytest.skip("it measures Chromium, which is not installed")
    if name == "training" and importlib.util.find_spec("accelerate") is None:
        pytest.skip("Trainer needs accelerate: pip install 'mrnlab[bench]'")
    if name == "formulas" and importlib.util.find_spec("pyoperon") is None:
        pytest.skip("formulas are learned with pyoperon: pip install 'mrnlab[formulas]'")
    # Benchmarks use temporary laboratories and must ignore this store.
    monkeypatch.setenv("MRNLAB_DB", f"sqlite:///{tmp_path / 'other.db'}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # some unset it, for the processes that they start
    monkeypatch.setattr(sys, "argv", [name, "--quick"])
    importlib.import_module(f"tests.benchmarks.{name}").main()
    last = capsys.readouterr().out.splitlines()[-1]
    if name == "readme":
        assert re.search(pattern_of(last), README.read_text(encoding="utf-8"))
    else:
        assert list(json.loads(last)) == KEYS[name].split()
    assert not (tmp_path / "other.db").exists()


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
