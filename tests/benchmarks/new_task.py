"""What a task gains from heads that are trained already: few sentences of it, over frozen states of MiniLM.

`python -m tests.benchmarks.new_task --sentences 10,50 --draws 10 --out scores.jsonl` adds a line for each
draw that the file lacks; `--report scores.jsonl` prints the tables of docs/studies/new-task.md. It needs the
four corpora of words under `MRNLAB_DATA`.

Every method is a linear head whose weights and biases solve

    min  − Σ ln p(label | word) + λ · 3 D / 2 · |W − M|²

exactly, by L-BFGS, so that methods differ in M alone and not in how long they train. λ is chosen for all
methods by one rule: the best log-loss in three folds of the new sentences. Test sentences choose nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from core.corpora.loading import read
from core.encoding.batches import IGNORED, Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import load_tokenizer
from core.evaluation.statistics import paired_difference, summary
from core.models.encoders.transformer import load_transformer
from core.models.sources import locate
from core.mrn.alignments import align
from core.mrn.new_task import fit_weights, links, soft_counts
from core.paths import cache_dir, written_whole
from core.tasks import score_task
from core.training.added import NAMES_AGREE, share_of_names
from tests.benchmarks._harness import arguments, laboratory, print_json

BASE, NEW, TEST = 400, 600, 400
"""Sentences that each trained head has seen, those that new ones are drawn from, and test ones, at most."""
LAMBDAS = (1e-3, 3e-3, 1e-2, 3e-2)
FOLDS, FIRST_SEED = 3, 1001
DEFAULT = 5e-3  # that of the prior `predicted`
NEAREST = "copy + ridge"

Task = tuple[str, str]


@dataclass(frozen=True)
class Setting:
    """A task that is new and those that are trained, each with its corpus."""

    title: str
    new: Task
    trained: tuple[Task, ...]


SETTINGS = {
    "xpos": Setting(
        "XPOS of web reviews beside POS of two news corpora (one tag set)",
        ("streusle", "xpos"),
        (("conll2000", "pos"), ("conll2003", "pos")),
    ),
    "upos": Setting(
        "UPOS of LinES beside UPOS of web reviews and POS of two news corpora",
        ("ud-lines", "upos"),
        (("streusle", "upos"), ("conll2000", "pos"), ("conll2003", "pos")),
    ),
    "other-tags": Setting(
        "UPOS of web reviews beside POS of two news corpora (no name in common)",
        ("streusle", "upos"),
        (("conll2000", "pos"), ("conll2003", "pos")),
    ),
    "chunk": Setting(
        "Chunks of CoNLL-2000 beside chunks, POS and NER of CoNLL-2003",
        ("conll2000", "chunk"),
        (("conll2003", "chunk"), ("conll2003", "pos"), ("conll2003", "ner")),
    ),
    "demo": Setting(
        "Chunks beside POS of the demo corpus, to see whether it runs",
        ("demo?train=40&test=20", "chunk"),
        (("demo?train=40&test=20", "pos"),),
    ),
    "ner": Setting(
        "NER of CoNLL-2003 beside chunks and POS of CoNLL-2000 and supersenses",
        ("conll2003", "ner"),
        (("conll2000", "chunk"), ("conll2000", "pos"), ("streusle", "supersense")),
    ),
}


@dataclass(frozen=True)
class Words:
    """The words of some sentences: states with a 1 as last feature (n, D + 1), labels by task and sentence,
    and the sentence of each word (n,).
    """

    states: Tensor
    labels: Mapping[str, Sequence[Sequence[str]]]
    sentence: Tensor

    def of(self, sentences: Sequence[int]) -> Words:
        """Those of these sentences, numbered anew."""
        rows = [torch.nonzero(self.sentence == each)[:, 0] for each in sentences]
        labels = {task: [column[each] for each in sentences] for task, column in self.labels.items()}
        number = torch.repeat_interleave(torch.arange(len(rows)), torch.tensor(list(map(len, rows))))
        return Words(self.states[torch.cat(rows)], labels, number)

    def numbers(self, task: str, labels: Sequence[str]) -> Tensor:
        """Label numbers (n,), −1 for a label that is not among these."""
        place = {label: number for number, label in enumerate(labels)}
        return torch.tensor([place.get(label, -1) for label in chain.from_iterable(self.labels[task])])


@cache
def words_of(corpus: str, split: str, most: int) -> Words:
    """So many sentences, drawn with seed 0. Their states are kept in the laboratory's cache."""
    sentences = read(corpus).split(split)  # type: ignore[arg-type]
    order = np.random.default_rng(0).permutation(len(sentences))[:most]
    drawn = [sentences[place] for place in order]
    path = cache_dir("features") / f"new-task-{corpus}-{split}-{most}.npy"
    if not path.exists():
        tokenizer, encoder = load_tokenizer(locate("minilm")), load_transformer("minilm", half=False).eval()
        text = encode([sentence.tokens for sentence in drawn], tokenizer, 256)
        states = np.zeros((len(text.firsts), encoder.features), dtype=np.float32)
        blank = np.full((len(states), 0), IGNORED, dtype=np.int64)
        with torch.no_grad():
            for batch in Batches(text, blank, 1, tokenizer.pad).by_length(2048):
                states[batch.words.numpy()] = encoder.words(batch).numpy()
        with written_whole(path, states.nbytes, "The states") as beside:
            np.save(beside, states)
    states = np.load(path)
    lengths = torch.tensor([len(sentence.tokens) for sentence in drawn])
    tasks = [task for task in drawn[0].labels if all(task in sentence.labels for sentence in drawn)]
    return Words(
        torch.from_numpy(np.hstack([states, np.ones((len(states), 1), dtype=np.float32)])),
        {task: [sentence.labels[task] for sentence in drawn] for task in tasks},
        torch.repeat_interleave(torch.arange(len(drawn)), lengths),
    )


def fit(
    states: Tensor, labels: Tensor, centres: Tensor, lambdas: Sequence[float], masks: Tensor, steps: int = 60
) -> Tensor:
    """Heads (K, C, D) of K problems over the same words, each with its λ and its share of the words (K, n):
    L-BFGS on all at once, in coordinates that the states' second moments whiten.
    """
    strengths = torch.tensor([value * 1.5 * (states.shape[1] - 1) for value in lambdas])
    values, vectors = torch.linalg.eigh((states.T @ states).double())
    turned = states @ vectors.float()
    moments = values.clamp_min(0).float()[None] * masks.mean(dim=1)[:, None]
    scale = (moments / 4 + 2 * strengths[:, None]).rsqrt()[:, None]
    offset = states @ centres.T
    gold = torch.nn.functional.one_hot(labels, len(centres)).float()

    def loss(whole: Tensor) -> tuple[Tensor, Tensor]:
        heads = whole.view(len(masks), len(centres), -1) * scale
        logits = torch.matmul(turned, heads.transpose(1, 2)) + offset
        lost = ((logits.logsumexp(dim=2) - (logits * gold).sum(dim=2)) * masks).sum(dim=1)
        errors = (logits.softmax(dim=2) - gold) * masks[:, :, None]
        slope = torch.matmul(errors.transpose(1, 2), turned) + 2 * strengths[:, None, None] * heads
        return lost + strengths * heads.square().sum(dim=(1, 2)), (slope * scale).flatten(1)

    at = torch.zeros(len(masks), gold.shape[1] * states.shape[1])
    value, slope = loss(at)
    history: list[tuple[Tensor, Tensor, Tensor]] = []
    for _ in range(steps):
        direction, shares = -slope, []
        for moved, changed, weight in reversed(history):
            shares.append(weight * (moved * direction).sum(dim=1))
            direction = direction - shares[-1][:, None] * changed
        if history:
            moved, changed, _ = history[-1]
            size = (moved * changed).sum(dim=1) / changed.square().sum(dim=1).clamp_min(1e-20)
            direction = direction * size[:, None]
        for (moved, changed, weight), share in zip(history, reversed(shares), strict=True):
            direction = direction + (share - weight * (changed * direction).sum(dim=1))[:, None] * moved
        falls = (direction * slope).sum(dim=1)
        direction = torch.where((falls < 0)[:, None], direction, -slope)
        falls, step = (direction * slope).sum(dim=1), torch.ones(len(masks))
        for _ in range(12):
            lower, new_slope = loss(at + step[:, None] * direction)
            enough = lower <= value + 1e-4 * step * falls + 1e-6 * value.abs()
            if enough.all():
                break
            step = torch.where(enough, step, 0.4 * step)
        moved = torch.where(enough, step, torch.zeros_like(step))[:, None] * direction
        changed = torch.where(enough[:, None], new_slope - slope, torch.zeros_like(slope))
        product = (moved * changed).sum(dim=1)
        weight = torch.where(product > 1e-12, 1 / product.clamp_min(1e-12), torch.zeros_like(product))
        history = [*history[-7:], (moved, changed, weight)]
        settled = ((value - lower) <= 1e-5 * lower.abs() + 1e-4) | ~enough
        at, slope = at + moved, slope + changed
        value = torch.where(enough, lower, value)
        if settled.all():
            break
    heads = at.view(len(masks), len(centres), -1) * scale
    return torch.matmul(heads, vectors.float().T) + centres


@cache
def trained_head(task: Task) -> tuple[tuple[str, ...], Tensor]:
    """The labels of a task and its head (C, D + 1), trained on BASE sentences with λ = 0.003."""
    words = words_of(task[0], "train", BASE)
    labels = tuple(sorted(set(chain.from_iterable(words.labels[task[1]]))))
    numbers = words.numbers(task[1], labels)
    centre = torch.zeros(len(labels), words.states.shape[1])
    return labels, fit(words.states, numbers, centre, [3e-3], torch.ones(1, len(numbers)))[0]


@dataclass(frozen=True)
class Draw:
    """The words of a draw: states, label numbers, sentences; and where heads may begin, one for each trained
    task, and `mixed` as the prior has it.
    """

    states: Tensor
    labels: Tensor
    sentence: Tensor
    centres: list[Tensor]
    mixed: Tensor

    def losses(self, centre: Tensor, seed: int) -> tuple[float, float]:
        """The best λ in the folds, and the log-loss there."""
        sentences = int(self.sentence.max()) + 1
        fold = torch.from_numpy(np.random.default_rng(seed).permutation(sentences) % FOLDS)[self.sentence]
        inside = torch.stack([(fold != number).float() for number in range(FOLDS) for _ in LAMBDAS])
        heads = fit(self.states, self.labels, centre, LAMBDAS * FOLDS, inside, steps=40)
        chances = torch.matmul(self.states, heads.transpose(1, 2)).log_softmax(dim=2)
        lost = -chances[:, torch.arange(len(self.labels)), self.labels] * (1 - inside)
        by_lambda = lost.sum(dim=1).view(FOLDS, len(LAMBDAS)).sum(dim=0) / len(self.labels)
        best = int(by_lambda.argmin())
        return LAMBDAS[best], float(by_lambda[best])

    def head(self, centre: Tensor, strength: float) -> Tensor:
        """The head that is drawn to `centre` with this λ."""
        return fit(self.states, self.labels, centre, [strength], torch.ones(1, len(self.labels)))[0]


def drawn(setting: Setting, labels: Sequence[str], words: Words) -> Draw:
    """What trained heads predict of the new task, given these sentences of it."""
    numbers = words.numbers(setting.new[1], labels)
    known = [trained_head(task) for task in setting.trained]
    logits = [(words.states @ head.T).double() for _, head in known]
    seen = np.bincount(numbers.numpy(), minlength=len(labels)).astype(np.float64)
    together = []
    for (others, _), each in zip(known, logits, strict=True):
        block = torch.zeros(len(labels), len(others), dtype=torch.float64)
        named = share_of_names(labels, seen, others) >= NAMES_AGREE
        together.append(block.numpy() if named else block.index_add_(0, numbers, each.softmax(dim=1)).numpy())
    names = [*map("@".join, setting.trained), "new"]
    counts = soft_counts(names, [*(others for others, _ in known), labels], together, seen)
    linked_by = [torch.from_numpy(link) for link in links(align("cooccurrence", counts), counts)]
    weights = fit_weights([each @ link.T for each, link in zip(logits, linked_by, strict=True)], numbers)
    centres = [(link @ head.double()).float() for link, (_, head) in zip(linked_by, known, strict=True)]
    mixed = torch.einsum("t,tcd->cd", weights.float(), torch.stack(centres))
    return Draw(words.states, numbers, words.sentence, centres, mixed)


def alternating(draw: Draw, rounds: int = 5) -> Tensor:
    """The head where ω and v are learned by the update of `relational`, begun at equal weights, λ = 0.003."""
    heads = torch.stack(draw.centres)
    weights, left = torch.full((len(heads),), 1 / len(heads)), 0.3
    for _ in range(rounds):
        head = draw.head(torch.einsum("t,tcd->cd", weights, heads), 3e-3 / left)
        rows = torch.cat([heads, head[None]]).flatten(1).double()
        scatter = rows @ rows.T
        shrinkage = len(rows) / (rows.shape[1] + len(rows))
        covariance = (1 - shrinkage) * scatter / scatter.diagonal().mean() + shrinkage * torch.eye(len(rows))
        precision = torch.linalg.inv(covariance)
        left = float(1 / precision[-1, -1])
        weights = (-precision[-1, :-1] / precision[-1, -1]).float()
    return head


def methods(draw: Draw, seed: int) -> dict[str, Tensor]:
    """A head (C, D + 1) of each method."""
    nothing = torch.zeros_like(draw.mixed)
    copies = [draw.losses(centre, seed) for centre in draw.centres]
    nearest = min(range(len(copies)), key=lambda place: copies[place][1])
    mean = torch.stack(draw.centres).mean(dim=0)
    return {
        "zero": draw.head(nothing, 1e-4),
        "ridge": draw.head(nothing, draw.losses(nothing, seed)[0]),
        "copy": draw.centres[nearest],
        NEAREST: draw.head(draw.centres[nearest], copies[nearest][0]),
        "mean + ridge": draw.head(mean, draw.losses(mean, seed)[0]),
        "relational update": alternating(draw),
        "predicted": draw.head(draw.mixed, draw.losses(draw.mixed, seed)[0]),
        "predicted, λ = 0.005": draw.head(draw.mixed, DEFAULT),
    }


def scores(name: str, sentences: int, seed: int) -> dict[str, float]:
    """The test score of each method, in percent: accuracy, or span F1."""
    setting = SETTINGS[name]
    corpus, task = setting.new
    train, test = words_of(corpus, "train", NEW), words_of(corpus, "test", TEST)
    labels = tuple(sorted(set(chain.from_iterable(train.labels[task]))))
    number = len(train.labels[task])
    order = np.random.default_rng(seed).permutation(number)[:sentences]
    draw = drawn(setting, labels, train.of(order.tolist()))
    lengths = [len(column) for column in test.labels[task]]
    scheme = next(each.scheme for each in read(corpus).tasks if each.name == task)
    by_method = {}
    for method, head in methods(draw, seed).items():
        best = (test.states @ head.T).argmax(dim=1)
        columns = [tuple(labels[at] for at in part.tolist()) for part in best.split(lengths)]
        by_method[method] = 100 * score_task(task, scheme, test.labels[task], columns, details=False).score
    return by_method


def main(args: argparse.Namespace) -> None:
    """Adds the lines that the file lacks, or prints its tables."""
    if args.report:
        for line in report(Path(args.report)):
            print(line)
        return
    torch.set_num_threads(1)
    if args.quick:
        args.settings, args.sentences, args.draws = "demo", "10", 1
    with laboratory() if args.quick else nullcontext() as home:
        out = home / "scores.jsonl" if home else Path(args.out)
        add_lines(out, args)
        rows = [row["scores"] for row in lines(out)]
    gains = {name: np.mean([row["predicted"] - row[name] for row in rows]) for name in ("ridge", NEAREST)}
    print_json({"draws": len(rows), "over_ridge": gains["ridge"], "over_nearest": gains[NEAREST]})


def add_lines(out: Path, args: argparse.Namespace) -> None:
    """Adds the draws that the file lacks."""
    known = {(row["setting"], row["sentences"], row["seed"]) for row in lines(out)}
    for sentences in map(int, args.sentences.split(",")):
        for seed in range(FIRST_SEED, FIRST_SEED + args.draws):
            for name in args.settings.split(","):
                if (name, sentences, seed) in known:
                    continue
                row = {"setting": name, "sentences": sentences, "seed": seed}
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row | {"scores": scores(name, sentences, seed)}) + "\n")


def report(path: Path) -> Iterator[str]:
    """The tables of these draws: mean ± standard deviation, and the difference to the nearest copy."""
    draws: dict[tuple[str, int], dict[str, dict[int, float]]] = {}
    for row in lines(path):
        by_method = draws.setdefault((row["setting"], row["sentences"]), {})
        for method, score in row["scores"].items():
            by_method.setdefault(method, {})[row["seed"]] = score
    for name, setting in SETTINGS.items():
        sizes = sorted(size for each, size in draws if each == name)
        if not sizes:
            continue
        yield f"### {setting.title} (`{name}`)"
        yield ""
        heads = (f"{size} sentences, n = {len(draws[name, size][NEAREST])}" for size in sizes)
        yield f"| method | {' | '.join(heads)} |"
        yield f"| --- |{' ---: |' * len(sizes)}"
        for method in draws[name, sizes[0]]:
            cells = (_cell(draws[name, size], method) for size in sizes)
            yield f"| {method} | {' | '.join(cells)} |"
        yield ""


def _cell(scored: Mapping[str, Mapping[int, float]], method: str) -> str:
    scores = summary(scored[method].values())
    text = f"{scores.mean:.1f} ± {scores.sd or 0:.1f}"
    difference = paired_difference(scored[method], scored[NEAREST])
    if method == NEAREST or difference is None or difference.low is None or difference.high is None:
        return text
    return f"{text} ({difference.mean:+.1f} [{difference.low:+.1f}, {difference.high:+.1f}])".replace(
        "-", "−"
    )


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of that file; none where there is no file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--settings", default=",".join(name for name in SETTINGS if name != "demo"))
    parser.add_argument("--sentences", default="10,50,200")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", default="new-task.jsonl")
    parser.add_argument("--report")
    main(parser.parse_args())
