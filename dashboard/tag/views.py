"""The answers of the Tag page: lanes to draw, mistakes against gold labels."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from itertools import product

from core.config import RunConfig
from core.corpora.readers.splitting import PlacedWord, joined_words
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.events import TaskScore
from core.results.naming import SCORE_NAMES, field_text
from core.store.types import ACTIVE, Run, RunState
from core.tagging import TaggedSentence, given_scores, labels_of, spans_in
from core.tasks import KINDS, tasks_reading
from core.tasks.confusion import BOUNDARY, BOUNDARY_AND_LABEL, LABEL, MISSED, MISTAKE_KINDS
from core.tasks.scores import PlainScore
from core.wording import all_of, any_of, capitalised, in_words, percent, plural, which_runs
from dashboard.components.sentence import Lane, Mark, SentenceBlock, lane_kind, marks
from dashboard.tag.seeds import SPLIT, Answer, leading, majority
from dashboard.theme import colours

# Beside a span's label, where every letter widens the words above.
_SHORT = {LABEL: "label", BOUNDARY: "boundary", BOUNDARY_AND_LABEL: "boundary, label"}

_LEAST_SHARE = 0.005
"""Of a label in the lane of a seed: there are many such lanes, and the browser gets all of them."""

Labels = Sequence[Sequence[str]]

ANY_TASK, NO_TASK, ALL_SENTENCES = "any task", "no task", "all sentences"


def has_model(run: Run) -> bool:
    """Whether the run has left a model to tag with."""
    return run.state is RunState.SUCCEEDED and bool(run.checkpoint)


_MOST_NAMED = 8
_WITHOUT_MODEL = {
    "unfinished": ("Not finished yet", "A run can tag once it has succeeded."),
    "scores": ("No checkpoint in this store", "Train again, or import an export, to tag."),
    "ended": ("Ended without a model", "A run's page says what to do."),
}


def without_model(runs: Sequence[Run]) -> list[str]:
    """A sentence for each reason why some of these runs cannot tag, and the next step."""
    without: dict[str, list[int]] = {}
    for run in runs:
        if not has_model(run):
            is_ahead = run.state in ACTIVE or run.state is RunState.QUEUED
            why = "unfinished" if is_ahead else "scores" if run.state is RunState.SUCCEEDED else "ended"
            without.setdefault(why, []).append(run.id)
    sentences = []
    for why, ids in without.items():
        which = which_runs(sorted(ids)) if len(ids) <= _MOST_NAMED else plural(len(ids), "run")
        sentences.append(f"{_WITHOUT_MODEL[why][0]} ({which}). {_WITHOUT_MODEL[why][1]}")
    return sentences


def schemes_of(answers: Sequence[Answer]) -> dict[str, str]:
    """The tasks of these answers, each with the scheme of its labels."""
    return {task: scheme for answer in answers for task, scheme in answer.schemes.items()}


def ordered(tasks: Sequence[str], known: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The tasks in the order of the known ones, others last, and the colour of each."""
    rank = {task: place for place, task in enumerate(known)}
    in_order = sorted(tasks, key=lambda task: rank.get(task, len(rank)))
    return in_order, colours(in_order, known)


def decided(answer: Answer, task: str, sentence: int) -> list[str | None]:
    """The label of each word; None where no label has more than half of a configuration's seeds."""
    tags = answer.sentences[sentence].tags[task]
    return [tag.label if not answer.with_task(task) or tag.confidence > 0.5 else None for tag in tags]


def differing_places(answers: Sequence[Answer], task: str, sentence: int) -> tuple[set[int], set[int]]:
    """The words for which the systems that have the task answer differently, and others without an answer."""
    columns = [decided(of, task, sentence) for of in answers if task in of.sentences[sentence].tags]
    of_words = list(enumerate(zip(*columns, strict=True)))
    differing = {place for place, labels in of_words if len(set(labels) - {None}) > 1}
    return differing, {place for place, labels in of_words if None in labels} - differing


def compared(answers: Sequence[Answer]) -> tuple[str, Sequence[Answer]]:
    """Returns the compared systems: the configurations, or the seeds of the only one."""
    return ("seeds", answers[0].seeds) if len(answers) == 1 else ("configurations", answers)


_MOST_WORDS_NAMED, _MOST_SYSTEMS, _MOST_LEANINGS = 4, 2, 3
_Words = Mapping[tuple[int, int], Sequence[str]]
"""The tasks of each word, which is named by its sentence and place."""


def disagreement(chosen: Sequence[Answer], sentences: Sequence[int]) -> str:
    """`Both configurations agree on 3 of 5 words. STL and MTL disagree on lamb.`, and where seeds do.

    Of several sentences or many words it says how many in each task. Empty where no task has two answers.
    """
    who, answers = compared(chosen)
    known = tasks_reading(schemes_of(answers), "words")
    tasks = [task for task in known if sum(task in answer.schemes for answer in answers) > 1]
    if not tasks:
        return ""
    differing: dict[tuple[int, int], list[str]] = {}
    undecided: dict[tuple[int, int], list[str]] = {}
    differ, splits = set[str](), list[frozenset[str]]()
    for task, number in product(tasks, sentences):
        of_task = [answer for answer in answers if task in answer.schemes]
        labels = {answer.who: decided(answer, task, number) for answer in of_task}
        places = differing_places(of_task, task, number)
        for place in places[0]:
            differing.setdefault((number, place), []).append(task)
            first = next(label for of in labels.values() if (label := of[place]) is not None)
            others = {name for name, of in labels.items() if of[place] not in (None, first)}
            differ |= others | {next(name for name, of in labels.items() if of[place] == first)}
        for place in places[1]:
            undecided.setdefault((number, place), []).append(task)
            splits.append(frozenset(name for name, of in labels.items() if of[place] is None))
    total = sum(len(answers[0].sentences[number].tokens) for number in sentences)
    same = total - len({*differing, *undecided})

    words = "every word" if same == total else f"{same:,} of {plural(total, 'word')}"
    headline = [f"{_every(answers)} {who} agree on {words}."]
    if differing:
        subject = "They" if who == "seeds" else all_of([of.who for of in answers if of.who in differ])
        headline.append(f"{subject} disagree on {_words_in(differing, tasks, answers[0], sentences)}.")
    if undecided:
        where = _words_in(undecided, tasks, answers[0], sentences)
        headline.append(f"In {_split_systems(splits, answers)} at most half of the seeds agree on {where}.")
    return " ".join(headline)


def leanings(answers: Sequence[Answer]) -> str:
    """On which words without a majority the most frequent labels of configurations differ.

    `Their most frequent labels: EU (pos) NN in STL, JJ in MTL.` Of the first sentence.
    """
    words = []
    for task in tasks_reading(schemes_of(answers), "words"):
        of_task = [answer for answer in answers if task in answer.schemes]
        for place in sorted(differing_places(of_task, task, 0)[1]):
            of_label: dict[str, list[str]] = {}
            for answer in of_task:
                if (label := answer.sentences[0].tags[task][place].label) != SPLIT:
                    of_label.setdefault(label, []).append(answer.who)
            if len(of_label) > 1:
                each = ", ".join(f"{label} in {all_of(who)}" for label, who in of_label.items())
                words.append(f"{answers[0].sentences[0].tokens[place]} ({task}) {each}")
    if not words:
        return ""
    more = f"; and on {plural(len(words) - _MOST_LEANINGS, 'more word')}" * (len(words) > _MOST_LEANINGS)
    return f"Their most frequent labels differ: {'; '.join(words[:_MOST_LEANINGS])}{more}."


def _split_systems(splits: Sequence[Set[str]], answers: Sequence[Answer]) -> str:
    """The systems in which no label has a majority, from those of each word: `STL and MTL`.

    `STL or MTL` where they are not the same for all words; of many their number.
    """
    named = [of.who for of in answers if any(of.who in split for split in splits)]
    is_same = len(set(splits)) == 1
    if is_same and len(named) == len(answers):
        return f"{_every(answers).lower()} configurations"
    if len(named) > _MOST_SYSTEMS:
        return f"{in_words(len(named))} configurations" if is_same else "some configurations"
    return all_of(named) if is_same else any_of(named)


def _every(answers: Sequence[Answer]) -> str:
    return "Both" if len(answers) == 2 else f"All {in_words(len(answers))}"


def _words_in(tasks_of_words: _Words, tasks: Sequence[str], of: Answer, sentences: Sequence[int]) -> str:
    """The words, with their tasks where these are not all; of several sentences or many words the counts."""
    if len(sentences) > 1 or len(tasks_of_words) > _MOST_WORDS_NAMED:
        counts = Counter(task for in_tasks in tasks_of_words.values() for task in in_tasks)
        return all_of([f"{plural(counts[task], 'word')} in {task}" for task in tasks if counts[task]])
    named = [
        of.sentences[number].tokens[place] + f" ({', '.join(in_tasks)})" * (len(in_tasks) < len(tasks))
        for (number, place), in_tasks in sorted(tasks_of_words.items())
    ]
    return all_of(named)


def waiting_sentence(answered: int, asked: int, encoders: Iterable[str], training: int) -> str:
    """What the page waits for, and that it needs no click: `Loading minilm: 0 of 20 models have answered.`

    `encoders` are those of the models without an answer, `training` the runs that train on this machine.
    """
    names = all_of(sorted({field_text("encoder", encoder) for encoder in encoders}))
    runs = "One run trains" if training == 1 else f"{capitalised(in_words(training))} runs train"
    return (
        f"Loading {names}: {answered} of {plural(asked, 'model')} have answered."
        + f" {runs} on the same machine meanwhile." * bool(training)
        + " Answers appear here by themselves."
    )


# Lanes


Placed = tuple[str, Sequence[PlacedWord]]
"""A text, and the words of a sentence with their places in it."""


def blocks(
    sentences: Sequence[Sentence],
    answers: Sequence[Answer],
    known: Mapping[str, str],
    places: Sequence[Placed] | None = None,
) -> list[SentenceBlock]:
    """A block per sentence: of each task the gold labels, a lane per configuration, and its seeds' lanes.

    Against gold labels mistakes are marked by kind; without them, the words on which configurations
    disagree, and what differs there from the first lane. The lane of a seed without gold labels is compared
    with its configuration's. `places` has the text of each sentence; without, it is the words with a space
    between them.
    """
    schemes = tasks_reading(schemes_of(answers), "words")
    tasks, colour = ordered(list(schemes), known)
    blocks_of_sentences = []
    for number, sentence in enumerate(sentences):
        lanes: list[Lane] = []
        for task in tasks:
            with_task = [answer for answer in answers if task in answer.schemes]
            gold = sentence.labels.get(task)
            lanes += _lanes(
                with_task, number, gold, Lane(task, colour[task], lane_kind(schemes[task]), ()), schemes[task]
            )
        about = disagreement(answers, [number])
        placed = joined_words(sentence.tokens) if places is None else places[number]
        spans = spans_json([(answer, answer.sentences[number]) for answer in answers], *placed)
        blocks_of_sentences.append(SentenceBlock(sentence.tokens, tuple(lanes), about, spans))
    return blocks_of_sentences


def spans_json(
    answers: Sequence[tuple[Answer, TaggedSentence]], text: str, words: Sequence[PlacedWord]
) -> str:
    """The spans of a sentence as `mrnlab tag --json` has them, by task; of several models by their names too.

    Empty where no task has spans.
    """
    by_model = {
        answer.who: {
            task: [asdict(span) for span in spans]
            for task, spans in spans_in(text, words, tagged, answer.schemes).items()
        }
        for answer, tagged in answers
    }
    if not any(by_model.values()):
        return ""
    document = by_model if len(by_model) > 1 else next(iter(by_model.values()))
    return json.dumps(document, ensure_ascii=False, indent=1)


def _lanes(
    answers: Sequence[Answer], number: int, gold: Sequence[str] | None, lane: Lane, scheme: str
) -> list[Lane]:
    """The lanes of one task in one sentence: gold labels, then each configuration and its seeds.
    `lane` has what all of them share.
    """
    task = lane.task
    in_question = set[int]().union(*differing_places(answers, task, number)) if gold is None else set()
    lanes = [] if gold is None else [replace(lane, cells=marks(gold, scheme), who="gold")]

    def cells_of(answer: Answer, other: Answer | None) -> list[Mark]:
        column = answer.sentences[number].tags[task]
        labels = labels_of(answer.sentences[number], task)
        least = _LEAST_SHARE if other and answer in other.seeds else 0.0
        cells = [
            replace(cell, shares=tuple(share for share in tag.alternatives if share[1] >= least))
            for cell, tag in zip(marks(labels, scheme), column, strict=True)
        ]
        if gold is not None:
            _outline(cells, gold, labels, scheme)
        elif other is not None:
            both = zip(decided(answer, task, number), decided(other, task, number), strict=True)
            places = {place for place, pair in enumerate(both) if None not in pair and len(set(pair)) > 1}
            _outline(cells, labels_of(other.sentences[number], task), labels, scheme, other.who, places)
        return cells

    for answer in answers:
        seeds = answer.with_task(task)
        cells = cells_of(answer, answers[0] if answer is not answers[0] else None)
        for place in in_question:
            cells[place] = replace(cells[place], in_question=True)
        if seeds:
            _agree(cells, [labels_of(seed.sentences[number], task) for seed in seeds], scheme)
        shown = answer.who if len(answers) > 1 or gold is not None or seeds else ""
        is_reference = gold is None and len(answers) > 1 and answer is answers[0]
        lanes.append(
            replace(lane, cells=tuple(cells), who=shown, seeds=len(seeds), is_reference=is_reference)
        )
        lanes += [
            replace(lane, cells=tuple(cells_of(seed, answer)), who=seed.who, of=answer.who) for seed in seeds
        ]
    return lanes


def _agree(cells: list[Mark], columns: Sequence[Sequence[str]], scheme: str) -> None:
    """Marks how many seeds (`columns` has the labels of each) agree on a label, and spans of few of them.
    A word of which no label leads is `tied`.
    """
    for index, of_word in enumerate(zip(*columns, strict=True)):
        votes = Counter(of_word)
        is_tied = not KINDS[scheme].has_spans and leading(votes) == SPLIT
        cells[index] = replace(
            cells[index], votes=tuple(votes.most_common()), agreed=max(votes.values()), tied=is_tied
        )
    if not KINDS[scheme].has_spans:
        return
    most, others = majority(columns)
    for span, count in most.items():
        for index in range(span.start, span.end):
            cells[index] = replace(cells[index], agreed=count)
    for span, count in others.items():
        if any(cell.inside for cell in cells[span.start : span.end]):
            continue
        for index in range(span.start, span.end):
            start, end = index == span.start, index == span.end - 1
            cells[index] = replace(
                cells[index], text=span.type, inside=True, start=start, end=end, few=True, agreed=count
            )


def _outline(
    cells: list[Mark],
    right: Sequence[str],
    labels: Sequence[str],
    scheme: str,
    who: str = "",
    places: Set[int] | None = None,
) -> None:
    """Outlines the labels that differ from the reference: the labels of `who`, else the gold labels.
    Against gold labels the kind of a span's mistake is written after its label. With `places` only what
    covers one of these words is outlined.
    """
    for mistake in KINDS[scheme].mistakes(right, labels):
        if places is not None and places.isdisjoint(range(mistake.start, mistake.end)):
            continue
        note = "" if who or not KINDS[scheme].has_spans else _SHORT.get(mistake.kind, mistake.kind)
        start = who or f"{mistake.kind.capitalize()}; gold"
        for index in range(mistake.start, mistake.end):
            cell = replace(cells[index], differs=True, why=f"{start}: {right[index]}", note=note)
            if mistake.kind == MISSED:
                first, last = index == mistake.start, index == mistake.end - 1
                cell = replace(cell, text=mistake.gold, inside=True, ghost=True, start=first, end=last)
            cells[index] = cell


def undrawn(lanes: Sequence[Lane]) -> set[str]:
    """The marks of the legend that none of these lanes has."""
    marks = [mark for lane in lanes for mark in lane.cells]
    drawn = {
        "few": any(
            0 < 2 * mark.agreed <= lane.seeds and not mark.tied for lane in lanes for mark in lane.cells
        ),
        "split": any(mark.tied for mark in marks),
        "hollow": any(mark.few for mark in marks),
        "outline": any(mark.differs for mark in marks),
        "dashed": any(mark.ghost for mark in marks),
    }
    return {name for name, is_drawn in drawn.items() if not is_drawn}


def about_confidence(configs: Iterable[RunConfig]) -> str:
    """A note on the confidence of models with a CRF; empty if there are none."""
    if all(config.head == "linear" for config in configs):
        return ""
    return (
        "With a CRF the confidence is marginal: the probability of the label over all sequences. Labels are "
        "those of the best sequence, so another label of a word may be likelier."
    )


# Mistakes against gold labels


@dataclass(frozen=True)
class Marked:
    """One system's score on one task; with labels of single sentences, its mistakes by kind."""

    score: TaskScore
    who: str = ""
    kinds: Mapping[str, int] | None = None


def marked(
    answers: Sequence[Answer], sentences: Sequence[Sentence], plain_score: PlainScore = "accuracy"
) -> list[Marked]:
    """Scores and mistakes of each answer against the gold labels, task by task, by the scorer of training."""
    rows = []
    for answer in answers:
        tasks = tasks_reading(answer.schemes, "words", "sentence")
        for score in given_scores(sentences, answer.sentences, tasks, plain_score):
            kind, counts = KINDS[tasks[score.task]], Counter[str]()
            for sentence, tagged in zip(sentences, answer.sentences, strict=True):
                if score.task in sentence.labels:
                    mistakes = kind.mistakes(sentence.labels[score.task], labels_of(tagged, score.task))
                    counts.update(mistake.kind for mistake in mistakes)
            rows.append(
                Marked(score, answer.who, {name: counts[name] for name in MISTAKE_KINDS if counts[name]})
            )
    order = list(dict.fromkeys(row.score.task for row in rows))
    return sorted(rows, key=lambda row: order.index(row.score.task))


def score_rows(rows: Sequence[Marked], schemes: Mapping[str, str]) -> list[dict[str, str]]:
    """A row for each task and system: its scores, over how many items, and its mistakes where counted."""
    beside = [KINDS[schemes[row.score.task]].secondary_scores(row.score) for row in rows]
    names = dict.fromkeys(name for of in beside for name, value in of.items() if value is not None)
    return [
        {"Task": row.score.task}
        | ({"Model": row.who} if len({row.who for row in rows}) > 1 else {})
        | {
            "Score": percent(row.score.score),
            "Measure": SCORE_NAMES.get(row.score.score_name, row.score.score_name),
            **{name: percent(others.get(name)) for name in names},
            "Over": plural(row.score.tokens, KINDS[schemes[row.score.task]].item),
        }
        | ({} if row.kinds is None else {"Mistakes": kinds_in_words(row.kinds)})
        for row, others in zip(rows, beside, strict=True)
    ]


def mistakes_in_words(rows: Sequence[Marked]) -> str:
    """`STL makes 2 mistakes and MTL none.`, of one system `2 mistakes.`; empty where none are counted."""
    counts = Counter[str]()
    for row in rows:
        if row.kinds is not None:
            counts[row.who] += sum(row.kinds.values())
    if len(counts) > 1:
        (first, mistakes), *others = counts.items()
        of_first = f"{first} makes {plural(mistakes, 'mistake') if mistakes else 'no mistake'}"
        of_others = [f"{who} {f'{count:,}' if count else 'none'}" for who, count in others]
        return f"{all_of([of_first, *of_others])}."
    return "".join(f"{plural(count, 'mistake')}." if count else "No mistake." for count in counts.values())


def kinds_in_words(kinds: Mapping[str, int]) -> str:
    """`2 wrong labels, 1 missed`; `all right` where there is none."""
    plurals = {LABEL: "wrong labels", BOUNDARY: "wrong boundaries"}
    parts = [f"{count} {kind if count == 1 else plurals.get(kind, kind)}" for kind, count in kinds.items()]
    return all_of(parts) or "all right"


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence, text or pair of the test split, with the number of stored mistakes on each task.
    `off` is the error of the predicted numbers.
    """

    sentence: Sentence
    wrong: Mapping[str, int]
    off: Mapping[str, float] = field(default_factory=dict)


def checked(
    sentences: Sequence[Sentence], stored: Mapping[str, tuple[Labels, Labels]], schemes: Mapping[str, str]
) -> list[CheckedSentence]:
    """The test sentences with the mistakes of the predictions stored when the run ended.

    `stored` has per task the gold and the predicted labels of the sentences that are annotated for it.
    Raises CorpusError where they are not those of these sentences: the corpus has changed since.
    """
    wrong: list[dict[str, int]] = [{} for _ in sentences]
    off: list[dict[str, float]] = [{} for _ in sentences]
    for task, (gold, predicted) in stored.items():
        annotated = [index for index, sentence in enumerate(sentences) if task in sentence.labels]
        lengths = [len(sentences[index].labels[task]) for index in annotated]
        if lengths != list(map(len, gold)):
            raise CorpusError(
                f"The test sentences of {task} are not those that the run was tested on; the corpus has "
                "changed since. Train the run again to see its mistakes."
            )
        for index, true, guess in zip(annotated, gold, predicted, strict=True):
            if KINDS[schemes[task]].is_number:
                off[index][task] = abs(float(true[0]) - float(guess[0]))
            elif list(true) != list(guess):
                wrong[index][task] = len(KINDS[schemes[task]].mistakes(true, guess))
    return [CheckedSentence(*each) for each in zip(sentences, wrong, off, strict=True)]


def matching(tested: Sequence[CheckedSentence], which: str) -> list[Sentence]:
    """The test sentences with errors in a task, in `any task` or in `no task`, or all.
    Of a task of numbers the largest errors come first.
    """
    if any(which in checked.off for checked in tested):
        numbers = sorted(tested, key=lambda checked: -checked.off.get(which, -1.0))
        return [checked.sentence for checked in numbers if which in checked.off]

    def fits(checked: CheckedSentence) -> bool:
        special = {ANY_TASK: bool(checked.wrong), NO_TASK: not checked.wrong, ALL_SENTENCES: True}
        return special.get(which, which in checked.wrong)

    return [checked.sentence for checked in tested if fits(checked)]
