"""The library for notebooks and scripts: describe a run, train it here, read it and past runs as DataFrames.

`docs/library.md` shows all of it at work. Torch is imported when a run is trained or tags, not before.
"""

from __future__ import annotations

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from core.config import FIELD_HELP, RunConfig, public_name
from core.config.fields import comma_list
from core.corpora import load, prepare
from core.corpora.assembly import older_text_hash
from core.corpora.catalogue.hub import HubName
from core.corpora.catalogue.uploads import save_dataset
from core.corpora.loading import read
from core.corpora.readers.lines import GivenFile, read_bytes
from core.corpora.readers.splitting import joined_words, place_words, split_sentences
from core.corpora.types import Sentence, Split, whole_text
from core.errors import ConfigError, CorpusError, MRNLabError
from core.evaluation.comparison import check_matters
from core.evaluation.statistics import MATTERS
from core.mrn.relations import row_names
from core.paths import given_path, own_checkpoint
from core.predictions import Predictions, add_predictions
from core.recording.foreground import train_here
from core.recording.progress import progress_bar
from core.registry import MODES
from core.report import PARTS, ReportAsked, make_report
from core.results.compared import COMPARED_COLUMNS, compared
from core.results.comparisons import differences
from core.results.records import SCORE_COLUMNS, score_records
from core.results.relations import RELATION_COLUMNS, relation_tables
from core.results.samples import readable
from core.results.series import baselines, number_series, scores_against
from core.results.stored import stored_results
from core.results.suspects import AGREE, SUSPECT_COLUMNS, suspects
from core.results.where import WHERE_COLUMNS, where
from core.store import Run, RunState, RunWithFacts, Store
from core.tagging import TaggedSpan, Tagger, check_texts, load_tagger, spans_in, text_of
from core.tasks import KINDS, tasks_reading
from core.tasks.scores import SECONDARY_SCORES, report_rows
from core.wording import all_of

if TYPE_CHECKING:
    from datasets import Dataset

    from core.figures import Figure

    Table: TypeAlias = pd.DataFrame | Dataset

_PROGRESS = ["state", "sweep", "created_at", "seconds", "best_epoch"]
_SCORES = ["score_name", "score", *SECONDARY_SCORES, "tokens"]
_VALUES = ("gold", "predicted")
_PREDICTED = ["task", "sentence", "position", "word", "text", "second", *_VALUES]
_ALL = 1_000_000  # more labels than a task has
_METRICS = ["run", "task", "split", "name", "step", "epoch", "seconds", "value"]


def describe(corpus: str | Table | Mapping[str, Table], *, name: str = "data", **fields: Any) -> RunConfig:
    """The description of one run.

    `fields` are the fields of RunConfig (`lambda_` for λ); without `tasks`, all tasks of the corpus.

    `corpus` is the name of a corpus, or data: a `DatasetDict` of `datasets`, pandas DataFrames by split, or
    one DataFrame, of which a tenth is the test split. Data are kept in the laboratory's folder `uploads`, and
    called `name`; `columns` then says which to read, as in the name of a dataset (docs/corpora.md).

    Raises ConfigError naming the field that is wrong, CorpusError where the corpus cannot be read.
    """
    if not isinstance(corpus, str):
        columns = fields.pop("columns", None) or ()
        chosen = comma_list(columns) if isinstance(columns, str) else columns
        corpus = str(HubName(str(save_dataset(corpus, name)), columns=tuple(chosen)))
    if fields.get("tasks") is None:
        columns = fields.get("columns")
        names = columns.split(",") if isinstance(columns, str) else columns
        fields["tasks"] = tuple(task.name for task in load(corpus, names).tasks)
    return RunConfig.build(corpus=corpus, **fields)


def train(run: RunConfig, *, lab: Laboratory | None = None, progress: bool = True) -> StoredRun:
    """Train a run in this process and return it with all that it recorded.

    In `lab` it is kept like a run that a worker trains, and the pages show it while it trains. Without, it is
    kept in a temporary folder for as long as the returned value is. `progress` shows a bar on standard error.

    Raises MRNLabError where the run cannot be trained, or is stopped by another process.
    """
    if not isinstance(run, RunConfig):
        raise ConfigError("configuration", "train() takes the description of a run; describe() makes one.")
    folder = None
    if lab is None:
        folder = Path(tempfile.mkdtemp(prefix="mrnlab-"))
        lab = Laboratory(f"sqlite:///{folder / 'runs.db'}")
        weakref.finalize(lab, shutil.rmtree, folder, ignore_errors=True)
    with progress_bar(progress) as watch:
        run_id = train_here(lab.store, run, watch, folder)
    return StoredRun(lab, run_id, folder)


def _word_lists(table: pd.DataFrame) -> bytes:
    """JSON lines with the words and labels of each sentence. Raises CorpusError."""
    if "tokens" not in table:
        if not {"sentence", "word"} <= set(table):
            raise CorpusError("The table needs columns sentence and word, or tokens, beside its labels.")
        words = table.rename(columns={"word": "tokens"})
        table = words.groupby("sentence", sort=False).agg(list).reset_index(drop=True)
    return table.to_json(orient="records", lines=True, force_ascii=False).encode()


def _places(sentence: Sentence, task: str) -> list[dict[str, object]]:
    """The positions of a task's labels: its words, or the whole text or pair."""
    if not sentence.is_of_text(task):
        return [{"position": position, "word": word} for position, word in enumerate(sentence.tokens)]
    text, second = text_of(sentence)
    return [{"text": text} if second is None else {"text": text, "second": second}]


def _id(run: Run) -> int:
    return run.id


def _problem(run: Run) -> str:
    """Why a run is in no table with the baseline."""
    return "is on other data" if run.state is RunState.SUCCEEDED else f"is {run.state.word}"


class Laboratory:
    """The runs of a store, as DataFrames; `store` gives access to everything else.

    `url` is any SQLAlchemy URL; without it, the store of the pages and the command line. Raises StoreError
    where it cannot be opened.
    """

    def __init__(self, url: str | None = None) -> None:
        self.store = Store.open(url)
        weakref.finalize(self, self.store.close)

    def run(self, run_id: int) -> StoredRun:
        """The run of that number. Raises RunNotFound."""
        return StoredRun(self, self.store.run(run_id).id)

    def runs(self) -> pd.DataFrame:
        """The runs that are not archived, newest first: state, progress and every field of the description.

        `dev_score` is the mean over tasks, in [0, 1]. Fields with several names are one text, `pos,ner`.
        """
        dev_scores = self.store.mean_scores("dev")
        rows: dict[int, dict[str, object]] = {}
        for run in self.store.runs():
            row = rows[run.id] = {
                name: getattr(run, name) for name in ("created_at", "seconds", "best_epoch")
            }
            row |= {"state": str(run.state), "sweep": run.sweep, "dev_score": dev_scores.get(run.id)}
            for name, value in run.config.values().items():
                row[name] = ",".join(value) if isinstance(value, list) else value
        columns = [*_PROGRESS, "dev_score", *FIELD_HELP]
        return pd.DataFrame(list(rows.values()), index=pd.Index(list(rows), name="run"), columns=columns)

    def scores(self, run_ids: Collection[int] | None = None) -> pd.DataFrame:
        """Scores of these runs (of all) by run, split and task: shares in [0, 1].

        `score` is the headline, NaN where it is undefined.
        """
        scores = self.store.scores(run_ids, with_reports=False, with_figures=True)
        keys = [(score.run_id, score.split, score.task) for score in scores]
        index = pd.MultiIndex.from_tuples(keys, names=["run", "split", "task"])
        rows = [asdict(score) | dict(score.figures) for score in scores]
        return pd.DataFrame(rows, index=index, columns=_SCORES)

    def metrics(self, run_ids: Collection[int]) -> pd.DataFrame:
        """Every point of every curve of these runs, a row each. The task `""` is the whole."""
        keys = self.store.metric_keys(run_ids)
        curves = {(run_id, key): -1 for run_id in run_ids for key in keys}
        frames = [
            pd.DataFrame(asdict(series.key) | {"run": series.run_id}, index=range(len(series.step))).assign(
                step=series.step, epoch=series.epoch, seconds=series.seconds, value=series.value
            )
            for series in self.store.metrics_since(curves)
        ]
        return pd.concat(frames, ignore_index=True)[_METRICS] if frames else pd.DataFrame(columns=_METRICS)

    def results(
        self, run_ids: Collection[int] | None = None, split: str = "test", *, every_row: bool = False
    ) -> pd.DataFrame:
        """What `mrnlab results` prints of these runs (of all that are not archived).

        A row for each method and task, of the candidate that dev chose (with `every_row` for each
        configuration): mean, SD and n over seeds, with scores in [0, 1]. Successful runs count, one a seed;
        `data` names what must not be mixed: corpus, share of it, text.
        """
        tables = stored_results(self.store, run_ids).method_tables(split, every_row=every_row).items()
        rows = [{"data": group.name} | record for group, table in tables for record in score_records(table)]
        return pd.DataFrame(rows, columns=["data", *SCORE_COLUMNS])

    def compare(
        self,
        run_ids: Collection[int] | None = None,
        baseline: str | None = None,
        split: str = "test",
        *,
        matters: float = 100 * MATTERS,
        every_row: bool = False,
    ) -> pd.DataFrame:
        """What `mrnlab compare` prints of these runs (of all that are not archived).

        A row for each difference from the baseline, in [0, 1], with its interval, verdict and the seeds that
        would decide it. `baseline` is the name of a row, method or paradigm, and then the family of tests;
        without, all pairs are. `matters` is the smallest difference that matters, in points. Raises
        ConfigError for a baseline that is no row.
        """
        pairs = compared(
            stored_results(self.store, run_ids),
            split,
            baseline=baseline,
            matters=check_matters(matters / 100),
            every_row=every_row,
        )
        return pd.DataFrame([record for each in pairs for record in each.records], columns=COMPARED_COLUMNS)

    def where(
        self,
        run_ids: Collection[int] | None = None,
        task: str | None = None,
        baseline: str | None = None,
        split: str = "test",
        *,
        by: Sequence[str] = (),
        every_row: bool = False,
    ) -> pd.DataFrame:
        """Where the differences of `compare` come from: what `mrnlab compare --where` prints.

        A row for each bucket, and of spans for each kind of error (shares of the annotated) and scheme of F1:
        scores of both in [0, 1], the difference with its interval over seeds, p corrected for all buckets.
        `by` are columns whose values are buckets too. Headlines are in `attrs`. Raises MRNLabError.
        """
        only, results = None if task is None else [task], stored_results(self.store, run_ids)
        apart = where(self.store, results, split, baseline=baseline, tasks=only, by=by, every_row=every_row)
        frame = pd.DataFrame([record for each in apart for record in each.records], columns=WHERE_COLUMNS)
        frame.attrs["headlines"] = [each.headline for each in apart]
        return frame

    def suspects(
        self,
        run_ids: Collection[int],
        task: str | None = None,
        split: str = "test",
        *,
        agree: float = AGREE,
    ) -> pd.DataFrame:
        """Where nearly all of these runs predict the same and not what is annotated, the surest first.

        A row for each word, text, or region of overlapping spans. `agree` is the mean over methods of the
        share of agreeing seeds; `sentence` counts those annotated for the task. Raises MRNLabError.
        """
        only, results = None if task is None else [task], stored_results(self.store, run_ids)
        of_tasks = suspects(self.store, results, split, tasks=only, agree=agree)
        return pd.DataFrame([record for each in of_tasks for record in each.records], columns=SUSPECT_COLUMNS)

    def relations(self, run_ids: Collection[int] | None = None, mode: str = "task") -> pd.DataFrame:
        """What `mrnlab relations RUN...` prints of these runs (of all): pairs of rows with their verdicts.

        Over the seeds of each configuration, at the last step; headlines in `attrs`. Raises MRNLabError.
        """
        tables = relation_tables(self.store, run_ids, mode)
        frame = pd.DataFrame([row for table in tables for row in table.records], columns=RELATION_COLUMNS)
        frame.attrs["headlines"] = [table.headline for table in tables]
        return frame

    def plot_differences(self, run_ids: Collection[int], baseline: int, split: str = "test") -> Figure:
        """A figure of differences between configurations of runs and that of the run `baseline`.

        They are those of Compare, of runs on the data of the baseline. A warning names the runs that are
        left out. Raises MRNLabError where nothing can be compared.
        """
        from core.figures import SERIES
        from core.results.figures import forest, forest_chart

        asked = self._comparable({*run_ids, baseline})
        results = stored_results(self.store, [run.id for run in asked])
        group = next((group for group, runs in results.groups.items() if baseline in map(_id, runs)), None)
        counted = set() if group is None else set(map(_id, results.groups[group]))
        problems = {run.id: _problem(run) for run in reversed(asked) if run.id not in counted}
        table = None if group is None else results.table(group, split)
        rows = () if table is None else table.rows
        base = next((row for row in rows if baseline in row.run_ids), None)
        if table is None or base is None:
            problem = problems.get(baseline, f"has no {split} scores")
            raise MRNLabError(f"Run {baseline} {problem}: nothing can be compared with it.")
        shown = differences(table, base.key)
        left_out = " ".join(f"Run {run_id} {problem}." for run_id, problem in problems.items())
        if not shown:
            raise MRNLabError(
                f"No other configuration can be compared with run {baseline}. {left_out}".rstrip()
            )
        if left_out:
            warnings.warn(f"Left out: {left_out}", stacklevel=2)
        view = forest(shown, table, base.key)
        return forest_chart(view, dict(zip(view.targets, SERIES, strict=False)))

    def plot_against(
        self,
        setting: str,
        run_ids: Collection[int] | None = None,
        *,
        of_tasks: bool = False,
        baseline: str | None = None,
    ) -> Figure:
        """A figure of scores against the one number in which configurations differ, as in Compare.

        `setting` is a field (`lambda`, `fraction`, `lr_heads`) or an option of the corpus's name (`alpha`).
        Means with 95% intervals over seeds, of the tasks' mean, or with `of_tasks` of each task. Of several
        sets of such configurations the one with the most values is drawn. With a `baseline`, the name of
        another configuration (`MTL`) or of a value (`λ 0.01`), differences from it, paired by seed. Raises
        MRNLabError without such configurations.
        """
        from core.figures import SERIES
        from core.results.figures import against_chart

        asked = self.store.runs(states={RunState.SUCCEEDED}) if run_ids is None else self._comparable(run_ids)
        name, conditions = public_name(setting), self.store.conditions(asked)
        kept, _ = readable(asked, conditions)
        series = next((series for series in number_series(kept, conditions) if series.setting == name), None)
        if series is None:
            raise MRNLabError(f"No two configurations of these runs differ in {name} alone.")
        base = None
        if baseline is not None:
            named = {each.name: each for each in baselines(series, kept, conditions)}
            base = named.get(baseline)
            if base is None:
                others = all_of(list(named)) or "none"
                raise MRNLabError(f"No baseline of these runs is named {baseline}; there is {others}.")
        ids = [*series.run_ids, *(base.run_ids if base else ())]
        view = scores_against(series, self.store.scores(ids, with_reports=False), base)
        if base is not None and not view.differences:
            raise MRNLabError(f"{baseline} has no seed and task in common with these configurations.")
        colours = dict(zip(view.tasks, SERIES, strict=False))
        return against_chart(view, colours, of_tasks=of_tasks, differences=base is not None)

    def report(
        self,
        run_ids: Collection[int],
        path: str | Path = "report.html",
        *,
        title: str = "",
        text: str = "",
        parts: Sequence[str] = tuple(PARTS),
        split: Split = "test",
    ) -> Path:
        """Write a report on these finished runs as one HTML file (`mrnlab report`), and return its path.

        `text` is Markdown. A warning names parts that these runs cannot have. Raises MRNLabError.
        """
        asked = ReportAsked(self.store.url, tuple(run_ids), split, title, text, tuple(parts))
        made, file = make_report(asked), given_path(path)
        for name, why in made.missing.items():
            warnings.warn(f"Without {name}: {why}", stacklevel=2)
        file.write_text(made.html, encoding="utf-8")
        return file

    def add_predictions(
        self,
        data: pd.DataFrame | str | Path,
        *,
        corpus: str,
        system: str,
        task: str | Sequence[str],
        seed: int = 1,
        split: Split = "test",
        **options: Any,
    ) -> StoredRun:
        """Store predictions of another system as a run, which is compared like any other, and return it.

        `data` is a file in a format that corpora are read from, or a DataFrame with a row for each word
        (columns `sentence`, `word` and the tasks, as `StoredRun.tag` returns) or for each sentence (`tokens`
        and lists of labels). `options` are the other fields of `core.predictions.Predictions`. Raises
        MRNLabError, and stores nothing, where `add_predictions` of that module does.
        """
        if isinstance(data, pd.DataFrame):
            file = GivenFile("predictions.jsonl", _word_lists(data))
        else:
            path = given_path(data)
            file = GivenFile(path.name, read_bytes(path))
        predictions = Predictions.of(
            {split: file}, tasks=task, corpus=corpus, system=system, seed=seed, **options
        )
        return StoredRun(self, add_predictions(self.store, predictions))

    def _comparable(self, run_ids: Collection[int]) -> list[Run]:
        """These runs. Raises MRNLabError for one that cannot be read."""
        runs = self.store.runs(run_ids)
        if problems := {run.id: run.problem for run in runs if run.problem is not None}:
            run_id, problem = min(problems.items())
            raise MRNLabError(f"Run {run_id} cannot be compared. {problem}")
        return runs


class StoredRun:
    """One run of a laboratory and its records so far, as DataFrames."""

    def __init__(self, lab: Laboratory, run_id: int, models: Path | None = None) -> None:
        self.lab, self.id = lab, run_id
        self._models = models  # the folder of models, where it is not the laboratory's

    def __repr__(self) -> str:
        run = self.record
        tasks = ", ".join(run.config.tasks)
        return f"<run {run.id}: {run.state.word}, {run.config.paradigm} of {tasks}, {run.config.corpus}>"

    @property
    def record(self) -> RunWithFacts:
        """The run as the store has it now: state, description, facts, error. Raises RunNotFound."""
        return self.lab.store.run(self.id)

    @property
    def config(self) -> RunConfig:
        """Its description."""
        return self.record.config

    def scores(self) -> pd.DataFrame:
        """Scores of the best epoch by split and task: shares in [0, 1]. `score` is the headline."""
        return self.lab.scores([self.id]).droplevel("run")

    def report(self, split: str = "test") -> pd.DataFrame:
        """Precision, recall, F1 and support by task and span type or label; NaN without annotation."""
        scores = self.lab.store.scores([self.id], split)
        self._check_recorded(scores, f"scores on the split '{split}'")
        lines = {
            (score.task, label): line for score in scores for label, line in report_rows(score.report).items()
        }
        return pd.DataFrame.from_dict(lines, orient="index").rename_axis(["task", "label"])

    def metrics(self) -> pd.DataFrame:
        """Every point of its curves, a row each. The task `""` is the whole."""
        return self.lab.metrics([self.id]).drop(columns="run")

    def plot_curves(self, name: str = "loss", split: str = "train") -> Figure:
        """A metric over the steps as a Plotly figure, a line for each task. Raises MRNLabError without it."""
        from core.figures import curves

        points = self.lab.metrics([self.id]).query("name == @name and split == @split")
        self._check_recorded(list(points.index), f"metric '{name}' on the split '{split}'")
        return curves(points, f"{name}, {split}")

    def plot_relations(self, mode: str = "task", *, step: int | None = None) -> Figure:
        """The correlations of `relations` as a Plotly heatmap."""
        from core.figures import matrix

        return matrix(self.relations(mode, step=step))

    def snapshots(self) -> list[int]:
        """The steps at which its covariances were stored: none but for MRN."""
        return [snapshot.step for snapshot in self.lab.store.snapshots(self.id)]

    def relations(
        self, mode: str = "task", *, step: int | None = None, covariance: bool = False
    ) -> pd.DataFrame:
        """The correlations, or covariances, of `task`, `label` or `feature` at a stored step (the last).

        Rows and columns are named alike; labels that tasks do not share are `task:label`. Raises MRNLabError
        where there are none.
        """
        if mode not in MODES:
            raise MRNLabError(f"mode: '{mode}' is not one of {', '.join(MODES)}.")
        run = self.record
        _, relations = self.lab.store.relations(self.id, step)
        matrix = relations.covariance(mode) if covariance else relations.correlation(mode)
        names, _ = row_names(run.facts, run.config.tasks, mode, len(matrix))
        return pd.DataFrame(matrix, index=pd.Index(names, name=mode), columns=pd.Index(names, name=mode))

    def predictions(self, split: str = "test") -> pd.DataFrame:
        """Gold and predicted labels of a split (`dev`, `test`), a row for each word and task.

        Tasks on whole texts have a row for each text, with `text`, of pairs with `second`. `sentence` and
        `position` count from 0. Raises MRNLabError where there are none, or the corpus has changed.
        """
        stored = self.lab.store.predictions(self.id, split)
        self._check_recorded(stored, f"predictions on the split '{split}'")
        run = self.record
        corpus = prepare(run.config)
        conditions = self.lab.store.conditions([run]).get(run.id)
        text = None if conditions is None else conditions.text
        if text not in (None, corpus.text_hash) and text != older_text_hash(
            read(run.config.corpus, run.config.columns)
        ):
            raise CorpusError(f"The text of {corpus.name} has changed since run {self.id} was trained on it.")
        sentences = corpus.split("dev" if split == "dev" else "test")
        schemes = {task.name: task.scheme for task in corpus.tasks}
        rows: list[dict[str, object]] = []
        for task, (gold, predicted) in stored.items():
            numbers = [number for number, sentence in enumerate(sentences) if task in sentence.labels]
            for number, *labels in zip(numbers, gold, predicted, strict=True):
                places = _places(sentences[number], task)
                for item, *values in zip(places, *labels, strict=True):
                    given = map(float, values) if KINDS[schemes[task]].is_number else values
                    rows.append(
                        {"task": task, "sentence": number} | item | dict(zip(_VALUES, given, strict=True))
                    )
        columns = [name for name in _PREDICTED if any(name in row for row in rows)]
        frame = pd.DataFrame(rows, columns=columns)
        return frame.astype({"position": "Int64"}) if "position" in columns and "text" in columns else frame

    def answer(
        self,
        text: str | Sequence[str],
        second: str | Sequence[str] | None = None,
        *,
        probabilities: bool = False,
    ) -> pd.DataFrame:
        """The answers of the tasks on whole texts, and with a `second` text of the tasks on pairs.

        A row for each text, a column for each task; with `probabilities` one more for each label, `task:
        label`. Raises MRNLabError where the run has no finished model, or no task that reads such texts.
        """
        texts = [text] if isinstance(text, str) else text
        none = [None] * len(texts)
        seconds = none if second is None else [second] if isinstance(second, str) else second
        if len(texts) != len(seconds):
            raise MRNLabError(f"{len(texts)} texts and {len(seconds)} second texts make no pairs.")
        asked = [whole_text(*pair) for pair in zip(texts, seconds, strict=True)]
        check_texts(f"Run {self.id}", self._tagger.schemes, asked, second_by="text as `second`")
        answers = self._tagger.answer([text_of(pair) for pair in asked], top=_ALL)
        rows: list[dict[str, object]] = []
        for one, other, text_answers in zip(texts, seconds, answers, strict=True):
            row: dict[str, object] = {"text": one}
            row |= {} if other is None else {"second": other}
            for task, answer in text_answers.items():
                row[task] = answer.value
                shares = sorted(answer.probabilities, key=lambda share: share[0]) if probabilities else ()
                row |= {f"{task}: {label}": probability for label, probability in shares}
            rows.append(row)
        return pd.DataFrame(rows)

    def tag(self, text: str | Sequence[Sequence[str]], *, confidence: bool = False) -> pd.DataFrame:
        """Tag a text with every task of the run: a row for each word, a column for each task.

        `text` may be sentences that are split into words already. With `confidence` each task has a column
        more, the probability of its label. Raises MRNLabError where the run has no finished model, and for a
        list of texts: whether each is a sentence or a word cannot be told.
        """
        rows = []
        for number, tagged in enumerate(self._tagger.tag(self._sentences(text, "tag"), top=1)):
            for position, word in enumerate(tagged.tokens):
                row: dict[str, object] = {"sentence": number, "word": word}
                for task, tags in tagged.tags.items():
                    row[task] = tags[position].label
                    if confidence:
                        row[f"{task} confidence"] = tags[position].confidence
                rows.append(row)
        return pd.DataFrame(rows)

    def spans(self, text: str | Sequence[Sequence[str]]) -> pd.DataFrame:
        """Find the spans of a text (entities, chunks), with every task of the run that has spans: a row each.

        `start` and `end` count code points of the given text, of split words with a space between them.
        `score` is the mean probability of a span's labels. Raises MRNLabError as `tag` does.
        """
        sentences = self._sentences(text, "spans")
        if isinstance(text, str):
            placed = [(text, words) for words in place_words(text, sentences)]
        else:
            placed = [joined_words(words) for words in sentences]
        columns = ["sentence", "task", *(column.name for column in fields(TaggedSpan))]
        rows = [
            {"sentence": number, "task": task} | asdict(span)
            for number, tagged in enumerate(self._tagger.tag(sentences, top=1))
            for task, spans in spans_in(*placed[number], tagged, self._tagger.schemes).items()
            for span in spans
        ]
        return pd.DataFrame(rows, columns=columns)

    def _sentences(self, text: str | Sequence[Sequence[str]], method: str) -> Sequence[Sequence[str]]:
        """The sentences of a text as lists of words. Raises MRNLabError, which names the method."""
        if not tasks_reading(self._tagger.schemes, "words"):
            raise MRNLabError(f"Run {self.id} has no task on words; answer() reads whole texts.")
        if not isinstance(text, str) and any(isinstance(words, str) for words in text):
            raise MRNLabError(f"{method}() reads one text, or a list of sentences that are lists of words.")
        return split_sentences(text) if isinstance(text, str) else text

    @cached_property
    def _tagger(self) -> Tagger:
        run = self.record
        if run.checkpoint is None:
            raise MRNLabError(run.lacks_model)
        return load_tagger(own_checkpoint(run.checkpoint) if self._models is None else run.checkpoint)

    def _check_recorded(self, records: Collection[object], what: str) -> None:
        if not records:
            raise MRNLabError(f"Run {self.id} has no {what}; it is {self.record.state.word}.")
