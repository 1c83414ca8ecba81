"""Requests of a higher class are answered first, as far as their key allows it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from msx_frontend.apis.torchserve.grpc.inference import SERVICE
from msx_net.grpc.messages import message_class
from tests.e2e.server import WATCHDOG, RunningServer, new_store, run_server, wait_until
from tests.e2e.test_versions import folder_archive

pytestmark = pytest.mark.e2e

USUAL, VIP = "usual-0123456789abcdef", "vip-0123456789abcdef"
HANDLER = """
import os, time

def handle(data, context):
    name = bytes(data[0]["body"]).decode()
    folder, _, name = name.rpartition("/")
    with open(f"{folder}/order", "a") as file:
        file.write(name + "\\n")
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.005)
    return [name + " " + str(context.get_request_header(0, "x-msx-priority"))]
"""
Request = message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")
Response = message_class("org.pytorch.serve.grpc.inference.PredictionResponse")


def test_priorities(tmp_path: Path) -> None:
    folder_archive(new_store(tmp_path), "m", HANDLER)
    keys = [
        {"name": "usual", "key": USUAL, "kind": "inference"},
        {"name": "vip", "key": VIP, "kind": ["inference", "management"], "priority": "high"},
    ]
    (tmp_path / "keys.json").write_text(json.dumps({"keys": keys}))
    (tmp_path / "keys.json").chmod(0o600)
    properties = f"api_keys_file={tmp_path / 'keys.json'}\n"
    with (
        run_server(tmp_path, "--models", "m", properties=properties, tokens=True) as server,
        ThreadPoolExecutor(4) as pool,
    ):
        refused = ask(server, "x", USUAL, "high")
        assert refused.status_code == 403
        assert 'The key "usual" is for requests up to the class normal' in refused.json()["message"]
        assert ask(server, "x", VIP, "urgent").status_code == 400
        waiting = [pool.submit(ask, server, f"{tmp_path}/first", USUAL, "")]
        wait_until((tmp_path / "order").exists, "the first one runs")
        for name in ("low", "normal"):
            waiting.append(pool.submit(ask, server, f"{tmp_path}/{name}", USUAL, name))
            wait_until(partial(waits, server, len(waiting) - 1), f"{name} waits")
        high = pool.submit(ask_by_grpc, server, f"{tmp_path}/high", VIP, "high")
        wait_until(partial(waits, server, 3), "all wait")
        assert describe(server)["jobQueueStatus"]["byPriority"] == {"low": 1, "normal": 1, "high": 1}
        (tmp_path / "go").touch()
        assert [reply.result().status_code for reply in waiting] == [200] * 3
        assert high.result() == "high high", "the worker is told the class, over gRPC, too"
        assert (tmp_path / "order").read_text().split() == ["first", "high", "normal", "low"]


def ask(server: RunningServer, body: str, key: str, priority: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}", **({"X-MSX-Priority": priority} if priority else {})}
    with httpx.Client(base_url=server.inference.base_url, timeout=WATCHDOG) as client:
        return client.post("/predictions/m", content=body.encode(), headers=headers)


def ask_by_grpc(server: RunningServer, body: str, key: str, priority: str) -> str:
    metadata = (("authorization", f"Bearer {key}"), ("x-msx-priority", priority))
    with grpc.insecure_channel(server.info["grpc_inference"]) as channel:
        call = channel.unary_unary(f"/{SERVICE}/Predictions", Request.SerializeToString, Response.FromString)
        request = Request(model_name="m", input={"body": body.encode()})
        answer: str = call(request, metadata=metadata, timeout=WATCHDOG).prediction.decode()
        return answer


def waits(server: RunningServer, requests: int) -> bool:
    return bool(describe(server)["jobQueueStatus"]["pendingRequests"] == requests)


def describe(server: RunningServer) -> dict[str, Any]:
    reply = httpx.get(f"{server.management.base_url}/models/m", headers={"Authorization": f"Bearer {VIP}"})
    answer: dict[str, Any] = reply.json()[0]
    return answer
