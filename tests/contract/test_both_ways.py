"""Every route of every API family answers alike over HTTP/1.1 and HTTP/2, and the routes of jobs as their goldens say.

All of the server behind its listeners, on fake worker groups. A family that is added gets a line for each of its
routes here, or the first test fails; `python -m tests.contract.http_goldens` writes their answers.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import unquote

import httpx
import msgspec
import pytest

from msx_core.generation.wire import encode
from msx_core.held_bytes import HeldBytes
from msx_core.kserve.message import join
from msx_core.reply_head import JSON_TYPE
from msx_core.service_errors import WorkerDied
from msx_frontend.assembly.http_front import HttpFront
from msx_frontend.job import INFER, Job
from msx_frontend.keys.tokens import Tokens
from msx_frontend.models.registry import Registry
from msx_frontend.workers.batch_runner import BatchRunner
from msx_net.http.family import JobRoute
from msx_net.http.router import Match, Router
from msx_net.listening.address import Address
from msx_net.tls.listeners import ListenerTls
from msx_sdk.generation import CLASSIFY, EMBED, GENERATE, TOKENIZE, ClassifyReply, EmbedReply, TokenizeReply
from tests.contract.http_goldens import Answer, golden, goldens
from tests.contract.raw_requests import REQUESTS, exchanged
from tests.frontend.front import front_of
from tests.frontend.generation.speaker import ALL, words
from tests.frontend.harness import FakeGroup, Harness, open_harness
from tests.http2_transport import Http2Transport
from tests.loops import run

LIMIT = 5000
"""Bytes of a request."""
INPUTS = b'{"inputs": []}'


class Ask(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    listener: str = "inference"


def _predictions() -> Iterator[Ask]:
    for path in (
        "/predictions/m",
        "/predictions/m/1.0",
        "/predictions/m/1.0/a/b?c=d",
        "/predictions/m//x",
        "/predictions/m:add",
        "/predictions/m/1.0:add",
        "/explanations/m",
        "/explanations/m/1.0",
        "/explanations/m/1.0/a",
        "/explanations/m//x",
        "/models/m/invoke",
        "/m/predict",
        "/m/1.0/predict",
        "/v1/models/m:predict",
        "/v1/models/m:explain",
    ):
        yield Ask("POST", path, b"hello")
        yield Ask("GET", path)
        yield Ask("PUT", path, b'{"a": 1}', (("content-type", "application/json"),))
        yield Ask("DELETE", path)
        yield Ask("HEAD", path)
        yield Ask("OPTIONS", path)
    for how in ("json", "pieces", "fails", "chosen", "large", "headers", "bad header", "empty", "204", "cut"):
        yield Ask("POST", "/predictions/m", how.encode())
    yield Ask("POST", "/invocations", b"hello")
    yield Ask("POST", "/invocations?model_name=m", b"hello")
    yield Ask("POST", "/predictions/none", b"hello")
    yield Ask("POST", "/predictions/m/9", b"hello")
    yield Ask("POST", "/predictions/m", b"x", (("content-type", "multipart/form-data; boundary=b"),))
    yield Ask("POST", "/predictions/m", b"\x1f\x8b", (("content-encoding", "gzip"),))
    yield Ask("POST", "/predictions/m", b"hello", (("accept-encoding", "gzip"),))
    yield Ask("POST", "/predictions/m", b"hello", (("connection", "close"),))


def _kserve() -> Iterator[Ask]:
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models", "/v2/models/stats", "/v2/models/none"):
        yield Ask("GET", path)
        yield Ask("DELETE", path)
        yield Ask("HEAD", path)
        yield Ask("OPTIONS", path)
    for model in ("/v2/models/m", "/v2/models/m/versions/1.0", "/v2/models/m/versions/9"):
        for word in ("", "/ready", "/config", "/stats"):
            yield Ask("GET", f"{model}{word}")
            yield Ask("POST", f"{model}{word}")
        for word in ("/infer", "/explain"):
            yield Ask("POST", f"{model}{word}", INPUTS)
            yield Ask("GET", f"{model}{word}")
            yield Ask("HEAD", f"{model}{word}")
            yield Ask("OPTIONS", f"{model}{word}")
    for how in ("binary", "chosen", "fails", "pieces", "nonsense", "nothing", "large", "headers", "bad header"):
        body = b'{"how": "%b"}' % how.encode()
        yield Ask("POST", "/v2/models/m/infer", body)
        yield Ask("POST", "/v2/models/m/infer", body, (("accept-encoding", "gzip"),))
        yield Ask("POST", "/v2/models/m/infer", how.encode(), (("content-type", "image/png"),))
    yield Ask("POST", "/v2/models/m/infer", b"not gzip", (("content-encoding", "gzip"),))
    yield Ask("POST", "/v2/models/m/infer", b"x", (("content-encoding", "br"),))
    yield Ask("POST", "/v2/models/m/infer", b"--b", (("content-type", "multipart/form-data; boundary=b"),))
    yield Ask("POST", "/v2/repository/index")
    yield Ask("POST", "/v2/repository/index", b"[]")
    yield Ask("POST", "/v2/repository/models/m/load")
    yield Ask("POST", "/v2/repository/models/none/unload")
    yield Ask("GET", "/v2/nothing")


def _texts() -> Iterator[Ask]:
    for path in ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/embeddings"):
        yield from _of_texts(path, b'{"%b": "x"}' % _PROMPTS.get(path, b"prompt"), b'"model": "m", ')
    for prefix in ("/v1", "/openai/v1"):
        for path in ("files", "files/x", "files/x/content", "batches", "batches/x"):
            yield Ask("GET", f"{prefix}/{path}")
        yield Ask("DELETE", f"{prefix}/files/x")
        for path in ("files", "batches", "batches/x/cancel"):
            yield Ask("POST", f"{prefix}/{path}", b"{}")
    for path in ("/jobs", "/jobs/x?wait=1", "/jobs/x/result", "/jobs/x/events"):
        yield Ask("GET", path)
    yield Ask("DELETE", "/jobs/x")
    for path in ("", "/x", "/x/result"):
        yield Ask("GET", f"/management/jobs{path}", listener="management")
    yield Ask("DELETE", "/management/jobs/x", listener="management")
    for path in ("batches", "batches/x", "files", "files/x"):
        yield Ask("GET", f"/management/{path}", listener="management")
    yield Ask("DELETE", "/management/files/x", listener="management")
    yield Ask("POST", "/management/batches/x/cancel", listener="management")
    for path in ("/v1/responses/resp_x", "/openai/v1/responses/resp_x"):
        yield Ask("GET", path)
        yield Ask("DELETE", path)
        yield Ask("GET", f"{path}/input_items?limit=1")
        yield Ask("POST", f"{path}/cancel")
    for path in ("/", "/generate", "/generate_stream", "/tokenize", "/chat_tokenize"):
        yield from _of_texts(path, b'{"inputs": "x"}', b'"model": "m", ')
    for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
        yield from _of_texts(path, b'{"query": "q", "documents": ["x"]}', b'"model": "m", ')
    for path, body in TEIS.items():
        yield from _of_texts(path, body, b'"model": "m", ')
    for path in ("/v2/models/llm", "/v2/models/llm/versions/1.0", "/v2/models/none"):
        yield from _of_texts(f"{path}/generate", b'{"text_input": "x"}', b'"parameters": {"n": 2}, ')
        yield from _of_texts(f"{path}/generate_stream", b'{"text_input": "x"}', b'"parameters": {"n": 2}, ')
    for path in ("/models/llm", "/models/llm/generate", "/models/llm/generate_stream", "/models/none/generate"):
        yield from _of_texts(path, b'{"inputs": "x"}', b'"stream": "True", ')
    for path in ("/model/llm:generated_stream", "/model/none:generated_stream"):
        yield from _of_texts(path, b'{"instances": "x"}', b'"parameters": {"max_new_tokens": 2}, ')
    for name in ("get_bs", "get_request_numbers", "get_serverd_model_info"):
        yield Ask("GET", f"/serving/{name}")
    yield Ask("POST", "/v1/chat/completions", CHAT)
    yield Ask("POST", "/v1/chat/completions", CHAT.replace(b"{", b'{"stream": true, ', 1))
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        yield Ask("POST", path, SAID)
        yield Ask("POST", path, SAID.replace(b"{", b'{"stream": true, ', 1))
        yield Ask("POST", path, SAID.replace(b'"llm"', b'"m"'))
        yield Ask("POST", path, CHAT)
    for path, body in OLLAMAS.items():
        yield Ask("POST", path, body)
        yield Ask("POST", path, body.replace(b"{", b'{"stream": false, ', 1))
        yield Ask("POST", path, body.replace(b'"llm"', b'"m"'))
        yield Ask("POST", path, b"{}")
    for path, body in (COHERES | VLLMS).items():
        yield Ask("POST", path, body)
        yield Ask("POST", path, body.replace(b"{", b'{"stream": true, ', 1))
        yield Ask("POST", path, body.replace(b"{", b'{"model": "m", ', 1))
        yield Ask("POST", path, b"{}")
    for path in ("/version", "/tokenizer_info", "/tokenizer_info?model=m"):
        yield Ask("GET", path)
    for path in ("/api/tags", "/api/ps", "/api/version", "/api/nothing"):
        yield Ask("GET", path)
    for path in ("pull", "push", "create", "copy", "blobs/sha256:1"):
        yield Ask("POST", f"/api/{path}", b"{}")
    yield Ask("DELETE", "/api/delete", b"{}")
    for place in ("/predictions/llm/1.0", "/predictions/llm/", "/predictions/m/1.0"):
        yield Ask("POST", f"{place}/v1/completions", b'{"prompt": "x"}')
        yield Ask("POST", f"{place}/v1/chat/completions", CHAT)
        yield Ask("GET", f"{place}/v1/models")
    yield Ask("GET", "/", headers=(("user-agent", "ollama-python/1"),))
    yield Ask("GET", "/v1/models", headers=(("anthropic-version", "2023-06-01"), ("x-api-key", "any")))
    yield Ask("POST", "/chat_tokenize", CHAT)
    yield Ask("POST", "/detokenize", b'{"tokens": [1]}')
    yield Ask("POST", "/detokenize", b'{"tokens": [-1]}')
    for path in (
        "/v1/models",
        "/v1/models/llm",
        "/v1/models/m",
        "/v1/models/none",
        "/v1/models/a/b",
        "/info",
        "/health",
    ):
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            yield Ask(method, path)


TEIS = {
    "/embed": b'{"inputs": "x"}',
    "/embed_all": b'{"inputs": "x"}',
    "/embed_sparse": b'{"inputs": "x"}',
    "/decode": b'{"ids": [[1], [2]]}',
    "/predict": b'{"inputs": "x"}',
    "/rerank": b'{"query": "q", "texts": ["x"]}',
    "/similarity": b'{"inputs": {"source_sentence": "x", "sentences": ["y"]}}',
}
CHAT = b'{"messages": [{"role": "user", "content": "x"}]}'
SAID = b'{"model": "llm", "max_tokens": 4, "messages": [{"role": "user", "content": "x"}]}'
OLLAMAS = {
    "/api/chat": b'{"model": "llm", "messages": [{"role": "user", "content": "x"}]}',
    "/api/generate": b'{"model": "llm", "prompt": "x"}',
    "/api/embed": b'{"model": "llm", "input": "x"}',
    "/api/embeddings": b'{"model": "llm", "prompt": "x"}',
    "/api/show": b'{"model": "llm"}',
}
COHERES = {
    "/v2/chat": b'{"messages": [{"role": "user", "content": "x"}]}',
    "/v2/embed": b'{"texts": ["x"]}',
    "/v1/tokenize": b'{"text": "x"}',
    "/v1/detokenize": b'{"tokens": [1]}',
}
VLLMS = {
    "/score": b'{"text_1": "x", "text_2": ["y"]}',
    "/v1/score": b'{"queries": "x", "documents": ["y"]}',
    "/classify": b'{"input": "x"}',
    "/pooling": b'{"input": "x"}',
}
_PROMPTS = {"/v1/responses": b"input", "/v1/embeddings": b"input"}


def _of_texts(path: str, body: bytes, wrong: bytes) -> Iterator[Ask]:
    yield Ask("POST", path, body)
    yield Ask("POST", path, body.replace(b"{", b'{"stream": true, ', 1))
    yield Ask("POST", path, body.replace(b"{", b'{"stream": true, "parameters": {"stream": true}, ', 1))
    yield Ask("POST", path, body.replace(b'"x"', b'["x", "y"]'))
    yield Ask("POST", path, body.replace(b'"x"', b'"breaks"').replace(b"{", b'{"stream": true, ', 1))
    yield Ask("POST", path, body.replace(b'"x"', b'"fails"').replace(b"{", b'{"stream": true, ', 1))
    yield Ask("POST", path, body.replace(b'"x"', b'"fails"'))
    yield Ask("POST", path, body.replace(b"{", b"{" + wrong, 1))
    yield Ask("POST", path, body[:-1])
    yield Ask("POST", path, b"not gzip", (("content-encoding", "gzip"),))
    yield Ask("POST", path, gzip.compress(body, mtime=0), (("content-encoding", "gzip"),))
    for method in ("GET", "HEAD", "DELETE", "OPTIONS"):
        yield Ask(method, path)


def _not_served() -> Iterator[Ask]:
    for path in ("/v2/systemsharedmemory", "/v2/cudasharedmemory", "/v2/trace/setting", "/v2/models/m/trace/setting"):
        yield Ask("GET", path)
    yield Ask("POST", "/v2/logging", b"{}")
    yield Ask("POST", "/v2/systemsharedmemory/region/a/register", b"{}")
    yield Ask("POST", "/v2/cudasharedmemory/status", b"{}")


def _probes_and_metrics() -> Iterator[Ask]:
    for path in ("/livez", "/readyz", "/ping", "/api-description", "/openapi.json", "/docs"):
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            yield Ask(method, path)
    for path in ("/", "/docs/start.js", "/docs/swagger-ui.css", "/docs/none"):
        yield Ask("GET", path)
    yield Ask("GET", "/ping", listener="management")
    yield Ask("GET", "/metrics/x?name[]=none", listener="metrics")
    yield Ask("GET", "/metrics?name[]=none", listener="metrics")
    yield Ask("DELETE", "/metrics?name[]=none", listener="metrics")


def _workflows() -> Iterator[Ask]:
    for method in ("GET", "POST", "HEAD"):
        yield Ask(method, "/wfpredict/none", b"hello")
    for method in ("GET", "POST", "DELETE", "OPTIONS"):
        yield Ask(method, "/workflows", listener="management")
        yield Ask(method, "/workflows/none", listener="management")


def _management() -> Iterator[Ask]:
    json = (("content-type", "application/json"),)
    for path in ("/models", "/models/none", "/models/m/9"):  # a description that exists counts requests
        for method in ("GET", "HEAD", "OPTIONS", "PATCH"):
            yield Ask(method, path, listener="management")
    yield Ask("POST", "/models?url=none.mar", listener="management")
    yield Ask("POST", "/models", b"{", json, listener="management")
    for path in ("/models/none", "/models/m/9"):
        yield Ask("PUT", f"{path}?min_worker=1", listener="management")
        yield Ask("PUT", path, b"[]", json, listener="management")
        yield Ask("DELETE", path, listener="management")
    yield Ask("PUT", "/models/m/1.0/set-default", listener="management")
    yield Ask("GET", "/models/m/1.0/set-default", listener="management")
    yield Ask("GET", "/v1/models/m", listener="management")
    yield Ask("GET", "/v1/models/none", listener="management")
    yield Ask("GET", "/token?type=wrong", listener="management")
    yield Ask("GET", "/cluster", listener="management")
    for path in ("/playground", "/playground/models", "/playground/static/0/shared/dom.js", "/playground/nothing"):
        yield Ask("GET", path)
    for path in ("/console", "/console/static/0/shared/dom.js", "/console/nothing"):
        for method in ("GET", "HEAD", "OPTIONS", "POST"):
            yield Ask(method, path, listener="management")
    for path in ("history?model=m", "history?model=none&version=1", "lines", "lines?model=m&version=1.0&after=x"):
        yield Ask("GET", f"/console/{path}", listener="management")
    for path in ("traces?model=none&version=1", "model?model=none&version=1", "model"):
        yield Ask("GET", f"/console/{path}", listener="management")
    for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
        for body in (b"{", b"{}", b'{"lora_name": "a", "lora_path": "a"}', b'{"model": "none", "lora_name": "a"}'):
            yield Ask("POST", path, body, json, listener="management")
        for method in ("GET", "HEAD", "OPTIONS"):
            yield Ask(method, path, listener="management")
    for method in ("POST", "HEAD", "OPTIONS"):  # a GET does not end
        yield Ask(method, "/console/events", listener="management")
    yield Ask("PUT", "/console/upload/m.mar", b"x", listener="management")
    for path in ("/sleep", "/wake_up", "/is_sleeping", "/models/m/sleep", "/models/none/wake_up"):
        for method in ("GET", "POST"):
            yield Ask(method, path, listener="management")
    yield Ask("POST", "/sleep?model=m&level=3", listener="management")
    yield Ask("POST", "/wake_up?model=m&tags=weights", listener="management")
    for model in ("m", "none"):
        path = f"/models/{model}/traffic"
        for body in (b"{", b"{}", b'{"1.0": 1}', b'{"9": 1}', b'{"weights": {"1.0": 1}, "stickyHeader": 1}'):
            yield Ask("PUT", path, body, json, listener="management")
        for method in ("GET", "HEAD", "OPTIONS", "POST", "DELETE"):
            yield Ask(method, path, listener="management")
        path = f"/models/{model}/aliases"
        for body in (b"{", b"{}", b'{"aliases": ["a", "a"]}', b'{"aliases": []}'):
            yield Ask("PUT", path, body, json, listener="management")
        for method in ("GET", "HEAD", "OPTIONS"):
            yield Ask(method, path, listener="management")


def _for_kserve() -> Iterator[Ask]:
    """OpenAI's routes where KServe's clients call them."""
    for path in ("completions", "chat/completions", "responses", "embeddings", "rerank"):
        for body in (b"{", b'{"model": "none"}', b'{"model": "m", "prompt": "a", "input": "a"}'):
            yield Ask("POST", f"/openai/v1/{path}", body)
    for path in ("models", "models/none", "models/a/b"):
        yield Ask("GET", f"/openai/v1/{path}")


def _priorities() -> Iterator[Ask]:
    for name in ("high", "low", "urgent"):
        for path in ("/predictions/m", "/v2/models/m/infer", "/v1/completions"):
            yield Ask("POST", path, b"{}", (("x-msx-priority", name),))


def _mindspore_serving() -> Iterator[Ask]:
    one = b'{"instances": {"x": 1}}'
    for path in ("/model/m:add", "/model/m/version/1:add", "/version/1/model/m:add", "/model/m/version/x:add"):
        yield Ask("POST", path, one)
        for method in ("GET", "PUT", "DELETE", "HEAD", "OPTIONS"):
            yield Ask(method, path)
    for body in (b"", b"{", b"[]", b'{"instances": {"x": null}}', bytes(LIMIT + 1)):
        yield Ask("POST", "/model/m:add", body)
    yield Ask("POST", "/model/none:add?a=b", one)
    yield Ask("POST", "/%6dodel/m:add", one)
    yield Ask("POST", "/model/m:add", b"\x1f\x8b", (("content-encoding", "gzip"),))


def _paths_of_no_family() -> Iterator[Ask]:
    for listener in ("inference", "management", "metrics"):
        for path in ("/", "/nothing", "/predict", "/v1/nothing", "/v2/nothing", "/models/m/nothing/more"):
            yield Ask("GET", path, listener=listener)
            yield Ask("POST", path, b"x", listener=listener)


TABLE = [
    *_predictions(),
    *_kserve(),
    *_mindspore_serving(),
    *_texts(),
    *_for_kserve(),
    *_priorities(),
    *_not_served(),
    *_probes_and_metrics(),
    *_workflows(),
    *_management(),
    *_paths_of_no_family(),
]
GOOD = list(dict.fromkeys(Ask(one.method, one.path, listener=one.listener) for one in TABLE))


# -- what workers say --


def predict(group: BatchRunner, jobs: list[Job], *, joins: bool = False) -> None:
    for job in jobs:
        job.group = group
        asyncio.get_running_loop().call_soon(say, job)


def say(job: Job) -> None:
    data = job.fields[0].data if job.fields else b""
    if job.kind == GENERATE:
        _generate(job, data)
    elif job.kind == TOKENIZE:
        _pieces(job, encode(TokenizeReply(text="", tokens=[])))
    elif job.kind == EMBED:
        _pieces(job, encode(EmbedReply(embedding=b"1234", prompt_tokens=1)))
    elif job.kind == CLASSIFY:
        _pieces(job, encode(ClassifyReply(scores=(0.5,), prompt_tokens=1)))
    elif job.kind == INFER:
        _infer(job, msgspec.json.decode(data).get("how", "") if data[:1] == b"{" else "")
    else:
        _predict(job, data)


def _generate(job: Job, data: bytes) -> None:
    if b"fails" in data:
        job.fail(WorkerDied("It ended."))
    elif b"breaks" in data:
        job.sink.start(200, "", [])
        job.sink.chunk(encode(words("a")[0]))
        asyncio.get_running_loop().call_later(0.02, job.fail, WorkerDied("It ended."))
    else:
        _pieces(job, *(encode(delta) for delta in words("a", " word")))


def _infer(job: Job, how: str) -> None:
    head: dict[str, Any] = {"model_name": "m", "outputs": []}
    if how in ("chosen", "fails", "pieces", "headers", "bad header"):
        _predict(job, how.encode(), join(head))
    elif how == "nothing":
        job.answer(200, "", [], b"")
    elif how == "nonsense":
        job.answer(200, "", [], b"nonsense")
    else:
        tensors = {"binary": [b"1234"], "large": [bytes(5000)]}.get(how, [])
        job.answer(200, "", [JSON_TYPE], join(head, tensors))


def _predict(job: Job, data: bytes, word: bytes = b"a word") -> None:
    if data == b"fails":
        job.fail(WorkerDied("It ended."))
    elif data == b"chosen":
        job.answer(409, "Not Now", [("x-own", "1")], b"not now")
    elif data == b"json":
        job.answer(200, "", [JSON_TYPE], b"{}")
    elif data == b"large":
        job.answer(200, "", [], bytes(100_000))
    elif data == b"headers":
        job.answer(201, "Made", [("x-own", "1"), ("Content-Type", "text/own"), ("connection", "own")], word)
    elif data == b"bad header":
        job.answer(200, "", [("x own", "1")], word)
    elif data == b"204":
        job.answer(204, "", [], b"no body")
    elif data in (b"pieces", b"cut"):
        job.sink.start(200, "", [("content-type", "text/plain")])
        job.sink.chunk(word)
        asyncio.get_running_loop().call_later(0.02, _last, job, word, data == b"cut")
    else:
        job.answer(200, "", [], b"" if data == b"empty" else data)


def _last(job: Job, word: bytes, cut: bool) -> None:
    if job.done:
        return
    if cut:
        job.fail(WorkerDied("It ended."))
    else:
        job.sink.chunk(word)
        job.finish(200)


def _pieces(job: Job, *pieces: bytes) -> None:
    job.sink.start(200, "", [])
    for piece in pieces:
        job.sink.chunk(piece)
    job.finish(200)


# -- the server --


class Served:
    """A server with its keys."""

    def __init__(self, harness: Harness, front: HttpFront, tokens: Tokens | None, held: HeldBytes) -> None:
        self.harness, self.registry, self.front, self.tokens = harness, harness.registry, front, tokens
        self.held = held
        keys = msgspec.json.decode(tokens.path.read_bytes()) if tokens else {}
        self.keys = {kind: f"Bearer {keys[kind]['key']}" for kind in keys}
        self.addresses: dict[str, Address] = {}
        self._routers: dict[str, Router] = {}

    def asks_of_routes(self) -> dict[tuple[str, str, str], Ask]:
        """One line of each route that the table asks for, by listener, method and path."""
        found: dict[tuple[str, str, str], Ask] = {}
        for ask in TABLE:
            route = self._match(ask, ask.method).route
            if route is not None:
                found.setdefault((ask.listener, route.method, route.path), ask)
        return found

    def is_for_a_job(self, ask: Ask) -> bool:
        """A POST of its path would be a job."""
        route = self._match(ask, "POST").route
        return route is not None and isinstance(route.answer, JobRoute)

    def _match(self, ask: Ask, method: str) -> Match:
        families = self.front.families
        if not self._routers:
            self._routers = {
                listener: Router([family for family in families if family.listener == listener], families[0])
                for listener in self.addresses
            }
        return self._routers[ask.listener].find(method, unquote(ask.path.partition("?")[0]))

    async def ask(self, client: httpx.AsyncClient, ask: Ask, key: str = "") -> Answer:
        """Status, phrase, headers and body, without what differs from request to request."""
        headers = {"x-request-id": "id-1", "accept-encoding": "identity", **dict(ask.headers)}
        if key:
            headers["authorization"] = self.keys[key]
        body = b""
        async with client.stream(
            ask.method, f"{self.addresses[ask.listener]}{ask.path}", content=ask.body, headers=headers
        ) as reply:
            try:
                async for part in reply.aiter_raw():
                    body += part
            except httpx.RemoteProtocolError:
                body += b" (cut)"
        masked = _masked(body)
        varies = {"date", "retry-after"} | (set() if masked == body and ask.method != "HEAD" else {"content-length"})
        own = sorted(
            (name, "*" if name in varies or "-time" in name else value) for name, value in reply.headers.multi_items()
        )
        return reply.status_code, reply.reason_phrase, own, masked


def _masked(body: bytes) -> bytes:
    times = rb"ns|last_inference|created|created_at|modified_at|pid|\w+_duration|memoryUsage|\w*[tT]ime\w*"
    return re.sub(rb'("(?:' + times + rb')": ?)"?[-\d.:TZ+]+"?', rb"\1*", body)


@contextmanager
def version_of_goldens() -> Iterator[None]:
    """Replies name the release of the goldens, whichever is tested."""
    modules = [module for name, module in sys.modules.items() if name.startswith("msx_frontend.apis.")]
    with ExitStack() as stack:
        for module in modules:
            if hasattr(module, "__version__"):
                stack.enter_context(patch.object(module, "__version__", "0.1.0"))
        yield


@asynccontextmanager
async def served(
    folder: Path, *, keys: bool = False, tls: ListenerTls | None = None, **settings: Any
) -> AsyncIterator[Served]:
    folder.mkdir()
    port = Address("http", "127.0.0.1", 0)
    config: dict[str, Any] = {f"{name}_address": port for name in ("inference", "metrics")}
    config |= {"management_address": Address("http", "127.0.0.2", 0), **settings}
    with patch.object(BatchRunner, "predict", predict), version_of_goldens():
        async with open_harness(folder, max_request_size=LIMIT, **config) as harness:
            FakeGroup.offers["llm"] = ALL
            await harness.register("m")
            await harness.register("llm")
            tokens = Tokens(folder / "keys.json", 0) if keys else None
            held = HeldBytes()
            front = front_of(harness, tokens, tls, held)
            front.predictions.only_model = "m"
            one = Served(harness, front, tokens, held)
            listeners = front.listen()
            try:
                for listener in listeners:
                    await listener.start()
                    one.addresses[listener.name] = listener.address
                yield one
            finally:
                for listener in listeners:
                    await listener.stop(1)


def _over_http2(answer: Answer) -> Answer:
    """The answer over HTTP/2: no phrases, and nothing on the connection or the end of the body."""
    status, _, headers, body = answer
    phrase = httpx.codes.get_reason_phrase(status)
    return status, phrase, [pair for pair in headers if pair[0] not in ("connection", "transfer-encoding")], body


class Case(NamedTuple):
    """Asks of one server; `broken` is entered while it is asked."""

    asks: list[Ask]
    keys: bool = False
    key: str = ""
    broken: Callable[[], AbstractContextManager[Any]] = nullcontext


async def answers(folder: Path, case: Case) -> list[tuple[Ask, bool, Answer, Answer]]:
    """For each ask: whether it is for the route of a job, and the answers over HTTP/1.1 and HTTP/2."""
    async with (
        served(folder, keys=case.keys) as one,
        httpx.AsyncClient(trust_env=False) as http1,
        httpx.AsyncClient(transport=Http2Transport()) as http2,
    ):
        asked = [(ask, one.is_for_a_job(ask)) for ask in case.asks]
        with case.broken():
            return [
                (ask, job, await one.ask(http1, ask, case.key), await one.ask(http2, ask, case.key))
                for ask, job in asked
            ]


@contextmanager
def bug() -> Iterator[None]:
    """Raised where routes ask for a model, and where a job is handed to its model."""

    def raises(registry: Registry, *args: Any) -> Any:
        raise ZeroDivisionError("by zero")

    with patch.multiple(Registry, submit=raises, find=raises):
        yield


INFERENCE = [ask for ask in TABLE if ask.listener == "inference"]
CASES = {
    "table": Case(TABLE),
    "without a key": Case(GOOD, keys=True),
    "with a key": Case(INFERENCE, keys=True, key="inference"),
    "too large": Case([ask._replace(body=bytes(LIMIT + 1)) for ask in GOOD if ask.method in ("POST", "PUT")]),
    "a bug": Case(INFERENCE, broken=bug),
}


def key_of(ask: Ask) -> str:
    """The ask as text."""
    headers = "".join(f" {name}: {value}" for name, value in ask.headers)
    return f"{ask.method} {ask.path}{headers} {ask.body[:100].decode('latin-1')}"


RAW = {"raw": None, "raw, without a key": "", "raw, with a key": "inference"}
"""Cases of raw requests: without keys, or the key that is sent."""


async def raw_answers(folder: Path, key: str | None) -> dict[str, str]:
    """By the name of the request."""
    async with served(folder, keys=key is not None) as one:
        address, sent = one.addresses["inference"], one.keys[key] if key else ""
        return {name: await exchanged(address, request, sent) for name, request in REQUESTS.items()}


def check(folder: Path, name: str) -> list[int]:
    """The statuses of a case. HTTP/2 answers as HTTP/1.1 does, and the routes of jobs as their goldens say."""
    expected, seen, statuses = goldens(name), set[str](), list[int]()
    for ask, for_a_job, http1, http2 in run(answers(folder / "one", CASES[name])):
        asked = f"{ask.method} {ask.path} {ask.body[:20]!r} {ask.headers}"
        assert http2 == _over_http2(http1), f"HTTP/1.1, HTTP/2: {asked}"
        if for_a_job:
            assert golden(http1) == expected[key_of(ask)], asked
            seen.add(key_of(ask))
        statuses.append(http1[0])
    assert seen == expected.keys()
    return statuses


# -- the promises --


def test_every_route_is_asked(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(tmp_path / "one") as one:
            found = one.asks_of_routes().keys()
            routes = {
                (family.listener, route.method, route.path)
                for family in one.front.families
                for route in family.routes
                if route.path != "/token"  # it makes new keys
            }
            assert routes - found == set()

    run(test())


def test_what_is_asked_rightly_and_wrongly(tmp_path: Path) -> None:
    assert {200, 201, 204, 400, 404, 405, 409, 415, 500, 501} <= set(check(tmp_path, "table"))


def test_without_a_key(tmp_path: Path) -> None:
    assert {200, 204, 400, 401, 404} <= set(check(tmp_path, "without a key"))


def test_with_a_key(tmp_path: Path) -> None:
    statuses = check(tmp_path, "with a key")
    assert statuses.count(400) < len(statuses) / 4


def test_too_large(tmp_path: Path) -> None:
    assert 413 in check(tmp_path, "too large")


def test_a_bug_of_the_server(tmp_path: Path) -> None:
    statuses = check(tmp_path, "a bug")
    assert statuses.count(500) > len(statuses) / 3


@pytest.mark.parametrize("name", RAW)
def test_requests_of_each_form(tmp_path: Path, name: str) -> None:
    """HTTP/1.0, Expect, pipelines, chunks, compressed bodies, other methods: none is answered by the app of ASGI."""
    assert run(raw_answers(tmp_path / "one", RAW[name])) == goldens(name)


def test_head_has_the_headers_of_get(tmp_path: Path) -> None:
    """With Content-Length, and without the body."""
    asks = [ask for ask in TABLE if ask.method == "GET" and not ask.path.startswith("/metrics")]

    async def test() -> None:
        async with served(tmp_path / "one") as one, httpx.AsyncClient(trust_env=False) as client:
            for ask in asks:
                reply = await one.ask(client, ask)
                head = await one.ask(client, ask._replace(method="HEAD"))
                if reply[0] == 200 and head[0] != 405:
                    assert (head[0], [name for name, _ in head[2]], head[3]) == (
                        200,
                        [name for name, _ in reply[2]],
                        b"",
                    )
                    assert ("content-length", "0") not in head[2]

    run(test())
