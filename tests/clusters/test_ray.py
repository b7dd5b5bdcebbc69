"""Runs on a real Ray cluster of two nodes on this machine (Ray's own test cluster), with PostgreSQL as store.

Each node has its own laboratory folder; what they share is the store and the shared artefacts.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import MRNLabError
from core.store import MetricKey, RunState, Store
from jobs.engines.ray import JOB, RayEngine
from tests.clusters.training import STEP_S
from tests.making import config
from tests.patience import PATIENCE_S
from tests.postgres import PostgresServer

# Ray itself takes seconds to import, and every testing process reads this file.
if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed: pip install 'mrnlab[ray]'", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
WORKER = "tests.clusters.training:worker"
LOSS = MetricKey("", "train", "loss")


class Laboratory:
    """Two nodes, a store, and the engine under test."""

    def __init__(self, cluster: Any, store: Store, folder: Path) -> None:
        self.cluster, self.store, self.folder = cluster, store, folder
        self.second: Any = None
        self.engine = RayEngine(WORKER)
        self._seeds = itertools.count(1)

    def add_node(self, name: str, **resources: Any) -> Any:
        """A node with a laboratory folder of its own."""
        home = {"MRNLAB_HOME": str(self.folder / name)}
        return self.cluster.add_node(env_vars=home, include_dashboard=False, **resources)

    def launch(self, number: int, *, priority: int = 0, **values: Any) -> list[int]:
        """Queues runs and sees to it that there is a dispatcher."""
        configs = [config(seed=next(self._seeds), **values) for _ in range(number)]
        ids = self.store.add_runs(configs, priority=priority)
        self.engine.ensure_workers(self.store)
        return ids

    def until(self, what: Callable[[], object]) -> None:
        """Waits for that. Fails where it does not come."""
        deadline = time.monotonic() + PATIENCE_S
        while not what():
            assert time.monotonic() < deadline, [
                (run.id, run.state.value, run.step, run.waiting_for) for run in self.store.runs()
            ]
            time.sleep(0.05)

    def until_ended(self, ids: list[int]) -> None:
        self.until(lambda: all(self.store.state(run_id) is RunState.SUCCEEDED for run_id in ids))

    def history(self, run_id: int) -> list[str]:
        """A run's history in words."""
        return [event.message for event in self.store.events(run_id)]

    def began(self, run_id: int) -> str:
        """What its last attempt said of itself when it began."""
        return ([text for text in self.history(run_id) if text.startswith("On ")] or [""])[-1]

    def resumed_after(self, run_id: int) -> int:
        """The step of the state that its last attempt took up."""
        return int(self.began(run_id).rstrip(".").rpartition(" ")[2])

    def process(self, name: str) -> psutil.Process:
        """That process of Ray on the head node."""
        raylet = psutil.Process(self.cluster.head_node.all_processes["raylet"][0].process.pid)
        (process,) = [child for child in raylet.children(recursive=True) if name in " ".join(child.cmdline())]
        return process


@pytest.fixture(scope="module")
def lab(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    """A head with one core, and a second node with two and two GPUs that are not there."""
    from ray.cluster_utils import Cluster

    folder = tmp_path_factory.mktemp("cluster")
    with pytest.MonkeyPatch.context() as patch, postgres_server.database() as url:
        patch.setenv("PYTHONPATH", str(ROOT))  # the nodes import the worker of these tests
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("MRNLAB_ARTEFACTS", str(folder / "shared"))
        cluster = Cluster()
        try:
            with contextlib.closing(Store.open(url)) as store:
                made = Laboratory(cluster, store, folder)
                # A dead node is found in a third of the usual time.
                made.add_node("head", num_cpus=1, _system_config={"health_check_period_ms": 1000})
                made.second = made.add_node("second", num_cpus=2, num_gpus=2)
                patch.setenv("MRNLAB_RAY_ADDRESS", cluster.address)
                yield made
        finally:
            cluster.shutdown()


@pytest.mark.slow
def test_gpus_are_shared_out(lab: Laboratory) -> None:
    """Ray believes in the GPUs of the second node; the worker is told which one is its own."""
    ids = lab.launch(4, device="cuda", epochs=1)
    lab.until_ended(ids)
    beginnings = [lab.began(run_id) for run_id in ids]
    assert {text.split()[1] for text in beginnings} == {"cuda:0", "cuda:1"}
    assert all("/second" in text for text in beginnings)
    # A process serves more than one run, how many is Ray's affair.
    assert 2 <= len({run.owner for run in lab.store.runs(ids=ids)}) < len(ids)


@pytest.mark.slow
def test_a_node_dies(lab: Laboratory) -> None:
    """Every run ends well, those trained there resumed from their last state, with no step twice."""
    ids = lab.launch(4, epochs=6, device="cpu")  # long enough to still train when the node is gone
    lab.until(
        lambda: any(
            run.state is RunState.RUNNING and run.step >= 12 and "/second" in lab.began(run.id)
            for run in lab.store.runs(ids=ids)
        )
    )
    lab.cluster.remove_node(lab.second, allow_graceful=False)
    lab.until_ended(ids)
    killed = [run.id for run in lab.store.runs(ids=ids) if run.attempt == 2]
    assert killed
    for run_id in killed:
        assert "Queued again after it was lost, to be resumed." in lab.history(run_id)
        # The head has a folder of its own: the state came by the shared artefacts, and so did the model.
        assert "/head" in lab.began(run_id)
        assert (lab.folder / "shared" / "models" / str(run_id)).is_dir()
    assert max(lab.resumed_after(run_id) for run_id in killed) >= 10
    for series in lab.store.metrics(ids, LOSS):
        assert series.step.tolist() == list(range(1, 61))


@pytest.mark.slow
def test_a_worker_and_the_dispatcher_die(lab: Laboratory) -> None:
    """The run of the worker is lost, for it has no retries left; what a dispatcher started is resumed."""
    lost, trained, waiting = lab.launch(3, epochs=3)
    lab.until(lambda: lab.store.run(lost).step >= 12)
    owner = lab.store.run(lost).owner
    assert owner is not None
    psutil.Process(owner.pid).kill()
    lab.until(lambda: lab.store.run(trained).step >= 12)
    assert (lab.store.state(lost), lab.store.run(lost).attempt) == (RunState.LOST, 1)
    lab.process("Dispatcher").kill()
    lab.until_ended([trained, waiting])
    assert lab.store.run(trained).attempt == 2
    assert lab.resumed_after(trained) in (10, 20)
    assert lab.store.metrics([trained], LOSS)[0].step.tolist() == list(range(1, 31))


@pytest.mark.slow
def test_what_waits(lab: Laboratory) -> None:
    """Reasons, priorities, a pause, and stops of what cannot start, of what waits and of what trains."""
    on_gpu, first, second = (lab.launch(1, device=device, epochs=20)[0] for device in ("cuda", "cpu", "cpu"))
    store = lab.store
    lab.until(lambda: store.run(first).step > 0)
    run = store.run(first)
    assert (run.engine_job or "").startswith(JOB)
    assert lab.engine.live_workers(store) == 1
    lab.until(lambda: store.run(on_gpu).waiting_for == "Waits for a GPU: the cluster has 0.")
    busy = "Waits for its turn: 1 of 1 processor cores are busy."
    lab.until(lambda: store.run(second).waiting_for == busy)
    (third,) = lab.launch(1, device="cpu", epochs=20, priority=5)
    lab.until(lambda: store.run(third).waiting_for == busy)
    store.request_stop(on_gpu)
    store.request_stop(first)
    lab.until(lambda: store.state(third) is RunState.RUNNING)
    assert store.state(second) is RunState.QUEUED
    assert store.state(first) is RunState.CANCELLED
    store.pause_queue()
    store.request_stop(third)
    lab.until(lambda: store.state(third) is RunState.CANCELLED)
    lab.until(lambda: store.run(second).waiting_for is None)
    time.sleep(20 * STEP_S)  # long enough for it to have begun
    assert store.state(second) is RunState.QUEUED
    store.unpause_queue()
    lab.until(lambda: store.state(second) is RunState.RUNNING)
    store.request_stop(second)
    lab.until(lambda: store.state(second) is RunState.CANCELLED)
    assert store.state(on_gpu) is RunState.CANCELLED


def test_a_cluster_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRNLAB_RAY_ADDRESS", "127.0.0.1:1")
    with contextlib.closing(Store.open(f"sqlite:///{tmp_path / 'runs.db'}")) as store:
        engine = RayEngine()
        assert engine.ensure_workers(store) == 0  # nothing waits, so nobody looks
        store.add_runs([config()])
        for _ in range(2):
            with pytest.raises(
                MRNLabError, match=r"queued, but not yet on the Ray cluster\. The cluster \(127.*set MRN"
            ):
                engine.ensure_workers(store)
        assert store.counts()[RunState.QUEUED] == 1


def test_a_host_with_two_nodes_is_one_machine() -> None:
    from jobs.engines.ray_dispatcher import hosts_of

    nodes = [("a", "host", True), ("b", "host", True), ("c", "gone", False)]
    hosts = hosts_of(
        [{"NodeID": name, "NodeManagerHostname": host, "Alive": alive} for name, host, alive in nodes]
    )
    assert hosts == {"a": "host", "b": "host"}
