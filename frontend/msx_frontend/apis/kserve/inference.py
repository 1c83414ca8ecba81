"""Inference over REST: from a request to its job, and from the worker's answer to the reply."""

from __future__ import annotations

from collections.abc import Callable

from msx_core.kserve.types import HEADER_LENGTH
from msx_core.service_errors import ServiceError
from msx_frontend.apis.kserve.errors import ManyReplies, failure
from msx_frontend.apis.kserve.infer import check, opened, renamed
from msx_frontend.body_fields import fields_parser
from msx_frontend.job import INFER, PREDICT, Field, Job
from msx_frontend.job_headers import KeptHeaders
from msx_net.http.family import JobRoute, JobTemplate, Names, ReplySink
from msx_net.http.head import Head
from msx_net.http.job_reply import TranslatedReply
from msx_net.http.wire import JSON_HEADERS
from msx_net.keys import ClientKey

BINARY = ("content-type", "application/octet-stream")
JSON = "application/json"
_HEADER_LENGTH = HEADER_LENGTH.encode()
_PLAIN = ("", JSON, "application/octet-stream")

Submit = Callable[[Job], None]


class KserveJob(Job):
    __slots__ = ()

    def status_of(self, error: ServiceError) -> int:
        return failure(error).status


class InferTemplate:
    """Parts of an inference job that its request's head decides."""

    __slots__ = ("_fields", "_headers", "_is_inference", "_limit", "_model", "_submit", "_version", "key")

    def __init__(self, head: Head, names: Names, submit: Submit, limit: int, *, explain: bool) -> None:
        self._model, self._version = names["model"], names.get("version")
        self._headers = KeptHeaders([*head.headers(), ("explain", str(explain)), ("url_path", "")])
        self._is_inference = _is_inference(head)
        self._fields = fields_parser(head.content_type)
        self._submit, self._limit = submit, limit
        self.key: ClientKey | None = None

    def submit(self, id: str, body: bytes, sink: ReplySink) -> None:
        """Clients send JSON without a type, or with a wrong one; an image with its own is a plain prediction."""
        answer: InferReply | PlainReply
        if self._is_inference or body.lstrip()[:1] == b"{":
            answer, kind, fields = InferReply(id, sink, self._limit, self._model), INFER, [Field("body", JSON, body)]
        else:
            answer, kind, fields = PlainReply(id, sink, self._limit), PREDICT, self._fields(body)
        job = KserveJob(id, self._model, self._version, fields, self._headers, answer, kind=kind)
        sink.job = job
        self._submit(job)
        answer.own_name = job.model_name


def infer_route(submit: Submit, limit: int, *, explain: bool) -> JobRoute:
    """`limit`: bytes of a reply in chunks (max_response_size)."""

    def template(head: Head, names: Names) -> JobTemplate:
        return InferTemplate(head, names, submit, limit, explain=explain)

    return JobRoute(template)


class InferReply(TranslatedReply):
    """One message of the worker: JSON, and the tensors' bytes behind it."""

    __slots__ = ("_model", "own_name")

    def __init__(self, id: str, sink: ReplySink, limit: int, model: str) -> None:
        """`model` is the name that was asked for."""
        super().__init__(id, sink, limit)
        self._model = model
        self.own_name = model
        """The model's own name, where that is an alias."""

    def chunk_added(self, status: int, chunks: list[bytes]) -> None:
        if len(chunks) > 1 and status < 400:
            raise ManyReplies(self._model)

    def translate(self, status: int, phrase: str, headers: list[tuple[str, str]], chunks: list[bytes]) -> None:
        check(status, chunks)
        body, json_size = opened(chunks[0] if chunks else b"", self._model)
        if self.own_name != self._model:
            body, json_size = renamed(body, json_size, self.own_name, self._model)
        self.sink.answer(status, phrase, _headers(headers, json_size, len(body)), body)


class PlainReply(TranslatedReply):
    """The handler's own reply, as it is."""

    __slots__ = ("own_name",)
    own_name: str

    def translate(self, status: int, phrase: str, headers: list[tuple[str, str]], chunks: list[bytes]) -> None:
        check(status, chunks)
        self.sink.answer(status, phrase, headers, chunks[0] if len(chunks) == 1 else b"".join(chunks))


def _headers(own: list[tuple[str, str]], json_size: int, size: int) -> list[tuple[str, str]]:
    """The handler's own headers, but the protocol's content type."""
    if json_size == size and (not own or own == JSON_HEADERS):
        return JSON_HEADERS
    kept = [pair for pair in own if pair[0].lower() != "content-type"]
    return [*kept, *(JSON_HEADERS if json_size == size else [BINARY, (HEADER_LENGTH, str(json_size))])]


def _is_inference(head: Head) -> bool:
    kind = head.content_type.decode("latin-1").partition(";")[0].strip().lower()
    return kind in _PLAIN or bool(head.header(_HEADER_LENGTH))
