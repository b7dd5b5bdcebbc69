"""Calls of the command line with values that cannot be: no call ends in an error that nobody foresaw.

    python -m tests.fuzz --calls 500 --seed 1

Each verb and option of the program is drawn with plausible and with hostile values, in odd laboratories, with
odd settings, and with streams that are closed or full. Each call is a process with a laboratory of its own,
which trains nothing. The last line is JSON: how often each exit code came. The exit code is 1 where a call
ended with another code than 0, 1 or 2, showed a traceback or a password, or took longer than LIMIT_S; the
lines before it say which. `--only N` makes the call of that number alone and shows what it prints.

    python -m tests.fuzz --files 900 --cards 200 --seed 1

reads damaged files of corpora and copies of datasets with wrong cards and states (`tests/mutants.py`) in
place of making calls, several hundred to a process. The last line is JSON: how many were read and refused,
which failed, and the most memory. A mutant fails where reading it raises what the command line answers with
exit code 70, ends the process, leaves files behind, reads a file outside of the folder, or takes too long.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import typer

from core.settings import SETTINGS
from core.store import Store
from core.studies import STUDIES
from tests.mutants import MOST_MEMORY

LIMIT_S = 120.0
ROOT = Path(__file__).resolve().parents[1]
PASSWORD = "s3cretW0rd"  # in every database URL below
RUNS = ("1", "2", "3", "4")
"""The runs of the laboratory: those of `tests.trained.copy_taggers`."""


def _words(text: str) -> list[str]:
    return text.split()


_LONG = "9" * 5000
_INTEGERS = (
    *("", " ", "1_0", " 1", "+1", "1.0", "1e0", "0x1", "١", "²", "−1", "0", "-1", "nan", "1\n2", "1,2", "*"),
    *(str(2**31), str(2**63), "1" + "0" * 40, _LONG, f"-{_LONG}"),
)
_NUMBERS = (
    *("", "much", "1_0", "١", "0x1p3", "-inf", "nan", "Infinity", "1e", "1e400", "1,", "1e-400", "-1", "0"),
    *("--", "1 0", "½", "1.2.3", ",,", "0.1;0.2", f"0.{_LONG}", _LONG),
    *(",".join(["0.1"] * 5000), ",".join(map(str, range(1, 20_000)))),
)
_SEEDS = (
    *("", "0", "-1", "1-", "-", "5-1", "1-1-1", "1..5", "1_0", "١-٣", "1-10001", "0-999999999999", "1–3,x"),
    *(_LONG, f"1-{_LONG}", "2147483648", "1-10000,10001-20000,20001-30000", "1e3", ",", "nan"),
)
_WORDS = (
    *_words(r"""- -- --help 💥 <b> %s {} ' " \ C:\x con .. . minilm demo [ ( ] = a=b=c :memory: null true"""),
    *("", " ", "a" * 300, "a/" * 3000, "../" * 50, "a\nb", "\x1b[2J", "\u202e", "\udcff\udcfe", "é" * 200),
)
_PLACES = (
    *_words("missing missing/below file file/below folder pipe.conll loop dangling latin.txt empty.txt"),
    *("/proc/new", "/proc/self/new", "/sys/new", "~nobody-here/x", "a" * 300, "a/" * 3000, "", "\udcff"),
)
"""Relative ones lie in the folder of the call (`prepare`). Safe to write to, whoever makes the call."""
_FILES = (
    *_PLACES,
    *_words("/ /dev/zero /dev/null /dev/full /dev/stdin /proc/self/mem /etc/passwd /etc/shadow . .. ~"),
    *_words("long.csv nul.csv carriage.csv quoted.csv nested.csv other.csv cut.csv.gz"),
)
_DERIVED_WORDS = """
joined:demo joined: joined:+ joined:demo+demo joined:demo+ apart: apart:demo x:demo
apart:demo?tokens=1_0 apart:demo?tokens= apart:demo?tokens=0 apart:demo?tokens=5,5,5,5,5,5,5,5,5
demo?train=١ demo?train=-1 demo?train=1e3 demo?train=5&train=5 demo?x=1 demo? demo?&
simulated:demo?task=ner&tasks=5&alpha=1_0 simulated:demo simulated:demo?task=x&tasks=2
simulated:demo?task=ner&tasks=99999999 simulated:demo?task=ner&tasks=5&alpha=nan
joined:joined:demo+demo-pos-a apart:apart:demo?tokens=5 joined:demo?train=5 demo?train=1000000000
hub: hub:x hub:a/b hub:/ hub:/proc hub:~ hub:.. hub:demo?train=5 hub:a/b?config= hub:a/b?columns=,&train=5
hub:a/b?splits=train hub:a/b?splits=train[:,x hub:a/b?revision=%2e%2e/x joined:hub:+demo
joined:hub:a/b+hub:a/b
"""
_DERIVED = (*_words(_DERIVED_WORDS), f"apart:demo?tokens={_LONG}", "joined:" + "+".join(["demo"] * 500))
_FILTERS_WORDS = r"""
created<99999999999999999d created<1_0d created<٣d created<-1d created<nand created>9999-12-31
created>0001-01-01 created:0000-00-00 created>٢٠٢٦-٠١-٠١ created:* created<* lambda<1_0 lambda<nan
seed:1e400 run:1.5 ١ run: run:, : < - -- " "a keyword:" x:1 state:asleep archived:maybe ( [ \ sweep:\ run:٣
"""
_FILTERS = (
    *_words(_FILTERS_WORDS),
    *(f"created<{_LONG}d", f"lambda<{_LONG}", f"run:{_LONG}", f"-{_LONG}", "sweep:" + "*a" * 40 + "b"),
    *("a" * 9000, "keyword:\udcff", "seed:" + ",".join(["1"] * 5000)),
)
_URL_WORDS = """
postgresql://me:PW@host:port/db postgresql://me:PW@host:99999999/db postgresql://me:PW@[::1/db
postgresql://me:PW@ postgresql:/me:PW@host/db me:PW@host/db postgresql://me:PW/word@host/db
postgresql://me:PW@127.0.0.1:1/db postgresql://me:PW@127.0.0.1:1/db?nonsense=1
postgresql://127.0.0.1:1/db?password=PW postgresql://me@127.0.0.1:1/db?password=PW&password=PW
postgresql+nodriver://me:PW@h/db oracle://me:PW@h/db sqlite://me:PW@host/db ://me:PW@h
postgresql://me:PW@PW:PW/db postgres://me:PW@127.0.0.1:1/db postgresql://me:PW%@127.0.0.1:1/db
postgresql+asyncpg://me:PW@127.0.0.1:1/db sqlite+pysqlcipher://:PW@/a.db sqlite:///~nobody-here/x.db
sqlite:///a.db?x=PW&y=1 sqlite:///file:x?mode=ro&uri=true sqlite:////dev/zero sqlite:////proc/x.db
sqlite:///. sqlite sqlite: sqlite+nodriver:///a.db sqlite:///file sqlite:///file/below sqlite:///pipe.conll
sqlite:///latin.txt sqlite:///loop sqlite:///missing/below.db sqlite:///empty.txt sqlite:///other.db
"""
_URLS = (
    *(url.replace("PW", PASSWORD) for url in _words(_URL_WORDS)),
    *(f"postgresql://me:{PASSWORD}@{rest}" for rest in ("h\udcff/db", "h h/db", "h" * 300 + "/db")),
    *("sqlite:///" + "a/" * 3000, "sqlite:///a\udcff", " "),
)
_HOMES = (
    *_words("missing missing/below file file/below pipe.conll loop dangling"),
    *("/proc/new", "/dev/null", "/dev/null/x", "/sys/new", "a" * 300),
    *_words("home:runs.db home:cache home:logs home:checkpoints home:uploads home:workers"),
)
"""`home:PART` is the laboratory with a file, or for the store a folder, in place of that part."""
_STREAMS = (">/dev/full", ">&-", "2>/dev/full", "2>&-", "<&-", ">/dev/full 2>&1", "<&- >&- 2>&-", "| true")

_FIELDS = _words("device learn dropout batch_size snapshots shrinkage seed lr_heads head x")
# By parameter, or verb and parameter: values that are well and values that are not.
_PLAUSIBLE: dict[str, tuple[str, ...]] = {
    "run": RUNS,
    "priority": ("1", "-5"),
    "limit": ("1", "5"),
    "log": ("0", "5"),
    "step": ("0", "8"),
    "retries": ("1",),
    "seeds": ("1", "1-3", "1,2"),
    "corpus": ("demo", "toy", "demo?train=20"),
    "columns": ("tokens,pos,ner",),
    "tasks": ("pos,ner", "ner", "pos"),
    "task_groups": ("pairs", "ner,pos"),
    "encoder": ("minilm", "bilstm", "encoder", "minilm,bert-base-cased"),
    "encoder_training": ("full", "frozen", "last:1", "lora:8"),
    "paradigm": ("mtl", "stl", "mrn", "mtl,mrn"),
    "prior": ("relational", "map", "paper"),
    "alignment": ("auto", "exact", "disjoint", "mapping:latin.txt"),
    "added_to": ("1", "2"),
    "lambda_": ("0.1", "0.1,1"),
    "epochs": ("1", "1,2"),
    "fraction": ("0.5", "1"),
    "setting": ("batch_size=4", "head=linear,crf", "learn=task"),
    "preset": ("dissertation", "sc-lstm", "tea"),
    "sweep": ("toy", "mine"),
    "state": ("queued,running", "succeeded"),
    "filter_": ("paradigm:mtl", "ner", "created<2d"),
    "metrics.name": ("loss", "score"),
    "study.name": (*STUDIES,),
    "task": ("ner", "total"),
    "split": ("dev", "test"),
    "mode": ("task", "class", "feature"),
    "format_": ("markdown", "latex"),
    "tag.format_": ("json", "conll"),
    "report_": ("table", "markdown", "latex", "curves", "csv", "json"),
    "part": ("table 1", "pooling"),
    "record": ("record.csv", "record.csv.gz", "new.csv", "link.csv"),
    "tables": ("tables",),
    "folder": ("new", "out/new"),
    "import.folder": ("exported",),
    "corpus.folder": ("demo", "toy"),
    "target": ("backup.db",),
    "sentence": ("German lamb .",),
    "second": ("German call .",),
    "file": ("toy.conll", "words.txt"),
    "layout": ("text", "split", "words", "columns", "conllu"),
    "loss_log": ("losses.log",),
    "host": ("gpu3",),
    "group": ("1",),
    "add": ("best,paper",),
    "remove": ("best",),
}
_HOSTILE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("run", "priority", "limit", "log", "step", "retries", "added_to"), _INTEGERS),
    **dict.fromkeys(("lambda_", "epochs", "fraction"), _NUMBERS),
    **dict.fromkeys(("record", "tables", "target"), _PLACES),
    "folder": (*_PLACES, "export-damaged"),
    **dict.fromkeys(("file", "loss_log"), _FILES),
    "seeds": _SEEDS,
    "filter_": (*_FILTERS, *_WORDS),
    "corpus": (*_DERIVED, *_FILES),
    "encoder": (*_FILES, *_WORDS, "/etc/passwd+bilstm", "no-such/encoder", "pipe.conll+bilstm"),
    "alignment": (*_WORDS, *(f"mapping:{file}" for file in _FILES)),
    "setting": (
        *_WORDS,
        *(f"{field}={value}" for field in _FIELDS for value in (*_NUMBERS, *_WORDS[:12])),
        f"batch_size={','.join(map(str, range(1, 101)))}",
    ),
}


@dataclass(frozen=True)
class Call:
    """`home` is where MRNLAB_HOME leads, empty for the laboratory that is well; `settings` are further
    variables; `streams` is how a shell writes what standard input, output and error are.
    """

    arguments: tuple[str, ...]
    home: str
    settings: tuple[tuple[str, str], ...]
    streams: str


def calls(seed: int) -> Iterator[Call]:
    """Calls without end, the same for a seed. Most have one kind of odd thing, so that they get far."""
    from jobs.cli import app

    draw = random.Random(seed)
    verbs = sorted(_verbs(typer.main.get_command(app)))
    # In proportion to what may be asked of them.
    weights = [2 + len(parameters) for _, parameters in verbs]
    variables = sorted({*SETTINGS} - {"MRNLAB_HOME", "MRNLAB_SUPERVISOR"})
    while True:
        ((path, parameters),) = draw.choices(verbs, weights)
        (odd,) = draw.choices(
            ("values", "streams", "home", "database", "engine", "setting", "verb"), _WEIGHTS
        )
        arguments: list[str] = []
        if odd == "database":
            arguments += ["--db", draw.choice(_URLS)]
        if odd == "engine":
            arguments += ["--engine", draw.choice(("local", "ray", "slurm", *_WORDS))]
        arguments += path if odd != "verb" else [draw.choice(_WORDS)]
        arguments += _drawn(draw, path[-1], parameters, 0.5 if odd == "values" else 0.02)
        settings = {}
        if odd == "setting":
            variable = draw.choice(variables)
            values = _URLS if variable == "MRNLAB_DB" else (*_NUMBERS, *_PLACES)
            settings[variable] = draw.choice(values)
        yield Call(
            tuple(arguments),
            draw.choice(_HOMES) if odd == "home" else "",
            tuple(settings.items()),
            draw.choice(_STREAMS) if odd == "streams" else "",
        )


_WEIGHTS = (10, 4, 3, 2, 1, 2, 0.3)


def _verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    if path:
        yield path, command.params
    for name, verb in getattr(command, "commands", {}).items():
        yield from _verbs(verb, (*path, name))


def _drawn(draw: random.Random, verb: str, parameters: Sequence[Any], hostile: float) -> list[str]:
    """Options, then arguments: what is required, and about three others; a share of `hostile` values."""
    share = 3 / max(len(parameters), 6)
    given: list[str] = []
    positional: list[str] = []
    for parameter in parameters:
        # A corpus is what most of a launch is checked against.
        if not parameter.required and draw.random() > (0.8 if parameter.name == "corpus" else share):
            continue
        is_argument = parameter.param_type_name == "argument"
        count = (
            0
            if getattr(parameter, "is_flag", False)
            else draw.choice((1, 1, 2))
            if parameter.nargs < 0
            else 1
        )
        values = [_value(draw, verb, parameter.name, hostile) for _ in range(count)]
        (positional if is_argument else given).extend(values if is_argument else [parameter.opts[0], *values])
    if draw.random() < hostile / 20:
        given.append(f"--{draw.choice(_WORDS)}")
    if positional and draw.random() < 0.7:
        positional.insert(0, "--")
    return [*given, *positional]


def _value(draw: random.Random, verb: str, name: str, hostile: float) -> str:
    if draw.random() < hostile:
        return draw.choice(_HOSTILE.get(name, _WORDS))
    return draw.choice(_PLAUSIBLE.get(f"{verb}.{name}") or _PLAUSIBLE.get(name) or _WORDS)


def make_template(folder: Path) -> None:
    """Makes what the calls find in their folder, but for pipes and the like; `home` has the four runs."""
    from jobs.exchange import export_run

    with patch.dict(os.environ, MRNLAB_HOME=str(folder / "home")), contextlib.closing(Store.open()) as store:
        export_run(store, 1, folder / "exported")
    shutil.copytree(folder / "exported", folder / "export-damaged")
    (folder / "export-damaged" / "run.json").write_text("{")
    shutil.copytree(folder / "home" / "toy", folder / "toy")
    shutil.copytree(folder / "home" / "encoder", folder / "encoder")
    shutil.copy(folder / "toy" / "test.conll", folder / "toy.conll")
    packed = (ROOT / "core/studies/data/task-embeddings.csv.gz").read_bytes()
    record = gzip.decompress(packed).decode()
    head, first = record.splitlines()[:2]
    contents = {
        "file": "a file",
        "empty.txt": "",
        "words.txt": "German lamb .\n",
        "losses.log": "Iter 1, task ner, loss 2.5\nIter 2, task ner, loss 1.5\n",
        "record.csv": record,
        "long.csv": f"{head}\n{'a' * 200_000},{first}\n",
        "nul.csv": f"{head}\n\0{first}\n",
        "carriage.csv": record.replace("\n", "\r"),
        "quoted.csv": f'{head}\n"{first}\n',
        "nested.csv": f"{head}\na,1,2,3,4,{{}},[],{'[' * 90_000}\n",
        "other.csv": "text,label\nGood .,good\n",
        "other.db": "no store",
    }
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8", newline="")
    (folder / "record.csv.gz").write_bytes(packed)
    (folder / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "latin.txt").write_bytes("Müller kommt .".encode("latin-1"))


def prepare(call: Call, template: Path, folder: Path) -> dict[str, str]:
    """Makes the call's own `folder`, to be the working one; returns the variables to set."""
    shutil.copytree(template, folder)
    os.mkfifo(folder / "pipe.conll")
    (folder / "folder").mkdir()
    for link, target in (("loop", "loop"), ("dangling", "nowhere/x"), ("link.csv", "record.csv")):
        (folder / link).symlink_to(target)
    home, _, part = (call.home or "home").partition(":")
    if part:
        place = folder / home / part
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        place.mkdir() if part == "runs.db" else place.write_text("")
    return {"HOME": str(folder), "MRNLAB_HOME": str(folder / home)} | dict(call.settings)


@contextlib.contextmanager
def without_workers() -> Iterator[None]:
    """No worker and no dashboard is started: a process that ends at once takes their place, soon again."""

    from jobs.queue import maintenance
    from jobs.worker import pool
    from jobs.worker.start import start as really_start

    def start(_command: Sequence[str], store_url: str) -> subprocess.Popen[bytes]:
        return really_start([sys.executable, "-c", ""], store_url)

    def run_dashboard(*_arguments: object) -> None:
        raise SystemExit(0)

    with (
        patch.object(pool, "start", start),
        patch.object(maintenance, "FIRST_REST_S", 0.01),
        patch("jobs.cli.launch._POLL_S", 0.05),
        patch("os.execv", run_dashboard),
    ):
        yield


def main_without_workers() -> None:
    """The program, in a process of its own."""
    from jobs.cli import main

    with without_workers():
        main()


@dataclass(frozen=True)
class Ended:
    """How a call ended; `code` is None where it took longer than LIMIT_S."""

    code: int | None
    seconds: float
    printed: str

    @property
    def is_well(self) -> bool:
        """Whether it ended as the program says that it does."""
        return self.code in (0, 1, 2) and not any(word in self.printed for word in ("Traceback", PASSWORD))


def made(call: Call, template: Path) -> Ended:
    """Makes a call as a process in a temporary folder."""
    with TemporaryDirectory(prefix="fuzz-") as aside:
        folder = Path(aside) / "call"
        variables = prepare(call, template, folder)
        # Hundreds of processes import the same modules, which are compiled once.
        left_out = ("MRNLAB_", "PYTHONDONTWRITEBYTECODE")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        fixed = {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "MRNLAB_LINGER_S": "0"}
        program = "from tests.fuzz import main_without_workers as main; main()"
        began = time.monotonic()
        # A pipe would hide the exit code.
        script = (
            f'{{ "$@"; echo $? >code; }} {call.streams}' if "|" in call.streams else f'"$@" {call.streams}'
        )
        try:
            ended = subprocess.run(
                ["sh", "-c", script, "sh", sys.executable, "-c", program, *call.arguments],
                cwd=folder,
                env=inherited | fixed | variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return Ended(None, LIMIT_S, f"{late.stdout!r} {late.stderr!r}")
        code = int((folder / "code").read_text()) if "|" in call.streams else ended.returncode
        printed = (ended.stdout + ended.stderr).decode(errors="backslashreplace")
        return Ended(code, time.monotonic() - began, printed)


def read_mutants(of_files: int, of_cards: int, seed: int, processes: int, only: int | None) -> int:
    """Reads damaged files and wrong cards, shared among processes; returns the exit code."""
    share = f"from tests.mutants import main; main({of_files}, {of_cards}, {seed}, {only}, {{}}, {processes})"
    outcomes: Counter[str] = Counter()
    failed: list[str] = []
    peak = 0
    with ThreadPoolExecutor(processes) as pool:
        ends = pool.map(
            lambda place: subprocess.run(
                [sys.executable, "-c", share.format(place)], cwd=ROOT, stdout=subprocess.PIPE, check=False
            ),
            range(processes),
        )
        for ended in ends:
            lines = [json.loads(line) for line in ended.stdout.splitlines()]
            outcomes.update(line["outcome"] for line in lines if "outcome" in line)
            failed += [f"{line['number']}: {line['wrong']}" for line in lines if line.get("wrong")]
            peak = max(peak, *(line["peak"] for line in lines if "peak" in line), 0)
            if ended.returncode:
                failed.append(f"a process ended with {ended.returncode} after {lines[-1:]}")
    figures = {"mutants": outcomes.total(), "seed": seed, "outcomes": dict(outcomes), "failed": failed}
    print(json.dumps(figures | {"peak_mb": round(peak / 1e6)}))
    return 1 if failed or peak > MOST_MEMORY else 0


def main() -> int:
    """Make the calls that the arguments ask for; returns the exit code."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", type=int, metavar="N")
    parser.add_argument("--files", type=int, default=0, metavar="N")
    parser.add_argument("--cards", type=int, default=0, metavar="N")
    chosen = parser.parse_args()
    if chosen.files or chosen.cards:
        return read_mutants(chosen.files, chosen.cards, chosen.seed, chosen.processes, chosen.only)
    numbered = list(enumerate(islice(calls(chosen.seed), chosen.calls)))
    if chosen.only is not None:
        numbered = [numbered[chosen.only]]
    ended: dict[int, Ended] = {}
    with TemporaryDirectory(prefix="fuzz-") as aside, ThreadPoolExecutor(chosen.processes) as pool:
        from tests.trained import copy_taggers

        template = Path(aside) / "template"
        copy_taggers(Path(aside), template / "home")
        make_template(template)
        ends = pool.map(partial(made, template=template), (call for _, call in numbered))
        for (number, call), end in zip(numbered, ends, strict=True):
            ended[number] = end
            if not end.is_well or chosen.only is not None:
                print(f"{number}: {call}\n{end.printed[-3000:]}", flush=True)
    failed = [number for number, end in ended.items() if not end.is_well]
    codes = Counter("too long" if end.code is None else str(end.code) for end in ended.values())
    slowest = max(ended, key=lambda number: ended[number].seconds)
    figures = {
        "calls": len(ended),
        "seed": chosen.seed,
        "codes": dict(sorted(codes.items())),
        "failed": failed,
    }
    print(json.dumps(figures | {"slowest": slowest, "slowest_s": round(ended[slowest].seconds, 1)}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
