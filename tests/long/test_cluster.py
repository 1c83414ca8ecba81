"""The example Llama over two nodes of a real Ray cluster says what it says on one machine."""

from __future__ import annotations

import json
from pathlib import Path

import grpc
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.cluster import RayCluster, run_cluster
from tests.e2e.llama import pack_llama
from tests.e2e.server import RunningServer, new_store, run_server

pytest.importorskip("ray")

pytestmark = [pytest.mark.long, pytest.mark.mindspore, pytest.mark.e2e, pytest.mark.timeout(400)]

ENGINE = {"slotBuckets": [1], "prefillBuckets": [64], "maxBatchPrefillTokens": 64, "startupTimeout": 180}
PROMPT = "once upon a time"


def config(kind: str, *, nodes: int) -> str:
    launched = {"nproc-per-node": 2 // nodes, "nnodes": nodes, "OMP_NUMBER_THREADS": 1}
    return json.dumps({"parallelType": kind, "msrun": launched, "deviceType": "cpu", **ENGINE})


def by_grpc(server: RunningServer) -> str:
    """Streamed, greedily."""
    request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
    response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")
    fields = {"prompt": PROMPT.encode(), "max_new_tokens": b"24", "temperature": b"0"}
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        path = f"/{SERVICE}/StreamPredictions"
        call = channel.unary_stream(path, request.SerializeToString, response.FromString)
        pieces = [reply.prediction for reply in call(request(model_name="llama", input=fields), timeout=120)]
    assert len(pieces) > 1, "it was streamed"
    return b"".join(pieces).decode()


def by_http(server: RunningServer) -> str:
    """Streamed, greedily."""
    body = {"model": "llama", "prompt": PROMPT, "max_tokens": 24, "temperature": 0, "stream": True, "ignore_eos": True}
    with server.inference.stream("POST", "/v1/completions", json=body, timeout=120) as reply:
        events = [line.removeprefix("data: ") for line in reply.iter_lines() if line.startswith("data: {")]
    return "".join(choice["text"] for event in events for choice in json.loads(event)["choices"])


def said(folder: Path, kind: str, cluster: RayCluster | None) -> tuple[str, str]:
    folder.mkdir()
    pack_llama(new_store(folder), "llama", config(kind, nodes=1 if cluster is None else 2))
    flags = () if cluster is None else ("--cluster-address", cluster.address)
    with run_server(folder, "--models", "llama.mar", *flags) as server:
        server.wait_ready(200)
        ranks = server.describe("llama")["workers"][0]["ranks"]
        if cluster is not None:
            assert len({rank["pid"] for rank in ranks} & {one.pid for one in cluster.ranks}) == 2
            assert len(cluster.agents) == 2
        return by_http(server), by_grpc(server)


@pytest.mark.parametrize("kind", ["tp", "pp"])
def test_the_same_text(tmp_path: Path, kind: str) -> None:
    alone = said(tmp_path / "alone", kind, None)
    with run_cluster() as cluster:
        assert said(tmp_path / "cluster", kind, cluster) == alone
        cluster.assert_empty()
    assert all(len(text) > 20 for text in alone)
