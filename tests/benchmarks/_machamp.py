"""MaChAmp's training, in an interpreter that has MaChAmp: `PYTHON _machamp.py FOLDER`.

Trains FOLDER/train.tsv as FOLDER/job.json says, an epoch for each line on standard input, which is answered
by a line of JSON with its seconds, without its scoring, and its dev scores. Imports nothing of MRN Lab, which
that interpreter need not have. All that the job does not say is as in `configs/params.json` of MaChAmp.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import machamp  # type: ignore[import-not-found]
import torch
import transformers
from machamp.model import trainer  # type: ignore[import-not-found]
from machamp.model.callback import Callback  # type: ignore[import-not-found]
from machamp.utils.myutils import load_json  # type: ignore[import-not-found]


class Turns(Callback):  # type: ignore[misc]
    """Waits for a line before each epoch, and answers with what it took. Saves no model."""

    def start_epoch_timer(self) -> None:
        super().start_epoch_timer()
        sys.stdin.readline()
        self.began, self.cpu_began = time.perf_counter(), time.process_time()

    def add_train_results(self, epoch: int, losses: Any, metrics: Any) -> None:
        self.took = {
            "seconds": time.perf_counter() - self.began,
            "cpu_seconds": time.process_time() - self.cpu_began,
        }
        super().add_train_results(epoch, losses, metrics)

    def end_epoch(self, cur_epoch: int, model: Any) -> None:
        dev = {}
        for task, scores in self.dev_scores[-1].items():
            if task != "sum":
                headline = scores[scores["optimization_metrics"]]
                dev[task] = headline[headline["sum"]]
        answer(self.took | {"dev": dev})
        if cur_epoch == self.num_epochs:
            raise SystemExit  # before it tags the dev sentences with the saved model


def answer(values: dict[str, Any]) -> None:
    """Print a line of JSON."""
    print("\n" + json.dumps(values), flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    parameters = load_json(str(Path(machamp.__file__).resolve().parents[1] / "configs" / "params.json"))
    parameters["transformer_model"] = job["encoder"]
    parameters["training"]["num_epochs"] = job["epochs"]
    parameters["batching"]["batch_size"] = job["batch_size"]
    tasks = {
        name: {"task_type": kind, "column_idx": column}
        for column, (name, kind) in enumerate(job["tasks"].items(), start=1)
    }
    paths = {f"{split}_data_path": str(folder / f"{split}.tsv") for split in ("train", "dev")}
    parameters_path, data_path = folder / "parameters.json", folder / "data.json"
    parameters_path.write_text(json.dumps(parameters), encoding="utf-8")
    data_path.write_text(json.dumps({"job": paths | {"word_idx": 0, "tasks": tasks}}), encoding="utf-8")
    trainer.Callback = Turns
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    answer(versions | {"threads": torch.get_num_threads()})
    trainer.train(
        "job", str(parameters_path), [str(data_path)], "cpu", seed=1, model_dir=str(folder / "model")
    )


if __name__ == "__main__":
    main()
