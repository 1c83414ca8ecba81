"""KServe v1's requests with instances: split into bodies of one, joined to one reply."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msx_core.service_errors import HandlerFailed, ModelNotFound, Overloaded
from msx_frontend.apis.torchserve import split_predictions
from msx_frontend.apis.torchserve.predictions import Predictions
from msx_frontend.apis.torchserve.split_request import joined, split
from msx_frontend.job import Field, Job
from msx_frontend.queueing.instances import InstanceReply, InstanceRequest
from tests.frontend.net.predictions import FakeRegistry, answer, as_registry
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, begin
from tests.net.http.exchanges import exchange_of

JSON = "application/json"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


def bodies(body: bytes) -> list[Any]:
    parts = split(body, JSON)
    assert parts is not None
    assert all(fields == [Field("body", JSON, fields[0].data)] for fields in parts)
    return [json.loads(fields[0].data) for fields in parts]


def reply(body: bytes, status: int = 200) -> InstanceReply:
    return InstanceReply(status, "", [], body)


@given(st.lists(VALUES, min_size=1, max_size=5), st.dictionaries(st.text(), VALUES, max_size=3))
def test_each_body_has_one_instance_and_the_other_members(instances: list[Any], others: dict[str, Any]) -> None:
    others.pop("instances", None)
    body = json.dumps({**others, "instances": instances}).encode()
    assert bodies(body) == [{"instances": [one], **others} for one in instances]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[1]", b'{"inputs": [1]}', b'{"instances": 1}', b'{"instances": []}', b"\xff", b'{"instances": [1}'],
)
def test_what_has_no_instances_goes_on_as_it_is(body: bytes) -> None:
    assert split(body, JSON) is None


def test_deep_json() -> None:
    assert split(b'{"instances": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}", JSON) is None


@given(st.lists(st.lists(VALUES, max_size=2), max_size=5))
def test_predictions_are_joined(predictions: list[list[Any]]) -> None:
    replies = [reply(json.dumps({"predictions": some, "more": 1}).encode()) for some in predictions]
    assert json.loads(joined(replies)) == {"predictions": [one for some in predictions for one in some]}


def test_replies_of_other_forms() -> None:
    replies = [reply(b"[1, 2]"), reply("päng".encode()), reply(b'{"predictions": 7}'), reply(b"3.5")]
    assert json.loads(joined(replies)) == {"predictions": [[1, 2], "päng", {"predictions": 7}, 3.5]}
    with pytest.raises(HandlerFailed, match="The reply to instance 1 is neither JSON nor text") as caught:
        joined([reply(b"1"), reply(b"\xff\xfe")])
    assert caught.value.status == 503


# -- behind the edge --


class FakeModels:
    """Model `m` splits, `n` does not."""

    def __init__(self) -> None:
        self.requests: list[InstanceRequest] = []
        self.refusal: Overloaded | None = None

    def splits(self, name: str) -> bool:
        if name not in "mn":
            raise ModelNotFound(name)
        return name == "m"

    def submit_instances(self, request: InstanceRequest) -> None:
        if self.refusal:
            raise self.refusal
        self.requests.append(request)

    def jobs(self) -> list[Job]:
        (request,) = self.requests
        return [request.take() for _ in range(request.waiting)]


@pytest.fixture
def bench() -> Bench:
    return Bench()


class Bench:
    def __init__(self) -> None:
        self.models, self.registry = FakeModels(), FakeRegistry()
        self.registry.find = lambda name, version=None: None  # type: ignore[method-assign]
        made = Predictions(self.registry.submit, as_registry(self.registry).find, self.models)
        self.app = exchange_of(made.family(), log=FakeAccessLog(), limit=1 << 22)

    def begin(self, body: bytes, model: str = "m", **headers: str) -> Exchange:
        headers = {"content_type": JSON, **headers}
        return begin(self.app, "POST", f"/v1/models/{model}:predict", body, **headers)

    async def until_submitted(self) -> list[Job]:
        while not self.models.requests:
            await asyncio.sleep(0)
        return self.models.jobs()


@pytest.mark.parametrize("large", [1 << 17, 1])
def test_rows_of_one_request(bench: Bench, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_predictions, "LARGE", large)

    async def test() -> None:
        exchange = bench.begin(b'{"instances": [1, 2, 3], "parameters": {"k": 4}}', x_request_id="id")
        jobs = await bench.until_submitted()
        assert [job.id for job in jobs] == ["id", "id-1", "id-2"]
        assert jobs[1].fields == [Field("body", JSON, b'{"instances": [2], "parameters": {"k": 4}}')]
        assert ("explain", "False") in jobs[0].headers
        for job in reversed(jobs):
            answer(job, b'{"predictions": [%s]}' % job.id.encode()[-1:].replace(b"d", b"0"), status=201)
        await exchange.finish()
        assert (exchange.status, exchange.json) == (201, {"predictions": [0, 1, 2]})
        assert exchange.headers["content-type"] == JSON

    run(test())


def test_the_first_failure_is_the_requests(bench: Bench) -> None:
    async def test() -> None:
        exchange = bench.begin(b'{"instances": [1, 2, 3]}')
        first, second, third = await bench.until_submitted()
        third.fail(HandlerFailed(500, "third"))
        second.fail(HandlerFailed(418, "second"))
        answer(first, b"1")
        await exchange.finish()
        assert (exchange.status, exchange.json["message"]) == (418, "second")

    run(test())


def test_a_status_that_the_handler_chose_is_kept(bench: Bench) -> None:
    async def test() -> None:
        exchange = bench.begin(b'{"instances": [1, 2]}')
        first, second = await bench.until_submitted()
        answer(first, b"1")
        answer(second, b"bad", status=422, headers=[("x-why", "y")])
        await exchange.finish()
        assert (exchange.status, exchange.body, exchange.headers["x-why"]) == (422, b"bad", "y")

    run(test())


def test_a_reply_that_cannot_be_joined(bench: Bench) -> None:
    async def test() -> None:
        exchange = bench.begin(b'{"instances": [1]}')
        (job,) = await bench.until_submitted()
        answer(job, b"\xff")
        await exchange.finish()
        assert exchange.status == 503
        assert "cannot stand in predictions" in exchange.json["message"]

    run(test())


@pytest.mark.parametrize("large", [1 << 17, 1])
def test_a_refusal(bench: Bench, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_predictions, "LARGE", large)

    async def test() -> None:
        bench.models.refusal = Overloaded("full")
        exchange = await bench.begin(b'{"instances": [1, 2]}').finish()
        assert (exchange.status, exchange.json["message"]) == (503, "full")

    run(test())


@pytest.mark.parametrize(
    ("model", "body", "content_type"),
    [
        ("n", b'{"instances": [1, 2]}', JSON),
        ("m", b'{"inputs": [1, 2]}', JSON),
        ("m", b'{"instances": [1, 2]}', "text/plain"),
    ],
)
@pytest.mark.parametrize("large", [1 << 17, 1])
def test_other_requests_go_on_as_they_are(
    bench: Bench, model: str, body: bytes, content_type: str, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_predictions, "LARGE", large)

    async def test() -> None:
        exchange = bench.begin(body, model, content_type=content_type)
        job = await bench.registry.next_job()
        assert job.fields == [Field("body", content_type, body)]
        answer(job, b"whole")
        assert (await exchange.finish()).body == b"whole"
        assert not bench.models.requests

    run(test())


def test_a_client_that_leaves(bench: Bench) -> None:
    async def test() -> None:
        exchange = bench.begin(b'{"instances": [1, 2]}')
        running = await bench.until_submitted()
        exchange.leave()
        while not bench.models.requests[0].done:
            await asyncio.sleep(0)
        assert all(job.cancelled for job in running)

    run(test())
