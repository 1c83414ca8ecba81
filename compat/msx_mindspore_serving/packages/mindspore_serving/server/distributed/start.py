"""`start_servable`: waits for the models of all ranks, and has the server start a group of processes with them."""

from base64 import b64encode
from collections import Counter
from typing import Any

from ..._checks import check_int, check_str
from ..listen_address import failed
from ..script_server import SERVER
from ..server_process import ServerError, ServerProcess
from ..start_list import StartedServable, check_folder, from_script_folder
from ..starting import or_stop
from .declared import Declared, read_declared
from .link import AgentConfiguration, AgentRegistration
from .listener import AgentListener
from .local_hosts import is_local
from .rank_models import check_models
from .rank_table import RankPlace, check_rank_table, read_rank_table

HERE = "127.0.0.1"
"""The host of all ranks for `startup_agents`, where they run in a cluster: one script hands over all files."""


@or_stop
def start_servable(
    servable_directory: str,
    servable_name: str,
    rank_table_json_file: str,
    version_number: int = 1,
    distributed_address: str = "0.0.0.0:6200",
    wait_agents_time_in_seconds: int = 0,
) -> None:
    """Returns when all ranks are ready; `startup_agents` hands over their models, in a script of its own.

    The ranks run on this machine, or on nodes of the server's cluster where the rank table has several hosts. Nothing
    listens at `distributed_address`: its port names a Unix socket. 0 seconds are no limit. Raises RuntimeError.
    """
    check_str("servable_directory", servable_directory)
    check_str("servable_name", servable_name)
    check_str("rank_table_json_file", rank_table_json_file)
    check_int("version_number", version_number, 0)
    check_str("distributed_address", distributed_address)
    check_int("wait_agents_time_in_seconds", wait_agents_time_in_seconds, 0)
    start = StartedServable(
        directory=from_script_folder(servable_directory),
        name=servable_name,
        version=version_number or 1,
        device_ids=(),
        device_type="none",
        num_parallel_workers=1,
        dec_key=None,
        dec_mode="",
    )
    check_folder(start)
    if (running := SERVER.running) is not None and running.has_servables:
        raise failed("Master gRPC server is already running")
    server = SERVER.started()
    server.has_servables = True
    table = from_script_folder(rank_table_json_file)
    try:
        _start(server, start, table, distributed_address, wait_agents_time_in_seconds)
    except RuntimeError as error:
        if SERVER.signalled:
            raise RuntimeError("Fail to start workers because of signal SIGINT or SIGTERM") from None
        text = error.detail if isinstance(error, ServerError) else str(error)
        text = f"Raise failed: {text.removeprefix('Raise failed: ')}"
        raise RuntimeError(f"Fail to start workers: {{distributed servable:{servable_name}, {text}}}") from None


def _start(server: ServerProcess, start: StartedServable, table: str, address: str, seconds: int) -> None:
    """Raises RuntimeError."""
    declared = read_declared(start.directory, start.name)
    places = _places(table, declared)
    nodes = _nodes(server, table, places)
    hosts = [(place.host if nodes == 1 else HERE, place.device_id) for place in places]
    listener = AgentListener(address, AgentConfiguration(start.name, hosts, declared.stage_size), SERVER.stop)
    server.at_end(listener.close)
    try:
        agents = listener.wait(seconds)
        check_models([files.models for files in agents.ranks.values()], declared.stage_size)
        server.ask("load", servables=[_said(start, places, declared, agents, nodes)], lite=False)
        listener.check()
    except BaseException as error:
        listener.announce(str(error) or type(error).__name__)
        raise
    listener.announce()


def _places(table: str, declared: Declared) -> list[RankPlace]:
    """Raises RuntimeError."""
    places = read_rank_table(table)
    check_rank_table(places, table, declared.rank_size, declared.stage_size)
    return places


def _nodes(server: ServerProcess, table: str, places: list[RankPlace]) -> int:
    """Number of machines that the ranks run on: this one, unless the server has a cluster. Raises RuntimeError."""
    counts = Counter(place.host for place in places)
    host = next((host for host in counts if not is_local(host)), None)
    if host is None:
        return 1
    try:
        server.ask("need_cluster")
    except ServerError as error:
        if error.kind != "cluster":
            raise
        raise RuntimeError(
            f"The rank table file '{table}' names the host {host}, which is not an address of this machine. All "
            "ranks of a distributed servable run on the machine of its server: give an address of this machine as "
            "the server_id of every rank, or name a Ray cluster with cluster_address"
        ) from None
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{count} on {name}" for name, count in counts.items())
        raise RuntimeError(
            f"The rank table file '{table}' has {each}: in a cluster each machine has the same number of ranks"
        )
    return len(counts)


def _said(
    start: StartedServable, places: list[RankPlace], declared: Declared, agents: AgentRegistration, nodes: int
) -> dict[str, Any]:
    ranks = {
        "stage_size": declared.stage_size,
        "models": [files.models for files in agents.ranks.values()],
        "groups": [files.groups for files in agents.ranks.values()],
        "device_ids": [place.device_id for place in places],
        "nodes": nodes,
    }
    return {
        "directory": start.directory,
        "name": start.name,
        "version": start.version,
        "num_parallel_workers": 1,
        "dec_key": agents.dec_key and b64encode(agents.dec_key).decode(),
        "dec_mode": agents.dec_mode,
        "ranks": ranks,
    }
