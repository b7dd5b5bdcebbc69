"""A real Slurm of one node on this machine: munge, a controller and a node, in a folder of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import free_port
from tests.supervised import wait_for

__all__ = ["SlurmServer", "started"]

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "srun")

_SETTINGS = """\
ClusterName=small
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmctldPort={port}
SlurmdPort={node_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=1000 State=UNKNOWN
PartitionName=small Nodes=ALL Default=YES MaxTime=60 State=UP
"""


class SlurmServer:
    """Slurm, reached by its commands where SLURM_CONF names `settings`."""

    def __init__(self, folder: Path) -> None:
        self.settings = folder / "slurm.conf"

    def ask(self, *command: str) -> str:
        """What a command of Slurm says. Fails where it fails."""
        environment = os.environ | {"SLURM_CONF": str(self.settings)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout.strip()


@contextlib.contextmanager
def started(folder: Path) -> Iterator[SlurmServer]:
    """Slurm while the block runs. Skips the test, saying why, where it cannot be started."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    programs = {name: shutil.which(name, path=path) for name in _PROGRAMS}
    missing = [name for name, place in programs.items() if place is None]
    if missing:
        pytest.skip(f"Slurm is not installed ({', '.join(missing)}): apt-get install slurm-wlm munge")
    if os.geteuid() != 0:
        pytest.skip("Slurm's daemons are started by root alone")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    ports = {"port": free_port(), "node_port": free_port()}
    server = SlurmServer(folder)
    server.settings.write_text(_SETTINGS.format(host=socket.gethostname(), folder=folder, **ports))
    munge = [f"--{name}={folder / file}" for name, file in _MUNGE.items()]
    with contextlib.ExitStack() as daemons:
        daemons.enter_context(_daemon(folder, str(programs["munged"]), "--foreground", "--force", *munge))
        wait_for(lambda: (folder / "munge.sock").exists())
        daemons.enter_context(_daemon(folder, str(programs["slurmctld"]), "-D", "-c"))
        daemons.enter_context(_daemon(folder, str(programs["slurmd"]), "-D"))
        wait_for(lambda: _is_idle(server))
        try:
            yield server
        finally:
            server.ask("scancel", "--me")
            wait_for(lambda: not server.ask("squeue", "--noheader"))


_MUNGE = {
    "socket": "munge.sock",
    "key-file": "munge.key",
    "pid-file": "munged.pid",
    "log-file": "munged.log",
    "seed-file": "munge.seed",
}


@contextlib.contextmanager
def _daemon(folder: Path, *command: str) -> Iterator[None]:
    environment = os.environ | {"SLURM_CONF": str(folder / "slurm.conf")}
    with (folder / f"{Path(command[0]).name}.out").open("wb") as output:
        daemon = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, env=environment, cwd=folder
        )
    try:
        yield
    finally:
        daemon.terminate()
        try:
            daemon.wait(timeout=10)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _is_idle(server: SlurmServer) -> bool:
    environment = os.environ | {"SLURM_CONF": str(server.settings)}
    command = ["sinfo", "--noheader", "--format=%T"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done.stdout.strip() == "idle"
