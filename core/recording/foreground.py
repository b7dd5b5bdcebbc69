"""Training in this process, on record like a run that a worker trains."""

from __future__ import annotations

import math
from pathlib import Path

from core.checkpoints import Checkpoint, checkpoint_seconds
from core.checkpoints.shared_storage import shared_artefacts
from core.config import RunConfig
from core.corpora import prepare
from core.errors import NotOwner, RunNotFound, TrainingError
from core.events import Event, Sink
from core.paths import checkpoint_dir
from core.recording.heartbeat import Heartbeat, StopSignal
from core.recording.owner import this_process
from core.recording.resolve import resolve_base_run, with_absolute_paths
from core.recording.sink import StoreSink
from core.store import ErrorInfo, Owner, RunState, Store


def train_here(store: Store, config: RunConfig, watch: Sink, folder: Path | None = None) -> int:
    """Train a run in this process and return its number in the store; `watch` gets its events too.

    The model goes to MRNLAB_HOME, with training states to resume from; or to `folder`, without them.
    Ctrl-C cancels the run and is raised again.

    Raises MRNLabError where the run cannot be trained, or is stopped by another process.
    """
    import torch

    from core.training.trainer import train

    config = with_absolute_paths(config)
    as_trained = resolve_base_run(store, config)
    corpus = prepare(config)  # before the run is queued: bad data leave none behind
    owner, stop = this_process(), StopSignal()
    run_id = _claimed(store, config, owner)
    model = checkpoint_dir(run_id) if folder is None else folder / str(run_id)
    threads = torch.get_num_threads()
    try:
        with Heartbeat(store, run_id, owner, stop), StoreSink(store, run_id, owner, stop) as sink:

            def tell(event: Event) -> None:
                sink(event)
                watch(event)

            checkpoint = Checkpoint(
                model,
                every_s=checkpoint_seconds() if folder is None else math.inf,
                settle=sink.settle,
                shared=shared_artefacts() if folder is None else None,
            )
            outcome = train(as_trained, corpus, sink=tell, checkpoint=checkpoint, should_stop=stop)
    except (NotOwner, RunNotFound):
        raise
    except Exception as error:
        store.finish(run_id, RunState.FAILED, error=ErrorInfo.from_error(error), owner=owner)
        raise
    except KeyboardInterrupt:
        _cancel(store, run_id, owner)
        raise
    finally:
        torch.set_num_threads(threads)  # a run may have chosen fewer
    if outcome.stopped:
        _cancel(store, run_id, owner)
        raise TrainingError(f"Run {run_id} was stopped; `mrnlab resume {run_id}` goes on with it.")
    store.finish(
        run_id, RunState.SUCCEEDED, best_epoch=outcome.best_epoch, checkpoint=str(model), owner=owner
    )
    checkpoint.forget_states()
    return run_id


def _claimed(store: Store, config: RunConfig, owner: Owner) -> int:
    """Add the run and claim it at once, so that no worker takes it in between; its number."""
    with store.transaction():
        (run_id,) = store.add_runs([config])
        if store.claim(owner, run_id=run_id) is None:
            raise TrainingError(
                f"The queue is paused or {owner.host} drained, so no run may start here; `mrnlab queue` says "
                "which, `mrnlab queue resume` and `mrnlab queue undrain` end it."
            )
    return run_id


def _cancel(store: Store, run_id: int, owner: Owner) -> None:
    """End the run as cancelled, unless it is no longer this process's."""
    with store.transaction():
        if store.state(run_id, owner) is RunState.RUNNING:
            store.request_stop(run_id)
        store.finish(run_id, RunState.CANCELLED, owner=owner)
