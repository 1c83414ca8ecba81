"""Language models that only pretend: a registry whose jobs are answered by a script, or by the test itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from msx_core.generation.wire import decode, encode
from msx_core.held_bytes import HeldBytes
from msx_core.service_errors import ModelNotFound, ServiceError
from msx_core.text_limits import DEFAULT_LIMITS, TextLimits
from msx_frontend.apis.anthropic.family import anthropic
from msx_frontend.apis.cohere.family import cohere
from msx_frontend.apis.jobs.family import jobs_api
from msx_frontend.apis.kserve.family import kserve_generate
from msx_frontend.apis.llm_serving.family import llm_serving
from msx_frontend.apis.ollama.family import ollama
from msx_frontend.apis.openai.family import openai
from msx_frontend.apis.openai.kept_responses import KeptResponses
from msx_frontend.apis.openai.model_paths import openai_of_models
from msx_frontend.apis.tei.family import tei
from msx_frontend.apis.tgi.family import tgi
from msx_frontend.apis.vllm.family import vllm
from msx_frontend.batches.runner import Batches
from msx_frontend.deferred.accepting import Acceptance
from msx_frontend.deferred.runner import DeferredJobs
from msx_frontend.generation.images.limits import ImageLimits
from msx_frontend.generation.text_models import DEFAULT_IMAGE_LIMITS, TextModels
from msx_frontend.job import Job
from msx_frontend.logs.access_log import AccessLog
from msx_frontend.metrics import ModelMetrics, ServerMetrics
from msx_frontend.models.aliases import Aliases
from msx_frontend.models.registry import Registry
from msx_frontend.models.versions.first_load import FirstLoad
from msx_frontend.models.versions.schema import VersionSchema
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.http.admission import ChecksKeys
from msx_net.http.family import Route
from msx_net.http.router import Router
from msx_net.keys import ClientKey, Kind
from msx_sdk.generation import (
    CLASSIFY,
    EMBED,
    GENERATE,
    TOKENIZE,
    Capabilities,
    ClassifyRequest,
    EmbedRequest,
    GenerateDelta,
    GenerateRequest,
    Token,
    TokenizeRequest,
    Usage,
)
from tests.net.http.client import Exchange, FakeAccessLog, begin
from tests.net.http.exchanges import TORCHSERVE, exchange_of

ALL = Capabilities(
    generate=True,
    chat=True,
    tokenize=True,
    embed=True,
    constraints=("json_schema", "json_object", "regex", "choice", "lark"),
    max_best_of=4,
    max_input_tokens=100,
    max_total_tokens=200,
    embedding_size=8,
)
REQUESTS: dict[str, Any] = {
    GENERATE: GenerateRequest,
    TOKENIZE: TokenizeRequest,
    EMBED: EmbedRequest,
    CLASSIFY: ClassifyRequest,
}

Answer = msgspec.Struct | bytes | ServiceError


def words(*texts: str, finish: Any = "eos", index: int = 0, last: bool = True, **end: Any) -> list[GenerateDelta]:
    """A delta a word; the last one has the end, and the usage where it is the last of all."""
    deltas = [
        GenerateDelta(index=index, text=text, tokens=(Token(id=n, text=text, logprob=-0.5),))
        for n, text in enumerate(texts)
    ]
    usage = Usage(prompt=3, completion=len(texts), cached=1) if last else None
    return [*deltas, GenerateDelta(index=index, finish_reason=finish, usage=usage, **end)]


@dataclass
class FakeWorkers:
    expected: bool = True
    answer: bool = True
    on_demand: bool = False
    adopts: bool = False
    device_type: str = "cpu"
    refusal: str = ""


class FakeVersion:
    created = 1_700_000_000.5

    def __init__(self, name: str, offered: Capabilities | None, metrics: ModelMetrics) -> None:
        self.source: Any = SimpleNamespace(name=name, version="1.0", workflow="", handler="")
        self.schema, self.workers, self.metrics = VersionSchema(name), FakeWorkers(), metrics
        self.schema.capabilities = offered
        self.first_load = FirstLoad(name, 2, 60)
        self.queue = SimpleNamespace(wait_for_load=self.first_load.wait)
        self.aliases: tuple[str, ...] = ()
        self.figures = SimpleNamespace(gauges=lambda: {"msx_requests_running": 2.0, "msx_requests_queued": 1.0})

    def called(self, asked: str | None) -> str:
        return asked if asked in self.aliases else str(self.source.name)


@dataclass
class Speaker:
    """`script` answers each job at once, a list a job, the last one for all that follow; without one jobs wait."""

    script: list[Sequence[Answer]] = field(default_factory=list)
    models: dict[str, Capabilities | None] = field(default_factory=lambda: {"m": ALL})
    refusal: ServiceError | None = None
    jobs: list[Job] = field(default_factory=list)
    came: asyncio.Event = field(default_factory=asyncio.Event)
    check_token: Callable[[str | None], ClientKey] | None = None
    default_llm: str = ""
    limits: TextLimits = DEFAULT_LIMITS
    size: int = 10_000
    heartbeats: StreamHeartbeats = OFF
    image_limits: ImageLimits = DEFAULT_IMAGE_LIMITS
    held: HeldBytes = field(default_factory=HeldBytes)
    kept: KeptResponses | None = None
    jobs_of: DeferredJobs | None = None
    batches_of: Batches | None = None

    def __post_init__(self) -> None:
        self.metrics = ServerMetrics()
        self.versions = {
            name: FakeVersion(name, offered, ModelMetrics(self.metrics, name, "1.0"))
            for name, offered in self.models.items()
        }
        self.log, self.aliases = FakeAccessLog(), Aliases(dict)
        texts = TextModels(cast(Registry, self), self.default_llm, self.limits, self.heartbeats, self.image_limits)
        self.families = families = (
            TORCHSERVE,
            openai(texts, self.kept, self.jobs_of, self.batches_of),
            openai_of_models(texts),
            anthropic(texts),
            ollama(texts),
            cohere(texts),
            vllm(texts),
            tgi(texts),
            tei(texts),
            kserve_generate(texts),
            llm_serving(texts),
        )
        every = *families, jobs_api(self.jobs_of)
        self.router = Router(every, TORCHSERVE)
        tokens = None if self.check_token is None else cast(ChecksKeys, self)
        self.app = exchange_of(
            *every,
            log=cast(AccessLog, self.log),
            limit=self.size,
            tokens=tokens,
            held=self.held,
            heartbeats=self.heartbeats,
            defers=None if self.jobs_of is None else Acceptance(self.jobs_of),
        )

    # -- as the server's keys --

    def check_any(self, kinds: tuple[Kind, ...], authorization: str | None) -> ClientKey:
        assert kinds == ("inference",)
        assert self.check_token is not None
        return self.check_token(authorization)

    # -- as a registry --

    def names(self) -> list[str]:
        return sorted(self.versions)

    def names_by_age(self) -> list[str]:
        return list(self.versions)

    def choose(self, name: str, headers: object) -> FakeVersion:
        return self.find(name)

    def find(self, name: str, version: str | None = None) -> FakeVersion:
        if name not in self.versions:
            raise ModelNotFound(name)
        return self.versions[name]

    def has_model(self, name: str) -> bool:
        return name in self.versions

    def submit(self, job: Job) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.jobs.append(job)
        if self.script:
            answers = self.script.pop(0) if len(self.script) > 1 else self.script[0]
            asyncio.get_running_loop().call_soon(say, job, *answers)
        self.came.set()

    # -- for the tests --

    @property
    def asked(self) -> list[Any]:
        """The messages of the jobs, without their owners, which no two requests have in common."""
        messages = [decode(job.fields[0].data, REQUESTS[job.kind]) for job in self.jobs]
        return [msgspec.structs.replace(one, owner=None) if hasattr(one, "owner") else one for one in messages]

    async def next_job(self, number: int = 0) -> Job:
        while len(self.jobs) <= number:
            self.came.clear()
            await self.came.wait()
        return self.jobs[number]

    def begin(self, path: str, body: Any = None, method: str = "POST", **headers: str) -> Exchange:
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        return begin(self.app, method, path, data, **headers)

    async def ask(self, path: str, body: Any = None, method: str = "POST", **headers: str) -> Exchange:
        """The reply, which fits what /openapi.json says of it."""
        exchange = await self.begin(path, body, method, **headers).finish()
        if exchange.status == 200 and exchange.body:
            route = self.router.find(method, path.partition("?")[0]).route
            assert route is not None
            self._fits(exchange, route)
        return exchange

    def _fits(self, exchange: Exchange, route: Route) -> None:
        if exchange.headers["content-type"].startswith("text/event-stream"):
            for value in events(exchange):
                if value != "[DONE]" and "error" not in value:
                    assert has_only_members_of(route.events_schema, value)
        elif route.response_schema is not None:
            assert has_only_members_of(route.response_schema, exchange.json)


def say(job: Job, *answers: Answer) -> None:
    """As a worker group does it, to the end."""
    say_so_far(job, *answers)
    if not any(isinstance(answer, ServiceError) for answer in answers):
        job.finish(200)


def say_so_far(job: Job, *answers: Answer) -> None:
    if answers and not isinstance(answers[0], ServiceError) and not job.done:
        job.sink.start(200, "", [])
    for answer in answers:
        if isinstance(answer, ServiceError):
            job.fail(answer)
        elif not job.done:
            job.sink.chunk(answer if isinstance(answer, bytes) else encode(answer))


def has_only_members_of(schema: Any, value: Any) -> bool:
    """Raises ValidationError for a value that does not fit."""
    return bool(msgspec.to_builtins(msgspec.convert(value, schema)) == value)


def events(exchange: Exchange) -> list[Any]:
    """The data of the events, `[DONE]` as it is."""
    assert exchange.headers["content-type"] == "text/event-stream; charset=utf-8"
    lines = [line for line in exchange.body.decode().split("\n") if line.startswith("data: ")]
    return [line[6:] if line == "data: [DONE]" else msgspec.json.decode(line[6:]) for line in lines]


async def refused(speaker: Speaker, path: str, body: Any, status: int) -> Any:
    """The body of a refusal; nothing may have been asked of a worker."""
    exchange = await speaker.ask(path, body)
    assert exchange.status == status, exchange.body
    assert speaker.jobs == []
    return exchange.json
