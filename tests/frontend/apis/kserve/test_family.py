from __future__ import annotations

import gzip
from typing import Any, cast

import msgspec
import pytest

from msx_core.kserve.message import join
from msx_core.service_errors import InvalidKey, Overloaded
from msx_frontend.apis.kserve.answers import Answers
from msx_frontend.apis.kserve.family import kserve_v2
from msx_frontend.apis.kserve.repository import Repository
from msx_frontend.job import INFER, PREDICT
from msx_frontend.keys.key import Key
from msx_frontend.models.health import Health
from msx_net.keys import Kind
from tests.frontend.keys.some import SELDOM, some_key
from tests.frontend.net.predictions import FakeRegistry, answer, as_registry, begin_answer
from tests.loops import run
from tests.net.http.client import Exchange, FakeAccessLog, begin
from tests.net.http.exchanges import exchange_of
from tests.retry import told_wait

PATH = "/v2/models/m/infer"
HEAD: dict[str, Any] = {"model_name": "m", "model_version": "1.0", "outputs": []}
BODY = b'{"inputs": []}'


LIMIT = 10_000
"""Bytes of an answer in pieces."""


class Tokens:
    """Wants the kind of key as the key."""

    def __init__(self, key: Key | None = None) -> None:
        self.key = key or some_key()

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> Key:
        (kind,) = kinds
        if authorization != f"Bearer {kind}":
            raise InvalidKey("wrong")
        return self.key


class Harness:
    """The family behind its exchange, over a registry whose jobs the test answers."""

    def __init__(self, tokens: Tokens | None = None, limit: int = 1000) -> None:
        self.registry, self.health = FakeRegistry(), Health(as_registry(FakeRegistry()))
        unused = cast(Repository, None)
        registry = as_registry(self.registry)
        self.family = kserve_v2(Answers(registry, self.health, unused), registry.submit, LIMIT)
        self.app = exchange_of(self.family, log=FakeAccessLog(), limit=limit, tokens=tokens)

    def begin(self, method: str, target: str, body: bytes | None = b"", **headers: str) -> Exchange:
        return begin(self.app, method, target, body, **headers)

    async def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Exchange:
        return await self.begin(method, target, body, **headers).finish()

    async def infer(self, *messages: bytes, body: bytes = BODY, status: int = 200, **headers: str) -> Exchange:
        exchange = self.begin("POST", PATH, body, **headers)
        job = await self.registry.next_job()
        answer(job, *messages, status=status, headers=[("x-own", "1"), ("Content-Type", "text/plain")])
        return await exchange.finish()


def test_what_a_worker_gets() -> None:
    async def test() -> None:
        harness = Harness()
        for path, explain in ((PATH, "False"), ("/v2/models/m/versions/1.0/explain", "True")):
            exchange = harness.begin("POST", path, BODY, inference_header_content_length="14")
            job = await harness.registry.next_job()
            assert (job.kind, job.model_name) == (INFER, "m")
            assert [(one.name, one.data) for one in job.fields] == [("body", BODY)]
            headers = dict(job.headers)
            assert (headers["explain"], headers["url_path"]) == (explain, "")
            assert headers["inference-header-content-length"] == "14"
            answer(job, join(HEAD))
            assert (await exchange.finish()).json == HEAD

    run(test())


def test_json_and_bytes_go_out_as_the_worker_made_them() -> None:
    async def test() -> None:
        plain = await Harness().infer(join(HEAD), content_type="application/x-www-form-urlencoded")
        assert (plain.status, plain.json) == (200, HEAD)
        assert plain.headers["content-type"] == "application/json"
        assert plain.headers["x-own"] == "1"
        assert "inference-header-content-length" not in plain.headers
        binary = await Harness().infer(join(HEAD, [b"1234"]))
        size = int(binary.headers["inference-header-content-length"])
        assert binary.headers["content-type"] == "application/octet-stream"
        assert (msgspec.json.decode(binary.body[:size]), binary.body[size:]) == (HEAD, b"1234")

    run(test())


def test_a_large_reply_is_compressed_for_who_wants_it() -> None:
    async def test() -> None:
        message = join(HEAD, [bytes(5000)])
        small = await Harness().infer(message, accept_encoding="gzip")
        assert small.headers["content-encoding"] == "gzip"
        assert len(small.body) < 500
        assert gzip.decompress(small.body) == message[4:]
        assert "content-encoding" not in (await Harness().infer(join(HEAD), accept_encoding="gzip")).headers
        assert "content-encoding" not in (await Harness().infer(message)).headers

    run(test())


def test_a_compressed_request() -> None:
    async def test() -> None:
        harness = Harness()
        exchange = harness.begin("POST", PATH, gzip.compress(BODY), content_encoding="gzip")
        job = await harness.registry.next_job()
        assert job.fields[0].data == BODY
        answer(job, join(HEAD))
        assert (await exchange.finish()).status == 200
        bomb = await harness.ask("POST", PATH, gzip.compress(bytes(1001)), content_encoding="gzip")
        assert (bomb.status, list(bomb.json)) == (413, ["error"])
        assert harness.registry.idle

    run(test())


def test_an_image_is_a_plain_prediction() -> None:
    async def test() -> None:
        harness = Harness()
        exchange = harness.begin("POST", PATH, b"\x89PNG", content_type="image/png")
        job = await harness.registry.next_job()
        assert (job.kind, job.fields[0].content_type, job.fields[0].data) == (PREDICT, "image/png", b"\x89PNG")
        answer(job, b"a ", b"cat", headers=[("content-type", "text/plain")])
        reply = await exchange.finish()
        assert (reply.body, reply.headers["content-type"]) == (b"a cat", "text/plain")

    run(test())


def test_the_handlers_phrase_and_headers_that_http_does_not_allow() -> None:
    async def test() -> None:
        for body, message in ((BODY, join(HEAD)), (b"\x89PNG", b"cat")):
            harness = Harness()
            asked = [harness.begin("POST", PATH, body, content_type="image/png" if body != BODY else "") for _ in "ab"]
            answer(await harness.registry.next_job(), message, status=201, phrase="Made")
            answer(await harness.registry.next_job(), message, headers=[("x a", "1")])
            made, refused = [await exchange.finish() for exchange in asked]
            assert (made.status, made.reason) == (201, b"Made")
            assert (refused.status, refused.reason) == (500, b"")
            assert "The handler set the header 'x a'" in refused.json["error"]

    run(test())


@pytest.mark.parametrize(
    ("messages", "status", "expected", "error"),
    [
        ([b"not now"], 409, 409, "not now"),
        ([b""], 404, 404, "The handler answered with status 404."),
        ([join(HEAD), join(HEAD)], 200, 501, "Model m answers a request more than once"),
        ([], 200, 500, "The handler of model m answered nothing."),
        ([b"nonsense"], 200, 500, "The worker of model m broke off"),
    ],
)
def test_answers_that_are_errors(messages: list[bytes], status: int, expected: int, error: str) -> None:
    async def test() -> None:
        exchange = await Harness().infer(*messages, status=status)
        assert exchange.status == expected
        assert exchange.json["error"].startswith(error)

    run(test())


def test_refusals() -> None:
    async def test() -> None:
        harness = Harness()
        for method, path, status in (
            ("POST", "/v2/models/none/infer", 404),
            ("POST", "/v2/models/m/versions/9/infer", 404),
            ("GET", PATH, 405),
            ("POST", "/v2", 405),
            ("GET", "/v2/nothing", 404),
        ):
            exchange = await harness.ask(method, path, BODY)
            assert (exchange.status, list(exchange.json)) == (status, ["error"]), path
        harness.registry.refusal = Overloaded("full")
        busy = await harness.ask("POST", PATH, BODY)
        assert (busy.status, busy.json) == (503, {"error": "full"})
        assert told_wait(busy.headers)
        assert (await harness.ask("POST", PATH, bytes(1001))).status == 413

    run(test())


def test_a_client_that_leaves_ends_its_job() -> None:
    async def test() -> None:
        harness = Harness()
        exchange = harness.begin("POST", PATH, BODY)
        job = await harness.registry.next_job()
        begin_answer(job)
        exchange.leave()
        await exchange.finish()
        assert (job.cancelled, job.status, exchange.status) == (True, 499, 0)

    run(test())


def test_keys() -> None:
    async def test() -> None:
        harness = Harness(Tokens())
        assert (await harness.ask("GET", "/v2/health/live")).json == {"live": True}
        assert (await harness.ask("GET", "/v2/health/ready")).status == 503
        for key, status in (("", 401), ("Bearer management", 401), ("Bearer inference", 200)):
            assert (await harness.ask("GET", "/v2", authorization=key)).status == status
        load = await harness.ask("POST", "/v2/repository/models/m/load", authorization="Bearer inference")
        assert (load.status, load.json) == (401, {"error": "wrong"})

    run(test())


def test_readiness_has_both_members() -> None:
    async def test() -> None:
        harness = Harness()
        waiting = await harness.ask("GET", "/v2/health/ready")
        error = "The server is not ready: the server is starting."
        assert (waiting.status, waiting.json) == (503, {"ready": False, "live": True, "error": error})
        harness.health.started = True
        harness.health.ready = lambda: True  # type: ignore[method-assign]
        assert (await harness.ask("GET", "/v2/health/ready")).json == {"ready": True, "live": True}

    run(test())


def test_a_browser_may_ask_first() -> None:
    async def test() -> None:
        exchange = await Harness(Tokens()).ask("OPTIONS", PATH)
        assert (exchange.status, exchange.headers["allow"], exchange.body) == (204, "POST, OPTIONS", b"")

    run(test())


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"ready": 1}'])
def test_a_body_that_is_not_an_object(body: bytes) -> None:
    async def test() -> None:
        exchange = await Harness().ask("POST", "/v2/repository/index", body)
        assert (exchange.status, list(exchange.json)) == (400, ["error"])

    run(test())


def test_a_key_for_some_models() -> None:
    async def test() -> None:
        harness = Harness(Tokens(some_key("team-a", models=("m",))))
        for method, path in (("POST", "/v2/models/n/infer"), ("GET", "/v2/models/n"), ("GET", "/v2/models/n/ready")):
            refused = await harness.ask(method, path, BODY, authorization="Bearer inference")
            assert refused.status == 403
            assert refused.json == {"error": 'The key "team-a" is not for model n, but for: m (api_keys_file).'}
        assert (await harness.infer(join(HEAD, []), authorization="Bearer inference")).status == 200

    run(test())


def test_a_rate() -> None:
    async def test() -> None:
        harness = Harness(Tokens(some_key("team-a", rate=SELDOM)))
        assert (await harness.ask("GET", "/v2", b"", authorization="Bearer inference")).status == 200
        refused = await harness.ask("GET", "/v2", b"", authorization="Bearer inference")
        assert refused.status == 429
        assert "retry-after" in refused.headers

    run(test())
