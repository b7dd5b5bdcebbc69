"""How long it takes to say where one method gains over another: five seeds on CoNLL-2003's test sentences.

    python -m tests.benchmarks.where --data ../shared/data/conll2003

A store is filled with predictions of two methods with five seeds, of which 3% of the words are wrong, more of
those that training never saw. Timed is `lab.where` of a task: reading predictions, buckets, exchanges, again
without the named buckets, and kinds of errors; the corpus is in memory, as on the pages. Prints JSON; the
last line has the median seconds of each task, and those of the processor.
"""

from __future__ import annotations

import time
from statistics import median

import core
from core.config import RunConfig
from tests.benchmarks._harness import arguments, corpus_fields, laboratory, milliseconds, print_json
from tests.where_store import fill

_ROUNDS = 5


def _wrong(paradigm: str, is_unseen: bool) -> float:
    return (0.08 if paradigm == "mrn" else 0.12) if is_unseen else 0.02


def main() -> None:
    parser = arguments(__doc__, data="../shared/data/conll2003")
    args = parser.parse_args()
    data = "demo?train=50" if args.quick else args.data
    seeds, rounds = ((1, 2), 1) if args.quick else ((1, 2, 3, 4, 5), _ROUNDS)
    config = RunConfig.build(**corpus_fields(data) | {"paradigm": "mtl"})
    with laboratory():
        lab = core.Laboratory()
        fill(lab.store, config, seeds=seeds, wrong=_wrong)
        figures = {}
        for task in config.tasks:
            lab.where(task=task)  # not timed: the first call reads the corpus
            times, cpu_times = [], []
            for _ in range(rounds):
                began = time.process_time()
                times += milliseconds(lambda: lab.where(task=task))  # noqa: B023
                cpu_times.append(time.process_time() - began)
            frame = lab.where(task=task)
            print_json({"task": task, "headline": frame.attrs["headlines"][0], "ms": list(map(round, times))})
            figures[f"{task}_s"] = round(median(times) / 1000, 3)
            figures[f"{task}_cpu_s"] = round(median(cpu_times), 3)
    print_json(figures)


if __name__ == "__main__":
    main()
