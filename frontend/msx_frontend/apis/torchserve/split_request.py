"""KServe v1's `{"instances": [...]}` as a request whose instances are jobs (`splitInstances`), and their replies as one
`{"predictions": [...]}`."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from msx_core.service_errors import HandlerFailed, ServiceError
from msx_core.statuses import PREDICTION_FAILED
from msx_frontend.job import Field
from msx_frontend.queueing.instances import InstanceAnswer, InstanceReply

LARGE = 1 << 17
"""Bytes. To split or join as many takes up to 3 ms; more is done on a thread."""
MANY = 1000
"""Replies. To join more is done on a thread."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_ANY = msgspec.json.Decoder(msgspec.Raw)


class _Predictions(msgspec.Struct):
    predictions: list[msgspec.Raw]


_REPLY = msgspec.json.Decoder(_Predictions)


class SplitBody(Sequence[list[Field]]):
    """The fields of each instance: the body with that instance alone, and all other members. Made when asked for."""

    def __init__(self, instances: list[msgspec.Raw], others: bytes, content_type: str) -> None:
        self._instances, self._others, self._content_type = instances, others, content_type

    def __len__(self) -> int:
        return len(self._instances)

    def __getitem__(self, at: Any) -> Any:
        body = b"".join((b'{"instances": [', self._instances[at], b"]", self._others, b"}"))
        return [Field("body", self._content_type, body)]


def split(body: bytes, content_type: str) -> SplitBody | None:
    """None for a body that is not an object with a list of instances, or has none: it goes on as it is."""
    try:
        members = _MEMBERS.decode(body)
        instances = _LIST.decode(members.pop("instances"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
        return None
    others = b"".join(
        part for name, value in members.items() for part in (b", ", msgspec.json.encode(name), b": ", value)
    )
    return SplitBody(instances, others, content_type) if instances else None


def first_failure(answers: Sequence[InstanceAnswer]) -> InstanceAnswer | None:
    """KServe v1 has no errors of instances: the request has failed with the first."""
    return next((one for one in answers if isinstance(one, ServiceError) or one.status >= 400), None)


def joined(replies: Sequence[InstanceReply]) -> bytes:
    """The predictions of all replies. Raises HandlerFailed for a reply that JSON cannot have."""
    return b"".join((b'{"predictions": [', b", ".join(_all_predictions(replies)), b"]}"))


def _all_predictions(replies: Sequence[InstanceReply]) -> Iterator[bytes | msgspec.Raw]:
    for at, reply in enumerate(replies):
        try:
            yield from _predictions(reply.body)
        except UnicodeDecodeError:
            raise HandlerFailed(
                PREDICTION_FAILED,
                f"The reply to instance {at} is neither JSON nor text, and cannot stand in predictions: answer with "
                f"JSON, or set splitInstances: false in model-config.yaml.",
            ) from None


def _predictions(body: bytes) -> list[msgspec.Raw] | list[bytes]:
    """Predictions of one reply: the items of its `predictions`, else the whole body, as JSON or as a text."""
    try:
        return _REPLY.decode(body).predictions
    except (msgspec.DecodeError, RecursionError):
        return [_value(body)]


def _value(body: bytes) -> bytes:
    try:
        return bytes(_ANY.decode(body))
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode(body.decode())
