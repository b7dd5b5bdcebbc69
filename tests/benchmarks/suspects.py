"""How many of the gold suspects are wrong labels that were planted, beside cleanlab's ranking of one model.

    python -m tests.benchmarks.suspects

2% of the labels of the demo corpus's test sentences are made wrong: words get another label of `pos`, spans
of `chunk` and `ner` another type or none. MTL and MRN are trained with five seeds on the training sentences,
which are right. Precision is that of as many first suspects as labels were planted, mean and SD over ten
plantings in the test sentences of these runs. `contradicted` is the share of planted labels that all runs
contradict alike. cleanlab ranks the words of `pos` by self-confidence from the probabilities of the first
run, for the first planting. Prints JSON; the last line has the
precisions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

import core
from core.corpora import load
from core.corpora.types import Corpus
from core.evaluation.mistakes import Labels
from core.events import SplitResult
from core.tasks.spans import spans
from tests.benchmarks._harness import arguments, laboratory, print_json
from tests.making import finished

_SHARE = 0.02
_TASKS = ("pos", "chunk", "ner")
Place = tuple[int, int]
"""A sentence and the first word of what was planted in it."""


def planted(corpus: Corpus, seed: int) -> tuple[dict[str, list[list[str]]], dict[str, set[Place]]]:
    """The labels of the test sentences by task, with wrong ones, and their places."""
    random = np.random.default_rng(seed)
    labels = {task: [list(sentence.labels[task]) for sentence in corpus.test] for task in _TASKS}
    places: dict[str, set[Place]] = {}
    for task in _TASKS:
        rows = labels[task]
        if task == "pos":
            units = [(number, at, at + 1) for number, row in enumerate(rows) for at in range(len(row))]
        else:
            units = [(number, span.start, span.end) for number, row in enumerate(rows) for span in spans(row)]
        names = sorted({label.partition("-")[2] or label for row in rows for label in row})
        chosen = random.choice(len(units), round(_SHARE * len(units)), replace=False)
        for index in sorted(chosen.tolist()):
            number, start, end = units[index]
            now = rows[number][start].partition("-")[2] or rows[number][start]
            wrong = str(random.choice([name for name in names if name != now]))
            if task != "pos" and wrong != "O":
                rows[number][start:end] = [f"B-{wrong}", *[f"I-{wrong}"] * (end - start - 1)]
            else:
                rows[number][start:end] = [wrong] * (end - start)
        places[task] = {units[index][:2] for index in chosen}
    return labels, places


def write_folder(corpus: Corpus, test: dict[str, list[list[str]]], folder: Path) -> str:
    """The corpus as a folder of CoNLL files, with these labels of the test sentences."""
    folder.mkdir()
    for split in ("train", "dev", "test"):
        blocks = []
        for number, sentence in enumerate(corpus.split(split)):
            columns = [test[task][number] if split == "test" else sentence.labels[task] for task in _TASKS]
            blocks.append("\n".join(map(" ".join, zip(sentence.tokens, *columns, strict=True))))
        (folder / f"{split}.conll").write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return str(folder)


def cleanlab_precision(
    run: core.StoredRun, corpus: Corpus, gold: list[list[str]], wrong: set[Place]
) -> float:
    """The share of planted labels among as many first words by cleanlab's self-confidence."""
    from cleanlab.rank import get_label_quality_scores

    probabilities, labels, places = [], [], []
    names = sorted(corpus.task("pos").inventory or corpus.task("pos").labels)
    number_of = {name: number for number, name in enumerate(names)}
    tagged = run._tagger.tag([list(sentence.tokens) for sentence in corpus.test], top=len(names))
    for number, sentence in enumerate(tagged):
        for at, tag in enumerate(sentence.tags["pos"]):
            row = np.zeros(len(names))
            for name, share in tag.alternatives:
                row[number_of[name]] = share
            probabilities.append(row / row.sum())
            labels.append(number_of[gold[number][at]])
            places.append((number, at))
    scores = get_label_quality_scores(
        np.array(labels), np.stack(probabilities), method="self_confidence", adjust_pred_probs=False
    )
    first = np.argsort(scores, kind="stable")[: len(wrong)]
    return float(np.mean([places[index] in wrong for index in first]))


def _as_scored(
    lab: core.Laboratory,
    run_id: int,
    folder: str,
    gold: dict[str, list[list[str]]],
    predicted: Mapping[str, Mapping[str, tuple[Labels, Labels]]],
) -> int:
    """A run with the predictions of another, on test sentences with these labels."""
    results = []
    for split, of_split in predicted.items():
        guesses = {task: guess for task, (_, guess) in of_split.items()}
        annotated = {task: gold[task] if split == "test" else true for task, (true, _) in of_split.items()}
        results.append(SplitResult(split, 1, (), guesses, annotated))
    return finished(lab.store, lab.store.run(run_id).config.with_(corpus=folder), *results)


def main() -> None:
    args = arguments(__doc__).parse_args()
    corpus = load("demo?train=50" if args.quick else "demo")
    if args.quick:
        corpus = replace(corpus, dev=corpus.dev[:20], test=corpus.test[:60])
    seeds, epochs, plantings = ((1, 2), 1, 2) if args.quick else ((1, 2, 3, 4, 5), 8, 10)
    with laboratory() as home:
        labels, places = planted(corpus, 1)
        folder = write_folder(corpus, labels, home / "planted")
        lab = core.Laboratory()
        runs = [
            core.train(
                core.describe(
                    folder,
                    columns="tokens,pos,chunk,ner",
                    tasks=_TASKS,
                    paradigm=paradigm,
                    encoder_training="frozen",
                    epochs=epochs,
                    seed=seed,
                ),
                lab=lab,
                progress=False,
            )
            for seed in seeds
            for paradigm in ("mtl", "mrn")
        ]
        figures: dict[str, float | int] = {}
        predicted = [
            {split: lab.store.predictions(run.id, split) for split in ("dev", "test")} for run in runs
        ]
        planting = {1: (folder, labels, places)}
        for number in range(2, plantings + 1):
            again, where = planted(corpus, number)
            planting[number] = write_folder(corpus, again, home / f"planted-{number}"), again, where
        precision: dict[str, list[float]] = {task: [] for task in _TASKS}
        contradicted: dict[str, list[float]] = {task: [] for task in _TASKS}
        for number, (corpus_folder, wrong, where) in planting.items():
            ids = [run.id for run in runs]
            if number > 1:
                ids = [
                    _as_scored(lab, run.id, corpus_folder, wrong, of_run)
                    for run, of_run in zip(runs, predicted, strict=True)
                ]
            for task in _TASKS:
                ranked = lab.suspects(ids, task, agree=0.51)
                at = zip(ranked["sentence"], ranked["start"], strict=True)
                is_planted = np.array([place in where[task] for place in at], dtype=bool)
                count = len(where[task])
                precision[task].append(float(is_planted[:count].sum()) / count)
                by_all = ranked["agree"].to_numpy() == 1
                contradicted[task].append(float((by_all & is_planted).sum()) / count)
        for task in _TASKS:
            figures[f"{task}_planted"] = len(places[task])
            figures[f"{task}_precision"] = round(float(np.mean(precision[task])), 3)
            figures[f"{task}_sd"] = round(float(np.std(precision[task], ddof=1)), 3)
            figures[f"{task}_contradicted"] = round(float(np.mean(contradicted[task])), 3)
        print_json({"scores": lab.results()[["configuration", "task", "mean"]].to_dict("records")})
        figures["pos_cleanlab"] = round(cleanlab_precision(runs[0], corpus, labels["pos"], places["pos"]), 3)
    print_json(figures)


if __name__ == "__main__":
    main()
