"""The management API: TorchServe's calls, statuses and sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contract.torchserve.shapes import MEMBERS
from tests.e2e.server import RunningServer, new_store, pack_service, run_server, wait_until

pytestmark = pytest.mark.e2e

SELF_DESCRIBING = """
def handle(data, context):
    if context.get_request_header(0, "describe") == "True":
        return [{"labels": ["cat", "dog"]}]
    return [row["body"] for row in data]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("management")
    store = new_store(folder)
    pack_service("echo", store)
    pack_service("echo", store, version="2.0", model="two").rename(store / "echo-2.mar")
    pack_service("raises_in_init", store, config="maxRetryTimeoutInSec: 0\n")
    with run_server(folder) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_registered(server: RunningServer) -> Iterator[None]:
    yield
    for model in server.management.get("/models").json()["models"]:
        default = server.describe(name := model["modelName"])["modelVersion"]
        for version in sorted(server.versions(name), key=lambda version: version["modelVersion"] == default):
            assert server.management.delete(f"/models/{name}/{version['modelVersion']}").status_code == 200


def register(server: RunningServer, **parameters: Any) -> tuple[int, dict[str, Any]]:
    reply = server.management.post("/models", params=parameters)
    return reply.status_code, reply.json()


def refusal(code: int, kind: str, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"code": code, "type": kind, "message": message}


# -- register --


def test_without_workers(server: RunningServer) -> None:
    assert register(server, url="echo.mar") == (
        200,
        {
            "status": 'Model "echo" Version: 1.0 registered with 0 initial workers. '
            "Use scale workers API to add workers for the model."
        },
    )
    described = server.describe("echo")
    assert (described["minWorkers"], described["workers"]) == (0, [])
    assert server.predict("echo", b"x").status_code == 503
    assert server.inference.get("/ping").status_code == 200


def test_with_workers(server: RunningServer) -> None:
    assert register(server, url="echo.mar", initial_workers=2) == (
        200,
        {"status": 'Model "echo" Version: 1.0 registered with 2 initial workers'},
    )
    assert [worker["status"] for worker in server.describe("echo")["workers"]] == ["READY", "READY"]


def test_in_the_background(server: RunningServer) -> None:
    assert register(server, url="echo.mar", initial_workers=1, synchronous=False) == (
        202,
        {"status": "Processing worker updates..."},
    )
    assert server.predict("echo", b"waits for the worker").content == b"waits for the worker"


def test_every_parameter(server: RunningServer) -> None:
    status, _ = register(
        server,
        url="echo.mar",
        model_name="mine",
        handler="echo.py:handle",
        runtime="python3",
        batch_size=4,
        max_batch_delay=7,
        initial_workers=1,
        synchronous="true",
        response_timeout=11,
        startup_timeout=12,
    )
    assert status == 200
    described = server.describe("mine")
    names = ("modelName", "batchSize", "maxBatchDelay", "responseTimeout", "startupTimeout", "modelUrl")
    assert [described[name] for name in names] == ["mine", 4, 7, 11, 12, "echo.mar"]
    assert server.predict("mine", b"x").content == b"x"


def test_a_json_body_beats_the_query(server: RunningServer) -> None:
    reply = server.management.post("/models?url=absent.mar&batch_size=2", json={"url": "echo.mar"})
    assert reply.status_code == 200
    described = server.describe("echo")
    assert (described["batchSize"], described["maxBatchDelay"]) == (2, 100)


def test_what_is_no_number_counts_as_not_given(server: RunningServer) -> None:
    assert register(server, url="echo.mar", batch_size="many", initial_workers=-3)[0] == 200
    described = server.describe("echo")
    assert (described["batchSize"], described["minWorkers"]) == (1, 0)


def test_only_the_file_name_of_a_url_counts(server: RunningServer) -> None:
    assert register(server, url="some/folder/echo.mar")[0] == 200
    assert server.describe("echo")["modelUrl"] == "echo.mar"


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, refusal(400, "BadRequestException", "Parameter url is required.")),
        ({"url": ""}, refusal(404, "ModelNotFoundException", "empty url")),
        (
            {"url": "../echo.mar"},
            refusal(404, "ModelNotFoundException", "Relative path is not allowed in url: ../echo.mar"),
        ),
        (
            {"url": "echo.mar", "runtime": "java"},
            refusal(400, "BadRequestException", "Invalid RuntimeType value: java"),
        ),
        (
            {"url": "echo.mar", "batch_size": 0},
            refusal(400, "BadRequestException", "batch_size must be 1 or more, not 0."),
        ),
        (
            {"url": "echo.mar", "response_timeout": -1},
            refusal(400, "BadRequestException", "response_timeout must be 1 or more, not -1."),
        ),
    ],
)
def test_refused_parameters(
    server: RunningServer, parameters: dict[str, Any], expected: tuple[int, dict[str, Any]]
) -> None:
    assert register(server, **parameters) == expected
    assert server.management.get("/models").json() == {"models": []}


def test_an_archive_that_is_not_there(server: RunningServer) -> None:
    status, body = register(server, url="absent.mar")
    assert (status, body["type"]) == (404, "ModelNotFoundException")
    assert body["message"].startswith("Model not found at: absent.mar")
    assert str(server.store) in body["message"]


def test_a_url_of_the_web(server: RunningServer) -> None:
    status, body = register(server, url="http://127.0.0.1:1/m.mar")
    assert (status, body["type"]) == (400, "DownloadArchiveException")
    assert "http://127.0.0.1:1/m.mar" in body["message"]


def test_a_duplicate(server: RunningServer) -> None:
    register(server, url="echo.mar")
    assert register(server, url="echo.mar") == refusal(
        409, "ConflictStatusException", "Model version 1.0 is already registered for model echo"
    )


def test_malformed_json(server: RunningServer) -> None:
    headers = {"content-type": "application/json"}
    reply = server.management.post("/models", content=b'{"url": ', headers=headers)
    assert reply.status_code == 400
    assert reply.json()["message"].startswith("The request body is not valid JSON: ")
    reply = server.management.post("/models", content=b"[1]", headers=headers)
    assert "must be a JSON object" in reply.json()["message"]


@pytest.mark.parametrize("name", ["../../out", "a/b", "a b", ".hidden"])
def test_a_name_that_is_a_path(server: RunningServer, name: str) -> None:
    status, body = register(server, url="echo.mar", model_name=name, initial_workers=1)
    assert (status, body["type"]) == (400, "InvalidModelException")
    assert repr(name) in body["message"]
    assert not (server.store / ".msx" / "run").exists() or not list((server.store / ".msx" / "run").iterdir())


def test_workers_that_do_not_start(server: RunningServer) -> None:
    status, body = register(server, url="raises_in_init.mar", initial_workers=1)
    assert (status, body["type"]) == (500, "InternalServerException")
    assert body["message"].startswith("Failed to start workers for model raises_in_init version: 1.0. ")
    assert "weights.ckpt is not in the archive" in body["message"]
    assert server.management.get("/models/raises_in_init").status_code == 404


# -- describe and list --


def test_describe(server: RunningServer) -> None:
    register(server, url="echo.mar", initial_workers=1)
    described = server.describe("echo")
    assert list(described)[: len(MEMBERS)] == MEMBERS
    assert described["jobQueueStatus"] == {"remainingCapacity": 100, "pendingRequests": 0}
    assert (described["runtime"], described["deviceType"], described["loadedAtStartup"]) == ("python", "cpu", False)
    worker = described["workers"][0]
    assert list(worker)[:7] == ["id", "startTime", "status", "memoryUsage", "pid", "gpu", "gpuUsage"]
    assert worker["startTime"].endswith("Z")
    assert (worker["status"], worker["gpu"], worker["gpuUsage"]) == ("READY", False, "N/A")
    assert worker["memoryUsage"] > 0


def test_describe_all_versions(server: RunningServer) -> None:
    register(server, url="echo.mar")
    register(server, url="echo-2.mar", model_name="echo")
    assert [version["modelVersion"] for version in server.versions("echo")] == ["1.0", "2.0"]
    assert server.describe("echo")["modelVersion"] == "1.0"
    assert server.describe("echo", "2.0")["modelVersion"] == "2.0"


def test_describe_by_the_handler(server: RunningServer) -> None:
    folder = server.store / "says"
    (folder / "MAR-INF").mkdir(parents=True)
    (folder / "says.py").write_text(SELF_DESCRIBING)
    (folder / "MAR-INF" / "MANIFEST.json").write_text('{"model": {"modelName": "says", "handler": "says.py"}}')
    assert register(server, url="says", initial_workers=1)[0] == 200
    reply = server.management.get("/models/says?customized=true")
    assert reply.json()[0]["customizedMetadata"] == {"labels": ["cat", "dog"]}
    server.management.put("/models/says?min_worker=0&synchronous=true")
    reply = server.management.get("/models/says?customized=true")
    assert (reply.status_code, reply.json()["message"]) == (
        503,
        'Model "says" has no worker to serve describe request. Please use scale workers API to add workers.',
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/models/absent", "Model not found: absent"),
        ("/models/absent/all", "Model not found: absent"),
        ("/models/echo/9.9", "Model version: 9.9 does not exist for model: echo"),
    ],
)
def test_describe_what_is_not_there(server: RunningServer, path: str, message: str) -> None:
    register(server, url="echo.mar")
    reply = server.management.get(path)
    assert (reply.status_code, reply.json()["message"]) == (404, message)


def test_list_in_pages(server: RunningServer) -> None:
    for name in ("b", "c", "a"):
        register(server, url="echo.mar", model_name=name)

    def page(**parameters: Any) -> tuple[str | None, list[str]]:
        body = server.management.get("/models", params=parameters).json()
        return body.get("nextPageToken"), [model["modelName"] for model in body["models"]]

    assert page() == (None, ["a", "b", "c"])
    assert page(limit=2) == ("2", ["a", "b"])
    assert page(limit=2, next_page_token=2) == (None, ["c"])
    assert page(limit=3) == ("3", ["a", "b", "c"])
    assert page(limit=3, next_page_token=3) == (None, [])
    assert page(limit=0) == ("0", [])
    assert page(limit=-1, next_page_token=-5) == (None, ["a", "b", "c"])
    assert page(limit="x", next_page_token="y") == (None, ["a", "b", "c"])


# -- scale --


def scale(server: RunningServer, model: str, **parameters: Any) -> tuple[int, Any]:
    reply = server.management.put(f"/models/{model}", params=parameters)
    return reply.status_code, reply.json()


def test_scale_and_wait(server: RunningServer) -> None:
    register(server, url="echo.mar")
    for workers in (3, 1, 0, 2):
        assert scale(server, "echo", min_worker=workers, synchronous=True) == (
            200,
            {"status": f"Workers scaled to {workers} for model: echo"},
        )
        described = server.describe("echo")
        assert [worker["status"] for worker in described["workers"]] == ["READY"] * workers
        assert (described["minWorkers"], described["maxWorkers"]) == (workers, workers)


def test_scale_a_version(server: RunningServer) -> None:
    register(server, url="echo.mar")
    said = {"status": "Workers scaled to 1 for model: echo, version: 1.0"}
    assert scale(server, "echo/1.0", min_worker=1, synchronous=True) == (200, said)
    assert scale(server, "echo", model_version="1.0", min_worker=1, synchronous=True) == (200, said)


def test_min_and_max(server: RunningServer) -> None:
    """Started up to the minimum, removed above the maximum, nothing in between."""
    register(server, url="echo.mar")
    for least, most, workers in ((1, 3, 1), (2, 3, 2), (1, 3, 2), (1, 1, 1)):
        scale(server, "echo", min_worker=least, max_worker=most, synchronous=True)
        assert len(server.describe("echo")["workers"]) == workers


def test_scalings_in_the_background_are_all_done(server: RunningServer) -> None:
    register(server, url="echo.mar")
    for workers in (1, 3, 2):
        assert scale(server, "echo", min_worker=workers) == (202, {"status": "Processing worker updates..."})
    wait_until(lambda: server.describe("echo")["minWorkers"] == 2, "the last scaling is done")
    wait_until(lambda: [w["status"] for w in server.describe("echo")["workers"]] == ["READY"] * 2, "two are ready")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_worker": 2, "max_worker": 1}, "max_worker cannot be less than min_worker."),
        ({"min_worker": -1}, "min_worker must be 0 or more, not -1."),
    ],
)
def test_scale_refused(server: RunningServer, parameters: dict[str, Any], message: str) -> None:
    register(server, url="echo.mar")
    assert scale(server, "echo", **parameters) == refusal(400, "BadRequestException", message)
    assert server.describe("echo")["minWorkers"] == 0


def test_scale_what_is_not_there(server: RunningServer) -> None:
    assert scale(server, "absent", min_worker=1)[0] == 404
    register(server, url="echo.mar")
    assert scale(server, "echo/9.9", min_worker=1)[0] == 404


def test_scale_what_cannot_start(server: RunningServer) -> None:
    register(server, url="raises_in_init.mar")
    status, body = scale(server, "raises_in_init", min_worker=1, synchronous=True)
    assert (status, body["type"]) == (500, "InternalServerException")
    assert "weights.ckpt is not in the archive" in body["message"]


# -- default and unregister --


def test_set_default(server: RunningServer) -> None:
    register(server, url="echo.mar")
    register(server, url="echo-2.mar", model_name="echo")
    reply = server.management.put("/models/echo/2.0/set-default")
    assert (reply.status_code, reply.json()) == (
        200,
        {"status": 'Default version successfully updated for model "echo" to "2.0"'},
    )
    assert server.describe("echo")["modelVersion"] == "2.0"
    assert server.management.put("/models/echo/9.9/set-default").status_code == 404
    assert server.management.put("/models/absent/1.0/set-default").json()["message"] == "Model not found: absent"


def test_unregister(server: RunningServer) -> None:
    register(server, url="echo.mar", initial_workers=1)
    reply = server.management.delete("/models/echo")
    assert (reply.status_code, reply.json()) == (200, {"status": 'Model "echo" unregistered'})
    assert server.predict("echo", b"x").status_code == 404
    assert not server.unpacked()
    assert server.management.delete("/models/echo").status_code == 404


def test_the_default_version_of_several_stays(server: RunningServer) -> None:
    register(server, url="echo.mar")
    register(server, url="echo-2.mar", model_name="echo")
    reply = server.management.delete("/models/echo")
    expected = refusal(403, "InvalidModelVersionException", "Cannot remove default version for model echo")
    assert (reply.status_code, reply.json()) == expected
    assert server.management.delete("/models/echo/2.0").status_code == 200
    assert server.management.delete("/models/echo/1.0").status_code == 200


# -- methods and the switched-off API --


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/models"), ("DELETE", "/models"), ("PATCH", "/models/echo"), ("GET", "/")]
)
def test_methods_not_allowed(server: RunningServer, method: str, path: str) -> None:
    reply = server.management.request(method, path)
    assert (reply.status_code, reply.json()["type"]) == (405, "MethodNotAllowedException")


def test_an_unknown_path(server: RunningServer) -> None:
    reply = server.management.get("/modells")
    assert (reply.status_code, reply.json()) == refusal(
        404,
        "ResourceNotFoundException",
        "Requested resource is not found, please refer to API document.",
    )


def test_the_api_describes_itself(server: RunningServer) -> None:
    for reply in (server.management.options("/"), server.management.get("/api-description")):
        assert reply.json()["openapi"] == "3.0.1"
        assert "post" in reply.json()["paths"]["/models"]


def test_model_api_off(tmp_path: Path) -> None:
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar", model_api=False) as server:
        for reply in (server.register(Path("echo.mar")), server.management.delete("/models/echo")):
            assert (reply.status_code, reply.json()["type"]) == (405, "MethodNotAllowedException")
            assert "--enable-model-api" in reply.json()["message"]
        assert scale(server, "echo", min_worker=1, synchronous=True)[0] == 200
        assert server.management.put("/models/echo/1.0/set-default").status_code == 200
        assert server.management.get("/models").status_code == 200
        assert server.describe("echo")["loadedAtStartup"] is True


def test_tokens(tmp_path: Path) -> None:
    """Each listener has its key; the API key gives nothing but new ones."""
    pack_service("echo", new_store(tmp_path))
    with run_server(tmp_path, "--models", "echo.mar", tokens=True) as server:
        assert server.keys
        key = {kind: entry["key"] for kind, entry in server.keys.items()}

        def ask(path: str, key: str) -> tuple[int, str]:
            reply = server.management.get(path, headers={"authorization": f"Bearer {key}"})
            return reply.status_code, reply.text

        def sentence(what: str) -> str:
            return f"Token {what} failed. Token either incorrect, expired, or not provided correctly"

        assert ask("/models", key["management"])[0] == 200
        for other in (key["inference"], key["API"], "x"):
            status, text = ask("/models", other)
            assert (status, sentence("Authorization") in text) == (400, True)
        for path, other in (("/token?type=management", key["management"]), ("/token?type=x", key["API"])):
            status, text = ask(path, other)
            assert (status, sentence("Authentication") in text) == (400, True)
        assert ask("/token?type=management", key["API"]) == (200, "")
        assert ask("/models", key["management"])[0] == 400
        renewed = json.loads((tmp_path / "key_file.json").read_text())
        assert ask("/models", renewed["management"]["key"])[0] == 200
        assert (renewed["inference"], renewed["API"]) == (server.keys["inference"], server.keys["API"])
        assert server.management.options("/", headers={"authorization": ""}).status_code == 200


def test_no_tokens_without_authorization(server: RunningServer) -> None:
    assert server.management.get("/token?type=inference").status_code == 404
