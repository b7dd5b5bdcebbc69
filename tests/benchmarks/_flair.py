"""flair's SequenceTagger, trained in an interpreter that has flair: `PYTHON _flair.py JOB.json`.

Trains the job's sentences in turns: a line with a number on standard input is answered, after so many steps,
by a line of JSON with what they took. Imports nothing of MRN Lab, which that interpreter need not have.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path
from typing import Any

import flair  # type: ignore[import-not-found]
import torch
from flair.data import Dictionary, Sentence, Span  # type: ignore[import-not-found]
from flair.embeddings import (  # type: ignore[import-not-found]
    CharacterEmbeddings,
    StackedEmbeddings,
    WordEmbeddings,
)
from flair.models import SequenceTagger  # type: ignore[import-not-found]
from flair.training_utils import store_embeddings  # type: ignore[import-not-found]

TASK = "ner"
WARM_UP_STEPS = 2


def word_embeddings(path: str, *, tuned: bool) -> WordEmbeddings:
    """The vectors of a gzipped file in GloVe's format. flair's own reading of it needs gensim."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        words, rows = zip(*(line.rstrip().split(" ", 1) for line in file), strict=True)
    vectors = torch.tensor([[float(value) for value in row.split(" ")] for row in rows])
    number = {word: place for place, word in enumerate(words)}
    embeddings = WordEmbeddings(
        None, fine_tune=tuned, vocab=number, embedding_length=vectors.shape[1], name="vectors"
    )
    with torch.no_grad():
        embeddings.embedding.weight[:-1] = vectors  # the last row is that of unknown words
    return embeddings


def as_sentence(tokens: list[str], spans: list[tuple[int, int, str]]) -> Sentence:
    """With its entities: first token, token after the last, and type."""
    sentence = Sentence(tokens)
    for first, end, name in spans:
        Span(sentence.tokens[first:end]).add_label(TASK, name)
    return sentence


def make_tagger(job: dict[str, Any]) -> tuple[SequenceTagger, WordEmbeddings]:
    """With CRF; everything that the job does not say is as flair has it."""
    vectors = word_embeddings(job["vectors"], tuned=job["tuned"])
    dictionary = Dictionary(add_unk=False)
    dictionary.span_labels = True
    for name in job["types"]:
        dictionary.add_item(name)
    parts: list[Any] = [vectors]
    if job["characters"]:
        characters = Dictionary(add_unk=True)
        for character in sorted(
            {letter for batch in job["batches"] for tokens, _ in batch for letter in "".join(tokens)}
        ):
            characters.add_item(character)
        parts.append(CharacterEmbeddings(characters))
    tagger = SequenceTagger(
        StackedEmbeddings(parts),
        dictionary,
        TASK,
        hidden_size=job["hidden"],
        rnn_layers=1,
        use_crf=True,
        tag_format="BIO",
    )
    return tagger, vectors


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    flair.device = torch.device("cpu")
    torch.manual_seed(0)
    tagger, vectors = make_tagger(job)
    batches = [[as_sentence(tokens, spans) for tokens, spans in batch] for batch in job["batches"]]
    weights = [weight for weight in tagger.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=job["lr"], fused=True)
    storage = "none" if job["tuned"] else "cpu"

    def step(sentences: list[Sentence]) -> None:
        optimiser.zero_grad()
        loss, count = tagger.forward_loss(sentences)
        (loss / count).backward()
        optimiser.step()
        store_embeddings(sentences, storage)  # forget the trained ones

    tagger.train()
    for sentences in batches[:WARM_UP_STEPS]:
        step(sentences)
    if not job["tuned"]:  # as from the second epoch on: flair keeps fixed vectors with their tokens
        for sentences in batches:
            vectors.embed(sentences)
    facts = {"flair": flair.__version__, "torch": torch.__version__, "threads": torch.get_num_threads()}
    print(json.dumps(facts), flush=True)
    done = 0
    for line in sys.stdin:
        turn = batches[done : done + int(line)]
        done += len(turn)
        cpu, clock = time.process_time(), time.perf_counter()
        for sentences in turn:
            step(sentences)
        seconds, cpu = time.perf_counter() - clock, time.process_time() - cpu
        words = sum(map(len, (sentence for sentences in turn for sentence in sentences)))
        print(
            json.dumps({"steps": len(turn), "seconds": seconds, "cpu_seconds": cpu, "words": words}),
            flush=True,
        )


if __name__ == "__main__":
    main()
