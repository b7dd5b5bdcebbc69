"""Whether a dashboard can be reached from other machines: told at its start, and by `mrnlab doctor`."""

from __future__ import annotations

import ipaddress

import psutil

__all__ = ["is_local", "open_to_all", "reachable_dashboards"]

_SCRIPT = "dashboard/app.py"


def is_local(address: str | None) -> bool:
    """Whether only this machine reaches a server that listens on this address; none means on all."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address or "0.0.0.0").is_loopback
    except ValueError:  # a machine's name
        return False


def open_to_all(address: str | None) -> str:
    """The warning of a dashboard without login that listens on this address."""
    return (
        "ANYBODY WHO CAN REACH THIS MACHINE CAN USE THIS LABORATORY: it listens on "
        f"{address or 'all addresses'} and asks for no login. They can read its data, start and delete runs, "
        "and read corpora in any folder that it can read. Leave --server.address away to keep it to this "
        "machine, or set up a login: docs/security.md says how."
    )


def reachable_dashboards() -> dict[int, list[str]]:
    """The dashboards of this user that other machines can reach: process number and where each listens."""
    found = {}
    for process in psutil.process_iter():
        try:
            if any(part.replace("\\", "/").endswith(_SCRIPT) for part in process.cmdline()):
                open_ = [
                    f"{one.laddr.ip}:{one.laddr.port}"
                    for one in process.net_connections("tcp")
                    if one.status == psutil.CONN_LISTEN and not is_local(one.laddr.ip)
                ]
                if open_:
                    found[process.pid] = open_
        except (psutil.AccessDenied, psutil.NoSuchProcess):
            continue  # another user's, or ended meanwhile
    return found
