"""What reading a corpus costs, by format, beside `datasets` reading the same file into Python.

    python -m tests.benchmarks.reading --words 1000000 --words 5000000

A corpus of so many words with two tasks is written as CoNLL columns, JSONL and Parquet, and read by MRN Lab
(read, described and hashed: what `mrnlab corpus` and a worker do) and, JSONL and Parquet, by `datasets`
(loaded without a cache, then all rows as Python lists). Each has a process of its own, which has imported
before it begins. Prints JSON for each; the last line has words a second of each format, `datasets`' seconds
over ours, peak memory over the size of the file, and the seconds of the largest size over those of the
smallest, for each word.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.benchmarks._harness import arguments, laboratory, print_json, processes

FORMATS = (".conll", ".jsonl", ".parquet")
SENTENCE = 20
"""Words of a sentence."""
_FORMS, _TAGS = 30_000, ("NN", "NNP", "VBD", "IN", "DT", "JJ", ".")
_SPANS = ("O", "O", "O", "B-PER", "I-PER", "B-LOC")
_OTHER_SPLITS = 100
"""Words of the dev split and of the test split."""

Row = dict[str, list[str]]


def rows(words: int) -> Iterator[Row]:
    """Sentences of drawn words and labels, the same for each format."""
    rng = np.random.default_rng(0)
    forms = [f"{'abcdefghij'[n % 10]}{n:x}" for n in range(_FORMS)]
    for _ in range(max(1, words // SENTENCE)):
        draws = rng.zipf(1.3, SENTENCE) % _FORMS
        tags, spans = rng.integers(0, len(_TAGS), SENTENCE), rng.integers(0, len(_SPANS), SENTENCE)
        ner = [_SPANS[place] for place in spans]
        for place, label in enumerate(ner):  # an I- continues a span
            if label[0] == "I" and (place == 0 or ner[place - 1][2:] != label[2:]):
                ner[place] = f"B{label[1:]}"
        yield {"tokens": [forms[n] for n in draws], "pos": [_TAGS[n] for n in tags], "ner": ner}


def write(folder: Path, ending: str, words: int) -> int:
    """Writes the three splits in that format; returns the bytes of the training file."""
    folder.mkdir()
    for split, count in (("train", words), ("dev", _OTHER_SPLITS), ("test", _OTHER_SPLITS)):
        path = folder / f"{split}{ending}"
        if ending == ".parquet":
            import pyarrow
            from pyarrow import parquet

            parquet.write_table(pyarrow.Table.from_pylist(list(rows(count))), path)
            continue
        with path.open("w") as file:
            for row in rows(count):
                if ending == ".jsonl":
                    file.write(json.dumps(row) + "\n")
                else:
                    columns = zip(*row.values(), strict=True)
                    file.write("".join(" ".join(values) + "\n" for values in columns) + "\n")
    return (folder / f"train{ending}").stat().st_size


def ours(folder: Path, ending: str) -> int:
    """The words that MRN Lab reads in the training split."""
    from core.corpora.loading import load

    columns = ["tokens", "pos", "ner"] if ending == ".conll" else None
    return sum(len(sentence.tokens) for sentence in load(str(folder), columns).train)


def theirs(folder: Path, ending: str) -> int:
    """The words that `datasets` reads in the training split."""
    import datasets

    datasets.disable_progress_bars()
    builder = "json" if ending == ".jsonl" else "parquet"
    with TemporaryDirectory() as cache:
        split = datasets.load_dataset(
            builder, data_files={"train": str(folder / f"train{ending}")}, cache_dir=cache, split="train"
        )
        return sum(len(row["tokens"]) for row in split.to_list())


def measured(
    connection: Any, read: Callable[[Path, str], int], folder: Path, small: Path, ending: str
) -> None:
    """In a process of its own: seconds, and bytes of memory beyond what a small corpus needs."""
    with laboratory():
        read(small, ending)  # imports
        from core.training.memory import process_peak, restart_process_peak

        # Not getrusage: its peak has that of the process that this one was forked from.
        restart_process_peak()
        before = process_peak() or 0
        began = time.perf_counter()
        words = read(folder, ending)
        seconds = time.perf_counter() - began
        peak = (process_peak() or 0) - before
    connection.send((words, seconds, peak))


def run(quick: bool, read: Callable[[Path, str], int], folder: Path, small: Path, ending: str) -> Any:
    """What `measured` sends."""
    context = processes(quick)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=measured, args=(sender, read, folder, small, ending))
    process.start()
    sender.close()
    result = receiver.recv()
    process.join()
    return result


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--words", type=int, action="append", help="repeatable; 1,000,000 without it")
    args = parser.parse_args()
    sizes = sorted(args.words or [1_000_000])
    if args.quick:
        sizes = [2000, 4000]
    figures: dict[str, dict[str, float]] = {"words_per_s": {}, "theirs_over_ours": {}, "memory_per_byte": {}}
    of_size: dict[str, list[float]] = {}
    with TemporaryDirectory() as temporary:
        for ending in FORMATS:
            small = Path(temporary) / f"small{ending}"
            write(small, ending, _OTHER_SPLITS)
            for words in sizes:
                folder = Path(temporary) / f"{words}{ending}"
                size = write(folder, ending, words)
                read, seconds, peak = run(args.quick, ours, folder, small, ending)
                line = {"format": ending, "words": read, "bytes": size, "s": round(seconds, 3), "peak": peak}
                figures["words_per_s"][ending] = round(read / seconds)
                figures["memory_per_byte"][ending] = round(peak / size, 2)
                of_size.setdefault(ending, []).append(seconds / read)
                if ending != ".conll":
                    _, theirs_s, theirs_peak = run(args.quick, theirs, folder, small, ending)
                    line |= {"theirs_s": round(theirs_s, 3), "theirs_peak": theirs_peak}
                    figures["theirs_over_ours"][ending] = round(theirs_s / seconds, 2)
                print_json(line)
    linear = {ending: round(each[-1] / each[0], 2) for ending, each in of_size.items()}
    print_json(figures | {"largest_over_smallest": linear})


if __name__ == "__main__":
    main()
