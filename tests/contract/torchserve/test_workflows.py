"""Workflows.

contract#workflows
"""

from __future__ import annotations

import json
import os
import socket
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.grpc_client import INFERENCE, stub_of
from tests.contract.torchserve.setup import Setup
from tests.contract.torchserve.shapes import METHOD_NOT_ALLOWED, assert_error, assert_json, assert_status
from tests.e2e.server import RunningServer, new_store, wait_until
from tests.file_server import file_server
from tests.phrases import no_worker
from tests.wars import CHAIN, FAN, MODELS, NODE, pack_node, pack_war

pytestmark = pytest.mark.e2e

SPECS = {
    "chain": MODELS + CHAIN,
    "fan": MODELS + FAN,
    "leaves": MODELS + "dag:\n  pre: [m1, m2]\n",
    "single": MODELS + "dag:\n  m1: []\n",
    "retry": MODELS.replace("retry-attempts: 0", "retry-attempts: 2") + CHAIN,
    "hasty": MODELS.replace("60000", "200").replace("retry-attempts: 0", "retry-attempts: 1") + "dag:\n  m1: []\n",
    "cycle": MODELS + "dag:\n  pre: [m1]\n  m1: [m2]\n  m2: [m1]\n",
    "starts": MODELS + "dag:\n  pre: [m1]\n  other: [m1]\n",
    "nosuch": MODELS + "dag:\n  nosuch: [m1]\n",
    "absent": "models:\n  m9: {url: m9.mar}\ndag:\n  pre: [m9]\n",
    "nodag": MODELS,
}


def prepare(store: Path) -> None:
    for model in ("m1", "m2"):
        pack_node(store, model)
    for name, spec in SPECS.items():
        pack_war(store, name, spec)
    write_upstream_war(store)
    pack_war(store, "handless", MODELS + CHAIN, functions=False)


def write_upstream_war(store: Path) -> None:
    """As torch-workflow-archiver writes it."""
    workflow = {"workflowName": "upstream", "specFile": "workflow.yaml", "handler": "workflow_node.py"}
    manifest = {"createdOn": "21/11/2026 09:30:00", "workflow": workflow, "archiverVersion": "0.2.15"}
    with zipfile.ZipFile(store / "upstream.war", "w", zipfile.ZIP_DEFLATED) as war:
        war.write(NODE, "workflow_node.py")
        war.writestr("workflow.yaml", SPECS["chain"])
        war.writestr("WAR-INF/", "")
        war.writestr("WAR-INF/MANIFEST.json", json.dumps(manifest, indent=2))


SERVER = Setup(prepare=prepare, env={"NO_PROXY": "*"})


def register(server: RunningServer, **parameters: Any) -> httpx.Response:
    return server.management.post("/workflows", params=parameters)


def wfpredict(server: RunningServer, workflow: str, content: str = "x", **kwargs: Any) -> httpx.Response:
    headers = {"content-type": "text/plain", **kwargs.pop("headers", {})}
    return server.inference.post(f"/wfpredict/{workflow}", content=content, headers=headers, **kwargs)


@pytest.fixture(scope="module")
def ready(server: RunningServer) -> RunningServer:
    for name in ("chain", "fan", "leaves", "single", "retry", "hasty"):
        text = f"Workflow {name} has been registered and scaled successfully."
        assert_status(register(server, url=f"{name}.war"), 200, text)
    return server


# -- management --


def test_describe(ready: RunningServer) -> None:
    described = {
        "workflowName": "fan",
        "workflowUrl": "fan.war",
        "minWorkers": 1,
        "maxWorkers": 1,
        "batchSize": 3,
        "maxBatchDelay": 0,
        "workflowDag": "{pre=[m1, m2], m1=[post], m2=[post]}",
    }
    assert_json(ready.management.get("/workflows/fan"), 200, [described])


def test_list(ready: RunningServer) -> None:
    names = ["chain", "fan", "hasty", "leaves", "retry", "single"]
    entries = [{"workflowName": name, "workflowUrl": f"{name}.war"} for name in names]
    assert_json(ready.management.get("/workflows"), 200, {"workflows": entries})
    assert_json(ready.management.get("/workflows/"), 200, {"workflows": entries})
    first = {"nextPageToken": "4", "workflows": entries[:4]}
    assert_json(ready.management.get("/workflows", params={"limit": 4}), 200, first)
    second = ready.management.get("/workflows", params={"limit": 4, "next_page_token": "4"})
    assert_json(second, 200, {"workflows": entries[4:]})


def test_models_are_listed_and_functions_are_not(ready: RunningServer) -> None:
    listed = {model["modelName"]: model["modelUrl"] for model in ready.management.get("/models").json()["models"]}
    assert (listed["fan__m1"], listed["fan__m2"]) == ("m1.mar", "m2.mar")
    assert not [name for name in listed if name.endswith(("__pre", "__post"))]
    assert ready.describe("fan__m1")["batchSize"] == 3
    function = ready.describe("fan__pre")
    assert "modelUrl" not in function
    assert (function["batchSize"], function["minWorkers"], function["deviceType"]) == (1, 1, "cpu")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_methods_of_the_collection(server: RunningServer, method: str) -> None:
    assert_error(server.management.request(method, "/workflows"), 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST"])
def test_methods_of_a_workflow(ready: RunningServer, method: str) -> None:
    reply = ready.management.request(method, "/workflows/chain")
    assert_error(reply, 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED)


def test_an_unknown_workflow(server: RunningServer) -> None:
    for reply in (
        server.management.get("/workflows/nope"),
        server.management.delete("/workflows/nope"),
        server.inference.post("/wfpredict/nope"),
    ):
        assert_error(reply, 404, "WorkflowNotFoundException", "Workflow not found: nope")


def test_without_a_url(server: RunningServer) -> None:
    assert_error(register(server), 400, "BadRequestException", "Parameter url is required.")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nope.war", "Workflow not found in workflow store: nope.war"),
        ("../x.war", "Relative path is not allowed in url: ../x.war"),
    ],
)
def test_an_archive_that_is_not_there(server: RunningServer, url: str, message: str) -> None:
    assert_error(register(server, url=url), 404, "WorkflowNotFoundException", message)


def test_a_name_that_is_taken(ready: RunningServer) -> None:
    message = "Workflow chain is already registered."
    assert_error(register(ready, url="chain.war"), 409, "ConflictStatusException", message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("starts", "DAG should have only one start node: it has pre, other, which no node leads to (starts.yaml)."),
        ("cycle", "Not a valid DAG: "),
    ],
)
def test_graphs_that_cannot_be_run(server: RunningServer, name: str, message: str) -> None:
    assert_error(register(server, url=f"{name}.war"), 400, "InvalidDAGException", message, exact=False)
    assert_error(server.inference.get(f"/wfpredict/{name}"), 404, "WorkflowNotFoundException", "", exact=False)


def test_a_spec_without_a_graph(server: RunningServer) -> None:
    """TorchServe: 500 NullPointerException."""
    message = "nodag.war: nodag.yaml: dag: None is not a mapping of node names to lists of the nodes that follow."
    assert_error(register(server, url="nodag.war"), 400, "InvalidWorkflowException", message)


def test_a_model_archive_is_not_a_workflow(server: RunningServer) -> None:
    reply = register(server, url="m1.mar")
    assert_error(reply, 400, "InvalidWorkflowException", f"{server.store}/m1.mar is not a workflow", exact=False)


@pytest.mark.parametrize(
    ("name", "failure"),
    [
        ("absent", "Workflow Node absent__m9 failed to register. Details: Model not found at: m9.mar"),
        ("nosuch", "Failed to start workers for model nosuch__nosuch version: 1.0"),
        ("handless", "Workflow Node handless__pre failed to register. Details: dag: pre is not under models"),
    ],
)
def test_nothing_is_left_when_a_node_fails(server: RunningServer, name: str, failure: str) -> None:
    reply = register(server, url=f"{name}.war")
    message = f"Workflow {name} has failed to register. Failures: [{failure}"
    assert_error(reply, 500, "WorkflowException", message, exact=False)
    for node in ("pre", "m1", "m9", "nosuch", "post"):
        assert server.management.get(f"/models/{name}__{node}").status_code == 404
    assert server.management.get(f"/workflows/{name}").status_code == 404


def test_a_name_of_its_own_and_unregister(server: RunningServer) -> None:
    reply = server.management.post("/workflows", json={"url": "single.war", "workflow_name": "mine"})
    assert_status(reply, 200, "Workflow mine has been registered and scaled successfully.")
    assert wfpredict(server, "mine").text == 'm1(body="x")'
    assert_status(server.management.delete("/workflows/mine"), 200, 'Workflow "mine" unregistered')
    assert server.management.get("/models/mine__m1").status_code == 404
    assert_error(wfpredict(server, "mine"), 404, "WorkflowNotFoundException", "Workflow not found: mine")


def test_an_archive_of_torchserves_archiver(server: RunningServer) -> None:
    assert register(server, url="upstream.war").status_code == 200
    assert wfpredict(server, "upstream").text == 'post(body=m1(body=pre(body="x")))'
    assert server.management.delete("/workflows/upstream").status_code == 200


def test_archives_from_elsewhere(server: RunningServer, tmp_path: Path) -> None:
    """Archives of the workflow and of its models; two nodes may come from one URL. They go when the workflow goes."""
    before = sorted(os.listdir(server.store))
    with file_server() as web:
        node = web.put("/models/far.mar", pack_node(new_store(tmp_path), "far").read_bytes())
        spec = f"models:\n  a: {{url: '{node}'}}\n  b: {{url: '{node}'}}\ndag: {{a: [b]}}\n"
        url = web.put("/far.war", pack_war(tmp_path / "store", "far", spec).read_bytes())
        assert_status(register(server, url=url), 200, "Workflow far has been registered and scaled successfully.")
        assert server.management.get("/workflows/far").json()[0]["workflowUrl"] == url
    assert wfpredict(server, "far").text == 'b(body=a(body="x"))'
    assert {"far.mar", "far.war"} <= set(os.listdir(server.store))
    assert server.management.delete("/workflows/far").status_code == 200
    assert sorted(os.listdir(server.store)) == before


def test_a_url_that_answers_nothing(server: RunningServer) -> None:
    with file_server() as web:
        reply = register(server, url=f"{web.url}/nowhere.war")
    assert (reply.status_code, reply.json()["type"]) == (400, "DownloadArchiveException")
    assert not (server.store / "nowhere.war").exists()


def test_a_name_that_cannot_be_served(server: RunningServer) -> None:
    """TorchServe takes it, and cannot be asked for it then."""
    reply = register(server, url="single.war", workflow_name="a/b c")
    assert_error(reply, 400, "InvalidWorkflowException", "Workflow name 'a/b c' cannot be served", exact=False)


def test_a_node_comes_and_goes_with_its_workflow(ready: RunningServer) -> None:
    """TorchServe lets it go, and then cannot unregister the workflow."""
    message = "Model chain__m1 is a node of workflow chain: it comes and goes with that workflow."
    assert_error(ready.management.delete("/models/chain__m1"), 409, "ConflictStatusException", message)
    reply = ready.management.post("/models", params={"url": "m1.mar", "model_name": "chain__m1"})
    assert_error(reply, 409, "ConflictStatusException", message)


def test_a_model_of_a_nodes_name_is_in_the_way(ready: RunningServer) -> None:
    assert ready.management.post("/models", params={"url": "m1.mar", "model_name": "late__m1"}).status_code == 200
    reply = register(ready, url="single.war", workflow_name="late")
    details = "Workflow Node late__m1 failed to register. Details: Model late__m1 is already registered"
    message = f"Workflow late has failed to register. Failures: [{details}]"
    assert_error(reply, 500, "WorkflowException", message)
    assert ready.management.delete("/models/late__m1").status_code == 200


def test_a_node_can_be_scaled(ready: RunningServer) -> None:
    def scale(workers: int) -> httpx.Response:
        return ready.management.put("/models/single__m1", params={"min_worker": workers, "synchronous": "true"})

    assert_status(scale(0), 200, "Workers scaled to 0 for model: single__m1")
    reply = wfpredict(ready, "single")
    assert_status(scale(1), 200, "Workers scaled to 1 for model: single__m1")
    assert reply.headers["x-workflow-node"] == "m1"
    assert reply.json()["message"].startswith(f"Error executing m1: {no_worker('single__m1')}")
    assert (reply.status_code, reply.json()["type"]) == (503, "ServiceUnavailableException")
    assert wfpredict(ready, "single").status_code == 200


# -- inference --


def test_a_chain(ready: RunningServer) -> None:
    reply = wfpredict(ready, "chain")
    assert (reply.status_code, reply.text) == (200, 'post(body=m1(body=pre(body="x")))')
    assert reply.headers["content-type"] == "application/json"


def test_branches_meet(ready: RunningServer) -> None:
    """A node with several predecessors gets one input of each, by its name."""
    assert wfpredict(ready, "fan").text == 'post(m1=m1(body=pre(body="x"))|m2=m2(body=pre(body="x")))'


def test_several_leaves(ready: RunningServer) -> None:
    """TorchServe fails for what is no JSON object."""
    reply = wfpredict(ready, "leaves", "m1:json")
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == {"m1": {"answer": 42}, "m2": 'm2(body=pre(body="m1:json"))'}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_any_method(ready: RunningServer, method: str) -> None:
    assert ready.inference.request(method, "/wfpredict/single").text == "m1(body=)"


@pytest.mark.parametrize("method", ["Predictions", "StreamPredictions"])
def test_over_grpc(ready: RunningServer, method: str) -> None:
    """By the name of the workflow, as that of a model; TorchServe has none of it."""
    with stub_of(ready, INFERENCE) as stub:
        call = getattr(stub, method)
        answer = call(model_name="chain", input={"body": b"x"})
        found = b"".join(reply.prediction for reply in (answer if method == "StreamPredictions" else [answer]))
        assert found == b"post(body=m1(body=pre(body=x)))"


@pytest.mark.parametrize("path", ["/wfpredict", "/wfpredict/"])
def test_without_a_name(server: RunningServer, path: str) -> None:
    assert server.inference.post(path).json()["type"] == "ResourceNotFoundException"


def test_nothing_may_follow_the_name(ready: RunningServer) -> None:
    reply = ready.inference.post("/wfpredict/single/1.0")
    assert (reply.status_code, reply.json()["type"]) == (404, "ResourceNotFoundException")


def test_inputs_are_those_of_predictions(ready: RunningServer) -> None:
    form = ready.inference.post("/wfpredict/single", data={"a": "1", "b": "2"})
    assert form.text == "m1(a=1|b=2)"
    files = ready.inference.post("/wfpredict/single", files={"f": ("f.json", b"[1]", "application/json")})
    assert files.text == "m1(f=[1])"
    document = ready.inference.post("/wfpredict/single", json={"a": 1})
    assert document.text == 'm1(body={"a": 1})'


def test_what_a_node_answers_reaches_the_next_as_bytes(ready: RunningServer) -> None:
    """Not decoded, whatever it answers (TorchServe)."""
    assert wfpredict(ready, "chain", "m1:json").text == 'post(body={\n  "answer": 42\n})'


def test_headers_reach_every_node(ready: RunningServer) -> None:
    seen = wfpredict(ready, "chain", "m1:headers", headers={"x-mine": "1", "x-request-id": "abc"}).text
    headers = json.loads(seen.removeprefix("post(body=").removesuffix(")"))
    assert headers["x-mine"] == "1"
    assert headers["id"] == "abc-m1"


def test_a_content_type_that_the_last_node_chose(ready: RunningServer) -> None:
    """TorchServe says application/json of everything."""
    assert wfpredict(ready, "single", "m1:typed=text/plain").headers["content-type"] == "text/plain"


@pytest.mark.parametrize(("workflow", "answer"), [("single", "one two three"), ("chain", "post(body=one two three)")])
def test_a_node_that_streams_is_answered_whole(ready: RunningServer, workflow: str, answer: str) -> None:
    """When it has ended: until then an attempt may fail, and be repeated."""
    reply = wfpredict(ready, workflow, "m1:pieces")
    assert (reply.status_code, reply.text) == (200, answer)
    assert reply.headers["content-length"] == str(len(answer))
    assert "ts_stream_next" not in reply.headers


def test_functions_run_in_processes_of_their_own(ready: RunningServer) -> None:
    pid = int(wfpredict(ready, "leaves", "pre:pid").json()["m1"].removeprefix("m1(body=").removesuffix(")"))
    assert pid != ready.process.pid
    assert pid == ready.worker_pids("leaves__pre")[0]


def test_branches_run_side_by_side(ready: RunningServer, tmp_path: Path) -> None:
    assert wfpredict(ready, "leaves", f"m1:meet={tmp_path} m2:meet={tmp_path}").status_code == 200


# -- what goes wrong in a node --


def test_an_error_names_its_node(ready: RunningServer) -> None:
    reply = wfpredict(ready, "chain", "m1:raise", headers={"x-request-id": "abc"})
    message = "Error executing m1: Prediction failed: RuntimeError: attempt of abc-m1"
    assert (reply.status_code, reply.json()) == (
        503,
        {"code": 503, "type": "InternalServerException", "message": message},
    )
    assert reply.headers["x-workflow-node"] == "m1"


@pytest.mark.parametrize("status", [404, 599])
def test_an_error_that_the_handler_chose(ready: RunningServer, status: int) -> None:
    """TorchServe: 500 "Error executing m1" (issue 2456)."""
    reply = wfpredict(ready, "fan", f"m1:refuse={status}")
    assert reply.status_code == status
    assert reply.json()["message"] == "Error executing m1: a sentence of the handler"
    assert reply.headers["x-workflow-node"] == "m1"


def test_a_status_that_the_handler_chose(ready: RunningServer) -> None:
    """TorchServe loses it, and goes on with the body."""
    reply = wfpredict(ready, "chain", "m1:status=418")
    assert (reply.status_code, reply.reason_phrase, reply.text) == (418, "As told", "a body of the handler")
    assert (reply.headers["content-type"], reply.headers["x-workflow-node"]) == ("text/plain", "m1")


def test_a_good_status_of_the_last_node(ready: RunningServer) -> None:
    reply = wfpredict(ready, "single", "m1:status=202")
    assert (reply.status_code, reply.reason_phrase, reply.headers.get("x-workflow-node")) == (202, "As told", None)


def test_retries(ready: RunningServer) -> None:
    """`retry-attempts` 2: three attempts."""
    assert wfpredict(ready, "retry", "m1:flaky=2").text == 'post(body=m1(body=pre(body="m1:flaky=2")))'


def test_the_last_attempt_is_told(ready: RunningServer) -> None:
    reply = wfpredict(ready, "retry", "m1:raise", headers={"x-request-id": "abc"})
    assert reply.json()["message"].endswith("attempt of abc-m1-3")


def test_a_refusal_is_not_tried_again(ready: RunningServer) -> None:
    """TorchServe tries everything again."""
    reply = wfpredict(ready, "retry", "m1:refuse=400", headers={"x-request-id": "once"})
    assert reply.status_code == 400
    assert "once-m1: attempt" not in ready.log.read_text()


def test_a_node_that_takes_too_long(ready: RunningServer, tmp_path: Path) -> None:
    """`timeout-ms` is for each attempt, and cancels it."""
    message = "Error executing m1: it has not answered within its timeout-ms (200)."

    def begun() -> list[Path]:
        """On a busy machine an attempt may end before its worker has it."""
        reply = wfpredict(ready, "hasty", f"m1:hang={tmp_path}", headers={"x-request-id": "abc"})
        assert_error_of_a_node(reply, 504, "RequestTimeoutException", message)
        return list(tmp_path.glob("*.running"))

    running = wait_until(begun, "an attempt has begun", ready.tail)
    ended = lambda: all(one.with_suffix(".cancelled").exists() for one in running)  # noqa: E731
    wait_until(ended, "all that have begun were cancelled", ready.tail)


def test_a_failure_ends_the_other_branches(ready: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "go"
    command = f"m2:hang={tmp_path} m1:wait_for={file} m1:raise"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(wfpredict, ready, "fan", command, headers={"x-request-id": "abc"})
        running, waiting = tmp_path / "abc-m2.running", Path(f"{file}.waiting")
        wait_until(lambda: running.exists() and waiting.exists(), "both branches run", ready.tail)
        file.touch()
        reply = answer.result()
    assert reply.json()["message"].startswith("Error executing m1: Prediction failed")
    wait_until(lambda: (tmp_path / "abc-m2.cancelled").exists(), "the other branch was cancelled", ready.tail)


def test_a_client_that_leaves_ends_all_that_runs(ready: RunningServer, tmp_path: Path) -> None:
    command = f"m1:hang={tmp_path} m2:hang={tmp_path}"
    with socket.create_connection(address_of(ready)) as client:
        head = "POST /wfpredict/fan HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nx-request-id: abc\r\n"
        client.sendall(f"{head}Content-Length: {len(command)}\r\n\r\n{command}".encode())
        wait_until(lambda: len(list(tmp_path.glob("*.running"))) == 2, "both branches run", ready.tail)
    wait_until(lambda: len(list(tmp_path.glob("*.cancelled"))) == 2, "both branches were cancelled", ready.tail)


def address_of(server: RunningServer) -> tuple[str, int]:
    url = httpx.URL(server.info["inference"])
    assert url.port is not None
    return url.host, url.port


def assert_error_of_a_node(reply: httpx.Response, status: int, kind: str, message: str) -> None:
    assert (reply.status_code, reply.json()) == (status, {"code": status, "type": kind, "message": message})
    assert reply.headers["x-workflow-node"] == "m1"
