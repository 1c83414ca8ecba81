"""The actor that holds a bundle on a node, and starts the agent there.

This module travels to the nodes by value: it must be understood where msx-serve is missing or is another version, and
say so. It imports nothing of MSX.
"""

import contextlib
import importlib.metadata
import json
import os
import platform
import socket
import subprocess
import sys
import threading
import time
from typing import Any

UNUSED = 3600.0
"""Seconds after which a bundle without an agent is given back: the server may have to install requirements first."""

ANSWER = 10.0
"""Seconds that Ray has to take the bundle back."""

LOOK = 1.0
"""Seconds between two looks at whether Ray's process on the node is there."""


def _follow_parent(raylet: int) -> None:
    """End with the raylet, without which there is no bundle to hold; Ray leaves its actors behind where its head is
    gone, too."""
    while os.getppid() == raylet:
        time.sleep(LOOK)
    os._exit(0)


def _as_important_as(raylet: int, process: int) -> None:
    """Ray makes its workers, and what they start, nicer than itself by 15: ranks would yield to all else on the node.

    Where this process may not change that (CAP_SYS_NICE), the agent says so.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, raylet))


class Holder:
    """Lives until its bundle is given back: by the driver, or by itself when its agent has ended.

    The agent is not its child any more once it runs: when Ray's processes on the node end, the agent goes on.
    """

    def __init__(self) -> None:
        self._agent = threading.Event()
        threading.Thread(target=self._expect_agent, daemon=True).start()
        threading.Thread(target=_follow_parent, args=(os.getppid(),), daemon=True).start()

    def place(self, resource: str) -> dict[str, Any]:
        """The node as the server must know it. `resource`: Ray's name of the bundle's devices."""
        import ray

        context = ray.get_runtime_context()
        devices = context.get_accelerator_ids().get(resource, [])
        try:
            version = importlib.metadata.version("msx-serve")
        except importlib.metadata.PackageNotFoundError:
            version = ""
        return {
            "node_id": context.get_node_id(),
            "node": socket.gethostname(),
            "address": ray.util.get_node_ip_address(),
            "devices": sorted(map(str, devices), key=lambda name: (len(name), name)),
            "version": version,
            "python": platform.python_version(),
            "platform": f"{sys.platform}-{platform.machine()}",
        }

    def start(self, invitation: dict[str, Any]) -> None:
        """Start the agent, which takes the invitation from its standard input."""
        alive, agents_end = os.pipe()
        command = [sys.executable, "-m", "msx_ray.agent", "--alive-fd", str(agents_end)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, pass_fds=[agents_end], cwd="/", start_new_session=True
        )
        os.close(agents_end)
        _as_important_as(os.getppid(), process.pid)
        process.communicate(json.dumps(invitation).encode(), timeout=60)
        if process.returncode:
            raise RuntimeError(f"the agent could not be started: exit code {process.returncode}")
        self._agent.set()
        threading.Thread(target=self._outlive, args=(alive,), daemon=True).start()

    def hold(self) -> None:
        """Never returns: the call fails when this actor ends, which tells the driver."""
        threading.Event().wait()

    def _expect_agent(self) -> None:
        """A server that is gone, with its driver, starts no agents."""
        if not self._agent.wait(UNUSED):
            self._give_back()

    def _outlive(self, alive: int) -> None:
        """When the agent has ended, the whole reservation ends: also where the server and its driver are gone."""
        while os.read(alive, 1):
            pass
        self._give_back()

    def _give_back(self) -> None:
        import ray

        threading.Timer(ANSWER, os._exit, [0]).start()  # without Ray's head the next call does not return
        group = ray.util.get_current_placement_group()
        if group is not None:
            ray.util.remove_placement_group(group)
        os._exit(0)
