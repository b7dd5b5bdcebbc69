"""Who is asked on the Tag page and what they answer: runs, STL runs of a launch as one, votes of seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.config import kind_key
from core.corpora.free_text import GivenTask
from core.corpora.types import Sentence
from core.errors import CorpusError
from core.evaluation.confusion import KINDS, mistakes
from core.evaluation.scores import PlainScore
from core.store.records import ACTIVE, Run, RunState
from core.tagging import TaggedSentence, WordTag, given_scores
from core.wording import all_of, plural
from dashboard.theme import PARADIGM_NAMES
from jobs.naming import run_name

MOST_SYSTEMS = 8
"""So many lanes of a task one can still compare."""

_FEWEST_VOTES = 3


@dataclass(frozen=True)
class System:
    """What answers as one: a run, or the STL runs of one launch and seed, which have a task each."""

    runs: tuple[Run, ...]
    name: str
    who: str

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Their checkpoint folders."""
        return tuple(run.checkpoint or "" for run in self.runs)

    @property
    def kind(self) -> str:
        """The same for all seeds of a configuration."""
        return kind_key(self.runs[0].config)

    @property
    def seed(self) -> int:
        """The seed, which all of its runs share."""
        return self.runs[0].config.seed


@dataclass(frozen=True)
class Answer:
    """What one system, or a vote, says of some sentences."""

    who: str
    schemes: Mapping[str, str]
    sentences: tuple[TaggedSentence, ...]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    voters: int = 1


def has_model(run: Run) -> bool:
    """Whether the run has left a model to tag with."""
    return run.state is RunState.SUCCEEDED and bool(run.checkpoint)


def why_not(run: Run) -> str:
    """Why a run that has no model cannot be asked, and what to do."""
    if run.state in ACTIVE or run.state is RunState.QUEUED:
        return f"Run {run.id} is not finished; it can be asked when it is."
    if run.state is RunState.SUCCEEDED:
        return f"Run {run.id} kept no checkpoint; train it again to tag with it."
    return f"Run {run.id} did not finish, so it has no model to tag with; Retry on Runs trains it again."


def systems(runs: Sequence[Run]) -> list[System]:
    """The systems among these runs, in the order of their first runs."""
    groups: list[list[Run]] = []
    for run in runs:
        for group in groups:
            if _belongs(run, group):
                group.append(run)
                break
        else:
            groups.append([run])
    several = len({group[0].config.seed for group in groups}) > 1
    return [_system(group, several) for group in groups]


def _belongs(run: Run, group: Sequence[Run]) -> bool:
    """Whether an STL run stands with these: of the same launch, configuration and seed, with another task."""
    first = group[0]
    return (
        run.config.paradigm == first.config.paradigm == "stl"
        and run.sweep is not None
        and run.sweep == first.sweep
        and run.config.seed == first.config.seed
        and kind_key(run.config) == kind_key(first.config)
        and run.config.tasks[0] not in {other.config.tasks[0] for other in group}
    )


def _system(group: Sequence[Run], several_seeds: bool) -> System:
    first = group[0]
    told = _numbers(group)
    who = f"{PARADIGM_NAMES[first.config.paradigm]} {told}"
    if several_seeds:
        who += f" · seed {first.config.seed}"
    tasks = all_of([run.config.tasks[0] for run in group])
    name = run_name(first) if len(group) == 1 else f"{told} · STL {tasks} · seed {first.config.seed}"
    return System(tuple(group), name, who)


def _numbers(runs: Sequence[Run]) -> str:
    """`3–5`, `3 and 7`: the numbers of these runs."""
    numbers = sorted(run.id for run in runs)
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}–{numbers[-1]}"
    return all_of([str(number) for number in numbers])


def votes(asked: Sequence[System], answers: Sequence[Answer]) -> list[Answer]:
    """For each configuration of which three seeds or more are asked, what most of them say, word by word.

    The share of a label is the share of seeds that chose it. Of labels with as many votes, the one wins of
    which the seeds are surer. Of a seed that was run again the newest run votes.
    """
    voters: dict[str, dict[tuple[int, tuple[str, ...]], int]] = {}
    for place in sorted(range(len(asked)), key=lambda place: asked[place].runs[0].id):
        tasks = tuple(task for run in asked[place].runs for task in run.config.tasks)
        voters.setdefault(asked[place].kind, {})[asked[place].seed, tasks] = place
    voting = [
        sorted(places.values())
        for places in voters.values()
        if len({seed for seed, _ in places}) >= _FEWEST_VOTES
    ]
    made = []
    for places in voting:
        own = [answers[place] for place in places]
        numbers = _numbers([run for place in places for run in asked[place].runs])
        made.append(_vote(f"Majority of {numbers if len(own) < len(asked) else len(own)}", own))
    return made


def _vote(who: str, answers: Sequence[Answer]) -> Answer:
    schemes = {task: scheme for answer in answers for task, scheme in answer.schemes.items()}
    sentences = []
    for of_all in zip(*(answer.sentences for answer in answers), strict=True):
        tags = {}
        for task in schemes:
            columns = [one.tags[task] for one in of_all if task in one.tags]
            tags[task] = tuple(_elected(words) for words in zip(*columns, strict=True))
        sentences.append(TaggedSentence(of_all[0].tokens, tags))
    return Answer(who, schemes, tuple(sentences), voters=len(answers))


def _elected(tags: Sequence[WordTag]) -> WordTag:
    counts = Counter(tag.label for tag in tags)
    sure = dict.fromkeys(counts, 0.0)
    for tag in tags:
        sure[tag.label] += tag.confidence
    ranked = sorted(counts, key=lambda label: (-counts[label], -sure[label], label))
    shares = tuple((label, counts[label] / len(tags)) for label in ranked)
    return WordTag(shares[0][0], shares[0][1], shares)


def differing_words(answers: Sequence[Answer], task: str, sentence: int) -> int:
    """On how many words of a sentence the systems that have the task do not all choose one label."""
    columns = [
        [tag.label for tag in answer.sentences[sentence].tags[task]]
        for answer in answers
        if task in answer.schemes
    ]
    return sum(len(set(labels)) > 1 for labels in zip(*columns, strict=True))


def given_tasks(answers: Sequence[Answer]) -> list[GivenTask]:
    """The tasks that gold labels may be given for, with all labels that any of these knows."""
    schemes = {task: scheme for answer in answers for task, scheme in answer.schemes.items()}
    return [
        GivenTask(
            task,
            scheme,
            tuple(dict.fromkeys(label for answer in answers for label in answer.labels.get(task, ()))),
        )
        for task, scheme in schemes.items()
    ]


def first_choice(runs: Sequence[Run]) -> list[int]:
    """Whom to ask where nothing is chosen: the newest run of several tasks, else the newest."""
    return [max(runs, key=lambda run: (len(run.config.tasks) > 1, run.id)).id]


# Mistakes against gold labels: counted by kind, and the test sentences that hold some.


@dataclass(frozen=True)
class Marked:
    """How one system did on one task: its score and its mistakes by kind."""

    who: str
    task: str
    score_name: str
    score: float
    words: int
    kinds: Mapping[str, int]


@dataclass(frozen=True)
class CheckedSentence:
    """A sentence of the test split with how many mistakes the stored predictions make on each task."""

    sentence: Sentence
    wrong: Mapping[str, int]


def marked(
    answers: Sequence[Answer], sentences: Sequence[Sentence], plain_score: PlainScore = "accuracy"
) -> list[Marked]:
    """Scores and mistakes of each answer against the gold labels, task by task, by the scorer of training."""
    rows = []
    for answer in answers:
        scores = given_scores(sentences, answer.sentences, answer.schemes, plain_score)
        for score in scores:
            counts = Counter(
                mistake.kind
                for sentence, tagged in zip(sentences, answer.sentences, strict=True)
                if score.task in sentence.labels
                for mistake in mistakes(
                    sentence.labels[score.task],
                    [tag.label for tag in tagged.tags[score.task]],
                    answer.schemes[score.task],
                )
            )
            kinds = {kind: counts[kind] for kind in KINDS if counts[kind]}
            rows.append(Marked(answer.who, score.task, score.score_name, score.score, score.tokens, kinds))
    return rows


def kinds_in_words(kinds: Mapping[str, int]) -> str:
    """`2 wrong labels, 1 missed`; `all right` where there is none."""
    plurals = {"missed": "missed", "invented": "invented", "wrong boundary": "wrong boundaries"}
    told = [
        plural(number, kind, plurals.get(kind)) if "and" not in kind else f"{number} {kind}"
        for kind, number in kinds.items()
    ]
    return all_of(told) or "all right"


def checked(
    sentences: Sequence[Sentence],
    stored: Mapping[str, tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]]],
    schemes: Mapping[str, str],
) -> list[CheckedSentence]:
    """The test sentences with the mistakes of the predictions stored when the run ended.

    `stored` has per task the gold and the predicted labels of the sentences that are annotated for it.
    Raises CorpusError where they are not those of these sentences: the corpus has changed since.
    """
    wrong: list[dict[str, int]] = [{} for _ in sentences]
    for task, (gold, predicted) in stored.items():
        annotated = [place for place, one in enumerate(sentences) if task in one.labels]
        same = len(annotated) == len(gold) and all(
            len(sentences[place].tokens) == len(labels) for place, labels in zip(annotated, gold, strict=True)
        )
        if not same:
            raise CorpusError(
                f"The test sentences of {task} are not those that the run was tested on; the corpus has "
                "changed since. Train the run again to see its mistakes."
            )
        for place, true, guess in zip(annotated, gold, predicted, strict=True):
            if list(true) != list(guess):
                wrong[place][task] = len(mistakes(true, guess, schemes[task]))
    return [CheckedSentence(one, counts) for one, counts in zip(sentences, wrong, strict=True)]
