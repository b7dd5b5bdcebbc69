"""How long a sentence takes to tag once models are loaded: by one run, by eight over one frozen encoder, by
eight with an encoder each.

    python -m tests.benchmarks.tagging

Times are of one processor core (CPU time), which other work on the machine does not lengthen much, and by the
clock. The heads are untrained: labels do not matter here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import torch

from core.config import RunConfig
from core.corpora import prepare
from core.encoding.tokenizer import load_tokenizer
from core.models.encoders import Encoder, load_transformer, shared_transformer
from core.models.heads import Heads
from core.models.saved_tagger import SavedTagger
from core.models.sources import locate
from core.models.tagger import MultiTaskTagger

_TASKS = ("pos", "chunk", "ner")
_RUNS = 8
_SENTENCES = 60


def main() -> None:
    torch.set_num_threads(1)
    config = RunConfig.build(corpus="demo", tasks=_TASKS, paradigm="mtl", encoder_training="frozen")
    corpus = prepare(config)
    sentences = [one.tokens for one in corpus.test[:_SENTENCES]]
    tasks = [{"name": t.name, "scheme": t.scheme, "labels": t.labels} for t in corpus.tasks]
    tokenizer = load_tokenizer(locate(config.encoder))

    def tagger(encoder: Encoder) -> SavedTagger:
        heads = Heads(encoder.features, [len(t.labels) for t in corpus.tasks], init="zeros", dropout=0.0)
        return SavedTagger(config, tasks, MultiTaskTagger(encoder, heads).eval(), tokenizer)

    own = [tagger(load_transformer(config.encoder, half=False).eval()) for _ in range(_RUNS)]
    shared = [tagger(shared_transformer(config.encoder)) for _ in range(_RUNS)]
    words = statistics.mean(map(len, sentences))
    print(f"{config.encoder}, {len(sentences)} sentences of {words:.0f} words, median ms a sentence")
    print(f"{'':42}{'one core':>10}{'clock':>10}")
    for name, taggers in (
        ("one run", own[:1]),
        (f"{_RUNS} runs over one frozen encoder", shared),
        (f"{_RUNS} runs with an encoder each", own),
    ):
        computed, waited = _times(taggers, sentences)
        print(f"{name:42}{computed:10.1f}{waited:10.1f}")


def _times(taggers: Sequence[SavedTagger], sentences: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Median milliseconds of CPU and by the clock; every sentence is new to them but the first."""
    computed, waited = [], []
    for place, sentence in enumerate([sentences[0], *sentences]):
        cpu, clock = time.process_time(), time.perf_counter()
        for tagger in taggers:
            tagger.tag([sentence], top=5)
        if place:
            computed.append(1000 * (time.process_time() - cpu))
            waited.append(1000 * (time.perf_counter() - clock))
    return statistics.median(computed), statistics.median(waited)


if __name__ == "__main__":
    main()
