"""All that is measured on a GPU, on a bare machine, in about eight minutes. What is done is not run again.

On a machine with the package registry, then on the machine with the GPU, both times in the repository:

    python -m tests.benchmarks.on_gpu --pack build/on_gpu --data FOLDER/conll2003
    python3 -m pip install --no-index --no-deps --find-links build/on_gpu -r tests/benchmarks/on_gpu.txt
    python -m tests.benchmarks.on_gpu --packed build/on_gpu --out build/gpu_figures

The second machine has Python 3.12 on x86-64 with torch, Transformers, accelerate, scikit-learn, pandas,
pyarrow, psutil, filelock, typer, jinja2, sympy and pytest with xdist and hypothesis. `--pack` makes a folder
of about 40 MB: the wheels, CoNLL-2003, CoNLL-2000 from the folder beside it, and MiniLM with its weights
rounded to bfloat16, in which the GPU computes with them anyway. Without `--packed` MiniLM and the corpora
are those of the machine.

Each part is a process with a time limit, and writes NAME.json into `--out` as it ends: its figures, or its
error, which stops no other part. A part with an error is run again by the next call, which adds to the runs
of Table 3 that the last one finished. After `--minutes` the part that runs is ended, and none begins. The
last line is JSON: the parts that are `done`, that `failed`, and that are `left`. All use the first GPU.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from core.corpora.assembly import SPLITS
from core.corpora.loading import read
from core.corpora.preparation import TABLES, is_all_capitals, truecase
from core.models.sources import locate
from core.store import Store
from tests.benchmarks._harness import CONLL2003, arguments, laboratory, print_json
from tests.supervised import end_all

_LIST = Path(__file__).with_suffix(".txt")
_ARCHIVE, _ENCODER = "data.tar.xz", "minilm"
_CORPORA = ("conll2003", "conll2000")  # Table 3 is of both
_PLATFORM = ("--python-version", "3.12", "--platform", "manylinux_2_17_x86_64", "--platform", "any")
_XZ = ({"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 3, "lp": 1, "pb": 1},)  # words of two bytes
_SITE = "site"
_TRUECASE = '''"""The restored case of the packed corpora's sentences, without truecase's 76 MB of tables."""

import json
from pathlib import Path

_RESTORED = json.loads(Path(__file__).with_name("restored.json").read_text("utf-8"))


class TrueCaser:
    def get_true_case_from_tokens(self, tokens):
        return _RESTORED[" ".join(tokens)]
'''
_GRACE_S = 20.0
_KEPT = 60
"""Lines of the output of a part that failed, and as many of its errors."""
_SHOWN = 300
"""Characters of a part's figures that are printed as it ends."""


@dataclass(frozen=True)
class Part:
    """The arguments of Python, those of `--quick`, and the time limit."""

    command: tuple[str, ...]
    quick: tuple[str, ...]
    limit_s: float


def _benchmark(name: str, *words: str, limit_s: float, quick: Sequence[str] = ()) -> Part:
    module = ("-m", f"tests.benchmarks.{name}")
    return Part((*module, *words), (*module, "--quick", *quick), limit_s)


def parts(args: Namespace) -> dict[str, Part]:
    """The parts in the order of their use."""
    no_waits, graphs, figures, resuming = (
        f"tests/unit/{name}.py"
        for name in (
            *("training/test_no_host_sync", "models/test_cuda_graphs"),
            *("test_benchmarks", "training/test_resuming"),
        )
    )
    pytest = ("-m", "pytest", "-W", "default", "-p", "no:cacheprovider")
    resume = (*pytest, "-n", "0", resuming, "-k", "gpu")
    on_gpu = ("--device", args.device)
    training = (*on_gpu, "--data", args.data, "--steps", "160")
    mrnlab = ("-c", "from jobs.cli import main; main()")
    study = (
        *mrnlab,
        "study",
        "dissertation",
        "--encoder",
        args.encoder,
        "--setting",
        "table3-5",
        "--seeds",
        "5",
    )
    record = ("--record", str(args.out / "table-3.csv"), "--json")

    def trained(encoder: str, limit_s: float) -> Part:
        words = (*training, "--encoder", encoder, "--only", "training")
        return _benchmark("training", *words, limit_s=limit_s, quick=("--only", "training"))

    return {
        "tests": Part(
            (*pytest, no_waits, graphs, figures, "-k", "gpu or graphs"),
            (*pytest, "-n", "0", no_waits, "-k", "gpu"),
            150,
        ),
        "resume": Part(resume, resume, 60),
        "training-minilm": trained("minilm", 120),
        "updates": _benchmark("mrn_step", *on_gpu, "--seconds", "0.4", limit_s=100),
        "runs-per-gpu": _benchmark(
            "small_runs", "--runs-per-gpu", "1,2,4,8", limit_s=150, quick=("--runs-per-gpu", "1")
        ),
        "training-bert": trained("bert-base", 120),
        "training-roberta": trained("roberta-base", 120),
        "tagging": _benchmark(
            "training", *training, "--only", "tagging", limit_s=60, quick=("--only", "tagging")
        ),
        "table-3": Part((*study, *record), (*study, "--dry-run", "--json"), 480),
    }


def run(part: Part, limit_s: float, args: Namespace) -> dict[str, Any]:
    """The lines of JSON that the part printed, and its last line; or `error`, with the end of its output.

    At its limit it is interrupted, so that it ends what it started, and a little later killed. Workers that
    it left are ended.
    """
    settings = {"CUDA_VISIBLE_DEVICES": "0", "MRNLAB_RUNS_PER_GPU": "4", "BENCHMARK_MINILM": args.encoder}
    if args.device == "cpu":
        del settings["CUDA_VISIBLE_DEVICES"]
    if args.packed:
        unpacked = Path(args.data).parent
        paths = [str(unpacked / _SITE), str(Path.cwd()), os.environ.get("PYTHONPATH", "")]
        settings |= {"MRNLAB_DATA": str(unpacked), "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        printed, complained = (stack.enter_context(tempfile.TemporaryFile("w+")) for _ in range(2))
        stack.enter_context(laboratory(**settings))
        command = [sys.executable, *(part.quick if args.quick else part.command)]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=complained, start_new_session=True
        )
        error = None
        try:
            if code := process.wait(limit_s):
                error = f"exit code {code}"
        except subprocess.TimeoutExpired:
            error = f"not done after {limit_s:.0f} s"
        finally:
            _end(process)
        if Path(os.environ["MRNLAB_HOME"], "runs.db").exists():
            with contextlib.closing(Store.open()) as store:
                end_all(store)
        for file in (printed, complained):
            file.seek(0)
        text, complaints = printed.read(), complained.read()
    lines = text.splitlines()
    measured: dict[str, Any] = {"seconds": round(time.monotonic() - began, 1), "figures": _json(text)}
    if error is not None:
        return measured | {"error": error, "output": lines[-_KEPT:] + complaints.splitlines()[-_KEPT:]}
    return measured | {"last_line": lines[-1] if lines else ""}


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


def _json(text: str) -> list[Any]:
    """The documents of JSON in the output: each begins a line, and may have several."""
    documents, decoder, at = [], json.JSONDecoder(), 0
    while at < len(text):
        try:
            document, at = decoder.raw_decode(text, at)
            documents.append(document)
        except json.JSONDecodeError:
            pass
        at = text.find("\n", at) + 1 or len(text)
    return [document for document in documents if isinstance(document, dict)]


def measure(args: Namespace) -> dict[str, list[str]]:
    """Run the parts that are not done, one after the other. The names of those done, failed and left."""
    ended: dict[str, list[str]] = {"done": [], "failed": [], "left": []}
    until = time.monotonic() + 60 * args.minutes
    for name, part in parts(args).items():
        file = args.out / f"{name}.json"
        if name in args.skip or (args.part and name not in args.part):
            continue
        if file.exists() and "error" not in json.loads(file.read_text(encoding="utf-8")):
            ended["done"].append(name)
            continue
        if (left := until - time.monotonic()) <= 0:
            ended["left"].append(name)
            continue
        print(f"{name}: begins; {left:.0f} s left", flush=True)
        measured = run(part, min(part.limit_s, left), args)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
        new.replace(file)
        ended["failed" if "error" in measured else "done"].append(name)
        shown = measured.get("error") or (measured["figures"] or [measured["last_line"]])[-1]
        print(f"{name}: {measured['seconds']} s: {json.dumps(shown)[:_SHOWN]}", flush=True)
        print(*measured.get("output", ())[-8:], sep="\n", end="\n" * ("output" in measured), flush=True)
    return ended


def pack(folder: Path, data: Path) -> None:
    """Write the wheels, and an archive of both corpora in that folder and of MiniLM in bfloat16."""
    folder.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip"]
    wheels = folder.as_posix()
    # It has no wheel, and its installation asks for a tool that the bare machine lacks.
    (seqeval,) = (
        line for line in _LIST.read_text(encoding="utf-8").splitlines() if line.startswith("seqeval")
    )
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", wheels, seqeval], check=True)
    download = ["download", "--no-deps", "--only-binary", ":all:", *_PLATFORM, "--find-links", wheels]
    subprocess.run([*pip, *download, "--dest", wheels, "--requirement", str(_LIST)], check=True)
    source = Path(locate("minilm"))
    with tempfile.TemporaryDirectory() as temporary:
        encoder = Path(temporary) / _ENCODER
        shutil.copytree(source, encoder, ignore=shutil.ignore_patterns("*.safetensors"))
        (weights,) = source.glob("*.safetensors")
        rounded = {
            name: value.bfloat16() if value.is_floating_point() else value
            for name, value in load_file(weights).items()
        }
        save_file(rounded, encoder / weights.name, {"format": "pt"})
        site = Path(temporary) / _SITE
        _write_truecase(site / "truecase", data)
        with (
            lzma.open(folder / _ARCHIVE, "wb", filters=_XZ) as file,
            tarfile.open(fileobj=file, mode="w") as tar,
        ):
            tar.add(encoder, _ENCODER)
            tar.add(site, _SITE)
            for corpus in _CORPORA:
                tar.add(data / corpus, corpus)


def _write_truecase(folder: Path, data: Path) -> None:
    """Write a package `truecase` that restores the case of these corpora's sentences as truecase does."""
    os.environ["MRNLAB_DATA"] = str(data)
    corpora = [read(name) for name in _CORPORA]
    sentences = [sentence for corpus in corpora for split in SPLITS for sentence in corpus.split(split)]
    capitals = [sentence for sentence in sentences if is_all_capitals(sentence.tokens)]
    restored = {
        " ".join(filter(str.isalpha, before.tokens)): [token for token in after.tokens if token.isalpha()]
        for before, after in zip(capitals, truecase(capitals), strict=True)
    }
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text(_TRUECASE, encoding="utf-8")
    (folder / "restored.json").write_text(json.dumps(restored), encoding="utf-8")
    (folder / "data" / "english.dist").write_bytes(pickle.dumps({table: {} for table in TABLES}))


def main() -> None:
    parser = arguments(__doc__, data=CONLL2003, device=True)
    parser.set_defaults(device="cuda")
    parser.add_argument(
        "--pack", type=Path, metavar="FOLDER", help="write what the bare machine lacks; no more"
    )
    parser.add_argument("--packed", type=Path, metavar="FOLDER", help="what --pack wrote")
    parser.add_argument("--out", type=Path, help="folder of the parts' JSON (default: a new one)")
    parser.add_argument("--part", action="append", default=[], metavar="NAME", help="only these parts")
    parser.add_argument("--skip", action="append", default=[], metavar="NAME", help="not these parts")
    parser.add_argument("--minutes", type=float, default=7.5, help="no part goes on after so many")
    args = parser.parse_args()
    if args.pack:
        pack(args.pack, Path(args.data).parent)
        return
    args.encoder = "minilm"
    if args.packed:
        # Beside it, so that what was packed can be carried again. A record of Table 3 names this folder.
        unpacked = args.packed.resolve().with_name(f"{args.packed.name}_unpacked")
        if not unpacked.is_dir():
            with tarfile.open(args.packed / _ARCHIVE) as tar:
                tar.extractall(unpacked, filter="data")
        args.encoder, args.data = (str(unpacked / name) for name in (_ENCODER, _CORPORA[0]))
    args.device = "cpu" if args.quick else args.device
    args.out = args.out or Path(tempfile.mkdtemp())
    args.out.mkdir(parents=True, exist_ok=True)
    if unknown := {*args.part, *args.skip} - set(parts(args)):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts(args))}")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background, where it is ignored
    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else None
    print_json({"gpu": gpu, "torch": torch.__version__, "cores": os.cpu_count(), "out": str(args.out)})
    print_json(measure(args))


if __name__ == "__main__":
    main()
