"""One table of errors: what OpenAI's, TGI's and KServe's clients are failure.

ServiceError
├── WrongParameter     a value of the request: which one, and its limit
├── Invalid            the same, in TGI's words
├── UnknownModel       no such model, and which there are
├── UnknownAdapter     no such adapter of a model, and which there are
├── UnknownResponse    no such response is kept
├── AnswersTooLarge    what a model answers to all texts of a request
├── NoChatTemplate     messages for a model that takes none
├── IncompleteReply    the handler ended without an end of its text
├── FirstLoading       what the model offers is not known, and this request makes it load
├── Unhealthy          no language model answers
└── InvalidReply       the handler sent something else than a message of msx_core.generation
"""

from typing import Any, NamedTuple

import msgspec

from msx_core import service_errors
from msx_core.failures import MAX_SUMMARY, shortened
from msx_core.generation import ContextLengthExceeded
from msx_core.service_errors import BadRequest, HandlerFailed, ModelNotFound, ServiceError, ServiceUnavailable
from msx_frontend import management_errors
from msx_frontend.batches.errors import BatchHasEnded, UnknownBatch
from msx_frontend.deferred.errors import JobRanAgain, KeyInUse, KeyOfAnotherBody, ReplyNotKept
from msx_frontend.files.errors import FileInUse, UnknownFile
from msx_frontend.generation.parameter_names import parameter_of
from msx_frontend.models.versions.model_version import ModelVersion
from msx_net.http import family as http

DO_NOT_RETRY = ("x-should-retry", "false")
"""OpenAI's clients repeat what failed with 5xx; a request that ended a worker may be the cause."""


class WrongParameter(BadRequest):
    """The text may quote what the client sent: the middle of a long one is left out."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(shortened(f"{name}: {text}", MAX_SUMMARY))


class AnswersTooLarge(BadRequest):
    """`limit` is in bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The model's answers to the texts of this request have more than max_answers_size ({limit} bytes): send "
            "fewer texts at once, or raise it in the server's config.properties."
        )


class FirstLoading(ServiceUnavailable):
    """The first load of the model, which tells what it offers, has not ended; a request that waits for it starts it."""

    def __init__(self, version: ModelVersion) -> None:
        super().__init__(f'Model "{version.source.name}" is loading for the first time; ask again when it is ready.')
        self.version = version


class Invalid(BadRequest):
    """A wrong value, in TGI's own words."""


class UnknownModel(ModelNotFound):
    """`which` are the others: `that can generate text`."""

    def __init__(self, name: str, which: str, others: list[str]) -> None:
        known = f"The models {which}: {', '.join(others)}." if others else f"The server does not have models {which}."
        super().__init__(f"{name}. {known}")


class UnknownAdapter(ModelNotFound):
    def __init__(self, model: str, adapter: str, others: tuple[str, ...]) -> None:
        known = f"Its adapters: {', '.join(others)}." if others else "It has no adapters."
        super().__init__(f"{model}:{adapter}. {known}")


class UnknownResponse(ServiceError):
    status, type, grpc_code = 404, "ResourceNotFoundException", "NOT_FOUND"


class NoChatTemplate(BadRequest):
    def __init__(self, model: str) -> None:
        super().__init__(f'Model "{model}" has no chat template: send it a prompt, by /v1/completions.')


class IncompleteReply(ServiceError):
    def __init__(self, model: str) -> None:
        super().__init__(f'The handler of model "{model}" ended its reply without a finish_reason for each text.')


class Unhealthy(ServiceError):
    def __init__(self) -> None:
        super().__init__("unhealthy")


class InvalidReply(ServiceError):
    def __init__(self, model: str, kind: str, reason: object) -> None:
        super().__init__(f'The handler of model "{model}" sent what is no {kind}: {reason}.')


class Row(NamedTuple):
    """Statuses of the three families, OpenAI's type and code, TGI's type."""

    openai: int
    type: str
    code: str | None
    tgi: int
    tgi_type: str
    kserve: int
    headers: tuple[tuple[str, str], ...] = ()
    """Headers beside the error's own."""


INVALID = "invalid_request_error"
SERVER = "server_error"
_WRONG = Row(400, INVALID, None, 422, "validation", 400)
_OVERLOADED = Row(429, "rate_limit_error", "rate_limit_exceeded", 429, "overloaded", 503)
_UNAVAILABLE = Row(503, SERVER, "service_unavailable", 503, "unavailable", 503)
_TIMEOUT = Row(504, SERVER, "timeout", 504, "timeout", 504)
_FAILED = Row(500, SERVER, "generation_failed", 424, "generation", 500)
_DIED = Row(503, SERVER, "worker_died", 424, "generation", 500, (DO_NOT_RETRY,))
_NO_MODEL = Row(404, INVALID, "model_not_found", 404, "model_not_found", 404)

TABLE: dict[type[ServiceError], Row] = {
    service_errors.ResourceNotFound: Row(404, INVALID, "unknown_url", 404, "not_found", 404),
    service_errors.MethodNotAllowed: Row(405, INVALID, "method_not_supported", 405, "method_not_allowed", 405),
    service_errors.ModelNotFound: _NO_MODEL,
    service_errors.ModelVersionNotFound: _NO_MODEL,
    service_errors.HandlerMethodNotFound: Row(404, INVALID, "unknown_url", 404, "not_found", 404),
    service_errors.BadRequest: _WRONG,
    service_errors.MalformedJson: _WRONG,
    management_errors.AdapterNotFound: Row(404, INVALID, "adapter_not_found", 404, "not_found", 404),
    service_errors.NotOffered: Row(400, INVALID, "unsupported_operation", 422, "validation", 400),
    service_errors.PayloadTooLarge: Row(413, INVALID, "request_too_large", 413, "validation", 413),
    service_errors.UnknownEncoding: Row(415, INVALID, "unsupported_encoding", 415, "validation", 415),
    service_errors.SlowRequest: Row(408, INVALID, "request_timeout", 408, "timeout", 408),
    service_errors.InvalidKey: Row(401, INVALID, "invalid_api_key", 401, "unauthorized", 401),
    service_errors.ModelNotAllowed: Row(403, INVALID, "model_not_allowed", 403, "forbidden", 403),
    service_errors.PriorityNotAllowed: Row(403, INVALID, "priority_not_allowed", 403, "forbidden", 403),
    service_errors.ForeignHost: Row(403, INVALID, "foreign_host", 403, "forbidden", 403),
    service_errors.ForeignPage: Row(403, INVALID, "foreign_page", 403, "forbidden", 403),
    service_errors.TooManyRequests: Row(429, "rate_limit_error", "rate_limit_exceeded", 429, "overloaded", 429),
    service_errors.Overloaded: _OVERLOADED,
    service_errors.ServiceUnavailable: _UNAVAILABLE,
    service_errors.DeadlineExceeded: _TIMEOUT,
    service_errors.WorkerDied: _DIED,
    service_errors.WorkerTimedOut: Row(504, SERVER, "worker_died", 424, "generation", 504, (DO_NOT_RETRY,)),
    service_errors.RequestCancelled: Row(499, INVALID, "request_cancelled", 499, "cancelled", 499),
    KeyInUse: Row(409, INVALID, "idempotency_key_in_use", 409, "conflict", 409),
    KeyOfAnotherBody: Row(422, INVALID, "idempotency_key_reused", 422, "validation", 422),
    JobRanAgain: Row(409, INVALID, "job_ran_again", 409, "conflict", 409),
    ReplyNotKept: Row(507, SERVER, "reply_not_kept", 507, "generation", 507),
    UnknownResponse: Row(404, INVALID, "response_not_found", 404, "not_found", 404),
    UnknownFile: Row(404, INVALID, "file_not_found", 404, "not_found", 404),
    FileInUse: Row(409, INVALID, "file_in_use", 409, "conflict", 409),
    UnknownBatch: Row(404, INVALID, "batch_not_found", 404, "not_found", 404),
    BatchHasEnded: Row(409, INVALID, "batch_has_ended", 409, "conflict", 409),
    IncompleteReply: Row(500, SERVER, "incomplete_generation", 500, "incomplete_generation", 500),
    InvalidReply: _FAILED,
    Unhealthy: Row(503, SERVER, "unhealthy", 503, "healthcheck", 503),
    service_errors.Bug: Row(500, SERVER, "internal_error", 500, "internal_error", 500),
}

HANDLERS: dict[int, Row] = {
    429: _OVERLOADED,
    504: _TIMEOUT,
    501: Row(501, SERVER, "not_implemented", 501, "generation", 501),
}
"""Errors that a handler chose by a status."""
TGI_NAMES = {"max_tokens": "`max_new_tokens`", "prompt": "`inputs`", "constraint": "`grammar`"}
"""A handler names the parameters of msx_core.generation."""


class TextFailure(NamedTuple):
    """The reply of one family to an error."""

    status: int
    body: dict[str, Any]
    headers: tuple[tuple[str, str], ...]


def as_json(failure: TextFailure) -> http.Failure:
    return http.Failure(failure.status, msgspec.json.encode(failure.body), (*http.JSON, *failure.headers))


def row_of(error: ServiceError) -> Row:
    if isinstance(error, HandlerFailed):
        return HANDLERS.get(error.status, _WRONG if error.status < 500 else _FAILED)
    return next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), _FAILED)


def openai_failure(error: ServiceError) -> TextFailure:
    row = row_of(error)
    code = row.code or getattr(error, "code", "") or None
    body = {"message": error.plain, "type": row.type, "param": _parameter(error, row), "code": code}
    return TextFailure(row.openai, {"error": body}, (*row.headers, *error.headers))


def tgi_failure(error: ServiceError) -> TextFailure:
    row = row_of(error)
    text = error.plain
    if row.tgi_type == "validation":
        ours, colon, rest = text.partition(": ")
        text = f"Input validation error: {TGI_NAMES.get(ours, ours)}{colon}{rest}"
    return TextFailure(row.tgi, {"error": text, "error_type": row.tgi_type}, (*row.headers, *error.headers))


ANTHROPIC = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Anthropic's types of errors by status, beside invalid_request_error and api_error.

https://docs.anthropic.com/en/api/errors
"""
FULL = 529
"""The status of Anthropic's API where the server has no room, which its clients ask again after."""


def anthropic_failure(error: ServiceError) -> TextFailure:
    row, text = row_of(error), error.plain
    status = FULL if row is _OVERLOADED else row.openai
    if getattr(error, "code", "") == ContextLengthExceeded.code and parameter_of(text) != "max_tokens":
        text = f"prompt is too long: {text}"  # the words at which its clients shorten a conversation
    kind = ANTHROPIC.get(status, "invalid_request_error" if status < 500 else "api_error")
    body = {"type": "error", "error": {"type": kind, "message": text}}
    return TextFailure(status, body, (*row.headers, *error.headers))


def ollama_failure(error: ServiceError) -> TextFailure:
    row = row_of(error)
    return TextFailure(row.openai, {"error": error.plain}, (*row.headers, *error.headers))


def cohere_failure(error: ServiceError) -> TextFailure:
    row = row_of(error)
    return TextFailure(row.openai, {"message": error.plain}, (*row.headers, *error.headers))


def kserve_failure(error: ServiceError) -> TextFailure:
    row = row_of(error)
    return TextFailure(row.kserve, {"error": error.plain}, (*row.headers, *error.headers))


def _parameter(error: ServiceError, row: Row) -> str | None:
    if row.type != INVALID:
        return None
    if row.code == "model_not_found":
        return "model"
    return parameter_of(error.plain)
