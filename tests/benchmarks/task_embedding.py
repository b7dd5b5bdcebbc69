"""What it costs to read every sentence once for each task: all tasks in one batch beside a pass for each.

`python -m tests.benchmarks.task_embedding` prints, for each way to inject task embeddings, milliseconds of a
forward and backward pass over 16 sentences for all of three tasks, of three passes for one task each, and
their ratio. The last line has the medians of the ratios (at most 1.15 is the goal), and those of the batch
over the same batch without task embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from core.corpora import load
from core.encoding.batches import Batch, Batches
from core.encoding.encoded import encode
from core.encoding.tokenizer import load_tokenizer
from core.models.device import choose_device, make_deterministic
from core.models.encoders import Encoder
from core.models.encoders.fast_bert import train_rows
from core.models.encoders.task_embedding import embed_tasks
from core.models.encoders.transformer import load_transformer
from core.models.sources import locate
from tests.benchmarks._harness import alternate, arguments, milliseconds, print_json, ratio, spread

INJECTIONS = ("input", "attention", "projected", "elu", "tanh", "selu")
ENCODER = "minilm"
SENTENCES, TASKS = 16, 3


def read_for(tasks: Sequence[int], sentences: Sequence[Sequence[str]], device: torch.device) -> Batch:
    """One batch with all sentences for each of the tasks."""
    tokenizer = load_tokenizer(locate(ENCODER))
    text = encode([*sentences] * len(tasks), tokenizer, 128)
    labels = np.zeros((len(text.firsts), TASKS), dtype=np.int64)
    (batch,) = Batches(text, labels, text.windows, tokenizer.pad).by_length()
    # Sorted by length: the copies of a sentence stand beside each other, or beside others of its length.
    of_windows = torch.tensor(tasks).repeat(text.windows // len(tasks))
    return replace(batch, tasks=of_windows).to(device)


def made(injection: str, batch: Batch) -> Encoder:
    """The encoder as a run trains it on this batch."""
    transformer = load_transformer(ENCODER, half=False)
    train_rows(transformer.inner, batch.ids.cpu().numpy())
    return embed_tasks(transformer, TASKS, injection).to(batch.ids.device).train()


def step(encoder: Encoder, batches: Sequence[Batch]) -> Callable[[], None]:
    """Forward and backward passes over these batches."""

    def run() -> None:
        for batch in batches:
            encoder.words(batch).square().mean().backward()
        if batches[0].ids.device.type == "cuda":
            torch.cuda.synchronize()

    return run


def main() -> None:
    args = arguments(__doc__, device=True).parse_args()
    device = choose_device(args.device)
    make_deterministic(0, device)  # as in a run
    sentences = [sentence.tokens for sentence in load("demo").train[: 2 if args.quick else SENTENCES]]
    together = [read_for(range(TASKS), sentences, device)]
    apart = [read_for([task], sentences, device) for task in range(TASKS)]
    print_json(
        {
            "device": str(device),
            "threads": torch.get_num_threads(),
            "subwords": apart[0].lengths.tolist(),
            "words": len(together[0].words),
        }
    )
    plain = made("none", together[0])
    over_apart, over_none = {}, {}
    for injection in INJECTIONS[: 1 if args.quick else None]:
        encoder = made(injection, together[0])
        ways = {
            "together": step(encoder, together),
            "apart": step(encoder, apart),
            "none": step(plain, together),
        }
        for way in ways.values():  # memory is allocated for each shape
            way()
        timed = {name: lambda _round, way=way: milliseconds(way)[0] for name, way in ways.items()}
        times = alternate(timed, range(2 if args.quick else 8))
        figures = ratio(times["together"], times["apart"])
        print_json(
            {"injection": injection}
            | {f"{name}_ms": spread(of_way, 1)["median"] for name, of_way in times.items()}
            | {"over_apart": figures}
        )
        over_apart[injection] = figures["median"]
        over_none[injection] = ratio(times["together"], times["none"])["median"]
    print_json({"together_over_apart": over_apart, "together_over_none": over_none})


if __name__ == "__main__":
    main()
