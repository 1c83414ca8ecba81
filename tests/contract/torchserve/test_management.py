"""Management over REST.

contract#management
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.torchserve.setup import Setup, serving
from tests.contract.torchserve.shapes import (
    MEMBERS,
    METHOD_NOT_ALLOWED,
    assert_error,
    assert_json,
    assert_status,
)
from tests.e2e.server import RunningServer, pack_service, wait_until
from tests.phrases import no_worker
from tests.processes import alive, unreaped

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("nothing_registered")]


def prepare(store: Path) -> None:
    for name in ("echo", "describes", "report", "slow"):
        pack_service(name, store)
    pack_service("echo", store, model="other", version="2.0").rename(store / "echo-2.mar")
    pack_service("raises_in_init", store, config="maxRetryTimeoutInSec: 300\n")
    pack_service("raises_in_init", store, model="gives_up", config="maxRetryTimeoutInSec: 0\n")
    pack_service("echo", store, model="own", config="minWorkers: 2\nmaxWorkers: 3\nbatchSize: 5\nmaxBatchDelay: 6\n")
    pack_service("echo", store, model="keyed")
    pack_service("echo", store, model="keyed_and_own", config="batchSize: 5\n")
    (store / "text.mar").write_text("this is no archive")


DEFAULTS = {"minWorkers": 2, "maxWorkers": 3, "batchSize": 8, "maxBatchDelay": 9, "responseTimeout": 33}
SERVER = Setup(
    prepare=prepare,
    properties="models=" + json.dumps({"keyed": {"1.0": DEFAULTS}, "keyed_and_own": {"1.0": DEFAULTS}}) + "\n",
)


def register(server: RunningServer, url: str = "echo.mar", **parameters: Any) -> httpx.Response:
    return server.management.post("/models", params={"url": url, **parameters})


def registered(server: RunningServer, url: str = "echo.mar", **parameters: Any) -> None:
    reply = register(server, url, **parameters)
    assert reply.status_code == 200, reply.text


def settings(server: RunningServer, model: str, *names: str) -> list[Any]:
    described = server.describe(model)
    return [described[name] for name in names]


def statuses(server: RunningServer, model: str) -> list[str]:
    return [worker["status"] for worker in server.describe(model)["workers"]]


def no_workers(model: str, version: str = "1.0") -> str:
    return (
        f'Model "{model}" Version: {version} registered with 0 initial workers. '
        "Use scale workers API to add workers for the model."
    )


# -- register: replies --


def test_without_workers(server: RunningServer) -> None:
    assert_status(register(server), 200, no_workers("echo"))
    assert statuses(server, "echo") == []


def test_with_workers(server: RunningServer) -> None:
    text = 'Model "echo" Version: 1.0 registered with 2 initial workers'
    assert_status(register(server, initial_workers=2), 200, text)
    assert statuses(server, "echo") == ["READY", "READY"]
    assert server.predict("echo", b"x").content == b"x"


def test_synchronous_is_the_default(server: RunningServer) -> None:
    registered(server, initial_workers=1)
    assert statuses(server, "echo") == ["READY"]


def test_in_the_background(server: RunningServer) -> None:
    """A prediction waits for the worker."""
    assert_status(register(server, initial_workers=1, synchronous="false"), 202, "Processing worker updates...")
    assert server.predict("echo", b"waits").content == b"waits"
    assert statuses(server, "echo") == ["READY"]


def test_in_the_background_without_workers(server: RunningServer) -> None:
    assert_status(register(server, synchronous="false"), 200, no_workers("echo"))


def test_the_first_version_is_the_default(server: RunningServer) -> None:
    registered(server, "echo-2.mar", model_name="echo")
    registered(server)
    assert server.describe("echo")["modelVersion"] == "2.0"


# -- register: parameters --


PARAMETERS: dict[str, Any] = {
    "model_name": "mine",
    "handler": "echo.py:handle",
    "runtime": "python3",
    "batch_size": 4,
    "max_batch_delay": 7,
    "initial_workers": 1,
    "synchronous": "true",
    "response_timeout": 11,
    "startup_timeout": 12,
    "s3_sse_kms": "true",
}
SETTINGS = ("runtime", "batchSize", "maxBatchDelay", "minWorkers", "maxWorkers", "responseTimeout", "startupTimeout")


@pytest.mark.parametrize("way", ["query", "json", "json with a charset", "both"])
def test_every_parameter(server: RunningServer, way: str) -> None:
    """By query or JSON body, which wins; also the time-outs of a model with a yaml."""
    kind = {"content-type": "application/json; charset=utf-8" if "charset" in way else "application/json"}
    body = json.dumps({"url": "echo.mar", **PARAMETERS, "batch_size": "4"})
    if way == "query":
        reply = register(server, **PARAMETERS)
    else:
        query = "?url=absent.mar&batch_size=9&model_name=other" if way == "both" else ""
        reply = server.management.post(f"/models{query}", content=body, headers=kind)
    assert_status(reply, 200, 'Model "mine" Version: 1.0 registered with 1 initial workers')
    assert settings(server, "mine", *SETTINGS) == ["python3", 4, 7, 1, 1, 11, 12]
    assert server.predict("mine", b"x").content == b"x"


def test_defaults(server: RunningServer) -> None:
    registered(server)
    assert settings(server, "echo", *SETTINGS) == ["python", 1, 100, 0, 0, 120, 120]


def test_a_json_body_without_max_batch_delay(server: RunningServer) -> None:
    """TorchServe stores -10000."""
    assert server.management.post("/models", json={"url": "echo.mar"}).status_code == 200
    assert settings(server, "echo", "maxBatchDelay") == [100]


def test_multipart_is_ignored(server: RunningServer) -> None:
    reply = server.management.post("/models", files={"url": (None, "echo.mar")})
    assert_error(reply, 400, "BadRequestException", "Parameter url is required.")
    reply = server.management.post("/models", data={"url": "echo.mar"})
    assert_error(reply, 400, "BadRequestException", "Parameter url is required.")


@pytest.mark.parametrize("value", ["many", "", "1.5", "99999999999"])
def test_what_is_not_an_integer_is_the_default(server: RunningServer, value: str) -> None:
    registered(server, batch_size=value, max_batch_delay=value, initial_workers=value, response_timeout=value)
    assert settings(server, "echo", *SETTINGS) == ["python", 1, 100, 0, 0, 120, 120]


def test_negative_initial_workers_are_none(server: RunningServer) -> None:
    assert_status(register(server, initial_workers=-3), 200, no_workers("echo"))


@pytest.mark.parametrize("runtime", ["python", "python3", "LSP"])
def test_runtimes(server: RunningServer, runtime: str) -> None:
    registered(server, runtime=runtime)
    assert settings(server, "echo", "runtime") == [runtime]


def test_another_runtime(server: RunningServer) -> None:
    assert_error(register(server, runtime="java"), 400, "BadRequestException", "Invalid RuntimeType value: java")


def test_workers_of_the_yaml_beat_initial_workers(server: RunningServer) -> None:
    text = 'Model "own" Version: 1.0 registered with 2 initial workers'
    assert_status(register(server, "own.mar", initial_workers=1), 200, text)
    assert settings(server, "own", "minWorkers", "maxWorkers") == [2, 3]


def test_arguments_beat_the_yaml(server: RunningServer) -> None:
    """The time-outs, too."""
    registered(server, "own.mar", batch_size=2, response_timeout=44)
    names = ("batchSize", "maxBatchDelay", "responseTimeout", "startupTimeout")
    assert settings(server, "own", *names) == [2, 6, 44, 120]


def test_the_key_models_is_behind_the_yaml(server: RunningServer) -> None:
    """API argument > yaml > `models` > default; its workers are not for registrations."""
    names = ("batchSize", "maxBatchDelay", "responseTimeout", "minWorkers")
    registered(server, "keyed.mar")
    assert settings(server, "keyed", *names) == [8, 9, 33, 0]
    registered(server, "keyed_and_own.mar", response_timeout=44)
    assert settings(server, "keyed_and_own", *names) == [5, 9, 44, 0]


def test_the_key_models_at_the_start(tmp_path: Path) -> None:
    said = {"echo": {"1.0": DEFAULTS | {"marName": "echo.mar"}, "2.0": {"defaultVersion": True, "minWorkers": 0}}}

    def two(store: Path) -> None:
        pack_service("echo", store)
        pack_service("echo", store, version="2.0", model="two").rename(store / "echo-2.mar")

    setup = Setup(prepare=two, load=("echo.mar", "echo=echo-2.mar"), properties=f"models={json.dumps(said)}\n")
    with serving(setup, tmp_path) as server:
        ready = ["READY", "READY"]
        wait_until(
            lambda: [one["status"] for one in server.describe("echo", "1.0")["workers"]] == ready, "two are ready"
        )
        first, second = server.describe("echo", "1.0"), server.describe("echo", "2.0")
        assert [first[name] for name in DEFAULTS] == list(DEFAULTS.values())
        assert [worker["status"] for worker in first["workers"]] == ready
        assert (second["minWorkers"], first["loadedAtStartup"]) == (0, True)
        assert server.describe("echo")["modelVersion"] == "2.0"


def test_default_workers_per_model(tmp_path: Path) -> None:
    """And the model API, switched on by the configuration."""
    properties = "default_workers_per_model=2\nenable_model_api=true\n"
    with serving(Setup(services=("echo",), model_api=False, properties=properties), tmp_path) as server:
        assert_status(register(server), 200, 'Model "echo" Version: 1.0 registered with 2 initial workers')
        assert server.management.delete("/models/echo").status_code == 200
        assert_status(register(server, initial_workers=0), 200, no_workers("echo"))


def test_more_workers_than_fit_on_the_devices(tmp_path: Path) -> None:
    """The reply states what was asked for, describe what there is; scaling likewise."""

    def wide(store: Path) -> None:
        pack_service("echo", store, model="wide", config="parallelType: custom\nparallelLevel: 2\n")

    with serving(Setup(prepare=wide, properties="simulate_devices=2\n"), tmp_path) as server:
        text = 'Model "wide" Version: 1.0 registered with 3 initial workers'
        assert_status(register(server, "wide.mar", initial_workers=3), 200, text)
        assert settings(server, "wide", "minWorkers", "maxWorkers") == [1, 1]
        reply = scale(server, "wide", min_worker=2, synchronous="true")
        assert_status(reply, 200, "Workers scaled to 2 for model: wide")
        assert statuses(server, "wide") == ["READY"]


# -- register: refusals --


@pytest.mark.parametrize(
    ("parameters", "status", "kind", "message"),
    [
        ({}, 400, "BadRequestException", "Parameter url is required."),
        ({"url": ""}, 404, "ModelNotFoundException", "empty url"),
        ({"url": "../e.mar"}, 404, "ModelNotFoundException", "Relative path is not allowed in url: ../e.mar"),
        ({"url": "absent.mar"}, 404, "ModelNotFoundException", "Model not found at: absent.mar"),
        ({"url": "ftp://h/absent.mar"}, 404, "ModelNotFoundException", "Model not found at: ftp://h/absent.mar"),
        ({"url": "text.mar"}, 400, "InvalidModelException", ""),
        ({"url": "text.mar", "model_name": "t"}, 400, "InvalidModelException", ""),
        ({"url": "echo.mar", "batch_size": 0}, 400, "BadRequestException", "batch_size must be 1 or more, not 0."),
        (
            {"url": "echo.mar", "response_timeout": -1},
            400,
            "BadRequestException",
            "response_timeout must be 1 or more, not -1.",
        ),
    ],
)
def test_refused(server: RunningServer, parameters: dict[str, Any], status: int, kind: str, message: str) -> None:
    """A file that is not an archive is refused also when the call names the model."""
    reply = server.management.post("/models", params=parameters)
    assert_error(reply, status, kind, message, exact=False)
    assert server.management.get("/models").json() == {"models": []}


def test_twice(server: RunningServer) -> None:
    registered(server)
    message = "Model version 1.0 is already registered for model echo"
    assert_error(register(server), 409, "ConflictStatusException", message)
    assert len(server.versions("echo")) == 1


@pytest.mark.parametrize("name", ["../../out", "a/b", "a b", ".hidden"])
def test_a_name_that_is_a_path(server: RunningServer, name: str) -> None:
    reply = register(server, model_name=name, initial_workers=1)
    assert (reply.status_code, reply.json()["type"]) == (400, "InvalidModelException")
    assert repr(name) in reply.json()["message"]
    sockets = server.store / ".msx" / "run"
    assert not sockets.exists() or not list(sockets.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{url", "The request body (application/json) is not valid JSON: line 1, column 2"),
        (b"[1]", "The request body must be a JSON object"),
    ],
)
def test_malformed_json(server: RunningServer, content: bytes, message: str) -> None:
    """TorchServe says 500 JsonSyntaxException."""
    reply = server.management.post("/models", content=content, headers={"content-type": "application/json"})
    assert_error(reply, 400, "BadRequestException", message, exact=False)


@pytest.mark.parametrize("archive", ["raises_in_init", "gives_up"])
def test_workers_that_do_not_start(server: RunningServer, archive: str) -> None:
    """Nothing is left, without a race; the cause stands behind TorchServe's words."""
    reply = register(server, f"{archive}.mar", initial_workers=2)
    message = f"Failed to start workers for model {archive} version: 1.0"
    assert_error(reply, 500, "InternalServerException", message, exact=False)
    assert "weights.ckpt is not in the archive" in reply.json()["message"]
    assert server.management.get("/models").json() == {"models": []}
    missing = f"Model not found: {archive}"
    assert_error(server.management.get(f"/models/{archive}"), 404, "ModelNotFoundException", missing)
    assert server.unpacked() == []
    assert register(server, f"{archive}.mar").status_code == 200


def test_a_failed_version_leaves_the_others(server: RunningServer) -> None:
    registered(server, initial_workers=1)
    reply = register(server, "raises_in_init.mar", model_name="echo", initial_workers=1)
    assert reply.status_code in (409, 500)
    assert server.predict("echo", b"x").content == b"x"
    assert [version["modelVersion"] for version in server.versions("echo")] == ["1.0"]


# -- list --


@pytest.fixture
def abc(server: RunningServer) -> RunningServer:
    for name in ("b", "c", "a"):
        registered(server, model_name=name)
    return server


def test_list_layout(abc: RunningServer) -> None:
    """Sorted by name, one entry a model: the default version's."""
    registered(abc, "echo-2.mar", model_name="a")
    entries = [{"modelName": name, "modelUrl": "echo.mar"} for name in "abc"]
    assert_json(abc.management.get("/models"), 200, {"models": entries})
    page = {"nextPageToken": "1", "models": entries[:1]}
    assert_json(abc.management.get("/models?limit=1"), 200, page)
    assert abc.management.put("/models/a/2.0/set-default").status_code == 200
    assert abc.management.get("/models?limit=1").json()["models"][0]["modelUrl"] == "echo-2.mar"


@pytest.mark.parametrize(
    ("query", "token", "names"),
    [
        ("", None, "abc"),
        ("?limit=2", "2", "ab"),
        ("?limit=2&next_page_token=2", None, "c"),
        ("?limit=1&next_page_token=1", "2", "b"),
        ("?limit=3", "3", "abc"),  # the page ends exactly at the end
        ("?limit=3&next_page_token=3", None, ""),
        ("?limit=1&next_page_token=2", "3", "c"),
        ("?limit=0", "0", ""),
        ("?limit=101", None, "abc"),
        ("?limit=-1", None, "abc"),
        ("?limit=x", None, "abc"),
        ("?limit=2&next_page_token=-5", "2", "ab"),
        ("?limit=2&next_page_token=x", "2", "ab"),
        ("?next_page_token=99", None, ""),
    ],
)
def test_paging(abc: RunningServer, query: str, token: str | None, names: str) -> None:
    page = abc.management.get(f"/models{query}").json()
    assert page.get("nextPageToken") == token
    assert [model["modelName"] for model in page["models"]] == list(names)


def test_following_the_tokens_finds_each_model_once(abc: RunningServer) -> None:
    found, query = [], "limit=1"
    while query:
        page = abc.management.get(f"/models?{query}").json()
        found += [model["modelName"] for model in page["models"]]
        query = f"limit=1&next_page_token={page['nextPageToken']}" if "nextPageToken" in page else ""
    assert found == ["a", "b", "c"]


# -- describe --
WORKER = ["id", "startTime", "status", "memoryUsage", "pid", "gpu", "gpuUsage"]


def test_describe(server: RunningServer) -> None:
    """An array; members in TorchServe's order, ours behind them."""
    registered(server, initial_workers=1)
    reply = server.management.get("/models/echo")
    (described,) = reply.json()
    assert_json(reply, 200, [described])
    assert list(described)[: len(MEMBERS)] == MEMBERS
    expected = {
        "modelName": "echo",
        "modelVersion": "1.0",
        "modelUrl": "echo.mar",
        "runtime": "python",
        "minWorkers": 1,
        "maxWorkers": 1,
        "batchSize": 1,
        "maxBatchDelay": 100,
        "responseTimeout": 120,
        "startupTimeout": 120,
        "maxRetryTimeoutInSec": 300,
        "clientTimeoutInMills": 0,
        "parallelType": "",
        "parallelLevel": 0,
        "deviceType": "cpu",
        "continuousBatching": False,
        "useJobTicket": False,
        "useVenv": False,
        "stateful": False,
        "sequenceMaxIdleMSec": 0,
        "sequenceTimeoutMSec": 0,
        "maxNumSequence": 0,
        "maxSequenceJobQueueSize": 0,
        "loadedAtStartup": False,
        "jobQueueStatus": {"remainingCapacity": 100, "pendingRequests": 0},
    }
    assert {name: described[name] for name in expected} == expected


def test_a_worker(server: RunningServer) -> None:
    registered(server, initial_workers=1)
    (worker,) = server.describe("echo")["workers"]
    assert list(worker)[: len(WORKER)] == WORKER
    assert re.fullmatch(r"9\d{3}", worker["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", worker["startTime"])
    assert (worker["status"], worker["gpu"], worker["gpuUsage"]) == ("READY", False, "N/A")
    assert worker["memoryUsage"] > 0
    assert isinstance(worker["pid"], int)


def test_versions(server: RunningServer) -> None:
    registered(server)
    registered(server, "echo-2.mar", model_name="echo")
    assert server.describe("echo")["modelVersion"] == "1.0"
    assert server.describe("echo", "2.0")["modelVersion"] == "2.0"
    assert [version["modelVersion"] for version in server.versions("echo")] == ["1.0", "2.0"]


@pytest.mark.parametrize("path", ["/models/absent", "/models/absent/1.0", "/models/absent/all"])
def test_describe_an_unknown_model(server: RunningServer, path: str) -> None:
    assert_error(server.management.get(path), 404, "ModelNotFoundException", "Model not found: absent")


def test_describe_an_unknown_version(server: RunningServer) -> None:
    registered(server)
    message = "Model version: 9.9 does not exist for model: echo"
    assert_error(server.management.get("/models/echo/9.9"), 404, "ModelVersionNotFoundException", message)


def test_customized(server: RunningServer) -> None:
    registered(server, "describes.mar", initial_workers=1)
    (described,) = server.management.get("/models/describes?customized=true").json()
    assert described["customizedMetadata"] == {"labels": ["cat", "dog"], "nested": {"a": 1}}
    names = list(described)
    assert names[: len(MEMBERS)] == MEMBERS
    for query in ("", "?customized=false"):
        assert "customizedMetadata" not in server.management.get(f"/models/describes{query}").json()[0]
    assert "customizedMetadata" not in server.management.get("/models/describes/all?customized=true").json()[0]


def test_customized_without_a_worker(server: RunningServer) -> None:
    registered(server, "describes.mar")
    message = f"{no_worker('describes', request='describe')}. Please use scale workers API to add workers."
    reply = server.management.get("/models/describes?customized=true")
    assert_error(reply, 503, "ServiceUnavailableException", message)


# -- scale --


def scale(server: RunningServer, path: str = "echo", **parameters: Any) -> httpx.Response:
    return server.management.put(f"/models/{path}", params=parameters)


def test_scale_and_wait(server: RunningServer) -> None:
    registered(server)
    for number in (2, 1, 0):
        reply = scale(server, min_worker=number, synchronous="true")
        assert_status(reply, 200, f"Workers scaled to {number} for model: echo")
        assert statuses(server, "echo") == ["READY"] * number


def test_scale_in_the_background_is_the_default(server: RunningServer) -> None:
    """Several at once are all done, in their order."""
    registered(server)
    for number in (1, 3, 2):
        assert_status(scale(server, min_worker=number), 202, "Processing worker updates...")
    wait_until(lambda: settings(server, "echo", "minWorkers") == [2], "the last scaling is done", server.tail)
    wait_until(lambda: statuses(server, "echo") == ["READY", "READY"], "two are ready", server.tail)


def test_min_worker_is_one_by_default(server: RunningServer) -> None:
    registered(server)
    assert_status(scale(server, synchronous="true"), 200, "Workers scaled to 1 for model: echo")
    assert statuses(server, "echo") == ["READY"]


@pytest.mark.parametrize("by", ["path", "parameter"])
def test_scale_a_version(server: RunningServer, by: str) -> None:
    registered(server)
    registered(server, "echo-2.mar", model_name="echo")
    more = {"model_version": "2.0"} if by == "parameter" else {}
    reply = scale(server, "echo" if more else "echo/2.0", min_worker=1, synchronous="true", **more)
    assert_status(reply, 200, "Workers scaled to 1 for model: echo, version: 2.0")
    assert [len(version["workers"]) for version in server.versions("echo")] == [0, 1]


def test_number_gpu_and_timeout_are_ignored(server: RunningServer) -> None:
    registered(server)
    reply = scale(server, min_worker=1, synchronous="true", number_gpu=7, timeout=-1)
    assert_status(reply, 200, "Workers scaled to 1 for model: echo")


def test_nothing_between_min_and_max(server: RunningServer) -> None:
    """Started up to the minimum, removed above the maximum; the same workers stay."""
    registered(server, initial_workers=1)
    first = server.worker_pids("echo")
    for least, most, workers in ((1, 3, 1), (2, 3, 2), (1, 3, 2), (1, 1, 1)):
        assert scale(server, min_worker=least, max_worker=most, synchronous="true").status_code == 200
        assert len(statuses(server, "echo")) == workers
        assert settings(server, "echo", "minWorkers", "maxWorkers") == [least, most]
        assert server.worker_pids("echo")[:1] == first


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"min_worker": 2, "max_worker": 1}, "max_worker cannot be less than min_worker."),
        ({"min_worker": -1}, "min_worker must be 0 or more, not -1."),  # TorchServe says 500
    ],
)
@pytest.mark.parametrize("synchronous", ["true", "false"])
def test_scale_refused(server: RunningServer, parameters: dict[str, Any], message: str, synchronous: str) -> None:
    registered(server, initial_workers=1)
    reply = scale(server, synchronous=synchronous, **parameters)
    assert_error(reply, 400, "BadRequestException", message)
    assert settings(server, "echo", "minWorkers", "maxWorkers") == [1, 1]


def test_scale_what_cannot_start(server: RunningServer) -> None:
    registered(server, "raises_in_init.mar")
    reply = scale(server, "raises_in_init", min_worker=1, synchronous="true")
    message = "Failed to start workers for model raises_in_init version: "
    assert_error(reply, 500, "InternalServerException", message, exact=False)
    assert "weights.ckpt is not in the archive" in reply.json()["message"]


def test_scale_what_is_not_there(server: RunningServer) -> None:
    message = "Model not found: absent"
    assert_error(scale(server, "absent", min_worker=1), 404, "ModelNotFoundException", message)
    registered(server)
    message = "Model version: 9.9 does not exist for model: echo"
    assert_error(scale(server, "echo/9.9", min_worker=1), 404, "ModelVersionNotFoundException", message)


# -- the default version --


def test_set_default(server: RunningServer) -> None:
    registered(server, "report.mar", model_name="m", initial_workers=1)
    registered(server, "echo-2.mar", model_name="m", initial_workers=1)
    assert server.predict("m", b"x").json()["version"] == "1.0"
    reply = server.management.put("/models/m/2.0/set-default")
    assert_status(reply, 200, 'Default version successfully updated for model "m" to "2.0"')
    assert server.describe("m")["modelVersion"] == "2.0"
    assert server.predict("m", b"x").content == b"x"


def test_set_default_of_what_is_not_there(server: RunningServer) -> None:
    registered(server)
    reply = server.management.put("/models/echo/9.9/set-default")
    message = "Model version: 9.9 does not exist for model: echo"
    assert_error(reply, 404, "ModelVersionNotFoundException", message)
    reply = server.management.put("/models/absent/1.0/set-default")
    assert_error(reply, 404, "ModelNotFoundException", "Model not found: absent")


# -- unregister --


def test_unregister(server: RunningServer) -> None:
    """Extra parameters are ignored; the workers have ended when it is answered."""
    registered(server, initial_workers=2)
    pids = server.worker_pids("echo")
    reply = server.management.delete("/models/echo?synchronous=false&timeout=1")
    assert_status(reply, 200, 'Model "echo" unregistered')
    assert not alive(pids)
    wait_until(lambda: not unreaped(pids), "its processes are reaped", server.tail)
    assert_error(server.management.delete("/models/echo"), 404, "ModelNotFoundException", "Model not found: echo")
    assert server.predict("echo", b"x").status_code == 404
    assert server.unpacked() == []


def test_unregister_a_version(server: RunningServer) -> None:
    registered(server)
    registered(server, "echo-2.mar", model_name="echo")
    message = "Cannot remove default version for model echo"
    for path in ("/models/echo", "/models/echo/1.0"):
        assert_error(server.management.delete(path), 403, "InvalidModelVersionException", message)
    assert_status(server.management.delete("/models/echo/2.0"), 200, 'Model "echo" unregistered')
    message = "Model version: 2.0 does not exist for model: echo"
    assert_error(server.management.delete("/models/echo/2.0"), 404, "ModelVersionNotFoundException", message)
    assert_status(server.management.delete("/models/echo/1.0"), 200, 'Model "echo" unregistered')


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    def gated(store: Path) -> None:
        pack_service("gated_stream", store, function="send")

    setup = Setup(prepare=gated, properties="unregister_model_timeout=1\n")
    with serving(setup, tmp_path_factory.mktemp("impatient")) as server:
        yield server


def test_unregister_takes_too_long(impatient: RunningServer, tmp_path: Path) -> None:
    """408; the request that runs is answered all the same, and the name is free at once."""
    assert register(impatient, "gated_stream.mar", initial_workers=1).status_code == 200
    order = {"count": 2, "dir": str(tmp_path)}
    with impatient.inference.stream("POST", "/predictions/gated_stream", json=order) as reply:
        assert reply.status_code == 200
        message = "Timed out while cleaning resources: gated_stream"
        timed_out = impatient.management.delete("/models/gated_stream")
        assert_error(timed_out, 408, "RequestTimeoutException", message, exact=False)
        assert impatient.management.get("/models/gated_stream").status_code == 404
        assert register(impatient, "gated_stream.mar", initial_workers=1).status_code == 200
        (tmp_path / "2").touch()
        assert reply.read() == b"1\n2\nend\n"
    assert impatient.management.delete("/models/gated_stream").status_code == 200


# -- methods, and the API switched off --


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/models"),
        ("DELETE", "/models"),
        ("PATCH", "/models"),
        ("PATCH", "/models/echo"),
        ("POST", "/models/echo"),
        ("POST", "/v1/models/echo"),
    ],
)
def test_methods(server: RunningServer, method: str, path: str) -> None:
    registered(server)
    assert_error(server.management.request(method, path), 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED)


def test_kserve_readiness(server: RunningServer) -> None:
    registered(server)
    assert_json(server.management.get("/v1/models/echo"), 200, {"name": "echo", "ready": False})
    assert scale(server, min_worker=1, synchronous="true").status_code == 200
    assert_json(server.management.get("/v1/models/echo"), 200, {"name": "echo", "ready": True})
    reply = server.management.get("/v1/models/absent")
    assert_error(reply, 404, "ModelNotFoundException", "Model not found: absent")


def test_the_model_api_is_off_by_default(tmp_path: Path) -> None:
    setup = Setup(services=("echo",), load=("echo.mar",), model_api=False)
    with serving(setup, tmp_path) as server:
        for reply in (register(server, model_name="x"), server.management.delete("/models/echo")):
            assert_error(reply, 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED, exact=False)
            assert "--enable-model-api" in reply.json()["message"]
        for reply in (server.management.post("/workflows?url=w.war"), server.management.delete("/workflows/w")):
            assert_error(reply, 405, "MethodNotAllowedException", METHOD_NOT_ALLOWED, exact=False)
        assert scale(server, min_worker=1, synchronous="true").status_code == 200
        assert server.management.put("/models/echo/1.0/set-default").status_code == 200
        assert server.describe("echo")["loadedAtStartup"] is True
        assert server.management.put("/models/echo/1.0/set-default").status_code == 200
        assert len(server.management.get("/models").json()["models"]) == 1
        assert server.describe("echo")["loadedAtStartup"] is True
