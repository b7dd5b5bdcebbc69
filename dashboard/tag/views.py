"""The systems of the Tag page and their answers: lanes to draw, mistakes against gold labels.

A system is a run, or the STL runs of one seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.config import comparison_key
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.store.records import ACTIVE, Run, RunState
from core.tagging import Answered, TaggedSentence, WordTag, given_scores, labels_of
from core.tasks import KINDS, reading
from core.tasks.confusion import (
    BOUNDARY,
    BOUNDARY_AND_LABEL,
    LABEL,
    MISSED,
    MISTAKE_KINDS,
)
from core.tasks.scores import PlainScore
from core.wording import all_of, plural
from dashboard.components.sentence import Lane, Mark, SentenceBlock, lane_kind, marks
from dashboard.theme import PARADIGM_NAMES, colours
from jobs.reports.naming import shortest_names

MOST_SYSTEMS = 8
"""Lanes of a task that one can still compare."""

# Beside a span's label, where every letter widens the words above.
_SHORT = {LABEL: "label", BOUNDARY: "boundary", BOUNDARY_AND_LABEL: "boundary, label"}

Labels = Sequence[Sequence[str]]

ANY_TASK, NO_TASK, ALL_SENTENCES = "any task", "no task", "all sentences"


@dataclass(frozen=True)
class System:
    """A run, or the STL runs of one configuration and seed, which have a task each."""

    runs: tuple[Run, ...]
    who: str

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Their checkpoint folders."""
        return tuple(run.checkpoint or "" for run in self.runs)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks of its runs."""
        return tuple(task for run in self.runs for task in run.config.tasks)


@dataclass(frozen=True)
class Answer:
    """One system's answers on sentences, and on whole texts."""

    who: str
    schemes: Mapping[str, str]
    sentences: tuple[TaggedSentence, ...]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    scales: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    texts: tuple[Answered, ...] = ()


def has_model(run: Run) -> bool:
    """Whether the run has left a model to tag with."""
    return run.state is RunState.SUCCEEDED and bool(run.checkpoint)


def why_not(run: Run) -> str:
    """The reason why a run without a model cannot be asked, and the next step."""
    if run.state in ACTIVE or run.state is RunState.QUEUED:
        return f"Run {run.id} is not finished; it can tag when it is."
    if run.state is RunState.SUCCEEDED:
        return f"Run {run.id} kept no checkpoint; train it again to tag with it."
    return f"Run {run.id} did not finish, so it has no model to tag with; the run's page says what to do."


def systems(runs: Sequence[Run]) -> list[System]:
    """The systems among these runs: STL, MTL, MRN, of each the earlier run first."""
    groups: list[list[Run]] = []
    for run in runs:
        group = next((group for group in groups if _belongs(run, group)), None)
        if group is None:
            groups.append([run])
        else:
            group.append(run)
    groups.sort(key=lambda group: (tuple(PARADIGM_NAMES).index(group[0].config.paradigm), group[0].id))
    return [System(tuple(group), who) for group, who in zip(groups, _names(groups), strict=True)]


def _belongs(run: Run, group: Sequence[Run]) -> bool:
    """Whether an STL run belongs to these: the same configuration and seed, another task."""
    first = group[0]
    return (
        run.config.paradigm == first.config.paradigm == "stl"
        and run.config.seed == first.config.seed
        and comparison_key(run.config) == comparison_key(first.config)
        and run.config.tasks[0] not in {other.config.tasks[0] for other in group}
    )


def _names(groups: Sequence[Sequence[Run]]) -> list[str]:
    """The configuration of each, with the seed, then the number, where several would be named alike."""
    names = shortest_names([group[0].config for group in groups])
    for part in ("seed", "run"):
        for name in [name for name, count in Counter(names).items() if count > 1]:
            alike = [index for index, other in enumerate(names) if other == name]
            firsts = [groups[index][0] for index in alike]
            texts = [f"{part} {run.config.seed if part == 'seed' else run.id}" for run in firsts]
            for index, text in zip(alike, texts, strict=True):
                names[index] += f" · {text}" if len(set(texts)) > 1 else ""
    return names


def first_choice(runs: Sequence[Run]) -> list[int]:
    """The run to ask by default: the newest of several tasks, else the newest."""
    return [max(runs, key=lambda run: (len(run.config.tasks) > 1, run.id)).id]


def schemes_of(answers: Sequence[Answer]) -> dict[str, str]:
    """The tasks of these answers, each with the scheme of its labels."""
    return {task: scheme for answer in answers for task, scheme in answer.schemes.items()}


def ordered(tasks: Sequence[str], known: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The tasks in the order of the known ones, others last, and the colour of each."""
    rank = {task: place for place, task in enumerate(known)}
    in_order = sorted(tasks, key=lambda task: rank.get(task, len(rank)))
    return in_order, colours(in_order, known)


def differing_words(answers: Sequence[Answer], task: str, sentence: int) -> int:
    """On how many words of a sentence the systems that have the task do not all choose one label."""
    columns = [_labels(answer.sentences[sentence].tags[task]) for answer in answers if task in answer.schemes]
    return sum(len(set(labels)) > 1 for labels in zip(*columns, strict=True))


def disagreement(answers: Sequence[Answer], sentences: Sequence[int]) -> str:
    """`The runs disagree on 1 word in chunk.` of these sentences; empty where no task has two answers."""
    known = reading(schemes_of(answers), "words")
    tasks = [task for task in known if sum(task in answer.schemes for answer in answers) > 1]
    counts = {task: sum(differing_words(answers, task, number) for number in sentences) for task in tasks}
    parts = [f"{plural(count, 'word')} in {task}" for task, count in counts.items() if count]
    if not tasks:
        return ""
    return f"The runs disagree on {all_of(parts)}." if parts else "The runs agree on every word."


# Lanes


def blocks(
    sentences: Sequence[Sentence], answers: Sequence[Answer], known: Mapping[str, str]
) -> list[SentenceBlock]:
    """A block per sentence: of each task the gold labels and a lane per system.

    Against gold labels mistakes are marked by kind; without them, whatever differs from the first lane.
    """
    schemes = reading(schemes_of(answers), "words")
    tasks, colour = ordered(list(schemes), known)
    blocks_of_sentences = []
    for number, sentence in enumerate(sentences):
        lanes: list[Lane] = []
        for task in tasks:
            with_task = [answer for answer in answers if task in answer.schemes]
            columns = [(answer.who, answer.sentences[number].tags[task]) for answer in with_task]
            lanes += _lanes(columns, sentence.labels.get(task), task, schemes[task], colour[task])
        about = disagreement(answers, [number])
        blocks_of_sentences.append(SentenceBlock(sentence.tokens, tuple(lanes), about))
    return blocks_of_sentences


def _lanes(
    columns: Sequence[tuple[str, Sequence[WordTag]]],
    gold: Sequence[str] | None,
    task: str,
    scheme: str,
    colour: str,
) -> list[Lane]:
    """The lanes of one task in one sentence: gold labels, and the answers of each system (`columns`)."""
    kind = lane_kind(scheme)
    lanes = [] if gold is None else [Lane(task, colour, kind, marks(gold, scheme), who="gold")]
    first_who, first = columns[0]
    for place, (who, column) in enumerate(columns):
        cells = [
            replace(cell, shares=tag.alternatives)
            for cell, tag in zip(marks(_labels(column), scheme), column, strict=True)
        ]
        if gold is not None:
            _outline(cells, gold, column, scheme)
        elif place:
            _outline(cells, _labels(first), column, scheme, first_who)
        shown = who if len(columns) > 1 or gold is not None else ""
        lanes.append(Lane(task, colour, kind, tuple(cells), who=shown))
    return lanes


def _labels(column: Sequence[WordTag]) -> tuple[str, ...]:
    return tuple(tag.label for tag in column)


def _outline(
    cells: list[Mark], right: Sequence[str], column: Sequence[WordTag], scheme: str, who: str = ""
) -> None:
    """Outlines of the labels that differ from the right ones, which are `who`'s or the gold labels.
    Against gold labels the kind of a span's mistake is written after its label.
    """
    for mistake in KINDS[scheme].mistakes(right, _labels(column)):
        note = "" if who or not KINDS[scheme].has_spans else _SHORT.get(mistake.kind, mistake.kind)
        start = who or f"{mistake.kind.capitalize()}; gold"
        for index in range(mistake.start, mistake.end):
            cell = replace(cells[index], differs=True, why=f"{start}: {right[index]}", note=note)
            if mistake.kind == MISSED:
                first, last = index == mistake.start, index == mistake.end - 1
                cell = replace(cell, text=mistake.gold, inside=True, ghost=True, start=first, end=last)
            cells[index] = cell


def about_confidence(chosen_systems: Sequence[System]) -> str:
    """A note on the confidence of runs with a CRF; empty if there are none."""
    if all(run.config.head == "linear" for system in chosen_systems for run in system.runs):
        return ""
    return (
        "With a CRF the confidence is marginal: the probability of the label over all sequences. Labels are "
        "those of the best sequence, so another label of a word may be likelier."
    )


# Mistakes against gold labels


@dataclass(frozen=True)
class Marked:
    """One system's score on one task over so many items, or why it is undefined, and mistakes by kind."""

    who: str
    task: str
    score_name: str
    score: float
    items: int
    kinds: Mapping[str, int]
    why_undefined: str = ""


def marked(
    answers: Sequence[Answer], sentences: Sequence[Sentence], plain_score: PlainScore = "accuracy"
) -> list[Marked]:
    """Scores and mistakes of each answer against the gold labels, task by task, by the scorer of training."""
    rows = []
    for answer in answers:
        tasks = reading(answer.schemes, "words", "sentence")
        for score in given_scores(sentences, answer.sentences, tasks, plain_score):
            task, counts = score.task, Counter[str]()
            for sentence, tagged in zip(sentences, answer.sentences, strict=True):
                if task in sentence.labels:
                    guess = labels_of(tagged, task)
                    scheme = answer.schemes[task]
                    counts.update(
                        mistake.kind for mistake in KINDS[scheme].mistakes(sentence.labels[task], guess)
                    )
            kinds = {kind: counts[kind] for kind in MISTAKE_KINDS if counts[kind]}
            why = "" if score.is_defined else score.undefined_because("the text")
            rows.append(Marked(answer.who, task, score.score_name, score.score, score.tokens, kinds, why))
    return rows


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
        if [len(sentences[index].items_of(task)) for index in annotated] != [len(labels) for labels in gold]:
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
