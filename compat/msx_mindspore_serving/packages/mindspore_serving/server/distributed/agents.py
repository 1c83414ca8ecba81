"""`startup_agents`: hands the models of this machine's ranks to the server, in a script of its own.

There are no agent processes here: the server starts the ranks. What stays is this script, with which the servable
lives.
"""

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence

from ..._checks import check_int, check_str
from ..decryption import check_decryption
from ..signals import leave_to_main
from ..start_list import from_script_folder
from . import link
from .arguments import RankPaths, as_rank_paths
from .link import AgentConfiguration, AgentRegistration, LinkError, RankFiles
from .local_hosts import is_local

TRIES = 60
WAIT = 1.0
"""Seconds between two tries."""

Files = str | Sequence[str] | Sequence[Sequence[str]]


def startup_agents(
    distributed_address: str,
    model_files: Files,
    group_config_files: Files | None = None,
    agent_start_port: int = 7000,
    agent_ip: str | None = None,
    rank_start: int | None = None,
    dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM",
) -> None:
    """Returns when all ranks are ready; the script then stays until the server stops. When the script ends, the
    servable stops.

    `model_files` has one entry for each rank of this machine: a path, or a list of paths, one a subgraph; so has
    `group_config_files`. Relative paths begin at the script's folder. Nothing listens on `agent_start_port`. Raises
    RuntimeError.
    """
    check_str("distributed_address", distributed_address)
    check_int("agent_start_port", agent_start_port, 1, 65528)
    models = as_rank_paths("model_files", model_files)
    groups = None if group_config_files is None else as_rank_paths("group_config_files", group_config_files)
    if agent_ip is not None:
        check_str("agent_ip", agent_ip)
    if rank_start is not None:
        check_int("rank_start", rank_start, 0)
    check_decryption(dec_key, dec_mode)
    connection, configuration = _connect(distributed_address)
    try:
        ranks = _local_ranks(configuration, agent_ip, rank_start, agent_start_port)
        files = _files(configuration, ranks, models, groups)
        link.send(connection, AgentRegistration(dict(zip(ranks, files, strict=True)), dec_key, dec_mode))
        _wait_until_ready(connection)
    except (RuntimeError, OSError, KeyboardInterrupt) as error:
        why = str(error) if not isinstance(error, KeyboardInterrupt) else "Fail to start agents because of Ctrl+C"
        _refuse(connection, why)
        _say(f"Failed to start agents, {why}")
        raise RuntimeError(why) from None
    _say(f"Success to start agents, distributed worker_address: {distributed_address}")
    threading.Thread(target=_stay, args=(connection,), name="agents").start()


def _connect(address: str) -> tuple[socket.socket, AgentConfiguration]:
    """Tries while the server's script has not come so far. Raises RuntimeError."""
    name = link.socket_name(address)
    for left in reversed(range(TRIES)):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(name)
            link.prepare(sock)
            configuration = link.receive(sock)
            if isinstance(configuration, AgentConfiguration):
                return sock, configuration
        except LinkError as error:
            sock.close()
            raise RuntimeError(f"The distributed servable at '{address}' cannot be used: {error}.") from None
        except OSError:
            pass
        sock.close()
        if left:
            time.sleep(WAIT)
    raise RuntimeError("Raise failed: Failed to get Agents configs from Worker, worker is not available.")


def _local_ranks(configuration: AgentConfiguration, ip: str | None, start: int | None, port: int) -> list[int]:
    """Raises RuntimeError."""
    hosts = [host for host, _ in configuration.places]
    if ip is None and start is None:
        here = {host for host in dict.fromkeys(hosts) if is_local(host, port)}
        if not here:
            raise RuntimeError(f"Get local machine ip failed, rank table ips: {set(hosts)}, bind port {port}")
        return [rank for rank, host in enumerate(hosts) if host in here]
    if ip is None or start is None:
        raise RuntimeError(
            "Parameter 'agent_ip' and parameter 'rank_start' must have values at the same time, "
            "or both None at the same time."
        )
    if start >= len(hosts):
        raise RuntimeError(f"Parameter 'rank_start' cannot equal or larger than rank size {len(hosts)}.")
    if not is_local(ip, port):
        raise RuntimeError(f"Check ip 'agent_ip' valid failed, agent_ip: {ip}")
    return [rank for rank, host in enumerate(hosts) if host == hosts[start]]


def _files(
    configuration: AgentConfiguration, ranks: list[int], models: RankPaths, groups: RankPaths | None
) -> list[RankFiles]:
    """Raises RuntimeError."""
    if len(ranks) != len(models):
        cards = [configuration.places[rank][1] for rank in ranks]
        raise RuntimeError(
            f"Card count {cards} described rank table does not equal to model files size {len(models)}, "
            f"model files: {_shown(models)}"
        )
    _check_counts(models, groups)
    for name, paths in ("model file", models), ("group config file", groups or ()):
        for file in (file for files in paths for file in files):
            if not os.access(from_script_folder(file), os.R_OK) or not os.path.isfile(from_script_folder(file)):
                raise RuntimeError(f"Cannot access {name} '{file}'")
    beside = groups or ((),) * len(models)
    return [RankFiles(_absolute(one), _absolute(two)) for one, two in zip(models, beside, strict=True)]


def _check_counts(models: RankPaths, groups: RankPaths | None) -> None:
    both = f"model files: {_shown(models)}, group config files: {None if groups is None else _shown(groups)}"
    if groups is not None and len(models) != len(groups):
        raise RuntimeError(
            f"Model files count {len(models)} does not equal to group config files count {len(groups)} when "
            f"group_config_files is not None, {both}"
        )
    if any(len(files) != len(paths[0]) for paths in (models, groups or ()) for files in paths):
        raise RuntimeError(f"please check the number of  model files and group config files, {both}")
    if groups and len(groups[0]) > 1:
        raise RuntimeError("please check the number of  group config files, currently only support one at most")


def _shown(paths: RankPaths) -> list[list[str]]:
    return [list(files) for files in paths]


def _absolute(files: Sequence[str]) -> list[str]:
    return [from_script_folder(file) for file in files]


def _wait_until_ready(connection: socket.socket) -> None:
    """Raises RuntimeError with the server's reason."""
    outcome = link.receive(connection)
    if outcome is None:
        raise RuntimeError("Worker or Agents has stopped")
    if isinstance(outcome, link.AgentOutcome) and outcome.error:
        raise RuntimeError(outcome.error)


def _refuse(connection: socket.socket, text: str) -> None:
    """So that `start_servable` does not wait for ranks that will not come."""
    with contextlib.suppress(OSError):  # it may have ended by itself
        link.send(connection, link.AgentRefusal(text[:10_000]))
    connection.close()


def _stay(connection: socket.socket) -> None:
    """Until the server's script ends."""
    leave_to_main()
    with contextlib.suppress(OSError):
        while link.receive(connection) is not None:
            pass
    connection.close()
    _say("Success to stop agents, the distributed servable has stopped")


def _say(line: str) -> None:
    """Print it on stdout, where MindSpore Serving's scripts say it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
