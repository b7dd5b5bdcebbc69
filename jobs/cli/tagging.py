"""mrnlab tag: tags a sentence, a text, a pair of texts or a file with every task of a finished run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from core.config.fields import comma_list
from core.corpora.readers.lines import GivenFile
from core.corpora.readers.splitting import PlacedWord, is_blank
from core.corpora.types import Sentence
from core.errors import MRNLabError
from core.paths import given_path, own_checkpoint
from core.store import Run
from core.tagging import Tagger
from core.tasks import KINDS, tasks_reading
from core.tasks.answers import TaggedSentence, TextAnswer, WordTag
from core.tasks.scores import TaskScore, score_text
from core.wording import all_of, first_of, plural
from jobs.cli.app import app, opened_store
from jobs.cli.options import JSON_OPTION, RUN_ARGUMENT, one_of
from jobs.cli.output import log, print_json, print_table, write_document

_FORMATS = ("conll", "json")


@app.command()
def tag(
    ctx: typer.Context,
    run: Annotated[int, RUN_ARGUMENT],
    sentence: Annotated[
        str, typer.Argument(help="A sentence, which is split into words, or a whole text.")
    ] = "",
    second: Annotated[str, typer.Option(help="The second text, for tasks on pairs.")] = "",
    file: Annotated[
        Path | None,
        typer.Option(
            help="A file instead: text, words or CoNLL columns (.txt), columns, or CoNLL-U; or texts or "
            "pairs in columns named text, or text1 and text2 (.tsv, .csv, .jsonl)."
        ),
    ] = None,
    format_: Annotated[
        str, typer.Option("--format", help=f"How a file's labels are printed: {' or '.join(_FORMATS)}.")
    ] = "conll",
    columns: Annotated[
        str, typer.Option(help="The names of a CoNLL file's columns, one of them 'tokens'.")
    ] = "",
    layout: Annotated[
        str,
        typer.Option(help="The layout of a file, if not detected: text, split, words, columns or conllu."),
    ] = "",
    split: Annotated[
        bool, typer.Option("--split", help="The lines of a file are already split into words.")
    ] = False,
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="Add a column per task: the probability of the label, with a CRF its marginal.",
        ),
    ] = False,
    json_: Annotated[bool, JSON_OPTION] = False,
) -> None:
    """Tag a sentence, a text, a pair of texts or a file with every task of a finished run."""
    if (sentence or second) and file is not None:
        raise MRNLabError("Give either a sentence or --file FILE, not both.")
    one_of("--format", _FORMATS)(format_)
    with opened_store(ctx) as store:
        chosen = store.run(run)
    if chosen.checkpoint is None:
        raise MRNLabError(chosen.lacks_model)
    if file is None and (is_blank(sentence) or (second and is_blank(second))):
        raise MRNLabError("The sentence has no words; give another, or --file FILE.")
    if file is None:
        _sentence(chosen, sentence, second or None, json_, confidence=confidence)
    else:
        names, layout = comma_list(columns), layout or ("split" if split else "")
        _file(chosen, file, names, layout, confidence, json_ or format_ == "json")


def _sentence(run: Run, text: str, second: str | None, json_: bool, *, confidence: bool) -> None:
    from core.corpora.readers.splitting import place_words, split_words
    from core.corpora.types import whole_text
    from core.tagging import check_texts, column_names, load_tagger, text_of

    assert run.checkpoint is not None
    tagger = load_tagger(own_checkpoint(run.checkpoint))
    words, whole = (
        tasks_reading(tagger.schemes, "words"),
        tasks_reading(tagger.schemes, "sentence", "text", "pair"),
    )
    asked = whole_text(text, second)
    if not words or second is not None:
        check_texts(f"Run {run.id}", tagger.schemes, [asked], second_by="with --second TEXT")
    (answers,) = tagger.answer([text_of(asked)]) if whole else [{}]
    (tagged,) = tagger.tag([split_words(text)])
    for note in tagger.notes:
        log(note)
    if any(answer.shortened for answer in answers.values()):
        longest = run.config.max_length
        log(f"The text is longer than run {run.id} reads (max_length {longest}); its end is left out.")
    if missing := [task for task in whole if task not in answers]:
        log(f"{all_of(missing)}: no answer without a second text; give it with --second TEXT.")
    if json_:
        document: dict[str, object] = {"run": run.id}
        if whole:
            document |= _text_json(asked, answers)
        if words:
            tags = {task: _word_tags(tagged.tags[task]) for task in words}
            (places,) = place_words(text, [tagged.tokens])
            spans = _spans_json(text, places, tagged, tagger.schemes)
            document |= {"text": text, "tokens": tagged.tokens, "tags": tags, "spans": spans}
        print_json(document)
        return
    if words:
        rows = [
            [word, *(cell for task in words for cell in _cells(tagged.tags[task][index], confidence))]
            for index, word in enumerate(tagged.tokens)
        ]
        _, *names = column_names(list(words), (), confidence=confidence)
        print_table(["word", *names], rows)
    if answers:
        print_table(["task", "answer", "probabilities"], [_row(*each) for each in answers.items()])


def _cells(tag: WordTag, confidence: bool) -> list[str]:
    return [tag.label, f"{tag.confidence:.4f}"][: 1 + confidence]


def _row(task: str, answer: TextAnswer) -> list[str]:
    shares = [f"{label} {100 * share:.1f}%" for label, share in answer.probabilities]
    return [task, answer.value if isinstance(answer.value, str) else f"{answer.value:.2f}", ", ".join(shares)]


def _text_json(text: Sentence, answers: Mapping[str, TextAnswer]) -> dict[str, object]:
    from core.tagging import text_of

    first, second = text_of(text)
    pair = {} if second is None else {"second": second}
    return {"text": first} | pair | {"answers": _answers_json(answers)}


def _answers_json(answers: Mapping[str, TextAnswer]) -> dict[str, dict[str, object]]:
    return {
        task: {"value": answer.value}
        | ({"probabilities": dict(answer.probabilities)} if answer.probabilities else {})
        for task, answer in answers.items()
    }


def _word_tags(tags: Sequence[Any]) -> list[dict[str, object]]:
    return [{"label": word.label, "confidence": word.confidence} for word in tags]


def _spans_json(
    text: str, words: Sequence[PlacedWord], tagged: TaggedSentence, schemes: Mapping[str, str]
) -> dict[str, list[dict[str, object]]]:
    from core.tagging import spans_in

    spans = spans_in(text, words, tagged, schemes)
    return {task: [asdict(span) for span in of_task] for task, of_task in spans.items()}


def _file(run: Run, file: Path, columns: Sequence[str], layout: str, confidence: bool, json_: bool) -> None:
    from core.corpora.readers.given import LAYOUTS, read_given
    from core.corpora.readers.lines import read_bytes
    from core.corpora.readers.texts import holds_texts
    from core.tagging import column_names, conll_text, given_scores, load_tagger, tag_in_parts

    known_layout = one_of("--layout", LAYOUTS)(layout) if layout else None
    content = read_bytes(given_path(file))
    assert run.checkpoint is not None
    tagger = load_tagger(own_checkpoint(run.checkpoint))
    words, tasks = tasks_reading(tagger.schemes, "words"), tasks_reading(tagger.schemes, "words", "sentence")
    if not (columns or layout) and holds_texts(GivenFile(file.name, content)):
        _texts(run, tagger, GivenFile(str(file), content), confidence, json_)
        return
    if not tasks:
        raise MRNLabError(
            f"Run {run.id} reads whole texts; {file} must be a .tsv, .csv or .jsonl file with a column text, "
            "or text1 and text2."
        )
    given = read_given(content, str(file), tasks, columns=columns, layout=known_layout)
    log(f"{file.name} is read as {given.read_as}; --layout and --columns read it otherwise.")
    for note in given.notes:
        log(note)
    parts = tag_in_parts([tagger], [sentence.tokens for sentence in given.sentences])
    if json_:
        tagged = [answer for part in parts for answer in part]
        for note in tagger.notes:
            log(note)
        sentences = [
            {
                "text": text,
                "tokens": answer.tokens,
                "tags": {task: _word_tags(tags) for task, tags in answer.tags.items()},
                "spans": _spans_json(text, words, answer, tasks),
                "gold": sentence.labels,
            }
            | ({"answers": _answers_json(answer.answers)} if answer.answers else {})
            for sentence, (text, words), answer in zip(
                given.sentences, map(given.placed_words, range(len(tagged))), tagged, strict=True
            )
        ]
        scores = given_scores(given.sentences, tagged, tasks, run.config.pos_score)
        print_json({"run": run.id, "sentences": sentences, "scores": _scores_json(scores, tasks)})
        return
    names = column_names(list(words), given.gold, confidence=confidence)
    log(f"{len(given.sentences):,} sentences; columns: {', '.join(names)}.")
    done, kept = 0, []
    for part in parts:  # handed out as they come: the answers to a large file need not fit the memory
        given_part = given.sentences[done : done + len(part)]
        write_document(conll_text(given_part, part, gold=given.gold, confidence=confidence))
        done += len(part)
        kept += part if given.gold else []
    for note in tagger.notes:
        log(note)
    for score in given_scores(given.sentences[: len(kept)], kept, tasks, run.config.pos_score):
        log(_score_line(score, tasks))


def _scores_json(scores: Iterable[TaskScore], schemes: Mapping[str, str]) -> dict[str, dict[str, object]]:
    return {
        score.task: {score.score_name: score.score, KINDS[schemes[score.task]].items: score.tokens}
        for score in scores
    }


def _score_line(score: TaskScore, schemes: Mapping[str, str]) -> str:
    """Formats a score against the gold labels of a file, with the number of items."""
    count = plural(score.tokens, KINDS[schemes[score.task]].item)
    if not score.is_defined:
        why = score.undefined_because("the file")
        return f"{score.task}: {score.score_name} is undefined on {count}: {why}."
    return f"{score.task}: {score.score_name} {score_text(score.score, score.score_name)} on {count}."


def _texts(run: Run, tagger: Tagger, file: GivenFile, confidence: bool, json_: bool) -> None:
    from core.corpora.readers.texts import read_asked
    from core.tagging import answer_in_parts, check_texts, given_scores, tab_separated, text_table

    asked = read_asked(file, tagger.schemes)
    check_texts(f"Run {run.id}", tagger.schemes, asked.texts, second_by="in a column text2 beside text1")
    if asked.left_out:
        log(f"Left out: {first_of(asked.left_out)}.")
    answers = [answer for part in answer_in_parts([tagger], asked.texts) for answer in part]
    tasks = list(answers[0])
    for note in tagger.notes:
        log(note)
    if left_out := [task for task in tagger.schemes if task not in tasks]:
        log(f"{all_of(left_out)}: no answers; these tasks read another kind of text.")
    if long := sum(any(each.shortened for each in answer.values()) for answer in answers):
        log(f"{plural(long, 'row')} longer than max_length {run.config.max_length}; the end is left out.")
    scores = given_scores(asked.texts, answers, {task: tagger.schemes[task] for task in tasks})
    if json_:
        texts = [
            _text_json(text, answer) | {"gold": {task: label for task, (label,) in text.labels.items()}}
            for text, answer in zip(asked.texts, answers, strict=True)
        ]
        print_json({"run": run.id, "texts": texts, "scores": _scores_json(scores, tagger.schemes)})
        return
    rows = text_table(asked.texts, answers, confidence=confidence)
    log(f"{plural(len(asked.texts), 'row')}; columns: {', '.join(rows[0])}.")
    write_document(tab_separated(rows))
    for score in scores:
        log(_score_line(score, tagger.schemes))
