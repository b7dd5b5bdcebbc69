"""mrnlab tag: a sentence or a file, with every task of a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from core.errors import MRNLabError
from core.paths import given_path, own_checkpoint
from core.store import Run
from jobs.cli.app import JSON_OPTION, RUN_ARGUMENT, app, opened_store
from jobs.cli.output import comma_list, hand_out, print_json, print_table, say

_FORMATS = ("conll", "json")


@app.command()
def tag(
    ctx: typer.Context,
    run: Annotated[int, RUN_ARGUMENT],
    sentence: Annotated[
        str, typer.Argument(help="A sentence; words and marks are separated by themselves.")
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option(help="A file instead: text, words or CoNLL columns (.txt), columns, or CoNLL-U."),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help=f"How a file's labels are printed: {' or '.join(_FORMATS)}.")
    ] = "conll",
    columns: Annotated[
        str, typer.Option(help="The names of a CoNLL file's columns, one of them 'tokens'.")
    ] = "",
    layout: Annotated[
        str, typer.Option(help="Of a file, if not as it seems: text, split, words, columns or conllu.")
    ] = "",
    split: Annotated[
        bool, typer.Option("--split", help="The lines of a file are already split into words.")
    ] = False,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="A column more for each task: the probability of the label, with a CRF its marginal.",
        ),
    ] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Tag a sentence, or a file, with every task of a finished run."""
    if sentence and file is not None:
        raise MRNLabError("Give either a sentence or --file FILE, not both.")
    if format_ not in _FORMATS:
        raise MRNLabError(f"--format: '{format_}' is not one of {', '.join(_FORMATS)}.")
    with opened_store(ctx) as store:
        chosen = store.run(run)
    if chosen.checkpoint is None:
        raise MRNLabError(f"Run {run} is {chosen.state.word} and has no finished model to tag with.")
    if file is None and not sentence.strip():
        raise MRNLabError("The sentence has no words; give another, or --file FILE.")
    if file is None:
        _sentence(chosen, sentence, json_)
    else:
        names, layout = comma_list(columns), layout or ("split" if split else "")
        _file(chosen, file, names, layout, confidence, json_ or format_ == "json")


def _sentence(run: Run, text: str, json_: bool) -> None:
    from core.corpora.free_text import split_words
    from core.tagging import load_tagger

    assert run.checkpoint is not None
    tagger = load_tagger(own_checkpoint(run.checkpoint))
    (tagged,) = tagger.tag([split_words(text)])
    for note in tagger.notes:
        say(note)
    tasks = list(tagged.tags)
    if json_:
        tags = {task: _word_tags(tagged.tags[task]) for task in tasks}
        print_json({"run": run.id, "tokens": tagged.tokens, "tags": tags})
        return
    rows = [
        [word, *(tagged.tags[task][place].label for task in tasks)]
        for place, word in enumerate(tagged.tokens)
    ]
    print_table(["word", *tasks], rows)


def _word_tags(tags: Sequence[Any]) -> list[dict[str, object]]:
    return [{"label": word.label, "confidence": word.confidence} for word in tags]


def _file(run: Run, file: Path, columns: Sequence[str], layout: str, confidence: bool, json_: bool) -> None:
    from core.corpora.free_text import LAYOUTS, read_given
    from core.corpora.readers import read_bytes
    from core.tagging import column_names, conll_text, given_scores, load_tagger, tag_in_parts

    known_layout = next((known for known in LAYOUTS if known == layout), None)
    if layout and known_layout is None:
        raise MRNLabError(f"--layout: '{layout}' is not one of {', '.join(LAYOUTS)}.")
    content = read_bytes(given_path(file))
    assert run.checkpoint is not None
    tagger = load_tagger(own_checkpoint(run.checkpoint))
    given = read_given(content, str(file), tagger.schemes, columns=columns, layout=known_layout)
    say(f"{file.name} is read as {given.read_as}; --layout and --columns read it otherwise.")
    for note in given.notes:
        say(note)
    parts = tag_in_parts([tagger], [sentence.tokens for sentence in given.sentences])
    if json_:
        tagged = [answer for part in parts for answer in part]
        for note in tagger.notes:
            say(note)
        sentences = [
            {
                "tokens": answer.tokens,
                "tags": {task: _word_tags(tags) for task, tags in answer.tags.items()},
                "gold": sentence.labels,
            }
            for sentence, answer in zip(given.sentences, tagged, strict=True)
        ]
        scores = given_scores(given.sentences, tagged, tagger.schemes, run.config.pos_score)
        scored = {score.task: {score.score_name: score.score, "words": score.tokens} for score in scores}
        print_json({"run": run.id, "sentences": sentences, "scores": scored})
        return
    names = column_names(list(tagger.schemes), given.gold, confidence=confidence)
    say(f"{len(given.sentences):,} sentences; columns: {', '.join(names)}.")
    done, kept = 0, []
    for part in parts:  # handed out as they come: the answers to a large file need not fit the memory
        given_part = given.sentences[done : done + len(part)]
        hand_out(conll_text(given_part, part, gold=given.gold, confidence=confidence))
        done += len(part)
        kept += part if given.gold else []
    for note in tagger.notes:
        say(note)
    for score in given_scores(given.sentences[: len(kept)], kept, tagger.schemes, run.config.pos_score):
        say(f"{score.task}: {score.score_name} {100 * score.score:.2f}% on {score.tokens:,} words.")
