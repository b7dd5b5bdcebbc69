"""What cutting a planted relation costs, and an unrelated one: a record of runs, and the sentences of it.

`python -m tests.claims.cuts` trains the runs anew and writes their record: POS of the demo corpus (600 words)
beside two simulated tasks of 1,500 words, one with the labels of POS kept at 0.95, one at chance.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections import defaultdict
from pathlib import Path

from core.evaluation.comparison import LOWER, compare_paired
from core.wording import signed_points
from tests.claims.documents import Checked

RECORD = Path(__file__).parent / "data" / "cuts.csv"
DOCUMENT = Path(__file__).parents[2] / "docs" / "command-line.md"
CUTS = {"pos,sim-1": "POS and the related task", "pos,sim-2": "POS and the unrelated one"}
_CORPUS = "simulated:demo?task=pos&tasks=2&alpha=0.95,0.05&samples=1500&tokens=600"
_SEEDS = range(1, 7)


def figures() -> dict[str, tuple[str, bool]]:
    """By cut what it costs POS, in points with its interval, and whether that is decided."""
    scores: dict[str, dict[int, float]] = defaultdict(dict)
    with RECORD.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            scores[row["cut"]][int(row["seed"])] = float(row["test"])
    compared = compare_paired({cut: (scores[cut], scores[""]) for cut in CUTS})
    texts = {}
    for cut, delta in compared.items():
        low, high = delta.interval or (0.0, 0.0)
        ends = ", ".join(signed_points(-end).lstrip("+") for end in (high, low))
        texts[cut] = f"{signed_points(-delta.mean).lstrip('+')} [{ends}]", delta.verdict == LOWER
    return texts


def check_cuts() -> Checked:
    """Whether the document has these figures, and the planted relation alone costs something."""
    text = DOCUMENT.read_text(encoding="utf-8")
    (planted, is_lower), (unrelated, no_lower) = (figures()[cut] for cut in CUTS)
    wrong = [f"command-line.md has no “{figure}”" for figure in (planted, unrelated) if figure not in text]
    if not is_lower or no_lower:
        wrong.append("cutting the related task costs POS, cutting the unrelated one does not")
    return Checked(6, 0, 0, tuple(wrong))


def main() -> None:
    """Trains the runs in a store of their own and writes the record."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["MRNLAB_HOME"] = home
        os.environ.pop("MRNLAB_DB", None)
        import core
        from core.results.cuts import cut_configs

        lab = core.Laboratory()
        rows = []
        for seed in _SEEDS:
            config = core.describe(
                _CORPUS,
                tasks=("pos", "sim-1", "sim-2"),
                encoder_training="frozen",
                epochs=10,
                paradigm="mrn",
                alignment="exact",
                lambda_=0.01,
                seed=seed,
            )
            run = core.train(config, lab=lab, progress=False)
            trained = {"": run.id}
            for cut in CUTS:
                alignment = cut_configs(lab.store, run.id, cut)[1][0].alignment
                trained[cut] = core.train(config.with_(alignment=alignment), lab=lab, progress=False).id
            for cut, number in trained.items():
                by_split = {split: lab.store.scores([number], split)[0].score for split in ("dev", "test")}
                rows.append((cut, seed, by_split["dev"], by_split["test"]))
        write(rows)


def write(rows: list[tuple[str, int, float, float]]) -> None:
    """Writes the record."""
    with RECORD.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("cut", "seed", "dev", "test"))
        writer.writerows((cut, seed, f"{dev:.6f}", f"{test:.6f}") for cut, seed, dev, test in rows)


if __name__ == "__main__":
    main()
