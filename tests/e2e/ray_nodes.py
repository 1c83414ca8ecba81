"""`python -m tests.e2e.ray_nodes`: a Ray cluster on this machine, led by lines of JSON on standard input.

`{"node": {…}}` starts a node, the head first, and is answered with its processes; `{"left": true}` with the placement
groups and actors that there are, and `{"versions": {…}}`, which changes those that the cluster tells, with what they
were. At the end of the input all ends. It is a process of its own, because Ray changes the
process that it is imported into.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ray._common.usage.usage_constants import CLUSTER_METADATA_KEY
from ray._private import services
from ray._private.ray_constants import KV_NAMESPACE_CLUSTER
from ray._private.state import state
from ray._raylet import GcsClient, GcsClientOptions  # type: ignore[attr-defined]  # a C extension's
from ray.cluster_utils import Cluster

from tests.e2e.cluster import DEFAULT_FOLDER

OPTIONS: dict[str, Any] = {"num_cpus": 4, "object_store_memory": 80 << 20}
LONGEST = 120
"""Seconds in which a node is one of the cluster's; Ray's own 30 are less than a busy machine may need."""


def main() -> None:
    out, sys.stdout = sys.stdout, sys.stderr  # Ray prints
    services.get_node = partial(waited_for, services.get_node)
    cluster = Cluster()
    try:
        for line in sys.stdin:
            order = json.loads(line)
            print(json.dumps(done(cluster, order)), file=out, flush=True)
    finally:
        for node in cluster.list_all_nodes():
            node.kill_all_processes(check_alive=False, allow_graceful=False)


def done(cluster: Cluster, order: dict[str, Any]) -> Any:
    if "node" in order:
        return added(cluster, order["node"])
    return changed(cluster.address, order["versions"]) if "versions" in order else left(cluster.address)


def changed(address: str, versions: dict[str, str]) -> dict[str, str]:
    gcs = GcsClient(address=address)
    told = json.loads(gcs.internal_kv_get(CLUSTER_METADATA_KEY, namespace=KV_NAMESPACE_CLUSTER))
    gcs.internal_kv_put(
        CLUSTER_METADATA_KEY, json.dumps({**told, **versions}).encode(), overwrite=True, namespace=KV_NAMESPACE_CLUSTER
    )
    return {name: told[name] for name in versions}


def added(cluster: Cluster, options: dict[str, Any]) -> dict[str, Any]:
    os.makedirs(DEFAULT_FOLDER, exist_ok=True)
    node = cluster.add_node(wait=False, **OPTIONS, **options)
    cluster._wait_for_node(node, LONGEST)
    pids = {kind: [one.process.pid for one in processes] for kind, processes in node.all_processes.items()}
    return {"address": cluster.address, "node_id": node.node_id, "pids": pids}


def waited_for(look: Callable[..., Any], *args: Any) -> Any:
    """The node that starts, once it is known: Ray itself looks for 30 seconds, which are in no setting."""
    over = time.monotonic() + LONGEST
    while True:
        try:
            return look(*args)
        except RuntimeError:
            if time.monotonic() > over:
                raise
        time.sleep(0.1)


def left(address: str) -> list[str]:
    """Without becoming one of the cluster's drivers."""
    state._initialize_global_state(GcsClientOptions.create(address, None, True, True))
    groups = [one["name"] for one in state.placement_group_table().values() if one["state"] != "REMOVED"]
    actors = [one["Name"] for one in state.actor_table(None).values() if one["State"] != "DEAD"]
    return sorted(groups + actors)


if __name__ == "__main__":
    main()
