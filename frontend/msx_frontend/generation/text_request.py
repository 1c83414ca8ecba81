"""One request to language models: its jobs, which end together, and its reply."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from typing import Any, NamedTuple, TypeVar

import msgspec

from msx_core.generation import Capabilities, GenerateRequest, Image, Owner
from msx_core.generation.long_texts import encode_long
from msx_core.generation.wire import encode
from msx_core.replies.sink import Sink
from msx_core.replies.stream_heartbeat import CLOSED, COMMENT
from msx_core.service_errors import MalformedJson, RequestCancelled, ServiceError
from msx_core.text_limits import DEFAULT_LIMITS, TextLimits, TooMuch, check
from msx_frontend.generation.beginning import beginning_of
from msx_frontend.generation.decoding import decode
from msx_frontend.generation.directory import Directory
from msx_frontend.generation.errors import TextFailure, WrongParameter
from msx_frontend.generation.images.finder import ImageFinder, ImageSource
from msx_frontend.generation.images.preparing import ImagePreparer
from msx_frontend.generation.parameter_names import client_name, renamed
from msx_frontend.job import Beginning, Field, Job
from msx_frontend.metrics.timed_sink import TimedSink
from msx_frontend.models.versions.first_load import LoadWait
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.heartbeats import OFF, StreamHeartbeats
from msx_net.http.failures import reported
from msx_net.http.family import Names
from msx_net.http.wire import JSON_HEADERS
from msx_net.keys import ClientKey

LARGE = 1 << 20
"""Bytes of a body that is received, read, and sent to a worker in three turns of the loop, each of which takes
milliseconds for some megabytes."""
MESSAGE_PACK = "application/msgpack"
EVENT_STREAM = [("content-type", "text/event-stream; charset=utf-8")]
IGNORED = "x-msx-ignored"
"""The header that names members of a request that have no effect."""
MOST_IGNORED = 16

Headers = list[tuple[str, str]]
M = TypeVar("M", bound=msgspec.Struct)

_json = msgspec.json.Encoder().encode


class TextApi(NamedTuple):
    """Parts that requests of one API share. `submit` hands a job to its model; `failure` makes an error's reply."""

    submit: Callable[[Job], None]
    directory: Directory
    failure: Callable[[ServiceError], TextFailure]
    images: ImagePreparer
    limits: TextLimits = DEFAULT_LIMITS
    heartbeats: StreamHeartbeats = OFF


class ReadFirst(Exception):
    """No failure: the request is read again when `work` is done."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.work = work


class TextJob(Job):
    """A job whose errors have the statuses of its API."""

    __slots__ = ("api", "asked_session", "first", "message", "owner")
    api: TextApi
    owner: Owner
    message: msgspec.Struct
    asked_session: str
    """Session in the body."""
    first: Job | None
    """First job of its request; None: it is this one."""

    def status_of(self, error: ServiceError) -> int:
        return self.api.failure(error).status

    def session(self) -> str:
        return super().session() or self.asked_session

    def beginning(self) -> Beginning:
        return beginning_of(self.message)


_numbers = count()


def owner_of(key: ClientKey | None) -> Owner:
    """Who has the turns of a new request: its number, and a name of its key that says nothing outside this process."""
    return Owner("" if key is None else key.digest.hex()[:16], next(_numbers))


class TextRequest:
    """`path` are the names in the path; `sink` gets the reply.

    The route fills `names`, what the client calls the parameters that errors are about, `ignored`, the places in
    the request that have no effect, which the reply's header names, and `session`, where the body names one.
    """

    credit = None
    """Its jobs never wait for the client: an engine works for all of them at once, and their texts have an end."""

    __slots__ = (
        "_first_load",
        "_headers",
        "_heartbeat",
        "_hold",
        "_images",
        "_jobs",
        "_key",
        "_left",
        "_preparation",
        "_read",
        "api",
        "asker",
        "body",
        "earlier",
        "id",
        "ignored",
        "names",
        "owner",
        "path",
        "session",
        "sink",
        "stream_headers",
        "stream_type",
        "streaming",
    )

    def __init__(
        self,
        api: TextApi,
        id: str,
        body: bytes,
        path: Names,
        headers: Headers,
        key: ClientKey | None,
        sink: Sink,
        owner: Owner,
        hold: Callable[[int], None],
        asker: ClientKey | None = None,
    ) -> None:
        """`headers` are the client's; `key` is None where it is good for all models, `asker` is it anyway; `hold`
        counts the request's bytes."""
        self.api, self.id, self.body, self.path, self.sink = api, id, body, path, sink
        self.owner, self.asker = owner, asker
        self._headers, self._key, self._hold = headers, key, hold
        self._jobs: list[Job] = []
        self._left = False
        self._first_load: LoadWait | None = None
        self._images: tuple[Image, ...] | None = None
        self._preparation: asyncio.Task[None] | None = None
        self._read: msgspec.Struct | None = None
        self.names: dict[str, str] = {}
        self.ignored: Sequence[str] = ()
        self.session = ""
        self.earlier: Any = None
        """The conversation that the request goes on with, once it is read."""
        self.streaming = False
        """The head of its stream of events is sent."""
        self.stream_type = EVENT_STREAM
        self.stream_headers: Headers = []
        """Further headers of that head."""
        self._heartbeat = CLOSED

    @property
    def directory(self) -> Directory:
        """The models that its key may use."""
        return self.api.directory.asked_by(self._key, self._headers)

    @property
    def headers(self) -> Headers:
        """The client's."""
        return self._headers

    def header(self, wanted: str) -> str:
        """The client's header of this name, which is in small letters; "" without one."""
        return next((value for name, value in self._headers if name.lower() == wanted), "")

    def read(self, kind: type[M], *, strict: bool = True) -> M:
        """Its body as this struct; without `strict` texts may stand for numbers and booleans. Raises MalformedJson, and
        WrongParameter, for more than a limit allows, too."""
        if type(self._read) is kind:  # read again: its model is loaded, or its images are ready
            return self._read
        asked = decode(self.body, kind, strict=strict)
        try:
            check(asked, self.api.limits, len(self.body))
        except TooMuch as error:
            raise WrongParameter(error.name, error.text) from None
        self._read = asked
        return asked

    def image_finder(self, version: ModelVersion) -> ImageFinder:
        """Finder of images for a model, which reads as many in a request as it says."""
        offered = version.schema.capabilities or Capabilities()
        return ImageFinder(offered.max_images, self.api.images.limits, self._images)

    def prepare_images(self, sources: Sequence[ImageSource], begin: Callable[[], None]) -> None:
        """`begin` is called when they are ready; the request fails if one cannot be had."""

        async def ready() -> None:
            self._images = await self.api.images.prepare(sources, self._hold_fetched)

        self.after(ready, begin)

    def after(self, work: Callable[[], Coroutine[Any, Any, None]], then: Callable[[], None]) -> None:
        """`then` is called when the work is done; the request fails if the work does. It ends if the client leaves."""
        self._preparation = asyncio.get_running_loop().create_task(self._prepare(work, then))

    async def _prepare(self, work: Callable[[], Coroutine[Any, Any, None]], then: Callable[[], None]) -> None:
        try:
            await work()
            self._preparation = None
            then()
        except Exception as error:
            self._preparation = None
            self.fail(error)

    def check_stays(self) -> None:
        """Raises RequestCancelled after `cancel`."""
        if self._left:
            raise RequestCancelled

    def submit(self, version: ModelVersion, operation: str, message: msgspec.Struct, sink: Sink) -> Job:
        """Queue a job. Raises ServiceError when it cannot be taken, or the request's key is for other models."""
        if self._left:
            raise RequestCancelled
        source, number = version.source, len(self._jobs)
        if self._key is not None:
            self._key.check_model(source.name)
        if isinstance(message, GenerateRequest):
            files = version.schema.adapters.get(message.adapter)
            message = msgspec.structs.replace(message, owner=self.owner, adapter_files=files)
        id, fields = f"{self.id}-{number}" if number else self.id, [Field("body", MESSAGE_PACK, self._encode(message))]
        job = TextJob(id, source.name, source.version, fields, self._headers, sink, kind=operation)
        job.api, job.owner, job.first = self.api, self.owner, self._jobs[0] if number else None
        job.message, job.asked_session = message, self.session
        if not number and isinstance(self.sink, TimedSink):
            self.sink.job = job
        self.api.submit(job)
        self._jobs.append(job)
        return job

    def _encode(self, message: msgspec.Struct) -> bytes:
        return encode_long(message) if len(self.body) > LARGE else encode(message)

    def _hold_fetched(self, size: int) -> None:
        self._hold(len(self.body) + size)

    def ignore(self, places: Sequence[str]) -> None:
        """Further places of the request have no effect."""
        if places:
            self.ignored = [*self.ignored, *places]

    def wait_for_load(self, version: ModelVersion, begin: Callable[[], None]) -> None:
        """`begin` is called when the model's handler is known. Raises Overloaded when too many wait."""
        self._first_load = version.queue.wait_for_load(begin, self.fail)

    def fail(self, error: Exception) -> None:
        """End its jobs, and tell the client why."""
        self.cancel()
        self.sink.fail(self.client_error(error))

    def cancel(self, error: ServiceError | None = None) -> None:
        """End its jobs, and begin no others: the client has left, or one of them failed. Idempotent."""
        self._left = True
        self._heartbeat.close()
        if self._first_load is not None:
            self._first_load.leave()
        if self._preparation is not None:
            self._preparation.cancel()
        jobs, self._jobs = self._jobs, []  # ends the reference cycle of jobs and sinks
        for job in jobs:
            job.cancel(error)

    def will_stream(self) -> None:
        """The reply is a stream of events, whose head does not wait for the first of them for ever. Idempotent."""
        if self._heartbeat is CLOSED and not self.streaming:
            self._heartbeat = self.api.heartbeats.open(self._start_early)

    def start_stream(self) -> None:
        """Send the head of the stream, unless that was done: from then on errors are told by an event."""
        self._heartbeat.close()
        if not self.streaming:
            self.streaming = True
            self.sink.start(200, "", [*self.stream_type, *self.ignored_header(), *self.stream_headers])

    def _start_early(self) -> None:
        self.start_stream()
        self.sink.chunk(COMMENT)

    def answer(self, value: Any, headers: Headers) -> bytes:
        """The whole reply, as JSON, which is returned."""
        data = _json(value)
        self.send(data, headers)
        return data

    def send(self, data: bytes, headers: Headers) -> None:
        """The whole reply, which is JSON."""
        self._jobs = []
        own = JSON_HEADERS if not (self.ignored or headers) else [*JSON_HEADERS, *self.ignored_header(), *headers]
        self.sink.answer(200, "", own, data)

    def client_error(self, error: Exception) -> ServiceError:
        """The error with the client's names of parameters. A bug of the server is logged here."""
        if isinstance(error, MalformedJson):
            return error.sent_as(self.header("content-type"))
        return renamed(reported(error, self.id), self.names)

    def ignored_header(self) -> Headers:
        """A header with as many of the places as fit, in characters that a header may have."""
        places = [client_name(place, self.names) for place in self.ignored[:MOST_IGNORED]]
        text = ", ".join(place for place in places if place.isascii() and place.isprintable() and len(place) < 200)
        return [(IGNORED, text)] if text else []
